/* com.microsoft.FusedMatMul: alpha * op(A) * op(B), where op may transpose the last two dimensions. */
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"
#include "kernels/unary.h"
#include "ops/nn/matmul.h"

typedef struct fused_state {
    oct_matmul g;
    oct_sgemm s;
    bool trans_a, trans_b;
    float alpha;
    size_t packed;
    char *weights;                     /* n_b packed matrices, or NULL: packed in each run */
    size_t at_a, at_packed, at_kernel; /* parts of the scratch */
} fused_state;

static bool flag(const oct_node *n, const char *name)
{
    return oct_node_int(n, name, 0) != 0;
}

static oct_status fused_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape in[2] = { oct_in_shape(c, 0), oct_in_shape(c, 1) };
    oct_dim d[2][OCT_MAX_RANK];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (flag(n, "transBatchA") || flag(n, "transBatchB"))
        return OCT_OK;
    for (int i = 0; i < 2; i++) {
        if (in[i].rank < 2 || !flag(n, i ? "transB" : "transA"))
            continue;
        for (int k = 0; k < in[i].rank; k++)
            d[i][k] = in[i].d[k < in[i].rank - 2 ? k : 2 * in[i].rank - 3 - k];
        in[i].d = d[i];
    }
    return oct_matmul_infer(c, in[0], in[1], err);
}

static oct_operand transposed(const oct_operand *t, bool transpose)
{
    oct_operand u = *t;
    if (transpose && t->rank >= 2) {
        u.dims[t->rank - 2] = t->dims[t->rank - 1];
        u.dims[t->rank - 1] = t->dims[t->rank - 2];
    }
    return u;
}

static void pack(const fused_state *f, const oct_operand *b, int64_t i, void *packed)
{
    const ptrdiff_t n = (ptrdiff_t)f->g.n, k = (ptrdiff_t)f->g.k;
    oct_sgemm_pack(&f->s, (const float *)b->data + i * n * k, f->trans_b ? 1 : n, f->trans_b ? k : 1, packed);
}

static oct_status fused_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    fused_state *f = oct_arena_calloc(p->arena, 1, sizeof *f);
    if (!f)
        return oct_nomem(err);
    s->state = f;
    if (s->in[0]->dtype != OCT_F32 || s->in[1]->dtype != OCT_F32 || flag(s->node, "transBatchA") ||
        flag(s->node, "transBatchB"))
        return oct_fail(err, OCT_EUNSUPPORTED, "FusedMatMul of %s, or with transposed batches, cannot be run",
                        oct_dtype_name(s->in[0]->dtype));
    f->trans_a = flag(s->node, "transA") && s->in[0]->rank >= 2;
    f->trans_b = flag(s->node, "transB") && s->in[1]->rank >= 2;
    f->alpha = oct_node_float(s->node, "alpha", 1.0f);
    oct_operand a = transposed(s->in[0], f->trans_a), b = transposed(s->in[1], f->trans_b);
    OCT_TRY(oct_matmul_read(&f->g, &a, &b, p->arena, err));
    OCT_TRY(oct_sgemm_prepare(&f->s, (size_t)f->g.m, (size_t)f->g.n, (size_t)f->g.k, p->threads, err));
    f->packed = oct_round_up(f->s.packed_size, 64);
    size_t all, transposed_a = f->trans_a ? (size_t)s->in[0]->count * sizeof(float) : 0;
    f->at_packed = oct_round_up(transposed_a, 64);
    f->at_kernel = f->at_packed + (s->in[1]->constant ? 0 : f->packed);
    s->scratch = f->at_kernel + f->s.scratch_size;
    if (!s->in[1]->constant)
        return OCT_OK;
    if (!oct_mul_size(f->packed, (size_t)f->g.n_b, &all) || !(f->weights = oct_arena_aligned(p->arena, all, 64)))
        return oct_nomem(err);
    for (int64_t i = 0; i < f->g.n_b; i++)
        pack(f, s->in[1], i, f->weights + (size_t)i * f->packed);
    return OCT_OK;
}

static oct_status fused_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const fused_state *f = s->state;
    const oct_operand *in = s->in[0], *y = s->out[0];
    const float *a = in->data;
    char *scratch = r->scratch;
    if (y->count == 0)
        return OCT_OK;
    if (f->trans_a) {
        const size_t rows = (size_t)in->dims[in->rank - 2], cols = (size_t)in->dims[in->rank - 1];
        oct_transpose_2d(r->pool, a, rows && cols ? (size_t)in->count / (rows * cols) : 0, rows, cols, sizeof(float),
                         scratch + f->at_a);
        a = (const float *)(scratch + f->at_a);
    }
    for (int64_t i = 0; i < f->g.batch; i++) {
        void *packed = f->weights ? f->weights + (size_t)f->g.at_b[i] * f->packed : scratch + f->at_packed;
        if (!f->weights)
            pack(f, s->in[1], f->g.at_b[i], packed);
        oct_sgemm_run(&f->s, r->pool, (size_t)f->g.m, a + f->g.at_a[i] * f->g.m * f->g.k, (size_t)f->g.k, packed,
                      (float *)y->data + i * f->g.m * f->g.n, (size_t)f->g.n, NULL, scratch + f->at_kernel);
    }
    const oct_unary scale = { OCT_UNARY_SCALE, f->alpha, 0.0f };
    if (f->alpha != 1.0f)
        oct_unary_f32(r->pool, &scale, y->data, y->data, (size_t)y->count);
    return OCT_OK;
}

const oct_op oct_op_fused_matmul = {
    OCT_SCHEMA("FusedMatMul", "com.microsoft", 1, 2, 2, 1, 1),
    .work = OCT_WORK_OUTPUTS,
    .weights = { .data = -1, .data_transposed = "transA" },
    .infer = fused_infer,
    .prepare = fused_prepare,
    .run = fused_run,
    .widens = true,
};
