#!/usr/bin/env bash
# Signs and verifies by identity with Fulcio, a Rekor log and a timestamp authority on this machine, and with cosign; see
# hack/sigstore. All of them are built from their modules, which takes minutes the first time.
#   hack/ci/sigstore.sh [PROGRAM] [FLAGS OF go test...]
set -euo pipefail
BINDERY=$(realpath "${1:-dist/bindery}")
shift || true
cd "$(dirname "$0")/../sigstore"
if (exec 3<>/dev/tcp/127.0.0.1/2112) 2>/dev/null; then
    echo "port 2112 is taken, and the timestamp authority has its figures on no other: NOT CHECKED"
    exit 77
fi
export BINDERY
. ../flags.sh
go=${GO:-go}
start=$SECONDS
FULCIO=$("$go" tool -n fulcio)
REKOR=$("$go" tool -n posix)
TIMESTAMP_SERVER=$("$go" tool -n timestamp-server)
COSIGN=$("$go" tool -n cosign)
export FULCIO REKOR TIMESTAMP_SERVER COSIGN
"$go" list -m github.com/sigstore/{fulcio,rekor-tiles/v2,timestamp-authority/v2,cosign/v3}
echo "they were built in $((SECONDS - start)) s"
unshare -rm true || echo "there are no namespaces of mounts: the projected token of a pod is NOT CHECKED"
"$go" vet .
"$go" test -count=1 -timeout 10m "$@" .
