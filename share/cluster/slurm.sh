#!/bin/sh
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=02:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Computes a job in N parts as an array of Slurm, and joins them in a second job that waits for the first. The lines above are of both.
#
#   sh slurm.sh N JOB                         sh slurm.sh 64 calibrate.sh
#   sbatch --array=3,5 slurm.sh N JOB part    computes parts 3 and 5 again
#   sbatch slurm.sh N JOB merge               joins what is there
#
# Start it in a folder that all nodes see.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 N JOB [part|merge]" >&2; exit 2; }
n=$1 job=$2
export THREADS="${SLURM_CPUS_PER_TASK-}"

case ${3-submit} in
submit)
    array=$(sbatch --parsable --job-name="$job" --array="0-$((n - 1))" "$0" "$n" "$job" part)
    echo "parts: job $array"
    merge=$(sbatch --parsable --job-name="$job" --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes "$0" "$n" "$job" merge)
    echo "merge: job $merge"
    ;;
part)
    code=0
    sh "$job" part "$SLURM_ARRAY_TASK_ID" "$n" || code=$?
    # Slurm starts the tasks of a lost node again by itself, but none that ended badly. A part that could not read a file (exit 3), had no
    # memory (7) or was killed gets two more tries; any other error would come again.
    if { [ "$code" -eq 3 ] || [ "$code" -eq 7 ] || [ "$code" -gt 128 ]; } && [ "${SLURM_RESTART_COUNT:-0}" -lt 2 ]; then
        scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
    fi
    exit "$code"
    ;;
merge)
    sh "$job" merge "$n"
    ;;
*)
    echo "$0: '$3' is neither part nor merge" >&2
    exit 2
    ;;
esac
