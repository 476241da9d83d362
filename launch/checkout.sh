# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What only a checkout needs: its packages and its build. Sourced, not run.

isoscale_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=launch/common.sh
source "$isoscale_root/launch/common.sh"
# shellcheck source=launch/machine.sh
source "$isoscale_root/launch/machine.sh"

# listed_of GROUP...: what launch/packages.txt says of these groups, one word a line.
listed_of() {
  local group
  for group in "$@"; do
    awk -v group="$group" '$1 == group { for (i = 2; i <= NF; ++i) print $i }' \
      "$isoscale_root/launch/packages.txt"
  done
}

# packages_of GROUP...: the packages that these groups need here, one a line: without those for a
# command that is there already.
packages_of() {
  local word
  listed_of "$@" | while IFS= read -r word; do
    if [[ $word == *:* ]]; then
      command -v "${word%%:*}" >/dev/null && continue
      word=${word#*:}
    fi
    printf '%s\n' "$word"
  done
}

# missing_of PACKAGE...: those that are not installed, one a line.
missing_of() {
  local installed
  # dpkg-query fails when it knows one of the names not at all; what it prints is right all the same.
  # shellcheck disable=SC2016  # dpkg expands these, not the shell
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^installed //p') || true
  local package
  for package in "$@"; do
    grep -qxF -- "$package" <<<"$installed" || printf '%s\n' "$package"
  done
}

# refuse_old_cmake: an older CMake than CMakePresets.json asks for ends in words about versions alone.
refuse_old_cmake() {
  local version needed
  command -v cmake >/dev/null || fail "cmake is missing; see launch/packages.txt"
  needed=$(sed -n 's/^cmake_minimum_required(VERSION \([0-9.]*\))$/\1/p' "$isoscale_root/CMakeLists.txt")
  version=$(cmake --version | sed -n '1s/^cmake version \([0-9.]*\).*/\1/p')
  [[ $(printf '%s\n' "$needed" "$version" | sort -V | sed -n 1p) == "$needed" ]] ||
    fail "CMake $version is too old, $needed is needed: load a newer module, or install one with" \
      "'pip install --user cmake ninja' and put ~/.local/bin first in PATH"
}

# cached NAME FOLDER: the value of a variable in CMake's cache of a build folder.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt" 2>/dev/null || true; }

# lacks_what_may_be_there FOLDER: it was configured without the page or CUDA, and that may have
# been installed since.
lacks_what_may_be_there() {
  [[ ! -e $1/page/missing ]] || return 0
  [[ -n $(cached ISOSCALE_CUDA_MISSING "$1") && $(cached ISOSCALE_CUDA "$1") != OFF ]] && has_nvcc
}

has_nvcc() {
  local file files=(nvcc "${CUDA_PATH:-}/bin/nvcc" "${CUDA_HOME:-}/bin/nvcc" /usr/local/cuda/bin/nvcc)
  [[ -z ${CUDACXX:-} ]] || files=("$CUDACXX")
  for file in "${files[@]}"; do
    ! command -v "$file" >/dev/null || return 0
  done
  return 1
}

# architectures_here: the GPU architectures of the GPUs that are seen, as CMake wants them; nothing where
# one is not known, and Hopper where there is no GPU.
architectures_here() {
  local gpus uuids capabilities
  find_gpus ""
  if (( ${#gpus[@]} == 0 )); then
    echo 90
  else
    architectures_of "${capabilities[@]}"
  fi
}

# configure PRESET [-DKEY=VALUE...]: runs CMake unless the build folder is configured like that.
configure() {
  local preset=$1 folder cache setting
  shift
  folder=$(build_folder "$preset")
  cache=$folder/CMakeCache.txt
  refuse_old_cmake
  local extra=()
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$isoscale_root" "$cache"; then
    extra=(--fresh)  # the folder was made for a copy of the sources somewhere else
  elif [[ -e $folder/build.ninja ]]; then
    local changed=no
    for setting in "$@"; do
      setting=${setting#-D}
      grep -q "^${setting%%=*}:[A-Z]*=${setting#*=}\$" "$cache" || changed=yes
    done
    ! lacks_what_may_be_there "$folder" || changed=yes
    [[ $changed == no ]] && return
  elif command -v ccache >/dev/null; then
    extra=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  # A checkout compiles kernels for the GPUs that it sees, else for one kind of GPU: whoever installs
  # without these scripts gets all.
  if [[ ! -e $folder/build.ninja && " $*" != *" -DCMAKE_CUDA_ARCHITECTURES="* ]]; then
    setting=$(architectures_here)
    [[ -z $setting ]] || extra+=("-DCMAKE_CUDA_ARCHITECTURES=$setting")
  fi

  say "Configuring ${folder#"$isoscale_root"/} ..."
  (cd "$isoscale_root" && cmake "${extra[@]}" --preset "$preset" "$@") >"$folder.log" 2>&1 || {
    sed -n '/^CMake Error/,$p' "$folder.log" >&2
    fail "CMake could not configure the build, for the reason above; all that it said is in" \
      "${folder#"$isoscale_root"/}.log"
  }
  mv "$folder.log" "$folder/configure.log"
}

# build PRESET [TARGET...]: builds everything, or these targets.
build() {
  local preset=$1 folder
  shift
  folder=$(build_folder "$preset")
  say "Building ${folder#"$isoscale_root"/}${*:+: $*} (minutes the first time, seconds after that) ..."
  local targets=()
  [[ $# -gt 0 ]] && targets=(--target "$@")
  cmake --build "$folder" --parallel "$(build_jobs)" "${targets[@]}" >&2 ||
    fail "the build failed; the compiler's messages are above"
}

build_folder() {
  if [[ $1 == release ]]; then
    printf '%s\n' "$isoscale_root/build"
  else
    printf '%s\n' "$isoscale_root/build-$1"
  fi
}

# As many compilers as there are cores, but no more than memory allows at 1.5 GB each.
build_jobs() {
  local cores memory_kb jobs
  cores=$(nproc)
  memory_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null || true)
  jobs=$(( ${memory_kb:-0} > 0 ? memory_kb / 1500000 : cores ))
  (( jobs >= 1 )) || jobs=1
  (( jobs <= cores )) || jobs=$cores
  printf '%s\n' "$jobs"
}
