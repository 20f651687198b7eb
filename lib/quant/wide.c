/* Activations of 16 bits in the place of 8, on integers as well: of layers that lose too much in 8 bits, where the target runs that no slower than floats, and
 * of layers that its costs say so of. What is widened is the node's row, for as long as there is a reason. */
#include "quant/layer_costs_int.h"

#include "observers/observer.h"

#define ROOM "minmax=2" /* of ranges: 16 bits have room for what lies beyond all samples */

static const char by_cost[] = "by cost: with activations of 16 bits the target takes no longer";

oct_dtype oct_wide_type(const oct_qjob *j, int id)
{
    const qnode *q = &j->node[id];
    const oct_target *t = j->opts.target;
    const oct_dtype asked = q->widened ? q->ruled.activations : q->row.activations;
    const oct_dtype first = asked == OCT_S8 ? OCT_S16 : OCT_U16, other = asked == OCT_S8 ? OCT_U16 : OCT_S16;
    if (j->opts.activations || oct_dtype_bits(asked) != 8 || (oct_target_onnx_alone(t) && oct_graph_opset(j->g, "") < 21))
        return OCT_UNDEFINED;
    return oct_takes_activations(t, first) ? first : oct_takes_activations(t, other) ? other : OCT_UNDEFINED;
}

bool oct_may_be_wide(const oct_qjob *j, int id)
{
    const struct oct_job_costs *c = j->costs;
    bool may = (oct_is_static(j, id) || j->node[id].rounds) && !j->node[id].widened && oct_wide_type(j, id);
    for (size_t t = 0; may && c && t < c->n; t++)
        may = c->node[id][t][OCT_COST_STATIC16] <= c->node[id][t][OCT_COST_FLOAT];
    return may;
}

oct_status oct_fit_widths(oct_qjob *j, oct_err *err)
{
    oct_observer_spec room;
    OCT_TRY(oct_observer_parse(ROOM, &room, err));
    for (size_t id = 0; id < j->n_nodes; id++) {
        qnode *q = &j->node[id];
        const bool wide = q->wide || q->wide_by_cost;
        const oct_dtype type = wide && !q->widened ? oct_wide_type(j, (int)id) : OCT_UNDEFINED;
        if (type) {
            q->ruled = q->row;
            q->row.activations = type;
            q->row.observer = q->row.observer.observer ? q->row.observer : room;
            q->widened = true;
        } else if (!wide && q->widened) {
            q->row = q->ruled;
            q->widened = false;
        }
    }
    return OCT_OK;
}

void oct_tell_widths(oct_qjob *j)
{
    for (size_t id = 0; id < j->n_nodes; id++) {
        qnode *q = &j->node[id];
        if (q->widened && (oct_is_static(j, (int)id) || q->rounds))
            q->why = q->wide ? q->wide : by_cost;
    }
}
