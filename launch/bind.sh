#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# Runs a program on the cores near the GPU of its local rank, and says where each rank is. It looks
# at sysfs, and only ever narrows what the scheduler and the launcher have left to the rank.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/common.sh
source "$here/common.sh"

usage() {
  cat <<TEXT
Usage: mpirun [OPTION...] launch/bind.sh [OPTION...] [--] PROGRAM [ARGUMENT...]
       launch/bind.sh --print --local-ranks N

Gives each local rank a GPU, and the nearest cores, NUMA node and network adapter of this GPU. Each
rank prints one line with them. The GPU is the visible one whose number is the local rank; isoscale
chooses the same. Cores that are near to several GPUs are divided among these GPUs.
  --cores C         cores that a rank needs (default 1). It never gets fewer, and a mask of its own
                    is narrowed to at least these
  --ignore-gpus     give each rank C of the node's cores, wherever its GPUs are
  --mask own|shared|auto   whether the initial mask belongs to this rank or to all ranks of the
                    node (default auto: to this rank if it is narrower than its parent's)
  --set-visible     also export CUDA_VISIBLE_DEVICES with this GPU only: NCCL still reaches the
                    other GPUs, but an MPI with CUDA support may not
  --set-nic         also export UCX_NET_DEVICES with the nearest adapter, if it is unset
  --print           print the map and run nothing: for this rank, or for N with only --local-ranks
  --local-rank R, --local-ranks N, --cpus LIST, --sysfs DIR
                    replace the values from the launcher, the mask and /sys
TEXT
}

cores_needed=1 mask=auto set_visible=no set_nic=no print=no ignore_gpus=no
local_rank='' local_ranks='' allowed='' allowed_cpus=() sysfs=${ISOSCALE_SYSFS:-/sys}
while [[ $# -gt 0 ]]; do
  case $1 in
    --cores) cores_needed=$(count_of "$1" "${2:-}"); shift ;;
    --mask) mask=$(value_of "$@"); shift ;;
    --ignore-gpus) ignore_gpus=yes ;;
    --set-visible) set_visible=yes ;;
    --set-nic) set_nic=yes ;;
    --print) print=yes ;;
    --local-rank) local_rank=$(value_of "$@"); shift ;;
    --local-ranks) local_ranks=$(count_of "$1" "${2:-}"); shift ;;
    --cpus) allowed=$(value_of "$@"); shift ;;
    --sysfs) sysfs=$(value_of "$@"); shift ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    -*) fail "unknown option '$1'; see launch/bind.sh --help" ;;
    *) break ;;
  esac
  shift
