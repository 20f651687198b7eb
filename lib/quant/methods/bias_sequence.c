/* Corrects biases in the order of the layers. Each correction is measured on inputs from the quantized model in which
 * the layers before have already been corrected (after Nagel et al., Data-Free Quantization Through Weight Equalization
 * and Bias Correction, 2019, appendix D: empirical bias correction).
 *
 * First the float model runs, and gives the mean of each layer's channels before any clamp. Then all samples go through
 * the rounded model together, layer by layer. At each layer the means are compared. The difference is added to the
 * bias, and to the values that the next layers read. A run cannot stop in a body: its layers are left out, which the
 * result says. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "quant/methods/trial.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LANE_BYTES = 48 << 20, LEAST_LANES = 4 }; /* memory for the tensors of all samples in progress */

typedef struct sequence sequence;

/* A layer whose bias is corrected. */
typedef struct corrected {
    int node;
    const char *name; /* the name of its output before a clamp */
    size_t tap;       /* the tap of that */
    int rounded;      /* the job's value that is rounded at that place, or -1 */
    int axis;         /* the dimension that holds its channels */
    int64_t channels;
    int64_t first; /* the index of its first channel among those of all layers */
    bool known;    /* the means in the float model are known */
    double *shift; /* [channels]: float mean minus mean in the rounded model */
} corrected;

/* A thread that runs the float model. */
typedef struct reader {
    sequence *q;
    oct_runner *runner;
    size_t lane; /* the sample that is running */
} reader;

/* A sample on its way through the rounded model. */
typedef struct lane {
    sequence *q;
    oct_runner *runner;
    oct_plan *plan;
    const oct_operand *at; /* the output of the current layer */
    double *mean;          /* [channels of all layers] */
    double *real;          /* [channels of all layers]: the means in the float model */
    bool *shown;           /* [layers]: the means of the float model are known */
} lane;

struct sequence {
    oct_sim *s;
    oct_qjob *j;
    oct_arena *a;
    corrected *layer; /* in the order in which they run */
    size_t n;
    const char **output; /* [n]: the names of their outputs */
    reader *reader;      /* one for each thread */
    const char **tap;
    int *tapped; /* by tap: the job's value that it rounds, or -1 */
    size_t n_taps;
    int64_t channels;       /* the number of channels of all layers */
    const oct_quant **kept; /* [n_nodes]: the biases before any correction */
    lane *lane;             /* one for each sample */
    size_t n_lanes;
    const corrected *now; /* the current layer */
};

/* ---- layers ---- */

static bool is_corrected(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    return oct_is_product(j, id) && oct_sim_rounds(j, id) && op->weights.bias && oct_quant_of(j, j->g->node[id].in[0]);
}

/* How many layers of bodies would be, if a run could stop there. */
static size_t count_in_bodies(const oct_qjob *j)
{
    size_t n = 0;
    for (size_t k = 0; k < j->n_all; k++)
        n += j->all[k].job != j && is_corrected(j->all[k].job, j->all[k].node);
    return n;
}

static oct_status list_layers(sequence *q, oct_err *err)
{
    const oct_qjob *j = q->j;
    const oct_graph *g =
        q->s->core->graph[SIM_ROUNDED].g; /* has the job's nodes in the order in which plans run them */
    q->layer = oct_arena_calloc(q->a, j->n_layer + 1, sizeof *q->layer);
    q->output = oct_arena_calloc(q->a, j->n_layer + 1, sizeof *q->output);
    if (!q->layer || !q->output)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        oct_weight_layout l;
        if (id >= (int)j->n_nodes || !is_corrected(j, id) || !oct_layer_layout(j->g, id, &l))
            continue;
        corrected *t = &q->layer[q->n];
        const int v = j->g->node[id].out[0], rank = j->g->value[v].shape.rank;
        *t = (corrected){
            .node = id, .name = oct_value_name(j->g, v), .rounded = -1, .channels = l.outs, .first = q->channels
        };
        q->output[q->n++] = t->name;
        t->axis = oct_op_of(j->g, id)->weights.kernel ? 1 : rank - 1;
        t->shift = oct_arena_calloc(q->a, (size_t)l.outs, sizeof *t->shift);
        q->channels += l.outs;
        if (!t->shift)
            return oct_nomem(err);
    }
    return OCT_OK;
}

