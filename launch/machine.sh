# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What demo.sh takes of the machine that it is started on; sourced after checkout.sh, not run.

# find_gpus ROOT: sets gpus (names), uuids, capabilities (such as 9.0) and memories (MiB), the last two
# empty where not known, of the GPUs that have a driver: by nvidia-smi, else by what the driver shows
# below ROOT/proc and ROOT/dev.
find_gpus() {
  local uuid capability memory name file
  gpus=() uuids=() capabilities=() memories=()
  if command -v nvidia-smi >/dev/null; then
    while IFS=, read -r uuid capability memory name; do
      [[ $uuid == GPU-* ]] || continue
      capability=${capability// /} memory=${memory// /}
      [[ $capability =~ ^[0-9]+\.[0-9]$ ]] || capability=''
      [[ $memory =~ ^[1-9][0-9]{0,8}$ ]] || memory=''
      gpus+=("${name# }") uuids+=("$uuid") capabilities+=("$capability") memories+=("$memory")
    done < <(timeout 20 nvidia-smi --query-gpu=uuid,compute_cap,memory.total,name \
      --format=csv,noheader,nounits 2>/dev/null)
  fi
  (( ${#gpus[@]} == 0 )) || return 0
  for file in "$1"/proc/driver/nvidia/gpus/*/information; do
    [[ -r $file ]] || continue
    gpus+=("$(sed -n 's/^Model:[[:space:]]*//p' "$file")")
    uuids+=("$(sed -n 's/^GPU UUID:[[:space:]]*//p' "$file")")
    capabilities+=('') memories+=('')
  done
  (( ${#gpus[@]} == 0 )) || return 0
  for file in "$1"/dev/nvidia[0-9]*; do
    [[ -e $file ]] || continue
    gpus+=("NVIDIA GPU") uuids+=('') capabilities+=('') memories+=('')
  done
}

# keep_visible: leaves in these arrays what CUDA_VISIBLE_DEVICES leaves.
keep_visible() {
  local i kept=() kept_capabilities=() kept_memories=()
  find_visible
  # shellcheck disable=SC2154  # find_visible sets it
  for i in "${visible[@]}"; do
    kept+=("${gpus[i]}")
    kept_capabilities+=("${capabilities[i]}")
    kept_memories+=("${memories[i]}")
  done
  gpus=("${kept[@]}") capabilities=("${kept_capabilities[@]}") memories=("${kept_memories[@]}")
}

# architectures_of CAPABILITY...: CMake's list for GPUs of these compute capabilities, such as 80;90;
# nothing where one is not known, so that code for all is made.
architectures_of() {
  local capability list=()
  for capability in "$@"; do
    [[ -n $capability ]] || return 0
    list+=("${capability/./}")
  done
  mapfile -t list < <(printf '%s\n' "${list[@]}" | sort -nu)
  (IFS=';' && printf '%s\n' "${list[*]}")
}

# gpu_model MEMORY CAPABILITY RANKS: options of the quick suite for GPUs of so much memory (MiB): the
# largest model whose state fits on one and whose step with a sample for every rank takes one GPU 300 ms
# at most; then as many samples, in powers of two, as stay within these. The curve then goes down to
# 20 ms on up to 8 ranks. Rates are about half of what data sheets promise for dense bf16.
gpu_model() {
  local memory=${1:-0} rate batch name gflop needs
  case $2 in
    8.0) rate=150 ;;  # TFLOP/s, which is GFLOP in a millisecond
    9.*) rate=480 ;;
    1[0-9].*) rate=900 ;;
    *) rate=60 ;;
  esac
  # Name, GFLOP of a step for each sample, MiB that one rank needs with a reserve for the libraries.
  while read -r name gflop needs; do
    batch=1
    while (( batch < $3 )); do batch=$(( 2 * batch )); done
    (( memory >= needs && batch * gflop <= 300 * rate )) || [[ $name == gpt-125m ]] || continue
    while (( 2 * batch * gflop <= 300 * rate )); do batch=$(( 2 * batch )); done
    printf '%s\n' --model "$name" --dtype bf16 --set "batch=$batch" --set microbatch=1 \
      --set bucket=25MiB
    return
  done <<TEXT
gpt-6.7b 85750 78000
gpt-1.3b 17375 20000
gpt-125m 1506 4000
TEXT
}

# host_ranks CORES: as many ranks as cores up to 4, and 2 where there is one: a curve needs two.
host_ranks() {
  local ranks=$1
  (( ranks <= 4 )) || ranks=4
  (( ranks >= 2 )) || ranks=2
  printf '%s\n' "$ranks"
}

# counted NUMBER NOUN: "1 rank", "2 ranks".
counted() {
  local ending=s
  (( $1 != 1 )) || ending=
  printf '%s\n' "$1 $2$ending"
}

# of_cores RANKS CORES: "2 ranks on 2 cores", and that they are oversubscribed where they are.
of_cores() {
  local more=''
  (( $1 <= $2 )) || more=": oversubscribed, so the curve is not a scaling result"
  printf '%s\n' "$(counted "$1" rank) on $(counted "$2" core)$more"
}
