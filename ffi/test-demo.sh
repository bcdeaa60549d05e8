#!/usr/bin/env bash
# Tests of the orders example in C, under AddressSanitizer and UBSan: the same totals as the one in
# Rust, planted faults found, bad input refused. Ends with `N passed, N failed`.
# Needs what ffi/run-demo.sh needs.
set -uo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# verdict NAME CONDITION...: counts one test; what the program said is shown if it failed.
verdict() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        tail -n 20 "$work/said" | sed 's/^/  | /'
    fi
}

orders() { "$CARGO_TARGET_DIR/orders-c" "$@" >"$work/said" 2>&1; }

ends_with() { local status=$1; shift; orders "$@"; [ $? -eq "$status" ]; }

# The totals that both programs must agree on, of the last line of JSON.
totals() {
    tail -n 1 "$1" | grep -oE '"(events|keys|delivered|out_of_order|lost)":[0-9]+' | sort
}

same_totals() {
    orders --json "$@" || return 1
    cargo run --quiet --release --example orders -- --json "$@" >"$work/rust" || return 1
    [ "$(totals "$work/said" | wc -l)" -eq 5 ] && diff <(totals "$work/said") <(totals "$work/rust")
}

# refused WORDS -- ARGUMENTS: exit status 2, and every word is said.
refused() {
    local words=() word
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    orders "$@"
    [ $? -eq 2 ] || return 1
    for word in "${words[@]}"; do grep -qF -- "$word" "$work/said" || return 1; done
}

# bad NAME CONTENTS WORDS...: a file that must be refused, naming it and what the words say.
bad() {
    local file=$work/$1
    printf "$2" >"$file"
    shift 2
    verdict "bad input $(basename "$file")" \
        refused "$file" "$@" -- "$file" --key k --seq n
}

CFLAGS="-g -fsanitize=address,undefined -fno-sanitize-recover=all -Werror" \
    ffi/run-demo.sh --help >"$work/said" || { cat "$work/said"; echo "0 passed, 1 failed"; exit 1; }

verdict "the sample" same_totals
verdict "another key" same_totals tests/data/orders.csv.gz --key warehouse
verdict "one of everything" same_totals --queues 1 --workers 1 --batch 1 --rebalances 3
verdict "hard weather" same_totals --queues 3 --workers 8 --batch 64 --rebalances 500 \
    --fail-rate 0.3 --suspend-ms 0 --seed 7
printf '\357\273\277k,n\r\n"a ""1"",\n",1\r\n\r\n"a ""1"",\n",2\r\n\360\237\230\200,-5' >"$work/odd"
verdict "quotes, blank lines, marks" same_totals "$work/odd" --key k --seq n
printf 'k,n\n' >"$work/header"
verdict "no events" same_totals "$work/header" --key k --seq n
printf 'k,n\na,1\na,3\na,2\n' >"$work/disorder"
verdict "disorder in the file" ends_with 1 "$work/disorder" --key k --seq n
verdict "disorder not asked about" ends_with 0 "$work/disorder" --key k
verdict "planted drop" ends_with 1 --fault drop
verdict "it is seen as lost" grep -qE '^lost +1$' "$work/said"
verdict "planted swap" ends_with 1 --fault swap
verdict "it is seen as out of order" grep -qE '^out of order +1 ' "$work/said"

bad empty '' 'line 1' 'empty'
bad no-key 'a,n\nx,1\n' 'line 1' 'column "k"' 'no such column'
bad two-keys 'k,n,k\nx,1,y\n' 'line 1' 'column "k"' 'two columns'
bad short 'k,n,z\n1,2,3\n\n4,5\n' 'line 4' 'column "z"' '2 fields' 'names 3'
bad long 'k,n\n1,2\n4,5,6\n' 'line 3' 'column "3"' '3 fields' '"6"'
bad latin 'k,n,z\n1,2,\351t\351\n' 'line 2' 'column "z"' 'UTF-8' '0xe9'
bad surrogate 'k,n\n\355\240\200,1\n' 'line 2' 'column "k"' 'UTF-8' '0xed'
bad number 'k,n\nx,1\nx,two\n' 'line 3' 'column "n"' '"two"' 'whole number'
bad number-size 'k,n\nx,9223372036854775808\n' 'line 2' 'column "n"' 'whole number'
bad open-quote 'k,n\nx,1\nx,"2\ny,3\n' 'line 3' 'column "n"' 'never closed'
head -c 100000 tests/data/orders.csv.gz >"$work/cut"
verdict "cut gzip" refused 'gzip' 'line ' -- "$work/cut" --key order_id
verdict "missing file" refused '/nowhere/x' 'cannot be read' -- /nowhere/x --key k
verdict "a directory" refused 'cannot be read' -- "$work" --key k
verdict "no key" refused '--key' -- "$work/odd"
for option in "--queues 0" "--workers 0" "--batch 1025" "--fail-rate 1.5" "--seed x" "--what 1"; do
    # shellcheck disable=SC2086
    verdict "$option" refused "${option%% *}" -- $option
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
