/* com.microsoft.DynamicQuantizeMatMul and MatMulIntegerToFloat: 8-bit products whose scales are known when running,
 *   Y = (float)acc * (s_a * s_b[n]) + bias[n],
 * in the order of the operators that they stand for (Cast, Mul, Add), so that the results are the same bits. Scales and
 * zero points of B are inputs, or B is quantized (operand->q) and has its own; then the node may be a Gemm that
 * transposes B. */
#include "kernels/half.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/quantize.h"
#include "kernels/rows.h"
#include "ops/core/packed.h"
#include "ops/nn/matmul.h"

#include <string.h>

typedef struct dyn_state {
    bool quantizes; /* A is float and quantized here */
    oct_matmul g;
    oct_qgemm q;
    int as, az, bs, bz, bias;                       /* inputs; -1 none */
    bool transposed;                                /* B is [n][k] */
    size_t packed;                                  /* bytes of one packed B, rounded */
    char *weights;                                  /* n_b packed matrices, or NULL: packed in each run */
    int32_t *zero;                                  /* of B; n_zero of them */
    int64_t n_zero, n_scale;                        /* n_scale: of B */
    size_t at_qvals, at_mult, at_packed, at_kernel; /* parts of the scratch */
} dyn_state;

static oct_status real_infer(const oct_infer *c, oct_err *err)
{
    oct_dtype scale = oct_in_dtype(c, 2);
    oct_out_dtype(c, 0, oct_is_half(scale) ? scale : OCT_F32);
    return oct_matmul_infer(c, oct_in_shape(c, 0), oct_in_shape(c, 1), err);
}

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot >= 0 && slot < s->n_in ? s->in[slot] : NULL;
}

static size_t take(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at += oct_round_up(bytes, 64);
    return here;
}

/* ------------------------------------------------------------------ preparing */

static bool byte_type(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8;
}

static oct_status check(const dyn_state *d, const oct_step *s, oct_err *err)
{
    const oct_operand *a = s->in[0], *b = s->in[1], *as = input(s, d->as), *az = input(s, d->az);
    const oct_operand *bs = input(s, d->bs), *bz = input(s, d->bz), *bias = input(s, d->bias);
    if (!byte_type(b->dtype) || (d->quantizes ? a->dtype != OCT_F32 : !byte_type(a->dtype)) ||
        s->out[0]->dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s and %s cannot be run", s->op->type, oct_dtype_name(a->dtype),
                        oct_dtype_name(b->dtype));
    if ((!b->q && (!bs || bs->dtype != OCT_F32)) || (d->n_scale != 1 && d->n_scale != d->g.n) ||
        (bz && bz->dtype != b->dtype) || (d->n_zero != 1 && d->n_zero != d->g.n))
        return oct_fail(err, OCT_EMALFORMED, "scale and zero point of B do not fit %lld columns", (long long)d->g.n);
    if (!d->quantizes &&
        (!as || as->dtype != OCT_F32 || as->count != 1 || (az && (az->count != 1 || az->dtype != a->dtype))))
        return oct_fail(err, OCT_EMALFORMED, "scale and zero point of A must be one value each");
    if (bias && (bias->dtype != OCT_F32 || bias->count != d->g.n))
        return oct_fail(err, OCT_EMALFORMED, "a bias of %lld values for %lld columns", (long long)bias->count,
                        (long long)d->g.n);
    return OCT_OK;
}

