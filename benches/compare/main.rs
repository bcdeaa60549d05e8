//! Compares `lanekeeper` with what else holds a queue of messages: one program, one run, one
//! table, and `target/compare.json`.
//!
//! ```text
//! cargo bench --bench compare                      all workloads, some minutes
//! cargo bench --bench compare -- --quick           the same, shorter and noisier
//! cargo bench --bench compare -- --only B1,B2      some workloads
//! cargo bench --bench compare -- --check           exits 1 if a floor is missed
//! cargo bench --bench compare -- --guard           exits 1 if a ratio fell below what was reached
//! cargo bench --bench compare -- --chart           draws the last results, measures nothing
//! cargo bench --bench compare -- --markdown        prints them as a table for a page
//! ```

mod chart;
mod floors;
mod from_c;
mod guard;
mod harness;
mod heap;
mod report;
mod results;
mod ring;
mod subject;
mod subjects;
mod workloads;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::from_c::CProgram;
use crate::harness::{Measured, pin};
use crate::results::{Results, Sample};
use crate::workloads::{IMPLEMENTATIONS, LANE_C, Run, WORKLOADS, Workload};

/// Measures every implementation in the same harness.
#[derive(Parser)]
#[command(name = "compare")]
struct Options {
    /// Shorter runs, and three of them.
    #[arg(long)]
    quick: bool,
    /// Runs after the warm-up, instead of 5 or 3.
    #[arg(long)]
    runs: Option<usize>,
    /// Length of a run in ms, instead of 120 or 20.
    #[arg(long)]
    run_ms: Option<u64>,
    /// Workloads to run, by name; a prefix before a dash is enough (B8).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Implementations to run, by name.
    #[arg(long = "impl", value_delimiter = ',')]
    implementations: Vec<String>,
    /// Exit with status 1 if a floor is missed by more than noise.
    #[arg(long)]
    check: bool,
    /// Exit with status 1 if a ratio of benches/compare/reached.json is lost, by more than noise
    /// and in three measurements.
    #[arg(long)]
    guard: bool,
    /// Draw src/docs/compare.svg from target/compare.json and measure nothing.
    #[arg(long)]
    chart: bool,
    /// Print the last results as a Markdown table and measure nothing.
    #[arg(long)]
    markdown: bool,
    /// Leave out the program in C, which needs a C compiler.
    #[arg(long)]
    no_c: bool,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn wants(&self, workload: &Workload) -> bool {
        let family = workload.name.split('-').next();
        self.only.is_empty()
            || self.only.iter().any(|only| only == workload.name || Some(only.as_str()) == family)
    }

    fn wants_implementation(&self, name: &str) -> bool {
        self.implementations.is_empty() || self.implementations.iter().any(|other| other == name)
    }

    fn unknown_name(&self) -> Option<&str> {
        let workload = |name: &&String| {
            !WORKLOADS.iter().any(|w| w.name == *name || w.name.split('-').next() == Some(name))
        };
        let implementation = |name: &&String| !IMPLEMENTATIONS.contains(&name.as_str());
        let unknown = self.only.iter().find(workload);
        unknown.or_else(|| self.implementations.iter().find(implementation)).map(String::as_str)
    }
}

/// How long one run lasts, and how many there are after the warm-up.
struct Effort {
    run: Duration,
    runs: usize,
}

/// Runs one implementation: a function of this program, or the one in C.
enum Runner<'c> {
    Rust(Run),
    C(&'c CProgram),
}

struct Contender<'c> {
    name: &'static str,
    runner: Runner<'c>,
    batches: u64,
    sample: Sample,
}

impl Contender<'_> {
    fn run(&self, workload: &Workload) -> Result<Measured, String> {
        match self.runner {
            Runner::Rust(run) => Ok(run(&workload.shape, self.batches)),
            Runner::C(program) => program.run(workload.name, self.batches),
        }
    }
}

const WARM_BATCHES: u64 = 2048;

/// Warms up everybody, then lets all take turns, so that a noisy moment hits them alike.
fn measure(
    workload: &Workload,
    options: &Options,
    program: Option<&CProgram>,
    effort: &Effort,
    results: &mut Results,
) -> Result<(), String> {
    let rust = workload.runs().into_iter().map(|(name, run)| (name, Runner::Rust(run)));
    let c = program.filter(|_| workload.in_c()).map(|program| (LANE_C, Runner::C(program)));
    let mut contenders: Vec<Contender<'_>> = rust
        .chain(c)
        .filter(|(name, _)| options.wants_implementation(name))
        .map(|(name, runner)| Contender {
            name,
            runner,
            batches: WARM_BATCHES,
            sample: Sample::default(),
        })
        .collect();
    for contender in &mut contenders {
        // Two, since the slower one may have been disturbed, and would make the runs too short.
        let warm = contender.run(workload)?.elapsed.min(contender.run(workload)?.elapsed);
        let batch = warm.as_secs_f64() / WARM_BATCHES as f64;
        let batches = effort.run.as_secs_f64() / batch.max(1e-12);
        contender.batches = (batches as u64).clamp(WARM_BATCHES / 4, 1 << 24);
    }
    for _ in 0..effort.runs {
        for contender in &mut contenders {
            let measured = contender.run(workload)?;
            contender.sample.add(&measured);
        }
    }
    for contender in contenders {
        results.add(workload, contender.name, &contender.sample);
    }
    Ok(())
}

fn run(options: &Options) -> Result<ExitCode, String> {
    if let Some(name) = options.unknown_name() {
        return Err(format!("{name} is neither a workload nor an implementation"));
    }
    if options.chart {
        let path = chart::draw(&Results::load()?)?;
        println!("drew {}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    if options.markdown {
        println!("{}\n\n{}", report::machine(), report::markdown(&Results::load()?));
        return Ok(ExitCode::SUCCESS);
    }
    let with_c = !options.no_c && options.wants_implementation(LANE_C);
    let program = if with_c { Some(CProgram::build()?) } else { None };
    let (runs, run_ms) = if options.quick { (3, 20) } else { (5, 120) };
    let effort = Effort {
        run: Duration::from_millis(options.run_ms.unwrap_or(run_ms)),
        runs: options.runs.unwrap_or(runs).max(1),
    };
    pin(true);
    let measure_all = |wanted: &dyn Fn(&Workload) -> bool| -> Result<Results, String> {
        let mut results = Results::default();
        for workload in WORKLOADS.iter().filter(|workload| wanted(workload)) {
            progress(workload.name);
            measure(workload, options, program.as_ref(), &effort, &mut results)?;
        }
        progress("");
        Ok(results)
    };
    let mut results = measure_all(&|workload| options.wants(workload))?;
    let path = results.save()?;
    println!("{}", report::machine());
    println!("{}", report::table(&results));
    println!("{}", report::legend());
    println!("results: {}", path.display());
    let missed = floors::missed(&results);
    for line in &missed {
        println!("missed: {line}");
    }
    let mut failed = options.check && !missed.is_empty();
    if options.guard {
        let reached = Results::load_from(&guard::path())?;
        let (mut names, mut lines) = guard::lost(&reached, &results);
        for _ in 0..2 {
            if !names.is_empty() {
                results.replace(measure_all(&|workload| names.contains(workload.name))?);
                (names, lines) = guard::lost(&reached, &results);
            }
        }
        lines.iter().for_each(|line| println!("lost: {line}"));
        failed |= !lines.is_empty();
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn progress(workload: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        // A progress line that cannot be written is no reason to stop.
        let _ = write!(out, "\r{workload:<12}\r").and_then(|()| out.flush());
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("compare: {message}");
            ExitCode::from(2)
        }
    }
}
