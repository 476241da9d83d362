#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# Starts isoscale on ranks that have cores of their own, and says how. Works with mpirun of Open MPI
# 4 and 5, MPICH and Intel MPI, and with srun; on one machine, on hosts, and in a job.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/common.sh
source "$here/common.sh"

usage() {
  cat <<TEXT
Usage: launch/mpirun.sh [OPTION...] [--] COMMAND [ARGUMENT...]

Runs 'isoscale COMMAND ARGUMENT...', such as 'run --workload dp,tp', on every rank.
  -n, -np RANKS          total number of ranks (default: ranks per node times nodes)
  --ranks-per-node N     (default: from the job, else ranks divided by nodes)
  --cores-per-rank C     (default: SLURM_CPUS_PER_TASK, else this node's cores divided by its
                         ranks); required for other hosts, except with --gpus
  --gpus N               N ranks per node, one per GPU: adds --device cuda, implies --bind gpu
  --hosts A,B,...        nodes to start on, outside of a job
  --hostfile FILE        the same from a file with one node per line
  --bind cores|gpu|none  bind each rank to its own cores (default), to cores near its GPU
                         (bind.sh), or not at all (default if there are more ranks than cores)
  --bind-option OPTION   option for bind.sh, such as --set-nic; may be repeated
  --launcher mpirun|srun (default: mpirun)
  --mpirun FILE          mpirun or mpiexec to use (default: mpirun in PATH)
  --srun-mpi TYPE        value of srun's --mpi (default: pmix or pmi2, if Slurm and the MPI have it)
  --launcher-option OPTION   additional word for mpirun or srun; may be repeated
  --program FILE         isoscale to run (default: ISOSCALE, this build's or installation's, PATH)
  --print                print the command and start nothing
After a hang (exit code 4) the run is resumed, at most once for each point that it left.
Exit codes: those of isoscale; 2 when nothing was started.
TEXT
}

ranks='' ranks_per_node='' cores='' gpus='' hosts='' hostfile='' bind='' launcher=mpirun
mpirun=mpirun srun_mpi='' program='' print=no
bind_options=() launcher_options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -n | -np) ranks=$(count_of "$1" "${2:-}"); shift ;;
    --ranks-per-node) ranks_per_node=$(count_of "$1" "${2:-}"); shift ;;
    --cores-per-rank) cores=$(count_of "$1" "${2:-}"); shift ;;
    --gpus) gpus=$(count_of "$1" "${2:-}"); shift ;;
    --hosts) hosts=$(value_of "$@"); shift ;;
    --hostfile) hostfile=$(value_of "$@"); shift ;;
    --bind) bind=$(value_of "$@"); shift ;;
    --bind-option) bind_options+=("$(value_of "$@")"); shift ;;
    --launcher) launcher=$(value_of "$@"); shift ;;
    --mpirun) mpirun=$(value_of "$@"); shift ;;
    --srun-mpi) srun_mpi=$(value_of "$@"); shift ;;
    --launcher-option) launcher_options+=("$(value_of "$@")"); shift ;;
    --program) program=$(value_of "$@"); shift ;;
    --print) print=yes ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    -*) fail "unknown option '$1'; see launch/mpirun.sh --help" ;;
    *) break ;;
  esac
  shift
