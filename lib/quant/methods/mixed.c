/* Mixed precision. If a few values cause most of the loss, the layers that compute and read them get 16-bit
 * activations, or stay float. They get 16 bits if the target runs these on integers and no slower than floats (wide.c).
 * Where 16 bits do not help, float is tried.
 *
 * Values are chosen in the order of the noise that they cause at the outputs, as long as each causes a good part of the
 * remaining noise, within a budget of multiply-accumulates. Where outputs are good already, a value is still chosen
 * that causes half of the noise and costs nearly nothing, as the result of a small last Conv, which is rounded in steps
 * that its widest logits need. If that does not help a model that is of little use as it
 * is, up to four more layers may exceed the budget, if they gain 6 dB each: the first layers can be a seventh of a
 * network, a Fourier transform more than a third. Around a value that is known to be delicate, because a few of its
 * elements are many times larger than the others, 3 dB suffice: clipping may have hidden half of the loss.
 *
 * Sets of values come last: in the order of the noise that they cause for each multiply-accumulate, as many as fit into
 * budgets that grow by 5 % of the multiply-accumulates, up to 25 %. A set stays if all that exceeds the budget gains 6
 * dB for each 5 %. So values that gain little alone, but much together, are found. Outputs are of little use below 20
 * dB, or if the classes that they say differ from the float model's. If they still are, larger budgets are tried, so
 * that a warning can name one that helps; what they choose does not stay.
 *
 * The choice is measured on other samples, and is kept only if it helps: first everything within the budget together,
 * then the values beyond it one by one, each together with what it makes worthwhile within the budget. Values that do
 * not help alone may help together: if two values clip the same elements, as along a power spectrum, one alone gains
 * nothing.
 *
 * Layers in the graphs that nodes hold (If, Loop, Scan) are among them, one by one.
 *
 * A value that causes nearly all of the loss hides the loss that others cause. After such a value is gone, ranges are
 * chosen and everything is measured again, and the choice continues with the new measurements. */
#include "observers/observer.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/methods/by_metric.h"
#include "quant/methods/trial.h"
#include "quant/place/place.h"
#include "quant/simulate/sensitivity.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BUDGET 0.03      /* share of the multiply-accumulates, if the user gives none */
#define GOOD_DB 30       /* expected dB at the outputs: nothing more is chosen above this */
#define POOR_DB 20       /* dB: below this, the budget may be exceeded */
#define ENOUGH_DB 26     /* expected dB: no set has more than it needs for this */
#define LEAST_SHARE 0.08 /* share of the remaining noise that a value must cause to be chosen */
#define FINE_DB 60       /* expected dB: up to this, a bargain is chosen; logits far below the largest hide its noise */
#define BARGAIN_SHARE 0.5 /* share of the remaining noise that it must cause */
#define BARGAIN_COST 0.01 /* share of the multiply-accumulates that all of them may take */
#define LEAST_GAIN 1.0    /* dB that all chosen values together must gain */
#define DEAR_GAIN 6.0     /* dB that each layer beyond the budget must gain */
#define DELICATE_GAIN 3.0 /* dB that each of these must gain around a delicate value */
#define STEP_GAIN 6.0     /* dB that a set must gain for each STEP_SHARE that it exceeds the budget */
#define STEP_SHARE 0.05   /* share of the multiply-accumulates */
#define FINE_SHARE 0.02   /* share of the remaining noise that a value of a set must cause */
#define LEAST_COST 0.002  /* share of the multiply-accumulates: what costs less is as if it did this */
#define STORED_NOISE 0.12 /* of the remaining noise (0.5 dB): what stored weights of layers left float may add */
#define HIDING_DB                                                                                                  \
    3.0            /* dB gained: so large a loss hid the loss by ranges elsewhere, so that ranges are chosen again \
                    */
#define DELICATE 8 /* times the bound of nine tenths of the elements */
enum {
    MOST_DEAR = 4,  /* the most layers beyond the budget */
    MOST_TRIES = 6, /* the most values that are tried beyond the budget */
    STEPS = 5       /* how often the budget of sets grows */
};
static const double larger[] = { 0.5, 1 }; /* budgets that are tried for a warning */

