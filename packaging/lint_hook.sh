#!/bin/sh
# For .pre-commit-hooks.yaml: qconvert lint --strict for each model.
#
#   lint_hook.sh [TARGET] -- MODEL...
#
# Exit: 1 when a model does not fit, after all were looked at; the status of any other fault at once.
target='' missed=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    target=$1
    shift
done
[ $# = 0 ] || shift
for model in "$@"; do
    qconvert lint "$model" --strict --quiet ${target:+--target "$target"}
    status=$?
    case $status in 0) ;; 1) missed=1 ;; *) exit $status ;; esac
done
exit $missed
