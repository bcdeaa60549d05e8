//! Model checking of the real core with loom: every interleaving, and every value that the memory
//! model lets a load answer, within the bound of each model. Only the offset index is a model here.
//!
//! ```text
//! RUSTFLAGS="--cfg lk_loom" CARGO_TARGET_DIR=target/loom cargo test --test loom
//!     -- --table                            the table of src/docs/proofs.md
//!     -- --model put_take                   one model, in this process, with the panic to read
//!     -- --model put_take --mutation NAME   the same with one bug planted: it must fail
//!     -- put_                               the models whose name contains this
//! ```
//!
//! The runner gives each model, and each model with a bug planted, a process of its own: loom may
//! abort when a model fails. `LOOM_LOG=trace LOOM_LOCATION=1` with `--model` tell what happened.

#[cfg(lk_loom)]
#[path = "../lin/kit/mod.rs"]
mod kit;
#[cfg(lk_loom)]
mod models_allocate;
#[cfg(lk_loom)]
mod models_concurrent;
#[cfg(lk_loom)]
mod models_lease;
#[cfg(lk_loom)]
mod models_orderly;
#[cfg(lk_loom)]
mod models_turns;
#[cfg(lk_loom)]
mod runner;
#[cfg(lk_loom)]
mod scene;
#[cfg(lk_loom)]
mod table;

#[cfg(lk_loom)]
fn main() -> std::process::ExitCode {
    runner::main()
}

#[cfg(not(lk_loom))]
fn main() {
    if !std::env::args().any(|argument| argument == "--list") {
        println!("the models need RUSTFLAGS=\"--cfg lk_loom\": see `make loom`");
    }
}
