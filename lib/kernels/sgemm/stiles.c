/* lib/kernels/sgemm/stiles.c -- walks the tiles of a float product. */
#include "kernels/sgemm/sgemm_int.h"

#include "base/mem.h"
#include "kernels/items.h"

/* Floats of a panel that stay in the first-level cache beside the rows of A; a last part may be half as long again. */
enum { PANEL_FLOATS = 6144, MOST_FLOATS = PANEL_FLOATS + PANEL_FLOATS / 2 };

/* A thread's scratch, carved. */
typedef struct scratch {
    const float **table;
    float *gathered, *tile, *bias, *residual, *panel;
    size_t *ready; /* the block whose rows are ready; the scratch begins with it */
} scratch;

static bool carve(const oct_sgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, bool unpacks,
                  uint8_t *at, scratch *s, size_t *bytes)
{
    size_t table, rows = 0;
    if (!oct_mul_size(oct_round_up(block, k->mr) * sizeof(void *), taps, &table) ||
        (gather && !oct_mul_size(block * sizeof(float), kc, &rows)) || table > SIZE_MAX / 4 || rows > SIZE_MAX / 4)
        return false;
    const size_t tile = k->mr * k->nr * sizeof(float);
    const size_t sizes[] = {
        sizeof(size_t), table, rows, tile, k->nr * sizeof(float), tile, unpacks ? MOST_FLOATS * sizeof(float) : 0
    };
    uint8_t *part[OCT_COUNT(sizes)];
    size_t used = 0;
    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        part[i] = at ? at + used : NULL;
        used += oct_round_up(sizes[i], 64);
    }
    if (s)
        *s = (scratch){ (const float **)(void *)part[1], (float *)(void *)part[2], (float *)(void *)part[3],
                        (float *)(void *)part[4],        (float *)(void *)part[5], (float *)(void *)part[6],
                        (size_t *)(void *)part[0] };
    *bytes = used;
    return true;
}

bool oct_stiles_scratch(const oct_sgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, bool unpacks,
                        size_t *bytes)
{
    return carve(k, block, taps, kc, gather, unpacks, NULL, NULL, bytes);
}

/* One tile: rows from r0, columns from j0 of the group's g. */
typedef struct tile {
    size_t g, r0, m, j0, n;
    const float *const *a;
    const float *b;
    size_t taps, kc;
    bool first, last;
} tile;

/* Kernels that do not mask write whole panels: the last columns go through a tile of their own. */
static void run_edge(const oct_stiles *t, const scratch *s, const tile *e, const oct_sout *out)
{
    const size_t nr = t->kernel->nr, j = e->g * t->n + e->j0;
    float *c = t->c + e->r0 * t->ldc + j;
    if (!e->first)
        for (size_t i = 0; i < e->m; i++)
            memcpy(s->tile + i * nr, c + i * t->ldc, e->n * sizeof *c);
    oct_sout o = *out;
    if (o.bias && e->first)
        o.bias = memcpy(s->bias, o.bias, e->n * sizeof *c);
    if (o.residual && e->last) {
        for (size_t i = 0; i < e->m; i++)
            memcpy(s->residual + i * nr, o.residual + i * o.ldr, e->n * sizeof *c);
        o.residual = s->residual;
        o.ldr = nr;
    }
    t->kernel->fn(e->m, e->n, e->taps, e->kc, e->a, e->b, s->tile, nr, e->first, e->last, &o);
    for (size_t i = 0; i < e->m; i++)
        memcpy(c + i * t->ldc, s->tile + i * nr, e->n * sizeof *c);
}

static void run_tile(const oct_stiles *t, const scratch *s, const tile *e)
{
    const size_t j = e->g * t->n + e->j0;
    oct_sout o = t->out;
    if (o.bias)
        o.bias += j;
    if (o.residual)
        o.residual += e->r0 * o.ldr + j;
    if (e->n < t->kernel->nr && !t->kernel->masks)
        run_edge(t, s, e, &o);
    else
        t->kernel->fn(e->m, e->n, e->taps, e->kc, e->a, e->b, t->c + e->r0 * t->ldc + j, t->ldc, e->first, e->last, &o);
}

