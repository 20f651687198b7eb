/* Keeps and restores the decisions of a job, those of the graphs that its nodes hold included. */
#include "quant/job/decisions.h"

#include "quant/job/records.h"
#include "quant/weights/constants.h"

#include <string.h>

oct_status oct_decisions_keep(const oct_qjob *j, oct_arena *a, oct_decisions *d, oct_err *err)
{
    const oct_constraints *l = &j->constraints;
    d->node = oct_arena_memdup(a, j->node, (j->n_nodes + 1) * sizeof *j->node);
    d->constants = oct_arena_memdup(a, j->constants, (j->n_nodes + 1) * sizeof *j->constants);
    d->value = oct_arena_memdup(a, j->value, (j->n_values + 1) * sizeof *j->value);
    d->constraint = l->n ? oct_arena_memdup(a, l->v, l->n * sizeof *l->v) : NULL;
    d->n_constraints = l->n;
    d->moved = j->moved;
    d->moved_channels = j->moved_channels;
    d->body = oct_arena_calloc(a, j->n_body + 1, sizeof *d->body);
    if (!d->node || !d->constants || !d->value || (!d->constraint && l->n) || !d->body)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(oct_decisions_keep(j->body[i].job, a, &d->body[i], err));
    return OCT_OK;
}

oct_status oct_decisions_restore(oct_qjob *j, const oct_decisions *d, oct_err *err)
{
    memcpy(j->node, d->node, j->n_nodes * sizeof *j->node);
    memcpy(j->constants, d->constants, j->n_nodes * sizeof *j->constants);
    memcpy(j->value, d->value, j->n_values * sizeof *j->value);
    j->moved = d->moved;
    j->moved_channels = d->moved_channels;
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(oct_decisions_restore(j->body[i].job, &d->body[i], err));
    return oct_constraints_set(&j->constraints, d->constraint, d->n_constraints, err);
}

const oct_decisions *oct_decisions_of(const oct_qjob *j, const oct_decisions *d, const oct_qjob *of)
{
    const oct_decisions *found = j == of ? d : NULL;
    for (size_t i = 0; i < j->n_body && !found; i++)
        found = oct_decisions_of(j->body[i].job, &d->body[i], of);
    return found;
}

oct_scheme oct_kept_scheme(const oct_decisions *d, int node)
{
    return d->node[node].scheme;
}

const oct_policy_row *oct_kept_row(const oct_decisions *d, int node)
{
    return &d->node[node].row;
}

bool oct_kept_quantized(const oct_decisions *d, int node)
{
    const qnode *q = &d->node[node];
    return !q->absorbed && (q->scheme == OCT_SCHEME_STATIC || q->scheme == OCT_SCHEME_DYNAMIC || q->rounds);
}
