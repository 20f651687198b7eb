/* BATCH_MATMUL: matrices of the last two axes; those in front may be repeated. */
#include "twins/twin_broadcast.h"
#include "twins/twin_ops.h"

typedef struct factors {
    int64_t rows, columns, inner, batches;
    int64_t row_x, inner_x, inner_y, column_y; /* steps */
} factors;

static bool read_factors(const oct_twin_call *c, factors *f)
{
    const oct_tfl_tensor *x = c->in[0]->t, *y = c->in[1]->t, *to = c->out[0]->t;
    const bool turn_x = oct_tfl_option(c->op, OCT_TFL_MATMUL_ADJOINT_X, 0),
               turn_y = oct_tfl_option(c->op, OCT_TFL_MATMUL_ADJOINT_Y, 0);
    if (x->rank < 2 || y->rank < 2 || to->rank < 2)
        return false;
    f->rows = oct_twin_dim(x, turn_x ? 0 : 1);
    f->inner = oct_twin_dim(x, turn_x ? 1 : 0);
    f->columns = oct_twin_dim(y, turn_y ? 1 : 0);
    f->row_x = turn_x ? 1 : f->inner;
    f->inner_x = turn_x ? f->rows : 1;
    f->inner_y = turn_y ? 1 : f->columns;
    f->column_y = turn_y ? f->inner : 1;
    f->batches = 1;
    for (int k = 2; k < to->rank; k++)
        f->batches *= oct_twin_dim(to, k);
    for (int k = 2; k < OCT_MAX_RANK; k++) {
        const int64_t n = oct_twin_dim(to, k), a = oct_twin_dim(x, k), b = oct_twin_dim(y, k);
        if ((a != n && a != 1) || (b != n && b != 1))
            return false;
    }
    return oct_twin_dim(y, turn_y ? 0 : 1) == f->inner && oct_twin_dim(to, 1) == f->rows &&
           oct_twin_dim(to, 0) == f->columns;
}

/* Where the matrix of a batch begins in an operand. */
static int64_t begin(const oct_tfl_tensor *t, const oct_tfl_tensor *to, int64_t batch)
{
    int64_t at = 0, step = oct_twin_dim(t, 0) * oct_twin_dim(t, 1);
    for (int k = 2; k < to->rank; k++) {
        const int64_t n = oct_twin_dim(t, k);
        at += n == 1 ? 0 : batch % oct_twin_dim(to, k) * step;
        batch /= oct_twin_dim(to, k);
        step *= n;
    }
    return at;
}

oct_status oct_twin_matmul(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_rescaling *by = how;
    const oct_twin_tensor *x = c->in[0], *y = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    factors f;
    if (!oct_twin_is_int8(y))
        return oct_twin_cannot(c, err, "its second operand is not int8 with one scale");
    if (!read_factors(c, &f))
        return oct_twin_unfit(c, "its operands do not fit", err);
    const oct_rescale r = by->of(x->scale, y->scale, to->scale);
    int8_t *out = to->data;
    for (int64_t b = 0; b < f.batches; b++) {
        const int8_t *u = (const int8_t *)x->data + begin(x->t, to->t, b),
                     *v = (const int8_t *)y->data + begin(y->t, to->t, b);
        for (int64_t i = 0; i < f.rows; i++)
            for (int64_t k = 0; k < f.columns; k++) {
                uint32_t sum = 0;
                for (int64_t n = 0; n < f.inner; n++)
                    sum += (uint32_t)((u[i * f.row_x + n * f.inner_x] - x->zero) *
                                      (v[n * f.inner_y + k * f.column_y] - y->zero));
                *out++ = (int8_t)by->to(&r, (int32_t)sum, to->zero, -128, 127);
            }
    }
    return OCT_OK;
}

oct_status oct_twin_matmul_by_zero(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_by_zero *by = how;
    return oct_twin_matmul(c, c->n_in > 1 && c->in[1] && !c->in[1]->zero ? by->none : by->some, err);
}

oct_status oct_twin_matmul_real(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    factors f;
    (void)how;
    if (!y || y->t->type != OCT_TFL_FLOAT32)
        return oct_twin_cannot(c, err, "its second operand is not float32");
    if (!read_factors(c, &f))
        return oct_twin_unfit(c, "its operands do not fit", err);
    float *out = to->data;
    for (int64_t b = 0; b < f.batches; b++) {
        const float *u = (const float *)x->data + begin(x->t, to->t, b),
                    *v = (const float *)y->data + begin(y->t, to->t, b);
        for (int64_t i = 0; i < f.rows; i++)
            for (int64_t k = 0; k < f.columns; k++) {
                float sum = 0;
                for (int64_t n = 0; n < f.inner; n++)
                    sum += u[i * f.row_x + n * f.inner_x] * v[n * f.inner_y + k * f.column_y];
                *out++ = sum;
            }
    }
    return OCT_OK;
}
