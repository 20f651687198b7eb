#!/bin/sh
# A conversion whose rounding is computed in parts: edit its command. parallel.sh, slurm.sh, mpi.sh and kubernetes.yaml start it so:
#
#   sh rounding.sh part I N     rounds part I of N of the layers, counted from 0
#   sh rounding.sh merge N      converts with what the N parts have rounded
#
# Here the work is divided, and not the samples: each part, and the merge, reads all of them, from files that every machine sees. THREADS: the threads of a
# part [default: all processors].
set -eu
parts=rounding.parts

convert() { # with the options of a part or of the merge
    qconvert model.onnx --data 'train/*.tar' --preprocess imagenet --samples 64 ${THREADS:+--threads "$THREADS"} "$@"
}

part() {
    convert --shard "$1/$2" -o "$parts/$1.round"
}

merge() {
    convert "$@" -o model.int8.onnx
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
        set -- "$@" --rounding-file "$parts/$i.round"
        i=$((i + 1))
    done
    merge "$@"
    ;;
*)
    echo "usage: $0 part I N | merge N" >&2
    exit 2
    ;;
esac
