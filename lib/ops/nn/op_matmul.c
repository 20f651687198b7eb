/* MatMul (float and 8-bit) and MatMulInteger, with NumPy's broadcasting of leading dimensions. */
#include "kernels/bgemm/bgemm.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"
#include "ops/core/anyprod.h"
#include "ops/core/packed.h"
#include "ops/nn/matmul.h"
#include "ops/nn/product.h"

#include <string.h>

typedef enum matmul_kind {
    MATMUL_F32,
    MATMUL_Q8,  /* quantized operands */
    MATMUL_ANY, /* float64 and integers, without a kernel */
    MATMUL_S32  /* MatMulInteger */
} matmul_kind;

typedef struct matmul_state {
    matmul_kind kind;
    oct_matmul g;
    oct_sgemm s;
    oct_qgemm q;
    bool apart;  /* each of the products goes to one thread */
    int threads; /* at most; each has `lane` bytes of scratch where products are apart */
    size_t lane;
    size_t packed; /* bytes of one packed B, rounded */
    char *weights; /* n_b packed matrices, or NULL: packed in each run */
    oct_qout qout;
    int32_t *zero; /* MatMulInteger: zero points of B, n_zero of them */
    int64_t n_zero;
    int64_t rows;   /* MatMulInteger with a zero point a row of A: rows of one matrix; else 0 */
    size_t at_sums; /* scratch for the sums of B's columns */
} matmul_state;

static oct_status matmul_infer(const oct_infer *c, oct_err *err)
{
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    return oct_matmul_infer(c, oct_in_shape(c, 0), oct_in_shape(c, 1), err);
}

static oct_status matmul_integer_infer(const oct_infer *c, oct_err *err)
{
    oct_out_dtype(c, 0, OCT_S32);
    return oct_matmul_infer(c, oct_in_shape(c, 0), oct_in_shape(c, 1), err);
}

/* ------------------------------------------------------------------ preparing */

static void pack(const matmul_state *m, const oct_operand *b, int64_t i, void *packed)
{
    const char *from =
        (const char *)b->data + (size_t)(i * m->g.k * m->g.n) * (m->kind == MATMUL_F32 ? sizeof(float) : 1);
    if (m->kind == MATMUL_F32) {
        oct_sgemm_pack(&m->s, (const float *)from, (ptrdiff_t)m->g.n, 1, packed);
        return;
    }
    size_t step = m->n_zero > 1;
    const int32_t *zero = m->kind == MATMUL_S32 ? m->zero : oct_product_zero(b->q, &step);
    oct_qgemm_pack(&m->q, from, (ptrdiff_t)m->g.n, 1, zero, step, packed);
}

static void pack_all(matmul_state *m, const oct_operand *b, const oct_prep *p)
{
    for (int64_t i = 0; i < m->g.n_b; i++)
        pack(m, b, i, m->weights + (size_t)i * m->packed);
    m->weights = oct_packed_done(p, m->weights, (size_t)m->g.n_b * m->packed);
}

/* Many products, or small ones: cutting each for all threads, and packing before, would cost more than what is left
 * over at the end. */
static bool apart(const oct_matmul *g, int threads)
{
    enum { SMALL = 4 << 20 };
    return threads > 1 && g->batch > 1 &&
           (g->batch >= 4 * (int64_t)threads || (double)g->m * (double)g->n * (double)g->k < SMALL);
}

static oct_status prepare_common(matmul_state *m, oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *a = s->in[0], *b = s->in[1];
    OCT_TRY(oct_matmul_read(&m->g, a, b, p->arena, err));
    size_t kernel, size;
    m->threads = p->threads;
    m->apart = apart(&m->g, p->threads);
    const int threads = m->apart ? 1 : p->threads;
    if (m->kind == MATMUL_F32) {
        OCT_TRY((p->bf16 ? oct_bgemm_prepare : oct_sgemm_prepare)(&m->s, (size_t)m->g.m, (size_t)m->g.n, (size_t)m->g.k,
                                                                  threads, err));
        s->kernel = m->s.kernel->name;
        size = m->s.packed_size;
        kernel = m->s.scratch_size;
    } else {
        OCT_TRY(
            oct_qgemm_prepare(&m->q, (size_t)m->g.m, (size_t)m->g.n, (size_t)m->g.k, a->dtype, b->dtype, threads, err));
        s->kernel = m->q.kernel->name;
        size = m->q.packed_size;
        kernel = m->q.scratch_size;
    }
    m->packed = oct_round_up(size, 64);
    bool fixed = b->constant && (m->kind != MATMUL_S32 || s->n_in < 4 || !s->in[3] || s->in[3]->constant);
    m->lane = oct_round_up(kernel + (fixed ? 0 : m->packed), 64);
    if (!oct_mul_size(m->lane, m->apart ? (size_t)p->threads : 1, &s->scratch))
        return oct_nomem(err);
    m->q.fast_pack = !fixed || p->fast_pack;
    if (!fixed)
        return OCT_OK;
    size_t all;
    if (!oct_mul_size(m->packed, (size_t)m->g.n_b, &all) || !(m->weights = oct_packed_new(p, all)))
        return oct_nomem(err);
    return OCT_OK;
}

