/* Pass: folds Mul, Div, Add and Sub by per-channel constants after a convolution or product into its weights and
 * bias, also behind nodes that only change the shape of its output: exporters write a Conv over one dimension, or a
 * product for several heads, as layer, Squeeze or Reshape, Add. */
#include "passes/fuse.h"
#include "passes/shape_moves.h"

#include <math.h>
#include <string.h>

typedef struct affine {
    float *scale, *shift;
} affine;

/* The constant's number for each channel of `value`, the layer's output or its elements in another shape. */
static bool channel_numbers(oct_graph *g, const oct_layer *l, int value, int constant, float **v)
{
    const oct_tensor *t = g->value[constant].constant;
    const oct_shape *x = &g->value[value].shape;
    const int heads = l->conv ? 1 : oct_channel_dims(g, l, value);
    if (heads < 2 || !t || t->count == 1)
        return oct_channel_const(g, constant, l, x->rank, v);
    if (t->dtype != OCT_F32 || !t->data || g->value[constant].quant || t->count != l->channels || t->rank > x->rank)
        return false;
    for (int i = 1; i <= t->rank; i++)
        if (t->dims[t->rank - i] != (i <= heads ? x->d[x->rank - i].n : 1))
            return false;
    if (!(*v = oct_arena_calloc(g->arena, (size_t)l->channels, sizeof **v)))
        return false;
    memcpy(*v, t->data, (size_t)l->channels * sizeof **v);
    return true;
}

/* The effect of tail on its input x as x * scale + shift; false: it is something else. */
static bool affine_of(oct_graph *g, const oct_layer *l, int tail, int slot, affine *a)
{
    const oct_node *n = &g->node[tail];
    *a = (affine){ NULL, NULL };
    if (n->domain[0] || n->n_in != 2 || n->n_out != 1)
        return false;
    int other = n->in[1 - slot], rank = g->value[n->in[slot]].shape.rank;
    bool mul = strcmp(n->op, "Mul") == 0, div = strcmp(n->op, "Div") == 0 && slot == 0;
    bool add = strcmp(n->op, "Add") == 0, sub = strcmp(n->op, "Sub") == 0 && slot == 0;
    float *v;
    if (other < 0 || rank < 0 || !(mul || div || add || sub) || !channel_numbers(g, l, n->in[slot], other, &v))
        return false;
    for (int64_t i = 0; i < l->channels; i++) {
        v[i] = div ? 1.0f / v[i] : sub ? -v[i] : v[i];
        if (!isfinite(v[i]))
            return false;
    }
    *(mul || div ? &a->scale : &a->shift) = v;
    return true;
}

/* Whether a value becomes an output of the model, through nodes that move its elements, join them to others or add a
 * constant. */
static bool ends(const oct_graph *g, int value)
{
    for (size_t steps = 0; value >= 0 && steps <= g->n_order; steps++) {
        const oct_value *v = &g->value[value];
        if (v->is_output)
            return true;
        const int id = v->n_uses == 1 ? v->uses[0].node : -1;
        const oct_op *op = id >= 0 ? oct_op_of(g, id) : NULL;
        if (!op || g->node[id].n_out < 1)
            return false;
        const bool constant =
            op->adds && g->node[id].n_in == 2 && g->value[g->node[id].in[1 - v->uses[0].slot]].constant;
        if (op->quant != OCT_QUANT_SAME && op->quant != OCT_QUANT_JOIN && !constant)
            return false;
        value = g->node[id].out[0];
    }
    return false;
}

/* Whether factors give channels very different sizes. As an output of the model such a result must not have one scale
 * for all, and what keeps it from that (quant/place/part_joins.c) has to see the product. */
static bool is_uneven(const float *scale, int64_t n)
{
    enum { FAR = 16 };
    float least = INFINITY, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const float size = fabsf(scale[i]);
        least = size > 0 && size < least ? size : least;
        most = size > most ? size : most;
    }
    return most >= FAR * least;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i], slot;
        oct_layer l;
        affine a;
        if (!oct_layer_of(g, id, &l))
            continue;
        int tail, last;
        while ((tail = oct_reader_past_moves(g, &l, &last, &slot)) >= 0 && affine_of(g, &l, tail, slot, &a)) {
            /* A MatMul has no bias. The pass that turns it into a Gemm handles the shift. */
            if (a.shift ? strcmp(g->node[id].op, "MatMul") == 0 : !oct_layer_scalable(g, &l, tail))
                break;
            if (a.scale && is_uneven(a.scale, l.channels) && ends(g, g->node[tail].out[0]))
                break;
            oct_pass_note(log, self, g->node[tail].op, g->node[tail].name);
            OCT_TRY(oct_layer_affine(g, &l, a.scale, a.shift, err));
            OCT_TRY(oct_layer_absorb(g, last, tail, err));
        }
        /* Absorbed nodes followed this one, so its position has not changed. */
        while (i < g->n_order && g->order[i] != id)
            i--;
    }
    return OCT_OK;
}

const oct_pass oct_pass_affine = { "affine", "fold Mul, Div, Add and Sub by constants into Conv, Gemm and MatMul",
                                   run };
