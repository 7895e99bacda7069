#!/usr/bin/env bash
# Checks the recipes for CI systems with the rules of these systems: Tekton's types, actionlint, the schemas of GitHub and GitLab.
set -euo pipefail
cd "$(dirname "$0")/../recipes"
for program in git node npm; do
    if ! command -v "$program" >/dev/null; then
        echo "there is no $program"
        exit 77
    fi
done
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
. ../flags.sh
"${GO:-go}" vet .
"${GO:-go}" test -count=1 -timeout 5m .
