/* Quantized weights and biases of products.
 *
 * Weights are symmetric: w = s_w * q. Bias is int32 at s_x * s_w. Where that would overflow (a channel of tiny weights with
 * a large bias), s_w grows until the bias fits; the weights then use fewer codes, which costs nothing against their size.
 *
 * Bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019, section 4.2): rounding
 * the weights shifts output channel o by the sum over inputs of (wq - w)[o][c] * E[x_c]; the bias takes it back. E[x_c] comes
 * from the calibration table. Rounding the activations shifts it too where many values are the same (a constant background, zeros
 * beside a clamp): with samples at hand E[xq_c] is measured, and the bias takes back sum w E[x] - sum wq E[xq]. */
#include "quant/job.h"

#include <math.h>
#include <string.h>

/* The weights of a layer, and how they lie. */
typedef struct weights_view {
    const oct_tensor *w;
    oct_weight_layout l;
} weights_view;

/* Walks the elements in order with the channels they belong to. Divisions happen once a row: in it one channel stays, and the other
 * is the next after each run of taps. */
typedef struct walk {
    const oct_weight_layout *l;
    int64_t row, left_row, left_taps; /* elements */
    int64_t next_out, next_in;        /* which of the two goes on */
    int64_t out, in;
} walk;

static walk begin(const weights_view *s)
{
    const bool rows = s->l.out_axis < s->l.in_axis;
    return (walk){ .l = &s->l, .row = rows ? s->l.out_step : s->l.in_step, .next_out = !rows, .next_in = rows };
}

static inline void step_to(walk *x, int64_t e)
{
    if (x->left_row-- == 0) {
        x->out = oct_output_channel(x->l, e);
        x->in = oct_input_channel(x->l, e);
        x->left_row = x->row - 1;
        x->left_taps = x->l->taps - 1;
    } else if (x->left_taps-- == 0) {
        x->out += x->next_out;
        x->in += x->next_in;
        x->left_taps = x->l->taps - 1;
    }
}

/* The largest magnitude of each channel; old: as in round_weights. */
static oct_status find_largest(qweights *q, const qweights *old, const weights_view *s, oct_arena *a, oct_err *err)
{
    if (old && old->channels == q->channels) {
        q->largest = old->largest;
        return OCT_OK;
    }
    q->largest = oct_arena_calloc(a, (size_t)q->channels, sizeof *q->largest);
    if (!q->largest)
        return oct_nomem(err);
    const float *v = s->w->data;
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        float m = fabsf(v[e]), *top = &q->largest[q->channels > 1 ? x.out : 0];
        if (!isfinite(v[e]))
            return oct_fail(err, OCT_ENUMERIC, "a weight is not finite (element %lld)", (long long)e);
        *top = m > *top ? m : *top;
    }
    return OCT_OK;
}

static oct_status choose_scales(qweights *q, int limit, oct_arena *a, oct_err *err)
{
    q->scale = oct_arena_calloc(a, (size_t)q->channels, sizeof *q->scale);
    if (!q->scale)
        return oct_nomem(err);
    for (int64_t c = 0; c < q->channels; c++) {
        q->scale[c] = q->largest[c] / (float)limit;
        if (!(q->scale[c] >= 0x1p-120f))
            q->scale[c] = 1.0f; /* a channel of zeros */
    }
    return OCT_OK;
}

static const float *bias_of(const oct_qjob *j, int node)
{
    const oct_tensor *t = oct_layer_bias(j->g, node);
    return t && t->dtype == OCT_F32 ? t->data : NULL;
}

/* Keeps every bias within 2^30 steps. */
static void make_room(qweights *q, const float *bias, int64_t outs, float sx)
{
    for (int64_t o = 0; bias && o < outs; o++) {
        float *s = &q->scale[q->channels > 1 ? o : 0], need = fabsf(bias[o]) / (sx * 0x1p30f);
        if (*s < need)
            *s = need;
    }
}

