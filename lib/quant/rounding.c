/* Weights rounded so that errors compensate each other at the layer's output (ldlq.h), instead of each to the nearest value.
 *
 * Inputs are those of the float model, at positions spread over the samples by a hash. Scales stay, so decisions that are made again
 * keep these weights (weights.c). */
#include "quant/convert_int.h"
#include "quant/ldlq.h"
#include "quant/simulate_int.h"
#include "quant/trial.h"

#include "ops/nn/window.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 2304, LEAST_ROWS = 1024, DEPTHWISE_ROWS = 512 };
enum { COLLECT_BYTES = 32 << 20 }; /* of inputs that are kept at once */

typedef struct rlayer {
    int node;
    const char *input;   /* the name that its input is shown under */
    oct_weight_layout l;
    oct_window window;   /* of a convolution */
    bool kernel;
    int axis;            /* of a matrix product's input channels */
    int64_t depth, outs; /* of one group */
    int64_t rows;        /* positions, of all samples */
    float *x;            /* [groups][depth][rows], while its inputs are kept */
    int8_t *qvals;       /* what its weights become */
    oct_status status;
} rlayer;

typedef struct rounder {
    oct_sim *s;
    oct_qjob *j;
    oct_arena *a;
    rlayer *layer;
    qweights *kept;     /* of the layers, as they were */
    size_t n, from, to; /* those at hand */
} rounder;

/* ---- which layers ---- */

static bool describe(const rounder *r, int id, rlayer *x)
{
    const oct_graph *g = r->j->g;
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    if (!oct_is_product(r->j, id) || !oct_sim_rounds(r->j, id) || !oct_layer_layout(g, id, &x->l) || x->l.matrices != 1)
        return false;
    x->node = id;
    x->input = oct_sim_shown(r->s, n->in[0]);
    x->kernel = op->weights.kernel;
    x->axis = oct_channel_axis(op, n);
    x->depth = x->l.ins / x->l.groups * x->l.taps;
    x->outs = x->l.outs / x->l.groups;
    x->rows = x->l.groups > 1 ? DEPTHWISE_ROWS : x->depth < LEAST_ROWS ? LEAST_ROWS : x->depth;
    if (x->kernel && (x->l.out_axis != 0 || oct_window_of_weights(n, g->value[n->in[1]].shape, &x->window, NULL) != OCT_OK))
        return false; /* a transposed convolution reads its inputs otherwise */
    return x->input && x->depth > 1 && x->depth <= MOST_DEPTH;
}

static oct_status list_layers(rounder *r, oct_err *err)
{
    if (!(r->layer = oct_arena_calloc(r->a, r->j->n_layer + 1, sizeof *r->layer)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_layer; i++)
        r->n += describe(r, r->j->layer[i], &r->layer[r->n]);
    return OCT_OK;
}

static size_t bytes_of(const rlayer *x)
{
    return (size_t)(x->l.groups * x->depth * x->rows) * sizeof(float);
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* Some positions' inputs into columns of x from `row` on: some, since inputs of one position are far apart there. at: where each dimension
 * starts, by position; t of f32. */
enum { PATCHES = 16 };
static void take_patches(const rlayer *x, const oct_window *w, const oct_operand *t, const int64_t *strides, int64_t (*at)[OCT_MAX_RANK], int n,
                         int64_t row)
{
    const float *data = t->data, *from[PATCHES];
    const int64_t ins = x->l.ins / x->l.groups;
    for (int64_t tap = 0; tap < x->l.taps; tap++) {
        for (int i = 0; i < n; i++) {
            int64_t rest = tap, offset = at[i][0] * strides[0];
            bool inside = true;
            for (int d = w->n - 1; d >= 0; d--) {
                const int64_t p = at[i][d + 2] + rest % w->kernel[d] * w->dilation[d];
                rest /= w->kernel[d];
                inside &= p >= 0 && p < t->dims[d + 2];
                offset += p * strides[d + 2];
            }
            from[i] = inside ? data + offset : NULL;
        }
        for (int64_t c = 0, at_group = 0, of_group = 0; c < x->l.ins; c++) {
            float *to = x->x + (at_group + of_group * x->l.taps + tap) * x->rows + row;
            for (int i = 0; i < n; i++)
                to[i] = from[i] ? from[i][c * strides[1]] : 0;
            if (++of_group == ins) {
                of_group = 0;
                at_group += x->depth;
            }
        }
    }
}

static bool collect_conv(const rlayer *x, const oct_operand *t, uint64_t seed, int64_t first, int64_t rows)
{
    int64_t strides[OCT_MAX_RANK], out[OCT_SPATIAL_MAX], at[PATCHES][OCT_MAX_RANK], positions = 1;
    oct_window w = x->window;
    if (t->rank != w.n + 2 || t->dims[1] != x->l.ins)
        return false;
    for (int d = 0; d < w.n; d++) {
        if (oct_window_fit(&w, d, t->dims[d + 2], &out[d], NULL) != OCT_OK)
            return false;
        positions *= out[d];
    }
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t *to = at[i % PATCHES], p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(positions * t->dims[0]));
        for (int d = w.n - 1; d >= 0; d--) {
            to[d + 2] = p % out[d] * w.stride[d] - w.before[d];
            p /= out[d];
        }
        to[0] = p;
        if (i % PATCHES == PATCHES - 1 || i == rows - 1)
            take_patches(x, &w, t, strides, at, (int)(i % PATCHES) + 1, first + i - i % PATCHES);
    }
    return true;
}

