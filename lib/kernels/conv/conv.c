/* lib/kernels/conv/conv.c -- the geometry of convolutions and its checks. */
#include "kernels/conv/conv.h"

#include "base/mem.h"

void oct_conv_geom_init(oct_conv_geom *g)
{
    *g = (oct_conv_geom){ .n = 1,
                          .d = 1,
                          .h = 1,
                          .w = 1,
                          .c = 1,
                          .od = 1,
                          .oh = 1,
                          .ow = 1,
                          .oc = 1,
                          .kd = 1,
                          .kh = 1,
                          .kw = 1,
                          .sd = 1,
                          .sh = 1,
                          .sw = 1,
                          .dd = 1,
                          .dh = 1,
                          .dw = 1,
                          .groups = 1 };
}

static oct_status check_count(const int64_t *dims, int n, const char *what, oct_err *err)
{
    int64_t count;
    /* 2^48 elements: no product of an element count with a small factor overflows later. */
    if (!oct_count(dims, n, &count) || count > (int64_t)1 << 48)
        return oct_fail(err, OCT_ENOMEM, "convolution: %s has too many elements", what);
    return OCT_OK;
}

oct_status oct_conv_geom_check(const oct_conv_geom *g, oct_err *err)
{
    const int64_t ones[] = { g->d,  g->h,  g->w,  g->c,  g->od, g->oh, g->ow, g->oc, g->kd,
                             g->kh, g->kw, g->sd, g->sh, g->sw, g->dd, g->dh, g->dw, g->groups };
    for (size_t i = 0; i < OCT_COUNT(ones); i++)
        if (ones[i] < 1)
            return oct_fail(err, OCT_EMALFORMED, "convolution: a dimension, stride or dilation is %lld",
                            (long long)ones[i]);
    const int64_t small[] = { g->sd, g->sh, g->sw, g->dd, g->dh, g->dw, g->pd, g->ph, g->pw };
    for (size_t i = 0; i < OCT_COUNT(small); i++)
        if (small[i] > INT32_MAX || small[i] < -(int64_t)INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "convolution: stride, dilation or padding %lld is out of range",
                            (long long)small[i]);
    if (g->n < 0 || g->c % g->groups || g->oc % g->groups)
        return oct_fail(err, OCT_EMALFORMED, "convolution: %lld groups do not divide %lld and %lld channels",
                        (long long)g->groups, (long long)g->c, (long long)g->oc);
    if ((g->ldx && g->ldx < g->c) || (g->ldy && g->ldy < g->oc))
        return oct_fail(err, OCT_EINTERNAL, "convolution: pixels overlap");
    const int64_t x[] = { g->n, g->d, g->h, g->w, g->ldx ? g->ldx : g->c };
    const int64_t y[] = { g->n, g->od, g->oh, g->ow, g->ldy ? g->ldy : g->oc };
    const int64_t w[] = { g->c / g->groups, g->oc, g->kd, g->kh, g->kw };
    OCT_TRY(check_count(x, 5, "input", err));
    OCT_TRY(check_count(y, 5, "output", err));
    return check_count(w, 5, "weights", err);
}
