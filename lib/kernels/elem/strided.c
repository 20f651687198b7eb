/* lib/kernels/elem/strided.c -- permutations and resizing of whole tensors. */
#include "kernels/layout.h"

#include "kernels/elem/table.h"

#include <string.h>

#define TILE 64 /* a side of a transposed tile */
#define WORK_BYTES 32768

static size_t tile_of(size_t bytes)
{
    return bytes >= WORK_BYTES ? 1 : bytes ? WORK_BYTES / bytes : 1;
}

/* ------------------------------------------------------------------ strided boxes */

/* A box of elements between two arrays; strides in elements. */
typedef struct box {
    int rank;
    int64_t dims[OCT_LAYOUT_RANK], sx[OCT_LAYOUT_RANK], sy[OCT_LAYOUT_RANK];
} box;

/* Drops ones and joins neighbours that continue each other in both arrays. False when the box is empty. */
static bool box_collapse(box *b)
{
    int r = 0;
    for (int i = 0; i < b->rank; i++) {
        if (b->dims[i] <= 0)
            return false;
        if (b->dims[i] == 1)
            continue;
        int to = r;
        if (r > 0 && b->sx[r - 1] == b->sx[i] * b->dims[i] && b->sy[r - 1] == b->sy[i] * b->dims[i]) {
            to = r - 1;
            b->dims[to] *= b->dims[i];
        } else {
            b->dims[r++] = b->dims[i];
        }
        b->sx[to] = b->sx[i];
        b->sy[to] = b->sy[i];
    }
    b->rank = r;
    return true;
}

/* Takes dimension d out of the box, returning its length and strides through the pointers. */
static void box_take(box *b, int d, int64_t *n, int64_t *sx, int64_t *sy)
{
    *n = b->dims[d];
    *sx = b->sx[d];
    *sy = b->sy[d];
    b->rank--;
    for (int i = d; i < b->rank; i++) {
        b->dims[i] = b->dims[i + 1];
        b->sx[i] = b->sx[i + 1];
        b->sy[i] = b->sy[i + 1];
    }
}

static size_t box_count(const box *b)
{
    size_t n = 1;
    for (int i = 0; i < b->rank; i++)
        n *= (size_t)b->dims[i];
    return n;
}

static void box_offset(const box *b, size_t index, int64_t *x, int64_t *y)
{
    *x = *y = 0;
    for (int i = b->rank - 1; i >= 0; i--) {
        const int64_t at = (int64_t)(index % (size_t)b->dims[i]);
        index /= (size_t)b->dims[i];
        *x += at * b->sx[i];
        *y += at * b->sy[i];
    }
}

typedef struct copy_job {
    const oct_elem_table *k;
    box outer;
    int64_t n, sx, sy;          /* inner row (columns of a tile)     */
    int64_t rows, row_x, row_y; /* second dimension of a transposition */
    size_t tiles, size;
    const char *x;
    char *y;
} copy_job;

#define COPY_ROW(type)              \
    for (int64_t i = 0; i < n; i++) \
    ((type *)(void *)y)[i * sy] = ((const type *)(const void *)x)[i * sx]

static void copy_row(const char *x, int64_t sx, char *y, int64_t sy, int64_t n, size_t size)
{
    if (sx == 1 && sy == 1) {
        memcpy(y, x, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY_ROW(uint8_t); break;
    case 2: COPY_ROW(uint16_t); break;
    case 4: COPY_ROW(uint32_t); break;
    default: COPY_ROW(uint64_t);
    }
}

static void copy_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const copy_job *j = arg;
    const int64_t size = (int64_t)j->size;
    for (size_t i = begin; i < end; i++) {
        int64_t x, y;
        box_offset(&j->outer, i, &x, &y);
        copy_row(j->x + x * size, j->sx, j->y + y * size, j->sy, j->n, j->size);
    }
}

