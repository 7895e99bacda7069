#!/usr/bin/env bash
# Runs every fuzz target of the project for FUZZTIME (default 30s), one after the other. The tests of a package are
# compiled once for all its targets.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
: "${FUZZTIME:=30s}" "${GO:=go}"
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$("$GO" env GOCACHE)/fuzz
module=$("$GO" list -m)
targets() { sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$1"/*_test.go; }
while read -r dir; do
    # What guides the fuzzer is put into the packages of the project, and with FUZZ_DEEP=yes into all that they use as well: these
    # are then compiled once more, for minutes.
    guided=(-gcflags="$module/...=-d=libfuzzer")
    [ "${FUZZ_DEEP:-}" != yes ] || guided=(-fuzz "^$(targets "$dir" | head -n 1)\$")
    "$GO" test -c -ldflags=-s "${guided[@]}" -o "$work/tests" "./$dir" || { failed=1; continue; }
    while read -r target; do
        echo "== ./$dir $target"
        # Interesting inputs are not minimised: with documents of many kilobytes that would be all the time there is.
        (cd "$dir" && "$work/tests" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZTIME" -test.fuzzminimizetime 1x -test.parallel 2 \
            -test.fuzzcachedir "$cache/$module/$dir") </dev/null >"$work/log" 2>&1
        status=$?
        # A fuzzer sometimes misses its own deadline when the time is over; that finds nothing.
        if [ $status -ne 0 ] && grep -q 'context deadline exceeded' "$work/log" && ! grep -qE 'Failing input|panic' "$work/log"; then
            grep '^fuzz:' "$work/log" | tail -n 1
            echo "   (ended by its deadline, nothing was found)"
            continue
        fi
        cat "$work/log"
        [ $status -eq 0 ] || failed=1
    done < <(targets "$dir")
done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | xargs -n 1 dirname | sort -u)
exit "$failed"
