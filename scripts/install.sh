#!/usr/bin/env bash
# Installs everything that building, testing and running nd needs: Debian packages, and a Python environment outside the
# tree (shared by all checkouts with the same requirements). Safe to run again; does nothing when all is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

packages=(
  build-essential cmake ninja-build ccache git ca-certificates python3 python3-dev python3-venv
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools clang-22 lld-22 clang-format-22 clang-tidy-22 libclang-rt-22-dev
  libprotobuf-dev protobuf-compiler libdnnl-dev libgtest-dev zlib1g-dev libzstd-dev libedit-dev libcurl4-openssl-dev
)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == "install ok installed" ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  nd_say "installing Debian packages: ${missing[*]}"
  sudo=(); ((EUID == 0)) || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [[ ! -e $ND_VENV/complete ]]; then
  nd_say "installing the Python environment in $ND_VENV"
  rm -rf "$ND_VENV"
  python3 -m venv "$ND_VENV"
  "$ND_VENV/bin/pip" install -q --disable-pip-version-check -r scripts/requirements.txt
  touch "$ND_VENV/complete"
fi
