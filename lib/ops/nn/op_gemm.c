/* Gemm: Y = alpha * A' * B' + beta * C, float and 8-bit. */
#include "kernels/bgemm/bgemm.h"
#include "kernels/qgemm/qgemm.h"
#include "kernels/sgemm/sgemm.h"
#include "ops/core/anyprod.h"
#include "ops/core/args.h"
#include "ops/core/infer.h"
#include "ops/core/packed.h"
#include "ops/nn/product.h"

#include "kernels/layout.h"
#include "kernels/rows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct gemm_state {
    bool integer, any, trans_a, trans_b; /* any: float64 and integers, without a kernel */
    int64_t m, n, k;
    float alpha, beta;
    oct_sgemm s;
    oct_qgemm q;
    void *weights;     /* packed constant B, or NULL: packed in each run */
    const float *bias; /* beta * C where C is one row, prepared; or NULL */
    int32_t *qbias;
    oct_qout qout;
    /* parts of the scratch, in bytes */
    size_t at_b, at_a, at_c, at_kernel;
} gemm_state;

static bool trans(const oct_node *n, const char *name)
{
    return oct_node_int(n, name, 0) != 0;
}

static oct_status gemm_infer(const oct_infer *c, oct_err *err)
{
    oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 1);
    const oct_node *n = oct_in_node(c);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (a.rank < 0 || b.rank < 0)
        return OCT_OK;
    char ta[128], tb[128];
    if (a.rank != 2 || b.rank != 2)
        return oct_fail(err, OCT_EMALFORMED, "Gemm of %s and %s: both must be 2-D", oct_shape_text(&a, ta, sizeof ta),
                        oct_shape_text(&b, tb, sizeof tb));
    int at = trans(n, "transA"), bt = trans(n, "transB");
    oct_dim ka = a.d[!at], kb = b.d[bt];
    if (ka.n >= 0 && kb.n >= 0 && ka.n != kb.n)
        return oct_fail(err, OCT_EMALFORMED, "Gemm of %s and %s: inner sizes %lld and %lld differ",
                        oct_shape_text(&a, ta, sizeof ta), oct_shape_text(&b, tb, sizeof tb), (long long)ka.n,
                        (long long)kb.n);
    oct_dim d[2] = { a.d[at], b.d[!bt] };
    return oct_out_shape(c, 0, 2, d, err);
}

/* ------------------------------------------------------------------ preparing */

static size_t take(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at += oct_round_up(bytes, 64);
    return here;
}

/* C as one row that is the same for all rows of Y: constant, with N or 1 values along the last dimension. */
static bool row_bias(const oct_operand *c, int64_t n)
{
    if (!c->constant || c->dtype != OCT_F32)
        return false;
    int64_t last = c->rank ? c->dims[c->rank - 1] : 1;
    return c->count == last && (last == n || last == 1);
}

static oct_status prepare_bias(gemm_state *g, const oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *c = s->n_in > 2 ? s->in[2] : NULL;
    if (!c || !row_bias(c, g->n))
        return OCT_OK;
    float *v = oct_arena_aligned(p->arena, (size_t)g->n * sizeof *v, 64);
    if (!v)
        return oct_nomem(err);
    for (int64_t i = 0; i < g->n; i++)
        v[i] = ((const float *)c->data)[c->count == 1 ? 0 : i] * g->beta;
    g->bias = v;
    return OCT_OK;
}

/* B times alpha, so that the product needs no further step. scaled: room for that where alpha is not 1. */
static void pack_b(const gemm_state *g, const float *b, float *scaled, void *packed)
{
    if (g->alpha != 1.0f) {
        assert(scaled);
        for (int64_t i = 0; i < g->k * g->n; i++)
            scaled[i] = b[i] * g->alpha;
        b = scaled;
    }
    oct_sgemm_pack(&g->s, b, g->trans_b ? 1 : (ptrdiff_t)g->n, g->trans_b ? (ptrdiff_t)g->k : 1, packed);
}

