#!/usr/bin/env bash
# "go build" that says how far it is: the number of compiled packages, every hundred of them.
set -euo pipefail
"${GO:-go}" build -v "$@" 2>&1 | awk '/ / {print; next} ++n % 100 == 0 {print "  " n " packages compiled"; fflush()}' >&2
