/* lib/kernels/qgemm/qtiles.c -- walks the tiles of an integer product. */
#include "kernels/qgemm/qgemm_int.h"

#include "base/mem.h"
#include "kernels/qgemm/qchain.h"

/* A thread's scratch, carved. */
typedef struct scratch {
    const uint8_t **table;
    uint8_t **to; /* of kernels of blocks, in place of the table */
    size_t *at;   /* likewise, in place of what is copied */
    uint8_t *gathered, *copied;
    int32_t *tile, *rowsum;
    size_t *ready; /* the block whose rows are ready; the scratch begins with it */
    oct_qclass sorted;
} scratch;

/* Kernels of blocks fetch each panel once a block, at more than the price of many rows: a block fills half of the
 * second-level cache. */
static size_t block_rows(const oct_qgemm_kernel *k, size_t depth)
{
    enum { MOST = 512, LEAST = 64, CACHE = 1 << 20 };
    const size_t fit = depth ? CACHE / depth / k->mr * k->mr : MOST;
    return fit > MOST ? MOST : fit < LEAST ? LEAST : fit;
}

/* Rows copied for chains stay in the second-level cache while the panels pass; few rows would look at each unit for too
 * little. More of them are better as long as the first-level cache holds them beside the tile. A kernel that keeps no
 * sums in memory takes many rows, as far as that cache holds them: each panel comes from beyond it once a block. */
size_t oct_qtiles_block(const oct_qgemm_kernel *k, size_t depth, bool gather)
{
    enum { MOST = 128, USUAL = 64, LEAST = 24, CACHE = 320 << 10, NEAR = 16 << 10, MANY = 192, ONCE = 256 << 10 };
    if (k->block)
        return block_rows(k, depth);
    if (k->fused && depth <= ONCE / MANY)
        return MANY;
    if (!k->chain)
        return oct_rows_block(depth, gather);
    if (depth <= NEAR / USUAL)
        return depth <= NEAR / MOST ? MOST : NEAR / depth / k->mr * k->mr;
    const size_t fit = CACHE / depth / k->mr * k->mr;
    return fit > USUAL ? USUAL : fit < LEAST ? LEAST : fit;
}

/* From one gathered row to the next: chains read whole chunks, kernels of blocks whole steps, and room behind each row
 * makes gathering faster. */
static size_t gathered_row(const oct_qgemm_kernel *k, size_t kc)
{
    return oct_round_up(kc + OCT_ROWS_SLACK, k->block ? OCT_QBLOCK_STEP : OCT_QCHAIN_CHUNK);
}

static size_t block_steps(size_t taps, size_t kc)
{
    return taps * (oct_round_up(kc, OCT_QBLOCK_STEP) / OCT_QBLOCK_STEP);
}

/* Of what is made of the rows of a block before the panels pass: chains' copy, or sorted rows, as the weights were
 * packed; of kernels of blocks where the steps of k begin. */
static bool copy_size(const oct_qgemm_kernel *k, size_t block, size_t taps, size_t kc, size_t *bytes)
{
    size_t sorted = 0;
    *bytes = 0;
    if (k->block)
        return oct_mul_size(taps, kc + OCT_QBLOCK_STEP, &sorted) &&
               oct_mul_size(block_steps(taps, kc), sizeof(size_t), bytes);
    if ((k->sorted && !oct_qclass_carve(block, kc, NULL, NULL, &sorted)) ||
        (k->chain &&
         (!oct_mul_size(oct_round_up(kc, OCT_QCHAIN_CHUNK), taps, bytes) || !oct_mul_size(*bytes, block, bytes))))
        return false;
    *bytes = sorted > *bytes ? sorted : *bytes;
    return true;
}