static bool collect_rows(const rlayer *x, const oct_operand *t, uint64_t seed, int64_t first, int64_t rows)
{
    int64_t strides[OCT_MAX_RANK];
    const int axis = x->axis < 0 ? t->rank + x->axis : x->axis;
    const float *data = t->data;
    if (axis < 0 || axis >= t->rank || t->dims[axis] != x->l.ins)
        return false;
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(t->count / t->dims[axis])), offset = 0;
        for (int d = t->rank - 1; d >= 0; d--)
            if (d != axis) {
                offset += p % t->dims[d] * strides[d];
                p /= t->dims[d];
            }
        for (int64_t c = 0; c < x->l.ins; c++)
            x->x[c * x->rows + first + i] = data[offset + c * strides[axis]];
    }
    return true;
}

/* Shown by the simulation, sample by sample, on any thread: each has rows of its own. */
static void collect(void *arg, size_t sample, const char *name, const oct_operand *t)
{
    rounder *r = arg;
    for (size_t i = r->from; i < r->to; i++) {
        rlayer *x = &r->layer[i];
        if (strcmp(x->input, name) != 0 || t->dtype != OCT_F32 || t->count == 0)
            continue;
        const int64_t samples = (int64_t)r->s->n_samples;
        const int64_t first = (int64_t)sample * x->rows / samples, end = ((int64_t)sample + 1) * x->rows / samples;
        const uint64_t seed = mix((uint64_t)x->node) + ((uint64_t)sample << 32);
        if (x->kernel)
            collect_conv(x, t, seed, first, end - first);
        else
            collect_rows(x, t, seed, first, end - first);
    }
}

/* ---- rounding ---- */

static int64_t element(const rlayer *x, int64_t group, int64_t out, int64_t k)
{
    const oct_weight_layout *l = &x->l;
    return group * l->group_step + out * l->out_step + k / l->taps * l->in_step + k % l->taps;
}

static oct_status round_group(const rlayer *x, const float *weights, const qweights *q, int64_t group, float *scale, oct_ldlq *k)
{
    float *w = oct_ldlq_weights(k);
    const int8_t *rounded = oct_ldlq_qvals(k);
    for (int64_t i = 0; i < x->depth; i++)
        for (int64_t o = 0; o < x->outs; o++)
            w[i * x->outs + o] = weights[element(x, group, o, i)];
    for (int64_t o = 0; o < x->outs; o++)
        scale[o] = q->quant.scale[q->quant.n > 1 ? group * x->outs + o : 0];
    OCT_TRY(oct_ldlq_round(k, scale, q->limit));
    for (int64_t i = 0; i < x->depth; i++)
        for (int64_t o = 0; o < x->outs; o++)
            x->qvals[element(x, group, o, i)] = rounded[i * x->outs + o];
    return OCT_OK;
}

static oct_status round_layer(const rounder *r, const rlayer *x, float *scale, oct_ldlq *k)
{
    const float *weights = oct_layer_weights(r->j->g, x->node)->data;
    const qweights *q = r->j->node[x->node].weights[0];
    for (int64_t g = 0; g < x->l.groups; g++) {
        bool good;
        OCT_TRY(oct_ldlq_inputs(k, x->x + g * x->depth * x->rows, &good));
        if (good) {
            OCT_TRY(round_group(x, weights, q, g, scale, k));
            continue;
        }
        for (int64_t o = 0; o < x->outs; o++) /* inputs that were never seen: as they are */
            for (int64_t i = 0; i < x->depth; i++) {
                const int64_t e = element(x, g, o, i);
                x->qvals[e] = ((const int8_t *)q->qvals->data)[e];
            }
    }
    return OCT_OK;
}

