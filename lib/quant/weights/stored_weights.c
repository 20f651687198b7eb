/* Layers that compute in float with weights stored in 8 bits. Operators on constants convert the weights to float;
 * runtimes execute these once, when they load the model. This is done for matrices of recurrent layers that have no
 * integer form in the target, with a scale for each row; and for weights of layers that stay float because that is
 * faster, or that multiply by several matrices, with a scale for each output channel; and for the matrices of experts,
 * with a scale for each row, which is an output channel of one expert. */
#include "eval/metrics/summary.h"
#include "kernels/quantize.h"
#include "ops/core/small.h"
#include "ops/core/waiting.h"
#include "quant/job/job.h"
#include "quant/weights/blocks.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { LEAST = 1 << 12 };     /* elements; for smaller weights the saving is not worth the additional nodes */
#define LEAST_SCALE 0x1p-120f /* the smallest scale of a channel; channels with smaller numbers become zeros */

static bool is_recurrent(const oct_qjob *j, int node)
{
    const oct_op *op = oct_op_of(j->g, node);
    return op && op->quant == OCT_QUANT_RECURRENT;
}

static bool has_experts(const oct_qjob *j, int node)
{
    const oct_op *op = oct_op_of(j->g, node);
    return op && op->experts;
}

/* The matrices of a recurrent layer or of experts. */
static const oct_tensor *matrices(const oct_qjob *j, int node, int slot)
{
    const oct_node *n = &j->g->node[node];
    const oct_tensor *t = oct_node_constant(j->g, n, slot);
    return t && t->data && t->dtype == OCT_F32 && t->rank == 3 ? t : NULL;
}

/* Whether the target would also quantize activations beside stored weights. */
static bool has_quantizers(const oct_qjob *j)
{
    return j->opts.have_data && (j->opts.scheme == OCT_SCHEME_AUTO || j->opts.scheme == OCT_SCHEME_STATIC);
}

static const char *no_stored_matrices(const oct_qjob *j, int node)
{
    const char *trap = has_quantizers(j) ? oct_target_no_stored(j->opts.target, j->g, node) : NULL;
    if (trap)
        return trap;
    const oct_tensor *w = matrices(j, node, 1), *r = matrices(j, node, 2);
    if (!w || !r)
        return "its weights are not constants of float32";
    if (w->count + r->count < LEAST)
        return "its matrices are small";
    const oct_node *n = &j->g->node[node];
    return oct_constant_is_finite(j, n->in[1]) && oct_constant_is_finite(j, n->in[2]) ? NULL
                                                                                      : "its weights are not finite";
}

/* Inputs that are absent are no fault, unless all are. */
static const char *no_stored_experts(const oct_qjob *j, int node)
{
    const oct_node *n = &j->g->node[node];
    const oct_op *op = oct_op_of(j->g, node);
    int64_t count = 0;
    for (int slot = 0; slot < n->n_in && slot < OCT_CONSTANT_SLOTS; slot++) {
        if (oct_stored_at(op, slot) < 0 || n->in[slot] < 0)
            continue;
        const oct_tensor *t = matrices(j, node, slot);
        if (!t)
            return "its experts are not constants of float32";
        if (!oct_value_used_once(&j->g->value[n->in[slot]]))
            return "others read its experts";
        if (!oct_constant_is_finite(j, n->in[slot]))
            return "its experts are not finite";
        count += t->count;
    }
    return count < LEAST ? "its experts are small" : NULL;
}

/* Whether the float weights stay in the file for other readers. Tables with the same numbers do not count, because they
 * read the stored weights. */
static bool others_read(const oct_qjob *j, int node)
{
    const oct_value *v = &j->g->value[j->g->node[node].in[1]];
    bool others = v->is_output, is_table;
    for (size_t i = 0; i < v->n_uses && !others; i++) {
        const oct_use u = v->uses[i];
        const oct_op *op = u.slot == 0 ? oct_op_of(j->g, u.node) : NULL;
        others =
            !(u.node == node && u.slot == 1) && !(op && op->picks && !oct_no_table(j, u.node, &is_table) && is_table);
    }
    return others || oct_tied_stays_real(j, node);
}

