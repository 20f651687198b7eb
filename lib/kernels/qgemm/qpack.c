/* lib/kernels/qgemm/qpack.c -- packing of 8-bit weights: panels, sums of columns, zero points. */
#include "kernels/qgemm/qgemm_int.h"

#include "base/mem.h"
#include "kernels/qgemm/qchain.h"

#include <assert.h>
#include <string.h>

bool oct_qpack_panel(const oct_qgemm_kernel *k, size_t taps, size_t kc, size_t *bytes)
{
    size_t depth;
    if (k->order == OCT_QGEMM_CHAINS)
        return oct_mul_size(taps, kc, &depth) && oct_qchain_size(depth, bytes);
    return kc <= SIZE_MAX / 8 && oct_mul_size(taps, oct_round_up(kc, k->kr), &depth) &&
           oct_mul_size(depth, k->nr, bytes);
}

static size_t columns_bytes(size_t columns)
{
    return oct_round_up(columns * sizeof(int32_t), 64);
}

bool oct_qpack_size(const oct_qgemm_kernel *k, size_t taps, size_t kc, size_t n, size_t groups, size_t *bytes)
{
    size_t panel, all, columns;
    if (k->row)
        return n <= SIZE_MAX / 64 && kc <= SIZE_MAX / 64 &&
               oct_mul_size(oct_round_up(kc, OCT_QROW_UNIT_K), oct_round_up(n, OCT_QROW_STEP), &all) &&
               oct_add_size(sizeof(oct_qpacked) + 2 * columns_bytes(n), all, bytes);
    if (n > SIZE_MAX / 64 || !oct_qpack_panel(k, taps, kc, &panel) ||
        !oct_mul_size(panel, oct_round_up(n, k->nr) / k->nr, &all) || !oct_mul_size(all, groups, &all) ||
        !oct_mul_size(n, groups, &columns) || columns > SIZE_MAX / 64 || all > SIZE_MAX / 2)
        return false;
    return oct_add_size(sizeof(oct_qpacked) + 2 * columns_bytes(columns), all, bytes);
}

/* Where value k (0 to kr - 1) of column j stands in its group. */
static size_t place(const oct_qgemm_kernel *kn, size_t k, size_t j)
{
    enum { TILE = 16 };
    if (kn->order == OCT_QGEMM_TILES)
        return (j / TILE * TILE + k / 4) * (TILE * 4) + j % TILE * 4 + k % 4;
    return kn->order == OCT_QGEMM_PLAIN ? j * kn->kr + k : (k & 1) * kn->nr * 2 + j * 2 + (k >> 1);
}

static int8_t weight(const oct_qsource *s, size_t t, size_t k, size_t j)
{
    const uint8_t v = s->b[(ptrdiff_t)t * s->ts + (ptrdiff_t)k * s->ks + (ptrdiff_t)j * s->ns];
    return (int8_t)(s->is_signed ? v : v ^ 0x80);
}

/* Four values of depth, or those that are left of a tap or of all joined taps: where they are in the source. */
typedef struct quad {
    ptrdiff_t at[4];
    size_t n;
} quad;

/* The quad that begins at value k of tap t, and moves both behind it. */
static quad next_quad(const oct_qsource *s, size_t *t, size_t *k)
{
    quad q = { { 0 }, 0 };
    while (q.n < 4 && *t < s->taps) {
        q.at[q.n++] = (ptrdiff_t)*t * s->ts + (ptrdiff_t)*k * s->ks;
        if (++*k < s->kc)
            continue;
        *k = 0;
        if (++*t % s->fold == 0)
            break;
    }
    return q;
}

