#!/usr/bin/env bash
# Takes the pictures of the page of "kubectl octavia ui" for the docs, from internal/inspect/testdata/picture.json. Needs Chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v chromium >/dev/null || { echo "chromium is not on PATH (Debian: apt-get install chromium)" >&2; exit 1; }
mkdir -p docs/images
GATEWAY_API_OPENSTACK_SCREENSHOTS=$PWD/docs/images go test -count=1 -run 'TestPage_inChromium' ./internal/inspect
ls -l docs/images
