#!/usr/bin/env bash
# Hands archives and workspaces to oc-mirror v2, and takes them from it. OC_MIRROR names the program, or it is the oc-mirror in
# PATH that is not this one: no module proxy is sure to have its source.
set -uo pipefail
cd "$(dirname "$0")/../.."
: "${OC_MIRROR:=$(command -v oc-mirror)}"
if [ -z "$OC_MIRROR" ]; then
    echo "there is no oc-mirror, and OC_MIRROR names none: what the two programs hand each other is NOT CHECKED with it"
    exit 77
fi
OC_MIRROR=$(realpath "$OC_MIRROR")
case $("$OC_MIRROR" version 2>/dev/null) in
*bindery*)
    echo "$OC_MIRROR is this program: what the two programs hand each other is NOT CHECKED with oc-mirror"
    exit 77
    ;;
esac
export OC_MIRROR
. hack/flags.sh
exec "${GO:-go}" test -count=1 -timeout 20m ./cmd/internal/ocmirror -run 'BetweenThePrograms'
