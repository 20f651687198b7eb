/* Leaves more layers float where the result would lose too much and float costs little.
 *
 * It is the last choice, made against what everything before it has reached, as the result is judged, but on the half
 * of the samples that judges, with ranges of the other: these show ranges that do not hold for others. If a warning or
 * a notice of loss would follow (oct_loss_of), layers become float, with weights in 8 bits where they can be, as many
 * as a price buys. There are two prices, and the second is paid where the first does not suffice:
 *
 * - nothing: what tables of costs cannot tell apart. What is late in the graph comes first.
 * - a little: where much is lost, LONGER times what was decided, and what causes most noise for its time
 *   comes first; in a run of which calls take most, SHORT_LONGER, but SHORT_LOSS at most; in a run that takes no longer
 *   than SHORT_LOSS in float, float's time, since integers can gain nothing that counts; and float's time, too, if
 *   ranges do not hold and the outputs are of little use, since integers serve nobody then.
 *
 * The weights may take LARGER times the bytes. All of the model is tried where it is within the price. What does not
 * gain MUCH_DB is taken back. A user's choice of a scheme, a budget, a goal or a size is an answer to the same
 * question, and ends this. */
#include "quant/convert/convert_int.h"

#include "ops/traits.h"
#include "quant/job/annotate.h"
#include "quant/job/decisions.h"
#include "quant/job/placed.h"
#include "quant/place/place.h"
#include "quant/simulate/sensitivity.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <math.h>

#define NOTHING 1.02      /* times what was decided: tables are not more exact */
#define LONGER 1.15       /* times the expected time, by each table */
#define LARGER 1.1        /* times the bytes of the weights */
#define SHORT_RUN 500e3   /* ns in float: in shorter runs, calls take most of the time */
#define SHORT_LOSS 50e3   /* ns that such a run may lose ... */
#define SHORT_LONGER 1.25 /* ... and times the expected time: more is what integers are for */
#define MUCH_DB 3.0       /* dB that a price must gain at the outputs */
#define LEAST_SAMPLES 32  /* fewer, in halves, tell too little */
#define LEAST_SHARE 0.02  /* share of the noise: values that cause less are not looked at */
#define LEAST_TIME 0.002  /* share of the time: what adds less is as if it added this */

static const char why_float[] = "left float: little time is lost by that, and much accuracy without it";

typedef struct finer {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *arena;
    const oct_sensitivity *s;
    size_t *order; /* [n]: sites, the one that gains most for its time first */
    size_t n;
    oct_target_times was;         /* expected as decided */
    double bytes;                 /* of the weights as decided */
    double most[OCT_COST_TABLES]; /* ns: the price */
    bool *bought;                 /* [n_layer]: what the last price bought */
} finer;

/* ---- what a choice takes ---- */

/* Whether a node may become float. What the tables do not know has no price. */
static bool may_move(const oct_qjob *j, int id)
{
    const bool integer = oct_makes_quantized(j, id) || oct_rounds_inputs(j, id) || oct_is_dynamic(j, id);
    double in_float, decided;
    oct_expect_node(j, id, &in_float, &decided);
    return integer && !oct_row_of(j, id)->asked && !oct_row_of(j, id)->named &&
           (!isnan(in_float) || !oct_layer_weights(j->g, id));
}

static bool may_store(const oct_qjob *j, int id)
{
    return oct_op_of(j->g, id)->quant == OCT_QUANT_WEIGHTED && !oct_no_stored(j, id);
}

static oct_status leave_float(oct_qjob *j, int id, oct_err *err)
{
    return oct_constrain(&j->constraints,
                         &(oct_constraint){ .kind = OCT_CONSTRAINT_FLOAT,
                                            .from = OCT_FROM_FINER,
                                            .node = id,
                                            .why = why_float,
                                            .scheme = may_store(j, id) ? OCT_SCHEME_STORED : OCT_SCHEME_AUTO },
                         err);
}

