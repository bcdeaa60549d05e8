#!/usr/bin/env bash
# Generates include/lanekeeper.h and ffi/symbols.txt from the sources in ffi/src.
#   ffi/header.sh            writes both
#   ffi/header.sh --verify   fails if either is not what would be written
# Needs: cargo install --locked cbindgen --version 0.29.4
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=0.29.4
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
found=$(cbindgen --version 2>/dev/null | awk '{print $2}') || true
if [ "${found:-none}" != "$wanted" ]; then
    echo "cbindgen $wanted is needed, found: ${found:-none}" >&2
    echo "  cargo install --locked cbindgen --version $wanted" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\([^"]*\)"/\1/p' Cargo.toml)
IFS=. read -r major minor patch <<<"$version"
sed -e "s/@MAJOR@/$major/g" -e "s/@MINOR@/$minor/g" -e "s/@PATCH@/${patch%%[-+]*}/g" \
    ffi/cbindgen.toml >"$work/cbindgen.toml"

cbindgen --quiet --config "$work/cbindgen.toml" --output "$work/lanekeeper.h" \
    --symfile "$work/symfile" ffi
tr -d '{}; \t' <"$work/symfile" | grep -v '^$' | LC_ALL=C sort >"$work/symbols.txt"

if [ "${1:-}" = --verify ]; then
    diff -u include/lanekeeper.h "$work/lanekeeper.h"
    diff -u ffi/symbols.txt "$work/symbols.txt"
    echo "include/lanekeeper.h and ffi/symbols.txt are current"
else
    mkdir -p include
    cp "$work/lanekeeper.h" include/lanekeeper.h
    cp "$work/symbols.txt" ffi/symbols.txt
fi
