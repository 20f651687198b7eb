/* Decides, and converts twice for that if need be: where folding preprocessing into the first layers changes how they
 * are rounded, a conversion with the preprocessing in front of the model is compared with it. */
#include "quant/convert/convert_int.h"

#include "base/mem.h"
#include "eval/run/follow.h"

/* The options that both conversions have. */
static oct_convert_opts shared_opts(const oct_conversion *c)
{
    oct_convert_opts o = c->o;
    o.job.given = c->fold->given;
    o.job.n_given = c->fold->n_given;
    return o;
}

static bool may_compare(const oct_conversion *c)
{
    return c->fold && c->from_pixels && c->src && !c->o.synthetic && !oct_source_is_once(c->src);
}

/* Gives samples the form that model m reads: `steps` are exchanged with what the source had. */
static oct_status turn_samples(const oct_conversion *c, oct_source *src, const oct_model *m, oct_steps *steps,
                               oct_err *err)
{
    OCT_TRY(oct_source_exchange_steps(src, steps, err));
    return c->o.n_states ? oct_follow(src, m->graph, c->o.states, c->o.n_states, NULL, err) : OCT_OK;
}

/* Takes model and inputs of the conversion that folds, `of`, into one that was opened and does not fold. *steps: how
 * samples are preprocessed for it, in c's arena. */
static oct_status begin_unfolded(oct_conversion *c, const oct_fold *of, oct_steps **steps, oct_err *err)
{
    if (!(c->fold = oct_arena_calloc(c->arena, 1, sizeof *c->fold)) ||
        !(*steps = oct_arena_memdup(c->arena, of->asked, of->n_input * sizeof **steps)))
        return oct_nomem(err);
    c->fold->unfolded = true;
    oct_conversion_take(c, of->loaded);
    return oct_conversion_take_ends(c, *steps, err);
}

/* The conversion with preprocessing in front of the model, up to its methods. It tells nothing, measures nothing else,
 * and its rounding is not kept. */
static oct_status run_apart(oct_conversion *c, oct_conversion *apart, oct_err *err)
{
    oct_steps *steps;
    OCT_TRY(begin_unfolded(apart, c->fold, &steps, err));
    apart->fold->trial = true;
    OCT_TRY(turn_samples(apart, c->src, apart->m, steps, err));
    OCT_TRY(oct_conversion_run(apart, c->src, err));
    OCT_TRY(turn_samples(c, c->src, c->m, steps, err));
    if (!apart->fold->db)
        return OCT_OK;
    c->fold->other_db = oct_arena_memdup(c->arena, apart->fold->db, apart->fold->n_db * sizeof(double));
    return c->fold->other_db ? OCT_OK : oct_nomem(err);
}

static oct_status measure_unfolded(oct_conversion *c, oct_err *err)
{
    oct_convert_opts o = shared_opts(c);
    oct_conversion apart;
    oct_conversion_say(c, 0,
                       "comparing preprocessing inside the first layers with preprocessing in front of the model");
    o.listener = (oct_convert_listener){ .progress = c->o.listener.progress, .arg = c->o.listener.arg };
    o.sensitivity = false;
    o.n_goals = 0;
    oct_status st = oct_conversion_open(&apart, &o, err);
    if (st == OCT_OK)
        st = run_apart(c, &apart, err);
    oct_conversion_close(&apart);
    return st;
}

/* Makes the conversion without folding, in place of the one that lost too much. */
static oct_status take_back(oct_conversion *c, const oct_convert_opts *o, oct_err *err)
{
    oct_source *src = c->src;
    const oct_fold of = *c->fold; /* its memory is in the arena, which stays */
    oct_steps *steps;
    oct_conversion_say(c, 0, "inside the layers preprocessing loses too much: it stays in front of the model");
    OCT_TRY(oct_conversion_restart(c, o, err));
    OCT_TRY(begin_unfolded(c, &of, &steps, err));
    c->fold->other_db = of.db;
    OCT_TRY(turn_samples(c, src, c->m, steps, err));
    return oct_conversion_run(c, src, err);
}

oct_status oct_conversion_decide(oct_conversion *c, oct_source *src, oct_err *err)
{
    c->src = src;
    if (!may_compare(c))
        return oct_conversion_run(c, src, err);
    const oct_convert_opts o = shared_opts(c);
    OCT_TRY(measure_unfolded(c, err));
    OCT_TRY(oct_conversion_run(c, src, err));
    return c->fold->lost ? take_back(c, &o, err) : OCT_OK;
}
