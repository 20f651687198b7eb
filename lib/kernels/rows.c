/* lib/kernels/rows.c -- input pixels under the taps of a convolution. */
#include "kernels/rows.h"

#include <string.h>

size_t oct_conv_taps(const oct_conv_geom *g)
{
    return (size_t)(g->kd * g->kh * g->kw);
}

size_t oct_conv_pixels(const oct_conv_geom *g)
{
    return (size_t)(g->n * g->od * g->oh * g->ow);
}

/* Input index under tap k of output o on one axis, or -1 for padding. */
static int64_t under(int64_t o, int64_t k, int64_t s, int64_t d, int64_t p, int64_t len, bool transposed)
{
    int64_t i;
    if (transposed) {
        int64_t t = o + p - k * d;
        if (t < 0 || t % s)
            return -1;
        i = t / s;
    } else {
        i = o * s - p + k * d;
    }
    return i >= 0 && i < len ? i : -1;
}

/* Neighbouring output pixels of one output line: the input lines under them are found once. */
typedef struct span {
    int64_t n, z, y, x; /* first pixel */
    size_t len;
} span;

static span span_at(const oct_conv_geom *g, size_t row, size_t most)
{
    int64_t r = (int64_t)row;
    span s;
    s.x = r % g->ow, r /= g->ow;
    s.y = r % g->oh, r /= g->oh;
    s.z = r % g->od, s.n = r / g->od;
    s.len = (size_t)(g->ow - s.x) < most ? (size_t)(g->ow - s.x) : most;
    return s;
}

/* First pixel of the input line under (kz, ky), or NULL for padding. */
static const uint8_t *line_at(const oct_rows *r, const span *s, int64_t kz, int64_t ky)
{
    const oct_conv_geom *g = r->g;
    int64_t z = under(s->z, kz, g->sd, g->dd, g->pd, g->d, g->transposed);
    int64_t y = under(s->y, ky, g->sh, g->dh, g->ph, g->h, g->transposed);
    if (z < 0 || y < 0)
        return NULL;
    return r->x + (size_t)(((s->n * g->d + z) * g->h + y) * g->w) * r->step;
}

/* Pixel of the line under tap kx of output column x. */
static inline const uint8_t *tap_at(const oct_rows *r, const uint8_t *line, int64_t x, int64_t kx)
{
    const oct_conv_geom *g = r->g;
    int64_t i = line ? under(x, kx, g->sw, g->dw, g->pw, g->w, g->transposed) : -1;
    return i < 0 ? r->pad : line + (size_t)i * r->step;
}

static void point_plain(const oct_rows *r, size_t begin, size_t n, size_t mr, const void **table)
{
    for (size_t i = 0; i < oct_round_up(n, mr); i++)
        table[i] = r->x + (begin + (i < n ? i : n - 1)) * r->step;
}

/* How many steps reach a gap, at most `most`. */
static size_t steps_to(int64_t gap, int64_t step, size_t most)
{
    if (gap <= 0)
        return 0;
    const int64_t n = step == 1 ? gap : (gap + step - 1) / step;
    return n < (int64_t)most ? (size_t)n : most;
}

/* First of `len` output columns from x whose tap lies at or beyond input column `from`. */
static size_t first_tap(const oct_conv_geom *g, int64_t x, int64_t kx, int64_t from, size_t len)
{
    return steps_to(from - (x * g->sw - g->pw + kx * g->dw), g->sw, len);
}

/* Where rows of a table go: lane of a tile, then the next tile. */
typedef struct slot {
    const void **to;
    size_t lane, mr, jump;
} slot;

static inline void put(slot *s, const void *p)
{
    s->to[s->lane] = p;
    if (++s->lane == s->mr) {
        s->lane = 0;
        s->to += s->jump;
    }
}

/* Pointers of one tap for a span: padding, the columns inside the line, padding. */
static void point_span(const oct_rows *r, const span *s, const uint8_t *line, int64_t kx, slot at)
{
    const oct_conv_geom *g = r->g;
    size_t q = 0;
    if (line && !g->transposed) {
        const size_t first = first_tap(g, s->x, kx, 0, s->len), last = first_tap(g, s->x, kx, g->w, s->len);
        for (; q < first; q++)
            put(&at, r->pad);
        const int64_t x = (s->x + (int64_t)q) * g->sw - g->pw + kx * g->dw;
        for (size_t offset = q < last ? (size_t)x * r->step : 0; q < last; q++, offset += (size_t)g->sw * r->step)
            put(&at, line + offset);
        line = NULL;
    }
    for (; q < s->len; q++)
        put(&at, tap_at(r, line, s->x + (int64_t)q, kx));
}

/* All taps of a span, from lane `lane` of the tile at `to`. */
static void point_taps(const oct_rows *r, const span *s, size_t lane, size_t mr, const void **to)
{
    const oct_conv_geom *g = r->g;
    const size_t jump = oct_conv_taps(g) * mr;
    for (int64_t kz = 0; kz < g->kd; kz++)
        for (int64_t ky = 0; ky < g->kh; ky++) {
            const uint8_t *line = line_at(r, s, kz, ky);
            for (int64_t kx = 0; kx < g->kw; kx++, to += mr)
                point_span(r, s, line, kx, (slot){ to, lane, mr, jump });
        }
}