/* old: the same layer's weights of an earlier decision, or NULL; their codes stay where the scales did. */
static oct_status round_weights(qweights *q, const qweights *old, const weights_view *s, int limit, oct_arena *a, oct_err *err)
{
    q->limit = limit;
    if (old && old->limit == limit && old->channels == q->channels &&
        memcmp(old->scale, q->scale, (size_t)q->channels * sizeof *q->scale) == 0) {
        q->codes = old->codes;
        q->written = old->written;
        q->sqnr = old->sqnr;
        q->checked = old->checked;
        q->safe = old->safe;
        return OCT_OK;
    }
    q->checked = false;
    OCT_TRY(oct_tensor_new(a, OCT_S8, s->w->rank, s->w->dims, &q->codes, err));
    int8_t *codes = (int8_t *)(uintptr_t)q->codes->data;
    const float *v = s->w->data;
    double signal = 0, noise = 0;
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        float scale = q->scale[q->channels > 1 ? x.out : 0];
        float r = rintf(v[e] / scale);
        r = r > (float)limit ? (float)limit : r < (float)-limit ? (float)-limit : r;
        codes[e] = (int8_t)r;
        double d = (double)v[e] - (double)r * (double)scale;
        signal += (double)v[e] * (double)v[e];
        noise += d * d;
    }
    q->sqnr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    return OCT_OK;
}

/* correct() where `run` elements in a row belong to one output channel and s->l.taps to one input channel. Sums in four turns: one
 * would wait for its last addition each time. */
static void correct_rows(const qweights *q, const weights_view *s, const double *real, const double *rounded,
                         int64_t run, double *shift)
{
    const int8_t *codes = q->codes->data;
    const float *v = s->w->data;
    for (int64_t e = 0; e < s->w->count; e += run) {
        const int64_t o = oct_output_channel(&s->l, e), in = oct_input_channel(&s->l, e);
        double exact[4] = { 0 }, coded[4] = { 0 };
        for (int64_t c = 0; c < run / s->l.taps; c++)
            for (int64_t t = 0; t < s->l.taps; t++) {
                const int64_t i = e + c * s->l.taps + t;
                exact[i % 4] += (double)v[i] * real[in + c];
                coded[i % 4] += (double)codes[i] * rounded[in + c];
            }
        shift[o] += exact[0] + exact[1] + (exact[2] + exact[3]) -
                    (coded[0] + coded[1] + (coded[2] + coded[3])) * (double)q->scale[q->channels > 1 ? o : 0];
    }
}

/* shift[o] = sum w * E[x] - sum wq * E[xq]: what the layer should give on average less what it gives. */
static void correct(const qweights *q, const weights_view *s, const double *real, const double *rounded,
                    double *shift)
{
    const int8_t *codes = q->codes->data;
    const float *v = s->w->data;
    if (s->l.in_step <= s->l.out_step) {
        correct_rows(q, s, real, rounded, s->l.out_step, shift);
        return;
    }
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        int64_t o = x.out, c = x.in;
        shift[o] += (double)v[e] * real[c] - (double)codes[e] * (double)q->scale[q->channels > 1 ? o : 0] * rounded[c];
    }
}

/* What the channels are to be shifted by, outs of them and as many again for the work. */
static double *find_shift(const oct_qjob *j, qweights *q, const weights_view *s, const double *real, const double *rounded)
{
    const int64_t outs = s->l.outs;
    double *all = oct_calloc(2 * (size_t)outs, sizeof *all), *own = all ? all + outs : NULL;
    if (!all)
        return NULL;
    correct(q, s, real, real, own); /* of rounded weights alone */
    if (rounded)
        correct(q, s, real, rounded, all);
    else
        memcpy(all, own, (size_t)outs * sizeof *all);
    q->shift = (qshift){ .channels = outs };
    for (int64_t o = 0; o < outs; o++) {
        const double inputs = all[o] - own[o];
        q->shift.weights += own[o] * own[o];
        q->shift.inputs += inputs * inputs;
        all[o] = j->opts.bias_weights ? all[o] : inputs;
    }
    return all;
}

static oct_status make_bias(oct_qjob *j, qweights *q, int node, const weights_view *s, const double *shift, float sx, oct_err *err)
{
    const float *bias = bias_of(j, node);
    if (!bias && !shift)
        return OCT_OK;
    q->bias = oct_arena_calloc(j->arena, (size_t)s->l.outs, sizeof *q->bias);
    if (!q->bias)
        return oct_nomem(err);
    q->n_bias = s->l.outs;
    for (int64_t o = 0; o < s->l.outs; o++) {
        double b = (bias ? (double)bias[o] : 0) + (shift ? shift[o] : 0);
        const double step = (double)(sx * q->scale[q->channels > 1 ? o : 0]), r = rint(b / step);
        q->shift.left += (b - r * step) * (b - r * step);
        q->bias[o] = r > 2147483647.0 ? INT32_MAX : r < -2147483648.0 ? INT32_MIN : (int32_t)r;
    }
    return OCT_OK;
}

