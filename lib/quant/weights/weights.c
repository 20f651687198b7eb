/* Quantizes weights and biases.
 *
 * Weights are symmetric: w = s_w * q. A bias is int32 with scale s_x * s_w. If it would overflow (a channel with tiny
 * weights and a large bias), s_w is increased until the bias fits. The weights then use fewer quantized values, which
 * does no harm in comparison with the bias. If the target adds pairs in 16 bits, s_w is also increased until pairs
 * cannot saturate, if that costs little (saturate.c); with samples, rounding.c finds better weights.
 *
 * Bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019,
 * section 4.2): rounding the weights shifts output channel o by the sum over inputs of (wq - w)[o][c] * E[x_c], and the
 * bias compensates this. E[x_c] comes from the calibration table. Rounding the activations shifts the channel as well
 * if many values are equal (a constant background, zeros at a clamp). With samples, E[xq_c] is measured, and the bias
 * compensates sum w E[x] - sum wq E[xq]. */
#include "quant/weights/weights.h"

#include "base/pool.h"
#include "base/stop.h"
#include "eval/metrics/summary.h"
#include "ops/core/waiting.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"
#include "quant/weights/saturate.h"

#include <math.h>
#include <string.h>

#define MOST_WIDENED 1.585 /* by how much the mean square of scales may grow for safe pairs: 2 dB */

/* The weights of a layer, their layout, and which of them share a scale. */
typedef struct weights_view {
    const oct_tensor *w;
    oct_weight_layout l;
    int64_t per; /* how many output channels share a scale, counted over all matrices */
} weights_view;

/* Iterates over the elements in order, with their channels. Divisions are made only once for each row: within a row one
 * channel is constant, and the other increases by one after each run of taps. */
typedef struct walk {
    const weights_view *s;
    int64_t row, left_row,
        left_taps;             /* the elements of a row, those that remain of it, and the taps that remain of a run */
    int64_t next_out, next_in; /* how much each channel increases after a run */
    int64_t out, in;           /* the channels of the element; `in` is counted within one matrix */
    int64_t scale;             /* the index of the scale of `out` */
} walk;

static walk begin(const weights_view *s)
{
    const bool rows = s->l.out_axis < s->l.in_axis;
    return (walk){ .s = s, .row = rows ? s->l.out_step : s->l.in_step, .next_out = !rows, .next_in = rows };
}

static inline void step_to(walk *x, int64_t e)
{
    const oct_weight_layout *l = &x->s->l;
    if (x->left_row-- == 0) {
        x->out = oct_output_channel(l, e);
        x->in = oct_input_channel(l, e);
        x->left_row = x->row - 1;
        x->left_taps = l->taps - 1;
    } else if (x->left_taps-- == 0) {
        x->out += x->next_out;
        x->in += x->next_in;
        x->left_taps = l->taps - 1;
    } else {
        return;
    }
    x->scale = x->s->per == 1 ? x->out : x->out / x->s->per;
}

/* The largest magnitude of each scale's channels, in the facts about the constant. */
static oct_status find_largest(const oct_qjob *j, int value, const weights_view *s, int scales, oct_err *err)
{
    qfacts *f = &j->facts[value];
    if (f->of == s->w && f->per == s->per && oct_same_layout(&f->layout, &s->l))
        return OCT_OK;
    const float *v = s->w->data;
    float *largest = oct_arena_calloc(j->arena, (size_t)scales, sizeof *largest);
    if (!largest)
        return oct_nomem(err);
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        const float m = fabsf(v[e]);
        float *top = &largest[x.scale];
        if (!isfinite(v[e]))
            return oct_fail(err, OCT_ENUMERIC, "a weight is not finite (element %lld)", (long long)e);
        *top = m > *top ? m : *top;
    }
    f->of = s->w;
    f->layout = s->l;
    f->per = s->per;
    f->largest = largest;
    return OCT_OK;
}

static float *scales_of(const oct_quant *q)
{
    return (float *)(uintptr_t)q->scale;
}

static void choose_scales(qweights *q, const float *largest)
{
    float *scale = scales_of(&q->quant);
    for (int c = 0; c < q->quant.n; c++) {
        scale[c] = largest[c] / (float)q->limit;
        if (!(scale[c] >= 0x1p-120f))
            scale[c] = 1.0f; /* a channel of zeros */
    }
}

