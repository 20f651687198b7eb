/* com.microsoft's MoE and QMoE: a mixture of experts. A router scores the experts for each token; the k best compute
 * fc2 * f(fc1 * x + b1) + b2, and the results are added with the softmax of their scores as weights. QMoE has the
 * matrices in 4 or 8 bits with a scale for each block or row; like MatMulNBits without accuracy_level it computes the
 * float product with the numbers that these stand for. (ONNX Runtime rounds activations to 8 bits where blocks have
 * 8 bits.) Of equal scores, the one of the first expert is the better. */
#include "ops/nn/moe.h"

#include "kernels/math.h"
#include "kernels/nbits/nbits.h"
#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"
#include "kernels/unary.h"
#include "ops/core/infer.h"
#include "ops/core/packed.h"

#include <math.h>
#include <string.h>

/* Inputs: of MoE, and of QMoE. */
enum { IN_X, IN_ROUTER };
typedef struct moe_slots {
    int fc1, fc2, fc3, scale1, scale2, zero1, zero2, bias1, bias2, bias3, shares; /* -1: there is no such input */
} moe_slots;
static const moe_slots real_slots = { 2, 4, 6, -1, -1, -1, -1, 3, 5, 7, -1 };
static const moe_slots bits_slots = { 2, 5, 8, 3, 6, 11, 12, 4, 7, 10, 14 };

static const char *const functions[] = { "relu", "gelu", "silu", "identity", "swiglu" };

/* The matrices of one layer of all experts, [experts][n][k]. */
typedef struct moe_layer {
    oct_sgemm f;
    size_t n, k;
    const float *bias;   /* [experts][n], or NULL */
    oct_nbits_form form; /* of all experts' rows as columns; bits == 0: float32 */
    char *packed;        /* [experts], `stride` apart; NULL: packed in each run */
    size_t stride;
} moe_layer;

typedef struct moe_state {
    moe_layer layer[2];
    size_t tokens;
    oct_moe_rule rule;
    bool normalized;
    size_t at_expert, at_share, at_list, at_x, at_h, at_f, at_y, at_packed, at_kernel; /* parts of the scratch */
} moe_state;

static const moe_slots *slots_of(const oct_step *s)
{
    return s->op->scheme ? &bits_slots : &real_slots;
}

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot >= 0 && slot < s->n_in ? s->in[slot] : NULL;
}

static oct_status moe_infer(const oct_infer *c, oct_err *err)
{
    const oct_shape x = oct_in_shape(c, IN_X);
    if (x.rank >= 0 && x.rank != 2 && x.rank != 3)
        return oct_fail(err, OCT_EMALFORMED, "the tokens have %d dimensions, expected 2 or 3", x.rank);
    return oct_out_like(c, 0, 0, err);
}

/* ------------------------------------------------------------------ preparing */

oct_status oct_moe_read(const oct_node *n, size_t experts, oct_moe_rule *r, oct_err *err)
{
    const char *name = oct_node_str(n, "activation_type", "relu");
    size_t f = 0;
    while (f < OCT_COUNT(functions) && strcmp(functions[f], name) != 0)
        f++;
    if (f == OCT_COUNT(functions))
        return oct_fail(err, OCT_EUNSUPPORTED, "experts with the activation '%s' cannot be run", name);
    const int64_t fusion = oct_node_int(n, "swiglu_fusion", 0), k = oct_node_int(n, "k", 1);
    r->function = (oct_moe_function)f;
    if (r->function == OCT_MOE_SWIGLU && fusion != 1 && fusion != 2)
        return oct_fail(err, OCT_EUNSUPPORTED, "experts with swiglu cannot be run with a third matrix");
    if (oct_node_int(n, "use_sparse_mixer", 0) || oct_node_int(n, "swiglu_limit_after_activation", 0))
        return oct_fail(err, OCT_EUNSUPPORTED,
                        "experts with a sparse mixer or a limit behind the activation cannot be "
                        "run");
    r->interleaved = fusion == 1;
    r->alpha = oct_node_float(n, "activation_alpha", 1.0f);
    r->beta = oct_node_float(n, "activation_beta", 0.0f);
    r->limit = oct_node_float(n, "swiglu_limit", INFINITY);
    if (k < 1 || (uint64_t)k > experts)
        return oct_fail(err, OCT_EMALFORMED, "%lld of %zu experts are asked for each token", (long long)k, experts);
    r->k = (size_t)k;
    r->experts = experts;
    return OCT_OK;
}

