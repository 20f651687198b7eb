/* Recurrent operators: matrix products and the cells. */
#include "ops/recurrent/rnn_layer.h"

#include "kernels/binary.h"
#include "kernels/quantize.h"
#include "kernels/rnn.h"
#include "kernels/rows.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ products */

oct_status oct_rnn_mat_f32(oct_rnn_mat *m, size_t n, size_t k, size_t rows, int threads, oct_err *err)
{
    *m = (oct_rnn_mat){ .n = n, .k = k };
    OCT_TRY(oct_sgemm_prepare(&m->s, rows, n, k, threads, err));
    m->packed_size = oct_round_up(m->s.packed_size, 64);
    m->scratch_size = oct_round_up(m->s.scratch_size, 64);
    return OCT_OK;
}

oct_status oct_rnn_mat_dynamic(oct_rnn_mat *m, size_t n, size_t k, size_t rows, oct_dtype type, int threads,
                               oct_err *err)
{
    size_t bytes;
    *m = (oct_rnn_mat){ .n = n, .k = k, .dynamic = true };
    OCT_TRY(oct_qgemm_prepare(&m->q, rows, n, k, OCT_U8, type, threads, err));
    if (!oct_mul_size(rows, k, &bytes) || bytes > SIZE_MAX / 4)
        return oct_nomem(err);
    m->packed_size = oct_round_up(m->q.packed_size, 64);
    m->scratch_size =
        oct_round_up(bytes, 64) + oct_round_up(n * sizeof(float), 64) + oct_round_up(m->q.scratch_size, 64);
    return OCT_OK;
}

void oct_rnn_mat_pack(const oct_rnn_mat *m, const void *b, ptrdiff_t rs, ptrdiff_t cs, void *packed)
{
    if (m->dynamic)
        oct_qgemm_pack(&m->q, b, rs, cs, m->zero, m->zero_step, packed);
    else
        oct_sgemm_pack(&m->s, b, rs, cs, packed);
}

static void run_dynamic(const oct_rnn_mat *m, oct_pool *pool, size_t rows, const float *a, const void *packed,
                        const float *bias, const float *add, size_t lda, float *c, size_t ldc, char *scratch)
{
    uint8_t *qvals = (uint8_t *)scratch, zero;
    float *mult = (float *)(scratch + oct_round_up(rows * m->k, 64)), scale;
    oct_dynamic_quantize_u8(pool, a, rows * m->k, qvals, &scale, &zero);
    oct_binary_f32(NULL, OCT_BINARY_MUL, m->scale, (ptrdiff_t)m->scale_step, &scale, 0, mult, m->n);
    oct_qout out = { .kind = OCT_QOUT_F32, .mult = mult, .bias = rows == 1 && add ? add : bias };
    oct_qgemm_run(&m->q, pool, rows, qvals, m->k, zero, packed, NULL, &out, c, ldc,
                  (char *)mult + oct_round_up(m->n * sizeof(float), 64));
    for (size_t i = 0; add && rows > 1 && i < rows; i++)
        for (size_t j = 0; j < m->n; j++)
            c[i * ldc + j] += add[i * lda + j];
}

void oct_rnn_mat_run(const oct_rnn_mat *m, oct_pool *pool, size_t rows, const float *a, const void *packed,
                     const float *bias, const float *add, size_t lda, float *c, size_t ldc, void *scratch)
{
    if (rows == 0)
        return;
    if (m->dynamic) {
        run_dynamic(m, pool, rows, a, packed, bias, add, lda, c, ldc, scratch);
        return;
    }
    oct_sout out = { .bias = bias, .residual = add, .ldr = lda };
    oct_sgemm_run(&m->s, pool, rows, a, m->k, packed, c, ldc, &out, scratch);
}

/* ------------------------------------------------------------------ cells */

static void apply(const oct_rnn_act *f, float *x, size_t n)
{
    for (int i = 0; i < f->n; i++)
        oct_unary_f32(NULL, &f->f[i], x, x, n);
}

static void clip(const oct_rnn *g, float *x, size_t n)
{
    if (g->clip == INFINITY)
        return;
    oct_unary f = { OCT_UNARY_CLIP, -g->clip, g->clip };
    oct_unary_f32(NULL, &f, x, x, n);
}

static bool active(const oct_rnn_cell *c, size_t row)
{
    return !c->lens || c->t < c->lens[row];
}

static void show(const oct_rnn_cell *c, size_t row, const float *h, size_t n)
{
    if (c->y)
        memcpy(c->y + row * c->ldy, h, n * sizeof *h);
}

static void add_product(float *restrict x, const float *restrict a, const float *restrict b, size_t n)
{
    for (size_t j = 0; j < n; j++)
        x[j] += a[j] * b[j];
}

