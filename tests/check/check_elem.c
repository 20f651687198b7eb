/* tests/check/check_elem.c -- element-wise, reduction, quantization and pooling kernels: every instruction set
 * against the plain C version, bit for bit (any NaN equals any NaN: IEEE leaves its payload open), and against
 * bits.inc, which is the same on every machine. */
#include "check.h"
#include "kernels/elem/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t sizes[] = { 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 255, 513, 1100 };
#define MOST 1100

/* A hash (FNV-1a) of all results of one operation, in order. */
typedef struct bits {
    char what[40];
    uint64_t hash;
} bits;

static bits seen[400];
static size_t count_seen;

static void add_bits(const char *what, const void *data, size_t size)
{
    size_t i = 0;
    while (i < count_seen && strcmp(seen[i].what, what) != 0)
        i++;
    if (i == count_seen) {
        assert(i < OCT_COUNT(seen));
        snprintf(seen[i].what, sizeof seen[i].what, "%s", what);
        seen[count_seen++].hash = 0xcbf29ce484222325;
    }
    for (size_t b = 0; b < size; b++)
        seen[i].hash = (seen[i].hash ^ ((const uint8_t *)data)[b]) * 0x100000001b3;
}

static void same(oct_check *t, const void *want, const void *got, size_t n, size_t size, const char *what, int op)
{
    char name[40];
    snprintf(name, sizeof name, "%s %d", what, op);
    oct_check_same(t, want, got, n * size, size, "%s, %zu values", name, n);
    add_bits(name, got, n * size);
}

static void same_f32(oct_check *t, float *want, float *got, size_t n, const char *what, int op)
{
    for (size_t i = 0; i < n; i++) {
        if (want[i] != want[i])
            want[i] = __builtin_nanf("");
        if (got[i] != got[i])
            got[i] = __builtin_nanf("");
    }
    same(t, want, got, n, sizeof *want, what, op);
}

/* Values in the range where functions bend, now and then anything at all. */
static void fill(oct_check *t, float *x, size_t n)
{
    if (oct_check_below(t, 3) == 0) {
        oct_fill_f32_wild(t, x, n);
        return;
    }
    oct_fill_f32(t, x, n);
    static const float spread[] = { 1.0f, 10.0f, 120.0f, 1e5f };
    const float s = spread[oct_check_below(t, OCT_COUNT(spread))];
    for (size_t i = 0; i < n; i++)
        x[i] *= s;
}

static float *floats(oct_check *t, size_t n)
{
    return oct_check_buffer(t, n * sizeof(float));
}

static void unary_case(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k, oct_unary f, size_t n)
{
    float *x = floats(t, n), *want = floats(t, n), *got = floats(t, n);
    fill(t, x, n);
    ref->unary(&f, x, want, n);
    k->unary(&f, x, got, n);
    same_f32(t, want, got, n, "unary", f.op);
    k->unary(&f, x, x, n); /* in place */
    same_f32(t, want, x, n, "unary", f.op);
    oct_check_release(t);
}

static void check_unary(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (int op = 0; op < OCT_UNARY_COUNT; op++)
        for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
            unary_case(t, ref, k, (oct_unary){ (oct_unary_op)op, 0.2f, 0.5f }, sizes[i]);
            unary_case(t, ref, k, (oct_unary){ (oct_unary_op)op, 1.7f, 1.05f }, sizes[i]);
        }
}

static void check_rnn(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        for (int round = 0; round < 4; round++) {
            const size_t n = sizes[i];
            float *gates = floats(t, 4 * n), *c = floats(t, n), *same_c = floats(t, n), *want = floats(t, n),
                  *got = floats(t, n);
            fill(t, gates, 4 * n);
            fill(t, c, n);
            memcpy(same_c, c, n * sizeof *c);
            ref->lstm(gates, n, c, want);
            k->lstm(gates, n, same_c, got);
            same_f32(t, c, same_c, n, "lstm cell", 0);
            same_f32(t, want, got, n, "lstm cell", 1);
            oct_check_release(t);
        }
}