static bool carve(const oct_qgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, uint8_t *at, scratch *s,
                  size_t *bytes)
{
    size_t table, rows = 0, copy;
    if (kc > SIZE_MAX / 2 || !oct_mul_size(oct_round_up(block, k->mr) * sizeof(void *), k->block ? 1 : taps, &table) ||
        !copy_size(k, block, taps, kc, &copy) || (gather && !oct_mul_size(block, gathered_row(k, kc), &rows)) ||
        table > SIZE_MAX / 8 || rows > SIZE_MAX / 8 || copy > SIZE_MAX / 8)
        return false;
    const size_t sizes[] = { sizeof(size_t),
                             table,
                             rows,
                             copy,
                             k->block ? 0 : oct_round_up(block, k->mr) * k->nr * sizeof(int32_t),
                             oct_round_up(block, k->mr) * sizeof(int32_t) };
    uint8_t *part[OCT_COUNT(sizes)];
    size_t used = 0;
    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        part[i] = at ? at + used : NULL;
        used += oct_round_up(sizes[i], 64);
    }
    if (s)
        *s = (scratch){ (const uint8_t **)(void *)part[1],
                        (uint8_t **)(void *)part[1],
                        (size_t *)(void *)part[3],
                        part[2],
                        part[3],
                        (int32_t *)(void *)part[4],
                        (int32_t *)(void *)part[5],
                        (size_t *)(void *)part[0],
                        { .sum = (int32_t *)(void *)part[5] } };
    if (s && k->sorted)
        oct_qclass_carve(block, kc, s->copied, &s->sorted, &copy);
    *bytes = used;
    return true;
}

bool oct_qtiles_scratch(const oct_qgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, size_t *bytes)
{
    return carve(k, block, taps, kc, gather, NULL, NULL, bytes);
}

bool oct_qtiles_shared(size_t columns, size_t *bytes)
{
    if (columns > SIZE_MAX / 64)
        return false;
    *bytes = oct_round_up(columns * sizeof(int32_t), 64) + 64;
    return true;
}

typedef struct job {
    const oct_qtiles *t;
    const oct_qbytes *bytes;
    const int32_t *add, *colmul;
    const int8_t *panels;
    bool chains, plain; /* some panel is in chains, is not */
    bool fused;         /* plain panels have their last step in registers */
    bool direct;        /* chains read A where it is */
    bool rowsums;       /* rows are summed: some zero point of B is not zero */
    uint32_t bias;      /* not 0: rows are sorted by class, and summed without the zero point */
    uint8_t *parts;
    oct_items items;
    size_t thread_bytes, panel, group, elem;
} job;

/* What a row has under one tap: signed values with their top bit flipped, minus 128 each. */
static uint32_t sum_run(const job *w, const uint8_t *a)
{
    const oct_qtiles *t = w->t;
    const uint8_t flip = t->is_signed ? 0x80 : 0;
    return w->bytes->sum(a, t->kc, t->flip ^ flip) - (uint32_t)flip * (uint32_t)t->kc;
}

static void sum_rows(const job *w, const scratch *s, size_t rows)
{
    const oct_qtiles *t = w->t;
    const size_t mr = t->kernel->mr;
    for (size_t i = 0; i < rows; i++) {
        uint32_t sum = 0;
        for (size_t tap = 0; tap < t->taps; tap++)
            sum += sum_run(w, s->table[(i / mr * t->taps + tap) * mr + i % mr]);
        s->rowsum[i] = (int32_t)sum;
    }
}

static const int8_t *panel_at(const job *w, size_t g, size_t j)
{
    return w->panels + g * w->group + j / w->t->kernel->nr * w->panel;
}

static oct_qout out_at(const oct_qtiles *t, size_t column)
{
    oct_qout o = *t->out;
    o.mult = o.mult ? o.mult + column : NULL;
    o.bias = o.bias ? o.bias + column : NULL;
    return o;
}

static void *place_at(const job *w, size_t row, size_t column)
{
    return (uint8_t *)w->t->c + (row * w->t->ldc + column) * w->elem;
}