static const char nothing[] = "no few values cause the loss";

/* The reason why a node stays float or has 16 bits. */
typedef struct reason {
    const oct_site *site; /* what causes the loss */
    double share, gain;   /* share of the loss at the outputs; dB of the loss that remained when it was chosen */
    double macs;          /* multiply-accumulates of the nodes around that value; NaN: they are not known */
    bool beyond;          /* it exceeds the budget */
} reason;

/* What an attempt may choose. */
typedef enum extent {
    WITHIN_BUDGET,
    ONE_BEYOND, /* one value that was not refused before */
    ALL_BEYOND,
    A_SET, /* values in the order of noise and cost, within `limit` */
    A_TRY  /* the same, but nothing stays */
} extent;

typedef struct choice {
    oct_qjob *j;
    const oct_sensitivity *s;
    bool same;               /* decisions are those that s was measured with */
    const oct_qlayer *layer; /* [n]: those of the model, and of the graphs that nodes hold */
    size_t n;
    double *cost; /* by layer: its share of the multiply-accumulates */
    int *floats;  /* by layer: the number of the attempt that left it float; 0: none */
    int *wides;   /* by layer: the number of the attempt that gave it 16-bit activations; 0: none */
    int attempt;  /* counted from 1 */
    extent extent;
    reason *reason; /* by layer */
    double budget;
    double spent;        /* those of the layers chosen within the budget, or in sets */
    double limit, tried; /* of a set: the budget; what the last one has spent */
    double base, at;     /* dB before the first set, and now */
    size_t *order;       /* [s->n]: the sites in the order in which they are considered */
    int dear;            /* the number of layers chosen beyond the budget */
    double seen;         /* dB at which the agreement was measured last; NaN: never */
    bool disagrees;      /* then */
    double most_beyond;  /* the share of the multiply-accumulates that a value beyond the budget may take */
    const oct_calib *calib;
    struct {
        double spent, must_gain; /* dB */
        int dear, place;         /* beyond the budget: the number of layers, and the place of the last site, or -1 */
        bool may_widen, widened;
    } now;         /* for the current attempt */
    bool *refused; /* by site: tried alone beyond the budget, and it did not gain enough */
} choice;

static bool is_around(const choice *x, size_t k, const oct_site *s)
{
    const oct_qlayer *l = &x->layer[k];
    return oct_site_job(x->j, s) == l->job &&
           (s->value >= 0 ? oct_site_touches(l->job, l->node, s->value) : l->node == s->node);
}

/* Nodes that compute on real numbers between quantizers are among them: the value stays rounded while one of them
 * makes or reads it so. */
static bool would_take(const choice *x, size_t k, const oct_site *s)
{
    const oct_qlayer *l = &x->layer[k];
    const bool rounds =
        oct_makes_quantized(l->job, l->node) || oct_rounds_inputs(l->job, l->node) || oct_is_dynamic(l->job, l->node);
    return rounds && !x->floats[k] && x->wides[k] != x->attempt && is_around(x, k, s);
}

/* If the target wants quantizers around all nodes, nodes that compute in float round to 8 bits too. */
static bool would_widen(const choice *x, size_t k, const oct_site *s)
{
    const oct_qlayer *l = &x->layer[k];
    return x->now.may_widen && !oct_row_of(l->job, l->node)->typed && !x->floats[k] && !x->wides[k] &&
           oct_may_be_wide(l->job, l->node) && is_around(x, k, s);
}

/* Whether the nodes around a value can be widened together, without one that would have to be float. */
static bool widens(const choice *x, const oct_site *s)
{
    bool all = true;
    for (size_t k = 0; k < x->n; k++)
        all &= !would_take(x, k, s) || would_widen(x, k, s);
    return all;
}

/* NaN: it is not known, but estimated. */
static double known_cost(const choice *x, size_t k)
{
    return x->layer[k].job->guessed[x->layer[k].node] ? NAN : x->cost[k];
}

