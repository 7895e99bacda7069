#!/usr/bin/env bash
# The main job on this machine: a SQLite index becomes a file-based catalog, the catalog an image, the image a server.
# It needs the program that "make build" makes, and Go for the small client that asks the server at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
bindery=$(realpath "${1:-dist/bindery}")
db=testdata/db/small.db
work=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap cleanup EXIT

now() { date +%s%N; }
size() { du -sb "$1" | awk '{printf "%.2f MB", $1 / 1e6}'; }
step() { printf '\n== %s\n' "$*"; }
# timed COMMAND... runs it, showing it and how long it took.
timed() {
    printf '$ %s\n' "${*/#$bindery/bindery}"
    local start; start=$(now)
    "$@"
    printf '  [%d ms]\n' $((($(now) - start) / 1000000))
}

step "1. An index database ($(size $db)), as catalogs used to be"
timed "$bindery" list channels "$db" -q

step "2. Migrate it to a file-based catalog, and prove that nothing was lost"
timed "$bindery" migrate "$db" "$work/catalog" -o yaml --report "$work/report.json" --verify -q
echo "  catalog: $(find "$work/catalog" -type f | wc -l) files, $(size "$work/catalog"); report: $(size "$work/report.json")"

step "3. Validate it"
timed "$bindery" validate "$work/catalog"

step "4. Assemble the catalog image, twice: the digest is the same"
timed "$bindery" build catalog "$work/catalog" -t demo/catalog:v1 --compression zstd \
    --output "oci:$work/image" --digest-file "$work/digest" -q
timed "$bindery" build catalog "$work/catalog" -t demo/catalog:v1 --compression zstd \
    --output "oci:$work/again" --digest-file "$work/digest2" -q
cmp "$work/digest" "$work/digest2"
echo "  image: $(size "$work/image") with the server in it"

step "5. Serve straight from the image"
port=$((20000 + RANDOM % 20000))
echo "\$ bindery serve oci:$work/image:v1 -p $port &"
start=$(now)
"$bindery" serve "oci:$work/image:v1" -p "$port" --pprof-addr "" -q >"$work/log" 2>&1 &
server=$!
until "$bindery" probe -addr "127.0.0.1:$port" >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }
    sleep 0.02
done
printf '  [healthy after %d ms]\n' $((($(now) - start) / 1000000))

step "6. Probe it and ask it over gRPC"
timed "$bindery" probe -addr "127.0.0.1:$port"
${GO:-go} build -o "$work/rpc" ./hack/rpc
timed "$work/rpc" "127.0.0.1:$port" packages
echo "  $("$work/rpc" "127.0.0.1:$port" bundles | wc -l) channel entries served"

step "7. Stop it"
kill "$server"
wait "$server" && status=0 || status=$?
server=
echo "  the server ended with status $status"
echo
echo "done: $db -> catalog -> $(cat "$work/digest") -> gRPC"
