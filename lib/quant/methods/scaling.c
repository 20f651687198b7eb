/* Finds everything that must get the same factor by walking from value to value; and applies factors. */
#include "quant/methods/scaling.h"

#include "eval/run/scaled.h"
#include "passes/fuse.h"

#include <math.h>

typedef struct walk {
    const oct_graph *g;
    oct_scaling *s;
    int *of; /* [n_value]: 1 + the index of the scaling that contains the value; 0: none */
    int mark;
    bool ok;
} walk;

/* ---- layers ---- */

bool oct_constant_scales(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    const oct_tensor *t = v->constant;
    if (!oct_value_used_once(v) || v->producer >= 0 || v->outer >= 0 || v->quant || !t || t->dtype != OCT_F32 ||
        !t->data)
        return false;
    for (int64_t i = 0; i < t->count; i++) {
        const float m = fabsf(((const float *)t->data)[i]);
        if (!(m == 0 || (m > 0x1p-80f && m < 0x1p80f)))
            return false;
    }
    return true;
}

/* A missing bias can be scaled, too. */
static bool bias_scales(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const int slot = oct_op_of(g, node)->weights.bias;
    return slot < 1 || slot >= n->n_in || n->in[slot] < 0 || oct_constant_scales(g, n->in[slot]);
}

bool oct_scaled_layer_of(const oct_graph *g, int node, oct_scaled_layer *l)
{
    oct_layer found;
    if (node < 0 || !oct_layer_of(g, node, &found) || found.weights.matrices != 1 ||
        !oct_constant_scales(g, g->node[node].in[1]) || !bias_scales(g, node))
        return false;
    *l = (oct_scaled_layer){ node, found.weights };
    return true;
}

/* The dimension of a layer's output that holds its channels. */
static int made_axis(const oct_graph *g, int node)
{
    return oct_op_of(g, node)->weights.kernel ? 1 : g->value[g->node[node].out[0]].shape.rank - 1;
}

static bool makes(const walk *w, int node, int axis, oct_scaled_layer *l)
{
    return oct_scaled_layer_of(w->g, node, l) && l->weights.outs == w->s->channels && axis == made_axis(w->g, node);
}

static bool reads(const walk *w, oct_use u, int axis, int rank, oct_scaled_layer *l)
{
    if (u.slot != 0 || !oct_scaled_layer_of(w->g, u.node, l) || l->weights.ins != w->s->channels)
        return false;
    const int along = oct_channel_axis(oct_op_of(w->g, u.node), &w->g->node[u.node]);
    return axis == (along < 0 ? along + rank : along);
}

/* ---- values ---- */

/* The upper bound of a clamp that begins at 0; INFINITY: the node is none. */
static float bound_of(const oct_graph *g, int node)
{
    float lo, hi;
    return oct_op_clamp(g, node, &lo, &hi) && lo == 0 && hi > 0 ? hi : INFINITY;
}

static void meet(walk *w, int v, int axis)
{
    const oct_value *x = v >= 0 ? &w->g->value[v] : NULL;
    oct_scaling *s = w->s;
    if (!x || x->dtype != OCT_F32 || x->quant || x->constant || x->is_input || x->is_output || x->outer >= 0 ||
        axis < 0 || axis >= x->shape.rank || x->shape.d[axis].n != s->channels || (w->of[v] && w->of[v] != w->mark)) {
        w->ok = false;
        return;
    }
    for (size_t i = 0; w->of[v] && i < s->n_values; i++)
        if (s->value[i].value == v)
            w->ok &= s->value[i].axis == axis;
    if (w->of[v])
        return;
    w->of[v] = w->mark;
    s->value[s->n_values++] = (oct_scaled){ v, axis, x->producer >= 0 && isfinite(bound_of(w->g, x->producer)) };
}

