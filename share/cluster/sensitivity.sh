#!/bin/sh
# A measurement of sensitivities that is computed in parts: edit its two commands. parallel.sh, slurm.sh, mpi.sh and kubernetes.yaml start it so:
#
#   sh sensitivity.sh part I N     computes part I of N, counted from 0
#   sh sensitivity.sh merge N      joins the N parts
#
# Here the work is divided, and not the samples: each part, and the merge, reads all of them, from files that every machine sees. THREADS: the threads of a
# part [default: all processors]. A part that is started again goes on from the measurements that it has kept.
set -eu
parts=sensitivity.parts

part() {
    qeval model.onnx model.int8.onnx --data 'val/*.tar' --preprocess imagenet --samples 64 --sensitivity \
        ${THREADS:+--threads "$THREADS"} --shard "$1/$2" --sensitivity-file "$parts/$1.kept" -o "$parts/$1.part"
}

merge() {
    qeval merge "$@" --json sensitivity.json
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
        set -- "$@" "$parts/$i.part"
        i=$((i + 1))
    done
    merge "$@"
    ;;
*)
    echo "usage: $0 part I N | merge N" >&2
    exit 2
    ;;
esac
