#!/usr/bin/env bash
# Configures and builds the release preset; extra arguments go to ninja. Compilations are cached by ccache.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

# The precompiled header is keyed by content, not by time, and shared: a fresh clone finds its objects in the cache.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=$ND_ROOT
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset release -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER="$ND_ROOT/scripts/ccache-pch.sh" \
  -DND_PYTHON="$ND_VENV/bin/python" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
nd_say "building in $ND_BUILD"
if [[ -t 1 ]]; then ninja -C "$ND_BUILD" "$@"
else ninja -C "$ND_BUILD" --quiet "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; fi
