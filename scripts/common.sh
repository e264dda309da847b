# Shared by the scripts: where things are. Sourced, never run.
ND_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# One environment per content of requirements.txt, outside the tree, so that a second checkout finds it.
ND_VENV=${ND_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/nd/venv-$(sha256sum "$ND_ROOT/scripts/requirements.txt" | cut -c1-12)}
ND_BUILD=${ND_BUILD:-$ND_ROOT/build/release}

# Configures a preset of CMakePresets.json. Compilations are cached by ccache; the precompiled header is keyed by content, not
# by time, and shared: a fresh clone finds its objects in the cache.
nd_configure() {
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=$ND_ROOT
  cmake --preset "$1" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER="$ND_ROOT/scripts/ccache-pch.sh" \
    -DND_PYTHON="$ND_VENV/bin/python"
}

nd_say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
