#!/usr/bin/env bash
# The main job on this machine: a SQLite index becomes a file-based catalog, the catalog an image, the image a server; and
# a bundle becomes an image and a blob of a catalog.
# It needs the program that "make build" makes, and Go for the small client that asks the server at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
bindery=$(realpath "${1:-dist/bindery}")
go=$(command -v "${GO:-go}")
work=$(mktemp -d)
db=small.db
cp testdata/db/$db "$work"
cp -r testdata/bundles/etcd/0.9.4 "$work/bundle"
"$go" build -o "$work/rpc" ./hack/rpc
cd "$work"
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
timed "$bindery" migrate "$db" catalog -o yaml --report report.json --verify -q
echo "  catalog: $(find catalog -type f | wc -l) files, $(size catalog); report: $(size report.json)"

step "3. Validate it"
timed "$bindery" validate catalog

step "4. Assemble the catalog image, twice: the digest is the same"
timed "$bindery" build catalog catalog -t demo/catalog:v1 --compression zstd \
    --to oci:image --digest-file digest -q
timed "$bindery" build catalog catalog -t demo/catalog:v1 --compression zstd \
    --to oci:again --digest-file digest2 -q
cmp digest digest2
echo "  image: $(size image) with the server in it"

step "5. Serve straight from the image"
port=$((20000 + RANDOM % 20000))
echo "\$ bindery serve oci:image:v1 -p $port &"
start=$(now)
"$bindery" serve "oci:image:v1" -p "$port" --pprof-addr "" -q >log 2>&1 &
server=$!
until "$bindery" probe -connect-timeout 50ms -addr "127.0.0.1:$port" >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || { cat log; exit 1; }
    sleep 0.02
done
printf '  [healthy after %d ms]\n' $((($(now) - start) / 1000000))

step "6. Probe it and ask it over gRPC"
timed "$bindery" probe -addr "127.0.0.1:$port"
timed ./rpc "127.0.0.1:$port" packages
echo "  $(./rpc "127.0.0.1:$port" bundles | wc -l) channel entries served"

step "7. Stop it"
kill "$server"
wait "$server" && status=0 || status=$?
server=
echo "  the server ended with status $status"

step "8. The other half of the way: a bundle, checked, as an image without a builder, rendered, drawn with the catalog's others"
timed "$bindery" bundle validate bundle
timed "$bindery" build bundle bundle -t demo/etcd:v0.9.4 -q
echo "\$ bindery render oci:etcd.oci:v0.9.4 --migrate -o yaml --image-ref-template 'registry.example.com/{{.Package}}:v{{.Version}}'"
"$bindery" render oci:etcd.oci:v0.9.4 --migrate -o yaml -q \
    --image-ref-template 'registry.example.com/{{.Package}}:v{{.Version}}' >bundle.yaml
grep -E '^(image|name|package|schema):' bundle.yaml
echo "  an olm.bundle blob of $(size bundle.yaml), its metadata in place of the manifests"
timed "$bindery" graph catalog etcd --to etcd.svg -q
echo "  etcd.svg: $(size etcd.svg)"
timed "$bindery" diff "$db" catalog
echo "  the database and its catalog hold the same"
echo
echo "done: $db -> catalog -> $(cat digest) -> gRPC"
