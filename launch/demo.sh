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
Usage: launch/demo.sh [-n RANKS] [--with-cuda] [OPTION...]

Installs the packages that are missing, builds Isoscale into build/, measures on this machine, prints
the summary of the report and writes the report as a page.
  -n RANKS      (default: one per GPU; without GPUs one per core, 4 at most and 2 at least)
  --with-cuda   build the plugin for GPUs also where there is none
  OPTION...     goes to 'isoscale run'; build/isoscale run --help lists them
TEXT
}

ranks='' with_cuda=no
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    -n)
      [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || fail "-n needs a number of ranks, such as -n 4"
      ranks=$2
      shift
      ;;
    --with-cuda) with_cuda=yes ;;
    *) break ;;
  esac
  shift
done

start=$SECONDS
"$here/install-packages.sh" build
took_packages=$(( SECONDS - start ))

# The plugin is built where it can be used.
start=$SECONDS
folder=$(build_folder release)
find_gpus ""
keep_visible
[[ " $* " != *" --device"[\ =]"host "* ]] || gpus=() capabilities=()
settings=()
[[ -e $folder/build.ninja ]] || settings+=(-DISOSCALE_TESTS=OFF)  # a folder that has them keeps them
if (( ${#gpus[@]} > 0 )); then
  architectures=$(architectures_of "${capabilities[@]}")
  [[ -z $architectures ]] || settings+=("-DCMAKE_CUDA_ARCHITECTURES=$architectures")
fi
configure release "${settings[@]}"
targets=(isoscale)
missing=$(cached ISOSCALE_CUDA_MISSING "$folder")
if (( ${#gpus[@]} > 0 )) || [[ $with_cuda == yes ]]; then
  if [[ -z $missing ]]; then
    targets+=(isoscale_cuda)
  elif [[ $with_cuda == yes ]]; then
    fail "--with-cuda: $missing"
  else
    say "$(counted ${#gpus[@]} GPU) (${gpus[0]}) not used: $missing"
    gpus=()
  fi
elif [[ -z $missing ]]; then
  say "There is a CUDA toolkit and no GPU: the plugin for GPUs is not built; --with-cuda builds it."
fi

# What the page is made of arrives while the compiler is at the parts that do not need it. Without it
# all but report --html works: nothing that ends a demonstration.
mkdir -p "$folder/page"
web=$isoscale_root/analysis/page/web
{ "$here/install-packages.sh" page &&
  cmake "-DWEB=$web" "-DBUILD=$folder/page" -P "$isoscale_root/analysis/page/make_page.cmake"; } \
  >"$folder/page/packages.log" 2>&1 &
page_packages=$!
trap 'wait "$page_packages" || true' EXIT  # a build that fails leaves nothing behind that goes on
build release isoscale_runner
wait "$page_packages" || cat "$folder/page/packages.log" >&2
trap - EXIT
build release "${targets[@]}"
took_build=$(( SECONDS - start ))

start=$SECONDS
program=$folder/isoscale
file=$folder/demo.h5
launch=(--program "$program" --)
if (( ${#gpus[@]} > 0 )); then
  ranks=${ranks:-${#gpus[@]}}
  say "Measuring on $(counted ${#gpus[@]} GPU) (${gpus[0]}): $(counted "$ranks" rank), a GPU for each"
  launch=(--gpus "$ranks" "${launch[@]}")
else
  cores=$(core_count)
  ranks=${ranks:-$(host_ranks "$cores")}
  say "Measuring on the host: $(of_cores "$ranks" "$cores")"
  launch=(-n "$ranks" "${launch[@]}")
fi
"$here/mpirun.sh" "${launch[@]}" run --output "$file" --force "$@"
took_measuring=$(( SECONDS - start ))

# The run has ended with the summary.
page=
if [[ -e $folder/page/asset.cpp && ! -e $folder/page/missing ]]; then
  page=${file%.h5}.html
  "$program" report "$file" --html "$page" --force >/dev/null
fi
say
say "Took: packages $took_packages s, build $took_build s, measuring $took_measuring s"
say "Page: ${page:-none: $(cat "$folder/page/missing" 2>/dev/null || echo "ISOSCALE_PAGE is off")}"
say "File: $file    (build/isoscale report --detail build/demo.h5 prints all that is in it)"