static void copy_box(oct_pool *pool, box b, const void *x, void *y, size_t size)
{
    if (!box_collapse(&b))
        return;
    copy_job j = { .n = 1, .sx = 1, .sy = 1, .size = size, .x = x, .y = y };
    if (b.rank > 0)
        box_take(&b, b.rank - 1, &j.n, &j.sx, &j.sy);
    j.outer = b;
    oct_pool_for(pool, box_count(&b), tile_of((size_t)j.n * size), copy_tile, &j);
}

/* ------------------------------------------------------------------ permutations */

/* Items: outer index x tile of rows x tile of columns; rows are contiguous in y, columns in x. */
static void transpose_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const copy_job *j = arg;
    const size_t across = ((size_t)j->n + TILE - 1) / TILE;
    const int64_t size = (int64_t)j->size;
    for (size_t i = begin; i < end; i++) {
        int64_t x, y;
        box_offset(&j->outer, i / j->tiles, &x, &y);
        const int64_t r = (int64_t)(i % j->tiles / across * TILE), c = (int64_t)(i % j->tiles % across * TILE);
        const int64_t rows = j->rows - r < TILE ? j->rows - r : TILE, cols = j->n - c < TILE ? j->n - c : TILE;
        j->k->transpose_tile(j->x + (x + r * j->row_x + c) * size, (size_t)j->row_x, (size_t)rows, (size_t)cols,
                             j->y + (y + c * j->sy + r) * size, (size_t)j->sy, j->size);
    }
}

/* The dimension whose stride is 1 in x, resp. in y; -1 when there is none. */
static int unit_dim(const int64_t *s, int rank)
{
    for (int i = 0; i < rank; i++)
        if (s[i] == 1)
            return i;
    return -1;
}

/* Tiles of the dimension col, contiguous in x, and the last one, contiguous in y. */
static void transpose_box(oct_pool *pool, box b, int col, size_t size, const void *x, void *y)
{
    copy_job j = { .k = oct_elem(), .size = size, .x = x, .y = y };
    box_take(&b, b.rank - 1, &j.rows, &j.row_x, &j.row_y);
    box_take(&b, col, &j.n, &j.sx, &j.sy);
    j.outer = b;
    j.tiles = (((size_t)j.rows + TILE - 1) / TILE) * (((size_t)j.n + TILE - 1) / TILE);
    const size_t side_r = j.rows < TILE ? (size_t)j.rows : TILE, side_c = j.n < TILE ? (size_t)j.n : TILE;
    oct_pool_for(pool, box_count(&b) * j.tiles, tile_of(side_r * side_c * size), transpose_tile, &j);
}

void oct_transpose_box(oct_pool *pool, int rank, const int64_t *dims, const int64_t *sx, const int64_t *sy, size_t size,
                       const void *x, void *y)
{
    box b = { .rank = rank };
    memcpy(b.dims, dims, (size_t)rank * sizeof *dims);
    memcpy(b.sx, sx, (size_t)rank * sizeof *sx);
    memcpy(b.sy, sy, (size_t)rank * sizeof *sy);
    transpose_box(pool, b, unit_dim(sx, rank), size, x, y);
}

void oct_transpose(oct_pool *pool, const void *x, const int64_t *dims, const int *perm, int rank, size_t size, void *y)
{
    box b = { .rank = rank };
    int64_t in[OCT_LAYOUT_RANK] = { 0 }, s = 1;
    for (int i = rank - 1; i >= 0; i--) {
        in[i] = s;
        s *= dims[i];
    }
    s = 1;
    for (int i = rank - 1; i >= 0; i--) {
        b.dims[i] = dims[perm[i]];
        b.sx[i] = in[perm[i]];
        b.sy[i] = s;
        s *= b.dims[i];
    }
    if (!box_collapse(&b))
        return;
    const int col = unit_dim(b.sx, b.rank), row = unit_dim(b.sy, b.rank);
    if (col < 0 || row != b.rank - 1 || col == row)
        copy_box(pool, b, x, y, size);
    else
        transpose_box(pool, b, col, size, x, y);
}