/* The last step of n columns from j, whose sums are in the tile, `pitch` numbers a row; add: what they did not begin
 * with, or NULL. */
static void finish(const job *w, const scratch *s, size_t pitch, const int32_t *add, size_t g, size_t r0, size_t rows,
                   size_t j, size_t n)
{
    const oct_qtiles *t = w->t;
    const size_t col = g * t->n + j;
    const oct_qout o = out_at(t, col);
    t->qout->fn(rows, n, s->tile, pitch, add, w->rowsums ? s->rowsum : NULL, w->colmul + col, &o, place_at(w, r0, col),
                t->ldc);
}

static void run_chains(const job *w, const scratch *s, const oct_qchain_rows *a, size_t g, size_t r0, size_t rows,
                       size_t j, size_t n, const int8_t *b)
{
    enum { HALF = OCT_QCHAIN_COLUMNS / 2 };
    const oct_qtiles *t = w->t;
    const bool doubled = ((const oct_qchain_panel *)(const void *)b)->doubled;
    const int32_t *add = w->add + g * t->n + j;
    int32_t twice[OCT_QCHAIN_COLUMNS];
    for (size_t i = 0; doubled && i < OCT_COUNT(twice); i++)
        twice[i] = add[i % HALF];
    t->kernel->chain(rows, t->taps * t->kc, a, b, doubled ? twice : add, s->tile);
    finish(w, s, doubled ? HALF : OCT_QCHAIN_COLUMNS, NULL, g, r0, rows, j, n);
}

static void run_plain(const job *w, const scratch *s, size_t g, size_t r0, size_t rows, size_t j, size_t n,
                      const int8_t *b)
{
    const oct_qtiles *t = w->t;
    const size_t mr = t->kernel->mr, nr = t->kernel->nr;
    if (w->fused && rows > 1) {
        const oct_qout o = out_at(t, g * t->n + j);
        const oct_qfused f = { .rows = rows,
                               .n = n,
                               .taps = t->taps,
                               .kc = t->kc,
                               .a = s->table,
                               .flip = t->flip,
                               .b = b,
                               .ahead = w->panel,
                               .add = w->add + g * t->n + j,
                               .out = &o,
                               .c = place_at(w, r0, g * t->n + j),
                               .ldc = t->ldc };
        t->kernel->fused(&f);
        return;
    }
    for (size_t i = 0; i < rows; i += mr)
        t->kernel->fn(rows - i < mr ? rows - i : mr, n, t->taps, t->kc, s->table + i * t->taps, t->flip, b,
                      s->tile + i * nr);
    finish(w, s, nr, w->add + g * t->n + j, g, r0, rows, j, n);
}

/* A single row: the tile has room for as many panels as it has rows, and one last step serves all of them. */
static void run_single(const job *w, const scratch *s, const oct_item *i)
{
    const oct_qtiles *t = w->t;
    const size_t nr = t->kernel->nr, wide = t->kernel->mr * nr, begin = i->panel * nr, end = begin + i->panels * nr;
    const size_t columns = (end < t->n ? end : t->n) - begin, blocks = (columns + wide - 1) / wide;
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = (t->backwards ? blocks - 1 - b : b) * wide, n = columns - at < wide ? columns - at : wide,
                     from = begin + at;
        for (size_t j = 0; j < n; j += nr)
            t->kernel->fn(1, n - j < nr ? n - j : nr, t->taps, t->kc, s->table, t->flip,
                          panel_at(w, i->group, from + j), s->tile + j);
        finish(w, s, wide, w->add + i->group * t->n + from, i->group, i->row, 1, from, n);
    }
}

static void run_sorted(const job *w, const scratch *s, size_t g, size_t r0, size_t rows, size_t j, size_t n,
                       const int8_t *b)
{
    const oct_qtiles *t = w->t;
    t->kernel->sorted->run(rows, t->kc, w->bias, &s->sorted, (const uint8_t *)b, w->add + j, s->tile);
    finish(w, s, OCT_QCLASS_COLUMNS, NULL, g, r0, rows, j, n);
}