static const float *bias_of(const oct_qjob *j, int node)
{
    const oct_tensor *t = oct_layer_bias(j->g, node);
    return t && t->dtype == OCT_F32 ? t->data : NULL;
}

/* Increases scales so that every bias stays within 2^30 steps. */
static void make_room(qweights *q, const float *bias, const weights_view *s, float sx)
{
    for (int64_t o = 0; bias && o < s->l.outs; o++) {
        float *scale = &scales_of(&q->quant)[o / s->per], need = fabsf(bias[o]) / (sx * 0x1p30f);
        if (*scale < need)
            *scale = need;
    }
}

/* Adds the squares of the weights, and those of their rounding errors, and proves that pairs do not saturate. */
static void judge(const oct_qjob *j, qweights *q, const weights_view *s)
{
    const float *v = s->w->data;
    const int8_t *qvals = q->qvals->data;
    walk x = begin(s);
    q->signal = q->noise = 0;
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        const double d = (double)v[e] - (double)qvals[e] * (double)q->quant.scale[x.scale];
        q->signal += (double)v[e] * (double)v[e];
        q->noise += d * d;
    }
    q->safe = !oct_target_saturates(j->opts.target) ||
              oct_pairs_safe(oct_target_rules_of(j->opts.target)->pair_sums, &s->l, qvals);
}

/* old: the weights of the same layer from an earlier decision, or NULL. Their quantized values are kept where the
 * scales have not changed. */
static oct_status round_weights(oct_qjob *j, qweights *q, const qweights *old, const weights_view *s, oct_err *err)
{
    if (old && old->limit == q->limit && old->quant.n == q->quant.n &&
        memcmp(old->quant.scale, q->quant.scale, (size_t)q->quant.n * sizeof(float)) == 0) {
        const oct_quant quant = q->quant;
        *q = *old;
        q->quant.scale = quant.scale;
        q->quant.zp = quant.zp;
        return OCT_OK;
    }
    OCT_TRY(oct_tensor_new(j->lasting, OCT_S8, s->w->rank, s->w->dims, &q->qvals, err));
    int8_t *qvals = (int8_t *)(uintptr_t)q->qvals->data;
    const float *v = s->w->data, limit = (float)q->limit;
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        const float scale = q->quant.scale[x.scale];
        float r = rintf(v[e] / scale);
        r = r > limit ? limit : r < -limit ? -limit : r;
        qvals[e] = (int8_t)r;
    }
    judge(j, q, s);
    return OCT_OK;
}

/* ---- bias correction ---- */

/* The means of the channels of a product's input. rounded: those of the dequantized input; NULL: not measured. */
typedef struct means {
    double *real, *rounded;
} means;

/* The result has NULL if there is nothing to correct by. The caller frees `real`. */
static oct_status find_means(const oct_qjob *j, const oct_calib *c, int value, int64_t channels, means *m, oct_err *err)
{
    const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, value)) : NULL;
    const double *moved = j->moved && (int64_t)j->moved_channels[value] == channels ? j->moved[value] : NULL;
    if (!t || channels == 0 || (int64_t)t->chan.channels != channels || !(j->opts.bias_weights || moved))
        return OCT_OK;
    if (!(m->real = oct_calloc(2 * (size_t)channels, sizeof *m->real)))
        return oct_nomem(err);
    m->rounded = moved ? m->real + channels : NULL;
    for (int64_t i = 0; i < channels; i++) {
        m->real[i] = oct_chan_mean(&t->chan.c[i]);
        if (moved)
            m->rounded[i] = m->real[i] + moved[i];
    }
    return OCT_OK;
}

/* Multiplies `run` weights of a row, from element e on, by means, in double. Four sums take turns, because a single one
 * would wait for each addition. sum: of weights with float means, of quantized weights with float means, and of
 * quantized weights with rounded means. */
