#!/usr/bin/env bash
# Asks a real API server whether it takes what the program writes for clusters, and says what the program predicts; see
# hack/cluster. The server is built from its module, which takes minutes the first time.
#   hack/ci/cluster.sh [PROGRAM] [FLAGS OF go test...]
set -euo pipefail
BINDERY=$(realpath "${1:-dist/bindery}")
shift || true
cd "$(dirname "$0")/../cluster"
if ! command -v etcd >/dev/null; then
    echo "there is no etcd (Debian: etcd-server): NOT CHECKED"
    exit 77
fi
export BINDERY
. ../flags.sh
go=${GO:-go}
start=$SECONDS
KUBE_APISERVER=$("$go" tool -n kube-apiserver)
export KUBE_APISERVER
"$KUBE_APISERVER" --version
echo "kube-apiserver was built in $((SECONDS - start)) s"
"$go" vet .
"$go" test -count=1 -timeout 10m "$@" .