/* Columns from j of a block. Panels of kernels that know chains have a head, but those for sorted rows. */
static void run_panel(const job *w, const scratch *s, const oct_qchain_rows *a, size_t g, size_t r0, size_t rows,
                      size_t j)
{
    const size_t nr = w->t->kernel->nr, n = w->t->n - j < nr ? w->t->n - j : nr;
    const int8_t *b = panel_at(w, g, j);
    const oct_qchain_panel *head = w->t->kernel->chain && !w->bias ? (const oct_qchain_panel *)(const void *)b : NULL;
    if (w->bias)
        run_sorted(w, s, g, r0, rows, j, n, b);
    else if (head && head->chained)
        run_chains(w, s, a, g, r0, rows, j, n, b);
    else
        run_plain(w, s, g, r0, rows, j, n, head ? (const int8_t *)(head + 1) : b);
}

/* Rows of a block as chains take them: where they are, where that is near enough together; else a copy. */
static oct_qchain_rows chain_rows(const job *w, const scratch *s, const oct_rows *a, size_t r0, size_t rows)
{
    const oct_qtiles *t = w->t;
    if (w->direct && t->gather)
        return (oct_qchain_rows){ s->gathered, gathered_row(t->kernel, t->kc), OCT_QCHAIN_CHUNK };
    if (w->direct)
        return (oct_qchain_rows){ a->x + r0 * a->step, a->step, OCT_QCHAIN_CHUNK };
    return (oct_qchain_rows){ s->copied, OCT_QCHAIN_CHUNK, rows * OCT_QCHAIN_CHUNK };
}

/* Pointers to the rows of a block, or to what was gathered of them. */
static void point(const job *w, const scratch *s, const oct_rows *a, size_t r0, size_t rows)
{
    const oct_qtiles *t = w->t;
    const oct_rows gathered = { .x = s->gathered, .step = gathered_row(t->kernel, t->kc), .count = rows };
    if (t->gather)
        oct_rows_point(&gathered, 0, rows, t->kernel->mr, (const void **)s->table);
    else
        oct_rows_point(a, r0, rows, t->kernel->mr, (const void **)s->table);
}

/* An item of a kernel of blocks, as far as it depends on its rows. Of the last ones of a matrix a last step would read
 * beyond it. */
static oct_qblock block_of(const job *w, const scratch *s, const oct_rows *a, const oct_item *i)
{
    const oct_qtiles *t = w->t;
    const size_t depth = oct_round_up(t->kc, OCT_QBLOCK_STEP), beyond = depth - t->kc;
    oct_qblock b = { .rows = i->rows,
                     .x = t->gather ? s->gathered : a->x + i->row * a->step,
                     .step = t->gather ? gathered_row(t->kernel, t->kc) : a->step,
                     .at = s->at,
                     .steps = block_steps(t->taps, t->kc),
                     .run = t->kc,
                     .whole = i->rows,
                     .is_signed = t->is_signed,
                     .to = s->to };
    if (!t->gather && !t->flat && beyond) {
        const size_t unsafe = (beyond + a->step - 1) / a->step, safe = a->count > unsafe ? a->count - unsafe : 0;
        b.whole = safe < i->row ? 0 : safe - i->row < i->rows ? safe - i->row : i->rows;
    }
    return b;
}