/* Whether no line under the span is padding. */
static bool lines_inside(const oct_conv_geom *g, const span *s)
{
    const int64_t z = s->z * g->sd - g->pd, y = s->y * g->sh - g->ph;
    return z >= 0 && z + (g->kd - 1) * g->dd < g->d && y >= 0 && y + (g->kh - 1) * g->dh < g->h;
}

/* Tiles of one row: where no tap is padding, a pixel's pointers are those of the one before, a stride further. */
static void point_pixels(const oct_rows *r, const span *s, const void **to)
{
    const oct_conv_geom *g = r->g;
    const size_t taps = oct_conv_taps(g);
    size_t first = s->len, last = first;
    if (!g->transposed && lines_inside(g, s)) {
        first = first_tap(g, s->x, 0, 0, s->len);
        last = first_tap(g, s->x, g->kw - 1, g->w, s->len);
    }
    if (last < first + 2) {
        point_taps(r, s, 0, 1, to);
        return;
    }
    span part = *s;
    part.len = first + 1;
    point_taps(r, &part, 0, 1, to);
    const void **from = to + first * taps;
    const size_t stride = (size_t)g->sw * r->step, n = (last - first - 1) * taps;
    for (size_t i = 0; i < n; i++)
        from[taps + i] = (const uint8_t *)from[i] + stride;
    part.x = s->x + (int64_t)last;
    part.len = s->len - last;
    if (part.len)
        point_taps(r, &part, 0, 1, to + last * taps);
}

void oct_rows_point(const oct_rows *r, size_t begin, size_t n, size_t mr, const void **table)
{
    if (!r->g) {
        point_plain(r, begin, n, mr, table);
        return;
    }
    const oct_conv_geom *g = r->g;
    const size_t taps = oct_conv_taps(g);
    span s;
    for (size_t i = 0; i < n; i += s.len) {
        s = span_at(g, begin + i, n - i);
        if (mr == 1)
            point_pixels(r, &s, table + i * taps);
        else
            point_taps(r, &s, i % mr, mr, table + i / mr * taps * mr);
    }
    for (size_t i = n; i < oct_round_up(n, mr); i++)
        for (size_t t = 0; t < taps; t++) {
            const void **to = table + (i / mr * taps + t) * mr;
            to[i % mr] = to[(n - 1) % mr];
        }
}

size_t oct_rows_advance(const oct_conv_geom *g)
{
    return !g->transposed && g->sw % g->dw == 0 && g->sw / g->dw < g->kw ? (size_t)(g->sw / g->dw) : (size_t)g->kw;
}

/* n columns of one input line that stand side by side, dw apart, from column x on: padding where they are outside. */
static void point_line(const oct_rows *r, const uint8_t *line, int64_t x, size_t n, const void **to)
{
    const oct_conv_geom *g = r->g;
    const size_t gap = (size_t)g->dw * r->step, kh = (size_t)g->kh;
    const size_t before = line ? steps_to(0 - x, g->dw, n) : n, until = line ? steps_to(g->w - x, g->dw, n) : n;
    const uint8_t *from = before < until ? line + (size_t)(x + (int64_t)before * g->dw) * r->step : NULL;
    size_t i = 0;
    for (; i < before; i++, to += kh)
        *to = r->pad;
    for (; i < until; i++, to += kh, from += gap)
        *to = from;
    for (; i < n; i++, to += kh)
        *to = r->pad;
}

size_t oct_rows_slide(const oct_rows *r, size_t begin, size_t most, const void **table)
{
    const oct_conv_geom *g = r->g;
    const span s = span_at(g, begin, most);
    const size_t advance = oct_rows_advance(g), kw = (size_t)g->kw, n = (s.len - 1) * advance + kw;
    for (int64_t ky = 0; ky < g->kh; ky++) {
        const uint8_t *line = line_at(r, &s, 0, ky);
        if (advance < kw)
            point_line(r, line, s.x * g->sw - g->pw, n, table + ky);
        for (size_t i = 0; advance == kw && i < n; i++)
            table[i * (size_t)g->kh + (size_t)ky] = tap_at(r, line, s.x + (int64_t)(i / kw), (int64_t)(i % kw));
    }
    return s.len;
}

/* Small copies of a length the compiler does not know: a call would cost more than the bytes. What no multiple of the
 * step fills ends with a step that repeats some bytes. */
static inline void copy(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n >= 32) {
        for (size_t i = 0; i + 32 < n; i += 32)
            memcpy(dst + i, src + i, 32);
        memcpy(dst + n - 32, src + n - 32, 32);
    } else if (n >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    } else if (n >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + n - 8, src + n - 8, 8);
    } else if (n >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + n - 4, src + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            dst[i] = src[i];
    }
}