/* Whether the decisions, as they are placed, are within the price. */
static bool is_affordable(const finer *x)
{
    oct_target_times now = { 0 };
    bool all = oct_weight_bytes(x->j) <= LARGER * x->bytes;
    oct_expect(x->j);
    oct_add_expected(x->j, &now);
    for (size_t t = 0; t < oct_target_n_costs(x->c->o.job.target); t++)
        all &= now.decided[t] <= x->most[t];
    return all;
}

/* Leaves the nodes around a value float, and places all. *n: how many there were. */
static oct_status take_site(finer *x, const oct_site *s, int *taken, size_t *n, oct_err *err)
{
    *n = 0;
    for (size_t i = 0; i < x->j->n_layer; i++) {
        const int id = x->j->layer[i];
        if (may_move(x->j, id) && (s->value >= 0 ? oct_site_touches(x->j, id, s->value) : s->node == id))
            taken[(*n)++] = id;
    }
    for (size_t i = 0; i < *n; i++)
        OCT_TRY(leave_float(x->j, taken[i], err));
    return *n ? oct_job_place(x->j, err) : OCT_OK;
}

static oct_status give_back(finer *x, const int *taken, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++)
        oct_constraints_drop(&x->j->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_FINER, taken[i]);
    return n ? oct_job_place(x->j, err) : OCT_OK;
}

/* ---- which layers ---- */

static double longer(const finer *x)
{
    oct_target_times now = { 0 };
    double most = 0;
    oct_expect(x->j);
    oct_add_expected(x->j, &now);
    for (size_t t = 0; t < oct_target_n_costs(x->c->o.job.target); t++)
        most = fmax(most, now.decided[t] / x->was.decided[t] - 1);
    return most;
}

/* Orders the sites by the noise that goes for the time that each adds alone. */
static oct_status arrange(finer *x, int *taken, oct_err *err)
{
    const oct_sensitivity *s = x->s;
    double *key = oct_arena_calloc(x->arena, s->n + 1, sizeof *key);
    if (!key || !(x->order = oct_arena_calloc(x->arena, s->n + 1, sizeof *x->order)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        size_t n = 0, at = x->n;
        if (s->site[i].body || !(s->site[i].noise > 0))
            continue;
        OCT_TRY(take_site(x, &s->site[i], taken, &n, err));
        key[i] = s->site[i].noise / fmax(longer(x), LEAST_TIME);
        OCT_TRY(give_back(x, taken, n, err));
        for (; at > 0 && key[x->order[at - 1]] < key[i]; at--)
            x->order[at] = x->order[at - 1];
        x->order[at] = i;
        x->n += n > 0;
    }
    return OCT_OK;
}

/* Where much is lost, mixed precision has looked for what causes it. */
static oct_status find_sites(finer *x, int *taken, oct_err *err)
{
    oct_sim *sim;
    if (!(x->s = x->c->sensitivity)) {
        oct_sensitivity *s = oct_arena_calloc(x->arena, 1, sizeof *s);
        if (!s)
            return oct_nomem(err);
        oct_conversion_changed(x->c);
        OCT_TRY(oct_conversion_sim(x->c, OCT_SIM_MANY_RUNS, 0, &sim, err));
        OCT_TRY(oct_sensitivity_find_worst(sim, x->j, LEAST_SHARE, NULL, x->arena, s, err));
        oct_sim_drop_runners(x->c->sim);
        x->s = s;
    }
    return arrange(x, taken, err);
}

static oct_status take_sites(finer *x, int *taken, oct_err *err)
{
    size_t n;
    if (!x->s)
        OCT_TRY(find_sites(x, taken, err));
    for (size_t i = 0; i < x->n; i++) {
        OCT_TRY(take_site(x, &x->s->site[x->order[i]], taken, &n, err));
        if (!is_affordable(x))
            OCT_TRY(give_back(x, taken, n, err));
    }
    return OCT_OK;
}

/* Takes what is around one value, if that is within the price and adds nearly no time. */
static oct_status take_cheap(finer *x, const oct_site *s, int *taken, oct_err *err)
{
    const double before = longer(x);
    size_t n;
    OCT_TRY(take_site(x, s, taken, &n, err));
    return n && !(is_affordable(x) && longer(x) <= before + LEAST_TIME) ? give_back(x, taken, n, err) : OCT_OK;
}

/* Takes what adds nearly no time, whatever it gains, from the outputs backwards: what is late in the graph is
 * small mostly. What is between float nodes costs less than it did between integers, so that there is a second round.
 */
static oct_status take_late(finer *x, int *taken, oct_err *err)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = x->j->n_layer; i-- > 0;) {
            const int id = x->j->layer[i], v = oct_quantized_output(x->j, id);
            const oct_node *n = &x->j->g->node[id];
            if (oct_is_dynamic(x->j, id))
                OCT_TRY(take_cheap(x, &(oct_site){ .value = -1, .node = id }, taken, err));
            if (v >= 0 && oct_makes_quantized(x->j, id))
                OCT_TRY(take_cheap(x, &(oct_site){ .value = oct_params_root(x->j, v), .node = -1 }, taken, err));
            for (int k = 0; k < n->n_in; k++)
                if (n->in[k] >= 0 && !x->j->g->value[n->in[k]].constant && may_move(x->j, id) &&
                    oct_maker_node(x->j, n->in[k]) < 0)
                    OCT_TRY(
                        take_cheap(x, &(oct_site){ .value = oct_params_root(x->j, n->in[k]), .node = -1 }, taken, err));
        }
    return OCT_OK;
}

