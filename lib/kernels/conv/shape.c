/* lib/kernels/conv/shape.c -- what algorithms of convolution ask about a shape. */
#include "kernels/conv/shape.h"

#include "kernels/rows.h"

bool oct_conv_is_dense(const oct_conv_geom *g)
{
    return oct_conv_taps(g) == 1 && g->sd == 1 && g->sh == 1 && g->sw == 1 && !g->pd && !g->ph && !g->pw &&
           g->od == g->d && g->oh == g->h && g->ow == g->w && g->groups == 1;
}

bool oct_conv_is_depthwise(const oct_conv_geom *g)
{
    return g->groups > 1 && g->c == g->groups && g->oc == g->groups;
}

bool oct_conv_joins_taps(const oct_conv_geom *g)
{
    enum { FEW = 16 };
    return oct_conv_taps(g) > 1 && g->c / g->groups < FEW;
}

oct_extent oct_conv_extent(const oct_conv_geom *g)
{
    return (oct_extent){ oct_conv_pixels(g), (size_t)(g->oc / g->groups), oct_conv_taps(g) * (size_t)(g->c / g->groups),
                         0 };
}
