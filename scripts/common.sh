# Shared by the scripts: where things are. Sourced, never run.
ND_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# One environment per content of requirements.txt, outside the tree, so that a second checkout finds it.
ND_VENV=${ND_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/nd/venv-$(sha256sum "$ND_ROOT/scripts/requirements.txt" | cut -c1-12)}
ND_BUILD=${ND_BUILD:-$ND_ROOT/build/release}

nd_say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
