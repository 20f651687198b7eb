#!/bin/sh
# A calibration on tar files of an object store: part I of N streams the files I, I + N, I + 2 N, ... and no others, and nothing is stored.
# Edit it down to the line below merge(). The engines start it as they do calibrate.sh:
#
#   sh streams.sh part I N     computes part I of N, counted from 0; N is at most the number of files
#   sh streams.sh merge N      joins the N parts
#
# A table names the commands that its samples came from: leave secrets in the environment. A transfer that ends early fails the part.
# A part that is started again fetches its files again, but computes only what its checkpoint lacks.
set -eu
parts=streams.parts
files=128 # train-000000.tar to train-000127.tar
fetch='curl --silent --show-error --fail --speed-limit 1000 --speed-time 60 https://storage.example/train-%06d.tar'
# fetch='aws s3 cp --no-progress s3://bucket/train-%06d.tar -'
# fetch='gcloud storage cat gs://bucket/train-%06d.tar'

part() { # $1: its file; the others: --data SPEC of each tar file
    table=$1
    shift
    qcalib model.onnx "$@" --preprocess imagenet ${THREADS:+--threads "$THREADS"} --resume -o "$table"
}

merge() {
    qcalib merge "$@" -o model.calib
}
# ---- end of what is edited ----

case ${1-}/$# in
part/3)
    mkdir -p "$parts"
    i=$2 n=$3
    set -- "$parts/$i.calib"
    while [ "$i" -lt "$files" ]; do
        # shellcheck disable=SC2059
        set -- "$@" --data "pipe:$(printf "$fetch" "$i")"
        i=$((i + n))
    done
    part "$@"
    ;;
merge/2)
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