/* The multiply-accumulates of the layers around a value, estimated and (NaN: they are not known) for reports, and the
 * number of these layers. Returns the number of nodes.
 * It is 0 if the policy demands by name that one of them runs on integers of its type, because then the value would be
 * rounded in any case. */
static int cost_of(const choice *x, const oct_site *s, double *macs, double *known, int *layers)
{
    const bool wide = widens(x, s);
    int n = 0;
    *macs = *known = 0;
    *layers = 0;
    for (size_t k = 0; k < x->n; k++) {
        const oct_qlayer *l = &x->layer[k];
        if (!would_take(x, k, s) && !(wide && would_widen(x, k, s)))
            continue;
        if (oct_row_of(l->job, l->node)->named)
            return 0;
        *macs += x->cost[k];
        *known += known_cost(x, k);
        *layers += oct_is_product(l->job, l->node) || oct_is_dynamic(l->job, l->node);
        n++;
    }
    return n;
}

/* The value whose rounding a reason is about: a recurrent layer rounds its input, and its state like that. */
static int value_of(const choice *x, const oct_site *s)
{
    return s->value >= 0 ? s->value : oct_site_job(x->j, s)->g->node[s->node].in[0];
}

static const char *name_of(const choice *x, const oct_site *s)
{
    return oct_value_name(oct_site_job(x->j, s)->g, value_of(x, s));
}

static oct_status take(choice *x, const reason *r, oct_err *err)
{
    char macs[OCT_MACS_TEXT];
    const char *name = name_of(x, r->site), *and = r->site->value >= 0 || r->site->body ? "" : " and the state";
    const char *why =
        isfinite(r->gain)
            ? oct_arena_printf(x->j->arena,
                               "rounding '%s'%s alone would cause %.0f %% of the loss at the outputs (about "
                               "%.1f dB are gained, for %s)",
                               name, and, 100 * r->share, r->gain, oct_macs_text(macs, r->macs))
            : oct_arena_printf(x->j->arena, "rounding '%s'%s alone would make outputs infinite or NaN", name, and);
    const char *as_float = why ? oct_arena_printf(x->j->arena, "left float: %s", why) : NULL;
    const char *as_wide = why ? oct_arena_printf(x->j->arena, "activations of 16 bits: %s", why) : NULL;
    if (!as_float || !as_wide)
        return oct_nomem(err);
    const bool wide = widens(x, r->site);
    for (size_t k = 0; k < x->n; k++) {
        if (wide ? !would_widen(x, k, r->site) : !would_take(x, k, r->site))
            continue;
        *(wide ? &x->wides[k] : &x->floats[k]) = x->attempt;
        const oct_constraint c = { .kind = wide ? OCT_CONSTRAINT_WIDE : OCT_CONSTRAINT_FLOAT,
                                   .from = OCT_FROM_MIXED_PRECISION,
                                   .node = x->layer[k].node,
                                   .why = wide ? as_wide : as_float };
        OCT_TRY(oct_constrain(&x->layer[k].job->constraints, &c, err));
        x->reason[k] = *r;
        x->now.widened |= wide;
    }
    return OCT_OK;
}

/* Whether a few elements of a value are many times larger than the others. */
static oct_status is_delicate(const choice *x, const oct_site *s, bool *delicate, oct_err *err)
{
    const oct_calib_tensor *t = oct_calib_find(x->calib, name_of(x, s));
    oct_observer_spec spec;
    oct_selection most;
    *delicate = false;
    if (!t || oct_stats_finite(&t->stats) == 0)
        return OCT_OK;
    OCT_TRY(oct_observer_parse("hist-percentile=90", &spec, err));
    OCT_TRY(oct_observe(&t->stats, spec, (oct_qrange){ 0, 255, false }, &most, err));
    const float peak = fmaxf(t->stats.max, -t->stats.min), common = fmaxf(most.range.hi, -most.range.lo);
    *delicate = peak > DELICATE * common;
    return OCT_OK;
}

