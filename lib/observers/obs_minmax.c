/* lib/observers/obs_minmax.c -- the exact range of all values. */
#include "observers/view.h"

static void select_minmax(const oct_view *v, oct_qrange g, double param, oct_range *out)
{
    *out = oct_view_range(v);
}

const oct_observer oct_observer_minmax = {
    .name = "minmax", .summary = "smallest and largest value", .select = select_minmax
};