/* Whether the tiles of a block are of equal height: a last tile with few rows would take as long as one of four, since
 * each of its sums waits for the one before. */
static bool is_even(const oct_stiles *t, size_t rows)
{
    const size_t left = rows % t->kernel->mr;
    return rows > t->kernel->mr && left > 0 && left < 4;
}

/* Where tile i of a block begins. */
static size_t row_of(const oct_stiles *t, size_t rows, size_t i)
{
    const size_t mr = t->kernel->mr, tiles = (rows + mr - 1) / mr;
    return i == tiles ? rows : is_even(t, rows) ? i * rows / tiles : i * mr;
}

/* One panel of columns against one part of the depth, over all tiles of a block of rows. */
static void run_panel(const oct_stiles *t, const scratch *s, tile e, size_t rows, size_t tap, size_t k)
{
    enum { MOST_ROWS = 32 };
    const size_t mr = t->kernel->mr, r0 = e.r0;
    for (size_t i = 0, at = 0, next; at < rows; i++, at = next) {
        const float *shifted[MOST_ROWS];
        const float *const *a = s->table + (i * t->taps + tap) * mr;
        next = row_of(t, rows, i + 1);
        if (k) {
            for (size_t r = 0; r < mr; r++)
                shifted[r] = a[r] + k;
            a = shifted;
        }
        e.a = a;
        e.r0 = r0 + at;
        e.m = next - at;
        run_tile(t, s, &e);
    }
}

/* How much of the depth goes through the kernel together: taps, or values of the only one. */
static size_t part_of(const oct_sgemm_kernel *k, size_t taps, size_t kc)
{
    const size_t most = PANEL_FLOATS / k->nr;
    return taps > 1 ? (most > kc ? most / kc : 1) : kc < most + most / 2 ? kc : most;
}

bool oct_stiles_whole(const oct_sgemm_kernel *k, size_t taps, size_t kc)
{
    return part_of(k, taps, kc) >= (taps > 1 ? taps : kc);
}

/* Cuts the depth so that the panel's part stays in cache: between taps, or inside the only one. Later
 * parts continue the chain from C, so the cuts do not show in the result. */
static void run_columns(const oct_stiles *t, const scratch *s, tile e, const float *panel, size_t rows)
{
    const size_t nr = t->kernel->nr, part = part_of(t->kernel, t->taps, t->kc);
    const size_t all = t->taps > 1 ? t->taps : t->kc;
    for (size_t at = 0; at == 0 || at < all; at += part ? part : 1) {
        const size_t len = all - at < part ? all - at : part;
        e.taps = t->taps > 1 ? len : 1;
        e.kc = t->taps > 1 ? t->kc : len;
        if (t->unpack) {
            t->unpack(t->unpack_arg, e.j0 / nr, at, len, s->panel);
            e.b = s->panel;
        } else {
            e.b = panel + (t->taps > 1 ? at * oct_spanel_floats(t->kernel, t->kc) : oct_spanel_floats(t->kernel, at));
        }
        e.first = at == 0;
        e.last = at + len == all;
        run_panel(t, s, e, rows, t->taps > 1 ? at : 0, t->taps > 1 ? 0 : at);
    }
}

typedef struct job {
    const oct_stiles *t;
    oct_items items;
    size_t thread_bytes, panel, group;
} job;

/* Columns [j, end) of a single row, the whole panels at once. Returns where the others begin. */
static size_t run_row(const job *w, size_t g, size_t row, const float *a, size_t j, size_t end)
{
    const oct_stiles *t = w->t;
    const size_t nr = t->kernel->nr, panels = (end - j) / nr, col = g * t->n + j;
    oct_sout o = t->out;
    if (o.bias)
        o.bias += col;
    if (o.residual)
        o.residual += row * o.ldr + col;
    t->kernel->row(panels, t->kc, a, t->packed + g * w->group + j / nr * w->panel, w->panel, t->c + row * t->ldc + col,
                   &o);
    return j + panels * nr;
}