/* The dimension of input `slot` that becomes dimension `axis` of output 0; -1: none. */
static int axis_behind(const oct_graph *g, int node, int slot, int axis)
{
    const int v = g->node[node].in[slot], rank = v >= 0 ? g->value[v].shape.rank : 0;
    for (int d = 0; d < rank; d++)
        if (oct_kept_axis(g, node, slot, d) == axis)
            return d;
    return -1;
}

/* The inputs in which a node is homogeneous, as long as no bound is reached. */
static uint32_t homogeneous_in(walk *w, int node)
{
    const float bound = bound_of(w->g, node);
    if (!isfinite(bound))
        return oct_homogeneous_in(w->g, node);
    w->s->bound = fminf(w->s->bound, bound);
    return 1;
}

static void meet_inputs(walk *w, int node, int axis)
{
    const oct_node *n = &w->g->node[node];
    const uint32_t slots = homogeneous_in(w, node);
    w->ok &= slots != 0 && n->n_in <= 32;
    for (int i = 0; w->ok && i < n->n_in; i++)
        if (slots >> i & 1 && n->in[i] >= 0)
            meet(w, n->in[i], axis_behind(w->g, node, i, axis));
}

/* Continues at the node that computes a value, and at those that read it: layers, or operators that pass the factor
 * on. */
static void go_on(walk *w, oct_scaled at)
{
    const oct_value *x = &w->g->value[at.value];
    const int rank = x->shape.rank;
    if (makes(w, x->producer, at.axis, &w->s->maker[w->s->n_makers]))
        w->s->n_makers++;
    else if (x->producer >= 0 && w->g->node[x->producer].out[0] == at.value)
        meet_inputs(w, x->producer, at.axis);
    else
        w->ok = false;
    for (size_t i = 0; w->ok && i < x->n_uses; i++) {
        const oct_use u = x->uses[i];
        if (reads(w, u, at.axis, rank, &w->s->reader[w->s->n_readers]))
            w->s->n_readers++;
        else if (u.slot >= 0 && u.slot < 32 && homogeneous_in(w, u.node) >> u.slot & 1)
            meet(w, w->g->node[u.node].out[0], oct_kept_axis(w->g, u.node, u.slot, at.axis));
        else
            w->ok = false;
    }
}

static void find_from(walk *w, int value, int axis)
{
    w->ok = true;
    meet(w, value, axis);
    for (size_t i = 0; w->ok && i < w->s->n_values; i++)
        go_on(w, w->s->value[i]);
    w->ok &= w->s->n_readers > 0;
}

/* ---- all of a graph ---- */

/* Lists from which each scaling takes a part, so that all of them together have no more entries than there are values
 * and uses. */
static bool new_lists(const oct_graph *g, oct_arena *a, oct_scaling *s)
{
    size_t uses = 0;
    for (size_t v = 0; v < g->n_value; v++)
        uses += g->value[v].n_uses;
    s->value = oct_arena_calloc(a, g->n_value + 1, sizeof *s->value);
    s->maker = oct_arena_calloc(a, g->n_value + 1, sizeof *s->maker);
    s->reader = oct_arena_calloc(a, uses + 1, sizeof *s->reader);
    return s->value && s->maker && s->reader;
}

oct_status oct_scalings_find(const oct_graph *g, oct_arena *arena, oct_scaling **found, size_t *n, oct_err *err)
{
    walk w = { .g = g, .of = oct_arena_calloc(arena, g->n_value + 1, sizeof *w.of) };
    oct_scaling *all = oct_arena_calloc(arena, g->n_order + 1, sizeof *all), next = { 0 };
    *n = 0;
    if (!w.of || !all || !new_lists(g, arena, &next))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *node = &g->node[g->order[i]];
        oct_scaled_layer l;
        if (node->n_out < 1 || node->out[0] < 0 || w.of[node->out[0]] || !oct_scaled_layer_of(g, g->order[i], &l))
            continue;
        oct_scaling s = next;
        s.channels = l.weights.outs;
        s.bound = INFINITY;
        w.s = &s;
        w.mark++;
        find_from(&w, node->out[0], made_axis(g, l.node));
        next.value += s.n_values; /* also after a failure, because its values are marked */
        if (!w.ok)
            continue;
        next.maker += s.n_makers;
        next.reader += s.n_readers;
        all[(*n)++] = s;
    }
    *found = all;
    return OCT_OK;
}