static const ptrdiff_t shapes[][3] = { { 1, 1, 1 }, { 1, 0, 1 }, { 0, 1, 1 }, { 2, 3, 1 }, { 1, 2, 3 }, { 0, 0, 1 } };

static void check_binary(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (int op = 0; op < OCT_BINARY_COUNT; op++)
        for (size_t i = 0; i < OCT_COUNT(sizes); i++)
            for (size_t s = 0; s < OCT_COUNT(shapes); s++) {
                const size_t n = sizes[i];
                float *a = floats(t, 2 * n), *b = floats(t, 3 * n), *want = floats(t, 3 * n), *got = floats(t, 3 * n);
                fill(t, a, 2 * n);
                fill(t, b, 3 * n);
                if (op == OCT_BINARY_POW && s == 1)
                    b[0] = 2.0f;
                ref->binary((oct_binary_op)op, a, shapes[s][0], b, shapes[s][1], want, shapes[s][2], n);
                k->binary((oct_binary_op)op, a, shapes[s][0], b, shapes[s][1], got, shapes[s][2], n);
                same_f32(t, want, got, 3 * n, "binary", op);
                oct_check_release(t);
            }
}

static void check_reduce(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (int op = 0; op < OCT_REDUCE_COUNT; op++)
        for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
            const size_t n = sizes[i], cols = 1 + oct_check_below(t, 70);
            float *x = floats(t, n * (cols + 3)), *want = floats(t, cols), *got = floats(t, cols);
            fill(t, x, n * (cols + 3));
            ref->reduce_row((oct_reduce_op)op, x, n, want);
            k->reduce_row((oct_reduce_op)op, x, n, got);
            same_f32(t, want, got, 1, "reduce row", op);
            ref->reduce_cols((oct_reduce_op)op, x, n, cols + 3, cols, want);
            k->reduce_cols((oct_reduce_op)op, x, n, cols + 3, cols, got);
            same_f32(t, want, got, cols, "reduce columns", op);
            /* A column alone gives what the same values give as a row. */
            float *row = floats(t, n);
            for (size_t r = 0; r < n; r++)
                row[r] = x[r * (cols + 3)];
            k->reduce_row((oct_reduce_op)op, row, n, want);
            same_f32(t, want, got, 1, "column as row", op);
            oct_check_release(t);
        }
}

