#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# The first run on a machine with a GPU: what works, and what it reaches, part by part. Goes on where
# something fails. Exit 0: nothing failed, 1: something did, 2: the command is wrong.
set -euo pipefail

usage() {
  cat <<TEXT
Usage: first_contact.sh [OPTION...] [PART...]

Parts, all of them by default, at most 28 minutes together:
  0  what the machine is; a plan; one point of dp       5  how sure rates are: A against B
  1  tests of ops, plays and twins on one rank          6  kernels against copies of as many bytes
  2  the same under compute-sanitizer                   7  costs of events and marks
  3  twins on two ranks that share the GPU              8  collects the run files
  4  GEMMs and a step, beside torch where it is

  --build DIR     the build (default: build); needs isoscale, its plugin, tests/gpu and bench
                  (cmake --build build --target all isoscale_long_tests)
  --launch WORDS  how several ranks are started (default: "mpirun -np"), before their number
  --alone WORDS   what stands before a program that needs no launcher (default: nothing)
  --size N        the extent of large products (default: 8192; less where stand-ins play them)
  --output DIR    where results go (default: first_contact)

An archive of a build that carries Open MPI with it, unpacked in DIR, is played by
  --build DIR/build --launch "DIR/run -np" --alone DIR/exec
It needs bash, Python 3, the CUDA libraries and NCCL; what else is missing is skipped and named.
TEXT
}

build=build launch="mpirun -np" alone="" size=8192 output=first_contact parts=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --build | --launch | --alone | --size | --output)
      [[ $# -ge 2 ]] || { usage >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    [0-8]) parts+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[[ ${#parts[@]} -gt 0 ]] || parts=(0 1 2 3 4 5 6 7 8)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(readlink -f "$build")
mkdir -p "$output"
output=$(readlink -f "$output")
read -ra launch <<<"$launch"
read -ra alone <<<"$alone"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
limits=(120 300 180 240 360 240 120 60 60)  # seconds, by part: 28 minutes
steps=$output/steps.tsv figures=$output/figures.tsv
: >"$steps"
: >"$figures"

has() { command -v "$1" >/dev/null; }
isoscale() { printf '%s\n' "$build/isoscale"; }

# note NAME VERDICT SECONDS WHY: a line of the table.
note() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$part" "$1" "$2" "$3" "$4" >>"$steps"
  printf '%s  %-34s %-8s %4s s  %s\n' "$part" "$1" "$2" "$3" "$4"
}

# step NAME COMMAND...: runs it within what is left of the part, its output in NAME.log.
step() {
  local name=$1 start=$SECONDS status=0 left=$((deadline - SECONDS)) log
  shift
  log=$output/$part-${name//[^A-Za-z0-9]/-}.log
  if ((left < 5)); then
    note "$name" skipped 0 "the part's time is used up"
    return
  fi
  timeout --kill-after=10 "$left" "$@" >"$log" 2>&1 </dev/null || status=$?
  local why
  why=$(grep -v '^ *$' "$log" | tail -1 | cut -c1-100 || true)
  case $status in
    0) note "$name" passed $((SECONDS - start)) "" ;;
    77) note "$name" skipped $((SECONDS - start)) "$why" ;;
    124 | 137) note "$name" timeout $((SECONDS - start)) "after $left s" ;;
    *) note "$name" FAILED $((SECONDS - start)) "exit $status: $why" ;;
  esac
  return 0
}

