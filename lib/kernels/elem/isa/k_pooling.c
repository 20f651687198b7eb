/* lib/kernels/elem/isa/k_pooling.c -- one row of output pixels of each pooling, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#include <float.h>
#include <string.h>

#define BLOCK 256 /* channels at a time where sums are kept aside */

/* Steps that n takes; without a division in the usual case. */
static inline size_t steps_in(size_t n, size_t step)
{
    return step == 1 ? n : (n + step - 1) / step;
}

/* The taps i of k with 0 <= start + i * step < size: [first, last). */
typedef struct taps {
    size_t first, last;
} taps;

static taps taps_inside(ptrdiff_t start, size_t k, size_t step, size_t size)
{
    taps t = { 0, k };
    if (start < 0)
        t.first = steps_in((size_t)-start, step);
    const ptrdiff_t room = (ptrdiff_t)size - start; /* > 0 while a tap can be inside */
    const size_t fit = room <= 0 ? 0 : steps_in((size_t)room, step);
    if (t.last > fit)
        t.last = fit;
    if (t.first > t.last)
        t.first = t.last;
    return t;
}

/* Taps an average divides by along one dimension: those inside, or those inside the padded image. */
static size_t taps_counted(const oct_pool2d *g, taps t, ptrdiff_t start, size_t k, size_t step, size_t size, size_t pad)
{
    if (!g->count_include_pad)
        return t.last - t.first;
    const ptrdiff_t room = (ptrdiff_t)(size + pad) - start;
    const size_t fit = room <= 0 ? 0 : steps_in((size_t)room, step);
    return fit < k ? fit : k;
}

/* Where output pixel (oy, ox) lies and which taps are inside. */
typedef struct window {
    ptrdiff_t y, x;
    taps v, h;
    size_t count;
} window;

static inline window window_at(const oct_pool2d *g, size_t oy, size_t ox)
{
    window w;
    w.y = (ptrdiff_t)(oy * g->sh) - (ptrdiff_t)g->pt;
    w.x = (ptrdiff_t)(ox * g->sw) - (ptrdiff_t)g->pl;
    w.v = taps_inside(w.y, g->kh, g->dh, g->h);
    w.h = taps_inside(w.x, g->kw, g->dw, g->w);
    w.count =
        taps_counted(g, w.v, w.y, g->kh, g->dh, g->h, g->pb) * taps_counted(g, w.h, w.x, g->kw, g->dw, g->w, g->pr);
    return w;
}

/* Element offset of tap (i, j) of a window. */
static inline size_t tap_offset(const oct_pool2d *g, const window *w, size_t i, size_t j)
{
    return ((size_t)(w->y + (ptrdiff_t)(i * g->dh)) * g->w + (size_t)(w->x + (ptrdiff_t)(j * g->dw))) * g->c;
}

#define EACH_TAP(w)                                   \
    for (size_t i = (w).v.first; i < (w).v.last; i++) \
        for (size_t j = (w).h.first; j < (w).h.last; j++)

/* Pixels of few values go by lines: the largest of each column of taps, for as many neighbouring columns as LINE values
 * are, then of each pixel's columns, at all places, of which the stride takes some. Pixels whose taps are partly
 * outside go one by one, as those of many values do. */
enum { LINE = 4096, FEW = 256 }; /* values; bytes of a pixel */

/* Output pixels whose taps along the line are all inside: [first, last). */
static taps whole_windows(const oct_pool2d *g)
{
    const size_t reach = (g->kw - 1) * g->dw + 1, first = (g->pl + g->sw - 1) / g->sw;
    const size_t last = g->w + g->pl < reach ? 0 : (g->w + g->pl - reach) / g->sw + 1;
    return (taps){ first, last < first ? first : last < g->ow ? last : g->ow };
}

/* Pixels that are taken together; 0: one by one. */
static size_t pixels_together(const oct_pool2d *g, size_t size)
{
    const size_t reach = (g->kw - 1) * g->dw + 1, columns = g->c ? LINE / g->c : 0;
    return g->c > FEW / size || g->kw < 2 || g->sw > g->kw || columns < 2 * reach ? 0 : (columns - reach) / g->sw + 1;
}