static void check_norms(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        for (int log = 0; log < 2; log++) {
            const size_t n = sizes[i], c = 1 + oct_check_below(t, 70);
            float *x = floats(t, n * c), *want = floats(t, n * c), *got = floats(t, n * c);
            float *g = floats(t, n + c), *b = floats(t, n + c), a[2], d[2];
            fill(t, x, n * c);
            fill(t, g, n + c);
            fill(t, b, n + c);
            ref->softmax_rows(log, x, 1, n, want);
            k->softmax_rows(log, x, 1, n, got);
            same_f32(t, want, got, n, "softmax", log);
            ref->softmax_scaled_rows(x, 1, n, n, 0.3f, log ? g : NULL, 0, want);
            k->softmax_scaled_rows(x, 1, n, n, 0.3f, log ? g : NULL, 0, got);
            same_f32(t, want, got, n, "scaled softmax", log);
            for (size_t r = 0; r < c; r++) /* rows together, as each by itself */
                ref->softmax_rows(log, x + r * n, 1, n, want + r * n);
            k->softmax_rows(log, x, c, n, got);
            same_f32(t, want, got, n * c, "softmax of rows", log);
            for (size_t r = 0; r < c; r++)
                ref->softmax_scaled_rows(x + r * n, 1, n, n, 0.3f, log ? g + r : NULL, 0, want + r * n);
            k->softmax_scaled_rows(x, c, n, n, 0.3f, log ? g : NULL, 1, got);
            same_f32(t, want, got, n * c, "scaled softmax of rows", log);
            ref->softmax_cols(log, x, n, c, c, want);
            k->softmax_cols(log, x, n, c, c, got);
            same_f32(t, want, got, n * c, "softmax columns", log);
            ref->norm_row_stats(x, n, 1e-5f, log, a);
            k->norm_row_stats(x, n, 1e-5f, log, d);
            same_f32(t, a, d, 2, "norm statistics", log);
            ref->norm_row(x, n, a, g, log ? b : NULL, want);
            k->norm_row(x, n, a, g, log ? b : NULL, got);
            same_f32(t, want, got, n, "norm", log);
            ref->norm_row_const(x, n, a, 1.5f, 0.25f, want);
            k->norm_row_const(x, n, a, 1.5f, 0.25f, got);
            same_f32(t, want, got, n, "norm with constants", log);
            double wide[2], got_wide[2];
            ref->moments(x, n, wide);
            k->moments(x, n, got_wide);
            for (int j = 0; j < 2; j++)
                wide[j] = wide[j] == wide[j] ? wide[j] : 0, got_wide[j] = got_wide[j] == got_wide[j] ? got_wide[j] : 0;
            same(t, wide, got_wide, 2, sizeof wide[0], "moments", log);
            ref->norm_wide(x, n, wide[0], a[1], 1.5f, 0.25f, want);
            k->norm_wide(x, n, wide[0], a[1], 1.5f, 0.25f, got);
            same_f32(t, want, got, n, "norm in double", log);
            float *mw = floats(t, 2 * c), *mg = floats(t, 2 * c);
            ref->norm_cols_stats(x, n, c, c, 1e-5f, mw, mw + c);
            k->norm_cols_stats(x, n, c, c, 1e-5f, mg, mg + c);
            same_f32(t, mw, mg, 2 * c, "norm columns", log);
            ref->norm_cols(x, c, mw, mw + c, g, b, want);
            k->norm_cols(x, c, mw, mw + c, g, b, got);
            same_f32(t, want, got, c, "norm columns apply", log);
            ref->scale_shift(x, n, g, b, want);
            k->scale_shift(x, n, g, b, got);
            same_f32(t, want, got, n, "scale and shift", log);
            bool nan_a, nan_b;
            double e[2];
            ref->sum_squares(x, n, &e[0]);
            k->sum_squares(x, n, &e[1]);
            for (int j = 0; j < 2; j++)
                e[j] = e[j] == e[j] ? e[j] : 0;
            same(t, &e[0], &e[1], 1, sizeof e[0], "sum of squares", log);
            ref->squared_error(x, x + n / 2, n / 2, &e[0]);
            k->squared_error(x, x + n / 2, n / 2, &e[1]);
            same(t, &e[0], &e[1], 1, sizeof e[0], "squared error", log);
            ref->min_max(x, n, &a[0], &a[1], &nan_a);
            k->min_max(x, n, &d[0], &d[1], &nan_b);
            a[0] += nan_a, d[0] += nan_b;
            same_f32(t, a, d, 2, "min max", log);
            oct_check_release(t);
        }
}

static void check_quantize(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16, OCT_S32 };
    for (size_t d = 0; d < OCT_COUNT(types); d++)
        for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
            const size_t n = sizes[i], size = (size_t)oct_dtype_bits(types[d]) / 8;
            float *x = floats(t, n), *s = floats(t, n), *xw = floats(t, n), *xg = floats(t, n);
            int32_t *z = oct_check_buffer(t, n * sizeof *z), lo, hi;
            uint8_t *want = oct_check_buffer(t, n * size), *got = oct_check_buffer(t, n * size);
            fill(t, x, n);
            oct_quant_limits(types[d] == OCT_S32 ? OCT_S16 : types[d], &lo, &hi);
            for (size_t c = 0; c < n; c++) {
                s[c] = 1e-3f + (float)oct_check_below(t, 1000) * 1e-4f;
                z[c] = lo + (int32_t)oct_check_below(t, (size_t)(hi - lo + 1));
            }
            oct_fill_bytes(t, want, n * size);
            if (types[d] != OCT_S32) {
                ref->quantize(types[d], x, n, s[0], z[0], want);
                k->quantize(types[d], x, n, s[0], z[0], got);
                same(t, want, got, n, size, "quantize", types[d]);
                ref->quantize_each(types[d], x, n, s, i % 2 ? z : NULL, want);
                k->quantize_each(types[d], x, n, s, i % 2 ? z : NULL, got);
                same(t, want, got, n, size, "quantize each", types[d]);
                ref->fake_quantize(x, n, s[0], (float)(lo - z[0]), (float)(hi - z[0]), xw);
                k->fake_quantize(x, n, s[0], (float)(lo - z[0]), (float)(hi - z[0]), xg);
                same_f32(t, xw, xg, n, "fake quantize", types[d]);
            }
            ref->dequantize(types[d], want, n, s[0], z[0], xw);
            k->dequantize(types[d], want, n, s[0], z[0], xg);
            same_f32(t, xw, xg, n, "dequantize", types[d]);
            ref->dequantize_each(types[d], want, n, s, i % 2 ? z : NULL, xw);
            k->dequantize_each(types[d], want, n, s, i % 2 ? z : NULL, xg);
            same_f32(t, xw, xg, n, "dequantize each", types[d]);
            oct_check_release(t);
        }
}

