# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts of a checkout read of the machine that they are started on; sourced, not run.

# find_gpus ROOT: sets gpus (names), uuids and capabilities (such as 9.0, empty where not known) of the
# GPUs that have a driver: by nvidia-smi, else by what the driver shows below ROOT/proc and ROOT/dev.
find_gpus() {
  local uuid capability name file
  gpus=() uuids=() capabilities=()
  if command -v nvidia-smi >/dev/null; then
    while IFS=, read -r uuid capability name; do
      [[ $uuid == GPU-* ]] || continue
      capability=${capability// /}
      [[ $capability =~ ^[0-9]+\.[0-9]$ ]] || capability=''
      gpus+=("${name# }") uuids+=("$uuid") capabilities+=("$capability")
    done < <(timeout 20 nvidia-smi --query-gpu=uuid,compute_cap,name \
      --format=csv,noheader 2>/dev/null)
  fi
  (( ${#gpus[@]} == 0 )) || return 0
  for file in "$1"/proc/driver/nvidia/gpus/*/information; do
    [[ -r $file ]] || continue
    gpus+=("$(sed -n 's/^Model:[[:space:]]*//p' "$file")")
    uuids+=("$(sed -n 's/^GPU UUID:[[:space:]]*//p' "$file")")
    capabilities+=('')
  done
  (( ${#gpus[@]} == 0 )) || return 0
  for file in "$1"/dev/nvidia[0-9]*; do
    [[ -e $file ]] || continue
    gpus+=("NVIDIA GPU") uuids+=('') capabilities+=('')
  done
}

# keep_visible: leaves in these arrays what CUDA_VISIBLE_DEVICES leaves.
keep_visible() {
  local i kept=() kept_capabilities=()
  find_visible
  # shellcheck disable=SC2154  # find_visible sets it
  for i in "${visible[@]}"; do
    kept+=("${gpus[i]}")
    kept_capabilities+=("${capabilities[i]}")
  done
  gpus=("${kept[@]}") capabilities=("${kept_capabilities[@]}")
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