/* Whether a value may be chosen, and whether it exceeds the budget. */
static oct_status may_take(choice *x, const oct_site *s, double macs, int layers, bool *may, bool *beyond, oct_err *err)
{
    const int place = (int)(s - x->s->site);
    *beyond = x->budget <= 0 || x->spent + x->now.spent + macs > x->budget; /* without a budget, what is free neither */
    if (x->extent >= A_SET) {
        *may = x->spent + x->now.spent + macs <= x->limit;
        x->now.spent += *may ? macs : 0;
        return OCT_OK;
    }
    *may =
        !*beyond || (x->dear + x->now.dear + layers <= MOST_DEAR && macs <= x->most_beyond &&
                     (x->extent == ALL_BEYOND || (x->extent == ONE_BEYOND && x->now.place < 0 && !x->refused[place])));
    if (!*may)
        return OCT_OK;
    if (!*beyond) {
        x->now.spent += macs;
        return OCT_OK;
    }
    bool delicate;
    OCT_TRY(is_delicate(x, s, &delicate, err));
    x->now.place = place;
    x->now.dear += layers;
    x->now.must_gain += layers * (delicate ? DELICATE_GAIN : DEAR_GAIN);
    return OCT_OK;
}

static double density(const choice *x, const oct_site *site)
{
    double macs, known;
    int layers;
    return cost_of(x, site, &macs, &known, &layers) == 0 ? 0 : site->noise / fmax(macs, LEAST_COST);
}

/* Considers the sites in the order of their noise, and for a set in that of the noise for each multiply-accumulate. */
static oct_status arrange(choice *x, oct_err *err)
{
    const oct_sensitivity *s = x->s;
    double *key = oct_calloc(s->n + 1, sizeof *key);
    if (!key)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        size_t at = i;
        x->order[i] = i;
        key[i] = x->extent < A_SET || !(s->site[i].noise > 0) ? 0 : density(x, &s->site[i]);
        for (; at > 0 && key[x->order[at - 1]] < key[i]; at--)
            x->order[at] = x->order[at - 1];
        x->order[at] = i;
    }
    oct_free(key);
    return OCT_OK;
}

/* Whether a value is worth its layers where the outputs are good already. Only of targets with tables of costs is it
 * known that a layer in float takes nearly nothing: others may hand it to another processor, or not run it. */
static bool is_bargain(const choice *x, const oct_site *site, double left)
{
    double macs, known;
    int layers;
    return oct_target_n_costs(x->j->opts.target) > 0 && x->extent == WITHIN_BUDGET && -10 * log10(left) < FINE_DB &&
           site->noise >= BARGAIN_SHARE * left && cost_of(x, site, &macs, &known, &layers) > 0 &&
           x->spent + x->now.spent + macs <= BARGAIN_COST;
}

static oct_status choose(choice *x, oct_err *err)
{
    const oct_sensitivity *s = x->s;
    const double least = x->extent < A_SET ? LEAST_SHARE : FINE_SHARE, enough = x->extent < A_SET ? GOOD_DB : ENOUGH_DB;
    double left = oct_sensitivity_left(x->j, s), macs, known;
    int layers;
    bool may, beyond;
    OCT_TRY(arrange(x, err));
    x->now.spent = x->now.must_gain = 0;
    x->now.dear = 0;
    x->now.place = -1;
    for (size_t i = 0; i < s->n; i++) {
        const oct_site *site = &s->site[x->order[i]];
        if (!(site->noise > 0))
            break;
        if (!oct_site_counts(x->j, site))
            continue;
        if ((-10 * log10(left) > enough && !is_bargain(x, site, left)) ||
            (x->extent < A_SET && site->noise < least * left))
            break;
        if (site->noise < least * left || cost_of(x, site, &macs, &known, &layers) == 0)
            continue;
        OCT_TRY(may_take(x, site, macs, layers, &may, &beyond, err));
        if (!may)
            continue;
        /* Errors need not add up: the remaining noise is at least what the next value causes. */
        const double next = i + 1 < s->n ? s->site[x->order[i + 1]].noise : 0, before = left;
        left = isinf(left) ? next : fmax(fmax(left - site->noise, left * 1e-3), next);
        const double share = isinf(before) ? 1 : fmin(1, site->noise / s->all.noise);
        OCT_TRY(take(x, &(reason){ site, share, isinf(before) ? INFINITY : 10 * log10(before / left), known, beyond },
                     err));
    }
    return OCT_OK;
}

