/* tests/check/bench.c -- times products and convolutions on layers of real networks, in GMAC/s, one thread. */
#include "check.h"
#include "kernels/conv/conv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    const char *name;
    int hw, c, oc, k, s, groups;
} layer;

static const layer layers[] = {
    { "resnet50 conv1 7x7/2", 224, 3, 64, 7, 2, 1 },      { "mobilenet conv1 3x3/2", 224, 3, 32, 3, 2, 1 },
    { "resnet50 3x3 64", 56, 64, 64, 3, 1, 1 },           { "resnet50 3x3 256", 14, 256, 256, 3, 1, 1 },
    { "resnet50 1x1 256-64", 56, 256, 64, 1, 1, 1 },      { "resnet50 1x1 1024-256", 14, 1024, 256, 1, 1, 1 },
    { "resnet50 1x1/2 512-1024", 28, 512, 1024, 1, 2, 1 }, { "mobilenetv2 1x1 24-144", 56, 24, 144, 1, 1, 1 },
    { "mobilenetv2 1x1 576-96", 14, 576, 96, 1, 1, 1 },   { "mobilenetv2 1x1 320-1280", 7, 320, 1280, 1, 1, 1 },
    { "mobilenetv2 dw 3x3 144", 56, 144, 144, 3, 1, 144 }, { "mobilenetv2 dw 3x3/2 576", 14, 576, 576, 3, 2, 576 },
    { "fully connected 1280-1000", 1, 1280, 1000, 1, 1, 1 },
};

typedef struct timing {
    oct_sconv s;
    oct_qconv q;
    void *x, *y, *packed, *scratch;
    oct_sout sout;
    oct_qout out;
} timing;

static void run_s(void *arg)
{
    timing *b = arg;
    oct_sconv_run(&b->s, NULL, b->x, b->packed, b->y, &b->sout, b->scratch);
}

static void run_q(void *arg)
{
    timing *b = arg;
    oct_qconv_run(&b->q, NULL, b->x, 3, b->packed, NULL, &b->out, b->y, b->scratch);
}

/* Weights as trained ones look: bell-shaped, the largest of each output channel at `most`. */
static void fill_bell(oct_check *t, int8_t *w, size_t channels, size_t n, int most)
{
    int32_t *v = oct_check_buffer(t, n * sizeof *v);
    for (size_t c = 0; c < channels; c++) {
        int32_t top = 1;
        for (size_t i = 0; i < n; i++) {
            v[i] = -4 * 32768;
            for (int j = 0; j < 8; j++)
                v[i] += (int32_t)oct_check_below(t, 32768);
            top = abs(v[i]) > top ? abs(v[i]) : top;
        }
        for (size_t i = 0; i < n; i++)
            w[c * n + i] = (int8_t)((int64_t)v[i] * most / top);
    }
}

/* The exact product without 16-bit sums, where the kernel in use has them. */
static const oct_qgemm_kernel *plain_kernel(const oct_qgemm_kernel *k)
{
    size_t n;
    const oct_qgemm_kernel *plain = k;
    for (const oct_qgemm_kernel *i = oct_qgemm_kernels(&n); i < k; i++)
        if (k->order == OCT_QGEMM_CHAINS && i->mr == k->mr && i->nr == k->nr)
            plain = i;
    return plain;
}

/* 8-bit weights, 7-bit weights, 8-bit weights by the plain kernel: seconds, measured in turns. */
static void bench_bytes(oct_check *t, timing *b, double best[3])
{
    const oct_conv_geom *g = &b->q.g;
    const size_t nx = (size_t)(g->h * g->w * g->c), n = (size_t)(g->c / g->groups * g->kh * g->kw), oc = (size_t)g->oc;
    const oct_qgemm_kernel *kernel[] = { b->q.kernel, b->q.kernel, plain_kernel(b->q.kernel) };
    timing each[3] = { *b, *b, *b };
    oct_fill_bytes(t, b->x, nx);
    for (size_t i = 0; i < 3; i++) {
        int8_t *w = oct_check_buffer(t, n * oc);
        fill_bell(t, w, oc, n, i == 1 ? 63 : 127);
        each[i].packed = oct_check_buffer(t, b->q.packed_size);
        each[i].q.kernel = kernel[i];
        oct_qconv_pack(&each[i].q, w, NULL, 0, each[i].packed);
        best[i] = 1e9;
    }
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < 3; i++) {
            const double s = oct_check_time(run_q, &each[i]);
            best[i] = s < best[i] ? s : best[i];
        }
}

static void bench_layer(oct_check *t, const layer *l)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.h = g.w = l->hw, g.c = l->c, g.oc = l->oc, g.groups = l->groups;
    g.kh = g.kw = l->k, g.sh = g.sw = l->s, g.ph = g.pw = l->k / 2;
    g.oh = g.ow = (l->hw - 1) / l->s + 1;
    const size_t nx = (size_t)(g.h * g.w * g.c), ny = (size_t)(g.oh * g.ow * g.oc);
    const size_t nw = (size_t)(g.c / g.groups * g.oc * g.kh * g.kw);
    const double macs = (double)ny * (double)(g.c / g.groups * g.kh * g.kw) * 1e-9;
    timing b;
    oct_err err = OCT_ERR_INIT;
    if (oct_sconv_prepare(&b.s, &g, 1, &err) != OCT_OK || oct_qconv_prepare(&b.q, &g, OCT_U8, OCT_S8, 1, &err) != OCT_OK) {
        printf("%s: %s\n", l->name, err.text);
        return;
    }
    float *w = oct_check_buffer(t, nw * 4), *mult = oct_check_buffer(t, (size_t)g.oc * 4);
    oct_fill_f32(t, w, nw);
    for (int64_t i = 0; i < g.oc; i++)
        mult[i] = 1e-4f;
    b.sout = (oct_sout){ .bias = mult, .clamp = true, .hi = 6 };
    b.x = oct_check_buffer(t, nx * 4);
    b.y = oct_check_buffer(t, ny * 4);
    b.packed = oct_check_buffer(t, b.s.packed_size);
    b.scratch = oct_check_buffer(t, b.s.scratch_size);
    oct_fill_f32(t, b.x, nx);
    oct_sconv_pack(&b.s, w, b.packed);
    const double fs = oct_check_time(run_s, &b);
    b.scratch = oct_check_buffer(t, b.q.scratch_size);
    b.out = (oct_qout){ .mult = mult };
    oct_qout_range(&b.out, OCT_QOUT_U8, 128);
    double best[3];
    bench_bytes(t, &b, best);
    printf("%-26s %-9s %8.1f %9.1f %9.1f %9.1f %9.1f\n", l->name, oct_conv_path_name(b.q.path), macs * 1e3, macs / fs,
           macs / best[0], macs / best[1], macs / best[2]);
    oct_check_release(t);
}

void bench_products(oct_check *t)
{
    printf("%s, float %s, int8 %s\n", oct_isa_name(oct_isa_active()), oct_sgemm_select(oct_isa_active())->name,
           oct_qgemm_select(oct_isa_active())->name);
    printf("%-26s %-9s %8s %9s %9s %9s %9s   GMAC/s, one thread\n", "layer", "path", "MMAC", "f32", "8-bit", "7-bit",
           "plain");
    for (size_t i = 0; i < OCT_COUNT(layers); i++)
        bench_layer(t, &layers[i]);
}
