#!/usr/bin/env bash
# Generates docs/reference from TableGen; with --check fails where the committed pages differ.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"

ninja -C "$ND_BUILD" --quiet mlir-doc >/dev/null
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
find "$ND_BUILD/docs" -name '*.md' -exec cp {} "$generated" \;
if [[ ${1:-} == --check ]]; then
  diff -ru docs/reference "$generated" || { echo "docs/reference is not what TableGen says: run scripts/docs.sh" >&2; exit 1; }
else
  rm -rf docs/reference && mkdir -p docs/reference && cp "$generated"/*.md docs/reference
fi
