/* lib/kernels/elem/binary.c -- functions of two arrays: broadcasting, tiles over threads. */
#include "kernels/binary.h"

#include "kernels/elem/table.h"

#define TILE 8192

/* ------------------------------------------------------------------ broadcasting */

bool oct_broadcast_shapes(oct_broadcast *b, const int64_t *da, int ra, const int64_t *db, int rb)
{
    const int r = ra > rb ? ra : rb;
    if (r > OCT_BROADCAST_RANK)
        return false;
    int64_t sa = 1, sb = 1, sy = 1;
    b->rank = r;
    for (int i = r - 1; i >= 0; i--) {
        const int ia = i - (r - ra), ib = i - (r - rb);
        const int64_t na = ia >= 0 ? da[ia] : 1, nb = ib >= 0 ? db[ib] : 1;
        if (na != nb && na != 1 && nb != 1)
            return false;
        b->dims[i] = na == 1 ? nb : na;
        b->sa[i] = na == 1 ? 0 : sa;
        b->sb[i] = nb == 1 ? 0 : sb;
        b->sy[i] = sy;
        sa *= na;
        sb *= nb;
        sy *= b->dims[i];
    }
    return true;
}

/* Whether dimension `inner` continues dimension `outer` in all three arrays. */
static bool joins(const oct_broadcast *b, int outer, int inner)
{
    const int64_t n = b->dims[inner];
    return b->sa[outer] == b->sa[inner] * n && b->sb[outer] == b->sb[inner] * n && b->sy[outer] == b->sy[inner] * n;
}

static void exchange(int64_t v[], int i, int j)
{
    const int64_t t = v[i];
    v[i] = v[j];
    v[j] = t;
}

/* Largest stride of the output first, as in a channels-last tensor it is not the last dimension that is contiguous. */
static void sort_dims(oct_broadcast *b)
{
    for (int i = 1; i < b->rank; i++)
        for (int j = i; j > 0 && b->sy[j] > b->sy[j - 1]; j--) {
            exchange(b->dims, j, j - 1);
            exchange(b->sa, j, j - 1);
            exchange(b->sb, j, j - 1);
            exchange(b->sy, j, j - 1);
        }
}

void oct_broadcast_collapse(oct_broadcast *b)
{
    int r = 0;
    sort_dims(b);
    for (int i = 0; i < b->rank; i++) {
        if (b->dims[i] == 1)
            continue;
        int to = r;
        if (r > 0 && joins(b, r - 1, i)) {
            to = r - 1;
            b->dims[to] *= b->dims[i];
        } else {
            b->dims[r++] = b->dims[i];
        }
        /* Joined: the stride is the inner one's. (dims read above: i >= to.) */
        b->sa[to] = b->sa[i];
        b->sb[to] = b->sb[i];
        b->sy[to] = b->sy[i];
    }
    b->rank = r;
}

/* Offsets of a row's first elements, its strides and its length. */
typedef void (*row_fn)(void *arg, ptrdiff_t a, ptrdiff_t b, ptrdiff_t y, ptrdiff_t sa, ptrdiff_t sb, ptrdiff_t sy,
                       size_t n);

typedef struct rows_job {
    const oct_broadcast *b;
    row_fn fn;
    void *arg;
    size_t row;           /* length of the innermost dimension     */
    size_t pieces, piece; /* a row is cut into pieces of that size */
} rows_job;

static void rows_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const rows_job *j = arg;
    const oct_broadcast *b = j->b;
    const int last = b->rank - 1;
    int64_t at[OCT_BROADCAST_RANK] = { 0 };
    ptrdiff_t a = 0, c = 0, y = 0;
    size_t line = begin / j->pieces, part = begin % j->pieces;
    for (int i = last - 1; i >= 0; i--) {
        at[i] = (int64_t)(line % (size_t)b->dims[i]);
        line /= (size_t)b->dims[i];
        a += at[i] * b->sa[i];
        c += at[i] * b->sb[i];
        y += at[i] * b->sy[i];
    }
    for (size_t k = begin; k < end; k++) {
        const ptrdiff_t first = (ptrdiff_t)(part * j->piece);
        const size_t left = j->row - (size_t)first;
        j->fn(j->arg, a + first * b->sa[last], c + first * b->sb[last], y + first * b->sy[last], b->sa[last],
              b->sb[last], b->sy[last], left < j->piece ? left : j->piece);
        if (++part < j->pieces)
            continue;
        part = 0;
        for (int i = last - 1; i >= 0; i--) { /* the next row */
            a += b->sa[i];
            c += b->sb[i];
            y += b->sy[i];
            if (++at[i] < b->dims[i])
                break;
            at[i] = 0;
            a -= b->dims[i] * b->sa[i];
            c -= b->dims[i] * b->sb[i];
            y -= b->dims[i] * b->sy[i];
        }
    }
}