/* Takes everything if that is within the price, else what is late and adds nothing, or what gains most. */
static oct_status take_some(finer *x, bool little, int *taken, oct_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < x->j->n_layer; i++)
        if (may_move(x->j, x->j->layer[i]))
            taken[n++] = x->j->layer[i];
    for (size_t i = 0; i < n; i++)
        OCT_TRY(leave_float(x->j, taken[i], err));
    OCT_TRY(oct_job_place(x->j, err));
    if (is_affordable(x))
        return OCT_OK;
    OCT_TRY(give_back(x, taken, n, err));
    return little ? take_sites(x, taken, err) : take_late(x, taken, err);
}

static bool is_taken(const oct_qjob *j, int id)
{
    const oct_constraint *k = oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_FLOAT);
    return k && k->from == OCT_FROM_FINER;
}

static size_t count(const oct_qjob *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        n += is_taken(j, j->layer[i]);
    return n;
}

/* ---- what it is worth ---- */

typedef struct judged {
    double sqnr;
    bool broken;
    oct_eval_score score; /* metric NULL: there is none */
} judged;

/* Compares what is decided, with ranges of the half that chooses, with the float model on samples of half h. What is
 * kept aside judges the result and chooses nothing. *known: whether it can be compared. */
static oct_status compare_decided(oct_conversion *c, int h, judged *x, bool *known, oct_err *err)
{
    oct_graph *g;
    oct_eval_result *r = NULL;
    oct_err why = OCT_ERR_INIT;
    const int64_t most = oct_enough_to_judge(c->m->graph);
    oct_pick pick = oct_pick_half(c, h, most);
    pick.unsummed = true;
    OCT_TRY(oct_conversion_settle(c, err));
    OCT_TRY(oct_quantized_copy(c->job, &g, err));
    const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, oct_conversion_result(c, c->o.name, g) };
    oct_status s = oct_source_pick(c->src, &pick, &why);
    if (s == OCT_OK)
        s = oct_conversion_compare(c, models, false, &r, &why);
    *x = (judged){ .sqnr = NAN };
    if (s == OCT_OK) {
        const oct_eval_score *score = oct_conversion_score_of(c, r);
        x->sqnr = r->models[1].sqnr_db;
        x->broken = r->models[1].broken;
        x->score = score ? *score : x->score;
    }
    *known = s == OCT_OK;
    oct_eval_free(r);
    oct_graph_destroy(g);
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED && s != OCT_EUSAGE) { /* said of the result */
        *err = why;
        return s;
    }
    return oct_source_pick(c->src, &(oct_pick){ 0 }, err);
}

