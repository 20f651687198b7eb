#!/bin/sh
# A calibration that is computed in parts: edit its two commands. parallel.sh, slurm.sh, mpi.sh and kubernetes.yaml start it so:
#
#   sh calibrate.sh part I N     computes part I of N, counted from 0
#   sh calibrate.sh merge N      joins the N parts
#
# Files are named from the folder it is started in, which every machine sees. THREADS: the threads of a part [default: all processors].
# A part that is started again goes on from its checkpoint, which lies beside its table: see --resume in qcalib(1).
set -eu
parts=calibrate.parts

part() {
    qcalib model.onnx --data 'train/*.tar' --preprocess imagenet \
        ${THREADS:+--threads "$THREADS"} --shard "$1/$2" --resume -o "$parts/$1.calib"
}

merge() {
    qcalib merge "$@" -o model.calib
}

case ${1-}/$# in
part/3)
    mkdir -p "$parts"
    part "$2" "$3"
    ;;
merge/2) # these parts and no others: the folder may hold more of an earlier run
    n=$2 i=0
    set --
    while [ "$i" -lt "$n" ]; do
        set -- "$@" "$parts/$i.calib"
        i=$((i + 1))
    done
    merge "$@"
    ;;
*)
    echo "usage: $0 part I N | merge N" >&2
    exit 2
    ;;
esac