/* Lists the taps: values that are rounded, and outputs of layers. A value may be both. */
static oct_status list_taps(sequence *q, oct_err *err)
{
    const oct_sim_core *s = q->s->core;
    q->tap = oct_arena_calloc(q->a, s->n_taps + q->n + 1, sizeof *q->tap);
    q->tapped = oct_arena_calloc(q->a, s->n_taps + q->n + 1, sizeof *q->tapped);
    if (!q->tap || !q->tapped)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n_taps; i++) {
        q->tap[i] = s->tap[i];
        q->tapped[i] = s->tapped[i];
    }
    q->n_taps = s->n_taps;
    for (size_t k = 0; k < q->n; k++) {
        size_t i = 0;
        while (i < q->n_taps && strcmp(q->tap[i], q->layer[k].name) != 0)
            i++;
        q->layer[k].tap = i;
        if (i < s->n_taps) {
            q->layer[k].rounded = q->tapped[i];
            q->tapped[i] = -1; /* the layer's code rounds it, after the correction */
        } else if (i == q->n_taps) {
            q->tapped[q->n_taps] = -1;
            q->tap[q->n_taps++] = q->layer[k].name;
        }
    }
    return OCT_OK;
}

/* ---- running ---- */

static oct_status show(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    lane *w = arg;
    const sequence *q = w->q;
    if (q->now && tap == q->now->tap)
        w->at = t;
    if (q->tapped[tap] >= 0 && t->dtype == OCT_F32)
        oct_sim_round(q->j, q->tapped[tap], t);
    return OCT_OK;
}

/* How the elements of one channel are arranged: positions [outer][inner], at distances outer_step and inner_step. */
typedef struct channel_view {
    int64_t step;                                            /* the distance from one channel to the next */
    int64_t rank, dims[OCT_MAX_RANK], strides[OCT_MAX_RANK]; /* the other dimensions */
    int64_t count;
} channel_view;

static bool view_channels(const oct_operand *t, const corrected *x, channel_view *v)
{
    int64_t strides[OCT_MAX_RANK];
    if (!t || t->dtype != OCT_F32 || t->q || x->axis < 0 || x->axis >= t->rank || t->dims[x->axis] != x->channels)
        return false;
    oct_operand_strides(t, strides);
    *v = (channel_view){ .step = strides[x->axis], .count = t->count / x->channels };
    for (int d = 0; d < t->rank; d++)
        if (d != x->axis) {
            v->dims[v->rank] = t->dims[d];
            v->strides[v->rank++] = strides[d];
        }
    return v->count > 0;
}

/* The place of element i of a channel, counted in the order of the dimensions. */
static int64_t place_of(const channel_view *v, int64_t i)
{
    int64_t at = 0;
    for (int64_t d = v->rank - 1; d >= 0; d--) {
        at += i % v->dims[d] * v->strides[d];
        i /= v->dims[d];
    }
    return at;
}

static void find_means(const oct_operand *t, const corrected *x, const channel_view *v, double *mean)
{
    const float *data = t->data;
    memset(mean, 0, (size_t)x->channels * sizeof *mean);
    for (int64_t i = 0; i < v->count; i++) {
        const float *p = data + place_of(v, i);
        for (int64_t c = 0; c < x->channels; c++)
            mean[c] += (double)p[c * v->step];
    }
    for (int64_t c = 0; c < x->channels; c++)
        mean[c] /= (double)v->count;
}

static void shift_values(const lane *w, const corrected *x, const channel_view *v)
{
    float *data = w->at->data;
    for (int64_t i = 0; i < v->count; i++) {
        float *p = data + place_of(v, i);
        for (int64_t c = 0; c < x->channels; c++)
            p[c * v->step] += (float)x->shift[c];
    }
}

static const oct_array *input_of(const sequence *q, size_t i)
{
    return q->s->sample[i * q->s->n_samples / q->n_lanes]->input;
}