done
[[ $# -gt 0 ]] || fail "say what to run, such as: launch/mpirun.sh -n 4 run --workload dp"
[[ $bind =~ ^(|cores|gpu|none)$ ]] || fail "--bind is cores, gpu or none, not '$bind'"
[[ $launcher =~ ^(mpirun|srun)$ ]] || fail "--launcher is mpirun or srun, not '$launcher'"
[[ -z $hostfile || -r $hostfile ]] || fail "the host file '$hostfile' cannot be read"
[[ -z $hosts || -z $hostfile ]] || fail "give --hosts or --hostfile, not both"
arguments=("$@")

# The hosts that options name, each once.
named_hosts() {
  if [[ -n $hosts ]]; then
    tr , '\n' <<<"$hosts" | sed 's/:.*//' | sort -u
  elif [[ -n $hostfile ]]; then
    sed 's/#.*//' "$hostfile" | awk 'NF { sub(/:.*/, "", $1); print $1 }' | sort -u
  fi
}

# refuse_strange_hosts: what is no host's name would be taken by ssh or mpirun for an option of theirs.
refuse_strange_hosts() {
  local host fix=''
  while read -r host; do
    [[ $host != *[][]* ]] || fix="; 'scontrol show hostnames LIST' prints those of a list"
    [[ $host =~ ^[A-Za-z0-9_]([A-Za-z0-9_.-]*)$ ]] ||
      fail "$(printf '%q' "$host") is not a host name (--hosts, --hostfile)$fix"
  done < <(named_hosts)
}

is_this_host() {
  [[ $1 == localhost || $1 == "$(hostname)" || $1 == "$(hostname -s)" ]]
}

# Whether the host file is PBS's own, of the job that this is.
is_file_of_job() { [[ -n $hostfile && $hostfile == "${PBS_NODEFILE:-}" ]]; }

# Whether ranks will be on this node, or on nodes of a job that this one is part of: else its cores
# say nothing of theirs.
is_node_of_ranks() {
  if [[ -n $hosts$hostfile ]] && ! is_file_of_job; then
    is_this_host "$(named_hosts)"
  else
    [[ -z ${SLURM_JOB_ID:-} || -n ${SLURMD_NODENAME:-} ]]  # salloc leaves its shell where it was
  fi
}

# The nodes that ranks will be on, as far as this script can know.
node_count() {
  if [[ -n $hosts$hostfile ]]; then
    named_hosts | wc -l
  elif [[ -n ${SLURM_JOB_NUM_NODES:-} ]]; then
    count_of SLURM_JOB_NUM_NODES "$SLURM_JOB_NUM_NODES"
  elif [[ -r ${PBS_NODEFILE:-} ]]; then
    sort -u "$PBS_NODEFILE" | wc -l
  else
    printf '1\n'
  fi
}

# Sets ranks and ranks_per_node where options did not.
resolve_ranks() {
  local nodes
  nodes=$(node_count)
  (( nodes > 0 )) || fail "the host file '${hostfile:-${PBS_NODEFILE:-}}' names no node"
  [[ -n $ranks_per_node ]] || ranks_per_node=$gpus
  if [[ -z $ranks_per_node && -z $ranks ]]; then
    if [[ -n ${SLURM_NTASKS:-} ]]; then
      ranks=$(count_of SLURM_NTASKS "$SLURM_NTASKS")
    elif [[ -r ${PBS_NODEFILE:-} ]]; then
      # A line for each of its mpiprocs.
      ranks=$(count_of "PBS_NODEFILE, by its lines," "$(wc -l <"$PBS_NODEFILE")")
    else
      fail "say how many ranks: -n RANKS, --ranks-per-node N or --gpus N"
    fi
  fi
  [[ -n $ranks_per_node ]] || ranks_per_node=$(( (ranks + nodes - 1) / nodes ))
  [[ -n $ranks ]] || ranks=$(( nodes * ranks_per_node ))
  (( ranks <= nodes * ranks_per_node )) ||
    fail "$ranks ranks are more than $nodes nodes hold at $ranks_per_node ranks per node"
}

# Sets bind, and cores, which stays empty where bind.sh shares out what each node has.
resolve_cores() {
  [[ -n $bind || -z $gpus ]] || bind=gpu
  if [[ -z $cores && -n ${SLURM_CPUS_PER_TASK:-} ]]; then
    cores=$(count_of SLURM_CPUS_PER_TASK "$SLURM_CPUS_PER_TASK")
    cores=$(( cores / slurm_threads ))
    (( cores > 0 )) || cores=1
  fi
  if [[ -z $cores && ( $launcher == srun || ! $bind =~ ^(gpu|none)$ ) ]]; then
    is_node_of_ranks ||
      fail "how many cores those nodes have is not known here: say --cores-per-rank C, a node's" \
        "cores divided by its ranks, or leave ranks unbound with --bind none"
    cores=$(( $(core_count) / ranks_per_node ))
    if (( cores == 0 )); then
      cores=1
      bind=${bind:-none}
    fi
  fi
  bind=${bind:-cores}
}

# Asks each host in the way that mpirun will go: a dead one would leave the others waiting, or end
# in a page of the MPI's own words.
refuse_dead_hosts() {
  local agent host dead=()
  local -A asked=()
  ! is_file_of_job || return 0  # PBS knows who is alive, and its mpirun may not need ssh at all
  [[ -z ${SLURM_JOB_ID:-} ]] || return 0  # so does Slurm, whose srun mpirun starts
  read -ra agent <<<"${OMPI_MCA_plm_rsh_agent:-ssh}"
  command -v -- "${agent[0]}" >/dev/null || return 0  # the MPI may know another way
  [[ ${agent[0]##*/} != ssh ]] || agent+=(-o BatchMode=yes -o ConnectTimeout=10)
  while read -r host; do
    ! is_this_host "$host" || continue
    timeout -k 5 20 "${agent[@]}" "$host" true </dev/null >/dev/null 2>&1 &
    asked[$host]=$!
  done < <(named_hosts)
  for host in "${!asked[@]}"; do
    wait "${asked[$host]}" || dead+=("$host")
  done
  (( ${#dead[@]} > 0 )) || return 0
  mapfile -t dead < <(printf '%s\n' "${dead[@]}" | sort)
  fail "no answer from ${dead[*]}: '${agent[*]} HOST true' must work without a password; mend" \
    "that, or leave the host out"
}

# Which MPI a program is linked to: openmpi, mpich (also Intel's and Cray's), missing, or unknown.
mpi_of_program() {
  case $(ldd "$1" 2>/dev/null || true) in
    *libmpi*"not found"*) printf 'missing\n' ;;
    *libmpi.so.40* | *libopen-pal* | *libopen-rte*) printf 'openmpi\n' ;;
    *libmpich.so* | *libmpi.so.12* | *libmpi_[a-z]*.so*) printf 'mpich\n' ;;
    *) printf 'unknown\n' ;;
  esac
}

# Which MPI mpirun belongs to: openmpi, mpich, intel, or unknown.
mpi_of_mpirun() {
  case $("$mpirun" --version 2>&1 || true) in
    *"Open MPI"* | *OpenRTE* | *PRRTE* | *prterun*) printf 'openmpi\n' ;;
    *"Intel(R) MPI"*) printf 'intel\n' ;;
    *HYDRA* | *MPICH* | *mpich*) printf 'mpich\n' ;;
    *) printf 'unknown\n' ;;
  esac
}