void oct_transpose_2d(oct_pool *pool, const void *x, size_t batch, size_t rows, size_t cols, size_t size, void *y)
{
    const int64_t dims[3] = { (int64_t)batch, (int64_t)rows, (int64_t)cols };
    const int perm[3] = { 0, 2, 1 };
    oct_transpose(pool, x, dims, perm, 3, size, y);
}

/* ------------------------------------------------------------------ resizing */

typedef struct resize_job {
    const oct_elem_table *k;
    const char *x;
    char *y;
    size_t n_in, inner, n_out, size;
    int taps;
    const int32_t *index;
    const float *weight;
} resize_job;

#define NEAREST(bytes)                                                 \
    for (size_t i = begin; i < end; i++) {                             \
        memcpy(j->y + i * run, x + (size_t)j->index[at] * run, bytes); \
        if (++at == j->n_out)                                          \
            at = 0, x += j->n_in * run;                                \
    }

static void nearest_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const resize_job *j = arg;
    const size_t run = j->inner * j->size;
    const char *x = j->x + begin / j->n_out * j->n_in * run;
    size_t at = begin % j->n_out;
    switch (run) { /* pixels of images in colour, whose lengths the compiler then knows */
    case 3: NEAREST(3) break;
    case 3 * sizeof(float): NEAREST(3 * sizeof(float)) break;
    default: NEAREST(run)
    }
}

static void nearest_line_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const resize_job *j = arg;
    for (size_t o = begin; o < end; o++) {
        const char *x = j->x + o * j->n_in * j->size;
        char *y = j->y + o * j->n_out * j->size;
        for (size_t i = 0; i < j->n_out; i++)
            memcpy(y + i * j->size, x + (size_t)j->index[i] * j->size, j->size);
    }
}

void oct_resize_axis_nearest(oct_pool *pool, const void *x, size_t outer, size_t n_in, size_t inner, size_t n_out,
                             const int32_t *index, size_t size, void *y)
{
    resize_job j = { .x = x, .y = y, .n_in = n_in, .inner = inner, .n_out = n_out, .size = size, .index = index };
    if (n_out == 0 || inner == 0)
        return;
    if (inner == 1)
        oct_pool_for(pool, outer, tile_of(n_out * size), nearest_line_tile, &j);
    else
        oct_pool_for(pool, outer * n_out, tile_of(inner * size), nearest_tile, &j);
}

static void resize_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const resize_job *j = arg;
    const float *x = (const float *)(const void *)j->x;
    float *y = (float *)(void *)j->y;
    for (size_t i = begin; i < end; i++) {
        if (j->inner == 1) {
            j->k->resize_line(x + i * j->n_in, j->n_out, j->taps, j->index, j->weight, y + i * j->n_out);
            continue;
        }
        const size_t o = i / j->n_out, at = i % j->n_out * (size_t)j->taps;
        j->k->resize_row(x + o * j->n_in * j->inner, j->inner, j->taps, j->index + at, j->weight + at,
                         y + i * j->inner);
    }
}

void oct_resize_axis_f32(oct_pool *pool, const float *x, size_t outer, size_t n_in, size_t inner, size_t n_out,
                         int taps, const int32_t *index, const float *weight, float *y)
{
    if (!weight) {
        oct_resize_axis_nearest(pool, x, outer, n_in, inner, n_out, index, sizeof *x, y);
        return;
    }
    resize_job j = { oct_elem(), (const char *)x, (char *)y, n_in, inner, n_out, sizeof *x, taps, index, weight };
    if (n_out == 0 || inner == 0)
        return;
    if (inner == 1)
        oct_pool_for(pool, outer, tile_of(n_out * (size_t)taps * 4), resize_tile, &j);
    else
        oct_pool_for(pool, outer * n_out, tile_of(inner * (size_t)taps * 4), resize_tile, &j);
}