static void round_part(void *arg, size_t begin, size_t end, size_t thread)
{
    rounder *r = arg;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        rlayer *x = &r->layer[r->from + i];
        oct_ldlq *k = oct_ldlq_create((size_t)x->depth, (size_t)x->outs, (size_t)x->rows);
        float *scale = oct_calloc((size_t)x->outs, sizeof *scale);
        x->status = k && scale ? round_layer(r, x, scale, k) : OCT_ENOMEM;
        oct_ldlq_destroy(k);
        oct_free(scale);
    }
}

/* Layers whose inputs fit into memory together. */
static oct_status round_some(rounder *r, oct_err *err)
{
    oct_status st = OCT_OK;
    for (size_t i = r->from; i < r->to && st == OCT_OK; i++) {
        rlayer *x = &r->layer[i];
        x->x = oct_calloc(1, bytes_of(x));
        x->qvals = oct_arena_calloc(r->a, (size_t)r->j->node[x->node].weights[0]->qvals->count, 1);
        st = x->x && x->qvals ? OCT_OK : oct_nomem(err);
    }
    if (st == OCT_OK)
        st = oct_sim_show(r->s, collect, r, err);
    if (st == OCT_OK)
        oct_pool_for(r->s->core->pool, r->to - r->from, 1, round_part, r);
    for (size_t i = r->from; i < r->to; i++) {
        oct_free(r->layer[i].x);
        r->layer[i].x = NULL;
        if (st == OCT_OK && r->layer[i].status != OCT_OK)
            st = oct_nomem(err);
    }
    return st;
}

static oct_status round_all(rounder *r, oct_err *err)
{
    OCT_TRY(list_layers(r, err));
    for (r->from = 0; r->from < r->n; r->from = r->to) {
        size_t bytes = bytes_of(&r->layer[r->from]);
        for (r->to = r->from + 1; r->to < r->n && bytes + bytes_of(&r->layer[r->to]) <= COLLECT_BYTES; r->to++)
            bytes += bytes_of(&r->layer[r->to]);
        OCT_TRY(round_some(r, err));
    }
    return OCT_OK;
}

/* ---- in place of the nearest ones ---- */

/* Exchanges the codes of a layer for others. */
static oct_status take(oct_qjob *j, const rlayer *x, oct_err *err)
{
    qweights *q = j->node[x->node].weights[0];
    const float *w = oct_layer_weights(j->g, x->node)->data;
    oct_tensor *t;
    q->noise = 0;
    OCT_TRY(oct_tensor_new(j->lasting, OCT_S8, q->qvals->rank, q->qvals->dims, &t, err));
    memcpy((void *)(uintptr_t)t->data, x->qvals, (size_t)t->count);
    for (int64_t e = 0; e < t->count; e++) {
        const double d = (double)w[e] - (double)x->qvals[e] * (double)q->quant.scale[q->quant.n > 1 ? oct_output_channel(&x->l, e) : 0];
        q->noise += d * d;
    }
    q->qvals = t;
    q->quant.dtype = OCT_UNDEFINED; /* to be written anew */
    q->checked = false;
    return OCT_OK;
}

static oct_status round_with(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    rounder *x = t->arg;
    (void)r;
    *x = (rounder){ .j = c->job, .a = a };
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_FEW_RUNS, 0, &x->s, err));
    OCT_TRY(round_all(x, err));
    if (!(x->kept = oct_arena_calloc(a, x->n + 1, sizeof *x->kept)))
        return oct_nomem(err);
    for (size_t i = 0; i < x->n; i++) {
        x->kept[i] = *c->job->node[x->layer[i].node].weights[0];
        OCT_TRY(take(c->job, &x->layer[i], err));
    }
    oct_conversion_changed(c);
    return OCT_OK;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    const rounder *x = t->arg;
    for (size_t i = 0; i < x->n; i++)
        *c->job->node[x->layer[i].node].weights[0] = x->kept[i];
    oct_conversion_changed(c);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    rounder x;
    oct_trial t = { .size = OCT_SIM_FEW_RUNS, .act = round_with, .undo = undo, .otherwise = "to the nearest value", .arg = &x };
    return oct_conversion_try(c, &t, r, err);
}

const oct_method oct_method_rounding = {
    .name = "compensated-rounding",
    .summary = "weights rounded so that their errors compensate each other on the layer's inputs",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};