/* On samples of half h. Decisions are as before afterwards. */
static oct_status judge_on(oct_conversion *c, int h, judged *x, bool *known, oct_err *err)
{
    oct_calib *all = c->calib;
    oct_decisions was;
    OCT_TRY(oct_conversion_settle(c, err));
    OCT_TRY(oct_decisions_keep(c->job, c->arena, &was, err));
    c->calib = c->half[0];
    oct_conversion_changed(c);
    const oct_status s = compare_decided(c, h, x, known, err);
    c->calib = all;
    OCT_TRY(s);
    oct_conversion_changed(c);
    OCT_TRY(oct_conversion_settle(c, err)); /* the job has the statistics of all again */
    OCT_TRY(oct_decisions_restore(c->job, &was, err));
    oct_expect(c->job);
    c->decided = true;
    oct_conversion_edited(c);
    return OCT_OK;
}

static oct_status judge(oct_conversion *c, judged *x, bool *known, oct_err *err)
{
    return judge_on(c, 1, x, known, err);
}

static oct_loss loss_of(const judged *x)
{
    return oct_loss_of(x->sqnr, x->score.metric ? &x->score : NULL, x->broken);
}

/* Where labels tell that nothing is lost, the distance from the float model matters to nobody. */
static bool is_wanted(const oct_conversion *c, const judged *x)
{
    const oct_metric *m = x->score.metric;
    const bool by_labels = m && oct_metric_in_percent(m) && !m->relative;
    return by_labels ? oct_score_is_worse(&x->score) : loss_of(x) != OCT_LOSS_NONE;
}

/* Whether ranges fit the samples that made them, and no others. */
static oct_status do_ranges_hold(oct_conversion *c, const judged *x, bool *hold, oct_err *err)
{
    judged seen;
    bool known;
    *hold = true;
    if (loss_of(x) != OCT_LOSS_MUCH || oct_score_is_worse(&x->score))
        return OCT_OK;
    OCT_TRY(judge_on(c, 0, &seen, &known, err));
    *hold = !(known && seen.sqnr >= x->sqnr + MUCH_DB);
    return OCT_OK;
}

/* ---- both prices ---- */

/* Whether what a price buys is what the last one bought, and so judged already. Keeps it for the next. */
static bool is_known(finer *x)
{
    bool same = true;
    for (size_t i = 0; i < x->j->n_layer; i++) {
        const bool now = is_taken(x->j, x->j->layer[i]);
        same &= now == x->bought[i];
        x->bought[i] = now;
    }
    return same;
}

/* Returns whether there is such a price. */
static bool set_price(finer *x, bool little, bool much, bool hold)
{
    bool any = !little;
    for (size_t t = 0; t < oct_target_n_costs(x->c->o.job.target); t++) {
        const double was = x->was.decided[t], in_float = x->was.on_floats[t];
        const bool brief = in_float < SHORT_RUN;
        x->most[t] = was * (little && much ? LONGER : NOTHING);
        if (little && brief)
            x->most[t] = fmax(x->most[t], fmin(was + SHORT_LOSS, SHORT_LONGER * was));
        if (little && (in_float <= SHORT_LOSS || !hold))
            x->most[t] = fmax(x->most[t], in_float);
        any |= much || brief;
    }
    return any;
}

