/* lib/quant/job/decisions.h -- the decisions of a job, kept and restored. */
#ifndef OCT_QUANT_DECISIONS_H
#define OCT_QUANT_DECISIONS_H

#include "quant/job/job.h"

/* What a trial may change. The objects that these refer to are not changed. */
typedef struct oct_decisions {
    qnode *node;
    qvalue *value;
    oct_constraint *constraint;
    size_t n_constraints;
    double **moved;
    size_t *moved_channels;
} oct_decisions;

/* Copies the decisions of a job, without its subgraphs', into the arena. */
oct_status oct_decisions_keep(const oct_qjob *j, oct_arena *a, oct_decisions *d, oct_err *err);
oct_status oct_decisions_restore(oct_qjob *j, const oct_decisions *d, oct_err *err);

#endif
