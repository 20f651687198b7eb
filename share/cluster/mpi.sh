#!/bin/sh
# Computes a job in N parts, one a rank of MPI, and joins them. (The programs send no messages: mpirun starts them and tells each its rank.)
#
#   sh mpi.sh N JOB [OPTION...]      sh mpi.sh 64 calibrate.sh --hostfile machines
#
# OPTIONs are those of mpirun (Open MPI, MPICH, Intel MPI). Each part has THREADS threads [default: 1].
# When a rank fails, mpirun ends the others, nothing is joined, and the whole is to be started again.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 N JOB [OPTION...]" >&2; exit 2; }
n=$1 job=$2
shift 2

# shellcheck disable=SC2016
mpirun "$@" -n "$n" sh -c 'THREADS=$3 exec sh "$1" part "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" "$2"' rank "$job" "$n" "${THREADS:-1}"
sh "$job" merge "$n"