static oct_status begin_lane(void *arg, size_t i, size_t thread, oct_err *err)
{
    const sequence *q = arg;
    return oct_runner_begin(q->lane[i].runner, input_of(q, i), &q->lane[i].plan, err);
}

static oct_status advance_lane(void *arg, size_t i, size_t thread, oct_err *err)
{
    const sequence *q = arg;
    lane *w = &q->lane[i];
    channel_view v;
    bool found = false;
    w->at = NULL;
    if (oct_plan_shows(w->plan, q->now->tap))
        OCT_TRY(oct_plan_advance(w->plan, q->now->tap, &found, err));
    if (found && view_channels(w->at, q->now, &v))
        find_means(w->at, q->now, &v, w->mean + q->now->first);
    else
        w->at = NULL;
    return OCT_OK;
}

static void correct_part(void *arg, size_t begin, size_t end, size_t thread)
{
    sequence *q = arg;
    channel_view v;
    for (size_t i = begin; i < end; i++) {
        lane *w = &q->lane[i];
        if (!w->at || !view_channels(w->at, q->now, &v))
            continue;
        shift_values(w, q->now, &v);
        if (q->now->rounded >= 0)
            oct_sim_round(q->j, q->now->rounded, w->at);
    }
}

/* What a channel's mean lacks, from the differences of the samples. Each has the same weight, whatever its shape.
 * Samples whose differences scatter tell little of it, and fewer of them less: the estimate shrinks by the share of its
 * square that chance explains, and is 0 where chance explains it all. */
static double shift_of(const sequence *q, int64_t at)
{
    const double n = (double)q->n_lanes;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < q->n_lanes; i++)
        sum += q->lane[i].real[at] - q->lane[i].mean[at];
    const double mean = sum / n;
    for (size_t i = 0; i < q->n_lanes; i++) {
        const double apart = q->lane[i].real[at] - q->lane[i].mean[at] - mean;
        squares += apart * apart;
    }
    const double chance = q->n_lanes > 1 ? squares / (n - 1) / n : 0;
    return chance < mean * mean ? mean * (1 - chance / (mean * mean)) : 0;
}

static oct_plan_opts options(const sequence *q)
{
    return (oct_plan_opts){ .taps = q->tap, .n_taps = q->n_taps, .no_passes = true, .fast_pack = true };
}

static oct_status open_lanes(sequence *q, const oct_graph *g, oct_err *err)
{
    const oct_plan_opts o = options(q);
    for (size_t i = 0; i < q->n_lanes; i++) {
        OCT_TRY(oct_runner_create(g, &o, NULL, 0, &q->lane[i].runner, err));
        oct_runner_set_tap(q->lane[i].runner, show, &q->lane[i]);
    }
    q->now = NULL;
    return oct_pool_try(q->s->core->pool, q->n_lanes, begin_lane, q, err);
}

static void close_lanes(sequence *q)
{
    for (size_t i = 0; i < q->n_lanes; i++) {
        oct_runner_destroy(q->lane[i].runner);
        q->lane[i].runner = NULL;
    }
}

/* The scale of channel c's bias. */
static float bias_scale(const sequence *q, const corrected *x, int64_t c)
{
    const oct_quant *w = &q->j->constants[x->node].weights[0]->quant;
    return oct_quant_of(q->j, q->j->g->node[x->node].in[0])->scale[0] * w->scale[w->n > 1 ? c : 0];
}

/* Rounds a shift to whole steps of the bias. The remainder is left for the layers after it to correct. */
static double to_steps(const sequence *q, const corrected *x, int64_t c, double shift)
{
    const double step = (double)bias_scale(q, x, c);
    return rint(shift / step) * step;
}

static oct_status visit(sequence *q, corrected *x, oct_err *err)
{
    bool known = x->known;
    q->now = x;
    OCT_TRY(oct_pool_try(q->s->core->pool, q->n_lanes, advance_lane, q, err));
    for (size_t i = 0; i < q->n_lanes; i++)
        known &= q->lane[i].at != NULL;
    if (!known)
        return OCT_OK;
    for (int64_t c = 0; c < x->channels; c++)
        x->shift[c] = to_steps(q, x, c, shift_of(q, x->first + c));
    oct_pool_for(q->s->core->pool, q->n_lanes, 1, correct_part, q);
    return OCT_OK;
}

