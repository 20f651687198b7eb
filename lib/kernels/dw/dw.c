/* lib/kernels/dw/dw.c -- lists of depthwise kernels, and the choice among them. */
#include "kernels/dw/dw_int.h"

#define OCT_SDW(isa, fn) { #fn, OCT_ISA_##isa, fn, NULL, OCT_DW_CHANNELS, 1 },
#define OCT_SDW_LINES(isa, fn, channels, multiple) { #fn, OCT_ISA_##isa, NULL, fn, channels, multiple },
#define OCT_QDW(isa, fn)
#define OCT_QDW_COLUMNS(isa, fn, exact)
static const oct_sdw_kernel sdw[] = {
#include "kernels/dw/dw.inc"
};
#undef OCT_SDW
#undef OCT_SDW_LINES
#undef OCT_QDW
#undef OCT_QDW_COLUMNS
#define OCT_SDW(isa, fn)
#define OCT_SDW_LINES(isa, fn, channels, multiple)
#define OCT_QDW(isa, fn) { #fn, OCT_ISA_##isa, fn, NULL, false },
#define OCT_QDW_COLUMNS(isa, fn, exact) { #fn, OCT_ISA_##isa, NULL, fn, exact },
static const oct_qdw_kernel qdw[] = {
#include "kernels/dw/dw.inc"
};

const oct_sdw_kernel *oct_sdw_kernels(size_t *n)
{
    *n = OCT_COUNT(sdw);
    return sdw;
}

const oct_qdw_kernel *oct_qdw_kernels(size_t *n)
{
    *n = OCT_COUNT(qdw);
    return qdw;
}

/* A tile is a pixel, a row of it some of its channels. A step is a tap, for records that slide one that the pixel
 * before does not have. */
static void offer(oct_choice *p, const void *record, const char *name, const oct_conv_geom *g, size_t channels,
                  bool slides)
{
    const size_t rows = ((size_t)g->c + channels - 1) / channels;
    const oct_extent e = { rows, oct_conv_pixels(g), slides ? (size_t)g->kh * oct_rows_advance(g) : oct_conv_taps(g) };
    oct_choice_offer(p, record, name, &e, (oct_cost_tile){ .mr = rows, .nr = 1, .unit = 1, .kr = 1 });
}

/* Kernels of 3 taps along the line that slide along it. */
static bool suits_lines(const oct_sdw_kernel *k, const oct_conv_geom *g)
{
    return g->kw == 3 && g->kd == 1 && (size_t)g->c % k->multiple == 0 && g->ow >= 4 && g->ow <= OCT_SDW_LINE &&
           oct_rows_advance(g) < 3;
}

oct_choice oct_sdw_choose(oct_isa have, const oct_conv_geom *g)
{
    oct_choice p = { 0 };
    for (size_t i = 0; i < OCT_COUNT(sdw); i++)
        if ((sdw[i].isa & ~have) == 0 && (!sdw[i].lines || suits_lines(&sdw[i], g)))
            offer(&p, &sdw[i], sdw[i].name, g, sdw[i].channels, sdw[i].lines != NULL);
    return p;
}

oct_choice oct_qdw_choose(oct_isa have, const oct_conv_geom *g)
{
    const bool columns = g->kh == 3 && g->kw == 3 && g->kd == 1 && g->c >= 16;
    oct_choice p = { 0 };
    for (size_t i = 0; i < OCT_COUNT(qdw); i++)
        if ((qdw[i].isa & ~have) == 0 && (!qdw[i].columns || columns))
            offer(&p, &qdw[i], qdw[i].name, g, OCT_DW_CHANNELS, qdw[i].columns != NULL);
    return p;
}

/* About 16k channel values an item, a bounded table of pointers. */
size_t oct_dw_block(size_t c)
{
    const size_t fit = 16384 / (c + 1);
    return fit < 8 ? 8 : fit > 128 ? 128 : fit / 8 * 8;
}