/* The number of nodes that any attempt left float, or gave 16 bits. */
static size_t count(const choice *x, bool wide)
{
    size_t n = 0;
    for (size_t k = 0; k < x->n; k++)
        n += wide ? x->wides[k] && !x->floats[k] : x->floats[k] != 0;
    return n;
}

/* Whether the current attempt has chosen a node. */
static bool has_chosen(const choice *x)
{
    bool any = false;
    for (size_t k = 0; k < x->n; k++)
        any |= x->floats[k] == x->attempt || x->wides[k] == x->attempt;
    return any;
}

/* Drops the choice of the current attempt. */
static void forget(choice *x)
{
    for (size_t k = 0; k < x->n; k++) {
        oct_constraints *l = &x->layer[k].job->constraints;
        if (x->floats[k] == x->attempt) {
            x->floats[k] = 0;
            oct_constraints_drop(l, OCT_CONSTRAINT_FLOAT, OCT_FROM_MIXED_PRECISION, x->layer[k].node);
        } else if (x->wides[k] == x->attempt) {
            x->wides[k] = 0;
            oct_constraints_drop(l, OCT_CONSTRAINT_WIDE, OCT_FROM_MIXED_PRECISION, x->layer[k].node);
        }
    }
}

static void give_back(oct_trial *t, oct_conversion *c)
{
    forget(t->arg);
    oct_conversion_changed(c);
}

static oct_status take_some(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    choice *x = t->arg;
    x->now.may_widen = t->attempt == 0;
    x->now.widened = false;
    OCT_TRY(choose(x, err));
    t->gain = fmax(LEAST_GAIN, x->now.must_gain);
    t->attempts = x->now.widened ? 2 : t->attempts;
    const bool set = x->extent >= A_SET;
    if (x->extent == A_SET)
        t->gain = fmax(LEAST_GAIN, STEP_GAIN * (x->spent + x->now.spent - x->budget) / STEP_SHARE - (x->at - x->base));
    if (set                          ? has_chosen(x) && (t->attempt > 0 || x->now.spent != x->tried)
        : x->extent == WITHIN_BUDGET ? has_chosen(x)
                                     : x->now.place >= 0) {
        x->tried = x->now.spent;
        oct_conversion_changed(c);
    } else {
        forget(x); /* there is nothing beyond the budget, and the choice within it was tried before */
        r->why = nothing;
    }
    return OCT_OK;
}

/* Measures what values cause at least this share of the noise. */
static oct_status measure(oct_conversion *c, choice *x, double share, oct_err *err)
{
    oct_sim *sim;
    oct_sensitivity *s = oct_arena_calloc(c->arena, 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, 0, &sim, err));
    OCT_TRY(oct_sensitivity_find_worst(sim, c->job, share, x->same ? x->s : NULL, c->arena, s, err));
    x->same = true;
    x->s = c->sensitivity = s;
    x->order = oct_arena_calloc(c->arena, s->n + 1, sizeof *x->order);
    x->refused = oct_arena_calloc(c->arena, s->n + 1, sizeof *x->refused);
    return x->order && x->refused ? OCT_OK : oct_nomem(err);
}