static void add_products(const float *v, const int8_t *qvals, int64_t e, int64_t run, const double *real,
                         const double *rounded, double sum[3])
{
    double lane[3][4] = { { 0 } };
    for (int64_t i = 0; i < run;) {
        const int64_t first = (e + i) % 4, n = run - i < 4 - first ? run - i : 4 - first;
        for (int64_t k = 0; k < n; k++, i++) {
            lane[0][first + k] += (double)v[e + i] * real[i];
            lane[1][first + k] += (double)qvals[e + i] * real[i];
            lane[2][first + k] += (double)qvals[e + i] * rounded[i];
        }
        for (; i + 4 <= run; i += 4)
            for (int k = 0; k < 4; k++) {
                lane[0][k] += (double)v[e + i + k] * real[i + k];
                lane[1][k] += (double)qvals[e + i + k] * real[i + k];
                lane[2][k] += (double)qvals[e + i + k] * rounded[i + k];
            }
    }
    for (int k = 0; k < 3; k++)
        sum[k] = lane[k][0] + lane[k][1] + (lane[k][2] + lane[k][3]);
}

/* The same as correct(), if `run` elements in a row belong to one output channel, and s->l.taps to one input channel.
 * row: room for 2 * run. */
static void correct_rows(const qweights *q, const weights_view *s, const double *real, const double *rounded,
                         int64_t run, double *row, double *own, double *all)
{
    for (int64_t e = 0, last = -1; e < s->w->count; e += run) {
        const int64_t o = oct_output_channel(&s->l, e), in = oct_input_channel(&s->l, e);
        const double scale = (double)q->quant.scale[o / s->per];
        double sum[3];
        for (int64_t i = 0; in != last && i < run; i++) {
            row[i] = real[in + i / s->l.taps];
            row[run + i] = rounded[in + i / s->l.taps];
        }
        last = in;
        add_products(s->w->data, q->qvals->data, e, run, row, row + run, sum);
        own[o] += sum[0] - sum[1] * scale;
        all[o] += sum[0] - sum[2] * scale;
    }
}

/* own[o] = sum w * E[x] - sum wq * E[x], and all[o] the same with E[xq] in the second sum: the mean that the layer
 * should give minus the mean that it gives. */
static bool correct(const qweights *q, const weights_view *s, const double *real, const double *rounded, double *own,
                    double *all)
{
    const int8_t *qvals = q->qvals->data;
    const float *v = s->w->data;
    if (s->l.in_step <= s->l.out_step) {
        double *row = oct_calloc(2 * (size_t)s->l.out_step, sizeof *row);
        if (row)
            correct_rows(q, s, real, rounded, s->l.out_step, row, own, all);
        oct_free(row);
        return row != NULL;
    }
    walk x = begin(s);
    for (int64_t e = 0; e < s->w->count; e++) {
        step_to(&x, e);
        const double exact = (double)v[e] * real[x.in], quantized = (double)qvals[e] * (double)q->quant.scale[x.scale];
        own[x.out] += exact - quantized * real[x.in];
        all[x.out] += exact - quantized * rounded[x.in];
    }
    return true;
}

/* The shifts to be corrected: one for each of `outs` channels, followed by as many numbers of working memory. */
static double *find_shift(const oct_qjob *j, const qweights *q, const weights_view *s, const means *m, qshift *sums)
{
    const int64_t outs = s->l.outs;
    double *all = oct_calloc(2 * (size_t)outs, sizeof *all),
           *own = all ? all + outs : NULL; /* own: the shifts by rounded weights alone */
    if (!all || !correct(q, s, m->real, m->rounded ? m->rounded : m->real, own, all)) {
        oct_free(all);
        return NULL;
    }
    sums->channels = outs;
    for (int64_t o = 0; o < outs; o++) {
        const double inputs = all[o] - own[o];
        sums->weights += own[o] * own[o];
        sums->inputs += inputs * inputs;
        all[o] = j->opts.bias_weights ? all[o] : inputs;
    }
    return all;
}

enum { BYTE_MOST = 127 };

/* The step of a bias in a channel. */
static double bias_step(const oct_quant *b, int64_t channel, int64_t channels)
{
    return (double)b->scale[b->n > 1 ? channel * b->n / channels : 0];
}

float oct_own_bias_scale(const oct_quant *b)
{
    const int64_t channels = b->qvals->count;
    const int32_t *q = b->qvals->data;
    double most = 0, scale = 0;
    for (int64_t o = 0; o < channels; o++) {
        most = fmax(most, fabs(q[o] * bias_step(b, o, channels)));
        scale = fmax(scale, bias_step(b, o, channels));
    }
    while (scale * BYTE_MOST < most)
        scale *= 2;
    return (float)scale;
}

