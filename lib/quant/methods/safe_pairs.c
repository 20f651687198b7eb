/* Weights that are constructed to be safe from saturation in 16 bits, instead of u8 weights, which ONNX Runtime
 * multiplies with slower kernels.
 *
 * The work is done where weights are rounded. With samples, rounding.c keeps pairs within their bound and chooses
 * suitable scales. Without, weights.c increases scales until pairs are safe. This file enables that, and counts the
 * result. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "quant/weights/constants.h"

static void prepare(oct_qjob_opts *o)
{
    o->safe_pairs = true;
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    if (!oct_target_saturates(c->o.job.target))
        r->why = "the target adds products in 32 bits";
    return OCT_OK;
}

/* The size of layers that run on integers, and of those with s8 weights: all of these, and those that are safe without
 * a change. */
typedef struct extent {
    double all, before, after;
} extent;

static void count(extent *e, double n, const qweights *q)
{
    const bool s8 = q->quant.dtype == OCT_S8;
    e->all += n;
    e->after += s8 ? n : 0;
    e->before += s8 && !q->widened ? n : 0;
}

static void add_up(const oct_qjob *j, extent *macs, extent *weights)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        const qweights *q = j->constants[id].weights[0];
        const oct_scheme scheme = oct_scheme_of(j, id);
        if (!q || (scheme != OCT_SCHEME_STATIC && scheme != OCT_SCHEME_DYNAMIC))
            continue;
        count(macs, (double)oct_node_macs(j->g, id), q);
        count(weights, (double)oct_layer_weight_count(j->g, id), q);
    }
    for (size_t i = 0; i < j->n_body; i++)
        add_up(j->body[i].job, macs, weights);
}

static void gain(const oct_conversion *c, oct_method_result *r)
{
    extent macs = { 0 }, weights = { 0 };
    add_up(c->job, &macs, &weights);
    const extent *e = macs.all > 0 ? &macs : &weights; /* multiply-accumulates are unknown if shapes are */
    if (e->all == 0) {
        r->ran = false;
        r->why = "no layer has weights of 8 bits";
        return;
    }
    r->measure = e == &macs ? "share of multiply-accumulates with s8 weights" : "share of s8 weights";
    r->unit = "";
    r->before = e->before / e->all;
    r->after = e->after / e->all;
}

const oct_method oct_method_safe_pairs = {
    .name = "safe-pairs",
    .summary = "weights that cannot saturate sums of 16 bits, where that costs little",
    .step = OCT_STEP_WEIGHTS,
    .needs = OCT_NEEDS_NOTHING,
    .by_default = true,
    .prepare = prepare,
    .run = run,
    .gain = gain,
};
