#!/usr/bin/env bash
# Builds the runtime with AddressSanitizer and UndefinedBehaviorSanitizer and runs its unit tests: what runs in every rank
# is C++ on raw memory, shared between processes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=$ND_ROOT
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ cmake --preset asan -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER="$ND_ROOT/scripts/ccache-pch.sh" \
    -DND_PYTHON="$ND_VENV/bin/python" && ninja -C build/asan --quiet NDRuntimeTests; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
build/asan/bin/NDRuntimeTests >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
