#!/bin/sh
# Measures speed, memory and bytes written of dist/bindery beside reference programs. Flags go to hack/bench
# (hack/bench.sh -help lists them); docs/explain/performance.md tells what the figures mean.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$root/dist"
. "$root/hack/flags.sh"
(cd "$root/hack/bench" && go build -o "$root/dist/bench" .)
exec "$root/dist/bench" -project "$root" -bindery "$root/dist/bindery" -real "$root/testdata/real" "$@"