/* The same integers as u8 with zero point 128 are a form that ONNX Runtime multiplies without saturation. */
static bool pairs_safe(qweights *q, const oct_weight_layout *l)
{
    if (!q->checked)
        q->safe = oct_pairs_safe(l, q->codes->data);
    q->checked = true;
    return q->safe;
}

const char *oct_weights_type(const oct_qjob *j, oct_weight_type asked, oct_dtype activations, bool safe, oct_dtype *type)
{
    const oct_target *t = j->opts.target;
    const bool takes_u8 = oct_target_takes(t, activations, OCT_U8), takes_s8 = oct_target_takes(t, activations, OCT_S8);
    *type = OCT_U8;
    if (asked == OCT_WEIGHT_U8 && takes_u8)
        return "u8 weights, as the policy says";
    if (!takes_s8)
        return "u8 weights: the target takes no others";
    if (oct_target_saturates(t) && !safe && takes_u8)
        return "u8 weights: s8 could saturate 16 bits on CPUs without VNNI";
    *type = OCT_S8;
    if (!oct_target_saturates(t))
        return NULL;
    return safe ? "s8 weights, proved safe from saturation"
                : "7-bit weights: s8 could saturate 16 bits on CPUs without VNNI, and s8 activations rule out u8";
}

/* What keeps 16-bit pair sums from saturating in the target; false when the codes must be rounded again to fewer bits. */
static bool remedy(const oct_qjob *j, qweights *q, const oct_weight_layout *l, oct_weight_type asked, oct_dtype activations)
{
    const oct_target *t = j->opts.target;
    const bool proof = oct_target_saturates(t) && !(asked == OCT_WEIGHT_U8 && oct_target_takes(t, activations, OCT_U8));
    const bool safe = proof && pairs_safe(q, l);
    q->remedy = oct_weights_type(j, asked, activations, safe, &q->dtype);
    return q->dtype == OCT_U8 || !proof || safe;
}

/* Scales, codes and bias with weights within -limit..limit. */
static oct_status quantize_within(oct_qjob *j, int node, const weights_view *s, int limit, const double *real, const double *rounded,
                                  size_t n_means, qweights *q, oct_err *err)
{
    const oct_node *n = &j->g->node[node];
    const qvalue *x = &j->value[n->in[0]];
    float sx = x->has_grid ? x->q.scale : 0;
    OCT_TRY(find_largest(q, j->weights[node], s, j->arena, err));
    OCT_TRY(choose_scales(q, limit, j->arena, err));
    if (sx > 0)
        make_room(q, bias_of(j, node), s->l.outs, sx);
    OCT_TRY(round_weights(q, j->weights[node], s, limit, j->arena, err));
    if (!(sx > 0))
        return OCT_OK;
    double *shift = NULL;
    if (real && (int64_t)n_means == s->l.ins && (j->opts.bias_weights || rounded) && !(shift = find_shift(j, q, s, real, rounded)))
        return oct_nomem(err);
    oct_status st = make_bias(j, q, node, s, shift, sx, err);
    oct_free(shift);
    return st;
}

oct_status oct_quantize_weights(oct_qjob *j, int node, const double *real, const double *rounded, size_t n_means, oct_err *err)
{
    const oct_node *n = &j->g->node[node];
    weights_view s = { .w = oct_layer_weights(j->g, node) };
    if (!s.w)
        return OCT_OK; /* both operands are activations */
    if (!oct_layer_layout(j->g, node, &s.l))
        return oct_fail(err, OCT_EINTERNAL, "weights of %d dimensions", s.w->rank);
    const oct_policy_row *row = &j->node[node].row;
    qweights *q = oct_arena_calloc(j->arena, 1, sizeof *q);
    if (!q)
        return oct_nomem(err);
    q->axis = s.l.out_axis;
    /* Where groups share indices of this dimension, its scales would not tell their channels apart. */
    q->channels = row->per_channel && s.l.outs == s.w->dims[q->axis] ? s.l.outs : 1;
    int limit = row->weights == OCT_WEIGHT_S7 ? 64 : 127;
    OCT_TRY(quantize_within(j, node, &s, limit, real, rounded, n_means, q, err));
    oct_dtype activations = j->value[n->in[0]].has_grid ? j->value[n->in[0]].dtype : OCT_U8;
    if (!remedy(j, q, &s.l, row->weights, activations))
        OCT_TRY(quantize_within(j, node, &s, 64, real, rounded, n_means, q, err));
    j->weights[node] = q;
    return OCT_OK;
}