static void check_packing(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k, const uint8_t *q, size_t n,
                          int width)
{
    const size_t bytes = n * (size_t)width / 8, stride = bytes + 3, columns = 1 + n % OCT_QPARAMS_COLUMNS,
                 size = OCT_QPARAMS_COLUMNS * stride;
    uint8_t *want = oct_check_buffer(t, size), *got = oct_check_buffer(t, size);
    memset(want, 0xa5, size);
    memset(got, 0xa5, size);
    ref->pack_columns(q, n, width, columns, want, stride);
    k->pack_columns(q, n, width, columns, got, stride);
    same(t, want, got, size, 1, "packed columns", width);
}

/* Columns of all sizes, one of zeros, one of almost nothing and one that is constant. Where values are few, many
 * parameters leave the same error. */
static void check_column_qparams(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (size_t i = 0; i < 12 * OCT_COUNT(sizes); i++) {
        const size_t n = sizes[i % OCT_COUNT(sizes)], round = i / OCT_COUNT(sizes), columns = OCT_QPARAMS_COLUMNS;
        const int top = round % 2 ? 15 : 255, kind = (int)(round / 2 % 3);
        float *x = floats(t, n * columns);
        uint8_t *want = oct_check_buffer(t, n * columns), *got = oct_check_buffer(t, n * columns);
        oct_column_qparams a, b;
        oct_fill_f32(t, x, n * columns);
        for (size_t e = 0; kind == 2 && e < n * columns; e++)
            x[e] = nearbyintf(x[e] * 4) / 4;
        for (size_t r = 0; r < n; r++) {
            x[r * columns + i % 13] = 0;
            x[r * columns + i % 13 + 1] *= kind == 0 ? 0x1p-118f : 0x1p-30f;
            x[r * columns + i % 13 + 2] = -3;
        }
        ref->choose_columns(x, n, top, i % 3 == 0, &a);
        k->choose_columns(x, n, top, i % 3 == 0, &b);
        same(t, a.scale, b.scale, columns, sizeof(float), "chosen scales", 0);
        same(t, a.fit, b.fit, columns, sizeof(float), "chosen fits", 0);
        same(t, a.zero, b.zero, columns, sizeof(int32_t), "chosen zero points", 0);
        same(t, a.error, b.error, columns, sizeof(double), "chosen errors", 0);
        same(t, a.signal, b.signal, columns, sizeof(double), "squares of columns", 0);
        ref->quantize_columns(x, n, top, &a, want);
        k->quantize_columns(x, n, top, &a, got);
        same(t, want, got, n * columns, 1, "quantized columns", 0);
        check_packing(t, ref, k, want, n / 2 * 2, top == 15 ? 4 : 8);
        oct_check_release(t);
    }
}

