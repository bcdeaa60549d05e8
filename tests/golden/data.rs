//! The recorded lines as typed values.

use serde_json::Value;

/// A message as recorded: offset and body length, a null body counting as 0.
pub type Body = (i64, u32);

/// One recorded call.
#[derive(Clone, Debug)]
pub enum Call {
    Put { batch: Vec<Body>, max_offset: Option<String> },
    Take(i64),
    Commit,
    Rollback,
    Clear,
    Again(Vec<Body>),
    Remove(Vec<Body>),
    Span,
    Has,
    Contains(Option<i64>),
}

/// What the Java class returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ret {
    Null,
    Int(i64),
    Messages(Vec<Body>),
    Thrown(String),
}

/// The recorded state, in the order of the file.
pub type Row = [i64; 11];

/// Columns of a [`Row`] that are named in the code.
pub const COLUMN_BYTES: usize = 7;
pub const COLUMN_FLAG: usize = 8;
pub const COLUMN_HIGHEST: usize = 9;
pub const COLUMN_LAG: usize = 10;

/// One call, its answer and, for all but the queries, the state after it.
#[derive(Clone, Debug)]
pub struct Step {
    pub call: Call,
    pub ret: Ret,
    pub row: Option<Row>,
}

/// The steps of one line of the orderly, concurrent and odd files.
pub fn steps(line: &Value) -> Vec<Step> {
    line["ops"].as_array().unwrap().iter().map(step).collect()
}

fn step(op: &Value) -> Step {
    let call = call(op[0].as_str().unwrap(), &op[1]);
    Step { call, ret: ret(&op[2]), row: op.get(3).map(row) }
}

/// A call by its recorded name and argument.
pub fn call(name: &str, arg: &Value) -> Call {
    match name {
        "put" => Call::Put { batch: bodies(arg), max_offset: None },
        "putm" => Call::Put {
            batch: bodies(&arg[0]),
            max_offset: Some(arg[1].as_str().unwrap().to_owned()),
        },
        "take" => Call::Take(int(arg)),
        "commit" => Call::Commit,
        "rollback" => Call::Rollback,
        "clear" => Call::Clear,
        "again" => Call::Again(bodies(arg)),
        "remove" => Call::Remove(bodies(arg)),
        "span" => Call::Span,
        "has" => Call::Has,
        "contains" => Call::Contains(arg.as_i64()),
        other => panic!("unknown call {other}"),
    }
}

pub fn ret(value: &Value) -> Ret {
    match value {
        Value::Null => Ret::Null,
        Value::Number(_) => Ret::Int(int(value)),
        Value::Array(_) => Ret::Messages(bodies(value)),
        Value::Object(thrown) => Ret::Thrown(thrown["ex"].as_str().unwrap().to_owned()),
        other => panic!("unknown return value {other}"),
    }
}

pub fn row(value: &Value) -> Row {
    let columns: Vec<i64> = value.as_array().unwrap().iter().map(int).collect();
    columns.try_into().unwrap()
}

pub fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not an i64"))
}

fn bodies(value: &Value) -> Vec<Body> {
    let body = |m: &Value| (int(&m[0]), u32::try_from(int(&m[1])).unwrap_or(0));
    value.as_array().unwrap().iter().map(body).collect()
}
