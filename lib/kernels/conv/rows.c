/* lib/kernels/conv/rows.c -- input pixels under the taps of a convolution. */
#include "kernels/conv/rows.h"

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

/* Position of an output pixel, advanced in memory order. */
typedef struct pixel {
    int64_t n, z, y, x;
} pixel;

static pixel pixel_at(const oct_conv_geom *g, size_t row)
{
    int64_t r = (int64_t)row;
    pixel p;
    p.x = r % g->ow, r /= g->ow;
    p.y = r % g->oh, r /= g->oh;
    p.z = r % g->od, p.n = r / g->od;
    return p;
}

static void pixel_next(const oct_conv_geom *g, pixel *p)
{
    if (++p->x < g->ow)
        return;
    p->x = 0;
    if (++p->y < g->oh)
        return;
    p->y = 0;
    if (++p->z < g->od)
        return;
    p->z = 0;
    p->n++;
}

/* First pixel of the input line under (kz, ky), or NULL for padding. */
static const uint8_t *line_at(const oct_rows *r, const pixel *p, int64_t kz, int64_t ky)
{
    const oct_conv_geom *g = r->g;
    int64_t z = under(p->z, kz, g->sd, g->dd, g->pd, g->d, g->transposed);
    int64_t y = under(p->y, ky, g->sh, g->dh, g->ph, g->h, g->transposed);
    if (z < 0 || y < 0)
        return NULL;
    return r->x + (size_t)(((p->n * g->d + z) * g->h + y) * g->w) * r->step;
}

static const uint8_t *tap_at(const oct_rows *r, const pixel *p, const uint8_t *line, int64_t kx)
{
    const oct_conv_geom *g = r->g;
    int64_t x = line ? under(p->x, kx, g->sw, g->dw, g->pw, g->w, g->transposed) : -1;
    return x < 0 ? r->pad : line + (size_t)x * r->step;
}

static void point_plain(const oct_rows *r, size_t begin, size_t n, size_t mr, const void **table)
{
    for (size_t i = 0; i < oct_round_up(n, mr); i++)
        table[i] = r->x + (begin + (i < n ? i : n - 1)) * r->step;
}

void oct_rows_point(const oct_rows *r, size_t begin, size_t n, size_t mr, const void **table)
{
    if (!r->g) {
        point_plain(r, begin, n, mr, table);
        return;
    }
    const oct_conv_geom *g = r->g;
    const size_t taps = oct_conv_taps(g);
    pixel p = pixel_at(g, begin);
    for (size_t i = 0; i < n; i++, pixel_next(g, &p)) {
        const void **to = table + i / mr * taps * mr + i % mr;
        for (int64_t kz = 0; kz < g->kd; kz++)
            for (int64_t ky = 0; ky < g->kh; ky++) {
                const uint8_t *line = line_at(r, &p, kz, ky);
                for (int64_t kx = 0; kx < g->kw; kx++, to += mr)
                    *to = tap_at(r, &p, line, kx);
            }
    }
    for (size_t i = n; i < oct_round_up(n, mr); i++)
        for (size_t t = 0; t < taps; t++) {
            const void **to = table + (i / mr * taps + t) * mr;
            to[i % mr] = to[(n - 1) % mr];
        }
}

/* Small copies of a length the compiler does not know: a call would cost more than the bytes. */
static uint8_t *copy(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        memcpy(dst + i, src + i, 8);
    if (n & 4)
        memcpy(dst + i, src + i, 4), i += 4;
    for (; i < n; i++)
        dst[i] = src[i];
    return dst + n;
}

void oct_rows_gather(const oct_rows *r, size_t begin, size_t n, uint8_t *dst)
{
    const oct_conv_geom *g = r->g;
    /* Where the taps of a line are neighbours in memory they are copied at once. */
    const bool adjacent = !g->transposed && g->dw == 1 && r->step == r->run;
    pixel p = pixel_at(g, begin);
    for (size_t i = 0; i < n; i++, pixel_next(g, &p)) {
        const int64_t x = p.x * g->sw - g->pw;
        const bool inside = adjacent && x >= 0 && x + g->kw <= g->w;
        for (int64_t kz = 0; kz < g->kd; kz++)
            for (int64_t ky = 0; ky < g->kh; ky++) {
                const uint8_t *line = line_at(r, &p, kz, ky);
                if (line && inside)
                    dst = copy(dst, line + (size_t)x * r->step, (size_t)g->kw * r->run);
                else
                    for (int64_t kx = 0; kx < g->kw; kx++)
                        dst = copy(dst, tap_at(r, &p, line, kx), r->run);
            }
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

/* Few rows: the columns are cut too, so that about 32 items exist. */
size_t oct_rows_columns(size_t rows, size_t block, size_t groups, size_t n, size_t nr)
{
    const size_t want = 32, items = (rows + block - 1) / block * groups;
    if (items >= want)
        return oct_round_up(n, nr);
    const size_t cols = oct_round_up(n, nr) / nr * items / want * nr;
    return cols < nr ? nr : cols;
}
