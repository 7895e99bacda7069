# shellcheck shell=bash
# The one set of flags for all that is built and tested, here and in the modules below hack: a package is compiled once, in every
# clone. "." it; the Makefile reads it too.
TAGS=containers_image_openpgp,exclude_graphdriver_btrfs
# go.work serves builds without tags; those with them need none of its replacements.
export CGO_ENABLED=0 GOWORK=off GOFLAGS="-buildvcs=false -trimpath -tags=$TAGS"
