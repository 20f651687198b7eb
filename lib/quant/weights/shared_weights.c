/* Layers that multiply by the same constant, such as a kernel that is applied to several scales of a picture. They
 * share its quantized form, so that a file stores it once. Its scales leave room for the bias of each layer. */
#include "quant/job/placed.h"
#include "quant/weights/weights.h"

bool oct_same_layout(const oct_weight_layout *a, const oct_weight_layout *b)
{
    return a->matrices == b->matrices && a->outs == b->outs && a->ins == b->ins && a->taps == b->taps &&
           a->groups == b->groups && a->out_axis == b->out_axis && a->in_axis == b->in_axis &&
           a->out_step == b->out_step && a->in_step == b->in_step;
}

/* Whether a node has 8-bit weights that are a single matrix. */
static bool has_weights(const oct_qjob *j, int id)
{
    const oct_scheme scheme = oct_scheme_of(j, id);
    return (scheme == OCT_SCHEME_STATIC || scheme == OCT_SCHEME_DYNAMIC) &&
           oct_op_of(j->g, id)->quant == OCT_QUANT_WEIGHTED && oct_layer_weights(j->g, id);
}

static bool shares(const oct_qjob *j, int a, int b)
{
    const oct_policy_row *x = oct_row_of(j, a), *y = oct_row_of(j, b);
    oct_weight_layout l, m;
    if (a == b)
        return true;
    return has_weights(j, b) && oct_scheme_of(j, a) == oct_scheme_of(j, b) && x->per_channel == y->per_channel &&
           x->weights == y->weights && oct_activations_of(j, a) == oct_activations_of(j, b) &&
           oct_layer_layout(j->g, a, &l) && oct_layer_layout(j->g, b, &m) && oct_same_layout(&l, &m);
}

int oct_weights_next(const oct_qjob *j, int id, int after)
{
    int next = -1;
    if (!has_weights(j, id))
        return after < id ? id : -1;
    const oct_value *v = &j->g->value[j->g->node[id].in[1]];
    for (size_t i = 0; i < v->n_uses; i++) {
        const int other = v->uses[i].node;
        if (v->uses[i].slot == 1 && other > after && (next < 0 || other < next) && other < (int)j->n_nodes &&
            shares(j, id, other))
            next = other;
    }
    return next;
}
