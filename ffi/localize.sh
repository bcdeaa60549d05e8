#!/usr/bin/env bash
# Makes a static library whose only global symbols are ours:
#   ffi/localize.sh IN.a OUT.a
# A Rust archive brings the standard library along. Two of them in one program would define
# `rust_eh_personality` and more twice; with everything else local they get along.
set -euo pipefail
cd "$(dirname "$0")/.."
in=$(realpath "$1")
out=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What the functions need of the archive becomes one object. Groups are resolved now: later on
# another archive's group of the same name would replace ours, and our reference be left over.
undefined=()
while read -r symbol; do undefined+=(-u "$symbol"); done <ffi/symbols.txt
[ -z "${EXTRA_SYMBOL:-}" ] || undefined+=(-u "$EXTRA_SYMBOL")
ld -r --force-group-allocation --gc-sections "${undefined[@]}" -o "$work/all.o" "$in"
# Bitcode that lies along is of no use to a C linker, and its plugins may not know it.
objcopy --wildcard --keep-global-symbol='lk_*' --remove-section=.llvmbc \
    --remove-section=.llvmcmd "$work/all.o" "$work/lanekeeper.o"
rm -f "$out"
ar rcsD "$out" "$work/lanekeeper.o"
