#!/usr/bin/env bash
# Formats the sources; with --check only says what is not formatted, and fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

check=(); [[ ${1:-} == --check ]] && check=(--dry-run --Werror)
git ls-files -z '*.cpp' '*.h' | xargs -0 -r /usr/lib/llvm-22/bin/clang-format "${check[@]:--i}"
if [[ ${1:-} == --check ]]; then
  "$ND_VENV/bin/ruff" format --check -q . && "$ND_VENV/bin/ruff" check -q .
else
  "$ND_VENV/bin/ruff" format -q . && "$ND_VENV/bin/ruff" check -q --fix .
fi