/* The columns of a quad next to each other, four bytes each, from j0 on; `pitch` bytes lie between blocks of 16. */
static void put_quad(const oct_qsource *s, const quad *q, size_t j0, size_t nj, size_t pitch, int8_t *to)
{
    enum { TILE = 16 };
    const uint32_t flip = s->is_signed ? 0 : 0x80808080U >> (8 * (4 - q->n));
    const uint8_t *column = s->b + (ptrdiff_t)j0 * s->ns;
    for (size_t j = 0; j < nj; j++, column += s->ns) {
        uint32_t v = column[q->at[0]];
        for (size_t i = 1; i < q->n; i++)
            v |= (uint32_t)column[q->at[i]] << (8 * i);
        v ^= flip;
        memcpy(to + j / TILE * pitch + j % TILE * 4, &v, sizeof v);
    }
}

/* Of orders that have the values of a quad next to each other. */
static void pack_by_quads(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t j0, size_t nj, int8_t *to)
{
    enum { TILE = 16 };
    const bool tiles = kn->order == OCT_QGEMM_TILES;
    size_t at = 0, t = 0, k = 0;
    while (s->kc > 0 && t < s->taps) {
        const size_t before = t;
        const quad q = next_quad(s, &t, &k);
        int8_t *group = to + at / kn->kr * kn->kr * kn->nr;
        put_quad(s, &q, j0, nj, TILE * (tiles ? kn->kr : 4), group + (tiles ? at % kn->kr / 4 * (TILE * 4) : 0));
        at += 4;
        if (t != before && t % s->fold == 0)
            at = oct_round_up(at, kn->kr);
    }
}

/* Panel of nj columns from j0, filled with zeros before. Returns its bytes. */
static size_t pack_panel(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t j0, size_t nj, int8_t *to)
{
    size_t at = 0; /* position in k of what is written, padding included */
    for (size_t t = 0; t < s->taps; t++) {
        for (size_t k = 0; k < s->kc; k++, at++) {
            int8_t *group = to + at / kn->kr * kn->kr * kn->nr;
            for (size_t j = 0; j < nj; j++)
                group[place(kn, at % kn->kr, j)] = weight(s, t, k, j0 + j);
        }
        if ((t + 1) % s->fold == 0)
            at = oct_round_up(at, kn->kr);
    }
    return oct_round_up(at, kn->kr) * kn->nr;
}

/* The same of a row-major matrix, by vectors, with the sums of its columns; of orders in quads. */
static void pack_quads(const oct_qgemm_kernel *kn, const oct_qbytes *vectors, const oct_qsource *s, size_t j0,
                       size_t nj, int8_t *to, int32_t *sums)
{
    enum { WIDTH = OCT_QBYTES_COLUMNS };
    const bool tiles = kn->order == OCT_QGEMM_TILES;
    const size_t most = tiles ? kn->kr : s->kc, pitch = 4 * (tiles ? WIDTH : kn->nr);
    for (size_t j = 0; j < nj; j += WIDTH) {
        const size_t n = nj - j < WIDTH ? nj - j : WIDTH;
        int32_t sum[WIDTH] = { 0 };
        for (size_t k = 0; k < s->kc; k += most)
            vectors->quads(s->b + k * (size_t)s->ks + j0 + j, (size_t)s->ks, s->kc - k < most ? s->kc - k : most, n,
                           s->is_signed ? 0 : 0x80, pitch, to + k * kn->nr + (tiles ? j * most : j * 4), sum);
        memcpy(sums + j0 + j, sum, n * sizeof *sum);
    }
}

typedef struct columns {
    const oct_qsource *s;
    size_t j, n;
} columns;

static bool is_doubled(size_t n)
{
    return n <= OCT_QCHAIN_COLUMNS / 2;
}

/* Weights k to k + n - 1 of a column; `to` has one in each row. */
static void read_column(const oct_qsource *s, size_t k, size_t n, size_t j, int8_t *to)
{
    const int8_t flip = s->is_signed ? 0 : INT8_MIN;
    const size_t first = k % s->kc;
    const uint8_t *tap = s->b + (ptrdiff_t)(k / s->kc) * s->ts + (ptrdiff_t)j * s->ns;
    for (size_t at = first, left = n; left; left--, to += OCT_QCHAIN_COLUMNS) {
        *to = (int8_t)tap[(ptrdiff_t)at * s->ks] ^ flip;
        if (++at == s->kc) {
            at = 0;
            tap += s->ts;
        }
    }
}

