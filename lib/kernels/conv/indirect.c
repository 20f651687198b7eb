/* lib/kernels/conv/indirect.c -- convolution through pointers to the input pixel of every tap. */
#include "kernels/conv/qproduct.h"
#include "kernels/conv/sproduct.h"

static bool suits(const oct_conv_geom *g)
{
    return !oct_conv_is_dense(g) && !oct_conv_is_depthwise(g) && !oct_conv_joins_taps(g);
}

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
    oct_sproduct_run(j, j->x, &j->p->g, false);
}

const oct_sconv_algorithm oct_sconv_indirect = {
    .name = "indirect",
    .bf16 = true,
    .suits = suits,
    .cost = oct_sproduct_cost,
    .sizes = sizes_s,
    .pack = pack_s,
    .run = run_s,
    .in_place = oct_sproduct_in_place,
};

static oct_choice cost_q(const oct_conv_geom *g, oct_isa have)
{
    const oct_extent e = oct_conv_extent(g);
    oct_choice c = { 0 };
    size_t n;
    const oct_qgemm_kernel *k = oct_qgemm_kernels(&n);
    for (size_t i = 0; i < n; i++)
        if (!oct_qproduct_gathers(&k[i], g))
            oct_qgemm_offer(&c, &k[i], have, &e, false);
    return c;
}

static bool sizes_q(oct_qconv *p, const void *kernel, oct_conv_sizes *s)
{
    return oct_qproduct_sizes(p, kernel, 1, false, s);
}

static void run_q(const oct_qconv_job *j)
{
    const oct_qtiles t = oct_qproduct_tiles(j, &j->p->g, false);
    oct_qtiles_run(&t, j->pool);
}

const oct_qconv_algorithm oct_qconv_indirect = {
    .name = "indirect",
    .suits = suits,
    .cost = cost_q,
    .sizes = sizes_q,
    .pack = oct_qproduct_pack,
    .run = run_q,
};
