/* lib/kernels/elem/reduce.c -- reductions, softmax and normalisation of whole tensors: rows over threads. */
#include "kernels/reduce.h"

#include "kernels/elem/table.h"

#include <math.h>

#define WORK 16384 /* elements a tile should hold */
#define COLS 64    /* columns of one item where the reduced dimension is not the last */

static size_t tile_of(size_t item)
{
    return item >= WORK ? 1 : item ? WORK / item : WORK;
}

/* An item is a row (inner 1), or a block of columns of one outer index. */
typedef struct reduce_job {
    const oct_elem_table *k;
    int op; /* oct_reduce_op, or log for softmax */
    const float *x;
    float *y;
    size_t n, inner, blocks;
} reduce_job;

static reduce_job reduce_plan(int op, const float *x, size_t n, size_t inner, float *y)
{
    return (reduce_job){ oct_elem(), op, x, y, n, inner, inner == 1 ? 1 : (inner + COLS - 1) / COLS };
}

static void reduce_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const reduce_job *j = arg;
    for (size_t i = begin; i < end; i++) {
        const size_t o = i / j->blocks, c = i % j->blocks * COLS;
        if (j->inner == 1) {
            j->k->reduce_row((oct_reduce_op)j->op, j->x + i * j->n, j->n, j->y + i);
            continue;
        }
        const size_t cols = j->inner - c < COLS ? j->inner - c : COLS;
        j->k->reduce_cols((oct_reduce_op)j->op, j->x + o * j->n * j->inner + c, j->n, j->inner, cols,
                          j->y + o * j->inner + c);
    }
}

void oct_reduce_f32(oct_pool *pool, oct_reduce_op op, const float *x, size_t outer, size_t n, size_t inner, float *y)
{
    reduce_job j = reduce_plan(op, x, n, inner, y);
    oct_pool_for(pool, outer * j.blocks, tile_of(n * (inner < COLS ? inner : COLS)), reduce_tile, &j);
}

double oct_sum_squares_f32(const float *x, size_t n)
{
    double sum;
    oct_elem()->sum_squares(x, n, &sum);
    return sum;
}

double oct_squared_error_f32(const float *x, const float *y, size_t n)
{
    double sum;
    oct_elem()->squared_error(x, y, n, &sum);
    return sum;
}

bool oct_min_max_f32(const float *x, size_t n, float *lo, float *hi)
{
    bool nan;
    oct_elem()->min_max(x, n, lo, hi, &nan);
    return nan;
}

static void softmax_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const reduce_job *j = arg;
    if (j->inner == 1) {
        j->k->softmax_rows(j->op, j->x + begin * j->n, end - begin, j->n, j->y + begin * j->n);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const size_t o = i / j->blocks, c = i % j->blocks * COLS, at = o * j->n * j->inner + c;
        const size_t cols = j->inner - c < COLS ? j->inner - c : COLS;
        j->k->softmax_cols(j->op, j->x + at, j->n, j->inner, cols, j->y + at);
    }
}

/* Rows that fill no vector, such as two classes for each of thousands of boxes, are computed beside each other: as the
 * columns of a block. Both kernels add in the same order. */
enum { SHORT = 8 };

static void softmax_short_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const reduce_job *j = arg;
    const size_t n = j->n;
    float block[SHORT * COLS];
    for (size_t i = begin; i < end; i++) {
        const size_t from = i * COLS, rows = j->inner - from < COLS ? j->inner - from : COLS;
        const float *x = j->x + from * n;
        float *y = j->y + from * n;
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < n; k++)
                block[k * COLS + r] = x[r * n + k];
        j->k->softmax_cols(j->op, block, n, COLS, rows, block);
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < n; k++)
                y[r * n + k] = block[k * COLS + r];
    }
}

void oct_softmax_f32(oct_pool *pool, bool log, const float *x, size_t outer, size_t n, size_t inner, float *y)
{
    if (inner == 1 && n > 1 && n <= SHORT && outer >= COLS / 4) {
        reduce_job rows = reduce_plan(log, x, n, outer, y);
        oct_pool_for(pool, rows.blocks, tile_of(4 * n * COLS), softmax_short_tile, &rows);
        return;
    }
    reduce_job j = reduce_plan(log, x, n, inner, y);
    oct_pool_for(pool, outer * j.blocks, tile_of(4 * n * (inner < COLS ? inner : COLS)), softmax_tile, &j);
}

typedef struct scaled_job {
    const oct_elem_table *k;
    const float *x, *bias;
    float scale, *y;
    size_t n, ld, step;
} scaled_job;

static void scaled_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const scaled_job *j = arg;
    j->k->softmax_scaled_rows(j->x + begin * j->ld, end - begin, j->n, j->ld, j->scale,
                              j->bias ? j->bias + begin * j->step : NULL, j->step, j->y + begin * j->ld);
}

void oct_softmax_scaled_f32(oct_pool *pool, const float *x, size_t rows, size_t n, size_t ld, float scale,
                            const float *bias, size_t step, float *y)
{
    scaled_job j = { oct_elem(), x, bias, scale, y, n, ld, step };
    oct_pool_for(pool, rows, tile_of(4 * n), scaled_tile, &j);
}