static void check_blocks(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (size_t i = 0; i < 8 * OCT_COUNT(sizes); i++) {
        const size_t n = sizes[i % OCT_COUNT(sizes)], block = (size_t)16 << i % 5, blocks = (n + block - 1) / block;
        float *x = floats(t, n), *scale_want = floats(t, blocks), *scale = floats(t, blocks);
        int8_t *want = oct_check_buffer(t, blocks * block), *got = oct_check_buffer(t, blocks * block);
        int32_t *sum_want = oct_check_buffer(t, blocks * 4), *sum = oct_check_buffer(t, blocks * 4);
        fill(t, x, n);
        ref->quantize_blocks(x, n, block, want, scale_want, sum_want);
        k->quantize_blocks(x, n, block, got, scale, sum);
        same(t, want, got, blocks * block, 1, "blocks", 0);
        same_f32(t, scale_want, scale, blocks, "scales of blocks", 0);
        same(t, sum_want, sum, blocks, 4, "sums of blocks", 0);
        oct_check_release(t);
    }
}

/* Every 16-bit float; float32 at and beside every value that 16 bits hold and every middle between two, and wild ones.
 * NaN too has the same bits here: conversions are moves. */
static void check_half(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    enum { ALL = 65536, SIDES = 6 };
    static const oct_dtype types[] = { OCT_F16, OCT_BF16 };
    for (size_t d = 0; d < OCT_COUNT(types); d++) {
        uint16_t *h = oct_check_buffer(t, ALL * sizeof *h);
        float *want = floats(t, ALL), *got = floats(t, ALL), *x = floats(t, SIDES * ALL);
        uint16_t *hw = oct_check_buffer(t, SIDES * ALL * sizeof *hw),
                 *hg = oct_check_buffer(t, SIDES * ALL * sizeof *hg);
        for (size_t i = 0; i < ALL; i++)
            h[i] = (uint16_t)i;
        ref->widen(types[d], h, ALL, want);
        k->widen(types[d], h, ALL, got);
        same(t, want, got, ALL, sizeof *want, "widen", types[d]);
        const uint32_t middle = types[d] == OCT_F16 ? 1u << 12 : 1u << 15;
        for (size_t i = 0; i < ALL; i++) {
            uint32_t u;
            memcpy(&u, &want[i], sizeof u);
            const uint32_t near[SIDES] = { u, u + 1, u - 1, u + middle - 1, u + middle, u + middle + 1 };
            memcpy(x + SIDES * i, near, sizeof near);
        }
        ref->narrow(types[d], x, SIDES * ALL, hw);
        k->narrow(types[d], x, SIDES * ALL, hg);
        same(t, hw, hg, SIDES * ALL, sizeof *hw, "narrow", types[d]);
        k->widen(types[d], hw, ALL, want); /* rounding in float32 is both */
        k->round_half(types[d], x, ALL, got);
        same(t, want, got, ALL, sizeof *want, "round_half", types[d]);
        for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
            fill(t, x, sizes[i]);
            ref->narrow(types[d], x, sizes[i], hw);
            k->narrow(types[d], x, sizes[i], hg);
            same(t, hw, hg, sizes[i], sizeof *hw, "narrow", types[d]);
            ref->widen(types[d], hw, sizes[i], want);
            k->widen(types[d], hw, sizes[i], got);
            same(t, want, got, sizes[i], sizeof *want, "widen", types[d]);
        }
        oct_check_release(t);
    }
}