/* Where the rows of an item go, where the steps of k begin, and sums of rows. */
static void ready_block(const job *w, const scratch *s, const oct_rows *a, const oct_item *i)
{
    const oct_qtiles *t = w->t;
    const size_t line = t->flat ? t->flat->line : SIZE_MAX, width = t->flat ? t->flat->width : SIZE_MAX,
                 steps = block_steps(1, t->kc);
    size_t y = i->row / line, x = i->row % line;
    for (size_t r = 0; r < i->rows; r++) {
        const size_t pixel = t->flat ? y * width + x : i->row + r;
        s->to[r] = x < width ? (uint8_t *)t->c + (pixel * t->ldc + i->group * t->n) * w->elem : NULL;
        if (++x == line)
            x = 0, y++;
    }
    for (size_t tap = 0; tap < t->taps; tap++)
        for (size_t k = 0; k < steps; k++)
            s->at[tap * steps + k] = (t->flat ? t->flat->tap[tap] : 0) + k * OCT_QBLOCK_STEP;
    const oct_qblock b = block_of(w, s, a, i);
    for (size_t r = 0; r < i->rows && w->rowsums; r++) {
        uint32_t sum = 0;
        for (size_t step = 0; step < b.steps; step += steps)
            sum += sum_run(w, b.x + r * b.step + s->at[step]);
        s->rowsum[r] = (int32_t)sum;
    }
}

static void run_block(const job *w, const scratch *s, const oct_rows *a, const oct_item *i)
{
    const oct_qtiles *t = w->t;
    const size_t nr = t->kernel->nr, j = i->panel * nr, col = i->group * t->n;
    const oct_qout o = out_at(t, col);
    oct_qblock b = block_of(w, s, a, i);
    b.b = panel_at(w, i->group, j);
    b.panel = w->panel;
    b.from = j;
    b.n = t->n - j < i->panels * nr ? t->n : j + i->panels * nr;
    b.add = w->add + col;
    b.colmul = w->colmul + col;
    b.rowsum = w->rowsums ? s->rowsum : NULL;
    b.out = &o;
    t->kernel->block(&b);
}

/* What an item's panels need of its rows, in scratch. */
static void get_ready(const job *w, const scratch *s, const oct_rows *a, const oct_item *i)
{
    const oct_qtiles *t = w->t;
    if (t->gather)
        oct_rows_gather(a, i->row, i->rows, gathered_row(t->kernel, t->kc), s->gathered);
    if (t->kernel->block)
        ready_block(w, s, a, i);
    else if (w->plain || w->rowsums || !w->direct)
        point(w, s, a, i->row, i->rows);
    if (w->bias)
        t->kernel->sorted->sort(i->rows, t->kc, s->table, t->flip, (uint8_t)t->za, oct_qclass_limit(w->bias),
                                &s->sorted);
    if (w->chains && !w->direct)
        oct_qchain_copy(i->rows, t->kernel->mr, t->taps, t->kc, s->table, t->flip, s->copied);
    if (w->rowsums && !w->bias && !t->kernel->block)
        sum_rows(w, s, i->rows);
    *s->ready = i->block;
}

static void run_item(const job *w, const oct_item *i, const scratch *s)
{
    const oct_qtiles *t = w->t;
    oct_rows a = t->rows;
    a.x += i->group * a.run;
    if (*s->ready != i->block)
        get_ready(w, s, &a, i);
    if (t->kernel->block) {
        run_block(w, s, &a, i);
        return;
    }
    if (i->rows == 1 && !t->kernel->chain) {
        run_single(w, s, i);
        return;
    }
    const oct_qchain_rows in = chain_rows(w, s, &a, i->row, i->rows);
    for (size_t p = i->panel; p < i->panel + i->panels; p++)
        run_panel(w, s, &in, i->group, i->row, i->rows, p * t->kernel->nr);
}

static void run_items(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *w = arg;
    const oct_qtiles *t = w->t;
    scratch s = { 0 };
    size_t bytes;
    carve(t->kernel, t->block, t->taps, t->kc, t->gather, w->parts + thread * w->thread_bytes, &s, &bytes);
    for (size_t i = begin; i < end; i++) {
        const oct_item item = oct_item_at(&w->items, t->backwards ? w->items.n - 1 - i : i);
        run_item(w, &item, &s);
    }
}

