# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts of this folder share; sourced, not run. Everything for people goes to standard
# error.

launch_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '%s\n' "$*" >&2; }

# fail MESSAGE: nothing was measured or tested.
fail() {
  say "error: $*"
  exit 2
}

# count_of NAME VALUE: prints the value of an option or variable, which must be a number from 1 on:
# arithmetic takes anything else for a variable's name, and runs what stands in its brackets.
count_of() {
  [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || fail "$1 needs a number from 1 on, not '$2'"
  printf '%s\n' "$2"
}

# count_or_none_of NAME VALUE: the same of a number from 0 on.
count_or_none_of() {
  [[ $2 == 0 || $2 =~ ^[1-9][0-9]{0,6}$ ]] || fail "$1 needs a number from 0 on, not '$2'"
  printf '%s\n' "$2"
}

# value_of OPTION VALUE...: prints the value that must follow an option.
value_of() {
  [[ $# -ge 2 ]] || fail "$1 needs a value"
  printf '%s\n' "$2"
}

# quoted WORD...: the words on one line, as a shell would read them again.
quoted() {
  local word line=
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
    line+=" $word"
  done
  printf '%s\n' "${line# }"
}

# find_program [FILE]: prints which isoscale is meant: FILE, else $ISOSCALE, else the one of this
# checkout or of this installation, else the one in PATH.
find_program() {
  local chosen=${1:-${ISOSCALE:-}} candidate
  if [[ -n $chosen ]]; then
    command -v -- "$chosen" >/dev/null || fail "there is no program '$chosen' (--program, ISOSCALE)"
    realpath -- "$(command -v -- "$chosen")"
    return
  fi
  for candidate in "$launch_folder/../build/isoscale" "$launch_folder/../../../bin/isoscale"; do
    if [[ -x $candidate ]]; then
      realpath -- "$candidate"
      return
    fi
  done
  command -v isoscale ||
    fail "isoscale is neither built here nor in PATH: name it with --program FILE or ISOSCALE=FILE"
}

# quota_cores PROC SYS: whole cores that the CPU quota of this process's cgroup and of those above it
# leaves, version 1 or 2, at least 1; nothing where there is no quota.
quota_cores() {
  local controllers path mount mounts folder quota period cores least=''
  while IFS=: read -r _ controllers path; do
    case ,$controllers, in
      ,,) mounts=("$2/fs/cgroup" "$2/fs/cgroup/unified") ;;
      *,cpu,*) mounts=("$2/fs/cgroup/$controllers" "$2/fs/cgroup/cpu") ;;
      *) continue ;;
    esac
    for mount in "${mounts[@]}"; do
      folder=$mount${path%/}
      while [[ $folder == "$mount"* ]]; do  # in a container the named folder may not be visible
        quota='' period=''
        if [[ -r $folder/cpu.max ]]; then
          read -r quota period <"$folder/cpu.max" || true
        else
          line_of quota "$folder/cpu.cfs_quota_us"
          line_of period "$folder/cpu.cfs_period_us"
        fi
        folder=${folder%/*}
        [[ $quota =~ ^[1-9][0-9]*$ && $period =~ ^[1-9][0-9]*$ ]] || continue
        cores=$(( quota / period ))
        (( cores > 0 )) || cores=1
        [[ -n $least ]] && (( least < cores )) || least=$cores
      done
    done
  done < <(cat "$1/self/cgroup" 2>/dev/null)
  [[ -z $least ]] || printf '%s\n' "$least"
}

# Hardware threads that this process may use.
thread_count() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }  # else it says those of OpenMP

# Cores that this process may use, by its affinity and its cgroup's quota; hardware threads of one
# core count once, as MPI counts them.
core_count() {
  local allowed physical quota
  allowed=$(thread_count)
  physical=$(lscpu --parse=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l) || physical=0
  quota=$(quota_cores /proc "${ISOSCALE_SYSFS:-/sys}")
  (( physical == 0 || physical >= allowed )) || allowed=$physical
  [[ -z $quota ]] || (( quota >= allowed )) || allowed=$quota
  printf '%s\n' "$allowed"
}

# Hardware threads of a core here: 1, or 2 with hyper-threading.
threads_of_core() {
  local siblings
  siblings=$(lscpu --parse=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort | uniq -c |
    awk '$1 > most { most = $1 } END { print most }') || siblings=1
  printf '%s\n' "${siblings:-1}"
}

# line_of VARIABLE FILE: the file's first line, or nothing; without a process of its own.
line_of() {
  printf -v "$1" '%s' ''
  [[ ! -r $2 ]] || read -r "${1?}" <"$2" || true
}

# Sets visible: positions in the arrays gpus and uuids that CUDA_VISIBLE_DEVICES leaves, in its order.
find_visible() {
  local entry i found
  visible=("${!gpus[@]}")
  [[ -n ${CUDA_VISIBLE_DEVICES+set} ]] || return 0
  visible=()
  for entry in ${CUDA_VISIBLE_DEVICES//,/ }; do
    found=''
    for i in "${!gpus[@]}"; do
      [[ $entry != "$i" && ( -z ${uuids[i]} || ${uuids[i]} != "$entry"* ) ]] || found=$i
    done
    [[ -n $found ]] || return 0  # as CUDA: what follows an unknown entry is invisible
    visible+=("$found")
  done
}

# expand ARRAY LIST: 0-2,8 becomes (0 1 2 8). What is no number or range is left out: arithmetic
# would run it.
expand() {
  local -n expanded=$1
  local part cpu
  expanded=()
  for part in ${2//,/ }; do
    [[ $part =~ ^[0-9]{1,6}(-[0-9]{1,6})?$ ]] || continue
    for (( cpu = ${part%-*}; cpu <= ${part#*-}; ++cpu )); do expanded+=("$cpu"); done
  done
}

# list_of CPU...: (0 1 2 8) becomes 0-2,8; the numbers in any order.
list_of() {
  local cpu first='' last='' list=''
  for cpu in $(printf '%s\n' "$@" | sort -n) end; do
    if [[ -n $last && $cpu == $(( last + 1 )) ]]; then
      last=$cpu
      continue
    fi
    [[ -z $first ]] || { list+=,$first && [[ $first == "$last" ]] || list+=-$last; }
    first=$cpu last=$cpu
    [[ $cpu != end ]] || break
  done
  list=${list#,}
  printf '%s\n' "${list//,-/-}"
}

# resume FILE ARGUMENT...: sets run to the command that measures what the run file lacks. The file
# has the settings; of the first start's arguments, isoscale takes those here beside --resume.
resume() {
  run=(run --resume "$1")
  shift
  while [[ $# -gt 0 ]]; do
    case $1 in
      --allow | --budget)
        run+=("$1" "$(value_of "$@")")
        shift
        ;;
      --allow=* | --budget=* | --quiet | --quiet=*) run+=("$1") ;;
    esac
    shift
  done
}

# option_of NAMES ARGUMENT...: prints the value of the last option that is one of NAMES ("--a|--b").
option_of() {
  local names=$1 value=''
  shift
  while [[ $# -gt 0 ]]; do
    if [[ "|$names|" == *"|${1%%=*}|"* ]]; then
      if [[ $1 == *=* ]]; then value=${1#*=}; else value=${2:-}; fi
    fi
    shift
  done
  printf '%s\n' "$value"
}

# hang_since TIME ARGUMENT...: prints the file in which the run of these arguments of isoscale, begun
# at TIME, told of a hang; nothing if there is none. Where no option names the run file, it is the
# newest one here.
hang_since() {
  local since=$1 file
  shift
  file=$(option_of '--output|--resume' "$@")
  if [[ -n $file ]]; then
    find "$(realpath -m -- "$file").hang.json" -newermt "@$since" 2>/dev/null || true
  else
    find . -maxdepth 1 -name '*.hang.json' -newermt "@$since" -printf '%T@ %p\n' |
      sort -n | sed -n '$s/^[^ ]* //p'
  fi
}

# run_past_hangs LAUNCH ARGUMENTS: of these two arrays, runs the command that is the first with the
# second, the arguments of isoscale. After a hang (exit code 4) it resumes the run, at most as often as
# the first hang left points. Sets status.
run_past_hangs() {
  local -n launch_words=$1 first_words=$2
  local begun hang left='' tries=0
  run=("${first_words[@]}")
  while true; do
    begun=$(date +%s)
    run_forwarding "${launch_words[@]}" "${run[@]}"
    (( status == 4 )) || return 0
    hang=$(hang_since "$begun" "${run[@]}")
    [[ -n $hang && -e ${hang%.hang.json} ]] || return 0
    [[ -n $left ]] || left=$(sed -n 's/^ *"left": \([0-9]\{1,6\}\),*$/\1/p' "$hang")
    (( tries < ${left:-0} )) || return 0
    tries=$(( tries + 1 ))
    resume "${hang%.hang.json}" "${first_words[@]}"
    say "resumes after a hang, $tries of at most $left times: isoscale $(quoted "${run[@]}")"
  done
}

# run_forwarding COMMAND...: runs it in a process group of its own, so that a signal reaches it once, by
# way of this script, and kills it where this script is killed. Sets status.
run_forwarding() {
  local child signal ended=no tied=()
  ! setpriv --pdeathsig KILL true 2>/dev/null || tied=(setpriv --pdeathsig KILL)
  set -m
  "${tied[@]}" "$@" </dev/null &
  child=$!
  set +m
  # shellcheck disable=SC2064  # the child is known now
  for signal in TERM INT USR1 HUP; do
    trap "kill -$signal $child 2>/dev/null || true" "$signal"
  done
  while [[ $ended == no ]]; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || ended=yes  # a trapped signal ends the wait before the child ends
  done
  trap - TERM INT USR1 HUP
}

# refuse_wrong_timeout: what timeout does not take ends a job before anything starts.
refuse_wrong_timeout() {
  [[ ${ISOSCALE_TIMEOUT:-0} =~ ^[0-9]+(\.[0-9]+)?[smhd]?$ ]] ||
    fail "ISOSCALE_TIMEOUT needs a time such as 90s, 20m or 2h, not '$ISOSCALE_TIMEOUT'"
}

# run_to_the_end COMMAND...: runs it, and ends it in order when the job's time is nearly up (USR1,
# TERM) or after ISOSCALE_TIMEOUT; sets ended_by (empty: it ended by itself) and status. The run
# file is complete after every point, so nothing but the point under way is lost.
# shellcheck disable=SC2034  # what it sets is for the caller
run_to_the_end() {
  local child signalled=yes
  ended_by='' status=0
  # In the foreground: else timeout signals mpirun twice, which Open MPI takes for impatience.
  timeout --foreground -k 30 "${ISOSCALE_TIMEOUT:-0}" "$@" &
  child=$!
  trap 'ended_by=USR1 signalled=yes; kill -TERM "$child" 2>/dev/null || true' USR1
  trap 'ended_by=TERM signalled=yes; kill -TERM "$child" 2>/dev/null || true' TERM INT
  while [[ $signalled == yes ]]; do
    signalled=no status=0
    wait "$child" || status=$?  # a trapped signal ends it before the child does
  done
  trap - USR1 TERM INT
}