static void check_integers(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        for (int kind = 0; kind < 4 * (int)OCT_COUNT(shapes); kind++) {
            const size_t n = sizes[i];
            const ptrdiff_t *s = shapes[kind / 4];
            const bool sgn = kind & 1;
            oct_qbinary f = { kind & 2 ? OCT_QBINARY_MUL : OCT_QBINARY_ADD,
                              sgn,
                              { 0.02f, sgn ? 3 : 100 },
                              { 0.05f, sgn ? -9 : 17 },
                              { 0.06f, sgn ? 1 : 130 },
                              sgn ? -128 : 0,
                              sgn ? 127 : 255 };
            uint8_t *a = oct_check_buffer(t, 2 * n), *b = oct_check_buffer(t, 3 * n);
            uint8_t *want = oct_check_buffer(t, 3 * n), *got = oct_check_buffer(t, 3 * n);
            oct_fill_bytes(t, a, 2 * n);
            oct_fill_extremes(t, b, 3 * n);
            ref->qbinary(&f, a, s[0], b, s[1], want, s[2], n);
            k->qbinary(&f, a, s[0], b, s[1], got, s[2], n);
            same(t, want, got, 3 * n, 1, "qbinary", kind);
            float table[256];
            for (int c = 0; c < 256; c++)
                table[c] = 1.0f / (float)(256 - c);
            uint8_t bytes[256];
            for (size_t c = 0; c < sizeof bytes; c++)
                bytes[c] = (uint8_t)(c * 167 + 13);
            for (size_t c = 0; c < n; c++)
                want[c] = bytes[a[c]];
            k->look_up(bytes, a, n, got);
            same(t, want, got, n, 1, "look_up", kind);
            ref->qsoftmax_row(sgn, table, a, n, 256.0f, sgn ? -128 : 0, want);
            k->qsoftmax_row(sgn, table, a, n, 256.0f, sgn ? -128 : 0, got);
            same(t, want, got, n, 1, "qsoftmax", sgn);
            oct_check_release(t);
        }
}

static oct_pool2d random_pool(oct_check *t)
{
    oct_pool2d g = {
        .n = 1, .h = 1 + oct_check_below(t, 9), .w = 1 + oct_check_below(t, 9), .c = 1 + oct_check_below(t, 300)
    };
    g.kh = 1 + oct_check_below(t, 4), g.kw = 1 + oct_check_below(t, 4);
    g.sh = 1 + oct_check_below(t, 3), g.sw = 1 + oct_check_below(t, 3);
    g.dh = 1 + oct_check_below(t, 2), g.dw = 1 + oct_check_below(t, 2);
    g.pt = oct_check_below(t, g.kh), g.pl = oct_check_below(t, g.kw);
    g.pb = oct_check_below(t, g.kh), g.pr = oct_check_below(t, g.kw);
    g.oh = (g.h + g.pt + g.pb) / g.sh + 1, g.ow = (g.w + g.pl + g.pr) / g.sw + 1; /* with windows beyond the image */
    g.count_include_pad = oct_check_below(t, 2);
    return g;
}

static void check_pool(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (int round = 0; round < 200; round++) {
        const oct_pool2d g = random_pool(t);
        const size_t in = g.h * g.w * g.c, out = g.ow * g.c, oy = oct_check_below(t, g.oh);
        const oct_qparam qx = { 0.03f, round & 1 ? -4 : 120 }, qy = { 0.025f, round & 1 ? 3 : 128 };
        float *x = floats(t, in), *want = floats(t, out), *got = floats(t, out);
        uint8_t *q = oct_check_buffer(t, in), *qw = oct_check_buffer(t, out), *qg = oct_check_buffer(t, out);
        fill(t, x, in);
        oct_fill_bytes(t, q, in);
        ref->max_pool_f32_row(&g, x, oy, want);
        k->max_pool_f32_row(&g, x, oy, got);
        same_f32(t, want, got, out, "max pool", 0);
        ref->average_pool_f32_row(&g, x, oy, want);
        k->average_pool_f32_row(&g, x, oy, got);
        same_f32(t, want, got, out, "average pool", 0);
        ref->max_pool_u8_row(&g, q, oy, qw);
        k->max_pool_u8_row(&g, q, oy, qg);
        same(t, qw, qg, out, 1, "max pool u8", 0);
        ref->max_pool_s8_row(&g, (int8_t *)q, oy, (int8_t *)qw);
        k->max_pool_s8_row(&g, (int8_t *)q, oy, (int8_t *)qg);
        same(t, qw, qg, out, 1, "max pool s8", 0);
        ref->average_pool_8_row(&g, round & 1, q, qx, qy, oy, qw);
        k->average_pool_8_row(&g, round & 1, q, qx, qy, oy, qg);
        same(t, qw, qg, out, 1, "average pool 8", round & 1);
        ref->global_average_8(round & 1, q, g.h * g.w, g.c, qx, qy, qw);
        k->global_average_8(round & 1, q, g.h * g.w, g.c, qx, qy, qg);
        same(t, qw, qg, g.c, 1, "global average 8", round & 1);
        oct_check_release(t);
    }
}

