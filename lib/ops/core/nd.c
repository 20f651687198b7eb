/* lib/ops/core/nd.c -- walking strided arrays. */
#include "ops/core/nd.h"

#include "kernels/layout.h"
#include "kernels/qelem.h"

#include <string.h>

void oct_nd_init(oct_nd *d, const oct_operand *t)
{
    memset(d, 0, sizeof *d);
    d->rank = t->rank;
    for (int i = 0; i < t->rank; i++)
        d->dims[i] = t->dims[i];
    oct_operand_strides(t, d->stride[0]);
    d->arrays = 1;
}

void oct_nd_add(oct_nd *d, const oct_operand *t)
{
    int64_t own[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(t, own);
    int64_t *s = d->stride[d->arrays++];
    for (int i = 0; i < d->rank; i++) {
        int j = i - (d->rank - t->rank);
        s[i] = j < 0 || t->dims[j] == 1 ? 0 : own[j];
    }
}

void oct_nd_add_strides(oct_nd *d, const int64_t *stride)
{
    int64_t *s = d->stride[d->arrays++];
    for (int i = 0; i < d->rank; i++)
        s[i] = stride[i];
}

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

static void move_dim(oct_nd *d, int to, int from)
{
    d->dims[to] = d->dims[from];
    for (int k = 0; k < d->arrays; k++)
        d->stride[k][to] = d->stride[k][from];
}

static void swap_dims(oct_nd *d, int a, int b)
{
    int64_t t = d->dims[a];
    d->dims[a] = d->dims[b];
    d->dims[b] = t;
    for (int k = 0; k < d->arrays; k++) {
        t = d->stride[k][a];
        d->stride[k][a] = d->stride[k][b];
        d->stride[k][b] = t;
    }
}

static bool joins(const oct_nd *d, int outer, int inner)
{
    for (int k = 0; k < d->arrays; k++)
        if (d->stride[k][outer] != d->stride[k][inner] * d->dims[inner])
            return false;
    return true;
}

static void simplify(oct_nd *d)
{
    int n = 0;
    for (int i = 0; i < d->rank; i++)
        if (d->dims[i] != 1)
            move_dim(d, n++, i);
    d->rank = n;
    for (int i = 1; i < n; i++) /* stable insertion sort, largest output stride first */
        for (int j = i; j > 0 && magnitude(d->stride[0][j]) > magnitude(d->stride[0][j - 1]); j--)
            swap_dims(d, j, j - 1);
    int last = 0;
    for (int i = 1; i < n; i++) {
        if (joins(d, last, i)) {
            d->dims[i] *= d->dims[last];
            move_dim(d, last, i);
        } else {
            move_dim(d, ++last, i);
        }
    }
    d->rank = n > 0 ? last + 1 : 0;
    if (d->rank == 0) {
        d->rank = 1;
        d->dims[0] = 1;
        for (int k = 0; k < d->arrays; k++)
            d->stride[k][0] = 0;
    }
}

typedef struct walk {
    const oct_nd *d;
    int64_t chunks; /* per row */
    oct_nd_fn fn;
    void *arg;
} walk;

static void walk_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const walk *w = arg;
    const oct_nd *d = w->d;
    int last = d->rank - 1;
    int64_t step[OCT_ND_ARRAYS] = { 0 };
    for (int k = 0; k < d->arrays; k++)
        step[k] = d->stride[k][last];
    int64_t at[OCT_ND_RANK], row[OCT_ND_ARRAYS] = { 0 }; /* the row, and where it begins */
    int64_t first = (int64_t)begin % w->chunks * OCT_ND_CHUNK, rest = (int64_t)begin / w->chunks;
    for (int i = last - 1; i >= 0; i--) {
        at[i] = rest % d->dims[i];
        rest /= d->dims[i];
        for (int k = 0; k < d->arrays; k++)
            row[k] += at[i] * d->stride[k][i];
    }
    for (size_t item = begin; item < end; item++) {
        int64_t offset[OCT_ND_ARRAYS];
        for (int k = 0; k < d->arrays; k++)
            offset[k] = row[k] + first * step[k];
        const int64_t n = d->dims[last] - first;
        w->fn(w->arg, offset, step, n < OCT_ND_CHUNK ? n : OCT_ND_CHUNK);
        first += OCT_ND_CHUNK;
        if (first < d->dims[last])
            continue;
        first = 0;
        for (int i = last - 1; i >= 0; i--) {
            const int64_t back = ++at[i] < d->dims[i] ? 0 : at[i];
            for (int k = 0; k < d->arrays; k++)
                row[k] += (1 - back) * d->stride[k][i];
            if (back == 0)
                break;
            at[i] = 0;
        }
    }
}