/* ---- factors ---- */

/* The tensor for the scaled elements of a value's constant. It may be that constant itself. */
static oct_status scaled_tensor(const oct_scaler *k, int value, float **to, oct_err *err)
{
    const oct_tensor *old = k->g->value[value].constant;
    oct_tensor *t;
    *to = (float *)(uintptr_t)old->data;
    if (k->was && k->was[value] != old)
        return OCT_OK;
    OCT_TRY(oct_tensor_new(k->arena, OCT_F32, old->rank, old->dims, &t, err));
    *to = (float *)(uintptr_t)t->data;
    oct_graph_set_const(k->g, value, t);
    return OCT_OK;
}

/* inputs: by the input channels of the weights, with division. */
static oct_status scale_weights(const oct_scaler *k, const oct_scaled_layer *l, const int *exponent, bool inputs,
                                oct_err *err)
{
    const int v = k->g->node[l->node].in[1];
    const oct_tensor *old = k->g->value[v].constant;
    float *to;
    OCT_TRY(scaled_tensor(k, v, &to, err));
    for (int64_t e = 0; e < old->count; e++)
        to[e] = ldexpf(((const float *)old->data)[e], inputs ? -exponent[oct_input_channel(&l->weights, e)]
                                                             : exponent[oct_output_channel(&l->weights, e)]);
    return OCT_OK;
}

oct_status oct_scale_inputs(const oct_scaler *k, const oct_scaled_layer *l, const int *exponent, oct_err *err)
{
    return scale_weights(k, l, exponent, true, err);
}

oct_status oct_scale_vector(const oct_scaler *k, int value, const int *exponent, oct_err *err)
{
    const oct_tensor *old = k->g->value[value].constant;
    float *to;
    OCT_TRY(scaled_tensor(k, value, &to, err));
    for (int64_t c = 0; c < old->count; c++)
        to[c] = ldexpf(((const float *)old->data)[c], exponent[c]);
    return OCT_OK;
}

static oct_status scale_bias(const oct_scaler *k, const oct_scaled_layer *l, const int *exponent, oct_err *err)
{
    const oct_graph *g = k->g;
    return oct_layer_bias(g, l->node)
               ? oct_scale_vector(k, g->node[l->node].in[oct_op_of(g, l->node)->weights.bias], exponent, err)
               : OCT_OK;
}

oct_status oct_scaling_apply(const oct_scaler *k, const oct_scaling *s, const int *exponent, oct_err *err)
{
    for (size_t i = 0; i < s->n_makers; i++) {
        OCT_TRY(scale_weights(k, &s->maker[i], exponent, false, err));
        OCT_TRY(scale_bias(k, &s->maker[i], exponent, err));
    }
    for (size_t i = 0; i < s->n_readers; i++)
        OCT_TRY(oct_scale_inputs(k, &s->reader[i], exponent, err));
    return OCT_OK;
}

oct_status oct_scaling_record(oct_buf *to, const oct_graph *g, const oct_scaled *v, int64_t n, const int *exponent,
                              oct_err *err)
{
    float *factor = oct_calloc((size_t)n, sizeof *factor);
    if (!factor)
        return oct_nomem(err);
    for (int64_t c = 0; c < n; c++)
        factor[c] = ldexpf(1, exponent[c]);
    oct_scaled_put(to, &(oct_scaled_channels){ g->value[v->value].name, v->axis, (size_t)n, factor });
    oct_free(factor);
    return to->failed ? oct_nomem(err) : OCT_OK;
}
