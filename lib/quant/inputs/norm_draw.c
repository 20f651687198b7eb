/* Builds the graph that starts at the targets: each is replaced by numbers that are drawn. Nodes that do not follow
 * from targets are removed. */
#include "quant/inputs/norm_draw.h"

#include "data/source/synthetic.h"
#include "forms/edit.h"
#include "passes/fuse.h"
#include "quant/inputs/calibrate.h"
#include "runtime/runner.h"

#include <string.h>

/* SAMPLES: they come in pairs, of which one is the mirror image of the other. MOST_DRAWN: how many numbers are drawn
 * for a channel; in a map each of them occurs many times. */
enum { SAMPLES = 32, MOST_DRAWN = 32 };

typedef struct drawing {
    oct_graph *g; /* a copy */
    bool *drawn;  /* [n_value of the original]: it is computed from drawn numbers */
    size_t n_value;
} drawing;

/* How many positions a map of known size has in one sample; 0: the target has another shape. */
static int64_t positions_of(const oct_value *v, int64_t channels)
{
    const oct_shape *s = &v->shape;
    int64_t n = 1;
    if (v->producer < 0 || s->rank < 2 || s->d[1].n != channels || s->d[0].n > 1)
        return 0;
    for (int k = 2; k < s->rank; k++)
        if (s->d[k].n < 1 || __builtin_mul_overflow(n, s->d[k].n, &n))
            return 0;
    return n;
}

/* Makes a value from x, f32 of these dimensions, by a node before `before`. */
static oct_status put(oct_graph *g, const char *op, const char *name, int x, int operand, const int64_t dims[3],
                      int before, int *y, oct_err *err)
{
    OCT_TRY(oct_edit_value(g, name, "_drawn", OCT_F32, -1, y, err));
    OCT_TRY(oct_graph_set_dims(g, *y, 3, dims, err));
    return oct_edit_node(g, op, (int[]){ x, operand }, 2, *y, before, NULL, err);
}

static oct_status add_input(oct_graph *g, const char *name, const int64_t dims[3], int *v, oct_err *err)
{
    OCT_TRY(oct_edit_value(g, name, "_draws", OCT_F32, -1, v, err));
    OCT_TRY(oct_graph_set_dims(g, *v, 3, dims, err));
    if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input))
        return oct_nomem(err);
    g->input[g->n_input++] = *v;
    g->value[*v].is_input = true;
    return OCT_OK;
}

/* Chooses for each position one of the `drawn` numbers of its channel. */
static oct_status spread(oct_graph *g, const char *name, int64_t positions, int64_t drawn, int *v, oct_err *err)
{
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_S64, 1, &positions, &t, err));
    for (int64_t i = 0; i < positions; i++)
        ((int64_t *)(uintptr_t)t->data)[i] = i * drawn / positions;
    return oct_edit_refer(g, name, "_places", t, v, err);
}

static oct_status draw(drawing *d, int v, const oct_norm_target *t, int64_t positions, oct_err *err)
{
    oct_graph *g = d->g;
    const oct_shape shape = g->value[v].shape;
    const int64_t drawn = positions < MOST_DRAWN ? positions : MOST_DRAWN, column[] = { t->channels, 1 },
                  rank = shape.rank;
    const int64_t few[] = { 1, t->channels, drawn }, all[] = { 1, t->channels, positions };
    const int before = g->value[v].producer;
    int64_t dims[OCT_MAX_RANK] = { 1 };
    int x, mean, deviation, places, to;
    for (int k = 1; k < shape.rank; k++)
        dims[k] = shape.d[k].n;
    OCT_TRY(add_input(g, t->value, few, &x, err));
    OCT_TRY(oct_edit_const(g, t->value, "_mean", OCT_F32, 2, column, t->mean, &mean, err));
    OCT_TRY(oct_edit_const(g, t->value, "_deviation", OCT_F32, 2, column, t->deviation, &deviation, err));
    OCT_TRY(oct_edit_const(g, t->value, "_shape", OCT_S64, 1, &rank, dims, &to, err));
    OCT_TRY(spread(g, t->value, positions, drawn, &places, err));
    OCT_TRY(put(g, "Mul", t->value, x, deviation, few, before, &x, err));
    OCT_TRY(put(g, "Add", t->value, x, mean, few, before, &x, err));
    OCT_TRY(put(g, "Gather", t->value, x, places, all, before, &x, err));
    OCT_TRY(oct_node_set_int(g, g->value[x].producer, "axis", 2, err));
    d->drawn[v] = true;
    return oct_edit_node(g, "Reshape", (int[]){ x, to }, 2, v, before, NULL, err);
}