/* Whether chains can read the rows of a block as they are: whole chunks, or quads where no unit is shuffled, not many
 * lines of the first-level cache from each other. */
static bool is_near(const oct_qtiles *t, bool shuffled, size_t block)
{
    enum { NEAR = 24 << 10 };
    if (t->flip || t->gather)
        return !t->flip;
    return !t->rows.g && t->kc % (shuffled ? OCT_QCHAIN_CHUNK : 4) == 0 && t->rows.step <= NEAR / block;
}

/* Costs as measured on Zen 3. The products of kernels of blocks take a third of the time, by their instructions, and
 * what is beside them weighs more. */
oct_work oct_qtiles_work(const oct_qgemm_kernel *k, size_t rows, size_t n, size_t groups, size_t block, bool copies)
{
    const double faster = k->block ? 3 : 1;
    return (oct_work){ .rows = rows,
                       .panels = (n + k->nr - 1) / k->nr,
                       .groups = groups,
                       .most = oct_round_up(block, k->mr),
                       .unit = k->mr,
                       .row = (copies ? 0.7 : 0.05) * faster,
                       .panel = 3 * faster };
}

void oct_qtiles_run(const oct_qtiles *t, oct_pool *pool)
{
    if (t->rows.count == 0 || t->n == 0)
        return;
    if (t->kernel->row) {
        oct_qrow_run(t, pool);
        return;
    }
    const size_t nr = t->kernel->nr, depth = t->taps * t->kc, columns = t->n * t->groups;
    const size_t column_words = oct_round_up(columns * sizeof(int32_t), 64) / sizeof(int32_t);
    const oct_qpacked *head = t->packed;
    const int32_t *sums = (const int32_t *)(const void *)((const uint8_t *)t->packed + sizeof *head);
    size_t shared = 0;
    oct_qtiles_shared(columns, &shared);
    job w = { .t = t,
              .bytes = oct_qbytes_select(oct_isa_active()),
              .add = (int32_t *)(void *)t->scratch,
              .colmul = sums + column_words,
              .chains = head->has_chains,
              .plain = head->has_plain,
              .rowsums = head->has_zb,
              .bias = head->bias,
              .parts = t->scratch + shared,
              .elem = oct_qout_size(t->out->kind) };
    w.fused = t->kernel->fused && !w.rowsums && (t->out->kind == OCT_QOUT_F32 || oct_qout_is_plain(t->out, columns));
    w.bytes->fold(columns, t->bias, sums, head->has_zb ? w.colmul : NULL, head->bias ? 0 : t->za, depth,
                  (int32_t *)(void *)t->scratch);
    w.panels = (const int8_t *)(sums + 2 * column_words);
    oct_qpack_panel(t->kernel, t->taps, t->kc, &w.group);
    w.group *= (t->n + nr - 1) / nr;
    w.panel = head->panel;
    /* Waking the threads costs more than a product this small. */
    const bool small = (double)t->rows.count * columns * depth < 131072;
    const size_t threads = small ? 1 : (size_t)oct_pool_useful(pool);
    enum { SORTING = 3 }; /* rows, rather than copying them; measured likewise */
    oct_work work =
        oct_qtiles_work(t->kernel, t->rows.count, t->n, t->groups, t->block, t->gather || w.chains || w.bias);
    work.row = w.bias ? SORTING : work.row;
    w.items = oct_items_cut(&work, threads);
    w.direct = w.chains && is_near(t, head->has_shuffled, w.items.rows);
    oct_qtiles_scratch(t->kernel, t->block, t->taps, t->kc, t->gather, &w.thread_bytes);
    for (size_t i = 0; i < threads; i++)
        *(size_t *)(void *)(w.parts + i * w.thread_bytes) = SIZE_MAX;
    oct_pool_for(small ? NULL : pool, w.items.n, 1, run_items, &w);
}