#define LARGEST(type, larger)                                                                                      \
    static inline void larger_##type(const type *a, const type *b, size_t n, type *y)                              \
    {                                                                                                              \
        OCT_EACH                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                             \
            y[i] = larger(a[i], b[i]);                                                                             \
    }                                                                                                              \
    /* n pixels whose taps start at column `from`, and whose rows of taps are v, one at least. */                  \
    static void pool_line_##type(const oct_pool2d *g, const type *x, ptrdiff_t top, taps v, size_t from, size_t n, \
                                 type *y)                                                                          \
    {                                                                                                              \
        type line[LINE], largest[LINE];                                                                            \
        const size_t c = g->c, places = (n - 1) * g->sw + 1, columns = places + (g->kw - 1) * g->dw;               \
        for (size_t i = v.first; i < v.last; i++) {                                                                \
            const type *row = x + ((size_t)(top + (ptrdiff_t)(i * g->dh)) * g->w + from) * c;                      \
            if (i == v.first)                                                                                      \
                memcpy(line, row, sizeof(*line) * columns * c);                                                    \
            else                                                                                                   \
                larger_##type(line, row, (columns) * c, line);                                                     \
        }                                                                                                          \
        larger_##type(line, line + g->dw * c, places * c, largest);                                                \
        for (size_t j = 2; j < g->kw; j++)                                                                         \
            larger_##type(largest, line + j * g->dw * c, places * c, largest);                                     \
        for (size_t i = 0; i < n; i++)                                                                             \
            memcpy(y + i * c, largest + i * g->sw * c, c * sizeof *y);                                             \
    }

#define MAX_POOL(name, type, lowest, larger)                                            \
    LARGEST(type, larger)                                                               \
    void K(name)(const oct_pool2d *g, const type *x, size_t oy, type *y)                \
    {                                                                                   \
        const size_t ch = g->c; /* bytes written to y might be g's, for all C knows */  \
        const size_t most = pixels_together(g, sizeof *y);                              \
        const taps whole = whole_windows(g);                                            \
        for (size_t ox = 0; ox < g->ow; ox++, y += ch) {                                \
            const window w = window_at(g, oy, ox);                                      \
            if (most && ox >= whole.first && ox < whole.last && w.v.first < w.v.last) { \
                const size_t n = whole.last - ox < most ? whole.last - ox : most;       \
                pool_line_##type(g, x, w.y, w.v, (size_t)w.x, n, y);                    \
                ox += n - 1, y += (n - 1) * ch;                                         \
                continue;                                                               \
            }                                                                           \
            bool first = true;                                                          \
            EACH_TAP (w) {                                                              \
                const type *p = x + tap_offset(g, &w, i, j);                            \
                if (first) {                                                            \
                    memcpy(y, p, ch * sizeof *y);                                       \
                } else {                                                                \
                    OCT_EACH                                                            \
                    for (size_t c = 0; c < ch; c++)                                     \
                        y[c] = larger(y[c], p[c]);                                      \
                }                                                                       \
                first = false;                                                          \
            }                                                                           \
            for (size_t c = 0; first && c < ch; c++)                                    \
                y[c] = lowest;                                                          \
        }                                                                               \
    }
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
MAX_POOL(max_pool_f32_row, float, -FLT_MAX, nan_max)
MAX_POOL(max_pool_u8_row, uint8_t, 0, LARGER)
MAX_POOL(max_pool_s8_row, int8_t, -128, LARGER)

/* Channels whose sums stay in registers while the window is walked: two vectors of sixteen, which narrower sets split.
 */
#define AT_ONCE 32
typedef float v16 __attribute__((vector_size(64)));

void K(average_pool_f32_row)(const oct_pool2d *g, const float *x, size_t oy, float *y)
{
    for (size_t ox = 0; ox < g->ow; ox++, y += g->c) {
        const window w = window_at(g, oy, ox);
        const float count = w.count ? (float)w.count : 1.0f;
        size_t c = 0;
        for (; c + AT_ONCE <= g->c; c += AT_ONCE) {
            v16 a = { 0 }, b = { 0 }, p, q;
            EACH_TAP (w) {
                const float *from = x + tap_offset(g, &w, i, j) + c;
                memcpy(&p, from, sizeof p);
                memcpy(&q, from + AT_ONCE / 2, sizeof q);
                a += p;
                b += q;
            }
            a /= count;
            b /= count;
            memcpy(y + c, &a, sizeof a);
            memcpy(y + c + AT_ONCE / 2, &b, sizeof b);
        }
        for (size_t k = c; k < g->c; k++)
            y[k] = 0.0f;
        EACH_TAP (w) {
            const float *p = x + tap_offset(g, &w, i, j);
            OCT_EACH
            for (size_t k = c; k < g->c; k++)
                y[k] += p[k];
        }
        for (size_t k = c; k < g->c; k++)
            y[k] /= count;
    }
}