/* The matrices of input `slot`, of rows of k numbers; k == 0: any number. */
static oct_status read_layer(moe_state *st, const oct_step *s, moe_layer *l, int slot, int scale, int zero, int bias,
                             size_t k, oct_err *err)
{
    const oct_operand *w = input(s, slot), *b = input(s, bias), *q = input(s, scale), *z = input(s, zero);
    const int64_t bits = scale < 0 ? 32 : oct_node_int(s->node, "expert_weight_bits", 4), per = bits < 8 ? 8 / bits : 1;
    const int64_t block = scale < 0 ? 0 : oct_node_int(s->node, "block_size", 0);
    if (scale >= 0 && bits != 4 && bits != 8)
        return oct_fail(err, OCT_EUNSUPPORTED, "experts of %lld bits cannot be run", (long long)bits);
    if (!w || w->rank != 3 || w->dims[0] < 1 || w->dims[1] < 1 || w->dims[2] < 1 || w->dims[2] > INT32_MAX ||
        (k && (uint64_t)(w->dims[2] * per) != k))
        return oct_fail(err, OCT_EMALFORMED, "input %d does not have the matrices of experts for these tokens", slot);
    if (w->dtype != (scale < 0 ? OCT_F32 : OCT_U8))
        return oct_fail(err, OCT_EUNSUPPORTED, "experts of %s cannot be run", oct_dtype_name(w->dtype));
    l->n = (size_t)w->dims[1];
    l->k = (size_t)(w->dims[2] * per);
    st->rule.experts = st->rule.experts ? st->rule.experts : (size_t)w->dims[0];
    if ((uint64_t)w->dims[0] != st->rule.experts)
        return oct_fail(err, OCT_EMALFORMED, "input %d has %lld experts, expected %zu", slot, (long long)w->dims[0],
                        st->rule.experts);
    if (b && (b->dtype != OCT_F32 || b->rank != 2 || b->count != w->dims[0] * w->dims[1]))
        return oct_fail(err, OCT_EMALFORMED, "input %d is no bias for %lld rows of each expert", bias,
                        (long long)w->dims[1]);
    if (scale < 0)
        return OCT_OK;
    l->form = (oct_nbits_form){ .n = st->rule.experts * l->n,
                                .k = l->k,
                                .bits = (int)bits,
                                .block = block > 0 ? (size_t)block : l->k,
                                .zero = z ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE };
    if (block < 0 || l->k % l->form.block || (block && block < 16))
        return oct_fail(err, OCT_EUNSUPPORTED, "rows of %zu weights in blocks of %lld cannot be run", l->k,
                        (long long)block);
    if (!q || q->dtype != OCT_F32 || (uint64_t)q->count != l->form.n * oct_nbits_blocks(&l->form))
        return oct_fail(err, OCT_EMALFORMED, "input %d does not have a scale for each %s", scale,
                        block ? "block" : "row");
    if (z && (!block || z->dtype != OCT_U8 || (uint64_t)z->count != l->form.n * oct_nbits_zero_bytes(&l->form)))
        return oct_fail(err, OCT_EUNSUPPORTED, "zero points of input %d do not fit its blocks", zero);
    if (!w->constant || !q->constant || (z && !z->constant))
        return oct_fail(err, OCT_EUNSUPPORTED, "quantized experts that are computed cannot be run");
    return OCT_OK;
}