static oct_status matmul_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    matmul_state *m = oct_arena_calloc(p->arena, 1, sizeof *m);
    if (!m)
        return oct_nomem(err);
    s->state = m;
    m->kind = s->in[0]->q ? MATMUL_Q8 : MATMUL_F32;
    if (m->kind == MATMUL_F32 && s->in[0]->dtype != OCT_F32)
        m->kind = MATMUL_ANY;
    if (m->kind != MATMUL_Q8 && (s->in[0]->dtype != s->in[1]->dtype || oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE ||
                                 s->in[0]->dtype == OCT_BOOL))
        return oct_fail(err, OCT_EUNSUPPORTED, "MatMul of %s and %s cannot be run", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->in[1]->dtype));
    if (m->kind == MATMUL_ANY)
        return oct_matmul_read(&m->g, s->in[0], s->in[1], p->arena, err);
    OCT_TRY(prepare_common(m, s, p, err));
    if (m->weights)
        pack_all(m, s->in[1], p);
    return m->kind == MATMUL_Q8 ? oct_product_out(s, p, m->g.n, 2, 1.0f, &m->qout, err) : OCT_OK;
}

/* ------------------------------------------------------------------ running */

static int32_t zero_of(const oct_operand *z, int64_t i)
{
    if (!z)
        return 0;
    return z->dtype == OCT_S8 ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

/* again: of oct_run */
static void one_product(const matmul_state *m, const oct_step *s, oct_pool *pool, char *scratch, bool again, int64_t i)
{
    size_t size_a = m->kind == MATMUL_F32 ? sizeof(float) : 1;
    size_t size_c = (size_t)oct_dtype_bits(s->out[0]->dtype) / 8;
    const char *a = (const char *)s->in[0]->data + (size_t)(m->g.at_a[i] * m->g.m * m->g.k) * size_a;
    char *c = (char *)s->out[0]->data + (size_t)(i * m->g.m * m->g.n) * size_c, *packed;
    if (m->weights) {
        packed = m->weights + (size_t)m->g.at_b[i] * m->packed;
    } else {
        packed = scratch;
        scratch += m->packed;
        if (!again || m->g.n_b > 1)
            pack(m, s->in[1], m->g.at_b[i], packed);
    }
    if (m->kind == MATMUL_F32) {
        oct_sout out = { .clamp = s->epilogue.clamp, .lo = s->epilogue.lo, .hi = s->epilogue.hi };
        oct_sgemm_run(&m->s, pool, (size_t)m->g.m, (const float *)a, (size_t)m->g.k, packed, (float *)c, (size_t)m->g.n,
                      &out, scratch);
        return;
    }
    int32_t za = s->in[0]->q ? s->in[0]->q->zp[0] : s->n_in > 2 && !m->rows ? zero_of(s->in[2], 0) : 0;
    oct_qgemm_run(&m->q, pool, (size_t)m->g.m, a, (size_t)m->g.k, za, packed, NULL, &m->qout, c, (size_t)m->g.n,
                  scratch);
}

static void any_product(const matmul_state *m, const oct_step *s, const oct_run *r, int64_t i)
{
    const size_t size = oct_elem_size(s->in[0]->dtype);
    const oct_any_matrix a = { (const char *)s->in[0]->data + (size_t)(m->g.at_a[i] * m->g.m * m->g.k) * size, m->g.k,
                               1 };
    const oct_any_matrix b = { (const char *)s->in[1]->data + (size_t)(m->g.at_b[i] * m->g.k * m->g.n) * size, m->g.n,
                               1 };
    oct_any_product(r->pool, s->in[0]->dtype, m->g.m, m->g.n, m->g.k, a, b,
                    (char *)s->out[0]->data + (size_t)(i * m->g.m * m->g.n) * size, m->g.n);
}

typedef struct products_job {
    const matmul_state *m;
    const oct_step *s;
    char *scratch;
} products_job;

static void products(void *arg, size_t begin, size_t end, size_t thread)
{
    const products_job *j = arg;
    for (size_t i = begin; i < end; i++)
        one_product(j->m, j->s, NULL, j->scratch + thread * j->m->lane, false, (int64_t)i);
}

static oct_status matmul_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const matmul_state *m = s->state;
    if (s->out[0]->count == 0)
        return OCT_OK;
    if (m->kind == MATMUL_ANY) {
        for (int64_t i = 0; i < m->g.batch; i++)
            any_product(m, s, r, i);
        oct_any_clamp(&s->epilogue, s->out[0]);
    } else if (m->apart) {
        products_job j = { m, s, r->scratch };
        oct_pool_for(oct_pool_threads(r->pool) > m->threads ? NULL : r->pool, (size_t)m->g.batch, 1, products, &j);
    } else {
        for (int64_t i = 0; i < m->g.batch; i++)
            one_product(m, s, r->pool, r->scratch, r->again, i);
    }
    return OCT_OK;
}

/* Products of two activations: a matrix that is packed once and for all is read once for many rows. */
static bool matmul_by_rows(const oct_step *s)
{
    return !s->in[1]->constant && s->in[0]->rank >= 2 && s->in[1]->rank >= 2;
}