static void plain_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const oct_rnn_cell *c = arg;
    const size_t n = (size_t)c->g->hidden;
    for (size_t row = begin; row < end; row++) {
        float *g = c->gates + row * n;
        if (!active(c, row))
            continue;
        clip(c->g, g, n);
        apply(&c->act[0], g, n);
        memcpy(c->h + row * n, g, n * sizeof *g);
        show(c, row, g, n);
    }
}

static bool is_only(const oct_rnn_act *f, oct_unary_op op)
{
    return f->n == 1 && f->f[0].op == op;
}

/* Whether the cell is what oct_lstm_f32 computes. */
static bool is_usual(const oct_rnn_cell *c)
{
    return !c->peephole && !c->g->input_forget && c->g->clip == INFINITY && is_only(&c->act[0], OCT_UNARY_SIGMOID) &&
           is_only(&c->act[1], OCT_UNARY_TANH) && is_only(&c->act[2], OCT_UNARY_TANH);
}

static void lstm_row(const oct_rnn_cell *c, size_t row)
{
    const size_t n = (size_t)c->g->hidden;
    float *i = c->gates + row * 4 * n, *o = i + n, *f = o + n, *g = f + n, *cell = c->c + row * n, *h = c->h + row * n;
    if (is_usual(c)) {
        oct_lstm_f32(i, n, cell, h);
        show(c, row, h, n);
        return;
    }
    if (c->peephole) {
        add_product(i, c->peephole, cell, n);
        add_product(f, c->peephole + 2 * n, cell, n);
        clip(c->g, i, n);
        clip(c->g, f, 2 * n);
        apply(&c->act[0], i, n);
        apply(&c->act[0], f, n);
    } else {
        clip(c->g, i, 4 * n);
        apply(&c->act[0], i, 3 * n);
    }
    apply(&c->act[1], g, n);
    for (size_t j = 0; c->g->input_forget && j < n; j++)
        f[j] = 1.0f - i[j];
    for (size_t j = 0; j < n; j++)
        cell[j] = f[j] * cell[j] + i[j] * g[j];
    if (c->peephole) {
        add_product(o, c->peephole + n, cell, n);
        clip(c->g, o, n);
        apply(&c->act[0], o, n);
    }
    memcpy(g, cell, n * sizeof *g);
    apply(&c->act[2], g, n);
    for (size_t j = 0; j < n; j++)
        h[j] = o[j] * g[j];
    show(c, row, h, n);
}

static void lstm_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    for (size_t row = begin; row < end; row++)
        if (active(arg, row))
            lstm_row(arg, row);
}

static void reset_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const oct_rnn_cell *c = arg;
    const size_t n = (size_t)c->g->hidden;
    for (size_t row = begin; row < end; row++) {
        float *z = c->gates + row * 3 * n, *r = z + n;
        clip(c->g, z, 2 * n);
        apply(&c->act[0], z, 2 * n);
        for (size_t j = 0; !c->g->linear_before_reset && j < n; j++)
            c->rh[row * n + j] = r[j] * c->h[row * n + j];
    }
}

static void gru_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const oct_rnn_cell *c = arg;
    const size_t n = (size_t)c->g->hidden;
    for (size_t row = begin; row < end; row++) {
        float *z = c->gates + row * 3 * n, *r = z + n, *g = r + n, *h = c->h + row * n;
        if (!active(c, row))
            continue;
        for (size_t j = 0; c->g->linear_before_reset && j < n; j++)
            g[j] = c->x[row * c->ldx + j] + r[j] * c->hr[row * n + j];
        clip(c->g, g, n);
        apply(&c->act[1], g, n);
        for (size_t j = 0; j < n; j++)
            h[j] = c->by_change ? g[j] + z[j] * (h[j] - g[j]) : (1.0f - z[j]) * g[j] + z[j] * h[j];
        show(c, row, h, n);
    }
}

typedef void (*rows_fn)(void *arg, size_t begin, size_t end, size_t thread);

/* Rows in parallel where they are worth a thread. */
static void over_rows(const oct_rnn_cell *c, oct_pool *pool, rows_fn fn)
{
    const size_t batch = (size_t)c->g->batch;
    oct_pool_for(batch * (size_t)c->g->hidden < 2048 ? NULL : pool, batch, 1, fn, (void *)(uintptr_t)c);
}

void oct_rnn_cell_plain(const oct_rnn_cell *c, oct_pool *pool)
{
    over_rows(c, pool, plain_rows);
}

void oct_rnn_cell_lstm(const oct_rnn_cell *c, oct_pool *pool)
{
    over_rows(c, pool, lstm_rows);
}

void oct_rnn_cell_gru_reset(const oct_rnn_cell *c, oct_pool *pool)
{
    over_rows(c, pool, reset_rows);
}

void oct_rnn_cell_gru(const oct_rnn_cell *c, oct_pool *pool)
{
    over_rows(c, pool, gru_rows);
}