void oct_round_to_own_bias(oct_quant *b)
{
    const int64_t channels = b->qvals->count;
    int32_t *q = (int32_t *)(uintptr_t)b->qvals->data;
    const double scale = (double)oct_own_bias_scale(b);
    for (int64_t o = 0; o < channels; o++) {
        const double steps = scale / bias_step(b, o, channels); /* a power of two */
        q[o] = (int32_t)(fmax(-BYTE_MOST, fmin(BYTE_MOST, rint(q[o] / steps))) * steps);
    }
}

/* The bias plus the shift (may be NULL), as s32 with scale s_x * s_w. */
static oct_status round_bias(oct_qjob *j, int id, const weights_view *s, const qweights *q, const double *shift,
                             float sx, oct_err *err)
{
    const float *bias = bias_of(j, id);
    oct_quant *b = oct_arena_calloc(j->lasting, 1, sizeof *b);
    oct_tensor *qvals;
    float *scale;
    if (!b)
        return oct_nomem(err);
    *b = (oct_quant){ .n = q->quant.n, .dtype = OCT_S32 };
    OCT_TRY(oct_new_scales(j, b, 0, &scale, err));
    OCT_TRY(oct_tensor_new(j->lasting, OCT_S32, 1, &s->l.outs, &qvals, err));
    for (int c = 0; c < b->n; c++)
        scale[c] = sx * q->quant.scale[c];
    for (int64_t o = 0; o < s->l.outs; o++) {
        const double exact = (bias ? (double)bias[o] : 0) + (shift ? shift[o] : 0);
        const double step = (double)scale[o / s->per], r = rint(exact / step);
        j->constants[id].shift.left += (exact - r * step) * (exact - r * step);
        ((int32_t *)(uintptr_t)qvals->data)[o] = r > 2147483647.0    ? INT32_MAX
                                                 : r < -2147483648.0 ? INT32_MIN
                                                                     : (int32_t)r;
    }
    b->qvals = qvals;
    if (oct_target_rules_of(j->opts.target)->biases == OCT_BIASES_INT8)
        oct_round_to_own_bias(b);
    j->constants[id].bias = b;
    return OCT_OK;
}

static oct_status make_bias(oct_qjob *j, const oct_calib *c, int id, const weights_view *s, const qweights *q, float sx,
                            oct_err *err)
{
    means m = { NULL };
    double *shift = NULL;
    if (oct_op_of(j->g, id)->weights.bias)
        OCT_TRY(find_means(j, c, j->g->node[id].in[0], s->l.ins, &m, err));
    oct_status st = m.real && !(shift = find_shift(j, q, s, &m, &j->constants[id].shift)) ? oct_nomem(err) : OCT_OK;
    if (st == OCT_OK && (shift || bias_of(j, id)))
        st = round_bias(j, id, s, q, shift, sx, err);
    oct_free(m.real);
    oct_free(shift);
    return st;
}

/* ---- types ---- */

/* The quantized inputs of one layer. Those of an LSTM have the same type. */
typedef struct layer_weights {
    int n;
    weights_view s[2];
    qweights *q[2];
} layer_weights;

static bool is_safe(const layer_weights *l)
{
    return l->q[0]->safe && (l->n == 1 || l->q[1]->safe);
}

oct_dtype oct_activations_of(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    const oct_quant *x = op->quant == OCT_QUANT_RECURRENT ? NULL : oct_read_as(j, id, 0);
    return x ? x->dtype : OCT_U8;
}

/* Whether sums of pairs of products with these activations saturate. 16-bit activations are not multiplied in this
 * way. */
static bool saturates(const oct_target *t, oct_dtype activations)
{
    return oct_target_saturates(t) && oct_dtype_bits(activations) == 8;
}

oct_pair_need oct_pairs_need(const oct_qjob *j, int id)
{
    const oct_target *t = j->opts.target;
    const oct_weight_type asked = oct_row_of(j, id)->weights;
    const oct_dtype activations = oct_activations_of(j, id);
    const bool takes_u8 = oct_target_takes(t, activations, OCT_U8);
    if (!saturates(t, activations) || !oct_target_takes(t, activations, OCT_S8) || asked == OCT_WEIGHT_S7)
        return OCT_PAIRS_ANY;
    if (!takes_u8)
        return OCT_PAIRS_SAFE_NEEDED;
    return j->opts.safe_pairs && asked != OCT_WEIGHT_U8 ? OCT_PAIRS_SAFE_WANTED : OCT_PAIRS_ANY;
}