/* Records the nodes that stay float or have 16 bits, with names that outlive the graph. */
static oct_status record(oct_conversion *c, const choice *x, oct_err *err)
{
    c->n_promoted = 0;
    c->promoted = oct_arena_calloc(c->arena, x->n + 1, sizeof *c->promoted);
    if (!c->promoted)
        return oct_nomem(err);
    for (size_t k = 0; k < x->n; k++) {
        const oct_qlayer *l = &x->layer[k];
        const reason *r = &x->reason[k];
        if (!x->floats[k] && !x->wides[k])
            continue;
        oct_promotion *p = &c->promoted[c->n_promoted++];
        *p = (oct_promotion){ .macs = known_cost(x, k),
                              .loss = r->share,
                              .gain = r->gain,
                              .beyond_budget = r->beyond,
                              .wide = !x->floats[k] };
        p->layer = oct_arena_printf(c->arena, "%s%s", l->job->where, oct_node_label(l->job->g, l->node));
        p->value = oct_arena_strdup(c->arena, name_of(x, r->site));
        if (!p->layer || !p->value)
            return oct_nomem(err);
    }
    return OCT_OK;
}

/* Whether the outputs are of little use: by their SQNR, or as classes differ from the float model's. Numbers that only
 * look like those of classes must not make a model float: where the SQNR is no reason, half of the work stays. */
static oct_status is_poor(oct_conversion *c, choice *x, double after, bool *poor, oct_err *err)
{
    *poor = after < POOR_DB;
    x->most_beyond = *poor ? 1 : 0.5;
    if (*poor || !(after < GOOD_DB))
        return OCT_OK;
    if (x->seen != after)
        OCT_TRY(oct_metric_disagrees(c, &x->disagrees, err));
    x->seen = after;
    *poor = x->disagrees;
    return OCT_OK;
}

static oct_status attempt(oct_conversion *c, oct_trial *t, extent most, oct_method_result *r, oct_err *err)
{
    choice *x = t->arg;
    x->attempt++;
    x->extent = most;
    t->attempts = 0;
    r->why = NULL;
    OCT_TRY(oct_conversion_try(c, t, r, err));
    x->at = r->after;
    if (t->won) {
        x->same = false;
        x->tried = -1;
        x->spent += x->now.spent;
        x->dear += x->now.dear;
    } else if (x->now.place >= 0) {
        x->refused[x->now.place] = true;
    }
    return OCT_OK;
}

/* Tries larger budgets than sets may have, so that a warning can name one with which the outputs are of use. */
static oct_status look_for_remedy(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    choice *x = t->arg;
    const double before = r->after, spent = x->spent;
    bool poor = true;
    for (size_t i = 0; i < OCT_COUNT(larger) && c->remedy.budget == 0; i++) {
        x->limit = larger[i];
        OCT_TRY(attempt(c, t, A_TRY, r, err));
        if (t->won)
            OCT_TRY(is_poor(c, x, r->after, &poor, err));
        if (t->won && !poor && isfinite(r->after)) { /* a model that is float throughout is no remedy */
            c->remedy.budget = x->spent;
            OCT_TRY(oct_conversion_at_outputs(c, &c->remedy.sqnr, err));
        }
        if (t->won)
            give_back(t, c);
        x->spent = spent;
    }
    r->after = x->at = before;
    return OCT_OK;
}

/* Tries sets of values beyond the budget, until the outputs are of use. */
static oct_status attempt_sets(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    choice *x = t->arg;
    bool poor = false;
    if (x->budget > 0)
        OCT_TRY(is_poor(c, x, r->after, &poor, err));
    if (!poor)
        return OCT_OK;
    OCT_TRY(measure(c, x, FINE_SHARE, err));
    x->base = x->at = r->after;
    x->tried = -1;
    for (int k = 0; k <= STEPS && poor; k++) {
        x->limit = x->budget + k * STEP_SHARE;
        OCT_TRY(attempt(c, t, A_SET, r, err));
        OCT_TRY(is_poor(c, x, r->after, &poor, err));
    }
    return poor ? look_for_remedy(c, t, r, err) : OCT_OK;
}

