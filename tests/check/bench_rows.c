/* tests/check/bench_rows.c -- times row kernels on what fits the second-level cache: elements and bytes a second, and
 * which share the bytes are of what loads alone bring from there. A kernel that only moves or adds should come near the
 * loads. */
#include "check.h"
#include "kernels/elem/table.h"
#include "peak.h"

#include <stdio.h>

enum { N = 16384, ROW = 512 };

typedef struct rows {
    const oct_elem_table *k;
    oct_unary unary;
    oct_binary_op binary;
    oct_qbinary sum;
    float *x, *b, *y, table[256];
    uint8_t *q, *p, *out;
    int32_t bin[ROW];
} rows;

static void run_unary(void *arg)
{
    rows *r = arg;
    r->k->unary(&r->unary, r->x, r->y, N);
}

static void run_binary(void *arg)
{
    rows *r = arg;
    r->k->binary(r->binary, r->x, 1, r->b, 1, r->y, 1, N);
}

static void softmax(rows *r, size_t n)
{
    r->k->softmax_rows(false, r->x, N / n, n, r->y);
}

static void run_softmax(void *arg)
{
    softmax(arg, ROW);
}

static void run_softmax_short(void *arg)
{
    softmax(arg, ROW / 4);
}

static void run_norm(void *arg)
{
    rows *r = arg;
    float stats[2];
    for (size_t i = 0; i < N; i += ROW) {
        r->k->norm_row_stats(r->x + i, ROW, 1e-5f, false, stats);
        r->k->norm_row(r->x + i, ROW, stats, r->b, r->b + ROW, r->y + i);
    }
}

static void run_sum(void *arg)
{
    rows *r = arg;
    for (size_t i = 0; i < N; i += ROW)
        r->k->reduce_row(OCT_REDUCE_SUM, r->x + i, ROW, r->y + i / ROW);
}

static void run_min_max(void *arg)
{
    rows *r = arg;
    bool nan;
    r->k->min_max(r->x, N, &r->y[0], &r->y[1], &nan);
}

static void run_quantize(void *arg)
{
    rows *r = arg;
    r->k->quantize(OCT_U8, r->x, N, 0.01f, 128, r->out);
}

static void run_fake_quantize(void *arg)
{
    rows *r = arg;
    r->k->fake_quantize(r->x, N, 0.01f, -128, 127, r->y);
}

static void run_scan(void *arg)
{
    rows *r = arg;
    oct_scan s = { .min = 0, .max = 0 };
    r->k->scan(r->x, N, 1e-5f, &s);
}

static void run_bin_index(void *arg)
{
    rows *r = arg;
    oct_bin_grid g = { .least = { 1, 1 }, .zero = 20000, .small = 20008 };
    oct_bin_lay(&g, 0, 133, 0, 0);
    oct_bin_lay(&g, 1, 133, 10000, 10000);
    size_t n_bin, small;
    for (size_t i = 0; i < N; i += ROW)
        r->k->bin_index(r->x + i, ROW, &g, r->bin, &n_bin, &small);
}

static void run_columns(void *arg)
{
    rows *r = arg;
    oct_columns c;
    r->k->columns(r->x, N / OCT_COLUMNS, OCT_COLUMNS, &c);
}

static void run_dequantize(void *arg)
{
    rows *r = arg;
    r->k->dequantize(OCT_U8, r->q, N, 0.01f, 128, r->y);
}

static void run_widen(void *arg)
{
    rows *r = arg;
    r->k->widen(OCT_F16, r->q, N / 2, r->y);
}

static void run_qbinary(void *arg)
{
    rows *r = arg;
    r->k->qbinary(&r->sum, r->q, 1, r->p, 1, r->out, 1, N);
}

static void run_look_up(void *arg)
{
    rows *r = arg;
    r->k->look_up((const uint8_t *)r->table, r->q, N, r->out);
}

