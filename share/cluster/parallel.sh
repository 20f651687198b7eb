#!/bin/sh
# Computes a job in N parts on this machine, or on those of GNU parallel's --sshloginfile, and joins them.
#
#   sh parallel.sh N JOB [OPTION...]      sh parallel.sh 8 calibrate.sh --jobs 4
#
# OPTIONs are those of GNU parallel. As many parts run at a time as there are processors, each with THREADS threads [default: 1].
# parallel.log lists the parts with their times and exit codes; "--resume-failed" computes those again that failed.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 N JOB [OPTION...]" >&2; exit 2; }
n=$1 job=$2
shift 2

seq 0 $((n - 1)) |
    parallel --joblog parallel.log --retries 3 --halt soon,fail=1 "$@" env THREADS="${THREADS:-1}" sh "$job" part '{}' "$n"
sh "$job" merge "$n"
