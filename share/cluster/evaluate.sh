#!/bin/sh
# An evaluation that is computed in parts: edit its two commands. parallel.sh, slurm.sh, mpi.sh and kubernetes.yaml start it so:
#
#   sh evaluate.sh part I N     computes part I of N, counted from 0
#   sh evaluate.sh merge N      joins the N parts
#
# Files are named from the folder it is started in, which every machine sees. THREADS: the threads of a part [default: all processors].
set -eu
parts=evaluate.parts

part() {
    qeval model.onnx model.int8.onnx --data 'val/*.tar' --preprocess imagenet --layers \
        ${THREADS:+--threads "$THREADS"} --shard "$1/$2" -o "$parts/$1.part"
}

merge() {
    qeval merge "$@" --json report.json
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