done
[[ $print == yes || $# -gt 0 ]] || fail "say what to run, or --print"
[[ $mask =~ ^(own|shared|auto)$ ]] || fail "--mask is own, shared or auto, not '$mask'"
[[ -d $sysfs ]] || fail "there is no folder '$sysfs'"
# first_of VALUE...: prints the first that is not empty.
first_of() {
  local value
  for value in "$@"; do
    [[ -z $value ]] || { printf '%s\n' "$value" && return; }
  done
}

mask_of() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || true; }

# Sets gpus (PCI addresses in CUDA's order) and uuids: of those that the driver shows to this
# process, or without its tool, of the machine.
find_gpus() {
  local address uuid rest file
  gpus=() uuids=()
  if command -v nvidia-smi >/dev/null; then
    while IFS=', ' read -r address uuid rest; do
      [[ $address =~ ^[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.[0-9]$ ]] || continue
      address=${address,,}
      gpus+=("$(printf '%04x' "$(( 16#${address%%:*} ))"):${address#*:}")
      uuids+=("$uuid")
    done < <(timeout 20 nvidia-smi --query-gpu=pci.bus_id,uuid --format=csv,noheader 2>/dev/null)
  fi
  (( ${#gpus[@]} == 0 )) || return 0
  while read -r file; do  # names in the order of PCI buses, as CUDA_DEVICE_ORDER=PCI_BUS_ID has it
    line_of rest "${file%/vendor}/class"
    [[ $rest == 0x030[02]* ]] || continue
    address=${file%/vendor}
    gpus+=("${address##*/}")
    uuids+=('')
  done < <(grep -lix 0x10de "$sysfs"/bus/pci/devices/*/vendor 2>/dev/null)
}

# Sets cpu_order: the machine's CPUs by NUMA node, then number.
find_cpus() {
  local file list some
  cpu_order=()
  while read -r file; do
    line_of list "$file"
    expand some "$list"
    cpu_order+=("${some[@]}")
  done < <(printf '%s\n' "$sysfs"/devices/system/node/node*/cpulist | sort -V)
  (( ${#cpu_order[@]} == 0 )) || return 0
  line_of list "$sysfs/devices/system/cpu/online"
  expand cpu_order "$list"
}

# find_cores CPU...: sets cores, one element per core with its CPUs among these, in cpu_order.
find_cores() {
  local -A wanted=() core_of=()
  local cpu siblings at
  for cpu in "$@"; do wanted[$cpu]=yes; done
  cores=()
  for cpu in "${cpu_order[@]}"; do
    [[ -n ${wanted[$cpu]:-} ]] || continue
    line_of siblings "$sysfs/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"
    siblings=${siblings:-$cpu}
    if [[ -n ${core_of[$siblings]:-} ]]; then
      at=$(( core_of[$siblings] - 1 ))
      cores[at]+=" $cpu"
    else
      cores+=("$cpu")
      core_of[$siblings]=${#cores[@]}
    fi
  done
}

# How many names two PCI paths begin with in common, from the root complex on.
shared_names() {
  local -a left right
  local i shared=0
  IFS=/ read -ra left <<<"${1#*/devices/}"
  IFS=/ read -ra right <<<"${2#*/devices/}"
  for i in "${!left[@]}"; do
    [[ ${left[i]} == "${right[i]:-}" ]] || break
    shared=$(( shared + 1 ))
  done
  printf '%s\n' "$shared"
}

# find_nic GPU: sets nic, such as mlx5_0:1: nearest by PCI path, then NUMA node; GPUs that are as near
# to several adapters take them in turn. Ports that are down do not count.
find_nic() {
  local gpu=$1 device path port near numa gpu_numa best=-1 nearest=()
  nic=''
  path=$(readlink -f "$sysfs/bus/pci/devices/${gpus[gpu]}")
  line_of gpu_numa "$path/numa_node"
  for device in "$sysfs"/class/infiniband/*; do
    [[ -e $device/device ]] || continue
    port=$(grep -l ACTIVE "$device"/ports/*/state 2>/dev/null | head -n 1) || true
    [[ -n $port ]] || continue
    port=${port%/state}
    line_of numa "$device/device/numa_node"
    near=$(( 2 * $(shared_names "$path" "$(readlink -f "$device/device")") ))
    [[ $numa != "$gpu_numa" ]] || near=$(( near + 1 ))
    (( near >= best )) || continue
    (( near == best )) || nearest=()
    best=$near
    nearest+=("${device##*/}:${port##*/}")
  done
  (( ${#nearest[@]} == 0 )) || nic=${nearest[gpu % ${#nearest[@]}]}
}

# find_near GPU: sets near (CPUs near it), sharers (ranks that share them) and turn (which it is).
find_near() {
  local gpu=$1 list other other_list rounds i
  line_of list "$sysfs/bus/pci/devices/${gpus[gpu]}/local_cpulist"
  expand near "$list"
  sharers=0 turn=0
  for i in "${!gpus[@]}"; do
    line_of other_list "$sysfs/bus/pci/devices/${gpus[i]}/local_cpulist"
    [[ $other_list == "$list" ]] || continue
    (( i != gpu )) || turn=$sharers
    sharers=$(( sharers + 1 ))
  done
  # Ranks in excess of GPUs share these.
  other=${#visible[@]}
  (( other < local_ranks )) || return 0
  (( other > 1 )) || return 0  # one each, from the scheduler
  rounds=$(( (local_ranks + other - 1) / other ))
  turn=$(( turn * rounds + local_rank / other ))
  sharers=$(( sharers * rounds ))
}

# is_narrower: whether the parent may use all of this process's CPUs, and more.
is_narrower() {
  local cpu own parent
  expand own "$allowed"
  expand parent "$(mask_of "$PPID")"
  (( ${#own[@]} < ${#parent[@]} )) || return 1
  for cpu in "${own[@]}"; do [[ " ${parent[*]} " == *" $cpu "* ]] || return 1; done
}

# narrow: sets chosen (CPUs) from allowed and near, and why when nothing is changed.
narrow() {
  local -A is_near=()
  local cpu share take pool=() whose=${gpu:+near the GPU}
  chosen=() why=''
  for cpu in "${near[@]}"; do is_near[$cpu]=yes; done
  for cpu in "${allowed_cpus[@]}"; do [[ -z ${is_near[$cpu]:-} ]] || pool+=("$cpu"); done
  find_cores "${pool[@]}"
  if [[ $mask == own ]]; then
    share=${#cores[@]} turn=0
  else
    share=$(( ${#cores[@]} / sharers ))
  fi
  if [[ -n $gpu ]] && (( ${#cores[@]} == 0 )); then
    why="none of them is near the GPU"
  elif (( share < cores_needed )); then
    whose=${whose:-that the ranks may use}
    why="its share of the cores $whose would be $share, and it needs $cores_needed (--cores)"
  else
    take=$share
    [[ $ignore_gpus == no ]] || take=$cores_needed
    # shellcheck disable=SC2206  # an element lists the CPUs of one core
    chosen=(${cores[@]:turn * share:take})
    return
  fi
  chosen=("${allowed_cpus[@]}")
}

# place: everything about $local_rank; sets gpu (a position in gpus, or empty), chosen, nic and line.
place() {
  local numa
  gpu='' nic=''
  if (( ${#visible[@]} > 0 )); then
    gpu=${visible[local_rank % ${#visible[@]}]}
    find_near "$gpu"
    find_nic "$gpu"
    line_of numa "$sysfs/bus/pci/devices/${gpus[gpu]}/numa_node"
    line="GPU $(( local_rank % ${#visible[@]} )) at ${gpus[gpu]}, NUMA node $numa"
  else
    near=("${cpu_order[@]}") sharers=$local_ranks turn=$local_rank
    line="no GPU"
  fi
  narrow
  find_cores "${chosen[@]}"
  line="$line, CPUs $(list_of "${chosen[@]}"), cores: ${#cores[@]}${nic:+, adapter $nic}"
  line="rank ${rank:-$local_rank} (local $local_rank of $local_ranks) on ${HOSTNAME%%.*}: $line"
  [[ -z $why ]] || line="$line (left as it was: $why)"
}

# ranks_of_node LIST NODE: Slurm writes 1,8(x3) for a node with one rank and three with 8.
ranks_of_node() {
  local part times left
  left=$(count_or_none_of SLURM_NODEID "$2") || exit
  for part in ${1//,/ }; do
    [[ $part =~ ^[0-9]+(\(x([1-9][0-9]{0,6})\))?$ ]] || break
    times=${BASH_REMATCH[2]:-1}
    if (( left < times )); then
      printf '%s\n' "${part%%(*}"
      return
    fi
    left=$(( left - times ))
  done
  printf '%s\n' "$1"
}

rank=$(first_of "${OMPI_COMM_WORLD_RANK:-}" "${PMI_RANK:-}" "${PALS_RANKID:-}" "${SLURM_PROCID:-}")
[[ -n $local_rank ]] || local_rank=$(first_of "${OMPI_COMM_WORLD_LOCAL_RANK:-}" \
  "${MPI_LOCALRANKID:-}" "${MV2_COMM_WORLD_LOCAL_RANK:-}" "${PALS_LOCAL_RANKID:-}" \
  "${SLURM_LOCALID:-}")
[[ -n $local_ranks ]] || local_ranks=$(first_of "${OMPI_COMM_WORLD_LOCAL_SIZE:-}" \
  "${MPI_LOCALNRANKS:-}" "${MV2_COMM_WORLD_LOCAL_SIZE:-}" "${PALS_LOCAL_SIZE:-}" \
  "${SLURM_STEP_TASKS_PER_NODE:-}")
[[ $local_ranks != *[\(,]* ]] || local_ranks=$(ranks_of_node "$local_ranks" "${SLURM_NODEID:-0}")
[[ -z $local_ranks ]] || local_ranks=$(count_of --local-ranks "$local_ranks")
[[ -z $local_rank ]] || local_rank=$(count_or_none_of --local-rank "$local_rank")
[[ -n $local_ranks && ( -n $local_rank || $print == yes ) ]] ||
  fail "no launcher says which rank of its node this is: start bind.sh by mpirun or srun"

gpus=() uuids=() visible=()
if [[ $ignore_gpus == no ]]; then
  find_gpus
  find_visible
fi
find_cpus
if [[ -n $allowed ]]; then
  [[ $allowed =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] ||
    fail "--cpus needs CPUs such as 0-7,16, not '$allowed'"
  [[ $mask != auto ]] || mask=shared
else
  allowed=$(mask_of self)
  if [[ $mask == auto ]]; then
    mask=shared
    ! is_narrower || mask=own
  fi
fi
expand allowed_cpus "$allowed"

if [[ -z $local_rank ]]; then
  for (( local_rank = 0; local_rank < local_ranks; ++local_rank )); do
    place
    printf '%s\n' "$line"
  done
  exit 0
fi
place
if [[ $print == yes ]]; then
  printf '%s\n' "$line"
  exit 0
fi
say "$line"

export CUDA_DEVICE_ORDER=${CUDA_DEVICE_ORDER:-PCI_BUS_ID}  # else the map may number GPUs otherwise
if [[ $set_visible == yes && -n $gpu ]]; then
  export CUDA_VISIBLE_DEVICES=${uuids[gpu]:-$gpu}
fi
if [[ $set_nic == yes && -n $nic ]]; then
  export UCX_NET_DEVICES=${UCX_NET_DEVICES:-$nic}
fi
list=$(list_of "${chosen[@]}")
if [[ -n $why || $list == "$(list_of "${allowed_cpus[@]}")" ]]; then
  exec "$@"
elif command -v taskset >/dev/null; then
  exec taskset -c "$list" "$@"
elif command -v numactl >/dev/null; then
  exec numactl --physcpubind="$list" "$@"
elif command -v hwloc-bind >/dev/null; then
  exec hwloc-bind --physical "pu:${list//,/ pu:}" -- "$@"
fi
say "neither taskset, numactl nor hwloc-bind is here: the rank stays on CPUs $allowed"
exec "$@"