static void check_moves(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    for (int round = 0; round < 200; round++) {
        const size_t size = (size_t)1 << round % 4, most = round % 3 ? 70 : 5; /* few rows or columns go another way */
        const size_t rows = 1 + oct_check_below(t, round % 2 ? most : 70),
                     cols = 1 + oct_check_below(t, round % 2 ? 70 : most);
        const size_t step = cols + (size_t)(round % 5 == 0 ? 2 : 0);
        uint8_t *x = oct_check_buffer(t, rows * step * size);
        uint8_t *want = oct_check_buffer(t, cols * rows * size), *got = oct_check_buffer(t, cols * rows * size);
        oct_fill_bytes(t, x, rows * step * size);
        ref->transpose_tile(x, step, rows, cols, want, rows, size);
        k->transpose_tile(x, step, rows, cols, got, rows, size);
        same(t, want, got, cols * rows * size, 1, "transpose", (int)size);
        int32_t index[70 * 4];
        float weight[70 * 4];
        const int taps = 1 + round % 4;
        oct_fill_f32(t, weight, OCT_COUNT(weight));
        for (size_t i = 0; i < OCT_COUNT(index); i++)
            index[i] = (int32_t)oct_check_below(t, rows);
        float *v = floats(t, rows * cols), *fw = floats(t, 70), *fg = floats(t, 70);
        fill(t, v, rows * cols);
        ref->resize_row(v, cols, taps, index, weight, fw);
        k->resize_row(v, cols, taps, index, weight, fg);
        same_f32(t, fw, fg, cols, "resize row", taps);
        ref->resize_line(v, 70, taps, index, weight, fw);
        k->resize_line(v, 70, taps, index, weight, fg);
        same_f32(t, fw, fg, 70, "resize line", taps);
        oct_check_release(t);
    }
}

static const bits expected[] = {
#define OCT_BITS(what, hash) { what, hash },
#include "bits.inc"
#undef OCT_BITS
};

static void compare_bits(oct_check *t, const char *table)
{
    for (size_t i = 0; i < count_seen; i++) {
        size_t e = 0;
        while (e < OCT_COUNT(expected) && strcmp(expected[e].what, seen[i].what) != 0)
            e++;
        oct_check_wrong(t, e == OCT_COUNT(expected) || expected[e].hash != seen[i].hash,
                        "%s: results of '%s' are not those of bits.inc", table, seen[i].what);
    }
}

/* Each part from a start of its own: results must not depend on what ran before. */
static void run(oct_check *t, const oct_elem_table *ref, const oct_elem_table *k)
{
    static void (*const parts[])(oct_check *, const oct_elem_table *, const oct_elem_table *) = {
        check_unary, check_binary, check_reduce, check_norms,          check_quantize, check_integers,
        check_pool,  check_moves,  check_half,   check_column_qparams, check_rnn,      check_blocks,
    };
    count_seen = 0;
    for (size_t i = 0; i < OCT_COUNT(parts); i++) {
        t->seed = i;
        parts[i](t, ref, k);
    }
}

void check_elem(oct_check *t)
{
    size_t n;
    const oct_elem_table *tables = oct_elem_tables(&n);
    for (size_t i = 0; i < n; i++)
        if ((tables[i].isa & ~oct_isa_active()) == 0) {
            run(t, tables, &tables[i]);
            compare_bits(t, tables[i].name);
        }
}

void print_bits(oct_check *t)
{
    run(t, oct_elem(), oct_elem());
    printf(
        "/* tests/check/bits.inc -- results of row kernels, hashed, from check_kernels --bits: the same on every machine. A\n"
        " * line changes when what a kernel computes changes, or its case in check_elem.c. */\n");
    for (size_t i = 0; i < count_seen; i++)
        printf("OCT_BITS(\"%s\", 0x%016llx)\n", seen[i].what, (unsigned long long)seen[i].hash);
}