/* ------------------------------------------------------------------ normalisation */

typedef struct norm_job {
    const oct_elem_table *k;
    const oct_layer_norm *p;
    const float *x;
    float *y, *mean, *rstd;
} norm_job;

static void norm_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const norm_job *j = arg;
    const oct_layer_norm *p = j->p;
    for (size_t i = begin; i < end; i++) {
        const float *x = j->x + i * p->n;
        float *y = j->y + i * p->n, stats[2];
        j->k->norm_row_stats(x, p->n, p->eps, p->rms, stats);
        if (j->mean)
            j->mean[i] = stats[0];
        if (j->rstd)
            j->rstd[i] = stats[1];
        if (p->per_row || !p->gamma) {
            const size_t c = p->per_row ? i % p->period : 0;
            j->k->norm_row_const(x, p->n, stats, p->gamma ? p->gamma[c] : 1.0f, p->beta ? p->beta[c] : 0.0f, y);
        } else {
            j->k->norm_row(x, p->n, stats, p->gamma, p->beta, y);
        }
    }
}

void oct_layer_norm_f32(oct_pool *pool, const oct_layer_norm *p, const float *x, float *y, float *mean_out,
                        float *rstd_out)
{
    norm_job j = { oct_elem(), p, x, y, mean_out, rstd_out };
    oct_pool_for(pool, p->rows, tile_of(4 * p->n), norm_tile, &j);
}

typedef struct group_job {
    const oct_elem_table *k;
    const oct_group_norm *p;
    const float *x;
    float *y;
} group_job;

static void group_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const group_job *j = arg;
    const oct_group_norm *p = j->p;
    const size_t n = p->each * p->inner;
    for (size_t i = begin; i < end; i++) {
        const size_t group = i % p->groups;
        double moments[2];
        j->k->moments(j->x + i * n, n, moments);
        const float rate = 1.0f / sqrtf((float)moments[1] + p->eps);
        for (size_t c = 0; c < p->each; c++) {
            const size_t at = p->shared ? group : group * p->each + c, from = i * n + c * p->inner;
            j->k->norm_wide(j->x + from, p->inner, moments[0], rate, p->gamma[at], p->beta[at], j->y + from);
        }
    }
}

void oct_group_norm_f32(oct_pool *pool, const oct_group_norm *p, const float *x, float *y)
{
    group_job j = { oct_elem(), p, x, y };
    oct_pool_for(pool, p->rows, tile_of(4 * p->each * p->inner), group_tile, &j);
}

typedef struct instance_job {
    const oct_elem_table *k;
    const float *x, *gamma, *beta;
    float *scratch, *y;
    size_t hw, c;
    float eps;
} instance_job;

static void instance_stats(void *arg, size_t begin, size_t end, size_t thread)
{
    const instance_job *j = arg;
    const size_t blocks = (j->c + COLS - 1) / COLS;
    for (size_t i = begin; i < end; i++) {
        const size_t n = i / blocks, c = i % blocks * COLS;
        float *mean = j->scratch + n * 2 * j->c + c;
        j->k->norm_cols_stats(j->x + n * j->hw * j->c + c, j->hw, j->c, j->c - c < COLS ? j->c - c : COLS, j->eps, mean,
                              mean + j->c);
    }
}

static void instance_apply(void *arg, size_t begin, size_t end, size_t thread)
{
    const instance_job *j = arg;
    for (size_t i = begin; i < end; i++) {
        const float *mean = j->scratch + i / j->hw * 2 * j->c;
        j->k->norm_cols(j->x + i * j->c, j->c, mean, mean + j->c, j->gamma, j->beta, j->y + i * j->c);
    }
}

void oct_instance_norm_nhwc_f32(oct_pool *pool, const float *x, size_t n, size_t hw, size_t c, float eps,
                                const float *gamma, const float *beta, float *scratch, float *y)
{
    instance_job j = { oct_elem(), x, gamma, beta, scratch, y, hw, c, eps };
    oct_pool_for(pool, n * ((c + COLS - 1) / COLS), 1, instance_stats, &j);
    oct_pool_for(pool, n * hw, tile_of(c), instance_apply, &j);
}

typedef struct scale_job {
    const oct_elem_table *k;
    const float *x, *s, *b;
    float *y;
    size_t channels, inner;
} scale_job;

static void scale_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const scale_job *j = arg;
    for (size_t i = begin; i < end; i++)
        if (j->inner == 1) {
            j->k->scale_shift(j->x + i * j->channels, j->channels, j->s, j->b, j->y + i * j->channels);
        } else {
            const oct_unary f = { OCT_UNARY_SCALE, j->s[i % j->channels], j->b[i % j->channels] };
            j->k->unary(&f, j->x + i * j->inner, j->y + i * j->inner, j->inner);
        }
}

void oct_scale_shift_f32(oct_pool *pool, const float *x, size_t outer, size_t channels, size_t inner, const float *s,
                         const float *b, float *y)
{
    scale_job j = { oct_elem(), x, s, b, y, channels, inner };
    if (inner == 1)
        oct_pool_for(pool, outer, tile_of(channels), scale_tile, &j);
    else
        oct_pool_for(pool, outer * channels, tile_of(inner), scale_tile, &j);
}