static oct_status check_c(const gemm_state *g, const oct_step *s, oct_err *err)
{
    const oct_operand *c = s->n_in > 2 ? s->in[2] : NULL;
    int64_t cols = c && c->rank ? c->dims[c->rank - 1] : 1, rows = c && c->rank > 1 ? c->dims[c->rank - 2] : 1;
    if (c && (c->rank > 2 || (cols != 1 && cols != g->n) || (rows != 1 && rows != g->m)))
        return oct_fail(err, OCT_EMALFORMED, "C of %lld values (%lld in a row) does not broadcast to [%lld,%lld]",
                        (long long)c->count, (long long)cols, (long long)g->m, (long long)g->n);
    return OCT_OK;
}

static oct_status prepare_any(gemm_state *g, const oct_step *s, oct_err *err)
{
    const oct_dtype t = s->in[0]->dtype;
    const oct_dom dom = oct_dom_of(t);
    const bool whole = g->alpha == rintf(g->alpha) && g->beta == rintf(g->beta) && fabsf(g->alpha) < 0x1p31f &&
                       fabsf(g->beta) < 0x1p31f;
    g->any = true;
    if (dom == OCT_DOM_NONE || t == OCT_BOOL)
        return oct_fail(err, OCT_EUNSUPPORTED, "Gemm of %s cannot be run", oct_dtype_name(t));
    OCT_TRY(oct_step_types(s, t, 0, err));
    if (!whole && dom != OCT_DOM_D && dom != OCT_DOM_F)
        return oct_fail(err, OCT_EUNSUPPORTED, "Gemm of %s times %g plus %g times C", oct_dtype_name(t),
                        (double)g->alpha, (double)g->beta);
    return check_c(g, s, err);
}

static oct_status prepare_float(gemm_state *g, oct_step *s, const oct_prep *p, oct_err *err)
{
    if (s->in[0]->dtype != OCT_F32)
        return prepare_any(g, s, err);
    OCT_TRY(oct_step_types(s, OCT_F32, 0, err));
    OCT_TRY(check_c(g, s, err));
    OCT_TRY((p->bf16 ? oct_bgemm_prepare : oct_sgemm_prepare)(&g->s, (size_t)g->m, (size_t)g->n, (size_t)g->k,
                                                              p->threads, err));
    s->kernel = g->s.kernel->name;
    OCT_TRY(prepare_bias(g, s, p, err));
    size_t size = 0, scaled = g->alpha != 1.0f ? (size_t)(g->k * g->n) * sizeof(float) : 0;
    if (s->in[1]->constant) {
        float *temp = scaled ? oct_alloc(scaled) : NULL;
        if (!(g->weights = oct_packed_new(p, g->s.packed_size)) || (scaled && !temp)) {
            oct_free(temp);
            return oct_nomem(err);
        }
        pack_b(g, s->in[1]->data, temp, g->weights);
        oct_free(temp);
        g->weights = oct_packed_done(p, g->weights, g->s.packed_size);
    } else {
        g->at_b = take(&size, g->s.packed_size + 64 + scaled);
    }
    if (g->trans_a)
        g->at_a = take(&size, (size_t)(g->m * g->k) * sizeof(float));
    if (s->n_in > 2 && s->in[2] && !g->bias)
        g->at_c = take(&size, (size_t)(g->m * g->n) * sizeof(float));
    g->at_kernel = take(&size, g->s.scratch_size);
    s->scratch = size;
    return OCT_OK;
}

