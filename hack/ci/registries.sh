#!/usr/bin/env bash
# Runs the suite of places of images, and the program, against registries that others have written; see hack/registries.
# The registry of distribution 3 is built from its module, which takes a minute the first time.
#   hack/ci/registries.sh [PROGRAM] [FLAGS OF go test...]
set -euo pipefail
BINDERY=$(realpath "${1:-dist/bindery}")
shift || true
cd "$(dirname "$0")/../registries"
if ! command -v docker-registry >/dev/null; then
    echo "there is no docker-registry (Debian: docker-registry): NOT CHECKED"
    exit 77
fi
export BINDERY
. ../flags.sh
go=${GO:-go}
REGISTRY3=$("$go" tool -n registry)
export REGISTRY3
docker-registry --version
"$REGISTRY3" --version
"$go" vet .
"$go" test -count=1 -timeout 5m "$@" .