/* d is simplified. */
static void run_rows(const oct_nd *d, oct_pool *pool, oct_nd_fn fn, void *arg)
{
    int64_t inner = d->dims[d->rank - 1], rows = 1;
    for (int i = 0; i + 1 < d->rank; i++)
        rows *= d->dims[i];
    walk w = { d, (inner + OCT_ND_CHUNK - 1) / OCT_ND_CHUNK, fn, arg };
    int64_t per_item = inner < OCT_ND_CHUNK ? inner : OCT_ND_CHUNK;
    int64_t tile = 16384 / per_item;
    oct_pool_for(pool, (size_t)(rows * w.chunks), (size_t)(tile < 1 ? 1 : tile), walk_tile, &w);
}

void oct_nd_run(oct_nd *d, oct_pool *pool, oct_nd_fn fn, void *arg)
{
    for (int i = 0; i < d->rank; i++)
        if (d->dims[i] == 0)
            return;
    simplify(d);
    run_rows(d, pool, fn, arg);
}

/* ------------------------------------------------------------------ copying */

typedef struct copy {
    uint8_t *dst;
    const uint8_t *src;
    size_t size;
    const uint8_t *table;
} copy;

typedef struct unit16 {
    uint64_t v[2];
} unit16;

#define COPY_STRIDED(type)                             \
    do {                                               \
        type *dst = (type *)c->dst + o[0];             \
        const type *src = (const type *)c->src + o[1]; \
        if (s[0] == 1 && s[1] == 0) {                  \
            const type x = *src;                       \
            for (int64_t i = 0; i < n; i++)            \
                dst[i] = x;                            \
            return;                                    \
        }                                              \
        for (int64_t i = 0; i < n; i++)                \
            dst[i * s[0]] = src[i * s[1]];             \
    } while (0)

static void copy_row(void *arg, const int64_t *o, const int64_t *s, int64_t n)
{
    const copy *c = arg;
    if (c->table != NULL && s[0] == 1 && s[1] == 1) {
        oct_lut_8(NULL, c->table, c->src + o[1], c->dst + o[0], (size_t)n);
        return;
    }
    if (c->table != NULL) {
        uint8_t *dst = c->dst + o[0];
        const uint8_t *src = c->src + o[1];
        for (int64_t i = 0; i < n; i++)
            dst[i * s[0]] = c->table[src[i * s[1]]];
        return;
    }
    if ((s[0] == 1 && s[1] == 1) || n == 1) {
        memcpy(c->dst + o[0] * (int64_t)c->size, c->src + o[1] * (int64_t)c->size, (size_t)n * c->size);
        return;
    }
    switch (c->size) {
    case 1: COPY_STRIDED(uint8_t); break;
    case 2: COPY_STRIDED(uint16_t); break;
    case 4: COPY_STRIDED(uint32_t); break;
    case 8: COPY_STRIDED(uint64_t); break;
    default: COPY_STRIDED(unit16); break;
    }
}

/* Whether a simplified walk transposes rows of src to columns of dst, and both are large enough for tiles to be faster.
 */
static bool is_transposition(const oct_nd *d, size_t size)
{
    enum { LEAST = 8 };
    const int last = d->rank - 1;
    bool turned = false;
    for (int i = 0; i < last; i++)
        turned |= d->stride[1][i] == 1 && d->stride[0][i] > 0 && d->dims[i] >= LEAST;
    return turned && size <= 8 && d->rank <= OCT_LAYOUT_RANK && d->stride[0][last] == 1 && d->stride[1][last] > 1 &&
           d->dims[last] >= LEAST;
}

/* Where rows are short, as those of corners of boxes, most time goes into beginning them: the longest other dimension
 * takes their place. More passes over the same memory would cost more than that saves if rows were longer. */
static void put_long_rows_last(oct_nd *d)
{
    enum { SHORT = 4 };
    const int last = d->rank - 1;
    int longest = last;
    for (int i = 0; i < last && d->dims[last] <= SHORT; i++)
        if (d->dims[i] > d->dims[longest])
            longest = i;
    if (longest != last)
        swap_dims(d, longest, last);
}

void oct_nd_copy(oct_nd *d, oct_pool *pool, void *dst, const void *src, size_t size, const uint8_t *table)
{
    copy c = { dst, src, size, table };
    for (int i = 0; i < d->rank; i++)
        if (d->dims[i] == 0)
            return;
    simplify(d);
    if (is_transposition(d, size)) {
        oct_transpose_box(pool, d->rank, d->dims, d->stride[1], d->stride[0], size, src, dst);
        if (!table)
            return;
        memcpy(d->stride[1], d->stride[0], sizeof d->stride[1]);
        c.src = dst;
    }
    put_long_rows_last(d);
    run_rows(d, pool, copy_row, &c);
}
