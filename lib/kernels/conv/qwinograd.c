/* lib/kernels/conv/qwinograd.c -- plan, packing and walk of integer Winograd convolution. */
#include "kernels/conv/qwinograd.h"

#include "base/mem.h"
#include "kernels/conv/algorithm.h"
#include "kernels/qgemm/qgemm_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    IN = OCT_WINOGRAD_IN,
    OUT = OCT_WINOGRAD_OUT,
    POINTS = OCT_WINOGRAD_POINTS,
    COLUMNS = OCT_WINOGRAD_COLUMNS,
    GROUP = OCT_WINOGRAD_GROUP,
    PANELS = OCT_WINOGRAD_PANELS,
    MOST_TILES = 48,
    LEAST_TILES = 8,
    CACHE = 320 << 10 /* bytes of transformed pixels of an item */
};

static size_t tiles_along(int64_t pixels)
{
    return ((size_t)pixels + OUT - 1) / OUT;
}

static size_t all_tiles(const oct_conv_geom *g)
{
    return (size_t)g->n * tiles_along(g->oh) * tiles_along(g->ow);
}

static size_t most_tiles(const oct_conv_geom *g)
{
    const size_t fit = CACHE / (POINTS * sizeof(int16_t)) / (size_t)g->c;
    return fit > MOST_TILES ? MOST_TILES : fit < LEAST_TILES ? LEAST_TILES : fit;
}

static size_t block_tiles(const oct_conv_geom *g)
{
    const size_t tiles = all_tiles(g), most = most_tiles(g), blocks = (tiles + most - 1) / most;
    return (tiles + blocks - 1) / blocks;
}

static size_t panels(const oct_conv_geom *g)
{
    return ((size_t)g->oc + COLUMNS - 1) / COLUMNS;
}

static bool suits(const oct_conv_geom *g)
{
    const bool taps = g->kd == 1 && g->kh == 3 && g->kw == 3 && g->sh == 1 && g->sw == 1 && g->dh == 1 && g->dw == 1;
    return taps && g->d == 1 && g->od == 1 && g->pd == 0 && g->groups == 1 && !g->transposed && g->c % COLUMNS == 0 &&
           all_tiles(g) > 0;
}

const oct_qwinograd_kernel *const *oct_qwinograd_kernels(size_t *count)
{
#if defined(OCT_KERNELS_X86)
    static const oct_qwinograd_kernel *const kernels[] = { &oct_qwinograd__avx2, &oct_qwinograd__avx512vnni };
    *count = OCT_COUNT(kernels);
    return kernels;
#else
    *count = 0;
    return NULL;
#endif
}

/* A row of the product is a tile of pixels; each block of them fetches all weights. */
static oct_choice cost(const oct_conv_geom *g, oct_isa have)
{
    const oct_extent e = { all_tiles(g), (size_t)g->oc, (size_t)g->c, 0 };
    const oct_cost_tile tile = { .mr = block_tiles(g), .nr = COLUMNS, .unit = COLUMNS, .kr = GROUP };
    oct_choice c = { 0 };
    size_t n;
    const oct_qwinograd_kernel *const *k = oct_qwinograd_kernels(&n);
    for (size_t i = 0; i < n; i++)
        if ((k[i]->isa & ~have) == 0)
            oct_choice_offer(&c, k[i], k[i]->name, &e, tile);
    return c;
}

/* Scratch of a thread, carved: pixels and products of the points, sums of the pixels. */
typedef struct scratch {
    int16_t *v;
    int32_t *m, *acc;
    size_t *ready; /* the block whose pixels are transformed; the scratch begins with it */
} scratch;

enum { SCRATCH_HEAD = 64 };

/* Bytes of its parts; the products are of a panel. */
static size_t pixel_bytes(const oct_conv_geom *g)
{
    return oct_round_up(POINTS * sizeof(int16_t) * block_tiles(g) * (size_t)g->c, 64);
}

static size_t product_bytes(const oct_conv_geom *g)
{
    return POINTS * COLUMNS * sizeof(int32_t) * block_tiles(g);
}

static size_t scratch_bytes(const oct_conv_geom *g)
{
    return SCRATCH_HEAD + pixel_bytes(g) + PANELS * product_bytes(g) +
           OUT * OUT * COLUMNS * sizeof(int32_t) * block_tiles(g);
}