name_of() {
  case $1 in
    openmpi) printf 'Open MPI\n' ;;
    intel) printf 'Intel MPI\n' ;;
    *) printf 'MPICH\n' ;;
  esac
}

# Refuses a launcher whose processes would each believe that they are alone.
refuse_unlike() {
  local of_program=$1 of_mpirun=$2
  [[ $of_program != unknown && $of_mpirun != unknown ]] || return 0
  [[ $of_mpirun != intel ]] || of_mpirun=mpich  # one ABI
  [[ $of_program == "$of_mpirun" ]] ||
    fail "'$(command -v "$mpirun")' starts $(name_of "$2") programs, and '$program' is linked to" \
      "$(name_of "$of_program"): load the MPI module that isoscale was built with, or name its" \
      "launcher with --mpirun FILE"
}

# with_slots HOSTS: for Open MPI, where a host without a count has one slot.
with_slots() {
  local host list=
  for host in ${1//,/ }; do
    [[ $host == *:* ]] || host+=:$ranks_per_node
    list+=,$host
  done
  printf '%s\n' "${list#,}"
}

# Sets forwarded to Open MPI's words for the variables that a run on other hosts needs: over ssh it
# passes on its own and no other. By name and prefix, so that nobody's secrets travel along.
forward_environment() {
  local name
  forwarded=()
  [[ -n $hosts$hostfile ]] || return 0
  while read -r name; do
    case $name in
      PATH | LD_LIBRARY_PATH | LD_PRELOAD | HDF5_USE_FILE_LOCKING | \
        CUDA_* | NCCL_* | ISOSCALE_* | UCX_* | FI_* | \
        OMP_* | GOMP_* | KMP_* | OPENBLAS_* | GOTO_* | MKL_* | BLIS_*) forwarded+=(-x "$name") ;;
    esac
  done < <(compgen -e | sort)
}

# Whether Open MPI 5 may refuse the cores of a node's ranks: it gives no rank cores of two sockets.
may_need_two_sockets() {
  local threads total whole
  (( cores > 1 )) || return 1
  is_node_of_ranks || return 0
  read -r threads total whole < <(lscpu --parse=CORE,SOCKET 2>/dev/null | awk -F, -v "cores=$cores" '
    !/^#/ { ++threads; if (!seen[$0]++) ++size[$2] }
    END { for (socket in size) { total += size[socket]; whole += int(size[socket] / cores) }
          print threads + 0, total + 0, whole + 0 }')
  (( ranks_per_node * cores <= total )) || return 1  # Open MPI rightly refuses this
  # If this process may use only part of the node, the sockets of its cores are not known.
  (( whole < ranks_per_node || $(thread_count) < threads ))
}

# mpirun_command MPI: sets the array command.
mpirun_command() {
  command=("$mpirun" -n "$ranks")
  case $1 in
    openmpi)
      # Part of the command, so that what is shown works where it is pasted.
      [[ $(id -u) -ne 0 ]] ||
        command=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "${command[@]}")
      [[ -z $hosts ]] || command+=(--host "$(with_slots "$hosts")")
      [[ -z $hostfile ]] || command+=(--hostfile "$hostfile")
      forward_environment
      command+=("${forwarded[@]}")
      # Left alone, Open MPI binds a rank to one core, for all its streams.
      [[ $bind != cores ]] || ! may_need_two_sockets || bind=divided
      if [[ $bind == cores ]]; then
        command+=(--map-by "ppr:$ranks_per_node:node:PE=$cores" --bind-to core)
      else
        command+=(--map-by "ppr:$ranks_per_node:node:OVERSUBSCRIBE" --bind-to none)
      fi
      ;;
    mpich | intel)  # whose launcher passes on the whole environment
      command+=(-ppn "$ranks_per_node")
      [[ -z $hosts ]] || command+=(-hosts "$hosts")
      [[ -z $hostfile ]] || command+=(-f "$hostfile")
      if [[ $1 == intel && $bind == cores ]]; then
        is_node_of_ranks || say "Intel MPI counts hardware threads: taken to be $threads_per_core" \
          "to a core there, as here"
        command+=(-genv I_MPI_PIN_CELL core
                  -genv I_MPI_PIN_DOMAIN "$(( cores * threads_per_core )):compact")
      elif [[ $1 == intel ]]; then
        command+=(-genv I_MPI_PIN off)
      elif [[ $bind == cores ]]; then
        command+=(-bind-to "core:$cores")
      else
        command+=(-bind-to none)
      fi
      ;;
    *) say "'$mpirun' does not say which MPI it belongs to: where ranks go is left to it" ;;
  esac
}