/* Tries one price, and keeps what it buys if it gains enough beside `best`. */
static oct_status pay(finer *x, bool little, int *taken, judged *best, bool *won, oct_err *err)
{
    oct_decisions was;
    judged now;
    bool known;
    const size_t before = count(x->j);
    *won = false;
    OCT_TRY(oct_decisions_keep(x->j, x->arena, &was, err));
    OCT_TRY(take_some(x, little, taken, err));
    if (count(x->j) > before && !is_known(x)) {
        oct_conversion_changed(x->c);
        OCT_TRY(judge(x->c, &now, &known, err));
        *won = known && now.sqnr >= best->sqnr + MUCH_DB && loss_of(&now) <= loss_of(best);
    }
    if (*won) {
        *best = now;
        return OCT_OK;
    }
    OCT_TRY(oct_decisions_restore(x->j, &was, err));
    oct_expect(x->j);
    x->c->decided = true;
    oct_conversion_edited(x->c);
    return OCT_OK;
}

static void say(finer *x, const judged *before, const judged *after)
{
    oct_finer *f = &x->c->finer;
    *f = (oct_finer){ .nodes = count(x->j), .before = before->sqnr, .after = after->sqnr, .longer = 1 + longer(x) };
    oct_conversion_say(
        x->c, 0,
        "%zu node%s stay%s float, with weights in 8 bits where they can be: the outputs have %.1f dB instead of "
        "%.1f, for %.0f %% more expected time; --budget 3 keeps %s on integers",
        f->nodes, f->nodes == 1 ? "" : "s", f->nodes == 1 ? "s" : "", f->after, f->before,
        fmax(0, 100 * (f->longer - 1)), f->nodes == 1 ? "it" : "them");
}

static oct_status try_prices(finer *x, const judged *before, oct_err *err)
{
    judged best = *before;
    bool hold, won = false, any = false;
    int *taken = oct_arena_calloc(x->arena, x->j->n_layer + 1, sizeof *taken);
    x->bought = oct_arena_calloc(x->arena, x->j->n_layer + 1, sizeof *x->bought);
    if (!taken || !x->bought)
        return oct_nomem(err);
    OCT_TRY(do_ranges_hold(x->c, before, &hold, err));
    oct_add_expected(x->j, &x->was);
    x->bytes = oct_weight_bytes(x->j);
    for (int little = 0; little < 2 && (little == 0 || is_wanted(x->c, &best)); little++) {
        if (!set_price(x, little, loss_of(&best) == OCT_LOSS_MUCH, hold))
            continue;
        OCT_TRY(pay(x, little, taken, &best, &won, err));
        any |= won;
    }
    if (!any)
        return OCT_OK;
    say(x, before, &best);
    OCT_TRY(x->c->run_methods(x->c, OCT_STEP_BIASES, err)); /* what other layers have lost they corrected, too */
    return oct_conversion_settle(x->c, err);
}

/* Whether weights are on integers: else nothing was to be gained. */
static bool has_layers(const oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->n_layer && !any; i++)
        any = may_move(j, j->layer[i]) && oct_layer_weights(j->g, j->layer[i]);
    return any;
}

/* Whoever asked for something else has an answer. */
static bool is_open(const oct_conversion *c)
{
    const oct_size_limit *l = &c->o.size;
    return c->src && c->half[0] && c->calib->samples >= LEAST_SAMPLES && c->job->costs &&
           c->o.job.scheme == OCT_SCHEME_AUTO && !c->o.budget && !c->o.n_goals && !l->bytes && !(l->share > 0) &&
           !(l->bits > 0) && !c->o.whole && !c->o.writable && !c->o.twin && !c->o.command &&
           !(c->fold && c->fold->trial) && oct_conversion_may_run(c, OCT_STEP_CHOICE) && !oct_no_simulating(c) &&
           !oct_conversion_unjudged(c, c->m->graph);
}

oct_status oct_finer_try(oct_conversion *c, oct_err *err)
{
    judged now;
    bool known;
    if (!is_open(c) || !has_layers(c->job))
        return OCT_OK;
    OCT_TRY(judge(c, &now, &known, err));
    if (!known || !is_wanted(c, &now))
        return OCT_OK;
    finer x = { .c = c, .j = c->job, .arena = oct_arena_create() };
    const oct_status s = x.arena ? try_prices(&x, &now, err) : oct_nomem(err);
    oct_arena_destroy(x.arena);
    return s;
}
