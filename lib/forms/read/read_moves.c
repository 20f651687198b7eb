/* Operators that move quantized values unchanged between operators that compute on them: the results have the
 * quantization of the inputs. */
#include "forms/read/read_int.h"

#include <string.h>

/* Whether the operator moves quantized values from input i to its outputs unchanged. Pad adds numbers of its own. */
static bool carries(const oct_op *op, int i)
{
    if (op->quant == OCT_QUANT_SAME)
        return i == 0 && strcmp(op->type, "Pad") != 0;
    return op->quant == OCT_QUANT_JOIN;
}

/* Finds annotated values for the inputs. *same: the parameters that they all have; NULL: they have none in common. */
static oct_status find_inputs(forms_reader *r, int id, const oct_op *op, int *to, const oct_quant **same, oct_err *err)
{
    const oct_node *n = &r->g->node[id];
    *same = NULL;
    for (int i = 0; i < n->n_in; i++) {
        if (!carries(op, i))
            continue;
        if (n->in[i] < 0 || r->g->value[n->in[i]].quant)
            return OCT_OK;
        OCT_TRY(forms_known(r, n->in[i], id, &to[i], err));
        const oct_quant *q = to[i] >= 0 ? r->g->value[to[i]].quant : NULL;
        if (!q || q->n != 1 || q->qvals || r->g->value[to[i]].dtype != OCT_F32 ||
            !oct_quant_same(q, r->g->value[to[0]].quant))
            return OCT_OK;
    }
    *same = r->g->value[to[0]].quant;
    return OCT_OK;
}

/* Makes the node read and compute annotated values (to is OCT_F32), or integers again. in: its inputs. from, to: the
 * old and the new type of its outputs. */
static oct_status suppose(oct_graph *g, int id, const oct_op *op, const int *in, const oct_quant *q, oct_dtype from,
                          oct_dtype to, oct_err *err)
{
    for (int i = 0; i < g->node[id].n_in; i++)
        if (carries(op, i))
            OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    for (int k = 0; k < g->node[id].n_out; k++) {
        oct_value *v = g->node[id].out[k] >= 0 ? &g->value[g->node[id].out[k]] : NULL;
        if (!v || v->dtype != from || v->quant != (to == OCT_F32 ? NULL : q))
            continue;
        v->dtype = to;
        v->quant = to == OCT_F32 ? q : NULL;
    }
    return OCT_OK;
}

static oct_status try_move(forms_reader *r, int id, const oct_op *op, const int *was, int *to, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_quant *q;
    oct_compute how;
    OCT_TRY(find_inputs(r, id, op, to, &q, err));
    if (!q)
        return OCT_OK;
    OCT_TRY(suppose(g, id, op, to, q, q->dtype, OCT_F32, err));
    OCT_TRY(oct_compute_of(g, id, &how, err));
    const bool moves = how == OCT_ON_QUANTIZED;
    OCT_TRY(suppose(g, id, op, moves ? to : was, q, OCT_F32, q->dtype, err));
    for (int k = 0; moves && k < g->node[id].n_out; k++)
        if (g->node[id].out[k] >= 0 && g->value[g->node[id].out[k]].dtype == q->dtype)
            OCT_TRY(forms_take_output(r, id, k, q, err));
    return OCT_OK;
}

oct_status forms_read_move(forms_reader *r, int id, oct_err *err)
{
    const oct_op *op = oct_op_of(r->g, id);
    const int n = r->g->node[id].n_in;
    if (!op || !op->integer || n < 1 || !carries(op, 0) || r->g->node[id].in[0] < 0)
        return OCT_OK;
    const oct_dtype t = r->g->value[r->g->node[id].in[0]].dtype;
    if (t != OCT_U8 && t != OCT_S8)
        return OCT_OK;
    int *was = oct_arena_memdup(r->g->arena, r->g->node[id].in, (size_t)n * sizeof *was),
        *to = oct_arena_calloc(r->g->arena, (size_t)n, sizeof *to);
    return was && to ? try_move(r, id, op, was, to, err) : oct_nomem(err);
}
