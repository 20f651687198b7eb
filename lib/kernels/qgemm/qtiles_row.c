/* lib/kernels/qgemm/qtiles_row.c -- runs products of a single row: parts of A, blocks of columns, the last step. */
#include "kernels/qgemm/qgemm_int.h"

#include "base/mem.h"

enum { BLOCK = 4 * OCT_QROW_COLUMNS }; /* columns between two last steps */

/* Shared by all threads: a number a column, the first parts of A, its further parts. */
typedef struct scratch {
    int32_t *add;
    uint32_t *first;
    oct_qrow_part *further;
} scratch;

static size_t quads_of(size_t k)
{
    return oct_round_up(k, 16) / 4;
}

static size_t columns_bytes(size_t n)
{
    return oct_round_up(n * sizeof(int32_t), 64);
}

static size_t first_bytes(size_t k)
{
    return oct_round_up(quads_of(k) * sizeof(uint32_t), 64);
}

static scratch carve(size_t k, size_t n, uint8_t *at)
{
    uint8_t *first = at + columns_bytes(n), *further = first + first_bytes(k);
    return (scratch){ (int32_t *)(void *)at, (uint32_t *)(void *)first, (oct_qrow_part *)(void *)further };
}

bool oct_qrow_scratch(size_t k, size_t n, size_t *bytes)
{
    return k <= SIZE_MAX / 64 && n <= SIZE_MAX / 64 &&
           oct_add_size(columns_bytes(n) + first_bytes(k), 2 * quads_of(k) * sizeof(oct_qrow_part), bytes);
}

typedef struct job {
    const oct_qtiles *t;
    oct_qrow row;
    const int32_t *add;
    const uint8_t *panels;
    size_t cols, depth, elem; /* depth: bytes of a column */
} job;

/* The zero point as the base, where few units need parts; else 128, where each needs two more at most. */
static int32_t split(const oct_qtiles *t, const uint8_t *a, oct_qrow *r)
{
    const oct_qrow_kernel *k = t->kernel->row;
    int32_t base = t->za;
    const size_t more = k->count(r->small, a, t->kc, t->flip, base);
    if (more > oct_qrow_units(r->small, t->kc) / 8 && k->count(r->small, a, t->kc, t->flip, 128) < more)
        base = 128;
    k->split(a, t->kc, t->flip, base, r);
    return base;
}

/* sum (a - za)(w - zb) = sum (a - base) w + (base - za) sum w - zb sum (a - za); what follows the first term, and the
 * bias. */
static const int32_t *fold(const oct_qtiles *t, const job *w, int32_t base, bool has_zb, const int32_t *sums,
                           const int32_t *minus_zb, int32_t *to)
{
    const uint32_t move = (uint32_t)(base - t->za), sum = w->row.sum + (uint32_t)t->kc * move;
    if (move == 0 && !has_zb)
        return t->bias ? t->bias : minus_zb; /* that is zeros */
    for (size_t j = 0; j < t->n; j++)
        to[j] =
            (int32_t)((t->bias ? (uint32_t)t->bias[j] : 0) + move * (uint32_t)sums[j] + sum * (uint32_t)minus_zb[j]);
    return to;
}

static void run_block(const job *w, size_t j, size_t n)
{
    const oct_qtiles *t = w->t;
    int32_t acc[BLOCK];
    for (size_t i = 0; i < n; i += OCT_QROW_COLUMNS) {
        const size_t left = oct_round_up(n - i, OCT_QROW_STEP),
                     columns = left < OCT_QROW_COLUMNS ? left : OCT_QROW_COLUMNS;
        t->kernel->row->run(&w->row, columns, w->panels + (j + i) * w->depth, acc + i);
    }
    oct_qout o = *t->out;
    if (o.mult)
        o.mult += j;
    if (o.bias)
        o.bias += j;
    t->qout->fn(1, n, acc, BLOCK, w->add + j, NULL, NULL, &o, (uint8_t *)t->c + j * w->elem, t->ldc);
}

static void run_items(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_qtiles *t = w->t;
    for (size_t i = begin; i < end; i++) {
        const size_t from = i * w->cols, to = t->n - from < w->cols ? t->n : from + w->cols,
                     blocks = (to - from + BLOCK - 1) / BLOCK;
        for (size_t b = 0; b < blocks; b++) {
            const size_t j = from + (t->backwards ? blocks - 1 - b : b) * BLOCK;
            run_block(w, j, to - j < BLOCK ? to - j : BLOCK);
        }
    }
}

void oct_qrow_run(const oct_qtiles *t, oct_pool *pool)
{
    const oct_qpacked *head = t->packed;
    const size_t columns = columns_bytes(t->n) / sizeof(int32_t);
    const int32_t *sums = (const int32_t *)(const void *)(head + 1);
    const uint8_t *a;
    const scratch s = carve(t->kc, t->n, t->scratch);
    oct_rows_point(&t->rows, 0, 1, 1, (const void **)&a);
    job w = { .t = t,
              .row = { .small = head->small, .first = s.first, .further = s.further },
              .panels = (const uint8_t *)(sums + 2 * columns),
              .depth = oct_qrow_units(head->small, t->kc) * (head->small ? 8 : 4),
              .elem = oct_qout_size(t->out->kind) };
    const int32_t base = split(t, a, &w.row);
    w.add = fold(t, &w, base, head->has_zb, sums, sums + columns, s.add);
    const bool small = (double)t->n * t->kc < 131072; /* waking the threads costs more */
    const oct_work work = {
        .rows = 1, .panels = (t->n + OCT_QROW_COLUMNS - 1) / OCT_QROW_COLUMNS, .groups = 1, .most = 1, .unit = 1
    };
    const oct_items items = oct_items_cut(&work, small ? 1 : (size_t)oct_pool_useful(pool));
    w.cols = items.panels * OCT_QROW_COLUMNS;
    oct_pool_for(small ? NULL : pool, items.col_items, 1, run_items, &w);
}