static oct_status check_inputs(moe_state *st, const oct_step *s, oct_err *err)
{
    const moe_slots *i = slots_of(s);
    const oct_operand *x = s->in[IN_X], *router = input(s, IN_ROUTER);
    const char *type = i->scale1 < 0 ? "int" : oct_node_str(s->node, "quant_type", "int");
    if (input(s, i->fc3) || input(s, i->bias3) || input(s, i->shares))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s with a third matrix or weights of its router cannot be run",
                        s->op->type);
    if (!x || !router || !s->out[0] || strcmp(type, "int") != 0 || x->dtype != OCT_F32 || router->dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of these types cannot be run", s->op->type);
    if (x->rank < 2 || x->rank > 3 || x->dims[x->rank - 1] < 1)
        return oct_fail(err, OCT_EMALFORMED, "the tokens have no values");
    const size_t d = (size_t)x->dims[x->rank - 1];
    st->tokens = (size_t)x->count / d;
    OCT_TRY(read_layer(st, s, &st->layer[0], i->fc1, i->scale1, i->zero1, i->bias1, d, err));
    OCT_TRY(read_layer(st, s, &st->layer[1], i->fc2, i->scale2, i->zero2, i->bias2, 0, err));
    OCT_TRY(oct_moe_read(s->node, st->rule.experts, &st->rule, err));
    /* QMoE always does, as in ONNX Runtime on CPUs, which does not look at its attribute */
    st->normalized = s->op->scheme || oct_node_int(s->node, "normalize_routing_weights", 0) != 0;
    const size_t wide = st->rule.function == OCT_MOE_SWIGLU ? 2 : 1;
    if (st->layer[1].n != d || st->layer[0].n / wide != st->layer[1].k || st->layer[0].n % wide)
        return oct_fail(err, OCT_EMALFORMED, "the second matrices of experts do not fit the first ones");
    if (router->rank != 2 || (uint64_t)router->dims[0] != st->tokens || (uint64_t)router->dims[1] != st->rule.experts)
        return oct_fail(err, OCT_EMALFORMED, "the router does not have a score for each of %zu experts and %zu tokens",
                        st->rule.experts, st->tokens);
    return OCT_OK;
}

/* Packs the matrix of one expert. real: f32[n][k] to work in, for quantized values. */
static void pack_expert(const moe_layer *l, const oct_operand *w, const oct_nbits_weights *q, size_t expert,
                        float *real, void *packed)
{
    const float *from = real;
    if (!l->form.bits)
        from = (const float *)w->data + expert * l->n * l->k;
    for (size_t j = 0; l->form.bits && j < l->n; j++)
        oct_nbits_dequantize(&l->form, q, expert * l->n + j, real + j * l->k);
    oct_sgemm_pack(&l->f, from, 1, (ptrdiff_t)l->k, packed);
}

static oct_status pack_layer(const moe_state *st, moe_layer *l, const oct_step *s, int slot, int scale, int zero,
                             const oct_prep *p, oct_err *err)
{
    const oct_operand *w = input(s, slot), *q = input(s, scale), *z = input(s, zero);
    const oct_nbits_weights by_rows = { .qvals = w->data, .scale = q ? q->data : NULL, .zero = z ? z->data : NULL };
    size_t bytes, all;
    OCT_TRY(oct_sgemm_prepare(&l->f, 0, l->n, l->k, p->threads, err));
    l->stride = oct_round_up(l->f.packed_size, 64);
    if (!w->constant)
        return OCT_OK;
    float *real = NULL;
    if (!oct_mul_size(l->n * sizeof *real, l->k, &bytes) || !oct_mul_size(l->stride, st->rule.experts, &all) ||
        (l->form.bits && !(real = oct_alloc(bytes))) || !(l->packed = oct_packed_new(p, all))) {
        oct_free(real);
        return oct_nomem(err);
    }
    memset(l->packed, 0, all); /* between the experts: equal weights are found by their bytes */
    for (size_t e = 0; e < st->rule.experts; e++)
        pack_expert(l, w, &by_rows, e, real, l->packed + e * l->stride);
    l->packed = oct_packed_done(p, l->packed, all);
    oct_free(real);
    return OCT_OK;
}

/* Appends n * m elements of `size` bytes to the scratch. */
static bool reserve(size_t *total, size_t *at, size_t n, size_t m, size_t size)
{
    size_t bytes;
    *at = *total;
    return oct_mul_size(n, m, &bytes) && oct_mul_size(bytes, size, &bytes) && bytes < SIZE_MAX / 16 &&
           (*total += oct_round_up(bytes, 64)) < SIZE_MAX / 2;
}

