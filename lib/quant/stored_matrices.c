/* Matrices of recurrent layers that compute on reals, since the target has no integer form of them or none that pays: stored in 8 bits with a scale a row, and made
 * real by operators of constants, which runtimes do once, as they load the model. */
#include "quant/job.h"

#include "eval/summary.h"
#include "forms/forms_write.h"

enum { LEAST = 1 << 12 }; /* values; what smaller matrices save is not worth the nodes */

static const oct_tensor *matrices(const oct_qjob *j, int node, int slot)
{
    const oct_node *n = &j->g->node[node];
    const oct_tensor *t = slot < n->n_in && n->in[slot] >= 0 ? j->g->value[n->in[slot]].constant : NULL;
    return t && t->data && t->dtype == OCT_F32 && t->rank == 3 ? t : NULL;
}

const char *oct_no_stored(const oct_qjob *j, int node)
{
    const oct_tensor *w = matrices(j, node, 1), *r = matrices(j, node, 2);
    if (!w || !r)
        return "its weights are not constants of float32";
    if (w->count + r->count < LEAST)
        return "its matrices are small";
    return oct_tensor_is_finite(w) && oct_tensor_is_finite(r) ? NULL : "its weights are not finite";
}

static bool is_stored(const oct_qjob *j, int node)
{
    const oct_op *op = oct_op_of(j->g, node);
    return op && op->quant == OCT_QUANT_RECURRENT && j->node[node].scheme == OCT_SCHEME_WEIGHT_ONLY;
}

oct_status oct_decide_stored(oct_qjob *j, int node, oct_err *err)
{
    qstored *x = j->node[node].stored;
    double signal = 0, noise = 0;
    if (x)
        return OCT_OK;
    if (!(x = oct_arena_calloc(j->arena, 1, sizeof *x)))
        return oct_nomem(err);
    for (int i = 0; i < 2; i++)
        OCT_TRY(oct_quantize_rows(j, matrices(j, node, 1 + i), &x->quant[i], &signal, &noise, err));
    x->sqnr = oct_decibels(signal, noise);
    j->node[node].stored = x;
    return OCT_OK;
}

oct_status oct_annotate_stored(oct_qjob *j, oct_err *err)
{
    for (size_t i = 0; i < j->n_layer; i++)
        for (int slot = 1; slot <= 2 && is_stored(j, j->layer[i]); slot++)
            OCT_TRY(oct_write_stored(j->g, j->layer[i], slot, &j->node[j->layer[i]].stored->quant[slot - 1], err));
    return OCT_OK;
}