/* Measures the remaining loss, and makes attempts based on it. r->before: the loss before the first attempt. */
static oct_status attempt_all(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    choice *x = t->arg;
    OCT_TRY(measure(c, x, LEAST_SHARE, err));
    OCT_TRY(attempt(c, t, WITHIN_BUDGET, r, err));
    const double before = r->before;
    int refused = 0;
    bool poor = false;
    if (x->budget > 0)
        OCT_TRY(is_poor(c, x, r->after, &poor, err));
    for (int n = 0; n < MOST_TRIES && poor && (n == 0 || x->now.place >= 0); n++) {
        OCT_TRY(attempt(c, t, ONE_BEYOND, r, err));
        refused += x->now.place >= 0 && !t->won;
        OCT_TRY(is_poor(c, x, r->after, &poor, err));
    }
    if (refused > 1 && poor)
        OCT_TRY(attempt(c, t, ALL_BEYOND, r, err));
    r->before = before;
    return OCT_OK;
}

static oct_status choose_floats(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    OCT_TRY(attempt_all(c, t, r, err));
    const double before = r->before;
    if (r->after >= before + HIDING_DB) {
        OCT_TRY(c->run_methods(c, OCT_STEP_RANGES, err));
        ((choice *)t->arg)->same = false;
        OCT_TRY(attempt_all(c, t, r, err));
    }
    OCT_TRY(attempt_sets(c, t, r, err));
    r->before = before;
    return OCT_OK;
}

/* ---- stored weights ---- */

/* Measures what the rounded weights of these layers cost at the outputs, with all layers on integers again. The
 * constraints are dropped for that. */
static oct_status measure_weights(oct_conversion *c, const bool *layer, oct_sensitivity *out, oct_err *err)
{
    oct_sim *sim;
    oct_constraints_drop(&c->job->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_MIXED_PRECISION, -1);
    oct_conversion_changed(c);
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, 0, &sim, err));
    return oct_sensitivity_of_weights(sim, c->job, layer, c->arena, out, err);
}

static bool is_left_float(const choice *x, size_t k)
{
    const oct_constraint *l = oct_constraint_on(&x->layer[k].job->constraints, x->layer[k].node, OCT_CONSTRAINT_FLOAT);
    return x->floats[k] && l && l->from == OCT_FROM_MIXED_PRECISION;
}

static bool may_store(const choice *x, size_t k)
{
    const oct_qlayer *l = &x->layer[k];
    return oct_op_of(l->job->g, l->node)->quant == OCT_QUANT_WEIGHTED && !oct_no_stored(l->job, l->node);
}

/* Layers that are float for the sake of their activations keep weights in 8 bits: those that add least, as long as all
 * of them add little to the noise that is left, or outputs stay good. */
static oct_status store_weights(oct_conversion *c, const choice *x, double after, oct_err *err)
{
    const oct_qjob *j = x->j;
    oct_constraint *kept = oct_arena_calloc(c->arena, j->n_nodes + 1, sizeof *kept);
    bool *layer = oct_arena_calloc(c->arena, j->n_nodes + 1, sizeof *layer);
    oct_sensitivity s;
    size_t n = 0;
    if (!kept || !layer)
        return oct_nomem(err);
    for (size_t k = 0; k < x->n; k++) {
        const int id = x->layer[k].node;
        if (x->layer[k].job != j || !is_left_float(x, k))
            continue;
        kept[id] = *oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_FLOAT);
        layer[id] = may_store(x, k);
        n += layer[id];
    }
    if (n == 0 || isnan(after))
        return OCT_OK;
    OCT_TRY(measure_weights(c, layer, &s, err));
    const double left = pow(10, -after / 10);
    double room = fmax(STORED_NOISE * left, pow(10, -GOOD_DB / 10) - left);
    for (size_t i = s.n; i-- > 0 && s.site[i].noise <= room;) {
        room -= s.site[i].noise;
        kept[s.site[i].node].scheme = OCT_SCHEME_STORED;
    }
    for (size_t id = 0; id < j->n_nodes; id++)
        if (kept[id].why)
            OCT_TRY(oct_constrain(&c->job->constraints, &kept[id], err));
    oct_conversion_changed(c);
    return OCT_OK;
}

