/* Tries what a warning of loss would name, where nothing else was: the scheme whose ranges are those of each sample,
 * and those that leave activations float. Each is converted apart, from a copy of the float model, and judged like the
 * result, so that nothing that was decided can change. Of larger models it stays a guess, since another copy of their
 * weights would take more memory than the conversion did.
 *
 * Numbers that no score judges are never good enough for everybody, and few samples say little of classes. For these,
 * what leaves activations float is tried without a warning, too. */
#include "quant/convert/convert_int.h"

#include "quant/job/annotate.h"

#include <math.h>

enum { MOST_BYTES = 64 << 20 }; /* of the model's file */
/* Without a warning: */
#define NOISY_DB 30     /* dB at the outputs */
#define MOST_MACS 2.4e9 /* multiply-accumulates of a trial, but for the least number of samples */
enum { LEAST_SAMPLES = 4, MOST_SAMPLES = 64 };

static oct_status compare(oct_conversion *c, const oct_graph *made, const oct_pick *pick, oct_tried *x, oct_err *err)
{
    const oct_eval_model models[2] = { { c->o.name, c->fl, c->size_before }, { c->o.name, made, 0 } };
    oct_eval_result *r = NULL;
    OCT_TRY(oct_source_pick(c->src, pick, err));
    const oct_status s = oct_conversion_compare(c, models, false, &r, err);
    if (s == OCT_OK) {
        const oct_eval_score *score = oct_conversion_score_of(c, r);
        x->sqnr = r->models[1].sqnr_db;
        x->worse = r->models[1].broken || (score && oct_score_is_worse(score));
    }
    oct_eval_free(r);
    return s;
}

static oct_status convert(oct_conversion *c, oct_graph *g, oct_scheme scheme, const oct_pick *pick, oct_tried *x,
                          oct_err *err)
{
    oct_qjob_opts o = oct_conversion_job_opts(c);
    oct_qjob *job = NULL;
    oct_graph *made = NULL;
    o.scheme = scheme;
    o.log = NULL;
    o.rounds_later = false;
    o.seen = c->seen;
    o.n_seen = c->n_seen;
    oct_status s = oct_qjob_create(g, &o, &job, err);
    if (s == OCT_OK)
        s = oct_qjob_decide(job, c->calib, err);
    if (s == OCT_OK) {
        x->size = oct_size_with(c, job);
        s = oct_quantized_copy(job, &made, err);
    }
    if (s == OCT_OK)
        s = compare(c, made, pick, x, err);
    oct_graph_destroy(made);
    oct_qjob_destroy(job);
    return s;
}

static oct_status try_scheme(oct_conversion *c, oct_scheme scheme, const oct_pick *pick, oct_tried *x, oct_err *err)
{
    oct_graph *g;
    oct_err why = OCT_ERR_INIT;
    *x = (oct_tried){ .scheme = scheme, .sqnr = NAN };
    OCT_TRY(oct_graph_clone(c->fl, &g, err));
    const oct_status s = convert(c, g, scheme, pick, x, &why);
    oct_graph_destroy(g);
    if (s == OCT_OK || s == OCT_EMALFORMED || s == OCT_EUNSUPPORTED || s == OCT_ENUMERIC) /* then it is no cure */
        return OCT_OK;
    *err = why;
    return s;
}

/* Whether dynamic layers are the result, or were tried before. */
static bool was_dynamic(const oct_conversion *c)
{
    return c->dynamic.taken || c->dynamic.gains || oct_qjob_has_dynamic(c->job);
}

/* Nobody who asked for a scheme or a goal wants to hear of another one without need. Classes that are the same on all
 * samples that judged are worth little time, unless the noise is large, or was worth layers in float. */
static bool wants_finer(const oct_conversion *c)
{
    const bool little = c->job->all_work * MOST_SAMPLES <= MOST_MACS;
    return oct_conversion_is_coarse(c) && c->o.job.scheme == OCT_SCHEME_AUTO && !c->o.n_goals &&
           (little || c->finer.nodes || c->sqnr < NOISY_DB || !oct_conversion_score(c));
}

oct_status oct_cures_try(oct_conversion *c, const oct_pick *judging, oct_err *err)
{
    static const oct_scheme schemes[OCT_TRIED] = { OCT_SCHEME_DYNAMIC, OCT_SCHEME_STORED, OCT_SCHEME_FP16 };
    const bool lost = oct_conversion_has_lost(c);
    if (!c->fl || c->o.writable || c->size_before > MOST_BYTES || !(lost || wants_finer(c)))
        return OCT_OK;
    /* Ranges are not what these forms have, so that more samples can judge them than were kept aside. */
    const double most = fmin(MOST_SAMPLES, fmax(LEAST_SAMPLES, MOST_MACS / c->job->all_work));
    const oct_pick chosen = { .most = (int64_t)most, .unsummed = true };
    for (size_t k = 0; k < OCT_TRIED && !oct_cure_helps(c); k++)
        if (c->o.job.scheme != schemes[k] && !(schemes[k] == OCT_SCHEME_DYNAMIC && (!lost || was_dynamic(c))))
            OCT_TRY(try_scheme(c, schemes[k], lost ? judging : &chosen, &c->tried[k], err));
    return OCT_OK;
}
