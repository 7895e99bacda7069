#!/usr/bin/env bash
# Builds bindery-small, and checks what is linked into which build: no store, no Containerfiles and no engine for RUN in the
# small one and the server, no engine in the usual one.
set -euo pipefail
. hack/ci/linked.sh
make build-small SERVER_ARCHES="$("${GO:-go}" env GOARCH)"
hack/ci/size.sh build-small
store='go.podman.io/storage/(drivers|types)|github.com/openshift/imagebuilder'
engine='go.podman.io/buildah|go.podman.io/common/libnetwork'
packages=$(linked opm-server grpcnotrace)
not_in "$packages" "$store|$engine|go.podman.io/image/v5/(copy|types|transports)|html/template|text/template" opm-server
packages=$(CGO_ENABLED=0 linked bindery nobuildah,embedserver)
not_in "$packages" "$store|$engine" bindery-small
packages=$(CGO_ENABLED=0 linked bindery embedserver)
not_in "$packages" "$engine" bindery
is_in "$packages" go.podman.io/storage bindery

# It does what it is for, and refuses what it lacks.
dist/bindery-small -q build catalog testdata/fbc/mini -t localhost/acme/small:v1 --dry-run >/dev/null
if dist/bindery-small build containerfile -t localhost/acme/small:v1 --dry-run testdata/fbc/mini; then
    echo "it builds Containerfiles"
    exit 1
fi