/* The type of weights that the target supports with the activations of a layer, and the sentence that gives the reason,
 * or NULL. The same integers as u8 with zero point 128 are a form that ONNX Runtime multiplies without saturation. */
static const char *choose_type(const oct_qjob *j, int id, const layer_weights *l, oct_dtype *type)
{
    const oct_target *t = j->opts.target;
    const oct_dtype activations = oct_activations_of(j, id);
    *type = OCT_U8;
    if (oct_row_of(j, id)->weights == OCT_WEIGHT_U8 && oct_target_takes(t, activations, OCT_U8))
        return "u8 weights, as the policy says";
    if (oct_target_op_rules_of(t, oct_op_of(j->g, id)->type)->u8_weights && oct_target_takes(t, activations, OCT_U8))
        return "u8 weights, as the target has them here";
    if (!oct_target_takes(t, activations, OCT_S8))
        return "u8 weights: the target takes no others";
    if (saturates(t, activations) && !is_safe(l)) {
        if (oct_target_takes(t, activations, OCT_U8))
            return "u8 weights: s8 could saturate 16 bits on CPUs without VNNI";
        *type = OCT_S8;
        return "s8 weights, which could saturate 16 bits on CPUs without VNNI";
    }
    *type = OCT_S8;
    for (int i = 0; i < l->n; i++)
        if (l->q[i]->widened)
            return "s8 weights, made safe from saturation";
    return saturates(t, activations) ? "s8 weights, proved safe from saturation" : NULL;
}

/* Stores quantized values and zero points in the type that is written. old: as in round_weights. */
static oct_status write_qvals(oct_qjob *j, qweights *q, const qweights *old, oct_err *err)
{
    const bool flip = q->quant.dtype == OCT_U8;
    oct_tensor *t;
    for (int i = 0; i < q->quant.n; i++)
        ((int32_t *)(uintptr_t)q->quant.zp)[i] = flip ? 128 : 0;
    if (!flip || (old && old->qvals == q->qvals && old->quant.dtype == OCT_U8)) {
        q->quant.qvals = flip ? old->quant.qvals : q->qvals;
        return OCT_OK;
    }
    OCT_TRY(oct_tensor_new(j->lasting, OCT_U8, q->qvals->rank, q->qvals->dims, &t, err));
    const uint8_t *from = q->qvals->data;
    for (int64_t i = 0; i < t->count; i++)
        ((uint8_t *)(uintptr_t)t->data)[i] = from[i] ^ 0x80;
    q->quant.qvals = t;
    return OCT_OK;
}

/* ---- layers ---- */

static oct_status view_weights(const oct_qjob *j, int id, int slot, weights_view *s, oct_err *err)
{
    const oct_node *n = &j->g->node[id];
    s->w = j->g->value[n->in[slot]].constant;
    if (!oct_weight_layout_of(oct_op_of(j->g, id), n, slot, s->w->rank, s->w->dims, &s->l))
        return oct_fail(err, OCT_EINTERNAL, "weights of %d dimensions", s->w->rank);
    /* If groups share indices of this dimension, its scales would not distinguish their channels. */
    const bool each = oct_row_of(j, id)->per_channel && s->l.outs == s->w->dims[s->l.out_axis];
    s->per = each ? 1 : s->l.outs;
    return OCT_OK;
}

/* Starts the weights of an input, with the factors on scales that an earlier decision found. */
static oct_status open_weights(oct_qjob *j, int id, int slot, weights_view *s, qweights **out, oct_err *err)
{
    const qweights *old = j->constants[id].weights[slot - 1];
    const oct_node *n = &j->g->node[id];
    const bool recurrent = oct_op_of(j->g, id)->quant == OCT_QUANT_RECURRENT;
    OCT_TRY(view_weights(j, id, slot, s, err));
    const bool each = s->per == 1;
    qweights *q = *out = oct_arena_calloc(j->arena, 1, sizeof *q);
    if (!q)
        return oct_nomem(err);
    q->matrix = n->in[slot];
    q->limit = oct_row_of(j, id)->weights == OCT_WEIGHT_S7 ? 64 : 127;
    q->quant.n = (int)(s->l.matrices * s->l.outs / s->per);
    q->quant.axis = !recurrent ? s->l.out_axis : each ? s->l.in_axis : 0;
    q->quant.block = recurrent && each ? s->l.ins : 0; /* a row of the matrix of each direction */
    q->widened = old && old->quant.n == q->quant.n && old->limit == q->limit ? old->widened : NULL;
    OCT_TRY(find_largest(j, q->matrix, s, q->quant.n, err));
    return oct_new_scales(j, &q->quant, 0, &(float *){ NULL }, err);
}