static oct_status run_rounded(sequence *q, oct_err *err)
{
    oct_status st = open_lanes(q, q->s->core->graph[SIM_ROUNDED].g, err);
    for (size_t k = 0; k < q->n && st == OCT_OK; k++)
        st = visit(q, &q->layer[k], err);
    close_lanes(q);
    return st;
}

/* ---- the float model ---- */

static oct_status read_means(void *arg, size_t k, const oct_operand *t, oct_err *err)
{
    reader *r = arg;
    const sequence *q = r->q;
    channel_view v;
    if (!view_channels(t, &q->layer[k], &v))
        return OCT_OK;
    find_means(t, &q->layer[k], &v, q->lane[r->lane].real + q->layer[k].first);
    q->lane[r->lane].shown[k] = true;
    return OCT_OK;
}

static oct_status read_sample(void *arg, size_t i, size_t thread, oct_err *err)
{
    const sequence *q = arg;
    reader *r = &q->reader[thread];
    const oct_plan_opts o = { .taps = q->output, .n_taps = q->n, .no_passes = true, .fast_pack = true };
    oct_plan *plan;
    if (!r->runner) {
        OCT_TRY(oct_runner_create(q->s->core->graph[SIM_REAL].g, &o, NULL, 0, &r->runner, err));
        oct_runner_set_tap(r->runner, read_means, r);
    }
    r->q = arg;
    r->lane = i;
    return oct_runner_run(r->runner, input_of(q, i), &plan, err);
}

static oct_status run_real(sequence *q, oct_err *err)
{
    const size_t threads = q->s->core->threads;
    if (!(q->reader = oct_arena_calloc(q->a, threads, sizeof *q->reader)))
        return oct_nomem(err);
    const oct_status st = oct_pool_try(q->s->core->pool, q->n_lanes, read_sample, q, err);
    for (size_t t = 0; t < threads; t++)
        oct_runner_destroy(q->reader[t].runner);
    for (size_t k = 0; k < q->n; k++) {
        q->layer[k].known = true;
        for (size_t i = 0; i < q->n_lanes; i++)
            q->layer[k].known &= q->lane[i].shown[k];
    }
    return st;
}

/* ---- biases ---- */

/* Adds the shift to the bias of a layer. A layer without a bias gets one. */
static oct_status add_shift(const sequence *q, const corrected *x, oct_err *err)
{
    qconstants *n = &q->j->constants[x->node];
    const oct_quant *w = &n->weights[0]->quant, *old = n->bias;
    oct_quant *b = oct_arena_calloc(q->j->lasting, 1, sizeof *b);
    oct_tensor *qvals;
    float *scale;
    if (!b)
        return oct_nomem(err);
    *b = (oct_quant){ .n = w->n, .dtype = OCT_S32 };
    OCT_TRY(oct_new_scales(q->j, b, 0, &scale, err));
    OCT_TRY(oct_tensor_new(q->j->lasting, OCT_S32, 1, &x->channels, &qvals, err));
    for (int i = 0; i < b->n; i++)
        scale[i] = bias_scale(q, x, i);
    for (int64_t c = 0; c < x->channels; c++) {
        const double had = old ? ((const int32_t *)old->qvals->data)[c] : 0,
                     r = had + rint(x->shift[c] / (double)scale[b->n > 1 ? c : 0]);
        ((int32_t *)(uintptr_t)qvals->data)[c] = r > 2147483647.0    ? INT32_MAX
                                                 : r < -2147483648.0 ? INT32_MIN
                                                                     : (int32_t)r;
    }
    b->qvals = qvals;
    if (oct_target_rules_of(q->j->opts.target)->biases == OCT_BIASES_INT8)
        oct_round_to_own_bias(b);
    n->bias = b;
    return OCT_OK;
}

