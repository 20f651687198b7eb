/* One difference in words. */
#include "eval/report.h"

#include <math.h>
#include <stdio.h>

const char *oct_report_drop(char dst[160], const oct_eval_score *s)
{
    dst[0] = 0;
    if (isnan(s->drop))
        return dst;
    if (s->drop == 0 && s->lo == 0 && s->hi == 0)
        return "the same on every sample";
    const bool points = s->metric->kind == OCT_METRIC_PROPORTION, better = s->drop < 0;
    const double unit = points ? 100 : 1;
    const char *word = s->drop == 0 ? "difference" : better ? "better" : "worse";
    int n = points ? snprintf(dst, 160, "%.2f points %s", fabs(s->drop) * unit, word)
                   : snprintf(dst, 160, "%.4g %s", fabs(s->drop), word);
    /* The interval is of what the word says: for "better", that of the gain. */
    const double lo = (better ? -s->hi : s->lo) * unit + 0.0, hi = (better ? -s->lo : s->hi) * unit + 0.0;
    if (!isnan(s->lo) && n > 0 && n < 160)
        snprintf(dst + n, (size_t)(160 - n), points ? " (95 %%: %.2f to %.2f)%s" : " (95 %%: %.4g to %.4g)%s", lo, hi,
                 s->within_noise ? ", within noise" : "");
    return dst;
}