static void read_zeros(const dyn_state *d, const oct_step *s)
{
    const oct_operand *z = input(s, d->bz);
    const oct_quant *q = s->in[1]->q;
    for (int64_t i = 0; (q || z) && i < d->n_zero; i++)
        d->zero[i] = q ? q->zp[i] : z->dtype == OCT_S8 ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

static void pack(const dyn_state *d, const oct_operand *b, int64_t i, void *packed)
{
    const ptrdiff_t k = (ptrdiff_t)d->g.k, n = (ptrdiff_t)d->g.n;
    oct_qgemm_pack(&d->q, (const char *)b->data + i * k * n, d->transposed ? 1 : n, d->transposed ? k : 1, d->zero,
                   d->n_zero > 1, packed);
}

static oct_status plan_memory(dyn_state *d, oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *bz = input(s, d->bz);
    size_t at = 0, all;
    if (!(d->zero = oct_arena_calloc(p->arena, (size_t)d->n_zero, sizeof *d->zero)))
        return oct_nomem(err);
    d->packed = oct_round_up(d->q.packed_size, 64);
    const bool fixed = s->in[1]->constant && (!bz || bz->constant);
    d->q.fast_pack = !fixed;
    if (fixed) {
        if (!oct_mul_size(d->packed, (size_t)d->g.n_b, &all) || !(d->weights = oct_packed_new(p, all)))
            return oct_nomem(err);
        read_zeros(d, s);
        for (int64_t i = 0; i < d->g.n_b; i++)
            pack(d, s->in[1], i, d->weights + (size_t)i * d->packed);
        d->weights = oct_packed_done(p, d->weights, all);
    }
    d->at_qvals = take(&at, d->quantizes ? (size_t)s->in[0]->count : 0);
    d->at_mult = take(&at, (size_t)d->g.n * sizeof(float));
    d->at_packed = take(&at, d->weights ? 0 : d->packed);
    d->at_kernel = take(&at, d->q.scratch_size);
    s->scratch = at;
    return OCT_OK;
}

static oct_status dyn_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    dyn_state *d = oct_arena_calloc(p->arena, 1, sizeof *d);
    if (!d)
        return oct_nomem(err);
    s->state = d;
    d->quantizes = strcmp(s->op->type, "DynamicQuantizeMatMul") == 0;
    d->as = d->quantizes ? -1 : 2;
    d->az = d->quantizes ? -1 : 4;
    d->bs = d->quantizes ? 2 : 3;
    d->bz = d->quantizes ? 3 : 5;
    d->bias = d->quantizes ? 4 : 6;
    oct_operand b = *s->in[1];
    d->transposed = b.q && oct_node_int(s->node, "transB", 0);
    if (d->transposed) {
        b.dims[0] = s->in[1]->dims[1];
        b.dims[1] = s->in[1]->dims[0];
    }
    OCT_TRY(oct_matmul_read(&d->g, s->in[0], &b, p->arena, err));
    d->n_scale = b.q ? b.q->n : input(s, d->bs) ? input(s, d->bs)->count : 0;
    d->n_zero = b.q ? b.q->n : input(s, d->bz) ? input(s, d->bz)->count : 1;
    OCT_TRY(check(d, s, err));
    oct_dtype a = d->quantizes ? OCT_U8 : s->in[0]->dtype;
    OCT_TRY(
        oct_qgemm_prepare(&d->q, (size_t)d->g.m, (size_t)d->g.n, (size_t)d->g.k, a, s->in[1]->dtype, p->threads, err));
    return plan_memory(d, s, p, err);
}

/* ------------------------------------------------------------------ running */

typedef struct left {
    const uint8_t *qvals;
    float scale;
    int32_t zero;
} left;

static left read_left(const dyn_state *d, const oct_step *s, const oct_run *r)
{
    const oct_operand *a = s->in[0], *z = input(s, d->az);
    left l = { a->data, 0, 0 };
    if (d->quantizes) {
        uint8_t zero, *qvals = (uint8_t *)r->scratch + d->at_qvals;
        oct_dynamic_quantize_u8(r->pool, a->data, (size_t)a->count, qvals, &l.scale, &zero);
        l.qvals = qvals;
        l.zero = zero;
        return l;
    }
    l.scale = *(const float *)s->in[d->as]->data;
    if (z)
        l.zero = z->dtype == OCT_S8 ? *(const int8_t *)z->data : *(const uint8_t *)z->data;
    return l;
}

static oct_status dyn_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const dyn_state *d = s->state;
    const oct_operand *b = s->in[1], *bias = input(s, d->bias);
    const float *scale = b->q ? b->q->scale : s->in[d->bs]->data;
    char *scratch = r->scratch;
    float *mult = (float *)(scratch + d->at_mult);
    const int64_t step = d->n_scale > 1;
    if (s->out[0]->count == 0)
        return OCT_OK;
    left l = read_left(d, s, r);
    for (int64_t j = 0; j < d->g.n; j++)
        mult[j] = l.scale * scale[j * step];
    if (!d->weights)
        read_zeros(d, s);
    oct_qout out = { .kind = OCT_QOUT_F32,
                     .mult = mult,
                     .bias = bias ? bias->data : NULL,
                     .clamp = s->epilogue.clamp,
                     .lo = s->epilogue.lo,
                     .hi = s->epilogue.hi };
    for (int64_t i = 0; i < d->g.batch; i++) {
        void *packed = d->weights ? d->weights + (size_t)d->g.at_b[i] * d->packed : scratch + d->at_packed;
        if (!d->weights)
            pack(d, b, d->g.at_b[i], packed);
        oct_qgemm_run(&d->q, r->pool, (size_t)d->g.m, l.qvals + d->g.at_a[i] * d->g.m * d->g.k, (size_t)d->g.k, l.zero,
                      packed, NULL, &out, (float *)s->out[0]->data + i * d->g.m * d->g.n, (size_t)d->g.n,
                      scratch + d->at_kernel);
    }
    return OCT_OK;
}

const oct_op oct_op_dynamic_quantize_matmul = {
    OCT_SCHEMA("DynamicQuantizeMatMul", "com.microsoft", 1, 3, 5, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = -1, .in = -2, .transposed = "transB", .data = -1 },
    .infer = real_infer,
    .prepare = dyn_prepare,
    .run = dyn_run,
    .fuses_clamp = true,
    .widens = true,
    .scheme = "int8",
    .shared_scale = true,
};

const oct_op oct_op_matmul_integer_to_float = {
    OCT_SCHEMA("MatMulIntegerToFloat", "com.microsoft", 1, 4, 7, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = -1, .in = -2, .transposed = "transB", .data = -1 },
    .infer = real_infer,
    .prepare = dyn_prepare,
    .run = dyn_run,
    .fuses_clamp = true,
    .widens = true,
    .scheme = "int8",
};
