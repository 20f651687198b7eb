/* Weights of a model that came quantized, for which a rule asks for another type than s8. What is quantized stays as it
 * is otherwise, and its sums of pairs may leave 16 bits. As u8 with zero points of 128 more they are the same numbers,
 * which ONNX Runtime multiplies without saturation; with 7 bits, for targets that take no u8, they are rounded again.
 */
#include "quant/convert/convert_int.h"

#include "base/mem.h"
#include "eval/metrics/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_S7 = 64 }; /* two of them with u8 stay within 16 bits (OCT_PAIR_MOST) */

/* Where a node has quantized weights, their scale and zero point. */
typedef struct slots {
    const char *op;
    int weights, scale, zero; /* scale -1: the node has none */
} slots;

static const slots direct[] = {
    { "QLinearConv", 3, 4, 5 }, { "QLinearMatMul", 3, 4, 5 }, { "MatMulInteger", 1, -1, 3 }, { "ConvInteger", 1, -1, 3 }
};
static const slots dequantize = { "DequantizeLinear", 0, 1, 2 };

/* A layer's weights: the node that has them and what they are. */
typedef struct found {
    int holder;
    const slots *at;
    const oct_tensor *w, *scale, *zero; /* scale, zero: NULL where there is none */
} found;

static const oct_tensor *constant_at(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data ? t : NULL;
}

static bool is_absent(const oct_node *n, int slot)
{
    return slot < 0 || slot >= n->n_in || n->in[slot] < 0;
}

/* Finds s8 weights whose parameters are known. */
static bool find(const oct_graph *g, int id, found *f)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    *f = (found){ .holder = -1 };
    for (size_t i = 0; i < OCT_COUNT(direct); i++)
        if (strcmp(n->op, direct[i].op) == 0)
            *f = (found){ .holder = id, .at = &direct[i] };
    if (op && op->quant == OCT_QUANT_WEIGHTED && oct_input_at(n, 1) >= 0) {
        const int from = g->value[n->in[1]].producer;
        if (from >= 0 && strcmp(g->node[from].op, dequantize.op) == 0 && !oct_node_attr(&g->node[from], "block_size"))
            *f = (found){ .holder = from, .at = &dequantize };
    }
    if (f->holder < 0)
        return false;
    const oct_node *h = &g->node[f->holder];
    f->w = constant_at(g, h, f->at->weights);
    f->scale = constant_at(g, h, f->at->scale);
    f->zero = constant_at(g, h, f->at->zero);
    const int zero = f->at->zero;
    const bool no_zero = zero < 0 || zero >= h->n_in || h->in[zero] < 0;
    return f->w && f->w->dtype == OCT_S8 && (f->zero ? f->zero->dtype == OCT_S8 : no_zero) &&
           (f->at->scale < 0 || f->scale);
}

/* The type of the activations that a layer multiplies. */
static oct_dtype activations_of(const oct_graph *g, int id, const found *f)
{
    int v = g->node[id].in[0];
    const int from = f->holder != id && v >= 0 ? g->value[v].producer : -1;
    if (from >= 0 && strcmp(g->node[from].op, dequantize.op) == 0)
        v = g->node[from].in[0];
    return v >= 0 && (g->value[v].dtype == OCT_S8 || g->value[v].dtype == OCT_U8) ? g->value[v].dtype : OCT_U8;
}

/* Another constant in the place of one, or of none. */
static oct_status put(oct_graph *g, const found *f, int slot, oct_dtype type, const oct_tensor *like, const void *data,
                      oct_err *err)
{
    const oct_node *h = &g->node[f->holder];
    const int old = oct_input_at(h, slot);
    int v;
    OCT_TRY(oct_graph_new_const(g, g->value[old >= 0 ? old : h->in[f->at->weights]].name, type, like->rank, like->dims,
                                data, &v, err));
    return oct_graph_set_input(g, f->holder, slot, v, err);
}

static oct_status write_u8(oct_graph *g, const found *f, oct_err *err)
{
    static const oct_tensor one = { .rank = 0, .count = 1 };
    const oct_tensor *zeros = f->zero ? f->zero : f->scale ? f->scale : &one;
    const size_t n = (size_t)f->w->count, nz = (size_t)zeros->count;
    uint8_t *made = oct_alloc(n + nz);
    if (!made)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        made[i] = ((const uint8_t *)f->w->data)[i] ^ 0x80;
    for (size_t i = 0; i < nz; i++)
        made[n + i] = (f->zero ? ((const uint8_t *)f->zero->data)[i] : 0) ^ 0x80;
    oct_status s = put(g, f, f->at->weights, OCT_U8, f->w, made, err);
    if (s == OCT_OK)
        s = put(g, f, f->at->zero, OCT_U8, zeros, made + n, err);
    oct_free(made);
    return s;
}

/* The bias of a layer as integers, whose step is that of the products: *f says where it is. False: the layer has none,
 * or has one of floats. */
static bool find_bias(const oct_graph *g, int id, found *f)
{
    static const slots own = { "QLinearConv", 8, -1, -1 };
    const oct_node *n = &g->node[id];
    const bool qlinear = strcmp(n->op, own.op) == 0;
    const int from = qlinear || is_absent(n, 2) ? -1 : g->value[n->in[2]].producer;
    if (qlinear && !is_absent(n, own.weights))
        *f = (found){ .holder = id, .at = &own };
    else if (from >= 0 && oct_op_of(g, id) && strcmp(g->node[from].op, dequantize.op) == 0)
        *f = (found){ .holder = from, .at = &dequantize };
    else
        return false;
    const oct_node *h = &g->node[f->holder];
    f->w = constant_at(g, h, f->at->weights);
    f->scale = constant_at(g, h, f->at->scale);
    return true;
}

