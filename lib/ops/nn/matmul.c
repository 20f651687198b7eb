/* Shapes of matrix products. */
#include "ops/nn/matmul.h"

oct_status oct_matmul_infer(const oct_infer *c, oct_shape a, oct_shape b, oct_err *err)
{
    if (a.rank < 0 || b.rank < 0)
        return OCT_OK;
    char ta[128], tb[128];
    oct_shape_text(&a, ta, sizeof ta);
    oct_shape_text(&b, tb, sizeof tb);
    if (a.rank == 0 || b.rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "a product of %s and %s: scalars are not allowed", ta, tb);
    oct_dim ka = a.d[a.rank - 1], kb = b.d[b.rank > 1 ? b.rank - 2 : 0];
    if (ka.n >= 0 && kb.n >= 0 && ka.n != kb.n)
        return oct_fail(err, OCT_EMALFORMED, "a product of %s and %s: inner sizes %lld and %lld differ", ta, tb,
                        (long long)ka.n, (long long)kb.n);
    oct_shape la = { a.rank > 2 ? a.rank - 2 : 0, a.d }, lb = { b.rank > 2 ? b.rank - 2 : 0, b.d };
    oct_dim d[OCT_MAX_RANK + 2];
    int rank;
    OCT_TRY(oct_broadcast_dims(&la, &lb, &rank, d, err));
    if (rank < 0)
        return OCT_OK;
    if (a.rank > 1)
        d[rank++] = a.d[a.rank - 2];
    if (b.rank > 1)
        d[rank++] = b.d[b.rank - 1];
    return oct_out_shape(c, 0, rank, d, err);
}

/* Fills at_a, at_b for every product of the broadcast leading dimensions. */
static oct_status pair_up(oct_matmul *m, const oct_operand *a, const oct_operand *b, oct_arena *arena, oct_err *err)
{
    int la = a->rank > 2 ? a->rank - 2 : 0, lb = b->rank > 2 ? b->rank - 2 : 0, l = la > lb ? la : lb;
    int64_t dims[OCT_MAX_RANK];
    m->batch = 1;
    for (int i = 0; i < l; i++) {
        int64_t x = i >= l - la ? a->dims[i - (l - la)] : 1, y = i >= l - lb ? b->dims[i - (l - lb)] : 1;
        dims[i] = x == 1 ? y : x;
        m->batch *= dims[i];
    }
    m->at_a = oct_arena_calloc(arena, (size_t)m->batch + 1, sizeof *m->at_a);
    m->at_b = oct_arena_calloc(arena, (size_t)m->batch + 1, sizeof *m->at_b);
    if (!m->at_a || !m->at_b)
        return oct_nomem(err);
    for (int64_t q = 0; q < m->batch; q++) {
        int64_t rest = q, ia = 0, ib = 0, sa = 1, sb = 1;
        for (int i = l - 1; i >= 0; i--) {
            int64_t at = rest % dims[i];
            rest /= dims[i];
            if (i >= l - la) {
                int64_t d = a->dims[i - (l - la)];
                ia += (d == 1 ? 0 : at) * sa;
                sa *= d;
            }
            if (i >= l - lb) {
                int64_t d = b->dims[i - (l - lb)];
                ib += (d == 1 ? 0 : at) * sb;
                sb *= d;
            }
        }
        m->at_a[q] = ia;
        m->at_b[q] = ib;
    }
    return OCT_OK;
}

oct_status oct_matmul_read(oct_matmul *m, const oct_operand *a, const oct_operand *b, oct_arena *arena, oct_err *err)
{
    m->k = a->dims[a->rank - 1];
    m->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    m->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    m->n_b = 1;
    for (int i = 0; i < b->rank - 2; i++)
        m->n_b *= b->dims[i];
    OCT_TRY(pair_up(m, a, b, arena, err));
    if (m->n_b == 1 && m->batch > 1) {
        m->m *= m->batch; /* rows of all products follow each other */
        m->batch = 1;
    }
    return OCT_OK;
}
