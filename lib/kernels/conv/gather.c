/* lib/kernels/conv/gather.c -- convolution through blocks of rows that are copied together, all taps as one k. */
#include "kernels/conv/qproduct.h"
#include "kernels/conv/sproduct.h"

static bool sizes_s(oct_sconv *p, const void *kernel, oct_conv_sizes *s)
{
    return oct_sproduct_sizes(p, kernel, oct_conv_taps(&p->g), true, s);
}

static bool suits_s(const oct_conv_geom *g)
{
    return !oct_conv_is_depthwise(g) && oct_conv_joins_taps(g);
}

static void pack_s(const oct_sconv *p, const float *w, void *packed)
{
    oct_sproduct_pack(p, w, true, packed);
}

static void run_s(const oct_sconv_job *j)
{
    oct_sproduct_run(j, j->x, &j->p->g, true);
}

const oct_sconv_algorithm oct_sconv_gather = {
    .name = "gather",
    .bf16 = true,
    .suits = suits_s,
    .cost = oct_sproduct_cost,
    .sizes = sizes_s,
    .pack = pack_s,
    .run = run_s,
    .in_place = oct_sproduct_in_place,
};

/* Any but those whose pixels are rows as they lie. */
static bool suits_q(const oct_conv_geom *g)
{
    return !oct_conv_is_dense(g) && !oct_conv_is_depthwise(g);
}

/* Copying lines of taps, of all pixels. */
static double copying(const oct_conv_geom *g)
{
    const oct_extent lines = { oct_conv_pixels(g) * (size_t)(g->kd * g->kh), 1, (size_t)(g->kw * (g->c / g->groups)),
                               0 };
    return oct_cost_of("oct_rows_gather", &lines, (oct_cost_tile){ 1, 1, 1, 1 });
}

/* Pixels of many channels are gathered for kernels that need it alone. Those of chains copy the rows of a block in any
 * case, which their costs include. */
static oct_choice cost_q(const oct_conv_geom *g, oct_isa have)
{
    const bool joins = oct_conv_joins_taps(g);
    oct_choice c = { 0 };
    size_t n;
    const oct_qgemm_kernel *k = oct_qgemm_kernels(&n);
    for (size_t i = 0; i < n; i++)
        if (joins || oct_qproduct_gathers(&k[i], g)) {
            oct_extent e = oct_conv_extent(g);
            e.more = joins || !k[i].chain ? copying(g) : 0;
            oct_qgemm_offer(&c, &k[i], have, &e, false);
        }
    return c;
}

static bool sizes_q(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    return oct_qproduct_sizes(p, kernel, oct_conv_taps(&p->g), true, s);
}

static void run_q(const oct_qconv_job *j)
{
    const oct_qtiles t = oct_qproduct_tiles(j, &j->p->g, true);
    oct_qtiles_run(&t, j->pool);
}

const oct_qconv_algorithm oct_qconv_gather = {
    .name = "gather",
    .suits = suits_q,
    .cost = cost_q,
    .sizes = sizes_q,
    .pack = oct_qproduct_pack,
    .run = run_q,
};
