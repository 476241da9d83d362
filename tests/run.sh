#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# Builds and tests Isoscale; the summary stands last. Exit 0: all passed, 1: some failed,
# 2: nothing could be tested.
set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/checkout.sh
source "$tests/../launch/checkout.sh"

usage() {
  cat <<TEXT
Usage: tests/run.sh [--all] [--lint | --lint-only]

Installs the packages that are missing, builds into build/ and runs the tests.
  --all        also the long tests (eight ranks, faults, fuzzing, packages, browser, launch scripts; one
               under a Slurm that it starts and ends itself), and the default ones under
               AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer (build-asan/,
               build-tsan/), and those of MPI on MPICH (build-mpich/)
  --lint       also clang-format and clang-tidy over all sources (build-lint/)
  --lint-only  the linters and nothing else
With CI=true, warnings of the compiler are errors.
TEXT
}

all=no lint=no run_tests=yes
for option in "$@"; do
  case $option in
    --all) all=yes ;;
    --lint) lint=yes ;;
    --lint-only) lint=yes run_tests=no ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && fail "unknown option '$option'" ;;
  esac
done

summary=()
failed=no

# note STATUS WHAT SECONDS: a line of the summary.
note() {
  local verdict=passed
  if [[ $1 -ne 0 ]]; then
    verdict=FAILED
    failed=yes
  fi
  summary+=("$(printf '%-7s %-34s %4d s' "$verdict" "$2" "$3")")
}

# slowest FOLDER: the tests that took longest, from what ctest keeps to order them by.
slowest() {
  local costs=$1/Testing/Temporary/CTestCostData.txt
  [[ -e $costs ]] || return 0
  say "The slowest tests, in seconds:"
  sed '/^---/,$d' "$costs" | awk '{ printf "  %7.1f  %s\n", $NF, $1 }' | sort -rn | sed -n 1,15p
}

# run_ctest PRESET WHAT [CTEST OPTION...]
run_ctest() {
  local preset=$1 what=$2 start=$SECONDS status=0 folder
  shift 2
  folder=$(build_folder "$preset")
  say "Running $what ..."
  # Two more than there are cores, since many tests wait for programs that they have started.
  ctest --test-dir "$folder" --parallel $(( $(nproc) + 2 )) --output-on-failure --no-tests=error "$@" ||
    status=$?
  slowest "$folder"
  note "$status" "$what" $(( SECONDS - start ))
}

# Our sources, as git would list them in a checkout; without git, by folder.
sources() {
  (cd "$isoscale_root" && find src workloads results analysis tests \
    -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' | sort)
}

run_lint() {
  local start=$SECONDS status=0
  say "Checking the layout with clang-format ..."
  (cd "$isoscale_root" && sources | xargs clang-format-16 --dry-run -Werror) || status=$?
  note "$status" "clang-format" $(( SECONDS - start ))

  # Sources that are joined for the compiler are one text to clang-tidy: it has a folder of its own.
  configure lint -DISOSCALE_TESTS=ON
  build lint isoscale_fingerprint
  start=$SECONDS status=0
  say "Checking the sources with clang-tidy (some minutes) ..."
  # The generated sources of a build folder are nobody's style, and clang does not read this CUDA.
  (cd "$isoscale_root" && run-clang-tidy-16 -quiet -p "$(build_folder lint)" -j "$(nproc)" \
    "^$isoscale_root/(src|workloads|results|analysis|tests)/.*\\.cpp$") || status=$?
  note "$status" "clang-tidy" $(( SECONDS - start ))
}

groups=(build test)
[[ $all == yes ]] && groups+=(cluster)
[[ $lint == yes ]] && groups+=(lint)
"$isoscale_root/launch/install-packages.sh" "${groups[@]}"
# Tests of the page are skipped without it; all others can still tell something.
"$isoscale_root/launch/install-packages.sh" page || say "Going on without: the page is not tested."
"$isoscale_root/launch/install-packages.sh" browser || say "Going on without a browser: no page is opened."

if [[ $run_tests == yes ]]; then
  # As demo.sh configures it, with the tests on top: what that has compiled is not compiled again.
  settings=(-DISOSCALE_TESTS=ON)
  [[ ${CI:-} != true ]] || settings+=(-DISOSCALE_WERROR=ON)
  configure release "${settings[@]}"
  start=$SECONDS
  build release
  [[ $all == no ]] || build release isoscale_long_tests
  note 0 "build" $(( SECONDS - start ))
  if [[ $all == yes ]]; then
    run_ctest release "all tests"
    for preset in asan tsan; do
      configure "$preset" -DISOSCALE_TESTS=ON
      start=$SECONDS
      build "$preset"
      note 0 "build for $preset" $(( SECONDS - start ))
    done
    run_ctest asan "tests under ASan and UBSan" -LE '^long$'
    # Only what runs under MPI has several threads.
    run_ctest tsan "MPI and executor tests under TSan" -L '^(executor|mpi)$' -LE '^long$'
    # Another MPI, beside the one that everything else is built on.
    "$isoscale_root/launch/install-packages.sh" mpich
    configure mpich -DISOSCALE_TESTS=ON -DISOSCALE_CUDA=OFF
    start=$SECONDS
    build mpich isoscale_mpi_tests
    note 0 "build for mpich" $(( SECONDS - start ))
    # MPICH waits without giving up its core: on no more ranks than there are cores.
    mapfile -t counts < <(seq "$(nproc)")
    run_ctest mpich "MPI tests on MPICH" -L '^mpi$' -LE '^long$' \
      -R "[.]np($(IFS='|' && printf '%s' "${counts[*]}"))\$" --parallel 1
  else
    run_ctest release "tests (--all adds the long ones)" -LE '^long$'
  fi
fi
[[ $lint == yes ]] && run_lint

printf '\nSummary\n'
printf '  %s\n' "${summary[@]}"
if [[ $failed == yes ]]; then
  echo "FAILED"
  exit 1
fi
echo "All passed."