const char *oct_no_stored(const oct_qjob *j, int node)
{
    oct_weight_layout l;
    if (is_recurrent(j, node))
        return no_stored_matrices(j, node);
    if (has_experts(j, node))
        return no_stored_experts(j, node);
    const oct_tensor *w = oct_layer_weights(j->g, node);
    const oct_node *n = &j->g->node[node];
    if (!w || !oct_has_floats(w) || w->dtype != OCT_F32 || n->n_in < 2 || j->g->value[n->in[1]].constant != w)
        return "its weights are not constants of float32";
    if (w->count < LEAST)
        return "its weights are few";
    if (!oct_layer_layout(j->g, node, &l) || l.out_axis < 0)
        return "its weights are a vector";
    if (others_read(j, node))
        return "others read its weights";
    if (oct_weights_grow(j, node, 8))
        return "its weights are computed from a constant that takes fewer bytes than they would as integers";
    return oct_constant_is_finite(j, n->in[1]) ? NULL : "its weights are not finite";
}

/* How the elements of weights belong to scales. */
typedef struct channels {
    int64_t outer, n, inner; /* element (o, c, i) has the scale of channel c, or (several) that of o * inner + i */
    bool several;            /* matrices: each has channels of its own, and c counts inputs */
} channels;

static size_t scale_of(const channels *k, int64_t e)
{
    return (size_t)(k->several ? e / (k->n * k->inner) * k->inner + e % k->inner : e / k->inner % k->n);
}

/* Rounds so that the largest magnitude of each channel becomes 127. */
static oct_status quantize_channels(oct_qjob *j, const oct_tensor *t, const oct_weight_layout *l, oct_quant *quant,
                                    double *signal, double *noise, oct_err *err)
{
    const bool several = l->matrices > 1;
    const int axis = several ? l->in_axis : l->out_axis;
    const channels k = { oct_times_all(t->dims, axis), t->dims[axis],
                         oct_times_all(t->dims + axis + 1, t->rank - axis - 1), several };
    const int64_t n = several ? k.outer * k.inner : k.n;
    const float *x = t->data;
    oct_tensor *qvals;
    float *scale;
    if (n > INT_MAX)
        return oct_fail(err, OCT_EUNSUPPORTED, "weights of %lld channels", (long long)n);
    *quant = (oct_quant){ .n = (int)n, .axis = l->out_axis, .dtype = OCT_S8 };
    OCT_TRY(oct_new_scales(j, quant, 0, &scale, err));
    OCT_TRY(oct_tensor_new(j->lasting, OCT_S8, t->rank, t->dims, &qvals, err));
    int8_t *q = (int8_t *)(uintptr_t)qvals->data;
    for (int64_t e = 0; e < t->count; e++) {
        float *s = &scale[scale_of(&k, e)];
        *s = fmaxf(*s, fabsf(x[e]));
    }
    for (int64_t c = 0; c < n; c++)
        scale[c] = scale[c] / 127.0f >= LEAST_SCALE ? scale[c] / 127.0f : 1.0f;
    for (int64_t e = 0; e < t->count; e++) {
        const float s = scale[scale_of(&k, e)];
        oct_quantize_f32(NULL, OCT_S8, &x[e], 1, s, 0, (uint8_t *)&q[e]);
        const double d = (double)x[e] - (double)s * q[e];
        *signal += (double)x[e] * (double)x[e];
        *noise += d * d;
    }
    quant->qvals = qvals;
    return OCT_OK;
}

/* ---- several matrices in blocks ---- */

enum { BLOCK = 32, BLOCKS_SINCE = 21 /* the opset from which on DequantizeLinear has blocks */ };

