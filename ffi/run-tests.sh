#!/usr/bin/env bash
# Tests of the C surface: the header and the libraries as they ship, C programs compiled by gcc and
# clang in every language mode, sanitizers, Valgrind. Ends with `N passed, N failed`.
#   ffi/run-tests.sh             everything
#   ffi/run-tests.sh GROUP...    some of: rust header library matrix sanitize valgrind tsan link
# Needs gcc, g++, clang, valgrind, pkg-config, python3, readelf, cbindgen (see header.sh).
set -uo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
out=$CARGO_TARGET_DIR/ffi-tests
stage=$out/stage
lib=$stage/lib
tests=ffi/c/tests
programs="orderly concurrent tokens release config fork allocate leases matrix"
includes="-I$stage/include -I$tests"
strict="-D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wconversion -Werror"
private=""
passed=0
failed=0
mkdir -p "$out/bin"

# check NAME COMMAND...: one test; the log of a failed one is shown.
check() {
    local name=$1
    shift
    if "$@" >"$out/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        echo "  $*"
        tail -n 30 "$out/log" | sed 's/^/  | /'
    fi
}

group() { printf '%-9s %s\n' "$1" "$2"; }

# The source of a program: the matrix is generated.
source_of() { if [ "$1" = matrix ]; then echo "$out/matrix.c"; else echo "$tests/$1.c"; fi; }

# A shared library exports what symbols.txt lists, and nothing else.
exports() {
    nm -D --defined-only "$1" | awk '{print $3}' | LC_ALL=C sort | diff -u ffi/symbols.txt -
}

soname_is_the_linked_file() {
    local soname
    soname=$(readelf -d "$lib/liblanekeeper.so" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
    [ "$soname" = liblanekeeper.so.0.1 ] && [ -L "$lib/$soname" ] &&
        [ "$(readlink -f "$lib/$soname")" = "$(readlink -f "$lib/liblanekeeper.so")" ]
}

static_exports() {
    nm -g --defined-only "$1" | awk 'NF == 3 {print $3}' | LC_ALL=C sort | diff -u ffi/symbols.txt -
}

# LTO leaves little of Rust's in the libraries.
is_smaller_than() { [ "$(stat -L -c %s "$1")" -lt "$2" ]; }

# Runs a program with the shared library, and not for ever.
run() { LD_LIBRARY_PATH=$lib timeout -s ABRT 300 "$@"; }

run_rust() {
    group rust "unit tests of the surface"
    check "cargo test -p lanekeeper-ffi" cargo test -q -p lanekeeper-ffi
    local clippy="cargo clippy -q --no-deps -p lanekeeper-ffi"
    check "clippy" $clippy -- -D warnings
    check "clippy with faults" $clippy --features fault-injection -- -D warnings
}

run_header() {
    group header "generated, current, clean alone in every language mode"
    check "header.sh --verify" ffi/header.sh --verify
    printf '#include "lanekeeper.h"\nextern int nothing;\n' >"$out/alone.c"
    local standard compiler
    for standard in c99 c11 c17 c2x; do
        for compiler in gcc clang; do
            check "header alone: $compiler $standard" \
                $compiler -std=$standard $strict $includes -fsyntax-only "$out/alone.c"
        done
    done
    for standard in c++11 c++14 c++17 c++20; do
        for compiler in g++ clang++; do
            check "header alone: $compiler $standard" \
                $compiler -x c++ -std=$standard $strict $includes -fsyntax-only "$out/alone.c"
        done
    done
}

run_library() {
    group library "exports, soname, nodelete, size"
    check "exports" exports "$lib/liblanekeeper.so"
    check "exports of the static library" static_exports "$lib/liblanekeeper.a"
    check "only lk_ is exported" test -z "$(grep -v '^lk_' ffi/symbols.txt)"
    check "soname" soname_is_the_linked_file
    check "nodelete" eval "readelf -d '$lib/liblanekeeper.so' | grep -q NODELETE"
    check "shared library is small" is_smaller_than "$lib/liblanekeeper.so" 2000000
    check "static library is small" is_smaller_than "$lib/liblanekeeper.a" 12000000
    check "native libraries" eval "grep -q '^Libs.private: -l' '$lib/pkgconfig/lanekeeper.pc'"
}

# compile_and_run COMPILER STANDARD so|a
compile_and_run() {
    local compiler=$1 standard=$2 kind=$3 language="" libs program bin
    case $standard in c++*) language="-x c++" ;; esac
    libs="$lib/liblanekeeper.a $private"
    if [ "$kind" = so ]; then libs="-L$lib -llanekeeper -lpthread"; fi
    for program in $programs two_units; do
        bin=$out/bin/$program-$compiler-$standard-$kind
        if [ "$program" = two_units ]; then
            check "compile two_units: $compiler $standard $kind" $compiler -std=$standard \
                $strict $includes $language $tests/two_units_a.c $tests/two_units_b.c -x none \
                -o "$bin" $libs
        else
            check "compile $program: $compiler $standard $kind" $compiler -std=$standard $strict \
                $includes $language "$(source_of $program)" -x none -o "$bin" $libs
        fi
        check "run $program: $compiler $standard $kind" run "$bin"
        rm -f "$bin"
    done
}