static float input_step(const oct_qjob *j, int id)
{
    const oct_quant *x = oct_op_of(j->g, id)->quant == OCT_QUANT_RECURRENT ? NULL : oct_read_as(j, id, 0);
    return x ? x->scale[0] : 0;
}

/* The smallest power of two that is not below a scale. */
static float power_above(float scale)
{
    int exponent;
    return frexpf(scale, &exponent) == 0.5f ? scale : ldexpf(1.0f, exponent);
}

static void choose_steps(const oct_qjob *j, int id, const weights_view *s, qweights *q)
{
    choose_scales(q, j->facts[q->matrix].largest);
    for (int of = -1; (of = oct_weights_next(j, id, of)) >= 0;) {
        const float sx = input_step(j, of);
        if (sx > 0)
            make_room(q, bias_of(j, of), s, sx);
    }
    for (int c = 0; q->widened && c < q->quant.n; c++)
        scales_of(&q->quant)[c] *= q->widened[c];
    for (int c = 0; oct_target_rules_of(j->opts.target)->powers_of_two && c < q->quant.n; c++)
        scales_of(&q->quant)[c] = power_above(scales_of(&q->quant)[c]);
}

static oct_status quantize(oct_qjob *j, int id, layer_weights *l, oct_err *err)
{
    for (int i = 0; i < l->n; i++) {
        choose_steps(j, id, &l->s[i], l->q[i]);
        OCT_TRY(round_weights(j, l->q[i], j->constants[id].weights[i], &l->s[i], err));
    }
    return OCT_OK;
}

/* Increases scales so that no two weights of the same sign in a pair sum to more than `limit` steps, which is at most
 * limit + 1 after rounding. *loss: the factor on their mean square. */
static oct_status widen(oct_qjob *j, int id, const weights_view *s, qweights *q, double *loss, oct_err *err)
{
    const oct_weight_layout *l = &s->l;
    const int64_t depth = l->ins / l->groups * l->taps, outs = l->outs / l->groups;
    const oct_pair_sums sums = oct_target_rules_of(j->opts.target)->pair_sums;
    const float *w = s->w->data;
    float *widened = oct_arena_calloc(j->arena, (size_t)q->quant.n, sizeof *widened);
    double before = 0, after = 0;
    if (!widened)
        return oct_nomem(err);
    for (int c = 0; c < q->quant.n; c++)
        widened[c] = 1;
    for (int64_t k = 0; k < depth; k++) {
        const int64_t other = oct_pair_of(sums, l, k);
        for (int64_t g = 0; other > k && g < l->matrices * l->groups; g++)
            for (int64_t o = 0; o < outs; o++) {
                const int64_t c = (g * outs + o) / s->per;
                const float a = w[oct_weight_at(l, g, o, k)], b = w[oct_weight_at(l, g, o, other)];
                const float reach = q->quant.scale[c] * (float)q->limit;
                if (a * b > 0 && fabsf(a + b) > widened[c] * reach)
                    widened[c] = fabsf(a + b) / reach;
            }
    }
    for (int c = 0; c < q->quant.n; c++)
        before += (double)q->quant.scale[c] * (double)q->quant.scale[c];
    q->widened = widened;
    choose_steps(j, id, s, q);
    for (int c = 0; c < q->quant.n; c++)
        after += (double)q->quant.scale[c] * (double)q->quant.scale[c];
    *loss = after / before;
    return OCT_OK;
}
/* Makes pairs safe by larger scales alone, if the target needs it or it costs little. */
static oct_status make_safe(oct_qjob *j, int id, layer_weights *l, oct_err *err)
{
    const oct_pair_need need = oct_pairs_need(j, id);
    double worst = 1;
    if (need == OCT_PAIRS_ANY || is_safe(l))
        return OCT_OK;
    for (int i = 0; i < l->n; i++) {
        double loss = 1;
        OCT_TRY(widen(j, id, &l->s[i], l->q[i], &loss, err));
        worst = loss > worst ? loss : worst;
    }
    if (need == OCT_PAIRS_SAFE_NEEDED || worst <= MOST_WIDENED)
        return quantize(j, id, l, err);
    for (int i = 0; i < l->n; i++) {
        l->q[i]->widened = NULL;
        choose_steps(j, id, &l->s[i], l->q[i]);
    }
    return OCT_OK;
}