/* The layout of several matrices: of experts, or of a product that multiplies by them; false: the layer has one. */
static bool several_of(const oct_qjob *j, int node, const oct_tensor *t, oct_weight_layout *l)
{
    if (!has_experts(j, node))
        return !is_recurrent(j, node) && oct_layer_layout(j->g, node, l) && l->matrices > 1;
    *l = (oct_weight_layout){ .out_axis = 1,
                              .in_axis = 2,
                              .matrices = t->dims[0],
                              .groups = 1,
                              .outs = t->dims[1],
                              .ins = t->dims[2],
                              .taps = 1,
                              .group_step = oct_times(t->dims[1], t->dims[2]),
                              .out_step = t->dims[2],
                              .in_step = 1 };
    return true;
}

/* The form of each matrix, if the policy or the job asks for blocks of 4 bits. With 8 bits, a scale for each channel
 * loses little. */
static bool asks_blocks(const oct_qjob *j, int node, const oct_weight_layout *l, oct_nbits_form *f)
{
    const oct_policy_row *row = oct_row_of(j, node);
    const bool bits4 = row->block ? row->weights == OCT_WEIGHT_S4 || row->weights == OCT_WEIGHT_U4 : j->opts.bits != 8;
    const bool symmetric = row->block ? row->weights == OCT_WEIGHT_S4 : j->opts.symmetric;
    *f = (oct_nbits_form){ .n = (size_t)l->outs,
                           .k = (size_t)l->ins,
                           .bits = 4,
                           .block = (size_t)(row->block      ? row->block
                                             : j->opts.block ? j->opts.block
                                                             : BLOCK),
                           .zero = symmetric ? OCT_NBITS_MIDDLE : OCT_NBITS_WHOLE };
    return row->scheme == OCT_SCHEME_WEIGHT_ONLY && bits4 && f->k >= f->block &&
           oct_graph_opset(j->g, "") >= BLOCKS_SINCE &&
           oct_times(oct_times(l->matrices, l->outs), (int64_t)oct_nbits_blocks(f)) <= INT_MAX;
}

bool oct_stores_expert_blocks(const oct_qjob *j, int node)
{
    oct_weight_layout l;
    oct_nbits_form f;
    const oct_tensor *t = has_experts(j, node) ? matrices(j, node, 2) : NULL;
    return t && oct_scheme_of(j, node) == OCT_SCHEME_STORED && several_of(j, node, t, &l) &&
           asks_blocks(j, node, &l, &f);
}

/* The columns of one matrix, as oct_quantize_blocks makes them. */
typedef struct columns {
    uint8_t *qvals;
    float *scale;
    int32_t *zero;
} columns;

/* Copies them to the quantized values, scales and zero points of all matrices, which have the order of the elements. */
static void put_matrix(const oct_weight_layout *l, const oct_nbits_form *f, int64_t matrix, const columns *c,
                       const float *w, const oct_quant *q, float *scale, double *signal, double *noise)
{
    const int64_t blocks = (int64_t)oct_nbits_blocks(f), first = matrix * l->outs * blocks;
    const int middle = f->zero == OCT_NBITS_WHOLE ? 0 : 8;
    for (int64_t o = 0; o < l->outs; o++) {
        const uint8_t *qvals = c->qvals + (size_t)o * oct_nbits_column_bytes(f);
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t to = first + (l->in_axis > l->out_axis ? o * blocks + b : b * l->outs + o);
            scale[to] = c->scale[o * blocks + b];
            ((int32_t *)(uintptr_t)q->zp)[to] = c->zero[o * blocks + b];
        }
        for (int64_t k = 0; k < l->ins; k++) {
            const int64_t at = o * l->out_step + k * l->in_step, from = o * blocks + k / (int64_t)f->block;
            const int whole = (k % 2 ? qvals[k / 2] >> 4 : qvals[k / 2] & 15) - middle;
            const double d = (double)w[at] - (double)c->scale[from] * (whole - c->zero[from]);
            oct_small_set_int(q->dtype, (void *)(uintptr_t)q->qvals->data, matrix * l->group_step + at, whole);
            *signal += (double)w[at] * (double)w[at];
            *noise += d * d;
        }
    }
}