static scratch carve(const oct_conv_geom *g, uint8_t *at)
{
    uint8_t *v = at + SCRATCH_HEAD, *m = v + pixel_bytes(g), *acc = m + PANELS * product_bytes(g);
    return (scratch){ (int16_t *)(void *)v, (int32_t *)(void *)m, (int32_t *)(void *)acc, (size_t *)(void *)at };
}

static size_t sums_bytes(const oct_conv_geom *g)
{
    return oct_round_up((size_t)g->oc * sizeof(int32_t), 64);
}

static bool sizes(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    const oct_conv_geom *g = &p->g;
    size_t values, pixels;
    p->winograd = kernel;
    if (!oct_mul_size(panels(g) * COLUMNS, (size_t)g->c, &values) || values > SIZE_MAX / 1024 ||
        !oct_mul_size(POINTS * sizeof(int16_t) * block_tiles(g), (size_t)g->c, &pixels) || pixels > SIZE_MAX / 2)
        return false;
    s->packed = sums_bytes(g) + values * POINTS * sizeof(int16_t);
    s->shared = sums_bytes(g);
    s->thread = scratch_bytes(g);
    return true;
}

/* Weights of a panel that are transformed together: two channels of four columns, as they lie. */
enum { PAIR = 2, LANES = 8 };
typedef int16_t lanes __attribute__((vector_size(LANES * sizeof(int16_t))));

/* G times three weights, or three of such products: at most 49 times a weight, which fits. */
static inline void weight_line(const lanes *w, size_t step, lanes to[IN])
{
    const lanes w0 = w[0], w1 = w[step], w2 = w[2 * step], even = w0 + 4 * w2;
    to[0] = 6 * w0;
    to[1] = -w0 - w1 - w2;
    to[2] = -w0 + w1 - w2;
    to[3] = even + 2 * w1;
    to[4] = even - 2 * w1;
    to[5] = 6 * w2;
}

/* G w G' of kernels to u, `point` apart. */
static void transform_weights(const lanes w[9], int16_t *u, size_t point)
{
    lanes half[3 * IN], line[IN];
    for (size_t y = 0; y < 3; y++)
        weight_line(w + 3 * y, 1, half + y * IN);
    for (size_t j = 0; j < IN; j++) {
        weight_line(half + j, IN, line);
        for (size_t i = 0; i < IN; i++)
            memcpy(u + (i * IN + j) * point, &line[i], sizeof line[i]);
    }
}

/* Whether zero points of weights are other than those of s8, 0, and of u8, 128. */
static bool has_zeros(const oct_qconv *p, const int32_t *zw, size_t zw_step)
{
    const int32_t none = p->w_type == OCT_S8 ? 0 : 128;
    bool some = zw == NULL && none != 0;
    for (int64_t i = 0; i < p->g.oc && zw; i++)
        some |= zw[(size_t)i * zw_step] != none;
    return some;
}

/* Sums of each output channel's weights, which are s8, or u8 minus 128. False where a sum of products could pass 26
 * bits. */
static bool sum_weights(const oct_conv_geom *g, const uint8_t *w, uint8_t flip, int32_t *sums)
{
    const size_t n = (size_t)g->c * 9;
    for (int64_t o = 0; o < g->oc; o++, w += n) {
        int64_t magnitude = 0;
        int32_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            const int32_t v = (int8_t)(w[i] ^ flip);
            sum += v;
            magnitude += abs(v);
        }
        if (magnitude * 128 >= 1 << 25)
            return false;
        sums[o] = sum;
    }
    return true;
}

/* Kernels of two channels from i on, for the columns from o on; zeros beyond the last column. */
static void take_kernels(const oct_conv_geom *g, const uint8_t *w, uint8_t flip, size_t o, size_t i, lanes to[9])
{
    int16_t at[9][LANES] = { { 0 } };
    for (size_t l = 0; l < LANES && o + l / PAIR < (size_t)g->oc; l++) {
        const uint8_t *from = w + ((o + l / PAIR) * (size_t)g->c + i + l % PAIR) * 9;
        for (size_t t = 0; t < 9; t++)
            at[t][l] = (int8_t)(from[t] ^ flip);
    }
    memcpy(to, at, sizeof at);
}