/* ---- what follows from targets ---- */

static bool follows(const drawing *d, int id)
{
    const oct_node *n = &d->g->node[id];
    oct_layer layer;
    bool any = false;
    if (n->n_captured || oct_layer_of(d->g, id, &layer))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        if (v < 0 || d->g->value[v].constant)
            continue;
        if (v >= (int)d->n_value || !d->drawn[v])
            return false;
        any = true;
    }
    return any;
}

static void mark(drawing *d)
{
    for (size_t i = 0; i < d->g->n_order; i++) {
        const oct_node *n = &d->g->node[d->g->order[i]];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0 && n->out[k] < (int)d->n_value)
                d->drawn[n->out[k]] |= follows(d, d->g->order[i]);
    }
}

/* Keeps only what computes the values with these names. */
static oct_status show_alone(oct_graph *g, const char *const *name, size_t n, oct_err *err)
{
    for (size_t i = 0; i < g->n_output; i++)
        g->value[g->output[i]].is_output = false;
    g->n_output = 0;
    for (size_t i = 0; i < n; i++) {
        const int v = oct_graph_find(g, name[i]);
        if (!OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
            return oct_nomem(err);
        g->output[g->n_output++] = v;
        g->value[v].is_output = true;
    }
    oct_graph_prune(g);
    size_t left = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        oct_value *v = &g->value[g->input[i]];
        v->is_input = v->n_uses > 0;
        if (v->is_input)
            g->input[left++] = g->input[i];
    }
    g->n_input = left;
    return OCT_OK;
}

/* ---- statistics ---- */

static oct_status observe(const oct_graph *g, const oct_calibrate_opts *o, oct_calib *c, oct_err *err)
{
    static const char *const spec[] = { OCT_SYNTHETIC };
    oct_source_options from = { .specs = spec, .n_specs = 1, .synthetic = true, .threads = o->threads };
    oct_input_desc *in;
    oct_source *src;
    OCT_TRY(oct_inputs_describe(&g, 1, g->arena, &in, &from.n_inputs, err));
    from.inputs = in;
    OCT_TRY(oct_source_open(&from, &src, err));
    const oct_status s = oct_calibrate(g, src, o, c, err);
    oct_source_close(src);
    return s;
}

static oct_status make(drawing *d, const oct_norm_target *target, size_t n, const oct_norm_draw_opts *o, oct_calib *c,
                       oct_err *err)
{
    oct_arena *a = d->g->arena;
    const char **name = oct_arena_calloc(a, o->n + 1, sizeof *name);
    int *axis = oct_arena_calloc(a, o->n + 1, sizeof *axis);
    oct_calibrate_opts all = { .values = name, .axes = axis, .limit = SAMPLES, .threads = o->threads };
    d->n_value = d->g->n_value;
    if (!name || !axis || !(d->drawn = oct_arena_calloc(a, d->n_value + 1, sizeof *d->drawn)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const int v = oct_graph_find(d->g, target[i].value);
        const int64_t positions = v < 0 ? 0 : positions_of(&d->g->value[v], target[i].channels);
        if (positions)
            OCT_TRY(draw(d, v, &target[i], positions, err));
    }
    mark(d);
    for (size_t i = 0; i < o->n; i++) {
        const int v = oct_graph_find(d->g, o->values[i]);
        if (v < 0 || v >= (int)d->n_value || !d->drawn[v])
            continue;
        axis[all.n] = o->axes[i];
        name[all.n++] = o->values[i];
    }
    if (all.n == 0)
        return OCT_OK;
    OCT_TRY(show_alone(d->g, name, all.n, err));
    return observe(d->g, &all, c, err);
}

oct_status oct_norm_draw(const oct_graph *g, const oct_norm_target *target, size_t n, const oct_norm_draw_opts *o,
                         oct_calib *c, oct_err *err)
{
    drawing d = { 0 };
    OCT_TRY(oct_graph_clone(g, &d.g, err));
    const oct_status s = make(&d, target, n, o, c, err);
    oct_graph_destroy(d.g);
    return s;
}
