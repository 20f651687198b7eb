/* lib/observers/obs_percentile.c -- the range that contains all but a given share of the values. */
#include "observers/view.h"

/* The smallest magnitude that at most `over` values of the side exceed. */
static double cut(const oct_view *v, int side, double over)
{
    const oct_side *d = &v->side[side];
    if (d->peak == 0 || d->peak_count > over)
        return d->peak;
    double keep = d->all.n + d->peak_count - over, lo = 0, hi = d->peak;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (oct_view_below(v, side, mid).n >= keep)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

/* Each tail may lose the share. A symmetric range has only one tail, that of magnitudes. */
static void select_percentile(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    double over = v->count * ((100 - param) / 100) * (1 + 1e-9); /* 100 - 99.9 is a little less than 0.1 */
    if (!g.symmetric) {
        *out = (oct_range){ oct_view_f32(0 - cut(v, 1, over)), oct_view_f32(cut(v, 0, over)) };
        return;
    }
    double pos = v->side[0].peak, neg = v->side[1].peak, lo = 0, hi = pos > neg ? pos : neg;
    const double peak = hi;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2, beyond = 0;
        for (int s = 0; s < 2; s++)
            beyond +=
                v->side[s].all.n - oct_view_below(v, s, mid).n + (v->side[s].peak > mid ? v->side[s].peak_count : 0);
        if (beyond <= over)
            hi = mid;
        else
            lo = mid;
    }
    hi = hi > peak ? peak : hi;
    *out = (oct_range){ oct_view_f32(0 - (hi < neg ? hi : neg)), oct_view_f32(hi < pos ? hi : pos) };
}

const oct_observer oct_observer_percentile = {
    .name = "hist-percentile",
    .summary = "all but a share of the values: hist-percentile=99.99 (percent kept)",
    .has_param = true,
    .param = 99.99,
    .param_min = 50,
    .param_max = 100,
    .select = select_percentile
};
