#!/usr/bin/env bash
# Fails if a server program is larger than its budget: that of the largest platform, s390x, and some two per cent.
set -euo pipefail
# 0.8 MB of it read the Markdown of descriptions and make the pages.
budget=${SERVER_BUDGET_MB:-24.1}
over=0
for arch in amd64 arm64 ppc64le s390x; do
    bytes=$(stat -c %s "dist/opm-server-linux-$arch")
    awk -v arch="$arch" -v bytes="$bytes" -v budget="$budget" 'BEGIN {
        printf "opm-server linux/%-8s %5.1f MB\n", arch, bytes / 1e6
        if (bytes > budget * 1e6) { printf "  more than %s MB\n", budget; exit 1 }
    }' || over=1
done
exit $over
