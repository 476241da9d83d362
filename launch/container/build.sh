#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# What both recipes of containers do once the sources are in the image.
set -euo pipefail

usage() {
  cat <<TEXT
Usage: launch/container/build.sh PREFIX [openmpi|mpich] [CUDA: ON|OFF]
Installs the packages that are missing, builds Isoscale and installs it into PREFIX.
TEXT
}

if [[ $# -lt 1 || $# -gt 3 || $1 == -* ]]; then
  usage >&2
  exit 2
fi
prefix=$1 mpi=${2:-openmpi} cuda=${3:-OFF}

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
case $mpi in
  openmpi) groups=(build) preset=release build=build ;;
  mpich) groups=(build mpich) preset=mpich build=build-mpich ;;
  *) usage >&2 && exit 2 ;;
esac

cd "$source_folder"
launch/install-packages.sh "${groups[@]}"
# An image is made on one machine and run on others: ISOSCALE_NATIVE stays off.
cmake --preset "$preset" -DISOSCALE_TESTS=OFF -DISOSCALE_CUDA="$cuda" \
  -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --build "$build" --parallel "$(nproc)"
cmake --install "$build" --strip