static oct_status prepare_integer(gemm_state *g, oct_step *s, const oct_prep *p, oct_err *err)
{
    size_t step;
    g->integer = true;
    OCT_TRY(oct_qgemm_prepare(&g->q, (size_t)g->m, (size_t)g->n, (size_t)g->k, s->in[0]->dtype, s->in[1]->dtype,
                              p->threads, err));
    s->kernel = g->q.kernel->name;
    if (!(g->weights = oct_packed_new(p, g->q.packed_size)))
        return oct_nomem(err);
    const int32_t *zero = oct_product_zero(s->in[1]->q, &step);
    g->q.fast_pack = p->fast_pack;
    oct_qgemm_pack(&g->q, s->in[1]->data, g->trans_b ? 1 : (ptrdiff_t)g->n, g->trans_b ? (ptrdiff_t)g->k : 1, zero,
                   step, g->weights);
    g->weights = oct_packed_done(p, g->weights, g->q.packed_size);
    s->scratch = g->q.scratch_size;
    OCT_TRY(oct_product_bias(s, p, g->n, 2, &g->qbias, err));
    return oct_product_out(s, p, g->n, 2, g->alpha, &g->qout, err);
}

static oct_status gemm_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    gemm_state *g = oct_arena_calloc(p->arena, 1, sizeof *g);
    if (!g)
        return oct_nomem(err);
    s->state = g;
    g->trans_a = trans(s->node, "transA");
    g->trans_b = trans(s->node, "transB");
    g->alpha = oct_node_float(s->node, "alpha", 1.0f);
    g->beta = oct_node_float(s->node, "beta", 1.0f);
    g->m = s->out[0]->dims[0];
    g->n = s->out[0]->dims[1];
    g->k = s->in[0]->dims[g->trans_a ? 0 : 1];
    return s->in[0]->q ? prepare_integer(g, s, p, err) : prepare_float(g, s, p, err);
}

/* ------------------------------------------------------------------ running */

/* dst[m][n] = beta * C, broadcast. */
static void expand_c(const gemm_state *g, const oct_operand *c, float *dst)
{
    int64_t cols = c->rank ? c->dims[c->rank - 1] : 1, rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    const float *v = c->data;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            dst[i * g->n + j] = v[(rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j)] * g->beta;
}

/* alpha * Y + beta * C, element by element. */
static void finish_any(const gemm_state *g, const oct_step *s)
{
    const oct_operand *y = s->out[0], *c = s->n_in > 2 ? s->in[2] : NULL;
    const int64_t cols = c && c->rank ? c->dims[c->rank - 1] : 1, rows = c && c->rank > 1 ? c->dims[c->rank - 2] : 1;
    const oct_dom dom = oct_dom_of(y->dtype);
    for (int64_t i = 0; i < y->count; i++) {
        oct_chunk a, b;
        const int64_t row = i / g->n, col = i % g->n;
        const void *v = oct_elem_load(y->dtype, y->data, i, 1, 1, &a), *w = NULL;
        if (c)
            w = oct_elem_load(c->dtype, c->data, (rows == 1 ? 0 : row) * cols + (cols == 1 ? 0 : col), 1, 1, &b);
        if (dom == OCT_DOM_D) {
            const double sum = (double)g->alpha * *(const double *)v + (w ? (double)g->beta * *(const double *)w : 0.0);
            oct_elem_store(y->dtype, y->data, i, 1, 1, dom, &sum);
        } else {
            const uint64_t sum = (uint64_t)(int64_t)g->alpha * *(const uint64_t *)v +
                                 (w ? (uint64_t)(int64_t)g->beta * *(const uint64_t *)w : 0);
            oct_elem_store(y->dtype, y->data, i, 1, 1, dom, &sum);
        }
    }
}

static void run_any(const gemm_state *g, const oct_step *s, const oct_run *r)
{
    oct_any_matrix a = { s->in[0]->data, g->trans_a ? 1 : g->k, g->trans_a ? g->m : 1 };
    oct_any_matrix b = { s->in[1]->data, g->trans_b ? 1 : g->n, g->trans_b ? g->k : 1 };
    oct_any_product(r->pool, s->out[0]->dtype, g->m, g->n, g->k, a, b, s->out[0]->data, g->n);
    if ((s->n_in > 2 && s->in[2]) || g->alpha != 1.0f)
        finish_any(g, s);
    oct_any_clamp(&s->epilogue, s->out[0]);
}

