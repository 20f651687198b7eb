/* 16-bit activations instead of 8 bits on integers: for layers that lose too much in 8 bits, if the target runs 16 bits
 * no slower than floats, and for layers for which its costs suggest it. */
#include "observers/observer.h"
#include "quant/job/records.h"
#include "quant/place/layer_costs_int.h"
#include "quant/place/place_int.h"

#define ROOM "minmax=2" /* times the range: 16 bits have room for values beyond all samples */

static const char by_cost[] = "by cost: with activations of 16 bits the target takes no longer";

/* The 16-bit type that a node's activations would have instead of those of its policy. OCT_UNDEFINED: the
 * target takes none, or the activations do not have 8 bits. */
static oct_dtype wide_type(const oct_qjob *j, int id)
{
    const qnode *q = &j->node[id];
    const oct_target *t = j->opts.target;
    const oct_dtype asked = q->policy.activations;
    const oct_dtype first = asked == OCT_S8 ? OCT_S16 : OCT_U16, other = asked == OCT_S8 ? OCT_U16 : OCT_S16;
    if (j->opts.activations || oct_dtype_bits(asked) != 8 ||
        (oct_target_rules_of(t)->onnx_alone && oct_graph_opset(j->g, "") < 21))
        return OCT_UNDEFINED;
    return oct_takes_activations(t, first) ? first : oct_takes_activations(t, other) ? other : OCT_UNDEFINED;
}

bool oct_may_be_wide(const oct_qjob *j, int id)
{
    const struct oct_job_costs *c = j->costs;
    bool may = (oct_is_static(j, id) || j->node[id].rounds) && !j->node[id].widened && wide_type(j, id);
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
        const oct_constraint *cost = oct_constraint_on(&j->constraints, (int)id, OCT_CONSTRAINT_COST);
        const bool wide = oct_constraint_on(&j->constraints, (int)id, OCT_CONSTRAINT_WIDE) || (cost && cost->wide);
        const oct_dtype type = wide ? wide_type(j, (int)id) : OCT_UNDEFINED;
        if (!(q->widened = type != OCT_UNDEFINED))
            continue;
        q->row.activations = type;
        q->row.observer = q->row.observer.observer ? q->row.observer : room;
    }
    return OCT_OK;
}

void oct_tell_widths(oct_qjob *j)
{
    for (size_t id = 0; id < j->n_nodes; id++) {
        qnode *q = &j->node[id];
        const oct_constraint *wide = oct_constraint_on(&j->constraints, (int)id, OCT_CONSTRAINT_WIDE);
        if (q->widened && (oct_is_static(j, (int)id) || q->rounds))
            q->why = wide ? wide->why : by_cost;
    }
}
