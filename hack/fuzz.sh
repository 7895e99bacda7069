#!/usr/bin/env bash
# Runs every fuzz target of the project for FUZZTIME (default 30s), one after the other.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
: "${FUZZTIME:=30s}" "${GO:=go}"
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while read -r file; do
    dir=./$(dirname "$file")
    while read -r target; do
        echo "== $dir $target"
        # Interesting inputs are not minimised: with documents of many kilobytes that would be all the time there is.
        "$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1x -parallel 2 "$dir" </dev/null 2>&1 | tee "$log"
        [ "${PIPESTATUS[0]}" -eq 0 ] && continue
        # go test sometimes misses its own deadline when the time is over; that finds nothing.
        if grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input|panic' "$log"; then
            echo "   (ended by its deadline, nothing was found)"
        else
            failed=1
        fi
    done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file")
done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | sort)
exit "$failed"