/* Each lane has a plan of its own, so there are only as many as memory allows. */
static oct_status limit_lanes(sequence *q, oct_err *err)
{
    const oct_plan_opts o = options(q);
    oct_runner *r;
    oct_plan *plan;
    if (q->n_lanes == 0)
        return OCT_OK;
    OCT_TRY(oct_runner_create(q->s->core->graph[SIM_REAL].g, &o, NULL, 0, &r, err));
    oct_status s = oct_runner_plan(r, q->s->sample[0]->input, &plan, err);
    const size_t most = s == OCT_OK ? LANE_BYTES / (oct_plan_memory_of(plan).arena + 1) : 0;
    oct_runner_destroy(r);
    q->n_lanes = most < LEAST_LANES ? LEAST_LANES : most;
    q->n_lanes = q->n_lanes < q->s->n_samples ? q->n_lanes : q->s->n_samples;
    return s;
}

static oct_status correct(sequence *q, oct_err *err)
{
    oct_sim_drop_runners(q->s->core);
    OCT_TRY(oct_sim_make_graph(q->s->core, SIM_REAL, NULL, err));
    OCT_TRY(oct_sim_make_graph(q->s->core, SIM_ROUNDED, NULL, err));
    OCT_TRY(list_layers(q, err));
    OCT_TRY(list_taps(q, err));
    OCT_TRY(limit_lanes(q, err));
    for (size_t i = 0; i < q->n_lanes; i++) {
        q->lane[i].q = q;
        q->lane[i].mean = oct_arena_calloc(q->a, (size_t)q->channels + 1, sizeof(double));
        q->lane[i].real = oct_arena_calloc(q->a, (size_t)q->channels + 1, sizeof(double));
        q->lane[i].shown = oct_arena_calloc(q->a, q->n + 1, sizeof(bool));
        if (!q->lane[i].mean || !q->lane[i].real || !q->lane[i].shown)
            return oct_nomem(err);
    }
    OCT_TRY(run_real(q, err));
    OCT_TRY(run_rounded(q, err));
    for (size_t k = 0; k < q->n; k++)
        OCT_TRY(add_shift(q, &q->layer[k], err));
    return OCT_OK;
}

static oct_status correct_all(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    sequence *q = t->arg;
    *q = (sequence){ .j = c->job, .a = a };
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_FEW_RUNS, 0, &q->s, err));
    q->n_lanes = q->s->n_samples;
    q->lane = oct_arena_calloc(a, q->n_lanes + 1, sizeof *q->lane);
    q->kept = oct_arena_calloc(a, q->j->n_nodes + 1, sizeof *q->kept);
    if (!q->lane || !q->kept)
        return oct_nomem(err);
    for (size_t i = 0; i < q->j->n_nodes; i++)
        q->kept[i] = q->j->constants[i].bias;
    const oct_status s = correct(q, err);
    oct_conversion_edited(c);
    if (s != OCT_EUNSUPPORTED)
        return s;
    r->why = "the model runs in stages"; /* nothing was changed */
    return OCT_OK;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    const sequence *q = t->arg;
    for (size_t i = 0; i < q->j->n_nodes; i++)
        q->j->constants[i].bias = q->kept[i];
    oct_conversion_edited(c);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    sequence q;
    oct_trial t = {
        .size = OCT_SIM_JUDGES, .act = correct_all, .undo = undo, .otherwise = "biases stay as they are", .arg = &q
    };
    OCT_TRY(oct_conversion_settle(c, err));
    const size_t inside = count_in_bodies(c->job);
    bool outside = false;
    for (size_t i = 0; i < c->job->n_layer; i++)
        outside |= is_corrected(c->job, c->job->layer[i]);
    if (inside && !outside) {
        r->why = "all layers are in If, Loop or Scan, in which a run cannot stop";
        return OCT_OK;
    }
    OCT_TRY(oct_conversion_try(c, &t, r, err));
    if (inside && !*r->choice)
        snprintf(r->choice, sizeof r->choice, "but for %zu layer%s in If, Loop or Scan", inside,
                 inside == 1 ? "" : "s");
    return OCT_OK;
}

const oct_method oct_method_bias_sequence = {
    .name = "bias-sequence",
    .summary = "biases corrected layer by layer",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};
