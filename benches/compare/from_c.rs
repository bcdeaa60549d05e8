//! The same workloads called from C: builds the library and `ffi/c/bench_compare.c`, and runs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::harness::{Measured, cores};

/// The C program, built.
pub struct CProgram(PathBuf);

/// What it prints.
#[derive(Deserialize)]
struct Printed {
    elapsed_ns: u64,
    units: u64,
}

/// What a static library of Rust's needs on Linux.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lgcc_s", "-lpthread", "-lm", "-ldl"];

fn done(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

impl CProgram {
    /// Builds the static library as it ships, and the program with `cc -O2`.
    pub fn build() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = root.join(target.map_or_else(|| PathBuf::from("target"), PathBuf::from));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        done(
            Command::new(cargo)
                .args(["rustc", "--profile", "dist", "-p", "lanekeeper-ffi"])
                .args(["--crate-type", "staticlib"])
                .current_dir(root),
        )?;
        let program = target.join("dist").join("bench_compare");
        done(
            Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
                .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-I"])
                .arg(root.join("include"))
                .arg(root.join("ffi/c/bench_compare.c"))
                .arg(target.join("dist/liblanekeeper.a"))
                .args(SYSTEM_LIBRARIES)
                .arg("-o")
                .arg(&program),
        )?;
        Ok(Self(program))
    }

    /// One run in a process of its own.
    pub fn run(&self, workload: &str, batches: u64) -> Result<Measured, String> {
        let (first, last) = cores().map_or((0, 0), |(first, last)| (first.id, last.id));
        let arguments = [batches.to_string(), first.to_string(), last.to_string()];
        let output = done(Command::new(&self.0).arg(workload).args(arguments))?;
        let printed: Printed = serde_json::from_slice(&output)
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let elapsed = Duration::from_nanos(printed.elapsed_ns);
        Ok(Measured { elapsed, units: printed.units, polls: 0, bytes: 0 })
    }
}