static oct_status quantize_matrices(oct_qjob *j, const oct_tensor *t, const oct_weight_layout *l,
                                    const oct_nbits_form *f, oct_pool *pool, oct_quant *quant, double *signal,
                                    double *noise, oct_err *err)
{
    const size_t blocks = oct_nbits_blocks(f), bytes = oct_nbits_column_bytes(f);
    oct_tensor *qvals;
    float *scale;
    double sqnr;
    *quant = (oct_quant){ .n = (int)(l->matrices * l->outs * (int64_t)blocks),
                          .axis = l->in_axis,
                          .block = (int64_t)f->block,
                          .dtype = f->zero == OCT_NBITS_WHOLE ? OCT_U4 : OCT_S4 };
    OCT_TRY(oct_new_scales(j, quant, 0, &scale, err));
    OCT_TRY(oct_tensor_new(j->lasting, quant->dtype, t->rank, t->dims, &qvals, err));
    oct_small_begin(quant->dtype, (void *)(uintptr_t)qvals->data, t->count);
    quant->qvals = qvals;
    columns c = { oct_calloc(f->n, bytes), oct_calloc(f->n * blocks, sizeof *c.scale),
                  oct_calloc(f->n * blocks, sizeof *c.zero) };
    oct_status s = c.qvals && c.scale && c.zero ? OCT_OK : oct_nomem(err);
    for (int64_t e = 0; s == OCT_OK && e < l->matrices; e++) {
        const float *matrix = (const float *)t->data + e * l->group_step;
        const oct_block_matrix m = { matrix, l->in_step, l->out_step, OCT_F32 };
        s = oct_quantize_blocks(&m, f, pool, c.qvals, c.scale, c.zero, &sqnr, err);
        if (s == OCT_OK)
            put_matrix(l, f, e, &c, matrix, quant, scale, signal, noise);
    }
    oct_free(c.qvals);
    oct_free(c.scale);
    oct_free(c.zero);
    return s;
}

/* ---- all ---- */

/* Rounds one input: in blocks if these are asked for, and else by rows or channels. */
static oct_status quantize(oct_qjob *j, int node, const oct_tensor *t, oct_pool *pool, oct_quant *q, double *signal,
                           double *noise, oct_err *err)
{
    oct_weight_layout l;
    oct_nbits_form f;
    if (several_of(j, node, t, &l) && asks_blocks(j, node, &l, &f))
        return quantize_matrices(j, t, &l, &f, pool, q, signal, noise, err);
    if (is_recurrent(j, node) || has_experts(j, node))
        return oct_quantize_rows(j, t, pool, q, signal, noise, err);
    return oct_layer_layout(j->g, node, &l) ? quantize_channels(j, t, &l, q, signal, noise, err) : OCT_OK;
}

oct_status oct_decide_stored(oct_qjob *j, int node, oct_pool *pool, oct_err *err)
{
    qstored *x = j->constants[node].stored;
    const oct_op *op = oct_op_of(j->g, node);
    const bool rows = is_recurrent(j, node) || has_experts(j, node);
    const oct_tensor *w = !rows ? oct_layer_weights(j->g, node) : matrices(j, node, has_experts(j, node) ? 2 : 1);
    const oct_policy_row *row = oct_row_of(j, node);
    double signal = 0, noise = 0;
    if (x && x->of == w && x->scheme == row->scheme && x->block == row->block && x->weights == row->weights)
        return OCT_OK;
    if (!(x = oct_arena_calloc(j->arena, 1, sizeof *x)))
        return oct_nomem(err);
    *x = (qstored){ .of = w, .scheme = row->scheme, .block = row->block, .weights = row->weights };
    for (int slot = 0; slot < j->g->node[node].n_in; slot++) {
        const int at = oct_stored_at(op, slot);
        const oct_tensor *t = at < 0 ? NULL : rows ? matrices(j, node, slot) : w;
        if (t)
            OCT_TRY(quantize(j, node, t, pool, &x->quant[at], &signal, &noise, err));
    }
    x->sqnr = oct_decibels(signal, noise);
    j->constants[node].stored = x;
    return OCT_OK;
}