/* Packs weights as ONNX stores them, [oc][c][3][3]. A line of the cache is written at once: points are so far from each
 * other that lines drive each other out. */
static bool pack_bytes(const oct_conv_geom *g, const uint8_t *w, uint8_t flip, void *packed)
{
    const size_t c = (size_t)g->c, point = c * COLUMNS;
    int16_t *u = (int16_t *)(void *)((uint8_t *)packed + sums_bytes(g));
    memset(packed, 0, sums_bytes(g));
    if (!sum_weights(g, w, flip, packed))
        return false;
    for (size_t p = 0; p < panels(g); p++, u += POINTS * point)
        for (size_t i = 0; i < c; i += PAIR)
            for (size_t l = 0; l < (size_t)COLUMNS * PAIR; l += LANES) {
                lanes kernels[9];
                take_kernels(g, w, flip, p * COLUMNS + l / PAIR, i, kernels);
                transform_weights(kernels, u + i * COLUMNS + l, point);
            }
    return true;
}

/* Weights that are packed for one run take too long to transform; zero points of weights would need sums of pixels. */
static bool pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed)
{
    return !p->fast_pack && !has_zeros(p, zw, zw_step) && pack_bytes(&p->g, w, oct_qflip(p->w_type, OCT_S8), packed);
}

/* What a run works on. flip, zx: of pixels that are read as s8. */
typedef struct job {
    const oct_qconv_job *j;
    const oct_conv_geom *g;
    const oct_qwinograd_kernel *kernel;
    uint8_t flip;
    int32_t *add; /* a number for each output channel, which sums begin with */
} job;

typedef struct walk {
    const job *j;
    const int16_t *u;
    oct_items items;
    size_t thread_bytes;
} walk;

/* Place of a tile: its first output pixel. */
typedef struct tile {
    int64_t n, y, x;
} tile;

static tile tile_at(const oct_conv_geom *g, size_t i)
{
    const size_t across = tiles_along(g->ow), down = tiles_along(g->oh);
    return (tile){ (int64_t)(i / across / down), (int64_t)(i / across % down) * OUT, (int64_t)(i % across) * OUT };
}

/* Pointers to the pixels under a tile. */
static void point_pixels(const job *j, tile t, const uint8_t *x[POINTS])
{
    const oct_conv_geom *g = j->g;
    for (int64_t i = 0; i < IN; i++)
        for (int64_t k = 0; k < IN; k++) {
            const int64_t y = t.y - g->ph + i, at = t.x - g->pw + k;
            const bool inside = y >= 0 && y < g->h && at >= 0 && at < g->w;
            x[i * IN + k] = inside ? j->j->x + (size_t)(((t.n * g->h + y) * g->w + at) * g->ldx) : j->j->pad;
        }
}

/* The last step of `tiles` neighbours of one line of tiles, whose sums are in acc. */
static void finish(const job *j, tile t, size_t tiles, size_t col, size_t n, const int32_t *acc, size_t line)
{
    const oct_conv_geom *g = j->g;
    const size_t elem = oct_qout_size(j->j->out->kind), wide = tiles * OUT, left = (size_t)(g->ow - t.x);
    oct_qout o = *j->j->out;
    if (o.mult)
        o.mult += col;
    if (o.bias)
        o.bias += col;
    for (int64_t i = 0; i < OUT && t.y + i < g->oh; i++, acc += line) {
        const size_t pixel = (size_t)((t.n * g->oh + t.y + i) * g->ow + t.x);
        j->j->p->qout->fn(wide < left ? wide : left, n, acc, COLUMNS, j->add + col, NULL, NULL, &o,
                          j->j->y + (pixel * (size_t)g->ldy + col) * elem, (size_t)g->ldy);
    }
}