/* Calls fn once per innermost row, in parallel over rows (long rows are cut). */
static void for_rows(oct_pool *pool, const oct_broadcast *shape, row_fn fn, void *arg)
{
    oct_broadcast b = *shape;
    for (int i = 0; i < b.rank; i++)
        if (b.dims[i] == 0)
            return;
    oct_broadcast_collapse(&b);
    if (b.rank == 0) {
        b.rank = 1;
        b.dims[0] = 1;
        b.sa[0] = b.sb[0] = b.sy[0] = 1;
    }
    size_t rows = 1;
    for (int i = 0; i + 1 < b.rank; i++)
        rows *= (size_t)b.dims[i];
    rows_job j = { &b, fn, arg, (size_t)b.dims[b.rank - 1] };
    j.piece = j.row < 2 * TILE ? j.row : TILE;
    j.pieces = (j.row + j.piece - 1) / j.piece;
    size_t tile = TILE / j.piece;
    oct_pool_for(pool, rows * j.pieces, tile ? tile : 1, rows_tile, &j);
}

/* ------------------------------------------------------------------ f32 */

typedef struct binary_job {
    const oct_elem_table *k;
    oct_binary_op op;
    const float *a, *b;
    float *y;
    ptrdiff_t sa, sb;
} binary_job;

static void binary_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const binary_job *j = arg;
    const ptrdiff_t i = (ptrdiff_t)begin;
    j->k->binary(j->op, j->a + i * j->sa, j->sa, j->b + i * j->sb, j->sb, j->y + i, 1, end - begin);
}

void oct_binary_f32(oct_pool *pool, oct_binary_op op, const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb,
                    float *y, size_t n)
{
    binary_job j = { oct_elem(), op, a, b, y, sa, sb };
    oct_pool_for(pool, n, TILE, binary_tile, &j);
}

static void binary_row(void *arg, ptrdiff_t a, ptrdiff_t b, ptrdiff_t y, ptrdiff_t sa, ptrdiff_t sb, ptrdiff_t sy,
                       size_t n)
{
    const binary_job *j = arg;
    j->k->binary(j->op, j->a + a, sa, j->b + b, sb, j->y + y, sy, n);
}

void oct_binary_f32_nd(oct_pool *pool, oct_binary_op op, const oct_broadcast *s, const float *a, const float *b,
                       float *y)
{
    binary_job j = { oct_elem(), op, a, b, y };
    for_rows(pool, s, binary_row, &j);
}

/* ------------------------------------------------------------------ 8 bits */

typedef struct qbinary_job {
    const oct_elem_table *k;
    const oct_qbinary *f;
    const char *a, *b;
    char *y;
    ptrdiff_t sa, sb;
} qbinary_job;

static void qbinary_row(void *arg, ptrdiff_t a, ptrdiff_t b, ptrdiff_t y, ptrdiff_t sa, ptrdiff_t sb, ptrdiff_t sy,
                        size_t n)
{
    const qbinary_job *j = arg;
    j->k->qbinary(j->f, j->a + a, sa, j->b + b, sb, j->y + y, sy, n);
}

void oct_qbinary_8_nd(oct_pool *pool, const oct_qbinary *f, const oct_broadcast *s, const void *a, const void *b,
                      void *y)
{
    qbinary_job j = { oct_elem(), f, a, b, y };
    for_rows(pool, s, qbinary_row, &j);
}
