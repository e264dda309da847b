#!/usr/bin/env bash
# Configures and builds the release preset; extra arguments go to ninja. Compilations are cached by ccache.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
nd_configure release >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
nd_say "building in $ND_BUILD"
if [[ -t 1 ]]; then ninja -C "$ND_BUILD" "$@"
else ninja -C "$ND_BUILD" --quiet "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; fi
