/* A fixed-point iteration. All layers are measured in one pass. Each gets the change that would restore its own
 * moments. Since the layers before it change as well, this is repeated. */
#include "quant/inputs/norm_match.h"

#include "forms/edit.h"
#include "passes/fuse.h"
#include "quant/inputs/calibrate.h"

#include <math.h>

enum { ROUNDS = 6, SAMPLES = 16 };
#define MOST_GAIN \
    2.0 /* the most by which a channel is scaled, up or down; if it hardly varies, its deviation says too little */

/* A layer whose channels are scaled and shifted. */
typedef struct matched {
    const oct_norm_target *target;
    oct_layer layer;
    float *scale, *shift; /* [channels]: applied to its output in g */
    const char *square;   /* the value with the squares of its output, where the moments are measured */
} matched;

typedef struct match {
    const oct_graph *g;
    oct_source *src;
    int threads;
    oct_arena *a;
    matched *layer;
    size_t n;
} match;

oct_status oct_norm_targets(const oct_graph *g, oct_arena *arena, oct_norm_target **target, size_t *n, oct_err *err)
{
    *n = 0;
    if (!(*target = oct_arena_calloc(arena, g->n_order + 1, sizeof **target)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const int64_t channels = oct_norm_channels(g, g->order[i]);
        oct_norm_target *t = &(*target)[*n];
        if (!channels)
            continue;
        *t = (oct_norm_target){ g->value[g->node[g->order[i]].out[0]].name, channels,
                                oct_arena_calloc(arena, (size_t)channels, sizeof(float)),
                                oct_arena_calloc(arena, (size_t)channels, sizeof(float)) };
        if (!t->mean || !t->deviation)
            return oct_nomem(err);
        oct_norm_moments(g, g->order[i], t->mean, t->deviation);
        ++*n;
    }
    return OCT_OK;
}

static oct_status list_layers(match *m, const oct_norm_target *target, size_t n, oct_err *err)
{
    if (!(m->layer = oct_arena_calloc(m->a, n + 1, sizeof *m->layer)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        matched *x = &m->layer[m->n];
        const int v = oct_graph_find(m->g, target[i].value), p = v >= 0 ? m->g->value[v].producer : -1;
        if (p < 0 || !oct_layer_of(m->g, p, &x->layer) || x->layer.channels != target[i].channels)
            continue;
        x->target = &target[i];
        x->scale = oct_arena_calloc(m->a, (size_t)x->layer.channels, sizeof *x->scale);
        x->shift = oct_arena_calloc(m->a, (size_t)x->layer.channels, sizeof *x->shift);
        x->square = oct_arena_printf(m->a, "%s_square", target[i].value);
        if (!x->scale || !x->shift || !x->square)
            return oct_nomem(err);
        for (int64_t c = 0; c < x->layer.channels; c++)
            x->scale[c] = 1;
        m->n++;
    }
    return OCT_OK;
}

static oct_status changed_copy(const match *m, oct_graph **copy, oct_err *err)
{
    OCT_TRY(oct_graph_clone(m->g, copy, err));
    for (size_t i = 0; i < m->n; i++)
        OCT_TRY(oct_layer_affine(*copy, &m->layer[i].layer, m->layer[i].scale, m->layer[i].shift, err));
    return OCT_OK;
}

/* ---- moments ---- */

static int axis_of(const matched *x)
{
    return x->layer.conv ? 1 : -1;
}

static oct_status gather(match *m, oct_graph *g, oct_calib *into, oct_err *err)
{
    const char **name = oct_arena_calloc(m->a, 2 * m->n + 1, sizeof *name);
    int *axis = oct_arena_calloc(m->a, 2 * m->n + 1, sizeof *axis);
    const oct_calibrate_opts o = {
        .values = name, .axes = axis, .n = 2 * m->n, .moments_only = true, .threads = m->threads
    };
    if (!name || !axis)
        return oct_nomem(err);
    for (size_t i = 0; i < m->n; i++) {
        const int v = oct_graph_find(g, m->layer[i].target->value);
        int to;
        OCT_TRY(oct_edit_square(g, v, &to, err));
        m->layer[i].square = g->value[to].name;
        name[2 * i] = g->value[v].name;
        name[2 * i + 1] = m->layer[i].square;
        axis[2 * i] = axis[2 * i + 1] = axis_of(&m->layer[i]);
    }
    OCT_TRY(oct_graph_sort(g, err));
    OCT_TRY(oct_source_pick(m->src, &(oct_pick){ .most = SAMPLES }, err));
    return oct_calibrate(g, m->src, &o, into, err);
}

/* Updates the change of the channels by what is still missing. A constant channel gives no information. */
static void correct(matched *x, const oct_chan_stats *plain, const oct_chan_stats *square)
{
    for (size_t c = 0; c < plain->channels; c++) {
        const double mean = oct_chan_mean(&plain->c[c]),
                     spread = sqrt(fmax(oct_chan_mean(&square->c[c]) - mean * mean, 0));
        const double want = (double)x->target->deviation[c];
        if (!(spread > 1e-6 * (fabs(mean) + want)))
            continue;
        const double most = MOST_GAIN / (double)x->scale[c],
                     gain = fmax(fmin(want / spread, most), most / (MOST_GAIN * MOST_GAIN));
        x->scale[c] = (float)((double)x->scale[c] * gain);
        x->shift[c] = (float)(((double)x->shift[c] - mean) * gain + (double)x->target->mean[c]);
    }
}

static oct_status improve(match *m, oct_err *err)
{
    oct_graph *g = NULL;
    oct_calib *c = oct_calib_create();
    oct_status s = c ? changed_copy(m, &g, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = gather(m, g, c, err);
    for (size_t i = 0; s == OCT_OK && i < m->n; i++) {
        const oct_calib_tensor *plain = oct_calib_find(c, m->layer[i].target->value),
                               *square = oct_calib_find(c, m->layer[i].square);
        const size_t channels = (size_t)m->layer[i].layer.channels;
        if (plain && square && plain->chan.channels == channels && square->chan.channels == channels)
            correct(&m->layer[i], &plain->chan, &square->chan);
    }
    oct_graph_destroy(g);
    oct_calib_destroy(c);
    return s;
}

static oct_status make(match *m, const oct_norm_target *target, size_t n, oct_graph **like, oct_err *err)
{
    OCT_TRY(list_layers(m, target, n, err));
    for (int round = 0; m->n && round < ROUNDS; round++)
        OCT_TRY(improve(m, err));
    return changed_copy(m, like, err);
}

oct_status oct_synthetic_graph(const oct_graph *g, const oct_norm_target *target, size_t n, oct_source *src,
                               int threads, oct_graph **like, oct_err *err)
{
    match m = { .g = g, .src = src, .threads = threads, .a = oct_arena_create() };
    const oct_status s = m.a ? make(&m, target, n, like, err) : oct_nomem(err);
    oct_arena_destroy(m.a);
    return s;
}
