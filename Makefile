# The documented commands. `make` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(PATH):$(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin

target := $(or $(CARGO_TARGET_DIR),target)
host := x86_64-unknown-linux-gnu
# Sanitizers are unstable options; this lets the stable compiler take them.
unstable := RUSTC_BOOTSTRAP=1
tsan_flags := -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg lk_tsan
asan_flags := -Zsanitizer=address
fuzz_seconds := 30

.PHONY: help
help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: demo demo-c
demo: ## consumes about 20,000 events of 2,000 orders in order, with failures and reassignments
	@.ci/setup build
	cargo run --quiet --release --example orders

demo-c: ## the same program in C, on the same events
	@.ci/setup c
	ffi/run-demo.sh

.PHONY: test test-quick test-release setup
test: setup ## everything that can be tested on one machine; installs what is missing
	@.ci/test

setup: ## installs the tools that the tests need
	@.ci/setup

test-quick: ## unit, rule, property, golden and documentation tests, with debug assertions
	cargo test --no-fail-fast

test-release: ## the same as they ship
	cargo test --release --no-fail-fast --lib --tests

.PHONY: fmt lint tidy doc
fmt: ## checks the formatting
	cargo fmt --all --check

lint: ## clippy, warnings are errors, also of the model builds
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTFLAGS="--cfg lk_loom" CARGO_TARGET_DIR=$(target)/loom \
	    cargo clippy --test litmus --test loom -- -D warnings
	RUSTFLAGS="--cfg lk_shuttle" CARGO_TARGET_DIR=$(target)/shuttle \
	    cargo clippy --test litmus --test shuttle -- -D warnings

tidy: ## house rules
	cargo test --test tidy

doc: ## builds the documentation, warnings are errors, also of what is private
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

.PHONY: litmus loom shuttle tsan asan fuzz-smoke
litmus: ## what the model checkers see
	RUSTFLAGS="--cfg lk_loom" CARGO_TARGET_DIR=$(target)/loom \
	    cargo test --test litmus
	RUSTFLAGS="--cfg lk_shuttle" CARGO_TARGET_DIR=$(target)/shuttle \
	    cargo test --test litmus

loom: ## models of the algorithm, each also with planted bugs
	RUSTFLAGS="--cfg lk_loom" CARGO_TARGET_DIR=$(target)/loom \
	    cargo test --test loom

shuttle: ## larger mixes under random and PCT schedules
	RUSTFLAGS="--cfg lk_shuttle" CARGO_TARGET_DIR=$(target)/shuttle \
	    cargo test --test shuttle

tsan: ## real threads under ThreadSanitizer
	$(unstable) RUSTFLAGS="$(tsan_flags)" CARGO_TARGET_DIR=$(target)/tsan \
	    TSAN_OPTIONS="suppressions=$(CURDIR)/.ci/tsan.suppressions" \
	    cargo test --target $(host) --test stress

asan: ## real threads under AddressSanitizer and LeakSanitizer
	$(unstable) RUSTFLAGS="$(asan_flags)" CARGO_TARGET_DIR=$(target)/asan \
	    cargo test --target $(host) --test stress

fuzz-smoke: ## random operations against the twin, for a short time
	for name in $$(cargo fuzz list --fuzz-dir tests/fuzz); do \
	    $(unstable) cargo fuzz run --fuzz-dir tests/fuzz --target-dir $(target)/fuzz $$name -- \
	        -max_total_time=$(fuzz_seconds) -timeout=20 -print_final_stats=1; \
	done

.PHONY: ffi-test demo-test header header-check
ffi-test: ## the C surface: every language mode, sanitizers, Valgrind, linking
	ffi/run-tests.sh

header: ## generates include/lanekeeper.h and ffi/symbols.txt
	ffi/header.sh

header-check: ## fails if they are not what the sources give
	ffi/header.sh --verify

demo-test: ## the demonstration in Rust and C: same totals, planted faults, bad input
	cargo run --quiet --release --example orders -- --json | tail -n 1
	ffi/test-demo.sh

.PHONY: bench-compare bench-chart bench-guard bench-allocate bench-turns
bench-compare: ## measures against the rivals, writes target/compare.json
	cargo bench --bench compare

bench-turns: ## measures turns and leases of many queues against maps of mutexes
	cargo bench --bench turns

bench-chart: ## draws src/docs/compare.svg from the last measurement
	cargo bench --bench compare -- --chart

bench-allocate: ## measures the strategies, adds rows to target/compare.json
	cargo bench --bench allocate

bench-guard: ## a quick measurement; fails if a ratio that was reached is lost
	cargo bench --bench compare -- --quick --guard \
	    --impl lanekeeper,lanekeeper-c,mutex-btreemap,mutex-vecdeque,spsc-ring
	cargo bench --bench allocate -- --check
