#!/usr/bin/env bash
# Builds the runtime with AddressSanitizer and UndefinedBehaviorSanitizer and runs its unit tests: what runs in every rank
# is C++ on raw memory, shared between processes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ nd_configure asan && ninja -C build/asan --quiet NDRuntimeTests; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
build/asan/bin/NDRuntimeTests >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