/* Output channels [col, col + COLUMNS) of tiles [first, first + tiles), whose products are in m. */
static void finish_panel(const job *j, const scratch *s, const int32_t *m, size_t first, size_t tiles, size_t col)
{
    const oct_conv_geom *g = j->g;
    const size_t n = (size_t)g->oc - col < COLUMNS ? (size_t)g->oc - col : COLUMNS, across = tiles_along(g->ow);
    for (size_t i = 0, run; i < tiles; i += run) {
        const size_t left = across - (first + i) % across,
                     line = OUT * COLUMNS * (run = left < tiles - i ? left : tiles - i);
        for (size_t k = 0; k < run; k++)
            j->kernel->output(m + (i + k) * COLUMNS, tiles * COLUMNS, s->acc + k * OUT * COLUMNS, line);
        finish(j, tile_at(g, first + i), run, col, n, s->acc, line);
    }
}

/* One or two panels of tiles [first, first + tiles). */
static void run_panels(const walk *w, const scratch *s, size_t first, size_t tiles, size_t panel, size_t n)
{
    const job *j = w->j;
    const size_t c = (size_t)j->g->c, point = c * COLUMNS, products = POINTS * tiles * COLUMNS;
    for (size_t p = 0; p < POINTS; p++) {
        const int16_t *u = w->u + (panel * POINTS + p) * point;
        int32_t *m = s->m + p * tiles * COLUMNS;
        j->kernel->product(tiles, c, n, s->v + p * tiles * c,
                           (const int16_t *[PANELS]){ u, n > 1 ? u + POINTS * point : u },
                           (int32_t *[PANELS]){ m, m + products });
    }
    for (size_t i = 0; i < n; i++)
        finish_panel(j, s, s->m + i * products, first, tiles, (panel + i) * COLUMNS);
}

static void transform(const job *j, const scratch *s, size_t first, size_t tiles)
{
    const size_t c = (size_t)j->g->c;
    for (size_t t = 0; t < tiles; t++) {
        const uint8_t *x[POINTS];
        point_pixels(j, tile_at(j->g, first + t), x);
        j->kernel->input(c, x, j->flip, s->v + t * GROUP, tiles * c, tiles * GROUP);
    }
}

static void run_items(void *arg, size_t begin, size_t end, size_t thread)
{
    const walk *w = arg;
    const job *j = w->j;
    const scratch s = carve(j->g, j->j->threads + thread * w->thread_bytes);
    for (size_t k = begin; k < end; k++) {
        const oct_item i = oct_item_at(&w->items, k);
        if (*s.ready != i.block)
            transform(j, &s, i.row, i.rows);
        *s.ready = i.block;
        for (size_t p = 0, n; p < i.panels; p += n)
            run_panels(w, &s, i.row, i.rows, i.panel + p, n = i.panels - p < PANELS ? i.panels - p : PANELS);
    }
}

static void run(const oct_qconv_job *r)
{
    const oct_conv_geom *g = &r->p->g;
    const size_t oc = (size_t)g->oc, tiles = all_tiles(g), threads = (size_t)oct_pool_useful(r->pool);
    const int32_t *sums = r->packed;
    const int32_t zx = oct_qzero(r->zx, r->p->x_type, OCT_S8);
    const job j = { .j = r,
                    .g = g,
                    .kernel = r->p->winograd,
                    .flip = oct_qflip(r->p->x_type, OCT_S8),
                    .add = (int32_t *)(void *)r->shared };
    walk w = { .j = &j, .u = (const int16_t *)(const void *)((const uint8_t *)r->packed + sums_bytes(g)) };
    for (size_t i = 0; i < oc; i++)
        j.add[i] = (int32_t)((r->bias ? (uint32_t)r->bias[i] : 0) - (uint32_t)zx * (uint32_t)sums[i]);
    /* Transforming a tile costs half its products with one panel; weights, of 16 bits for 36 points, are much to
     * fetch. */
    const oct_work work = {
        .rows = tiles, .panels = panels(g), .groups = 1, .most = block_tiles(g), .unit = 1, .row = 0.5, .panel = 6
    };
    w.items = oct_items_cut(&work, threads);
    w.thread_bytes = scratch_bytes(g);
    for (size_t i = 0; i < threads; i++)
        *(size_t *)(void *)(r->threads + i * w.thread_bytes) = SIZE_MAX;
    oct_pool_for(r->pool, w.items.n, 1, run_items, &w);
}

const oct_qconv_algorithm oct_qconv_winograd = {
    .name = "winograd",
    .picky = true,
    .suits = suits,
    .cost = cost,
    .sizes = sizes,
    .pack = pack,
    .run = run,
};
