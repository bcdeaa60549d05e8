#!/usr/bin/env bash
# Builds the orders example in C against liblanekeeper as it ships, and runs it:
#   ffi/run-demo.sh [ARGUMENTS]           see ffi/run-demo.sh --help
# A file among the arguments is seen from the current directory. Needs cc and zlib.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
root=$PWD

target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
CARGO_TARGET_DIR=$target ffi/build.sh "$target/stage" >"$target/demo-c.log" 2>&1 || {
    cat "$target/demo-c.log" >&2
    exit 1
}
# The linker flags of a static library, as pkg-config would tell them.
private=$(sed -n 's/^Libs.private: *//p' "$target/stage/lib/pkgconfig/lanekeeper.pc")
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion ${CFLAGS:-} \
    -DORDERS_SAMPLE="\"$root/tests/data/orders.csv.gz\"" -I"$target/stage/include" \
    ffi/c/orders.c ffi/c/orders_input.c ffi/c/orders_ledger.c ffi/c/orders_client.c \
    ffi/c/orders_pull.c ffi/c/orders_worker.c \
    -o "$target/orders-c" "$target/stage/lib/liblanekeeper.a" -lz $private
cd "$here"
exec "$target/orders-c" "$@"