/* Pointers to the rows of a block, by its tiles. */
static void point_rows(const oct_stiles *t, const oct_rows *a, size_t begin, size_t rows, const float **table)
{
    const size_t mr = t->kernel->mr;
    if (!is_even(t, rows)) {
        oct_rows_point(a, begin, rows, mr, (const void **)table);
        return;
    }
    for (size_t i = 0, at = 0, next; at < rows; i++, at = next) {
        next = row_of(t, rows, i + 1);
        oct_rows_point(a, begin + at, next - at, mr, (const void **)(table + i * t->taps * mr));
    }
}

/* Pointers to an item's rows, or to a copy of them. */
static void get_ready(const oct_stiles *t, const scratch *s, const oct_item *i)
{
    oct_rows a = t->rows;
    a.x += i->group * a.run;
    if (t->gather) {
        oct_rows_gather(&a, i->row, i->rows, t->kc * sizeof(float), (uint8_t *)s->gathered);
        const oct_rows copied = { .x = (const uint8_t *)s->gathered, .step = t->kc * sizeof(float), .count = i->rows };
        point_rows(t, &copied, 0, i->rows, s->table);
    } else {
        point_rows(t, &a, i->row, i->rows, s->table);
    }
    *s->ready = i->block;
}

static void run_item(const job *w, const oct_item *i, const scratch *s)
{
    const oct_stiles *t = w->t;
    const size_t nr = t->kernel->nr, last = (i->panel + i->panels) * nr, end = last < t->n ? last : t->n;
    size_t j = i->panel * nr;
    if (*s->ready != i->block)
        get_ready(t, s, i);
    if (i->rows == 1 && t->taps == 1 && t->kernel->row && !t->unpack)
        j = run_row(w, i->group, i->row, s->table[0], j, end);
    for (; j < end; j += nr) {
        const tile e = { .g = i->group, .r0 = i->row, .j0 = j, .n = t->n - j < nr ? t->n - j : nr };
        run_columns(t, s, e, t->unpack ? NULL : t->packed + i->group * w->group + j / nr * w->panel, i->rows);
    }
}

static void run_items(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_stiles *t = w->t;
    scratch s = { 0 };
    size_t bytes;
    carve(t->kernel, t->block, t->taps, t->kc, t->gather, t->unpack != NULL, t->scratch + thread * w->thread_bytes, &s,
          &bytes);
    for (size_t i = begin; i < end; i++) {
        const oct_item item = oct_item_at(&w->items, i);
        run_item(w, &item, &s);
    }
}

void oct_stiles_run(const oct_stiles *t, oct_pool *pool)
{
    if (t->rows.count == 0 || t->n == 0)
        return;
    const size_t nr = t->kernel->nr, depth = t->taps * t->kc;
    job w = { .t = t, .panel = t->taps * oct_spanel_floats(t->kernel, t->kc) };
    w.group = w.panel * ((t->n + nr - 1) / nr);
    oct_stiles_scratch(t->kernel, t->block, t->taps, t->kc, t->gather, t->unpack != NULL, &w.thread_bytes);
    /* Waking the threads costs more than a product this small. */
    const bool small = (double)t->rows.count * t->n * t->groups * depth < 65536;
    const oct_work work = { .rows = t->rows.count,
                            .panels = (t->n + nr - 1) / nr,
                            .groups = t->groups,
                            .most = t->block,
                            .unit = t->kernel->mr,
                            .row = t->unpack   ? 0.05
                                   : t->gather ? 0.3
                                               : 0.05,
                            .panel = t->unpack ? 12 : 3 }; /* costs as measured on Zen 3 */
    const size_t threads = small ? 1 : (size_t)oct_pool_useful(pool);
    w.items = oct_items_cut(&work, threads);
    for (size_t i = 0; i < threads; i++)
        *(size_t *)(void *)(t->scratch + i * w.thread_bytes) = SIZE_MAX;
    oct_pool_for(small ? NULL : pool, w.items.n, 1, run_items, &w);
}