static void run_qsoftmax(void *arg)
{
    rows *r = arg;
    for (size_t i = 0; i < N; i += ROW)
        r->k->qsoftmax_row(false, r->table, r->q + i, ROW, 256, 0, r->out + i);
}

static void print_row(const char *name, rows *r, void (*fn)(void *), size_t elements, size_t bytes, double load)
{
    const double s = oct_check_time(fn, r), rate = (double)elements * (double)bytes / s;
    printf("%-26s %10.2f %9.1f", name, (double)elements / s * 1e-9, rate * 1e-9);
    printf(load > 0 ? " %4.0f%%\n" : "\n", load > 0 ? rate / load * 100 : 0);
}

void bench_rows(oct_check *t)
{
    static const struct {
        const char *name;
        oct_unary_op op;
    } unary[] = {
        { "relu", OCT_UNARY_RELU },
        { "exp", OCT_UNARY_EXP },
        { "sigmoid", OCT_UNARY_SIGMOID },
        { "tanh", OCT_UNARY_TANH },
        { "erf", OCT_UNARY_ERF },
        { "gelu", OCT_UNARY_GELU },
        { "hard swish", OCT_UNARY_HARD_SWISH },
        { "mish", OCT_UNARY_MISH },
        { "gelu by tanh", OCT_UNARY_GELU_TANH },
        { "swish", OCT_UNARY_SWISH },
    };
    static const struct {
        const char *name;
        void (*fn)(void *);
        size_t elements, bytes;
    } each[] = {
        { "softmax, rows of 512", run_softmax, N, 8 },
        { "softmax, rows of 128", run_softmax_short, N, 8 },
        { "layer norm, rows of 512", run_norm, N, 8 },
        { "sum, rows of 512", run_sum, N, 4 },
        { "minimum and maximum", run_min_max, N, 4 },
        { "quantize u8", run_quantize, N, 5 },
        { "dequantize u8", run_dequantize, N, 5 },
        { "fake quantize", run_fake_quantize, N, 8 },
        { "scan", run_scan, N, 4 },
        { "bins", run_bin_index, N, 4 },
        { "extremes, sums of columns", run_columns, N, 4 },
        { "f16 to f32", run_widen, N / 2, 6 },
        { "add u8", run_qbinary, N, 3 },
        { "softmax u8, rows of 512", run_qsoftmax, N, 2 },
        { "table of bytes", run_look_up, N, 2 },
    };
    rows r = { .k = oct_elem(),
               .sum = { OCT_QBINARY_ADD, false, { 0.02f, 100 }, { 0.05f, 17 }, { 0.06f, 130 }, 0, 255 } };
    r.x = oct_check_buffer(t, N * 4);
    r.b = oct_check_buffer(t, N * 4);
    r.y = oct_check_buffer(t, N * 4);
    r.q = oct_check_buffer(t, N);
    r.p = oct_check_buffer(t, N);
    r.out = oct_check_buffer(t, N);
    oct_fill_f32(t, r.x, N);
    oct_fill_f32(t, r.b, N);
    oct_fill_bytes(t, r.q, N);
    oct_fill_bytes(t, r.p, N);
    for (int i = 0; i < 256; i++)
        r.table[i] = 1.0f / (float)(256 - i);
    const double load = oct_peak_load(2 * N * 4);
    printf("\n%s rows, one thread; loads bring %.1f GB/s\n%-26s %10s %9s\n", r.k->name, load * 1e-9, "", "G elements",
           "GB/s");
    for (size_t i = 0; i < OCT_COUNT(unary); i++) {
        r.unary = (oct_unary){ unary[i].op, 1, 1 };
        print_row(unary[i].name, &r, run_unary, N, 8, load);
    }
    r.binary = OCT_BINARY_ADD;
    print_row("add", &r, run_binary, N, 12, load);
    for (size_t i = 0; i < OCT_COUNT(each); i++)
        print_row(each[i].name, &r, each[i].fn, each[i].elements, each[i].bytes, load);
    oct_check_release(t);
}