/* Whether a decision makes weights safe: it is the first one, or there is no other way. */
static bool makes_safe(const oct_qjob *j, int id)
{
    const bool later = j->constants[id].weights[0] || (j->opts.rounds_later && oct_is_product(j, id));
    return !later || oct_pairs_need(j, id) == OCT_PAIRS_SAFE_NEEDED;
}

/* Quantizes weights to 8 bits. */
static oct_status quantize_layer(oct_qjob *j, int id, oct_err *err)
{
    qconstants *n = &j->constants[id];
    layer_weights l = { .n = oct_op_of(j->g, id)->quant == OCT_QUANT_RECURRENT ? 2 : 1 };
    double signal = 0, noise = 0;
    oct_dtype type;
    for (int i = 0; i < l.n; i++)
        OCT_TRY(open_weights(j, id, 1 + i, &l.s[i], &l.q[i], err));
    OCT_TRY(quantize(j, id, &l, err));
    if (makes_safe(j, id))
        OCT_TRY(make_safe(j, id, &l, err));
    const char *remedy = choose_type(j, id, &l, &type);
    for (int i = 0; i < l.n; i++) {
        qweights *q = l.q[i];
        q->quant.dtype = type;
        q->remedy = remedy;
        OCT_TRY(write_qvals(j, q, n->weights[i], err));
        signal += q->signal;
        noise += q->noise;
        n->weights[i] = q;
    }
    l.q[0]->sqnr = oct_decibels(signal, noise);
    return OCT_OK;
}

/* Quantizes the bias of a layer with quantized weights, if the parameters of its activations are known before it
 * runs. */
static oct_status quantize_bias(oct_qjob *j, const oct_calib *c, int id, oct_err *err)
{
    qconstants *n = &j->constants[id];
    weights_view s;
    n->bias = NULL;
    n->shift = (qshift){ 0 };
    if (oct_scheme_of(j, id) != OCT_SCHEME_STATIC)
        return OCT_OK;
    OCT_TRY(view_weights(j, id, 1, &s, err));
    return make_bias(j, c, id, &s, n->weights[0], input_step(j, id), err);
}

/* ---- weights that are rounded elsewhere ---- */

oct_status oct_make_safe(oct_qjob *j, int id, oct_err *err)
{
    layer_weights l = { .n = 1 };
    OCT_TRY(open_weights(j, id, 1, &l.s[0], &l.q[0], err));
    OCT_TRY(quantize(j, id, &l, err));
    OCT_TRY(make_safe(j, id, &l, err));
    j->constants[id].weights[0] = l.q[0];
    return OCT_OK;
}

/* Starts a product's weights with scales, but without quantized values. */
static oct_status begin_weights(oct_qjob *j, int id, const float *widened, weights_view *s, qweights **q, oct_err *err)
{
    OCT_TRY(open_weights(j, id, 1, s, q, err));
    (*q)->widened = widened;
    choose_steps(j, id, s, *q);
    return OCT_OK;
}

oct_status oct_own_steps(oct_qjob *j, int id, float *scale, oct_err *err)
{
    weights_view s;
    qweights *q;
    OCT_TRY(begin_weights(j, id, NULL, &s, &q, err));
    memcpy(scale, q->quant.scale, (size_t)q->quant.n * sizeof *scale);
    return OCT_OK;
}

