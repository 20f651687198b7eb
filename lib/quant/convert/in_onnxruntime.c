/* What a run of the result takes in ONNX Runtime, with Octet's provider and without: an estimate by the table of costs
 * of the CPUs for which it is known what the provider gains (targets/claim.h). */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "targets/claim.h"

#include <math.h>
#include <string.h>

#define LEAST_TIME 1e6    /* ns in float: of shorter runs calls and borders decide, which are predicted worst */
#define MOST_UNKNOWN 0.05 /* share of the multiply-accumulates in layers that the table does not know */
/* The largest share of the time that the provider may save: above, table and gains do not speak of the same work. */
#define MOST_GAIN 0.75

/* Nanoseconds more for a multiply-accumulate of weights u8, for which ONNX Runtime has no kernel with VNNI: products of
 * 64 to 256 rows took 6.1 to 6.2 ps more by the clock of the table, whose weights are s8. */
#define UNSIGNED_MAC 6e-3

/* Whether the table tells what a layer takes as it is written: not of blocks, 16-bit types or bodies, whose runs are
 * not known. */
static bool is_told(const oct_conversion *c, const oct_layer *l)
{
    const oct_layer_decision *d = &l->d;
    const bool usual =
        d->scheme == OCT_SCHEME_FLOAT || d->scheme == OCT_SCHEME_STATIC || d->scheme == OCT_SCHEME_DYNAMIC;
    return usual && !d->block && !isnan(d->on_floats) && !*d->where &&
           (!d->integer || !d->row || oct_dtype_bits(oct_asked_activations(c->job, d->row)) == 8);
}

/* Nanoseconds that weights of type u8 take in addition; NaN: too much of the model is not told. */
static double more_of_weights(const oct_conversion *c)
{
    double all = 0, unknown = 0, u8 = 0;
    for (size_t i = 0; i < c->n_layers; i++) {
        const oct_layer *l = &c->layers[i];
        all += (double)l->macs;
        unknown += is_told(c, l) ? 0 : (double)l->macs;
        u8 += l->d.integer && l->d.weights == OCT_U8 ? (double)l->macs : 0;
    }
    return unknown <= MOST_UNKNOWN * all ? UNSIGNED_MAC * u8 : NAN;
}

oct_status oct_conversion_estimate(oct_conversion *c, oct_err *err)
{
    const oct_target_times x = oct_qjob_expected(c->job);
    const double more = more_of_weights(c);
    const bool elsewhere =
        oct_target_rules_of(c->o.job.target)->proof != OCT_PROOF_RUN; /* its tables are those of other devices */
    double gain;
    for (size_t i = 0; i < x.n; i++) {
        const char *costs = oct_target_costs_name(c->o.job.target, i);
        if (strcmp(costs, OCT_CLAIM_COSTS) != 0 || elsewhere || c->was_quantized || isnan(more) ||
            x.on_floats[i] < LEAST_TIME)
            continue;
        OCT_TRY(oct_claim_gain(c->m->graph, &gain, err));
        if (gain > 0 && gain <= MOST_GAIN * x.decided[i])
            c->in_onnxruntime = (oct_in_onnxruntime){ costs, (x.decided[i] + more) / x.on_floats[i],
                                                      (x.decided[i] - gain) / x.on_floats[i] };
    }
    return OCT_OK;
}
