/* tests/check/bench.c -- times products and convolutions on layers of real networks, in GMAC/s, one thread. */
#include "check.h"
#include "kernels/conv/conv.h"

#include <stdio.h>
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

static void bench_layer(oct_check *t, const layer *l)
{
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.h = g.w = l->hw, g.c = l->c, g.oc = l->oc, g.groups = l->groups;
    g.kh = g.kw = l->k, g.sh = g.sw = l->s, g.ph = g.pw = l->k / 2;
    g.oh = g.ow = (l->hw - 1) / l->s + 1;
    const size_t nx = (size_t)(g.h * g.w * g.c), ny = (size_t)(g.oh * g.ow * g.oc);
    const size_t nw = (size_t)(g.c / g.groups * g.oc * g.kh * g.kw);
    const double macs = (double)ny * (double)(g.c / g.groups * g.kh * g.kw);
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
    b.packed = oct_check_buffer(t, b.q.packed_size);
    b.scratch = oct_check_buffer(t, b.q.scratch_size);
    b.out = (oct_qout){ .mult = mult };
    oct_qout_range(&b.out, OCT_QOUT_U8, 128);
    oct_fill_bytes(t, w, nw);
    oct_fill_bytes(t, b.x, nx);
    oct_qconv_pack(&b.q, w, NULL, 0, b.packed);
    const double qs = oct_check_time(run_q, &b);
    printf("%-26s %-9s %8.1f MMAC   f32 %6.1f   int8 %6.1f GMAC/s\n", l->name, oct_conv_path_name(b.q.path), macs * 1e-6,
           macs / fs * 1e-9, macs / qs * 1e-9);
    oct_check_release(t);
}

void bench_products(oct_check *t)
{
    printf("%s, float %s, int8 %s\n", oct_isa_name(oct_isa_active()), oct_sgemm_select(oct_isa_active())->name,
           oct_qgemm_select(oct_isa_active())->name);
    for (size_t i = 0; i < OCT_COUNT(layers); i++)
        bench_layer(t, &layers[i]);
}