oct_status oct_take_weights(oct_qjob *j, int id, const int8_t *qvals, const float *widened, oct_err *err)
{
    weights_view s;
    qweights *q;
    const size_t n = (size_t)j->constants[id].weights[0]->quant.n;
    float *copy = widened ? oct_arena_calloc(j->arena, n, sizeof *copy) : NULL;
    if (widened && !copy)
        return oct_nomem(err);
    if (copy)
        memcpy(copy, widened, n * sizeof *copy);
    OCT_TRY(begin_weights(j, id, copy, &s, &q, err));
    OCT_TRY(oct_tensor_new(j->lasting, OCT_S8, s.w->rank, s.w->dims, &q->qvals, err));
    memcpy((void *)(uintptr_t)q->qvals->data, qvals, (size_t)s.w->count);
    judge(j, q, &s);
    j->constants[id].weights[0] = q;
    return OCT_OK;
}

static bool is_8bit_layer(const oct_qjob *j, int id)
{
    const oct_scheme scheme = oct_scheme_of(j, id);
    /* without constant weights, both operands are activations */
    return (scheme == OCT_SCHEME_STATIC || scheme == OCT_SCHEME_DYNAMIC) && oct_layer_weights(j->g, id);
}

static oct_status decide(oct_qjob *j, int id, oct_pool *pool, oct_err *err)
{
    const oct_scheme scheme = oct_scheme_of(j, id);
    if (oct_is_stored(j, id))
        return oct_decide_stored(j, id, pool, err);
    if (scheme == OCT_SCHEME_WEIGHT_ONLY)
        return !oct_layer_weights(j->g, id) ? OCT_OK : oct_make_blocks(j, id, pool, err);
    return is_8bit_layer(j, id) && oct_weights_next(j, id, -1) == id ? quantize_layer(j, id, err) : OCT_OK;
}

/* Decides what depends on weights that a layer takes from the first of the layers that share them. */
static oct_status follow(oct_qjob *j, const oct_calib *c, int id, oct_err *err)
{
    if (!is_8bit_layer(j, id))
        return OCT_OK;
    j->constants[id].weights[0] = j->constants[oct_weights_next(j, id, -1)].weights[0];
    return quantize_bias(j, c, id, err);
}

/* Threads for rounding in blocks; NULL if no layer needs them. */
static oct_status blocks_pool(const oct_qjob *j, oct_pool **pool, oct_err *err)
{
    bool any = false;
    *pool = NULL;
    for (size_t i = 0; i < j->n_layer; i++)
        any |= oct_scheme_of(j, j->layer[i]) == OCT_SCHEME_WEIGHT_ONLY && !j->constants[j->layer[i]].weights[0];
    if (!any || (*pool = oct_pool_create(j->opts.threads)))
        return OCT_OK;
    return oct_pool_fail(j->opts.threads, err);
}

/* Whether a reader takes numbers that wait: a product in blocks, or a node whose rows get scales of their own. */
static bool reads_waiting(const oct_qjob *j, oct_use u)
{
    const oct_op *op = oct_op_of(j->g, u.node);
    return op && oct_scheme_of(j, u.node) == OCT_SCHEME_WEIGHT_ONLY &&
           ((u.slot == 1 && op->weights.blocks) || (u.slot == 0 && op->picks));
}

/* Writes out the numbers of constants that wait for others. */
static oct_status make_waiting(oct_qjob *j, oct_err *err)
{
    for (size_t v = 0; v < j->g->n_value; v++) {
        const oct_value *x = &j->g->value[v];
        bool all = !x->is_output;
        if (x->dead || !x->constant || !x->constant->narrow)
            continue;
        for (size_t i = 0; i < x->n_uses && all; i++)
            all = reads_waiting(j, x->uses[i]);
        if (!all)
            OCT_TRY(oct_floats_make(j->g->arena, x->constant, err));
    }
    return OCT_OK;
}

oct_status oct_decide_weights(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    oct_pool *pool;
    OCT_TRY(make_waiting(j, err));
    OCT_TRY(blocks_pool(j, &pool, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; i < j->n_layer && s == OCT_OK; i++)
        if ((s = oct_stop_check(err)) == OCT_OK)
            s = oct_within_node(j->g, j->layer[i], decide(j, j->layer[i], pool, err), err);
    for (size_t i = 0; i < j->n_layer && s == OCT_OK; i++)
        s = oct_within_node(j->g, j->layer[i], follow(j, c, j->layer[i], err), err);
    if (s == OCT_OK)
        s = oct_decide_tables(j, pool, err);
    oct_pool_destroy(pool);
    return s;
}