run_matrix() {
    group matrix "every program in every language mode, with the shared and the static library"
    local standard
    for standard in c99 c11 c17; do
        compile_and_run gcc $standard so
        compile_and_run clang $standard a
    done
    for standard in c++11 c++17; do
        compile_and_run g++ $standard a
        compile_and_run clang++ $standard so
    done
}

# A static library of another build, for the tests only: build_for NAME FEATURES RUSTFLAGS
build_for() {
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$3" CARGO_TARGET_DIR="$CARGO_TARGET_DIR/ffi-$1" \
        cargo rustc -q --release -p lanekeeper-ffi --features "$2" --crate-type staticlib \
        --target x86_64-unknown-linux-gnu
}
built() { echo "$CARGO_TARGET_DIR/ffi-$1/x86_64-unknown-linux-gnu/release/liblanekeeper.a"; }

run_sanitize() {
    group sanitize "ASan and UBSan (gcc), panics injected; ASan inside the library (clang)"
    local flags="-std=c99 -g -O1 $strict $includes"
    local ubsan="-fsanitize=address,undefined -fno-sanitize-recover=all"
    local program bin
    check "build with faults" build_for faults fault-injection ""
    check "build with asan" build_for asan "" "-Zsanitizer=address"
    for program in $programs stress; do
        bin=$out/bin/$program-asan
        check "compile $program: gcc asan ubsan" gcc $flags $ubsan "$(source_of $program)" \
            -o "$bin" "$lib/liblanekeeper.a" $private
        check "run $program: gcc asan ubsan" run "$bin"
        check "compile $program: clang asan" clang $flags -fsanitize=address \
            "$(source_of $program)" -o "$bin" "$(built asan)" $private
        check "run $program: clang asan, library too" run "$bin"
        rm -f "$bin"
    done
    check "localize" env EXTRA_SYMBOL=lk_test_panic_next \
        ffi/localize.sh "$(built faults)" "$out/faults.a"
    # A poisoned queue leaks what it held, on purpose.
    check "compile matrix with panics" gcc $flags $ubsan -DLK_FAULTS "$out/matrix.c" \
        -o "$out/bin/matrix-panics" "$out/faults.a" $private
    check "run matrix with panics" run env ASAN_OPTIONS=detect_leaks=0 "$out/bin/matrix-panics"
}

run_valgrind() {
    group valgrind "memcheck"
    local program bin
    for program in $programs; do
        bin=$out/bin/$program-valgrind
        check "compile $program for valgrind" gcc -std=c99 -g -O1 $strict $includes \
            "$(source_of $program)" -o "$bin" -L"$lib" -llanekeeper -lpthread
        check "valgrind $program" run valgrind -q --error-exitcode=9 --leak-check=full \
            --errors-for-leak-kinds=definite --show-leak-kinds=definite --fair-sched=yes "$bin"
    done
}