/* Bytes of one line of taps for the columns [begin, end) of a span, tap by tap; rows are `pitch` bytes apart. */
static void gather_taps(const oct_rows *r, const span *s, const uint8_t *line, size_t begin, size_t end, size_t pitch,
                        uint8_t *dst)
{
    for (size_t q = begin; q < end; q++)
        for (int64_t kx = 0; kx < r->g->kw; kx++)
            copy(dst + q * pitch + (size_t)kx * r->run, tap_at(r, line, s->x + (int64_t)q, kx), r->run);
}

enum { PADDED_LINE = 2048 };

/* The columns under a span, with their padding, in one piece, and OCT_ROWS_SLACK zeros; line NULL: padding alone.
 * Pixels have no gap between them. */
static void pad_line(const oct_rows *r, const span *s, const uint8_t *line, size_t columns, uint8_t *to)
{
    const int64_t x = s->x * r->g->sw - r->g->pw, end = x + (int64_t)columns;
    const int64_t from = x > 0 ? x : 0, until = end < r->g->w ? end : r->g->w;
    size_t i = 0;
    if (line && from < until) {
        for (; i < (size_t)(from - x); i++)
            copy(to + i * r->run, r->pad, r->run);
        memcpy(to + i * r->run, line + (size_t)from * r->step, (size_t)(until - from) * r->run);
        i += (size_t)(until - from);
    }
    for (; i < columns; i++)
        copy(to + i * r->run, r->pad, r->run);
    memset(to + i * r->run, 0, OCT_ROWS_SLACK);
}

/* Lines of taps of some rows, n bytes each, `stride` apart in src; whole steps are read and written. */
static inline void copy_steps(const uint8_t *src, size_t stride, size_t n, size_t rows, size_t pitch, uint8_t *dst)
{
    for (size_t q = 0; q < rows; q++, src += stride, dst += pitch)
        for (size_t i = 0; i < n; i += OCT_ROWS_SLACK + 1)
            memcpy(dst + i, src + i, OCT_ROWS_SLACK + 1);
}

static void spread(const uint8_t *src, size_t stride, size_t n, size_t rows, size_t pitch, uint8_t *dst)
{
    if (n <= OCT_ROWS_SLACK + 1)
        copy_steps(src, stride, 1, rows, pitch, dst);
    else
        copy_steps(src, stride, n, rows, pitch, dst);
}

/* The same for a whole span. Where the taps of a line are neighbours in memory they are copied at once; short lines
 * with much padding are put together with it before, and all where there is slack behind the rows. */
static void gather_span(const oct_rows *r, const span *s, const uint8_t *line, size_t pitch, uint8_t *dst)
{
    const oct_conv_geom *g = r->g;
    const bool dense = !g->transposed && g->dw == 1 && r->step == r->run;
    const size_t columns = (s->len - 1) * (size_t)g->sw + (size_t)g->kw, n = (size_t)g->kw * r->run,
                 stride = (size_t)g->sw * r->step;
    const bool fits = dense && columns <= PADDED_LINE / r->run;
    uint8_t padded[PADDED_LINE + OCT_ROWS_SLACK];
    if (fits && pitch >= oct_conv_taps(g) * r->run + OCT_ROWS_SLACK) {
        pad_line(r, s, line, columns, padded);
        spread(padded, stride, n, s->len, pitch, dst);
        return;
    }
    size_t first = s->len, last = s->len;
    if (line && dense) {
        first = first_tap(g, s->x, 0, 0, s->len);
        last = first_tap(g, s->x, g->kw - 1, g->w, s->len);
    }
    if (last < first)
        first = last = s->len;
    const uint8_t *src = first < last ? line + (size_t)((s->x + (int64_t)first) * g->sw - g->pw) * r->step : NULL;
    if (fits && (s->len - (last - first)) * 8 >= s->len) {
        pad_line(r, s, line, columns, padded);
        src = padded;
        first = 0;
        last = s->len;
    }
    gather_taps(r, s, line, 0, first, pitch, dst);
    for (size_t q = first; q < last; q++, src += stride)
        copy(dst + q * pitch, src, n);
    gather_taps(r, s, line, last, s->len, pitch, dst);
}

void oct_rows_gather(const oct_rows *r, size_t begin, size_t n, size_t pitch, uint8_t *dst)
{
    const oct_conv_geom *g = r->g;
    span s;
    for (size_t i = 0; i < n; i += s.len) {
        s = span_at(g, begin + i, n - i);
        uint8_t *to = dst + i * pitch;
        for (int64_t kz = 0; kz < g->kd; kz++)
            for (int64_t ky = 0; ky < g->kh; ky++, to += (size_t)g->kw * r->run)
                gather_span(r, &s, line_at(r, &s, kz, ky), pitch, to);
    }
}

/* 96 rows of A stay in the second-level cache while the columns pass; blocks are multiples of every mr. */
size_t oct_rows_block(size_t row_bytes, bool gather)
{
    const size_t most = 96, unit = 24, cache = 256u << 10;
    if (!gather || row_bytes * most <= cache)
        return most;
    const size_t fit = cache / row_bytes / unit * unit;
    return fit < unit ? unit : fit;
}
