#!/usr/bin/env bash
# The program starts, signs, verifies, mirrors and serves with GODEBUG=fips140=only, in which Go ends a program that uses a
# cryptographic function that FIPS 140-3 does not have. So do the tests themselves.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/flags.sh
run() { GODEBUG=fips140=only "${GO:-go}" test -ldflags=-s "$@"; }
run ./images/policy ./images/signature/... ./mirror/releases/... ./mirror/imageset ./supply/...
run ./images -run 'Policy|Sign|Admission'
run ./cmd/internal/sign ./cmd/internal/app -run 'TestScripts'
run ./cmd/internal/mirror ./cmd/internal/ocmirror ./cmd/internal/read ./cmd/internal/build ./cmd/internal/serve -run 'TestScripts|TestRelease$'
