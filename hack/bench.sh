#!/bin/sh
# Measures speed, memory and bytes written of dist/bindery beside reference programs. Flags go to hack/bench
# (hack/bench.sh -help lists them); docs/explain/performance.md tells what the figures mean.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$root/dist"
(cd "$root/hack/bench" && GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0 go build -o "$root/dist/bench" .)
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--buildvcs=false -tags=containers_image_openpgp,exclude_graphdriver_btrfs}"
exec "$root/dist/bench" -project "$root" -bindery "$root/dist/bindery" -real "$root/testdata/real" "$@"