/* Weights k to k + n - 1 of nj columns next to each other. */
static void read_rows(const oct_qsource *s, size_t k, size_t n, size_t j, size_t nj, int8_t w[][OCT_QCHAIN_COLUMNS])
{
    const int8_t flip = s->is_signed ? 0 : INT8_MIN;
    size_t at = k % s->kc;
    const uint8_t *tap = s->b + (ptrdiff_t)(k / s->kc) * s->ts + (ptrdiff_t)j;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *row = tap + (ptrdiff_t)at * s->ks;
        for (size_t c = 0; c < nj; c++)
            w[i][c] = (int8_t)row[c] ^ flip;
        if (++at == s->kc) {
            at = 0;
            tap += s->ts;
        }
    }
}

/* A line of the cache has neighbours in k, or neighbouring columns of one k: it is used up at once. */
static void read_weights(const void *source, size_t k, size_t n, int8_t w[][OCT_QCHAIN_COLUMNS])
{
    const columns *c = source;
    enum { WIDTH = OCT_QCHAIN_COLUMNS };
    if (c->n < WIDTH)
        memset(w, 0, n * sizeof *w);
    if (c->s->ns == 1 && c->n >= WIDTH)
        read_rows(c->s, k, n, c->j, WIDTH, w);
    else if (c->s->ns == 1)
        read_rows(c->s, k, n, c->j, c->n, w);
    else
        for (size_t j = 0; j < WIDTH && j < c->n; j++)
            read_column(c->s, k, n, c->j + j, &w[0][j]);
    for (size_t i = 0; i < n && is_doubled(c->n); i++)
        memcpy(w[i] + WIDTH / 2, w[i], WIDTH / 2);
}

/* In chains where that is faster, else plain. Returns whether it is in chains. */
static bool pack_chains(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t j0, size_t nj, size_t size, void *to)
{
    const columns c = { s, j0, nj };
    const size_t depth = s->taps * s->kc;
    uint64_t cost;
    if (!s->fast_pack && depth > 0 && oct_qchain_pack(read_weights, &c, depth, is_doubled(nj), size, to, &cost) &&
        cost < oct_qchain_plain_cost(depth))
        return true;
    if (!s->fast_pack)
        memset(to, 0, size);
    oct_qchain_panel *head = to;
    head->bytes = sizeof *head + pack_panel(kn, s, j0, nj, (int8_t *)(head + 1));
    return false;
}

/* Chained panels of one group, moved together: no gaps between what is read. Returns the bytes from one to the next. */
static size_t close_up(int8_t *first, size_t panels, size_t panel)
{
    size_t most = 0;
    for (size_t i = 0; i < panels; i++) {
        const size_t bytes = ((const oct_qchain_panel *)(const void *)(first + i * panel))->bytes;
        most = bytes > most ? bytes : most;
    }
    most = oct_round_up(most, 64);
    for (size_t i = 1; i < panels; i++)
        memmove(first + i * most, first + i * panel, most);
    return most;
}

/* The largest magnitude of n weights, `step` apart; at least `most`. */
static int largest_of(const uint8_t *b, ptrdiff_t step, size_t n, uint8_t flip, int most)
{
    for (size_t i = 0; i < n; i++) {
        const int w = (int8_t)(b[(ptrdiff_t)i * step] ^ flip), size = w < 0 ? -w : w;
        most = size > most ? size : most;
    }
    return most;
}

/* Of the only tap. */
static uint32_t largest(const oct_qsource *s, size_t n)
{
    const uint8_t flip = s->is_signed ? 0 : 0x80;
    int most = 0;
    for (size_t k = 0; k < s->kc && s->ns == 1; k++)
        most = largest_of(s->b + (ptrdiff_t)k * s->ks, 1, n, flip, most);
    for (size_t j = 0; j < n && s->ns != 1; j++)
        most = largest_of(s->b + (ptrdiff_t)j * s->ns, s->ks, s->kc, flip, most);
    return (uint32_t)most;
}

