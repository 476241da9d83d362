#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# From a fresh machine to a first scaling report.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/checkout.sh
source "$here/checkout.sh"

usage() {
  cat <<TEXT
Usage: launch/demo.sh [-n RANKS] [OPTION...]

Installs the packages that are missing, builds Isoscale into build/, measures on RANKS ranks of
this machine (4 unless told otherwise), prints the report and writes it as a page. The OPTIONs go to 'isoscale run';
build/isoscale run --help lists them.
TEXT
}

ranks=4
case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
  -n)
    [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || fail "-n needs a number of ranks, such as -n 4"
    ranks=$2
    shift 2
    ;;
esac

"$here/install-packages.sh" build
# Without it all but report --html works: nothing that ends a demonstration.
"$here/install-packages.sh" page || say "Going on without: report --html will have no page."
# Only the program; a build folder that has the tests keeps them.
[[ -e $(build_folder release)/build.ninja ]] || configure release -DISOSCALE_TESTS=OFF
configure release
build release isoscale

program=$(build_folder release)/isoscale
file=$(build_folder release)/demo.h5

say
"$here/mpirun.sh" -n "$ranks" --program "$program" -- run --output "$file" --force "$@"
say
page=()
[[ -e $(build_folder release)/page/asset.cpp ]] && page=(--html "${file%.h5}.html" --force)
say "+ build/isoscale report build/demo.h5${page:+ --html build/demo.html --force}"
"$program" report "$file" "${page[@]}"