# need PROGRAM: whether it is there, in the build or on the path.
need() {
  if [[ $1 == */* ]]; then [[ -x $build/$1 ]] && return 0; else has "$1" && return 0; fi
  note "$1" skipped 0 "it is not there"
  return 1
}

# run NAME RANKS OPTION...: a run of isoscale into NAME.h5.
run() {
  local name=$1 ranks=$2
  shift 2
  step "$name" "${launch[@]}" "$ranks" "$(isoscale)" run --device cuda --quiet --force \
    --output "$output/$name.h5" "$@"
}

# rates NAME: the rates of a run file, as figures.
rates() {
  [[ -e $output/$1.h5 ]] || return 0
  "${alone[@]}" "$(isoscale)" report "$output/$1.h5" --format json >"$output/$1.json" 2>/dev/null || return 0
  python3 "$here/first_contact.py" rates "$part" "$1" "$output/$1.json" >>"$figures" || true
}

part_0() {
  if need nvidia-smi; then step "the driver" nvidia-smi -q; fi
  step "libraries of the plugin" "${alone[@]}" bash -c "ldd '$build/libisoscale_cuda.so'; ! ldd '$build/libisoscale_cuda.so' | grep 'not found'"
  step "what the machine lacks" "${launch[@]}" 1 "$(isoscale)" check --device cuda
  step "a plan" "${launch[@]}" 1 "$(isoscale)" run --device cuda --dry-run
  run point 1 --workload dp --model tiny --dtype bf16 --ranks 1 --max-time 5s
  rates point
}

part_1() {
  local name
  for name in executor play twin; do
    need "tests/gpu/test_gpu_$name" || continue
    step "gpu_$name on 1 rank" "${launch[@]}" 1 "$build/tests/gpu/test_gpu_$name" \
      "--gtest_output=xml:$output/gpu_$name.xml"
  done
}

part_2() {
  need compute-sanitizer && need tests/gpu/test_gpu_executor || return 0
  local tool
  for tool in memcheck racecheck; do
    step "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 --target-processes all \
      "${launch[@]}" 1 "$build/tests/gpu/test_gpu_executor" '--gtest_filter=*Narrow*:*Lists*:*Layer*'
  done
}

part_3() {
  need tests/gpu/test_gpu_twin || return 0
  NCCL_DEBUG=INFO step "gpu_twin on 2 ranks" "${launch[@]}" 2 "$build/tests/gpu/test_gpu_twin" \
    "--gtest_output=xml:$output/gpu_twin_2.xml" '--gtest_filter=-*graph*'
}

part_4() {
  need bench/bench_cuda_gemm || return 0
  step "GEMMs and a step" python3 "$here/../bench/bench_gpu.py" --build "$build" --keep "$output" \
    --launcher "${launch[*]} 1" --alone "${alone[*]}"
  grep -E 'TFLOP/s|goal' "$output/4-GEMMs-and-a-step.log" | sed $'s/^/4\\t/' >>"$figures" || true
  rates plain
  rates graph
}

part_5() {
  local gemm=(--workload gemm --set shapes="${size}x${size}x${size}" --set cache=warm --max-time 10s) trial how
  for trial in 1 2 3; do run "chosen-$trial" 1 "${gemm[@]}" --dtype bf16; rates "chosen-$trial"; done
  for how in fast split; do
    run "fp8-$how" 1 "${gemm[@]}" --dtype fp8 --set fp8_accumulate="$how"
    rates "fp8-$how"
  done
  for trial in f64 f32 tf32 f16; do run "rate-$trial" 1 "${gemm[@]}" --dtype "$trial"; rates "rate-$trial"; done
  run small 1 --workload gemm --set shapes=512x512x512,1024x1024x1024,2048x2048x2048 --dtype bf16 --max-time 10s
  rates small
}

part_6() {
  if need bench/bench_kernels; then
    step "kernels" "${alone[@]}" "$build/bench/bench_kernels"
    grep '%' "$output/6-kernels.log" | sed $'s/^/6\\t/' >>"$figures" || true
  fi
  run memory 1 --workload memory --max-time 20s
  rates memory
}

part_7() {
  need bench/bench_cuda_costs || return 0
  step "costs" "${alone[@]}" "$build/bench/bench_cuda_costs"
  grep -E ' us$|capture' "$output/7-costs.log" | sed $'s/^/7\\t/' >>"$figures" || true
}

part_8() {
  mkdir -p "$output/reference"
  local file
  for file in point plain graph memory; do
    [[ ! -e $output/$file.h5 ]] || cp "$output/$file.h5" "$output/reference/"
  done
  if ! ls "$output"/reference/*.h5 >/dev/null 2>&1; then
    note "run files can be read" skipped 0 "parts 0, 4 and 6 wrote none"
    return 0
  fi
  step "run files can be read" bash -c "ls '$output'/reference/*.h5 && ${alone[*]} '$(isoscale)' report '$output'/reference/*.h5 --index"
}

for part in "${parts[@]}"; do
  deadline=$((SECONDS + limits[part]))
  "part_$part"
done
printf '\nFigures\n'
sed 's/\t/  /g' "$figures"
python3 "$here/first_contact.py" json "$steps" "$figures" >"$output/first_contact.json"
printf '\nAll of it: %s/first_contact.json\n' "$output"
! grep -qP '\t(FAILED|timeout)\t' "$steps"
