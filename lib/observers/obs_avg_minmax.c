/* lib/observers/obs_avg_minmax.c -- the mean of the samples' minima and maxima. */
#include "observers/view.h"

static void select_avg(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    const oct_stats *s = v->stats;
    oct_range full = oct_view_range(v);
    double n = s->samples ? (double)s->samples : 1;
    double lo = oct_xsum_value(&s->min_sum) / n, hi = oct_xsum_value(&s->max_sum) / n;
    /* Mask-like values could pull a mean beyond the range of the values that count. */
    out->lo = lo < full.lo ? full.lo : lo < 0 ? oct_view_f32(lo) : 0;
    out->hi = hi > full.hi ? full.hi : hi > 0 ? oct_view_f32(hi) : 0;
}

const oct_observer oct_observer_avg_minmax = { .name = "avg-minmax",
                                               .summary = "mean of each sample's smallest and largest value",
                                               .select = select_avg };
