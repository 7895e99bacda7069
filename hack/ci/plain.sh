#!/usr/bin/env bash
# A clone builds without tags, by go.work: without C, and with it but without the headers of btrfs. The module in the place of GPGME
# verifies signatures, and nothing that a release is made of depends on it.
set -euo pipefail
unset GOWORK
export GOFLAGS=-trimpath # as elsewhere: what is compiled already need not be again
CGO_ENABLED=0 "${GO:-go}" vet ./...
CGO_ENABLED=1 "${GO:-go}" list -deps ./... | { ! grep -x go.podman.io/storage/drivers/btrfs; }
(cd hack/gpgme && GOWORK=off CGO_ENABLED=0 "${GO:-go}" test .)
GOWORK=off "${GO:-go}" mod tidy -diff
# A program of "go install" has neither go.work nor embedded servers. A page says how large it is.
program=$(mktemp)
trap 'rm -f "$program"' EXIT
GOWORK=off CGO_ENABLED=0 "${GO:-go}" build -tags containers_image_openpgp -o "$program" ./cmd/bindery
hack/ci/size.sh installed "$program"
