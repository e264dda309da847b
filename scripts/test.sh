#!/usr/bin/env bash
# Installs, builds and runs every test: format and generated pages, lit, GoogleTest, and pytest (front end, and executed
# programs). Ends with a line that counts them; fails on any failure. --full: every mesh, not a subset (hours).
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"
[[ ${1:-} == --full ]] && export ND_FULL=1
bash scripts/install.sh && bash scripts/build.sh || { echo "0 passed, 1 failed"; exit 1; }
source scripts/env.sh
results=$ND_BUILD/test-results
rm -rf "$results" && mkdir -p "$results"

check() { # NAME COMMAND...: a check without a test runner of its own counts as one test
  local name=$1; shift
  if "$@"; then echo "$name" >>"$results/passed"; else echo "$name" >>"$results/failed"; fi
}
nd_say "format and generated documentation"
check format bash scripts/format.sh --check
check reference bash scripts/docs.sh --check
nd_say "the runtime's tests under sanitizers"
check sanitizers bash scripts/sanitize.sh
nd_say "lit"
lit -q --xunit-xml-output "$results/lit.xml" "$ND_BUILD/test"
nd_say "GoogleTest"
ctest --test-dir "$ND_BUILD" --output-on-failure --output-junit "$results/ctest.xml"
nd_say "pytest"
python -m pytest -q --junitxml "$results/frontend.xml" python-frontend-export
python -m pytest -q --junitxml "$results/exec.xml" test/Exec test/Import
python scripts/count_tests.py "$results"
