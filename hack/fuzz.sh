#!/usr/bin/env bash
# Runs every fuzz target of the project for FUZZTIME (default 30s), one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${FUZZTIME:=30s}" "${GO:=go}"
failed=0
while read -r file; do
    dir=./$(dirname "$file")
    while read -r target; do
        echo "== $dir $target"
        "$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -parallel 2 "$dir" || failed=1
    done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file")
done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | sort)
exit "$failed"
