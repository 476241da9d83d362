#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
#
# A PBS job (OpenPBS, PBS Professional) that measures:
#
#   qsub -l select=4:ncpus=64:mpiprocs=8[:ngpus=8] -l walltime=00:30:00 [QSUB OPTION...] \
#     -- "$PWD/launch/pbs.sh" --workload dp,tp,pp --model gpt-1.3b [OPTION OF isoscale run...]
#
# Variables, all optional (qsub -v NAME=VALUE,...):
#   ISOSCALE            the program (default: this build's or installation's, then PATH)
#   ISOSCALE_OUTPUT     the run file (default: isoscale-JOB.h5 in the folder of qsub)
#   ISOSCALE_MPIRUN     options of launch/mpirun.sh, such as "--gpus 8"
#   ISOSCALE_TIMEOUT    end the run after this time, such as 20m, and with KILL 30 s after that
#   ISOSCALE_ARGUMENTS  options of isoscale run, for a qsub that knows no "--" (Torque):
#                       qsub -v ISOSCALE_ARGUMENTS=...,ISOSCALE_LAUNCH=$PWD/launch launch/pbs.sh
#   ISOSCALE_LAUNCH     the folder of this script, where qsub runs a copy of it
#
# At the time limit PBS sends TERM and the run is ended; its file holds every finished point.
# A job that PBS runs again (qsub -r y) runs the points that are missing.
#PBS -N isoscale
#PBS -j oe
#PBS -r y
set -euo pipefail

launch=${ISOSCALE_LAUNCH:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
[[ -e $launch/common.sh ]] || {
  echo "error: common.sh is not in '$launch': set ISOSCALE_LAUNCH to the folder of pbs.sh" >&2
  exit 2
}
# shellcheck source=launch/common.sh
source "$launch/common.sh"
[[ -n ${PBS_JOBID:-} ]] || fail "this is a batch script: qsub [QSUB OPTION...] -- $0"
[[ -d ${PBS_O_WORKDIR:-} ]] || fail "PBS_O_WORKDIR is not a folder: '${PBS_O_WORKDIR:-}'"
[[ -r ${PBS_NODEFILE:-} ]] || fail "PBS_NODEFILE cannot be read: '${PBS_NODEFILE:-}'"
refuse_wrong_timeout

cd "$PBS_O_WORKDIR"
read -ra mpirun_options <<<"${ISOSCALE_MPIRUN:-}"
read -ra more <<<"${ISOSCALE_ARGUMENTS:-}"
output=${ISOSCALE_OUTPUT:-$PBS_O_WORKDIR/isoscale-${PBS_JOBID%%.*}.h5}
starts=$(qstat -f "$PBS_JOBID" 2>/dev/null | sed -n 's/^ *run_count = //p') || true
starts=$(count_or_none_of run_count "${starts:-1}")
run=(run --output "$output" "$@" "${more[@]}")
if (( starts > 1 )) && [[ -e $output ]]; then
  resume "$output" "$@" "${more[@]}"
fi

# Not every mpirun knows of PBS; the file names a node once per rank.
hosts=$(sort -u "$PBS_NODEFILE" | paste -sd ,)
say "job $PBS_JOBID on $hosts, start $starts"
run_to_the_end "$launch/mpirun.sh" --hostfile "$PBS_NODEFILE" "${mpirun_options[@]}" -- "${run[@]}"
[[ -z $ended_by ]] || say "ended by $ended_by: finished points are in $output"
exit "$status"
