/* Shares from counts of classes. */
#include "eval/metrics/class_sums.h"

#include <math.h>

oct_class_sums oct_class_sums_in(double *scratch, size_t n)
{
    for (size_t i = 0; i < OCT_SUMS_OF_CLASS * n; i++)
        scratch[i] = 0;
    return (oct_class_sums){ scratch, scratch + n, scratch + 2 * n, n };
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

double oct_share_of(oct_share what, double hit, double extra, double missed)
{
    switch (what) {
    case OCT_SHARE_PRECISION: return share(hit, hit + extra);
    case OCT_SHARE_RECALL: return share(hit, hit + missed);
    case OCT_SHARE_F1: return share(2 * hit, 2 * hit + extra + missed);
    default: return hit + extra + missed > 0 ? hit / (hit + extra + missed) : NAN;
    }
}

double oct_share_mean(oct_share what, const oct_class_sums *s)
{
    double sum = 0, n = 0;
    for (size_t c = 0; c < s->n; c++) {
        if (!(s->hit[c] + s->extra[c] + s->missed[c] > 0))
            continue;
        sum += oct_share_of(what, s->hit[c], s->extra[c], s->missed[c]);
        n++;
    }
    return n > 0 ? sum / n : NAN;
}
