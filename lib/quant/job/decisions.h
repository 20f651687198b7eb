/* lib/quant/job/decisions.h -- the decisions of a job, kept and restored. */
#ifndef OCT_QUANT_DECISIONS_H
#define OCT_QUANT_DECISIONS_H

#include "quant/job/scope.h"

/* What a trial may change. The objects that these refer to are not changed. */
typedef struct oct_decisions {
    struct qnode *node;
    struct qconstants *constants;
    struct qvalue *value;
    oct_constraint *constraint;
    size_t n_constraints;
    double **moved;
    size_t *moved_channels;
    struct oct_decisions *body; /* of each of the job's subgraphs */
} oct_decisions;

/* Copies the decisions of a job and of its subgraphs into the arena. */
oct_status oct_decisions_keep(const oct_qjob *j, oct_arena *a, oct_decisions *d, oct_err *err);
oct_status oct_decisions_restore(oct_qjob *j, const oct_decisions *d, oct_err *err);

/* Those of a job in a body, or of the job itself. */
const oct_decisions *oct_decisions_of(const oct_qjob *j, const oct_decisions *d, const oct_qjob *of);

/* What was kept of a node; as oct_scheme_of, oct_row_of and oct_rounds_inputs. */
oct_scheme oct_kept_scheme(const oct_decisions *d, int node);
const oct_policy_row *oct_kept_row(const oct_decisions *d, int node);
bool oct_kept_quantized(const oct_decisions *d,
                        int node); /* it ran on integers, dynamic ones too, or between quantizers */

#endif