/* Sets the scheme of those in bodies that can store weights. Returns how many. */
static oct_status set_in_bodies(oct_conversion *c, const choice *x, oct_scheme scheme, size_t *n, oct_err *err)
{
    *n = 0;
    for (size_t k = 0; k < x->n; k++) {
        const oct_qlayer *l = &x->layer[k];
        if (l->job == x->j || !is_left_float(x, k) || !may_store(x, k))
            continue;
        oct_constraint made = *oct_constraint_on(&l->job->constraints, l->node, OCT_CONSTRAINT_FLOAT);
        made.scheme = scheme;
        OCT_TRY(oct_constrain(&l->job->constraints, &made, err));
        ++*n;
    }
    if (*n)
        oct_conversion_changed(c);
    return OCT_OK;
}

/* The loss on each half of the samples. */
static oct_status measure_halves(oct_conversion *c, oct_sim_loss loss[2], oct_err *err)
{
    for (int half = 0; half < 2; half++) {
        oct_sim *sim;
        OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, half, &sim, err));
        OCT_TRY(oct_sim_measure(sim, &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS }, &loss[half], err));
    }
    return OCT_OK;
}

/* The same in bodies, for all of them together, since the simulation has a body as a whole. That outputs are good says
 * less here: samples that seldom take a branch do not show what it loses. */
static oct_status store_in_bodies(oct_conversion *c, const choice *x, oct_err *err)
{
    oct_sim_loss before[2], after[2];
    size_t n = 0;
    for (size_t k = 0; k < x->n; k++)
        n += x->layer[k].job != x->j && is_left_float(x, k) && may_store(x, k);
    if (n == 0)
        return OCT_OK;
    OCT_TRY(measure_halves(c, before, err));
    OCT_TRY(set_in_bodies(c, x, OCT_SCHEME_STORED, &n, err));
    OCT_TRY(measure_halves(c, after, err));
    const bool little = after[0].noise <= before[0].noise * (1 + STORED_NOISE) &&
                        after[1].noise <= before[1].noise * (1 + STORED_NOISE);
    return little ? OCT_OK : set_in_bodies(c, x, OCT_SCHEME_AUTO, &n, err);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    choice x = { .j = c->job,
                 .layer = c->job->all,
                 .n = c->job->n_all,
                 .calib = c->calib,
                 .budget = c->o.budget ? *c->o.budget : BUDGET,
                 .seen = NAN };
    oct_trial t = { .size = OCT_SIM_MANY_RUNS, .act = take_some, .undo = give_back, .arg = &x };
    x.cost = oct_arena_calloc(c->arena, x.n + 1, sizeof *x.cost);
    x.floats = oct_arena_calloc(c->arena, x.n + 1, sizeof *x.floats);
    x.wides = oct_arena_calloc(c->arena, x.n + 1, sizeof *x.wides);
    x.reason = oct_arena_calloc(c->arena, x.n + 1, sizeof *x.reason);
    if (!x.cost || !x.floats || !x.wides || !x.reason)
        return oct_nomem(err);
    oct_job_shares(x.j, x.cost);
    OCT_TRY(choose_floats(c, &t, r, err));
    const size_t n = count(&x, false), wide = count(&x, true);
    if (n)
        OCT_TRY(store_weights(c, &x, r->after, err));
    OCT_TRY(store_in_bodies(c, &x, err));
    r->why = n || wide ? NULL : nothing;
    r->measure = n || wide ? r->measure : NULL; /* what was measured is not what the model has */
    *r->choice = '\0';
    if (wide)
        snprintf(r->choice, sizeof r->choice,
                 n ? "%zu nodes get 16 bits, %zu stay float" : "%zu nodes get activations of 16 bits", wide, n);
    else if (n)
        snprintf(r->choice, sizeof r->choice, "%zu nodes stay float", n);
    return record(c, &x, err);
}

const oct_method oct_method_mixed_precision = {
    .name = "mixed-precision",
    .summary = "layers around values that cause most of the loss stay float, or get 16 bits",
    .step = OCT_STEP_CHOICE,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .of_dynamic = true,
    .run = run,
};
