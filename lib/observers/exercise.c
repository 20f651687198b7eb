/* Still channels and unmoved ranges of a calibration table. */
#include "observers/exercise.h"

enum { FEW_CHANNELS = 8, FEW_SAMPLES = 10 };
#define MOST_RANGES 0.75

static size_t still_channels(const oct_chan_stats *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->channels; i++)
        n += s->c[i].n > 0 && s->c[i].min == s->c[i].max;
    return n;
}

static void look_at_channels(oct_exercise *x, const oct_calib_tensor *t)
{
    const size_t n = t->chan.channels, still = still_channels(&t->chan);
    if (n < FEW_CHANNELS)
        return;
    x->layers++;
    if (2 * still <= n)
        return;
    x->still++;
    if (!x->stillest || still * x->channels > x->still_channels * n) {
        x->stillest = t->name;
        x->still_channels = still;
        x->channels = n;
    }
}

/* No sample's minimum is below the smallest one, so they are all equal if their sum is that of equal ones. A clamp that
 * all samples reach has the same effect, but then samples usually have different numbers of values at the clamp. */
static bool is_unmoved(const oct_stats *s)
{
    const double n = (double)s->samples;
    return oct_xsum_value(&s->min_sum) == n * (double)s->min && oct_xsum_value(&s->max_sum) == n * (double)s->max &&
           s->min_count % s->samples == 0 && s->max_count % s->samples == 0 && s->zeros % s->samples == 0;
}

oct_exercise oct_calib_exercise(const oct_calib *c)
{
    oct_exercise x = { 0 };
    for (size_t i = 0; i < c->n_tensors; i++) {
        const oct_calib_tensor *t = c->tensors[i];
        if (t->off)
            continue;
        look_at_channels(&x, t);
        if (t->stats.samples < 2)
            continue;
        x.ranges++;
        x.unmoved += is_unmoved(&t->stats);
    }
    return x;
}

void oct_exercise_tell(const oct_exercise *x, oct_buf *b)
{
    if ((double)x->unmoved > MOST_RANGES * (double)x->ranges)
        oct_buf_printf(
            b,
            "%zu of %zu ranges are the same in every sample: the samples hardly differ, or the model does not look at them",
            x->unmoved, x->ranges);
    else if (x->still)
        oct_buf_printf(b,
                       "most channels of %zu of %zu tensors have one value in all samples (%zu of %zu in '%s'): "
                       "either the model does not use them, or the samples do not exercise it; give more varied ones",
                       x->still, x->layers, x->still_channels, x->channels, x->stillest);
}

void oct_exercise_few(const oct_calib *c, oct_buf *b)
{
    if (c->samples && c->samples < FEW_SAMPLES)
        oct_buf_printf(b, "ranges come from %llu sample%s: a few hundred are advised", (unsigned long long)c->samples,
                       c->samples == 1 ? "" : "s");
}
