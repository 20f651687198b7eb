/* Judges by the loss at the outputs whether preprocessing should be folded into the first layers.
 *
 * Folding changes which weights these layers round, and the ranges of the values after them. So its cost shows only in
 * the complete result. The result is compared with a conversion in which the preprocessing stands in front of the
 * model. Both are compared with the float model on the samples that judge. */
#include "quant/convert/convert_int.h"

#include "quant/inputs/input_fold.h"
#include "quant/job/annotate.h"

#include <math.h>
#include <string.h>

#define FLOAT_ROUNDING 90 /* dB: a better SQNR than this is limited by rounding of floats, not of integers */

oct_status oct_fold_begin(oct_conversion *c, const oct_steps *steps, oct_err *err)
{
    oct_fold *f = c->fold;
    if (!f && !(f = c->fold = oct_arena_calloc(c->arena, 1, sizeof *f)))
        return oct_nomem(err);
    f->loaded = c->m;
    f->given = c->o.job.given;
    f->n_given = c->o.job.n_given;
    f->n_input = c->m->graph->n_input;
    if (!(f->asked = oct_arena_memdup(c->arena, steps, f->n_input * sizeof *steps)))
        return oct_nomem(err);
    return oct_model_copy(f->loaded, &c->m, err);
}

void oct_fold_end(oct_conversion *c)
{
    if (!c->fold || !c->fold->loaded || c->m == c->fold->loaded)
        return;
    oct_model_free(c->m);
    c->m = c->fold->loaded;
}

/* Keeps the SQNR of each output from a comparison. */
static oct_status keep(oct_conversion *c, const oct_eval_result *r, oct_err *err)
{
    oct_fold *f = c->fold;
    const double sign = f->unfolded ? -1 : 1;
    double most = INFINITY;
    f->n_db = r->n_outputs;
    if (!(f->db = oct_arena_calloc(c->arena, r->n_outputs + 1, sizeof *f->db)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->n_outputs; i++) {
        const double db = r->models[1].outputs[i].sqnr_db, gain = f->other_db ? sign * (db - f->other_db[i]) : 0;
        f->db[i] = db;
        if (i == 0 || gain < most) {
            most = gain;
            f->worst = i;
            f->worst_output = oct_arena_strdup(c->arena, r->models[1].outputs[i].name);
        }
        f->lost |= f->other_db && !f->unfolded && !(db >= FLOAT_ROUNDING) && !(gain >= -OCT_FOLD_LOSS);
    }
    return r->n_outputs && !f->worst_output ? oct_nomem(err) : OCT_OK;
}

static oct_status compare(oct_conversion *c, const oct_graph *quantized, oct_err *err)
{
    const oct_graph *fl = c->from_pixels ? c->from_pixels : c->m->graph;
    const oct_eval_model models[2] = { { c->o.name, fl, 0 }, oct_conversion_result(c, c->o.name, quantized) };
    const oct_pick pick = oct_pick_judging(c, fl);
    oct_eval_result *r = NULL;
    oct_status s = oct_conversion_errors(c, models, &pick, &r, err);
    if (s == OCT_OK)
        s = keep(c, r, err);
    oct_eval_free(r);
    return s == OCT_OK ? oct_source_pick(c->src, &(oct_pick){ 0 }, err) : s;
}

static oct_status measure(oct_conversion *c, oct_err *err)
{
    oct_graph *g;
    OCT_TRY(oct_quantized_copy(c->job, &g, err));
    const oct_status s = compare(c, g, err);
    oct_graph_destroy(g);
    return s;
}

oct_status oct_fold_try(oct_conversion *c, oct_err *err)
{
    oct_fold *f = c->fold;
    if (!f || !(f->unfolded || f->other_db) || !c->src)
        return OCT_OK;
    if (!oct_conversion_unjudged(c, c->m->graph))
        OCT_TRY(measure(c, err));
    f->over = f->trial || f->lost;
    return OCT_OK;
}
