/* tests/check/check_choice.c -- which algorithm a convolution takes: which suit a shape, at each boundary; which is
 * chosen among them, by class of CPU and instruction sets. No kernel runs: the choice is the same on any machine. */
#include "check.h"
#include "kernels/conv/algorithm.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of "h=5 w=7 c=8 oc=9 kh=3": the rest is 1, paddings 0; d, h and w are those of the output, too, if these are not
 * given. */
static oct_conv_geom geom_of(const char *text)
{
    static const struct {
        const char *name;
        size_t at;
    } fields[] = {
        { "n", offsetof(oct_conv_geom, n) },   { "d", offsetof(oct_conv_geom, d) },
        { "h", offsetof(oct_conv_geom, h) },   { "w", offsetof(oct_conv_geom, w) },
        { "c", offsetof(oct_conv_geom, c) },   { "od", offsetof(oct_conv_geom, od) },
        { "oh", offsetof(oct_conv_geom, oh) }, { "ow", offsetof(oct_conv_geom, ow) },
        { "oc", offsetof(oct_conv_geom, oc) }, { "kd", offsetof(oct_conv_geom, kd) },
        { "kh", offsetof(oct_conv_geom, kh) }, { "kw", offsetof(oct_conv_geom, kw) },
        { "sd", offsetof(oct_conv_geom, sd) }, { "sh", offsetof(oct_conv_geom, sh) },
        { "sw", offsetof(oct_conv_geom, sw) }, { "dd", offsetof(oct_conv_geom, dd) },
        { "dh", offsetof(oct_conv_geom, dh) }, { "dw", offsetof(oct_conv_geom, dw) },
        { "pd", offsetof(oct_conv_geom, pd) }, { "ph", offsetof(oct_conv_geom, ph) },
        { "pw", offsetof(oct_conv_geom, pw) }, { "groups", offsetof(oct_conv_geom, groups) },
    };
    oct_conv_geom g;
    oct_conv_geom_init(&g);
    g.od = g.oh = g.ow = 0;
    for (const char *at = text; *at; at += strcspn(at, " "), at += *at == ' ') {
        const size_t name = strcspn(at, "= ");
        if (name == 10 && strncmp(at, "transposed", name) == 0)
            g.transposed = true;
        for (size_t i = 0; i < OCT_COUNT(fields); i++)
            if (strlen(fields[i].name) == name && strncmp(at, fields[i].name, name) == 0)
                *(int64_t *)(void *)((char *)&g + fields[i].at) = strtoll(at + name + 1, NULL, 10);
    }
    g.od = g.od ? g.od : g.d;
    g.oh = g.oh ? g.oh : g.h;
    g.ow = g.ow ? g.ow : g.w;
    g.ldx = g.c;
    g.ldy = g.oc;
    return g;
}

/* ---- which suit ---- */

