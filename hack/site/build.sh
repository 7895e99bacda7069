#!/usr/bin/env bash
# Builds the documentation site in dist/site from docs and from the help of the program. hugo is a tool of the module in
# this directory, so that the program's own dependencies stay as they are.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
. hack/flags.sh
rm -rf dist/site dist/site-commands
"$go" run ./cmd/bindery man --markdown --to dist/site-commands
cd hack/site
export HUGO_CACHEDIR=$PWD/../../dist/site-cache
"$go" tool hugo --quiet --destination ../../dist/site --cleanDestinationDir --noBuildLock
"$go" test -count=1 .
rm -rf ../../dist/site-commands ../../dist/site-cache
printf 'dist/site: %s pages, %s\n' "$(find ../../dist/site -name '*.html' | wc -l)" "$(du -sh ../../dist/site | cut -f1)"