static oct_status gemm_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const gemm_state *g = s->state;
    char *scratch = r->scratch;
    if (g->any) {
        run_any(g, s, r);
        return OCT_OK;
    }
    if (g->integer) {
        oct_qgemm_run(&g->q, r->pool, (size_t)g->m, s->in[0]->data, (size_t)g->k, s->in[0]->q->zp[0], g->weights,
                      g->qbias, &g->qout, s->out[0]->data, (size_t)g->n, r->scratch);
        return OCT_OK;
    }
    const float *a = s->in[0]->data;
    void *weights = g->weights;
    if (!weights) {
        weights = scratch + g->at_b;
        pack_b(g, s->in[1]->data, (float *)(scratch + g->at_b + oct_round_up(g->s.packed_size, 64)), weights);
    }
    if (g->trans_a) {
        oct_transpose_2d(r->pool, a, 1, (size_t)g->k, (size_t)g->m, sizeof(float), scratch + g->at_a);
        a = (const float *)(scratch + g->at_a);
    }
    oct_sout out = { .bias = g->bias, .clamp = s->epilogue.clamp, .lo = s->epilogue.lo, .hi = s->epilogue.hi };
    if (s->n_in > 2 && s->in[2] && !g->bias) {
        expand_c(g, s->in[2], (float *)(scratch + g->at_c));
        out.residual = (const float *)(scratch + g->at_c);
        out.ldr = (size_t)g->n;
    }
    oct_sgemm_run(&g->s, r->pool, (size_t)g->m, a, (size_t)g->k, weights, s->out[0]->data, (size_t)g->n, &out,
                  scratch + g->at_kernel);
    return OCT_OK;
}

static bool gemm_integer(const oct_step *s)
{
    const oct_operand *w = s->n_in > 1 ? s->in[1] : NULL;
    bool tb = trans(s->node, "transB");
    if (!w || !w->constant || w->rank != 2 || trans(s->node, "transA"))
        return false;
    bool has_bias = s->n_in > 2 && s->in[2];
    if (has_bias && (oct_node_float(s->node, "beta", 1.0f) != 1.0f || oct_node_float(s->node, "alpha", 1.0f) != 1.0f))
        return false;
    if (has_bias && s->in[2]->rank == 2 && s->in[2]->dims[0] != 1)
        return false;
    return oct_product_fits(s, w->dims[tb ? 0 : 1], tb ? 0 : 1, 2);
}

static const char *gemm_no_integer(const oct_node *n)
{
    const bool bias = oct_input_at(n, 2) >= 0;
    const bool plain = !trans(n, "transA") && oct_node_float(n, "alpha", 1.0f) == 1.0f &&
                       (!bias || oct_node_float(n, "beta", 1.0f) == 1.0f);
    return plain ? NULL : "its transA, alpha or beta has no integer form";
}

#define GEMM_WEIGHTS               \
    { .slots = 1u << 1,            \
      .out = -1,                   \
      .in = -2,                    \
      .transposed = "transB",      \
      .data = -1,                  \
      .data_transposed = "transA", \
      .bias = 2,                   \
      .blocks = true }

const oct_op oct_op_gemm = {
    OCT_SCHEMA("Gemm", "", 1, 2, 3, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = GEMM_WEIGHTS,
    .infer = gemm_infer,
    .prepare = gemm_prepare,
    .run = gemm_run,
    .layout = OCT_RULE_PLAIN,
    .integer = gemm_integer,
    .no_integer = gemm_no_integer,
    .dynamic = true,
    .quant = OCT_QUANT_WEIGHTED,
    .fuses_clamp = true,
    .widens = true,
};

/* By shape inference alone: a pass takes it apart (passes/rewrites/pass_split.c). */
const oct_op oct_op_fused_gemm = {
    OCT_SCHEMA("FusedGemm", "com.microsoft", 1, 2, 3, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = GEMM_WEIGHTS,
    .infer = gemm_infer,
};