static bool matmul_integer(const oct_step *s)
{
    const oct_operand *w = s->n_in > 1 ? s->in[1] : NULL;
    if (!w || w->rank < 1 || !s->in[0] || s->in[0]->rank < 1)
        return false;
    int64_t n = w->rank > 1 ? w->dims[w->rank - 1] : 1;
    return oct_product_fits(s, n, w->rank - 1, -1) && (w->constant || w->q->n == 1);
}

/* ------------------------------------------------------------------ MatMulInteger */

static const oct_operand *zero_operand(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static void read_zeros(const matmul_state *m, const oct_step *s)
{
    for (int64_t i = 0; i < m->n_zero; i++)
        m->zero[i] = zero_of(zero_operand(s, 3), i);
}

/* Zero points of A a row: one for each of a matrix, or for each of all matrices. What they subtract is added to the
 * products of zero point 0; it takes the sums of B's columns. */
static oct_status prepare_rows(matmul_state *m, oct_step *s, const oct_operand *za, oct_err *err)
{
    if (!za || za->count == 1)
        return OCT_OK;
    const oct_operand *a = s->in[0];
    const int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    if (za->count != rows && za->count * m->g.k != a->count)
        return oct_fail(err, OCT_EMALFORMED, "%lld zero points for %lld rows of A", (long long)za->count,
                        (long long)rows);
    m->rows = rows;
    m->at_sums = s->scratch;
    return oct_add_size(s->scratch, (size_t)m->g.n * sizeof(int32_t), &s->scratch) ? OCT_OK : oct_nomem(err);
}

static void subtract_rows(const matmul_state *m, const oct_step *s, const oct_run *r, int64_t i)
{
    const oct_operand *za = s->in[2], *b = s->in[1];
    const int64_t n = m->g.n, first = m->g.at_a[i] * m->g.m;
    uint32_t *sum = (uint32_t *)(void *)((char *)r->scratch + m->at_sums);
    for (int64_t j = 0; j < n; j++)
        sum[j] = 0;
    for (int64_t k = 0; k < m->g.k; k++)
        for (int64_t j = 0; j < n; j++)
            sum[j] += (uint32_t)(zero_of(b, (m->g.at_b[i] * m->g.k + k) * n + j) - m->zero[m->n_zero > 1 ? j : 0]);
    for (int64_t row = 0; row < m->g.m; row++) {
        uint32_t *c = (uint32_t *)s->out[0]->data + (i * m->g.m + row) * n;
        const uint32_t z = (uint32_t)zero_of(za, za->count == m->rows ? (first + row) % m->rows : first + row);
        for (int64_t j = 0; j < n; j++)
            c[j] -= z * sum[j];
    }
}

static oct_status integer_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    matmul_state *m = oct_arena_calloc(p->arena, 1, sizeof *m);
    if (!m)
        return oct_nomem(err);
    s->state = m;
    m->kind = MATMUL_S32;
    const oct_operand *za = zero_operand(s, 2), *zb = zero_operand(s, 3);
    OCT_TRY(prepare_common(m, s, p, err));
    OCT_TRY(prepare_rows(m, s, za, err));
    m->n_zero = zb ? zb->count : 1;
    if (m->n_zero != 1 && m->n_zero != m->g.n)
        return oct_fail(err, OCT_EMALFORMED, "%lld zero points for %lld columns", (long long)m->n_zero,
                        (long long)m->g.n);
    if (!(m->zero = oct_arena_calloc(p->arena, (size_t)m->n_zero, sizeof *m->zero)))
        return oct_nomem(err);
    m->qout = (oct_qout){ .kind = OCT_QOUT_S32 };
    if (!m->weights)
        return OCT_OK;
    read_zeros(m, s);
    pack_all(m, s->in[1], p);
    return OCT_OK;
}

static oct_status integer_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const matmul_state *m = s->state;
    if (!m->weights)
        read_zeros(m, s);
    OCT_TRY(matmul_run(s, r, err));
    for (int64_t i = 0; m->rows && s->out[0]->count && i < m->g.batch; i++)
        subtract_rows(m, s, r, i);
    return OCT_OK;
}

const oct_op oct_op_matmul = {
    OCT_SCHEMA("MatMul", "", 1, 2, 2, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = -1, .in = -2, .data = -1, .computed = true, .blocks = true },
    .infer = matmul_infer,
    .prepare = matmul_prepare,
    .run = matmul_run,
    .layout = OCT_RULE_PLAIN,
    .integer = matmul_integer,
    .by_rows = matmul_by_rows,
    .dynamic = true,
    .quant = OCT_QUANT_WEIGHTED,
    .fuses_clamp = true,
    .widens = true,
};

const oct_op oct_op_matmul_integer = {
    OCT_SCHEMA("MatMulInteger", "", 10, 2, 4, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .slots = 1u << 1, .out = -1, .in = -2, .data = -1, .computed = true },
    .infer = matmul_integer_infer,
    .prepare = integer_prepare,
    .run = integer_run,
    .layout = OCT_RULE_PLAIN,
    .scheme = "int8",
};