# How ranks find each other under srun. Without it each would believe that it is alone.
srun_mpi_type() {
  local offered type
  local wanted=(pmix pmi2)
  [[ $1 != mpich ]] || wanted=(pmi2 pmix)
  offered=$(srun --mpi=list 2>&1) || fail "srun --mpi=list failed: $offered"
  for type in "${wanted[@]}"; do
    if grep -qw -- "$type" <<<"$offered"; then
      printf '%s\n' "$type"
      return
    fi
  done
  fail "this srun offers neither pmix nor pmi2 (srun --mpi=list), so that every rank would" \
    "believe that it is alone: use --launcher mpirun"
}

# srun_command MPI: sets the array command.
srun_command() {
  [[ -n $srun_mpi ]] || srun_mpi=$(srun_mpi_type "$1")
  [[ -z $hosts$hostfile ]] || fail "--hosts and --hostfile are mpirun's; srun uses the job's nodes"
  command=(srun "--mpi=$srun_mpi" -n "$ranks" "--ntasks-per-node=$ranks_per_node"
           "--cpus-per-task=$(( cores * slurm_threads ))")
  if [[ $bind == cores ]]; then
    command+=(--cpu-bind=cores)
  else
    command+=(--cpu-bind=none)
  fi
}

program=$(find_program "$program")
tool=$mpirun
[[ $launcher == mpirun ]] || tool=srun
if ! command -v -- "$tool" >/dev/null; then
  fix="install Open MPI or MPICH, load the site's MPI module, or name it with --mpirun FILE"
  [[ $launcher == mpirun ]] || fix="run this inside of a Slurm job, or use --launcher mpirun"
  fail "there is no '$tool' in PATH: $fix"
fi
of_program=$(mpi_of_program "$program")
[[ $of_program != missing ]] ||
  fail "'$program' does not find the MPI library that it was linked to: load that MPI's module" \
    "(ldd '$program' shows what is missing)"

refuse_strange_hosts
threads_per_core=$(threads_of_core)
slurm_threads=$threads_per_core  # what Slurm counts as CPUs of a core
[[ ${SLURM_HINT:-} != nomultithread && ${SLURM_THREADS_PER_CORE:-} != 1 ]] || slurm_threads=1
resolve_ranks
resolve_cores
if [[ $launcher == mpirun ]]; then
  of_mpirun=$(mpi_of_mpirun)
  refuse_unlike "$of_program" "$of_mpirun"
  mpirun_command "$of_mpirun"
else
  srun_command "$of_program"
fi
command+=("${launcher_options[@]}")
if [[ $bind == gpu || $bind == divided ]]; then
  [[ -z $cores ]] || bind_options=(--cores "$cores" "${bind_options[@]}")
  [[ $bind == gpu ]] || bind_options=(--ignore-gpus --cores "$cores")
  command+=("$here/bind.sh" "${bind_options[@]}" --)
fi
command+=("$program")
# A run that is resumed has its device in its file, and takes no other.
[[ -z $gpus || " ${arguments[*]} " == *" --"@(device|resume)[\ =]* ]] || arguments+=(--device cuda)

say "+ $(quoted "${command[@]}" "${arguments[@]}")"
[[ $print == no ]] || exit 0
refuse_dead_hosts
[[ ${arguments[0]} == run ]] || exec "${command[@]}" "${arguments[@]}"
run_past_hangs command arguments
exit "$status"
