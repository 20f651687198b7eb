/* Grids and codes of weights in blocks. */
#include "quant/blocks.h"

#include "base/mem.h"
#include "kernels/quantize.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 16, MOST_BLOCK = 256 }; /* columns that a work item takes: rows of a row-major matrix are read by whole lines */

/* Weights below this are zeros: the reciprocal of a scale must be finite. */
#define LEAST_SCALE 0x1p-120f

typedef struct grid {
    float scale; /* of the steps */
    int zero;
    double best; /* what the squared error is less by */
    float fit;   /* the scale to write */
} grid;

static void try_grid(const float *w, size_t n, float scale, int zero, int top, grid *g)
{
    double sums[2];
    if (!(fabsf(scale) >= LEAST_SCALE))
        return;
    oct_grid_sums_f32(w, n, scale, (float)-zero, (float)(top - zero), sums);
    const double gain = sums[1] > 0 ? sums[0] * sums[0] / sums[1] : 0;
    if (gain > g->best && fabs(sums[0] / sums[1]) >= (double)LEAST_SCALE)
        *g = (grid){ scale, zero, gain, (float)(sums[0] / sums[1]) };
}

/* The best grid of a block; codes are 0..top. */
static grid choose(const float *w, size_t n, int top, bool symmetric)
{
    static const float cuts[] = { 1.0f, 0.95f, 0.9f, 0.85f, 0.8f };
    const int middle = (top + 1) / 2;
    grid g = { 1.0f, middle, 0, 1.0f };
    float lo = 0, hi = 0;
    for (size_t i = 0; i < n; i++) {
        lo = w[i] < lo ? w[i] : lo;
        hi = w[i] > hi ? w[i] : hi;
    }
    const float step = hi / (float)top - lo / (float)top, far = hi > -lo ? hi : lo;
    if (!(step >= LEAST_SCALE))
        return g;
    const int zero = (int)rintf(-lo / step);
    for (size_t c = 0; c < OCT_COUNT(cuts); c++) {
        for (int z = zero - 1; z <= zero + 1 && !symmetric; z++)
            if (z >= 0 && z <= top)
                try_grid(w, n, step * cuts[c], z, top, &g);
        try_grid(w, n, far / (float)-middle * cuts[c], middle, top, &g);
        try_grid(w, n, far / (float)(middle - 1) * cuts[c], middle, top, &g);
    }
    return g;
}

/* ------------------------------------------------------------------ columns */

typedef struct job {
    const oct_block_matrix *m;
    const oct_nbits_form *f;
    uint8_t *codes, *zero;
    float *scale, *buffer; /* f32[threads][COLUMNS][blocks * block] */
    double *sums;          /* [items][2]: signal, noise */
    size_t *bad;           /* [items]: k * n + column of a weight that is not finite, or SIZE_MAX */
} job;

static size_t depth(const oct_nbits_form *f)
{
    return oct_nbits_blocks(f) * f->block;
}

static void put(uint8_t *bytes, int bits, size_t i, unsigned code)
{
    const size_t per = 8 / (size_t)bits;
    bytes[i / per] |= (uint8_t)(code << i % per * (size_t)bits);
}

static void quantize_block(const job *w, const float *x, size_t column, size_t block, double sums[2])
{
    const oct_nbits_form *f = w->f;
    const int top = (1 << f->bits) - 1;
    const grid g = choose(x, f->block, top, f->zero == OCT_NBITS_MIDDLE);
    uint8_t q[MOST_BLOCK];
    oct_grid_codes_f32(x, f->block, g.scale, (float)-g.zero, (float)(top - g.zero), g.zero, q);
    w->scale[column * oct_nbits_blocks(f) + block] = g.fit;
    if (f->zero == OCT_NBITS_WHOLE)
        put(w->zero + column * oct_nbits_zero_bytes(f), f->bits, block, (unsigned)g.zero);
    uint8_t *codes = w->codes + column * oct_nbits_column_bytes(f) + block * (f->block * (size_t)f->bits / 8);
    for (size_t i = 0; i < f->block; i++) {
        const double d = (double)x[i] - (double)((float)(q[i] - g.zero) * g.fit);
        put(codes, f->bits, i, q[i]);
        sums[0] += (double)x[i] * (double)x[i];
        sums[1] += d * d;
    }
}

/* Columns from `first`, one after the other. */
static void gather(const job *w, size_t first, size_t columns, float *to, size_t *bad)
{
    const oct_nbits_form *f = w->f;
    const size_t k = depth(f);
    memset(to, 0, columns * k * sizeof *to);
    for (size_t i = 0; i < f->k; i++)
        for (size_t j = 0; j < columns; j++) {
            const float v = w->m->w[(ptrdiff_t)i * w->m->ks + (ptrdiff_t)(first + j) * w->m->ns];
            to[j * k + i] = v;
            if (!isfinite(v) && *bad == SIZE_MAX)
                *bad = i * f->n + first + j;
        }
}

static void quantize_columns(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_nbits_form *f = w->f;
    const size_t k = depth(f);
    float *x = w->buffer + thread * COLUMNS * k;
    for (size_t item = begin; item < end; item++) {
        const size_t first = item * COLUMNS, columns = f->n - first < COLUMNS ? f->n - first : COLUMNS;
        w->bad[item] = SIZE_MAX;
        gather(w, first, columns, x, &w->bad[item]);
        for (size_t j = 0; j < columns && w->bad[item] == SIZE_MAX; j++)
            for (size_t b = 0; b < oct_nbits_blocks(f); b++)
                quantize_block(w, x + j * k + b * f->block, first + j, b, w->sums + 2 * item);
    }
}

static oct_status finish(const job *w, size_t items, double *sqnr, oct_err *err)
{
    double signal = 0, noise = 0;
    size_t bad = SIZE_MAX;
    for (size_t i = 0; i < items; i++) {
        signal += w->sums[2 * i];
        noise += w->sums[2 * i + 1];
        bad = w->bad[i] < bad ? w->bad[i] : bad;
    }
    if (bad != SIZE_MAX)
        return oct_fail(err, OCT_ENUMERIC, "a weight is not finite (row %zu, column %zu of the matrix)", bad / w->f->n, bad % w->f->n);
    *sqnr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    return OCT_OK;
}

oct_status oct_quantize_blocks(const oct_block_matrix *m, const oct_nbits_form *f, oct_pool *pool, uint8_t *codes, float *scale,
                               uint8_t *zero, double *sqnr, oct_err *err)
{
    const size_t items = (f->n + COLUMNS - 1) / COLUMNS, threads = (size_t)oct_pool_threads(pool);
    size_t floats;
    job w = { .m = m, .f = f, .codes = codes, .zero = zero, .scale = scale };
    if (!oct_mul_size(depth(f), COLUMNS * threads, &floats))
        return oct_nomem(err);
    w.buffer = oct_calloc(floats, sizeof *w.buffer);
    w.sums = oct_calloc(2 * items, sizeof *w.sums);
    w.bad = oct_calloc(items, sizeof *w.bad);
    oct_status s = w.buffer && w.sums && w.bad ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        oct_pool_for(pool, items, 1, quantize_columns, &w);
        s = finish(&w, items, sqnr, err);
    }
    oct_free(w.buffer);
    oct_free(w.sums);
    oct_free(w.bad);
    return s;
}