static oct_status plan_scratch(moe_state *st, oct_step *s, oct_err *err)
{
    const moe_layer *a = &st->layer[0], *b = &st->layer[1];
    const size_t t = st->tokens, kernel = a->f.scratch_size > b->f.scratch_size ? a->f.scratch_size : b->f.scratch_size;
    const size_t packed = a->packed && b->packed ? 0 : a->stride > b->stride ? a->stride : b->stride;
    size_t all = 0;
    const bool fits =
        reserve(&all, &st->at_expert, t, st->rule.k, sizeof(int32_t)) &&
        reserve(&all, &st->at_share, t, st->rule.k, sizeof(float)) &&
        reserve(&all, &st->at_list, t, 1, sizeof(size_t)) && reserve(&all, &st->at_x, t, a->k, sizeof(float)) &&
        reserve(&all, &st->at_h, t, a->n, sizeof(float)) && reserve(&all, &st->at_f, t, b->k, sizeof(float)) &&
        reserve(&all, &st->at_y, t, b->n, sizeof(float)) && reserve(&all, &st->at_packed, packed, 1, 1) &&
        reserve(&all, &st->at_kernel, kernel, 1, 1);
    s->scratch = all;
    return fits ? OCT_OK : oct_nomem(err);
}

static oct_status moe_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const moe_slots *i = slots_of(s);
    moe_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    if (!st)
        return oct_nomem(err);
    s->state = st;
    OCT_TRY(check_inputs(st, s, err));
    OCT_TRY(pack_layer(st, &st->layer[0], s, i->fc1, i->scale1, i->zero1, p, err));
    OCT_TRY(pack_layer(st, &st->layer[1], s, i->fc2, i->scale2, i->zero2, p, err));
    return plan_scratch(st, s, err);
}

/* ------------------------------------------------------------------ running */

void oct_moe_best(const oct_moe_rule *r, const float *score, int32_t *expert)
{
    for (size_t i = 0; i < r->k; i++) {
        int32_t best = -1;
        for (size_t e = 0; e < r->experts; e++) {
            bool taken = false;
            for (size_t b = 0; b < i; b++)
                taken |= expert[b] == (int32_t)e;
            if (!taken && (best < 0 || score[e] > score[best]))
                best = (int32_t)e;
        }
        expert[i] = best;
    }
}

/* The best experts of a token, and the weights of their results. */
static void choose(const moe_state *st, const float *score, int32_t *expert, float *share)
{
    double sum = 0, best_sum = 0;
    float most = -INFINITY;
    for (size_t e = 0; e < st->rule.experts; e++)
        most = score[e] > most ? score[e] : most;
    for (size_t e = 0; e < st->rule.experts; e++)
        sum += oct_exp((double)score[e] - (double)most);
    oct_moe_best(&st->rule, score, expert);
    for (size_t i = 0; i < st->rule.k; i++)
        best_sum += oct_exp((double)score[expert[i]] - (double)most);
    for (size_t i = 0; i < st->rule.k; i++)
        share[i] = (float)(oct_exp((double)score[expert[i]] - (double)most) / (st->normalized ? best_sum : sum));
}

/* to[n] = gate * sigmoid(alpha * gate) * (up + beta) for each row of gates and ups. */
static void swiglu_rows(const oct_moe_rule *rule, const float *from, float *to, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++, from += 2 * n, to += n)
        for (size_t i = 0; i < n; i++) {
            const float gate = fminf(from[rule->interleaved ? 2 * i : i], rule->limit);
            const float up = fminf(fmaxf(from[rule->interleaved ? 2 * i + 1 : n + i], -rule->limit), rule->limit);
            const double x = (double)rule->alpha * (double)gate, e = oct_exp(-fabs(x));
            to[i] = (float)((double)gate * ((x < 0 ? e : 1.0) / (1.0 + e))) * (up + rule->beta);
        }
}