#define AVERAGE_8(type, qmin, qmax)                                                                                    \
    static void average_block_##type(const oct_pool2d *g, const window *w, const type *x, size_t n, oct_qparam in,     \
                                     oct_qparam out, type *y)                                                          \
    {                                                                                                                  \
        float acc[BLOCK] = { 0 };                                                                                      \
        const float count = w->count ? (float)w->count : 1.0f, zy = (float)out.zp;                                     \
        EACH_TAP (*w) {                                                                                                \
            const type *p = x + tap_offset(g, w, i, j);                                                                \
            OCT_EACH                                                                                                   \
            for (size_t c = 0; c < n; c++)                                                                             \
                acc[c] += (float)((int32_t)p[c] - in.zp) * in.scale;                                                   \
        }                                                                                                              \
        OCT_EACH                                                                                                       \
        for (size_t c = 0; c < n; c++)                                                                                 \
            y[c] = (type)round_clamped(acc[c] / count / out.scale + zy, (qmin), (qmax));                               \
    }                                                                                                                  \
    static void average_##type(const oct_pool2d *g, const type *x, oct_qparam in, oct_qparam out, size_t oy, type *y)  \
    {                                                                                                                  \
        for (size_t ox = 0; ox < g->ow; ox++, y += g->c) {                                                             \
            const window w = window_at(g, oy, ox);                                                                     \
            for (size_t c = 0; c < g->c; c += BLOCK)                                                                   \
                average_block_##type(g, &w, x + c, g->c - c < BLOCK ? g->c - c : BLOCK, in, out, y + c);               \
        }                                                                                                              \
    }                                                                                                                  \
    static void global_##type(const type *x, size_t hw, size_t c, size_t n, oct_qparam in, oct_qparam out, type *y)    \
    {                                                                                                                  \
        int32_t acc[BLOCK];                                                                                            \
        const int32_t start = -in.zp * (int32_t)hw;                                                                    \
        const float m = in.scale / (out.scale * (float)hw);                                                            \
        for (size_t k = 0; k < n; k++)                                                                                 \
            acc[k] = start;                                                                                            \
        for (size_t i = 0; i < hw; i++, x += c) {                                                                      \
            OCT_EACH                                                                                                   \
            for (size_t k = 0; k < n; k++)                                                                             \
                acc[k] += (int32_t)x[k];                                                                               \
        }                                                                                                              \
        OCT_EACH                                                                                                       \
        for (size_t k = 0; k < n; k++)                                                                                 \
            y[k] =                                                                                                     \
                (type)(round_clamped((float)acc[k] * m, (float)((qmin) - out.zp), (float)((qmax) - out.zp)) + out.zp); \
    }
AVERAGE_8(uint8_t, 0, 255)
AVERAGE_8(int8_t, -128, 127)

void K(average_pool_8_row)(const oct_pool2d *g, bool is_signed, const void *x, oct_qparam in, oct_qparam out, size_t oy,
                           void *y)
{
    if (is_signed)
        average_int8_t(g, x, in, out, oy, y);
    else
        average_uint8_t(g, x, in, out, oy, y);
}

void K(global_average_8)(bool is_signed, const void *x, size_t hw, size_t c, oct_qparam in, oct_qparam out, void *y)
{
    for (size_t k = 0; k < c; k += BLOCK) {
        const size_t n = c - k < BLOCK ? c - k : BLOCK;
        if (is_signed)
            global_int8_t((const int8_t *)x + k, hw, c, n, in, out, (int8_t *)y + k);
        else
            global_uint8_t((const uint8_t *)x + k, hw, c, n, in, out, (uint8_t *)y + k);
    }
}
