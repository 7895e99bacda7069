#!/usr/bin/env bash
# Runs every fuzz target for CI_FUZZTIME, from the seeds of the repository and not from what earlier runs on the machine found.
set -euo pipefail
"${GO:-go}" clean -fuzzcache
make fuzz FUZZTIME="${CI_FUZZTIME:-2s}"
