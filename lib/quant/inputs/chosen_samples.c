/* Which samples calibrate, which choose among alternatives, and which judge the result; and why nothing can be measured
 * on them. (Which of all are used at all: data/source/choice.c.) */
#include "quant/convert/convert_int.h"

#include "runtime/runnable.h"

/* Whether the whole float model runs here. If not, the quantized one cannot be compared with it. */
const char *oct_conversion_unjudged(const oct_conversion *c, const oct_graph *fl)
{
    if (oct_source_is_once(c->src))
        return "the samples can be read once only (--samples N would keep some)";
    return oct_runnable_whole(fl) ? NULL : "the model has an operator that cannot be run here";
}

/* Whether samples form pairs. Picking single samples would leave few complete pairs. */
bool oct_conversion_in_pairs(const oct_conversion *c)
{
    return oct_judging_kind(&(oct_judging){ .rule = c->o.rule, .truth = c->o.truth }) == OCT_SET_PAIRS;
}

void oct_conversion_keep_aside(oct_conversion *c, bool calibrates)
{
    const bool keep = calibrates && !oct_conversion_unjudged(c, c->m->graph) && !oct_conversion_in_pairs(c);
    oct_source_hold(c->src, keep);
    if (c->o.listener.chosen)
        c->o.listener.chosen(c->o.listener.arg, c->src);
    const oct_source_choice x = oct_source_chosen(c->src);
    if (keep && x.aside > 0 && (!x.asked || x.chosen < x.asked))
        oct_conversion_say(c, 1, "samples: %lld of %lld are kept aside, to judge the result", (long long)x.aside,
                           (long long)x.total);
    c->judged = !calibrates ? OCT_JUDGED_ANY : x.aside > 0 ? OCT_JUDGED_OTHERS : OCT_JUDGED_SAME;
}

enum { SHOW_FIVE_POINTS = 80 }; /* samples without a change: 73 and more exclude a loss of 5 points */

/* How many samples judge if no goal is set: enough for a conclusion, and fewer for large models. This is a count and
 * not a time, because a report must not depend on how busy the machine is. */
int64_t oct_enough_to_judge(const oct_graph *g)
{
    const int64_t macs = oct_sample_macs(g), n = 100000000000 / macs;
    return macs <= 5000000000 / SHOW_FIVE_POINTS ? SHOW_FIVE_POINTS : n < 16 ? 16 : n > 64 ? 64 : n;
}

oct_pick oct_pick_judging(const oct_conversion *c, const oct_graph *fl)
{
    return (oct_pick){ .aside = c->judged == OCT_JUDGED_OTHERS,
                       .most = oct_conversion_in_pairs(c) ? 0 : oct_enough_to_judge(fl) };
}

/* If there are few samples and some are broken, a half may be empty. */
oct_pick oct_pick_half(const oct_conversion *c, int h, int64_t most)
{
    return c->o.whole ? (oct_pick){ .most = most } : (oct_pick){ .most = most, .i = h, .n = 2, .mixed = true };
}

const char oct_no_ranges[] = "nothing has a range to choose";
static const char oct_no_rounding[] = "nothing is rounded";

const char *oct_no_measuring(const oct_conversion *c)
{
    return oct_qjob_has_qparams(c->job) ? oct_no_running(c) : oct_no_ranges;
}

const char *oct_no_simulating(const oct_conversion *c)
{
    return oct_qjob_rounds(c->job) ? oct_no_running(c) : oct_no_rounding;
}

const char *oct_no_running(const oct_conversion *c)
{
    if (c->o.synthetic)
        return "the samples are synthetic";
    if (!oct_runnable_whole(c->m->graph))
        return "the model has an operator that is not known here";
    return oct_source_is_once(c->src) ? "the data can be read once only" : NULL;
}

int64_t oct_measured_samples(const oct_conversion *c)
{
    const int64_t n = 2000000000 / oct_sample_macs(c->m->graph);
    return n < 8 ? 8 : n > 64 ? 64 : n;
}