/* Panels of a single row's products (qrow.h). */
static void pack_row(const oct_qsource *s, size_t n, bool small, uint8_t *to)
{
    const size_t quads = oct_qrow_units(small, s->kc) * (small ? 2 : 1);
    const int bias = small ? 64 : 128;
    for (size_t j0 = 0; j0 < n; j0 += OCT_QROW_COLUMNS) {
        const size_t left = oct_round_up(n - j0, OCT_QROW_STEP),
                     width = left < OCT_QROW_COLUMNS ? left : OCT_QROW_COLUMNS;
        memset(to, bias, quads * 4 * width);
        for (size_t k = 0; k < s->kc; k++)
            for (size_t j = 0; j < width && j0 + j < n; j++)
                to[(k / 4 * width + j) * 4 + k % 4] = (uint8_t)(weight(s, 0, k, j0 + j) + bias);
        to += quads * 4 * width;
    }
}

/* What chains, or plain panels where these are faster, are expected to take for a row and a panel: the mean of a few
 * panels, which are packed at `room`. */
static uint64_t chains_cost(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t n, size_t size, void *room)
{
    enum { SAMPLES = 4 };
    const uint64_t plain = oct_qchain_plain_cost(s->kc);
    const size_t panels = (n + kn->nr - 1) / kn->nr, samples = panels < SAMPLES ? panels : SAMPLES;
    uint64_t sum = 0;
    if (s->fast_pack)
        return plain;
    for (size_t i = 0; i < samples; i++) {
        const size_t j = i * panels / samples * kn->nr;
        const columns c = { s, j, n - j < kn->nr ? n - j : kn->nr };
        uint64_t cost = plain;
        sum +=
            oct_qchain_pack(read_weights, &c, s->kc, is_doubled(c.n), size, room, &cost) && cost < plain ? cost : plain;
    }
    return samples ? sum / samples : plain;
}

/* The bias of panels for rows by class, 0 where chains are expected to be faster. */
static uint32_t class_bias(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t n, size_t size, void *room)
{
    if (!kn->sorted || s->kc == 0)
        return 0;
    const uint32_t most = largest(s, n), bias = most ? most : 1;
    return oct_qclass_cost(bias, s->kc, n) < chains_cost(kn, s, n, size, room) ? bias : 0;
}

/* Panels for rows by class (qclass.h); returns the bytes of one. */
static size_t pack_classes(const oct_qsource *s, size_t n, uint32_t bias, uint8_t *to)
{
    enum { WIDTH = OCT_QCLASS_COLUMNS };
    const size_t panel = oct_qclass_chunks(s->kc) * OCT_QCLASS_CHUNK * WIDTH;
    for (size_t j0 = 0; j0 < n; j0 += WIDTH, to += panel) {
        memset(to, (int)bias, panel);
        for (size_t k = 0; k < s->kc; k++)
            for (size_t j = 0; j < WIDTH && j0 + j < n; j++)
                to[(k / 4 * WIDTH + j) * 4 + k % 4] = (uint8_t)(weight(s, 0, k, j0 + j) + (int)bias);
    }
    return panel;
}

static int32_t sum_column(const oct_qsource *s, size_t j)
{
    const bool contiguous = (s->ts == 1 && s->ks == (ptrdiff_t)s->taps) || (s->ks == 1 && s->ts == (ptrdiff_t)s->kc);
    const uint8_t *b = s->b + (ptrdiff_t)j * s->ns, flip = s->is_signed ? 0 : 0x80;
    uint32_t sum = 0;
    if (contiguous) {
        for (size_t i = 0; i < s->taps * s->kc; i++)
            sum += (uint32_t)(int8_t)(b[i] ^ flip);
        return (int32_t)sum;
    }
    for (size_t t = 0; t < s->taps; t++)
        for (size_t k = 0; k < s->kc; k++)
            sum += (uint32_t)weight(s, t, k, j);
    return (int32_t)sum;
}

