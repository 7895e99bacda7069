#!/usr/bin/env bash
# Builds bindery-full, and runs commands of Containerfiles with it.
set -euo pipefail
. hack/ci/linked.sh
if [ "$("${GO:-go}" env GOOS)" != linux ] || [ "$(id -u)" != 0 ] || ! command -v "$("${GO:-go}" env CC)" >/dev/null; then
    echo "it needs Linux, root and a C compiler: NOT CHECKED"
    exit 77
fi
make build-full SERVER_ARCHES="$("${GO:-go}" env GOARCH)"
hack/ci/size.sh build-full
is_in "$(CGO_ENABLED=1 linked bindery netgo,osusergo,buildah,embedserver)" go.podman.io/buildah bindery-full
status=0
ACCEPTANCE_FULL=short hack/acceptance_full.sh dist/bindery-full dist/bindery || status=$?
[ $status != 77 ] || echo "built, but no static busybox is installed (Debian: busybox-static): RUN is NOT CHECKED"
exit $status
