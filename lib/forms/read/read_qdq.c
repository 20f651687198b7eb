/* QuantizeLinear and DequantizeLinear, with scales and zero points as inputs. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "kernels/half.h"

/* Whether a value is read by a node that plans cannot compute and that takes constants as they are: for example
 * SequenceConstruct, or If by its captures. */
static bool leaves_plans(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_op *op = oct_op_of(g, v->uses[i].node);
        if (op && op->exec && !op->run)
            return true;
    }
    return false;
}

oct_status forms_read_dequantize(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[id];
    const oct_quant *q;
    if (!forms_is(n, "DequantizeLinear") || n->n_in < 2 || n->n_out != 1 || n->in[0] < 0 || n->out[0] < 0 ||
        g->value[n->in[0]].quant)
        return OCT_OK;
    const int qvals = n->in[0], d = n->out[0];
    const oct_dtype real = g->value[d].dtype;
    if ((real != OCT_F32 && !oct_is_half(real)) || (g->value[qvals].constant && leaves_plans(g, d)))
        return OCT_OK;
    OCT_TRY(forms_params_of(r, n, qvals, &q, err));
    if (!q || (q->block && !g->value[qvals].constant))
        return OCT_OK;
    int v;
    OCT_TRY(oct_graph_set_output(g, id, 0, -1, err));
    oct_graph_cut_inputs(g, id, 0);
    OCT_TRY(forms_annotated_of(r, qvals, q, real, d, id, &v, err));
    if (v != d && oct_edit_keeps(g, d) && (oct_edit_keeps(g, v) || g->value[v].producer < 0)) {
        g->value[d].quant = q; /* d is a second name of v: another border reads the quantized values */
        OCT_TRY(oct_graph_set_input(g, id, 0, qvals, err));
        return oct_graph_set_output(g, id, 0, d, err);
    }
    oct_graph_remove_node(g, id);
    if (v == d)
        return OCT_OK;
    if (!oct_edit_keeps(g, d))
        return forms_replace(r, d, v, err);
    OCT_TRY(forms_replace(r, v, d, err));
    return forms_add_annotated(r, qvals, d, err);
}

oct_status forms_read_quantize(forms_reader *r, int id, oct_err *err)
{
    const oct_node *n = &r->g->node[id];
    int v;
    return forms_is(n, "QuantizeLinear") && n->n_out == 1 && n->out[0] >= 0 ? forms_known(r, n->out[0], id, &v, err)
                                                                            : OCT_OK;
}