void oct_moe_activate(const oct_moe_rule *r, oct_pool *pool, const float *from, float *to, size_t rows, size_t width)
{
    static const oct_unary unary[] = { [OCT_MOE_RELU] = { OCT_UNARY_RELU, 0, 0 },
                                       [OCT_MOE_GELU] = { OCT_UNARY_GELU_TANH, 0, 0 },
                                       [OCT_MOE_SILU] = { OCT_UNARY_SWISH, 1, 0 },
                                       [OCT_MOE_IDENTITY] = { OCT_UNARY_COPY, 0, 0 } };
    if (r->function == OCT_MOE_SWIGLU)
        swiglu_rows(r, from, to, rows, width);
    else
        oct_unary_f32(pool, &unary[r->function], from, to, rows * width);
}

/* One layer of an expert for some rows. */
static void run_layer(const moe_state *st, const oct_step *s, const oct_run *r, int at, size_t expert, size_t rows,
                      const float *from, float *to)
{
    const moe_layer *l = &st->layer[at];
    const moe_slots *i = slots_of(s);
    const oct_operand *bias = input(s, at ? i->bias2 : i->bias1);
    char *scratch = r->scratch;
    const void *packed = l->packed ? l->packed + expert * l->stride : scratch + st->at_packed;
    if (!l->packed)
        pack_expert(l, input(s, at ? i->fc2 : i->fc1), NULL, expert, NULL, scratch + st->at_packed);
    const oct_sout out = { .bias = bias ? (const float *)bias->data + expert * l->n : NULL,
                           .lo = -INFINITY,
                           .hi = INFINITY };
    oct_sgemm_run(&l->f, r->pool, rows, from, l->k, packed, to, l->n, &out, scratch + st->at_kernel);
}

static oct_status moe_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const moe_state *st = s->state;
    const size_t d = st->layer[0].k;
    char *at = r->scratch;
    int32_t *expert = (int32_t *)(void *)(at + st->at_expert);
    float *share = (float *)(void *)(at + st->at_share), *x = (float *)(void *)(at + st->at_x),
          *h = (float *)(void *)(at + st->at_h), *f = (float *)(void *)(at + st->at_f),
          *y = (float *)(void *)(at + st->at_y), *out = s->out[0]->data;
    size_t *list = (size_t *)(void *)(at + st->at_list); /* of an expert: where its tokens stand among the choices */
    const float *tokens = s->in[IN_X]->data, *score = s->in[IN_ROUTER]->data;
    (void)err;
    for (size_t t = 0; t < st->tokens; t++)
        choose(st, score + t * st->rule.experts, expert + t * st->rule.k, share + t * st->rule.k);
    memset(out, 0, st->tokens * d * sizeof *out);
    for (size_t e = 0; e < st->rule.experts; e++) {
        size_t rows = 0;
        for (size_t c = 0; c < st->tokens * st->rule.k; c++)
            if (expert[c] == (int32_t)e) {
                memcpy(x + rows * d, tokens + c / st->rule.k * d, d * sizeof *x);
                list[rows++] = c;
            }
        if (!rows)
            continue;
        run_layer(st, s, r, 0, e, rows, x, h);
        oct_moe_activate(&st->rule, r->pool, h, f, rows, st->layer[1].k);
        run_layer(st, s, r, 1, e, rows, f, y);
        for (size_t i = 0; i < rows; i++)
            for (size_t c = 0; c < d; c++)
                out[list[i] / st->rule.k * d + c] += share[list[i]] * y[i * d + c];
    }
    return OCT_OK;
}

const oct_op oct_op_moe = {
    OCT_SCHEMA("MoE", "com.microsoft", 1, 5, 8, 1, 1),
    .optional = 1 << 3,
    .experts = 1 << 2 | 1 << 4 | 1 << 6,
    .weights = { .data = -1 },
    .infer = moe_infer,
    .prepare = moe_prepare,
    .run = moe_run,
    .widens = true,
    .grows = OCT_GROWS_SUMS,
};

const oct_op oct_op_qmoe = {
    OCT_SCHEMA("QMoE", "com.microsoft", 1, 7, 21, 1, 1),
    .optional = 1 << 3 | 1 << 4 | 1 << 6,
    .weights = { .slots = 1 << 2 | 1 << 5 | 1 << 8, .data = -1 },
    .infer = moe_infer,
    .prepare = moe_prepare,
    .run = moe_run,
    .widens = true,
    .grows = OCT_GROWS_SUMS,
    .scheme = "weight-only",
};