/* Columns next to each other: by rows, as they lie. */
static void sum_columns(const oct_qsource *s, size_t n, int32_t *sums)
{
    if (s->ns != 1) {
        for (size_t j = 0; j < n; j++)
            sums[j] = sum_column(s, j);
        return;
    }
    const uint8_t flip = s->is_signed ? 0 : 0x80;
    memset(sums, 0, n * sizeof *sums);
    for (size_t t = 0; t < s->taps; t++)
        for (size_t k = 0; k < s->kc; k++) {
            const uint8_t *row = s->b + (ptrdiff_t)t * s->ts + (ptrdiff_t)k * s->ks;
            for (size_t j = 0; j < n; j++)
                sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)(int8_t)(row[j] ^ flip));
        }
}

void oct_qpack(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t n, size_t g, size_t groups, void *packed)
{
    const oct_qbytes *vectors = oct_qbytes_select(oct_isa_active());
    const bool in_quads = kn->order == OCT_QGEMM_TILES ||
                          (kn->order == OCT_QGEMM_PLAIN && kn->kr == 4 && kn->nr % OCT_QBYTES_COLUMNS == 0);
    const bool by_vectors = vectors->quads && in_quads && s->taps == 1 && s->ns == 1 && s->ks >= 0;
    oct_qpacked *head = packed;
    int32_t *sums = (int32_t *)(void *)((uint8_t *)packed + sizeof *head);
    int32_t *colmul = sums + columns_bytes(n * groups) / sizeof *sums;
    if (g == 0)
        memset(head, 0, sizeof *head);
    for (size_t j = 0; j < n; j++) {
        const int32_t zb = s->zb ? s->zb[(g * n + j) * s->zb_step] - (s->is_signed ? 0 : 128) : s->is_signed ? 0 : -128;
        colmul[g * n + j] = -zb;
        head->has_zb |= zb != 0;
    }
    if (!by_vectors)
        sum_columns(s, n, sums + g * n);
    int8_t *const panels = (int8_t *)(colmul + columns_bytes(n * groups) / sizeof *colmul);
    if (kn->row) {
        head->small = largest(s, n) <= 64;
        pack_row(s, n, head->small, (uint8_t *)panels);
        return;
    }
    size_t panel = 0;
    oct_qpack_panel(kn, s->taps / s->fold, s->fold * s->kc, &panel);
    assert(panel > 0 || kn->order != OCT_QGEMM_CHAINS); /* chains have a head, also where the depth is 0 */
    const size_t bytes = panel * (oct_round_up(n, kn->nr) / kn->nr);
    int8_t *const first = panels + g * bytes, *to = first;
    if ((head->bias = class_bias(kn, s, n, panel, first)) != 0) {
        head->panel = pack_classes(s, n, head->bias, (uint8_t *)first);
        return;
    }
    memset(to, 0, bytes);
    for (size_t j = 0; j < n; j += kn->nr, to += panel) {
        const size_t nj = n - j < kn->nr ? n - j : kn->nr;
        const bool chains = kn->order == OCT_QGEMM_CHAINS && pack_chains(kn, s, j, nj, panel, to);
        if (by_vectors)
            pack_quads(kn, vectors, s, j, nj, to, sums + g * n);
        else if (in_quads)
            pack_by_quads(kn, s, j, nj, to);
        else if (kn->order != OCT_QGEMM_CHAINS)
            pack_panel(kn, s, j, nj, to);
        head->has_chains |= chains;
        head->has_plain |= !chains;
        head->has_shuffled |= chains && ((const oct_qchain_panel *)(const void *)to)->shuffled;
    }
    head->panel = kn->order == OCT_QGEMM_CHAINS && groups == 1 ? close_up(first, bytes / panel, panel) : panel;
}
