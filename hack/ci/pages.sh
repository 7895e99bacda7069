#!/usr/bin/env bash
# Looks at the pages of a served catalog in Chromium: rules of axe-core, keyboard, telephone, script, requests, sizes.
# "hack/ci/pages.sh -update" writes the screenshots of the documentation too.
set -euo pipefail
cd "$(dirname "$0")/../pages"
for program in chromium npm tar zstd; do
    if ! command -v "$program" >/dev/null; then
        echo "there is no $program"
        exit 77
    fi
done
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
. ../flags.sh
"${GO:-go}" vet .
"${GO:-go}" test -count=1 -timeout 5m . "$@"