run_tsan() {
    group tsan "puller, consumer and observer threads, library instrumented"
    check "build with tsan" build_for tsan "" \
        "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg lk_tsan"
    local program
    for program in stress tokens; do
        check "compile $program: clang tsan" clang -std=c11 -g -O1 $strict $includes \
            -fsanitize=thread $tests/$program.c $tests/tsan_names.c -o "$out/bin/$program-tsan" \
            "$(built tsan)" $private
        # This ThreadSanitizer does not know address layouts with as much randomness as today's.
        check "run $program: clang tsan" run env TSAN_OPTIONS=halt_on_error=1 \
            setarch -R "$out/bin/$program-tsan"
    done
}

# A moved prefix still works through pkg-config; the example prints what it should.
from_prefix() {
    local prefix=$out/moved flags compile="gcc -std=c99 $strict ffi/c/examples/first.c"
    rm -rf "$prefix" && cp -a "$stage" "$prefix" || return 1
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    flags=$(pkg-config --cflags --libs lanekeeper) || return 1
    $compile $flags -o "$out/bin/first" &&
        LD_LIBRARY_PATH=$prefix/lib "$out/bin/first" >"$out/first.txt" || return 1
    flags=$(pkg-config --cflags --libs --static lanekeeper) || return 1
    $compile ${flags//-llanekeeper/-l:liblanekeeper.a} -o "$out/bin/first-static" &&
        "$out/bin/first-static" >"$out/first-static.txt" || return 1
    ! ldd "$out/bin/first-static" | grep -q lanekeeper || return 1
    diff -u ffi/c/examples/first.expected "$out/first.txt" &&
        diff -u ffi/c/examples/first.expected "$out/first-static.txt"
}

two_archives() {
    rustc -C opt-level=2 --edition 2024 --crate-type staticlib $tests/other.rs \
        -o "$out/libother.a" &&
        gcc -std=c99 $strict $includes $tests/two_archives.c -o "$out/bin/two_archives" \
            "$lib/liblanekeeper.a" "$out/libother.a" $private && "$out/bin/two_archives"
}

survives_dlclose() {
    gcc -std=c99 $strict $includes $tests/dlclose.c -o "$out/bin/dlclose" -ldl -lpthread &&
        "$out/bin/dlclose" "$lib/liblanekeeper.so"
}

no_memory() {
    gcc -std=c99 $strict $includes $tests/memory.c -o "$out/bin/memory" -L"$lib" -llanekeeper &&
        run "$out/bin/memory"
}

exception_aborts() {
    g++ -std=c++17 $strict $includes $tests/throw.cpp -o "$out/bin/throw" -L"$lib" \
        -llanekeeper || return 1
    run "$out/bin/throw"
    [ $? -eq 134 ]
}

run_link() {
    group link "C++ wrapper, pkg-config, two Rust archives, dlclose, no memory, exceptions"
    local compiler
    for compiler in g++ clang++; do
        check "C++ wrapper: compile, $compiler" $compiler -std=c++17 -fno-exceptions -fno-rtti \
            $strict $includes $tests/raii.cpp -o "$out/bin/raii" -L"$lib" -llanekeeper
        check "C++ wrapper: run, $compiler" run "$out/bin/raii"
    done
    check "pkg-config" from_prefix
    check "two Rust archives in one program" two_archives
    check "dlclose with live threads" survives_dlclose
    check "no memory" no_memory
    check "an exception out of a callback ends the process" exception_aborts
}

check "build and stage the libraries" ffi/build.sh "$stage"
private=$(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/lanekeeper.pc")
python3 $tests/matrix.py "$stage/include/lanekeeper.h" ffi/symbols.txt >"$out/matrix.c" ||
    failed=$((failed + 1))
if [ $# -eq 0 ]; then set -- rust header library matrix sanitize valgrind tsan link; fi
for name in "$@"; do
    "run_$name"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
