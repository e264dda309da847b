#!/usr/bin/env bash
# A compiler launcher: ccache, with one precompiled header for all checkouts. A precompiled header holds the absolute path
# that it was made at, so one per checkout would give every checkout objects of its own in the cache. Here it is made
# once, in the cache folder under a name that is the hash of its contents and flags, and every compilation reads it there.
set -euo pipefail
arguments=("$@") own="" output=""
for ((i = 0; i < $#; ++i)); do
  case ${arguments[i]} in
    */CMakeFiles/NDPrecompiled.dir/cmake_pch.hxx) own=${arguments[i]%/*} ;;
    -o) output=${arguments[i + 1]} ;;
  esac
done
# Not one of ours, or CMake is still writing it.
[[ -n $own && -f $own/cmake_pch.hxx.cxx ]] || exec ccache "$@"

flags=""
for argument in "$@"; do # what the header depends on: not where this checkout is, nor which file is compiled
  case $argument in -std=* | -O* | -f* | -W* | -D* | */clang++) flags+=" $argument" ;; esac
done
[[ $output == *.pch ]] && printf '%s' "$flags" >"$own/flags"
[[ -f $own/flags ]] || exec ccache "$@"
key=$(cat "$own/flags" "$own/cmake_pch.hxx" | sha256sum | cut -c1-16)
shared=${XDG_CACHE_HOME:-$HOME/.cache}/nd/pch-$key
if [[ $output == *.pch ]]; then
  mkdir -p "$shared"
  exec {lock}>"$shared/lock"
  flock "$lock"
  if [[ ! -f $shared/cmake_pch.hxx.pch ]]; then
    cp "$own/cmake_pch.hxx" "$own/cmake_pch.hxx.cxx" "$shared"
    moved=("${arguments[@]//"$own"\/cmake_pch.hxx/"$shared/cmake_pch.hxx"}")
    for ((i = 0; i < ${#moved[@]}; ++i)); do
      [[ ${moved[i]} == -o ]] && moved[i + 1]=$shared/making.pch
    done
    "${moved[@]}"
    mv "$shared/making.pch" "$shared/cmake_pch.hxx.pch"
  fi
  cp -p "$shared/cmake_pch.hxx.pch" "$output"
  touch "$output"
  exit
fi
exec ccache "${arguments[@]//"$own"\/cmake_pch.hxx/"$shared/cmake_pch.hxx"}"
