/* Quantization parameters and quantized values of weights in blocks. */
#include "quant/weights/blocks.h"

#include "base/mem.h"
#include "eval/metrics/summary.h"
#include "kernels/quantize.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

/* TILE columns are quantized side by side, and errors are added for SUM columns. At most ITEM columns are a work item,
 * so that of each row of a row-major matrix, which is often on a page of its own, many cache lines are read. */
enum { TILE = OCT_QPARAMS_COLUMNS, SUM = 4 * TILE, ITEM = 4 * SUM, MOST_BLOCK = 256 };

/* A block of TILE columns. */
typedef struct tile {
    float x[MOST_BLOCK * TILE]; /* [block][TILE] */
    uint8_t qvals[MOST_BLOCK * TILE];
    oct_column_qparams best; /* its fit is the scale that is written */
} tile;

typedef struct job {
    const oct_block_matrix *m;
    const oct_nbits_form *f;
    uint8_t *qvals;
    float *scale;
    int32_t *zero;
    size_t blocks, column; /* of a column: blocks, bytes */
    size_t item;           /* the columns of a work item */
    tile *tiles;           /* [threads][ITEM / TILE] */
    double *sums;          /* [ceil(n / SUM)][2]: signal, noise */
} job;

/* Copies the columns from `first`, from row k0 on, as float32 to x [ITEM / TILE][rows][TILE]. Elements beyond the
 * matrix are zeros. */
static void gather(const job *w, size_t k0, size_t first, size_t columns, tile *t)
{
    const oct_nbits_form *f = w->f;
    const oct_block_matrix *m = w->m;
    const size_t rows = f->k - k0 < f->block ? f->k - k0 : f->block;
    int64_t from = (int64_t)k0 * m->ks + (int64_t)first * m->ns;
    oct_chunk part;
    for (size_t c = 0; (rows < f->block || columns < ITEM) && c < ITEM / TILE; c++)
        memset(t[c].x, 0, f->block * TILE * sizeof *t->x);
    for (size_t i = 0; i < rows && m->ks != 1; i++, from += m->ks) {
        const float *row = oct_elem_load(m->type, m->w, from, m->ns, (int64_t)columns, &part);
        size_t j = 0;
        for (; j + TILE <= columns; j += TILE)
            memcpy(&t[j / TILE].x[i * TILE], row + j, TILE * sizeof *row);
        if (j < columns)
            memcpy(&t[j / TILE].x[i * TILE], row + j, (columns - j) * sizeof *row);
    }
    for (size_t j = 0; j < columns && m->ks == 1; j++, from += m->ns) {
        const float *column = oct_elem_load(m->type, m->w, from, 1, (int64_t)rows, &part);
        for (size_t i = 0; i < rows; i++)
            t[j / TILE].x[i * TILE + j % TILE] = column[i];
    }
}

static void store(const job *w, const tile *t, size_t block, size_t first, size_t columns)
{
    const oct_nbits_form *f = w->f;
    const size_t bytes = f->block * (size_t)f->bits / 8;
    oct_pack_columns(t->qvals, f->block, f->bits, columns, w->qvals + first * w->column + block * bytes, w->column);
    for (size_t j = 0; j < columns; j++) {
        const size_t column = first + j;
        w->scale[column * w->blocks + block] = t->best.fit[j];
        w->zero[column * w->blocks + block] = f->zero == OCT_NBITS_WHOLE ? t->best.zero[j] : 0;
    }
}

static void quantize_item(const job *w, size_t item, tile *tiles)
{
    const oct_nbits_form *f = w->f;
    const size_t begin = item * w->item, end = begin + w->item < f->n ? begin + w->item : f->n;
    const int top = (1 << f->bits) - 1;
    for (size_t b = 0; b < w->blocks; b++) {
        gather(w, b * f->block, begin, end - begin, tiles);
        for (size_t first = begin; first < end; first += TILE) {
            const size_t columns = end - first < TILE ? end - first : TILE;
            tile *t = &tiles[(first - begin) / TILE];
            double *sums = w->sums + first / SUM * 2;
            double signal = 0;
            oct_choose_columns_f32(t->x, f->block, top, f->zero == OCT_NBITS_MIDDLE, &t->best);
            for (size_t j = 0; j < TILE; j++)
                signal += t->best.signal[j];
            sums[0] += signal;
            if (!isfinite(signal))
                return;
            oct_quantize_columns_f32(t->x, f->block, top, &t->best, t->qvals);
            store(w, t, b, first, columns);
            for (size_t j = 0; j < columns; j++)
                sums[1] += t->best.error[j];
        }
    }
}

static void quantize_items(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    for (size_t i = begin; i < end; i++)
        quantize_item(w, i, w->tiles + thread * (ITEM / TILE));
}

/* Names the first weight that is not finite. */
static oct_status fail_at(const job *w, oct_err *err)
{
    const oct_block_matrix *m = w->m;
    oct_chunk one;
    for (size_t i = 0; i < w->f->k; i++)
        for (size_t j = 0; j < w->f->n; j++)
            if (!isfinite(
                    *(const float *)oct_elem_load(m->type, m->w, (int64_t)i * m->ks + (int64_t)j * m->ns, 1, 1, &one)))
                return oct_fail(err, OCT_ENUMERIC, "a weight is not finite (row %zu, column %zu of the matrix)", i, j);
    return oct_fail(err, OCT_EINTERNAL, "rounding in blocks");
}

oct_status oct_quantize_blocks(const oct_block_matrix *m, const oct_nbits_form *f, oct_pool *pool, uint8_t *qvals,
                               float *scale, int32_t *zero, double *sqnr, oct_err *err)
{
    const size_t parts = (f->n + SUM - 1) / SUM, threads = (size_t)oct_pool_threads(pool);
    job w = { .m = m,
              .f = f,
              .qvals = qvals,
              .zero = zero,
              .scale = scale,
              .blocks = oct_nbits_blocks(f),
              .column = oct_nbits_column_bytes(f) };
    for (w.item = ITEM; w.item > SUM && f->n / w.item < 2 * threads; w.item /= 2) /* all threads have work */
        ;
    w.tiles = oct_calloc(threads * (ITEM / TILE), sizeof *w.tiles);
    w.sums = oct_calloc(2 * parts, sizeof *w.sums);
    oct_status s = w.tiles && w.sums ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        double signal = 0, noise = 0;
        oct_pool_for(pool, (f->n + w.item - 1) / w.item, 1, quantize_items, &w);
        for (size_t i = 0; i < parts; i++) {
            signal += w.sums[2 * i];
            noise += w.sums[2 * i + 1];
        }
        *sqnr = oct_decibels(signal, noise);
        s = isfinite(signal) ? OCT_OK : fail_at(&w, err);
    }
    oct_free(w.tiles);
    oct_free(w.sums);
    return s;
}
