/* lib/quant/place/counts.c -- which results become integers: counts, positions and shapes, which rounding would change.
 */
#include "quant/job/placed.h"
#include "quant/place/place_int.h"

const char oct_becomes_integers[] = "its result becomes integers";

/* What a use makes of a value. */
static oct_counting made_of(const oct_qjob *j, oct_use u)
{
    const oct_op *op = oct_op_of(j->g, u.node);
    const oct_node *n = &j->g->node[u.node];
    if (!op || u.slot < 0)
        return OCT_COUNTS_NOT;
    if (!op->converts)
        return u.slot < 32 && op->counts >> u.slot & 1 ? OCT_COUNTS_WIDE : OCT_COUNTS_NOT;
    if (n->out[0] < 0 || oct_is_f32(j, n->out[0]))
        return OCT_COUNTS_NOT;
    const oct_dtype to = j->g->value[n->out[0]].dtype;
    return to == OCT_S32 || to == OCT_S64 ? OCT_COUNTS_WIDE : OCT_COUNTS_NARROW;
}

oct_counting oct_find_counting(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    oct_counting most = OCT_COUNTS_NOT;
    for (int k = 0; k < n->n_out && !oct_op_is_layer(oct_op_of(j->g, id)); k++) {
        const oct_value *v = n->out[k] >= 0 ? &j->g->value[n->out[k]] : NULL;
        for (size_t u = 0; v && oct_is_f32(j, n->out[k]) && u < v->n_uses; u++) {
            const oct_counting own = made_of(j, v->uses[u]), later = oct_counting_of(j, v->uses[u].node),
                               as = own > later ? own : later;
            most = as > most ? as : most;
        }
    }
    return most;
}
