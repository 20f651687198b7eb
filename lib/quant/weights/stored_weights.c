/* Layers that compute in float with weights stored in 8 bits. Operators on constants convert the weights to float;
 * runtimes execute these once, when they load the model. This is done for matrices of recurrent layers that have no
 * integer form in the target, with a scale for each row; and for weights of layers that stay float because that is
 * faster, or that multiply by several matrices, with a scale for each output channel; and for the matrices of experts,
 * with a scale for each row, which is an output channel of one expert. */
#include "eval/metrics/summary.h"
#include "kernels/quantize.h"
#include "quant/job/job.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <limits.h>
#include <math.h>

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
    const oct_tensor *t = slot < n->n_in && n->in[slot] >= 0 ? j->g->value[n->in[slot]].constant : NULL;
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
    if (!w || !w->data || w->dtype != OCT_F32 || n->n_in < 2 || j->g->value[n->in[1]].constant != w)
        return "its weights are not constants of float32";
    if (w->count < LEAST)
        return "its weights are few";
    if (!oct_layer_layout(j->g, node, &l) || l.out_axis < 0)
        return "its weights are a vector";
    if (others_read(j, node))
        return "others read its weights";
    if (oct_weights_grow(j, node, 8))
        return "its weights are computed from fewer bytes than they would take in integers";
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

oct_status oct_decide_stored(oct_qjob *j, int node, oct_err *err)
{
    qstored *x = j->constants[node].stored;
    const oct_op *op = oct_op_of(j->g, node);
    const bool rows = is_recurrent(j, node) || has_experts(j, node);
    const oct_tensor *w = !rows ? oct_layer_weights(j->g, node) : matrices(j, node, has_experts(j, node) ? 2 : 1);
    double signal = 0, noise = 0;
    oct_weight_layout l;
    if (x && x->of == w)
        return OCT_OK;
    if (!(x = oct_arena_calloc(j->arena, 1, sizeof *x)))
        return oct_nomem(err);
    x->of = w;
    for (int slot = 0; rows && slot < j->g->node[node].n_in; slot++) {
        const oct_tensor *t = oct_stored_at(op, slot) >= 0 ? matrices(j, node, slot) : NULL;
        if (t)
            OCT_TRY(oct_quantize_rows(j, t, &x->quant[oct_stored_at(op, slot)], &signal, &noise, err));
    }
    if (!rows && oct_layer_layout(j->g, node, &l))
        OCT_TRY(quantize_channels(j, w, &l, &x->quant[0], &signal, &noise, err));
    x->sqnr = oct_decibels(signal, noise);
    j->constants[node].stored = x;
    return OCT_OK;
}
