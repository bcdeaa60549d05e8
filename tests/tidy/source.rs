//! Source files as the rules see them: code apart from comments and the contents of literals.

use std::path::{Path, PathBuf};

/// One file. `code` and `comments` have exactly the lines of `text`; what belongs to the other
/// is blanked out.
pub struct File {
    pub path: String,
    pub text: String,
    pub code: String,
    pub comments: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        Self { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    pub fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// "path:line: what", as compilers print it. Lines count from 0 here.
    pub fn at(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

/// The line of a byte position.
pub fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count()
}

/// Byte positions of `word` in `code` that are not part of a longer name.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    code.match_indices(word).map(|(start, _)| start).filter(move |&start| {
        let before = start.checked_sub(1).and_then(|at| code.as_bytes().get(at));
        !part(before) && !part(code.as_bytes().get(start + word.len()))
    })
}

/// Position after the bracket that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository, or nothing if there is none of that name.
pub fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// All sources of the repository.
pub fn tree() -> Vec<File> {
    let mut files = Vec::new();
    for folder in ["src", "ffi", "tests", "benches", "include", ".ci"] {
        collect(&root().join(folder), &mut files);
    }
    for name in ["Makefile", "README.md", "CHANGELOG.md"] {
        files.extend(read(name).map(|text| File::new(name, &text)));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 30, "only {} files found", files.len());
    files
}

fn collect(folder: &Path, files: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "corpus" && name != "artifacts" {
                collect(&path, files);
            }
        } else if is_source(&path) {
            let text = std::fs::read_to_string(&path).expect("UTF-8 sources");
            let name = path.strip_prefix(root()).expect("a file of the repository");
            files.push(File::new(&name.to_string_lossy(), &text));
        }
    }
}

fn is_source(path: &Path) -> bool {
    let known = ["rs", "c", "h", "cpp", "hpp", "sh", "md"];
    match path.extension() {
        Some(extension) => known.iter().any(|known| extension == *known),
        None => path.parent().is_some_and(|folder| folder.file_name() == Some(".ci".as_ref())),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Lexeme {
    Code,
    Line,
    Block(u32),
    Text,
    RawText(usize),
}

/// Splits into code and comments, line by line in step. Literals stay as quotes without content.
fn split(text: &str) -> (String, String) {
    let bytes: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut state = Lexeme::Code;
    let mut at = 0;
    while at < bytes.len() {
        let (next, taken) = step(&bytes, at, state);
        let character = state == Lexeme::Code && bytes[at] == '\'' && taken > 2;
        for &c in &bytes[at..at + taken] {
            let comment = matches!(state, Lexeme::Line | Lexeme::Block(_))
                || matches!(next, Lexeme::Line | Lexeme::Block(_));
            let text = matches!(state, Lexeme::Text | Lexeme::RawText(_)) && c != '"';
            let literal = text || character && c != '\'';
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if comment || literal { blank } else { c });
            comments.push(if comment { c } else { blank });
        }
        state = next;
        at += taken;
    }
    (code, comments)
}

/// What the text at `at` is, and how many characters of it belong together.
fn step(text: &[char], at: usize, state: Lexeme) -> (Lexeme, usize) {
    let peek = |ahead: usize| text.get(at + ahead).copied().unwrap_or('\0');
    match state {
        Lexeme::Code => match (text[at], peek(1)) {
            ('/', '/') => (Lexeme::Line, 2),
            ('/', '*') => (Lexeme::Block(1), 2),
            ('"', _) => (Lexeme::Text, 1),
            ('r', '"' | '#') if !is_name(text, at) => {
                let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
                match peek(1 + hashes) {
                    '"' => (Lexeme::RawText(hashes), hashes + 2),
                    _ => (Lexeme::Code, 1),
                }
            }
            ('\'', '\\') => {
                let end = text[at + 3..].iter().position(|c| *c == '\'');
                (Lexeme::Code, end.map_or(1, |end| end + 4))
            }
            ('\'', _) if peek(2) == '\'' => (Lexeme::Code, 3),
            _ => (Lexeme::Code, 1),
        },
        Lexeme::Line if text[at] == '\n' => (Lexeme::Code, 1),
        Lexeme::Block(depth) => match (text[at], peek(1)) {
            ('/', '*') => (Lexeme::Block(depth + 1), 2),
            ('*', '/') if depth == 1 => (Lexeme::Code, 2),
            ('*', '/') => (Lexeme::Block(depth - 1), 2),
            _ => (state, 1),
        },
        Lexeme::Text => match text[at] {
            '\\' => (state, 2.min(text.len() - at)),
            '"' => (Lexeme::Code, 1),
            _ => (state, 1),
        },
        Lexeme::RawText(hashes) => {
            let closes = text[at] == '"' && (1..=hashes).all(|ahead| peek(ahead) == '#');
            if closes { (Lexeme::Code, 1 + hashes) } else { (state, 1) }
        }
        Lexeme::Line => (state, 1),
    }
}

/// Is the character before `at` part of a name, so that an `r` there begins no raw literal?
fn is_name(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

#[test]
fn comments_and_literals_are_not_code() {
    let file = File::new(
        "src/x.rs",
        "let a = \"unsafe \\\" // no\"; // unsafe one\n\
         /* unsafe /* two */ */ let b = r#\"unsafe\"#;\n\
         let c = ('\"', '\\'', 'x'); let d: &'static str = \"\"; unsafe {}\n",
    );
    assert_eq!(words(&file.code, "unsafe").count(), 1);
    assert_eq!(words(&file.comments, "unsafe").count(), 2);
    assert_eq!(file.code.lines().count(), 3);
    assert_eq!(file.comments.lines().count(), 3);
    assert!(file.code.contains("'static str"));
}