/* Names in the order of algorithms.inc. What suits floats suits bf16, but `folded`. */
static const struct {
    const char *shape, *real, *bytes;
} suited[] = {
    /* pixels are rows as they lie ... */
    { "h=5 w=7 c=8 oc=9", "dense", "dense" },
    { "n=2 d=3 h=5 w=7 c=40 oc=9", "dense", "dense" },
    { "h=5 w=7 c=8 oc=9 transposed", "dense", "dense" },
    { "h=5 w=7 c=1 oc=1", "dense", "dense" },
    { "h=5 w=7 c=8 oc=9 dh=2 dw=2", "dense", "dense" },
    /* ... but with padding before, or after, with pixels left out, or strides, or groups */
    { "h=5 w=7 c=8 oc=9 ph=1", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 ph=1 oh=7", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 pw=1", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 pd=1", "indirect", "gather indirect" },
    { "h=5 w=7 c=8 oc=9 ph=-1", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 oh=6", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 oh=4", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 ow=8", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 ow=6", "indirect", "gather indirect flat" },
    { "d=3 h=5 w=7 c=8 oc=9 od=2", "indirect", "gather indirect" },
    { "h=5 w=7 c=8 oc=9 sh=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 sw=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=9 sd=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=8 oc=8 groups=2", "indirect", "gather indirect" },
    /* one input and one output channel a group */
    { "h=5 w=7 c=8 oc=8 groups=8", "depthwise", "depthwise" },
    { "h=5 w=7 c=8 oc=8 groups=8 kh=3 kw=3", "depthwise", "depthwise" },
    { "h=5 w=7 c=32 oc=32 groups=32 kh=3 kw=3", "depthwise", "depthwise" },
    { "h=5 w=7 c=8 oc=8 groups=8 kh=3 kw=3 transposed", "depthwise", "depthwise" },
    { "h=5 w=7 c=8 oc=16 groups=8 kh=3 kw=3", "gather", "gather" },
    { "h=5 w=7 c=16 oc=8 groups=8 kh=3 kw=3", "gather", "gather" },
    { "h=5 w=7 c=1 oc=1 kh=3 kw=3", "folded gather", "gather flat" },
    /* several taps of few channels */
    { "h=5 w=7 c=15 oc=9 kh=3 kw=3 sh=2", "folded gather", "gather flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 sh=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=30 oc=8 kh=3 kw=3 groups=2", "gather", "gather" },
    { "h=5 w=7 c=32 oc=8 kh=3 kw=3 groups=2", "indirect", "gather indirect" },
    /* whose lines are one tap in a copy */
    { "h=5 w=7 c=2 oc=9 kh=3", "gather", "gather flat" },
    { "h=5 w=7 c=3 oc=9 kh=3", "folded gather", "gather flat" },
    { "h=5 w=7 c=1 oc=9 kw=2", "gather", "gather flat" },
    { "h=5 w=7 c=1 oc=9 kw=3", "folded gather", "gather flat" },
    { "h=5 w=7 c=3 oc=9 kh=3 kw=3 dw=2", "gather", "gather flat" },
    { "h=5 w=7 c=3 oc=9 kh=3 kw=3 dh=2", "folded gather", "gather flat" },
    { "h=5 w=7 c=3 oc=9 kh=3 kw=3 transposed", "gather", "gather" },
    { "h=5 w=7 c=3 oc=9 kd=2 kh=3 kw=3", "gather", "gather" },
    { "d=2 h=5 w=7 c=3 oc=9 kh=3 kw=3", "gather", "gather" },
    { "h=5 w=7 c=3 oc=9 kh=3 kw=3 pd=1", "gather", "gather" },
    { "h=8 w=8 c=3 oc=9 oh=3 kh=3 kw=3 sh=20000 ph=20000", "gather", "gather flat" },
    { "h=5 w=7 c=40 oc=9 oh=3 kh=3 sh=1048576 ph=1048576", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=40 oc=9 oh=3 kh=3 sh=1048577 ph=1048576", "indirect", "gather indirect" },
    /* 3x3 taps at stride 1 of whole registers of channels */
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3", "indirect", "gather indirect flat winograd" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 ph=4 pw=4", "indirect", "gather indirect flat winograd" },
    { "h=5 w=7 c=32 oc=9 kh=3 kw=3", "indirect", "gather indirect flat winograd" },
    { "h=5 w=7 c=24 oc=9 kh=3 kw=3", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=2 kw=3", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=4", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 sh=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 sw=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 dh=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 dw=2", "indirect", "gather indirect flat" },
    { "h=5 w=7 c=32 oc=8 kh=3 kw=3 groups=2 transposed", "indirect", "gather indirect" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 transposed", "indirect", "gather indirect" },
    { "h=5 w=7 c=16 oc=9 kd=2 kh=3 kw=3", "indirect", "gather indirect" },
    { "d=2 h=5 w=7 c=16 oc=9 kh=3 kw=3", "indirect", "gather indirect" },
    { "h=5 w=7 c=16 oc=9 kh=3 kw=3 pd=1", "indirect", "gather indirect" },
};

bool oct_check_shape(size_t i, oct_conv_geom *g)
{
    if (i < OCT_COUNT(suited))
        *g = geom_of(suited[i].shape);
    return i < OCT_COUNT(suited);
}

static void add_name(char *to, size_t size, const char *name)
{
    const size_t n = strlen(to);
    snprintf(to + n, size - n, "%s%s", n ? " " : "", name);
}

static void check_suited(oct_check *t)
{
    size_t n_real, n_bytes;
    const oct_sconv_algorithm *const *real = oct_sconv_algorithms(&n_real);
    const oct_qconv_algorithm *const *bytes = oct_qconv_algorithms(&n_bytes);
    for (size_t i = 0; i < OCT_COUNT(suited); i++) {
        const oct_conv_geom g = geom_of(suited[i].shape);
        char of_real[100] = "", of_bytes[100] = "";
        for (size_t k = 0; k < n_real; k++)
            if (real[k]->suits(&g))
                add_name(of_real, sizeof of_real, real[k]->name);
        for (size_t k = 0; k < n_bytes; k++)
            if (bytes[k]->suits(&g))
                add_name(of_bytes, sizeof of_bytes, bytes[k]->name);
        oct_check_wrong(t, strcmp(of_real, suited[i].real) != 0, "%s: float is for %s, not %s", suited[i].shape,
                        of_real, suited[i].real);
        oct_check_wrong(t, strcmp(of_bytes, suited[i].bytes) != 0, "%s: 8 bits are for %s, not %s", suited[i].shape,
                        of_bytes, suited[i].bytes);
    }
}

/* ---- which is chosen ---- */

/* Levels with all they stand on. */
#if defined(OCT_KERNELS_X86)
enum {
    AVX2 = OCT_ISA_AVX2,
    AVXVNNI = AVX2 | OCT_ISA_AVXVNNI,
    AVX512 = AVX2 | OCT_ISA_AVX512,
    AVX512VNNI = AVX512 | OCT_ISA_AVX512VNNI,
    AMX = AVX512VNNI | OCT_ISA_AMX
};
#endif

static const struct {
    const char *class;
    oct_isa have;
    const char *shape, *real, *bf16, *bytes;
} chosen[] = {
    { "scalar", OCT_ISA_REF, "h=56 w=56 c=64 oc=64", "dense", "dense", "dense" },
    { "scalar", OCT_ISA_REF, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "scalar", OCT_ISA_REF, "h=224 w=224 c=3 oc=64 oh=112 ow=112 kh=7 kw=7 sh=2 sw=2 ph=3 pw=3", "folded", "gather",
      "gather" },
    { "scalar", OCT_ISA_REF, "h=56 w=56 c=64 oc=64 groups=64 kh=3 kw=3 ph=1 pw=1", "depthwise", "depthwise",
      "depthwise" },
#if defined(OCT_KERNELS_X86)
    { "avx2-amd", AVX2, "h=56 w=56 c=64 oc=64", "dense", "dense", "dense" },
    { "avx2-amd", AVX2, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
    { "avx2-amd", AVX2, "h=7 w=7 c=512 oc=512 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "avx2-amd", AVX2, "h=56 w=56 c=64 oc=64 oh=28 ow=28 kh=3 kw=3 sh=2 sw=2 ph=1 pw=1", "indirect", "indirect",
      "indirect" },
    { "avx2-amd", AVX2, "h=56 w=56 c=24 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "gather" },
    { "avx2-amd", AVX2, "h=56 w=56 c=24 oc=64 oh=28 ow=28 sh=2 sw=2", "indirect", "indirect", "indirect" },
    { "avx2-amd", AVX2, "h=224 w=224 c=3 oc=64 oh=112 ow=112 kh=7 kw=7 sh=2 sw=2 ph=3 pw=3", "folded", "gather",
      "gather" },
    { "avxvnni", AVXVNNI, "h=56 w=56 c=24 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "avx512vnni", AVX512VNNI, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
    { "avx512vnni", AVX2, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
    { "avx512vnni-amd", AVX512VNNI, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
    { "avx512vnni-amd", AVX512VNNI, "h=7 w=7 c=512 oc=512 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "avx512vnni-zen4", AVX512VNNI, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
    { "avx512vnni-zen4", AVX512VNNI, "h=7 w=7 c=512 oc=512 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "amx", AMX, "h=56 w=56 c=64 oc=64", "dense", "dense", "dense" },
    { "amx", AMX, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "flat" },
    { "amx", AMX, "h=56 w=56 c=64 oc=64 oh=28 ow=28 sh=2 sw=2", "indirect", "indirect", "flat" },
    { "amx", AMX, "h=56 w=56 c=64 oc=64 groups=2 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "gather" },
    { "amx", AMX, "h=56 w=56 c=64 oc=2 groups=2 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "gather" },
    { "amx", AMX, "h=224 w=224 c=3 oc=64 oh=112 ow=112 kh=7 kw=7 sh=2 sw=2 ph=3 pw=3", "folded", "gather", "flat" },
    { "amx", AVX512, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "winograd" },
#elif defined(OCT_KERNELS_ARM)
    { "neon", OCT_ISA_NEON, "h=56 w=56 c=64 oc=64 kh=3 kw=3 ph=1 pw=1", "indirect", "indirect", "indirect" },
    { "neon", OCT_ISA_NEON, "h=56 w=56 c=3 oc=64 kh=3 kw=3 ph=1 pw=1", "folded", "gather", "gather" },
#endif
};

static void check_chosen(oct_check *t)
{
    for (size_t i = 0; i < OCT_COUNT(chosen); i++) {
        const oct_conv_geom g = geom_of(chosen[i].shape);
        oct_choice kernel;
        oct_cost_assume(chosen[i].class);
        const char *const got[] = { oct_sconv_choose(&g, chosen[i].have, false, &kernel)->name,
                                    oct_sconv_choose(&g, chosen[i].have, true, &kernel)->name,
                                    oct_qconv_choose(&g, chosen[i].have, NULL, &kernel)->name };
        const char *const want[] = { chosen[i].real, chosen[i].bf16, chosen[i].bytes };
        static const char *const types[] = { "float", "bf16", "8 bits" };
        oct_cost_assume(NULL);
        for (size_t k = 0; k < OCT_COUNT(got); k++)
            oct_check_wrong(t, strcmp(got[k], want[k]) != 0, "%s with %s, %s: %s takes %s, not %s", chosen[i].class,
                            oct_isa_name(chosen[i].have), chosen[i].shape, types[k], got[k], want[k]);
    }
}

/* Whatever the shape, the costs and the record that is wanted: what is chosen suits, and there is something. */
static void check_any(oct_check *t)
{
    static const int64_t channels[] = { 1, 2, 3, 15, 16, 17, 32, 48 };
    static const char *const classes[] = { "scalar", "avx2-amd", "avx512vnni", "avx512vnni-zen4", "amx", NULL };
    for (size_t i = 0; i < 20000; i++) {
        oct_conv_geom g = geom_of("h=6 w=6");
        int64_t *const axes[][6] = { { &g.d, &g.od, &g.kd, &g.sd, &g.dd, &g.pd },
                                     { &g.h, &g.oh, &g.kh, &g.sh, &g.dh, &g.ph },
                                     { &g.w, &g.ow, &g.kw, &g.sw, &g.dw, &g.pw } };
        for (size_t a = i % 5 != 0; a < 3; a++) {
            *axes[a][1] += (int64_t)oct_check_below(t, 3) / 2;
            *axes[a][2] = 1 + (int64_t)oct_check_below(t, 3);
            *axes[a][3] = 1 + (int64_t)oct_check_below(t, 4) / 3;
            *axes[a][4] = 1 + (int64_t)oct_check_below(t, 4) / 3;
            *axes[a][5] = (int64_t)oct_check_below(t, 3);
        }
        g.groups = 1 + (int64_t)oct_check_below(t, 2) * (int64_t)oct_check_below(t, 3);
        g.c = channels[oct_check_below(t, OCT_COUNT(channels))] * g.groups;
        g.oc = (1 + (int64_t)oct_check_below(t, 2) * 40) * g.groups;
        g.ldx = g.c, g.ldy = g.oc;
        g.transposed = i % 7 == 6;
        const bool bf16 = i % 2;
        oct_choice kernel;
        oct_cost_assume(classes[i % OCT_COUNT(classes)]);
        oct_check_want_any(t, false);
        const oct_sconv_algorithm *s = oct_sconv_choose(&g, oct_isa_active(), bf16, &kernel);
        oct_check_wrong(t, !s || !kernel.record || !s->suits(&g) || (bf16 && !s->bf16), "%s for float does not suit",
                        s ? s->name : "nothing");
        oct_check_want_any(t, true);
        const oct_qconv_algorithm *q = oct_qconv_choose(&g, oct_isa_active(), NULL, &kernel), *other = NULL;
        if (q && q->picky)
            other = oct_qconv_choose(&g, oct_isa_active(), q, &kernel);
        oct_choice_want(NULL, NULL);
        oct_cost_assume(NULL);
        oct_check_wrong(t, !q || !q->suits(&g), "%s for 8 bits does not suit", q ? q->name : "nothing");
        oct_check_wrong(t, q && q->picky && (!other || other->picky || !other->suits(&g)),
                        "%s may decline weights, and %s takes its place", q ? q->name : "",
                        other ? other->name : "nothing");
    }
}

/* A class that was not measured has the costs of the nearest of its family; what Arm's chips take, nobody has measured.
 */
static void check_origins(oct_check *t)
{
    static const char *const of[][2] = { { "amx", "amx" },
                                         { "amx-amd", "amx" },
                                         { "avx512", "avx512vnni" },
                                         { "avx512vnni-amd", "avx512vnni-amd" },
                                         { "avx512-zen4", "avx512vnni-zen4" },
                                         { "amx-zen4", "amx" },
                                         { "avx2", "avx2-amd" },
                                         { "scalar", "avx2-amd" },
                                         { "neon", NULL },
                                         { "i8mm", NULL } };
    for (size_t i = 0; i < OCT_COUNT(of); i++) {
        oct_cost_assume(of[i][0]);
        const oct_cost_origin *from = oct_cost_measured();
        oct_cost_assume(NULL);
        const char *got = from ? from->class : "none", *want = of[i][1] ? of[i][1] : "none";
        oct_check_wrong(t, strcmp(got, want) != 0, "class %s has the costs of %s, not %s", of[i][0], got, want);
        oct_check_wrong(t, from && (!from->machine[0] || strncmp(from->date, "20", 2) != 0), "costs of %s have no date",
                        got);
    }
}

void check_choice(oct_check *t)
{
    check_origins(t);
    check_suited(t);
    check_chosen(t);
    check_any(t);
}
