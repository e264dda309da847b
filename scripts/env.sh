# `. scripts/env.sh` puts nd's commands (from the build tree) and the project's Python environment on the PATH.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
export PATH="$ND_BUILD/bin:$ND_VENV/bin:/usr/lib/llvm-22/bin:$PATH"
export PYTHONPATH="$ND_ROOT/python-frontend-export${PYTHONPATH:+:$PYTHONPATH}"