/* Half as many steps of twice the size, as the weights have then. */
static oct_status write_bias(oct_graph *g, const found *f, oct_err *err)
{
    const size_t n = (size_t)f->w->count, ns = f->scale ? (size_t)f->scale->count : 0;
    int32_t *made = oct_alloc(n * sizeof *made);
    float *scale = oct_alloc((ns + 1) * sizeof *scale);
    oct_status s = made && scale ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        memcpy(&made[i], (const char *)f->w->data + i * sizeof *made, sizeof *made);
        made[i] = (int32_t)rint(made[i] / 2.0);
    }
    for (size_t i = 0; s == OCT_OK && i < ns; i++) {
        memcpy(&scale[i], (const char *)f->scale->data + i * sizeof *scale, sizeof *scale);
        scale[i] *= 2;
    }
    if (s == OCT_OK)
        s = put(g, f, f->at->weights, OCT_S32, f->w, made, err);
    if (s == OCT_OK && ns)
        s = put(g, f, f->at->scale, OCT_F32, f->scale, scale, err);
    oct_free(made);
    oct_free(scale);
    return s;
}

/* Whether the bias of a layer can follow its weights. */
static bool bias_follows(const oct_graph *g, int id)
{
    found f;
    return !find_bias(g, id, &f) ||
           (f.w && f.w->dtype == OCT_S32 && (f.at->scale < 0 || (f.scale && f.scale->dtype == OCT_F32)));
}

/* Whether the weights have more than 7 bits and can have them: no zero point is away from 0. */
static bool has_eight_bits(const found *f)
{
    const int8_t *w = f->w->data;
    for (int64_t i = 0; f->zero && i < f->zero->count; i++)
        if (((const int8_t *)f->zero->data)[i])
            return false;
    for (int64_t i = 0; i < f->w->count; i++)
        if (abs(w[i]) > MOST_S7)
            return f->scale && f->scale->dtype == OCT_F32;
    return false;
}

/* Half as many steps of twice the size. The loss is that within each channel, weighted alike. */
static oct_status write_s7(oct_graph *g, const found *f, double *sqnr, oct_err *err)
{
    const size_t n = (size_t)f->w->count, ns = (size_t)f->scale->count;
    const int8_t *w = f->w->data;
    int8_t *made = oct_alloc(n);
    float *scale = oct_alloc(ns * sizeof *scale);
    double signal = 0, noise = 0;
    oct_status s = made && scale ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        made[i] = (int8_t)rint(w[i] / 2.0);
        signal += (double)w[i] * w[i];
        noise += (w[i] - 2.0 * made[i]) * (w[i] - 2.0 * made[i]);
    }
    for (size_t i = 0; s == OCT_OK && i < ns; i++) {
        memcpy(&scale[i], (const char *)f->scale->data + i * sizeof *scale, sizeof *scale);
        scale[i] *= 2;
    }
    *sqnr = oct_decibels(signal, noise);
    if (s == OCT_OK)
        s = put(g, f, f->at->weights, OCT_S8, f->w, made, err);
    if (s == OCT_OK)
        s = put(g, f, f->at->scale, OCT_F32, f->scale, scale, err);
    oct_free(made);
    oct_free(scale);
    return s;
}

static oct_status note(oct_conversion *c, int id, const found *f, const char *remedy, oct_dtype type, double sqnr,
                       oct_err *err)
{
    char db[48] = "exact";
    if (isfinite(sqnr))
        snprintf(db, sizeof db, "SQNR %.1f dB", sqnr);
    oct_given_weights *w = OCT_GROW(c->arena, c->given_weights, c->n_given_weights, c->cap_given_weights)
                               ? &c->given_weights[c->n_given_weights++]
                               : NULL;
    if (!w || !(w->remedy = oct_arena_printf(c->arena, "%s (%s)", remedy, db)))
        return oct_nomem(err);
    w->node = id;
    w->type = type;
    w->sqnr = sqnr;
    w->per_channel = f->scale && f->scale->count > 1;
    c->log.change(c->log.arg, "given-weights", w->remedy, oct_node_label(c->m->graph, id));
    return OCT_OK;
}

oct_status oct_conversion_give_weights(oct_conversion *c, oct_err *err)
{
    oct_graph *g = c->m->graph;
    const oct_policy_facts facts = { .calib = c->calib };
    for (size_t i = 0; c->was_quantized && i < g->n_order; i++) {
        const int id = g->order[i];
        oct_policy_row row;
        found f;
        double sqnr = INFINITY;
        if (!find(g, id, &f))
            continue;
        oct_policy_match(c->policy, g, id, &facts, &row);
        const oct_dtype x = activations_of(g, id, &f);
        if (row.weights == OCT_WEIGHT_U8 && oct_target_takes(c->o.job.target, x, OCT_U8)) {
            OCT_TRY(write_u8(g, &f, err));
            OCT_TRY(note(c, id, &f, "the given s8 weights written as u8", OCT_U8, sqnr, err));
        } else if (row.weights == OCT_WEIGHT_S7 && has_eight_bits(&f) && bias_follows(g, id)) {
            found bias;
            OCT_TRY(write_s7(g, &f, &sqnr, err));
            if (find_bias(g, id, &bias))
                OCT_TRY(write_bias(g, &bias, err));
            OCT_TRY(note(c, id, &f, "the given s8 weights rounded to 7 bits", OCT_S8, sqnr, err));
        }
    }
    return OCT_OK;
}
