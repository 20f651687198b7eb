/* lib/kernels/conv/dense.c -- 1x1 convolution of whole images: pixels are the rows of a product as they lie. */
#include "kernels/conv/qproduct.h"
#include "kernels/conv/sproduct.h"

static bool sizes_s(oct_sconv *p, const void *kernel, oct_conv_sizes *s)
{
    return oct_sproduct_sizes(p, kernel, 1, false, s);
}

static void pack_s(const oct_sconv *p, const float *w, void *packed)
{
    oct_sproduct_pack(p, w, false, packed);
}

static void run_s(const oct_sconv_job *j)
{
    oct_sproduct_run(j, j->x, NULL, false);
}

const oct_sconv_algorithm oct_sconv_dense = {
    .name = "dense",
    .bf16 = true,
    .suits = oct_conv_is_dense,
    .cost = oct_sproduct_cost,
    .sizes = sizes_s,
    .pack = pack_s,
    .run = run_s,
    .in_place = oct_sproduct_in_place,
};

/* Sorting pays where values lie around their zero point; those of convolutions, mostly rectified, do not. */
static oct_choice cost_q(const oct_conv_geom *g, oct_isa have)
{
    const oct_extent e = oct_conv_extent(g);
    return oct_qgemm_choose(have, &e, e.rows == 1);
}

static bool sizes_q(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    if (!oct_qproduct_sizes(p, kernel, 1, false, s))
        return false;
    if (!p->kernel->row)
        return true;
    s->thread = 0;
    return oct_qrow_scratch((size_t)p->g.c, (size_t)p->g.oc, &s->shared);
}

static void run_q(const oct_qconv_job *j)
{
    const oct_qtiles t = oct_qproduct_tiles(j, NULL, false);
    oct_qtiles_run(&t, j->pool);
}

const oct_qconv_algorithm oct_qconv_dense = {
    .name = "dense",
    .suits = oct_conv_is_dense,
    .cost = cost_q,
    .sizes = sizes_q,
    .pack = oct_qproduct_pack,
    .run = run_q,
};
