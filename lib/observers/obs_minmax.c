/* lib/observers/obs_minmax.c -- the range of all values, or a wider one, because later values may lie beyond those that
 * were seen. */
#include "observers/view.h"

static void select_minmax(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    const oct_range seen = oct_view_range(v);
    *out = (oct_range){ oct_view_f32(seen.lo * param), oct_view_f32(seen.hi * param) };
}

const oct_observer oct_observer_minmax = { .name = "minmax",
                                           .summary = "the smallest and the largest value, times a number: minmax=2",
                                           .has_param = true,
                                           .param = 1,
                                           .param_min = 1,
                                           .param_max = 16,
                                           .select = select_minmax };
