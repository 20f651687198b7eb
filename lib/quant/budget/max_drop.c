/* Trials that leave layers float, or give them 16-bit activations, until the result reaches its goals.
 *
 * The noise that each value and each layer's weights cause at the outputs is measured once (sensitivity.h). It
 * determines the order of moves. A move leaves one layer float, or leaves the layers around one value float, or widens
 * the layers around one value if the target runs 16 bits no slower than floats (wide.c). Moves come first that remove
 * the most noise for the time that 8-bit integers would have saved. So around a value 16 bits come before float, and if
 * they do not suffice, the layers may still become float. Layers in bodies are moved one by one. Noise is summed over
 * the outputs, and may say little of the part of an output that a metric reads: boxes in pixels hide scores. So when no
 * noise is left to remove, the other values follow, from the outputs backwards; what joins or moves values (Concat,
 * Transpose, Unsqueeze) is as much part of a move as layers are. A trial makes the first n moves. The number n is
 * doubled until the goals are met, then bisected. The remaining trials look for moves that are not needed. Each trial
 * starts at the choice of schemes and rounds anew. Its result is that of a conversion whose policy leaves those layers
 * float, or gives them those types. */
#include "base/io.h"

#include "quant/convert/convert_int.h"
#include "quant/job/annotate.h"
#include "quant/job/decisions.h"
#include "quant/job/placed.h"
#include "quant/place/place.h"
#include "quant/simulate/sensitivity.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* causes with a smaller share of the noise are not measured separately; a cause with a smaller share of the worst
 * cause's noise makes no move */
#define LEAST_SHARE 0.02
#define WIDE_COST 0.5 /* the share of the time saved by 8-bit integers that 16-bit activations are assumed to lose */
enum { LEAST_DIVIDED = 32 }; /* how many samples each half needs, for a metric without an interval */

/* ---- as text ---- */

const char *oct_goal_text(char dst[OCT_GATE_TEXT], const oct_goal *g, const oct_eval_score *s)
{
    if (!g->metric || s->metric->kind != OCT_METRIC_WHOLE)
        return oct_report_gate(dst, s, &g->limit);
    const bool missed = oct_eval_judge(s, &g->limit).missed;
    char value[32] = "outputs equal to float";
    if (isfinite(s->value))
        snprintf(value, sizeof value, "%.1f dB", s->value);
    snprintf(dst, OCT_GATE_TEXT, "output SQNR: %s, at least %.1f dB is asked for: %s",
             isnan(s->value) ? "not a number" : value, -10 * oct_log10(g->limit.value), missed ? "missed" : "met");
    return dst;
}

const char *oct_goal_trial_text(char dst[OCT_TRIAL_TEXT], const oct_goal_trial *t)
{
    char macs[OCT_MACS_TEXT], share[OCT_MACS_TEXT + 16] = "";
    int n;
    if (t->layers)
        snprintf(share, sizeof share, ", with %s", oct_macs_text(macs, t->macs));
    if (!t->layers && t->others) /* operators between layers multiply nothing that is counted */
        n = snprintf(dst, OCT_TRIAL_TEXT, "%zu operator%s without weights left float for the goal", t->others,
                     t->others == 1 ? "" : "s");
    else if (t->layers)
        n = snprintf(dst, OCT_TRIAL_TEXT, "%zu layer%s left float for the goal%s", t->layers, t->layers == 1 ? "" : "s",
                     share);
    else
        n = snprintf(dst, OCT_TRIAL_TEXT, "no layer left float for the goal");
    if (t->wide)
        snprintf(dst + n, OCT_TRIAL_TEXT - (size_t)n, ", and %zu with activations of 16 bits", t->wide);
    return dst;
}

/* ---- the moves ---- */

/* Values that share parameters, and the layers that compute or read them rounded. */
typedef struct place {
    const oct_qjob *of; /* the job of their graph */
    int root;
    double noise; /* 0: the place does not count any more */
    size_t *layer;
    size_t n;
} place;

/* What moves make of a layer. */
enum { AS_IT_WAS, WIDE, FLOATS };

/* A move: leaves a layer float; or, with layer -1, leaves everything around a place float, or gives it 16-bit
 * activations. */
typedef struct move {
    int layer;
    const place *at;
    bool wide;
} move;

typedef struct tuning {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    const oct_qlayer *layer; /* [n_layers]: those of the model, and of the graphs that nodes hold */
    size_t n_layers;
    double *share; /* [n_layers]: of the multiply-accumulates */
    place *place;
    size_t n_places;
    double *weights;      /* [n_layers]: the noise from their rounded weights; in bodies, from all that they round */
    double noise;         /* the noise of all places and weights */
    unsigned char *moved; /* [n_layers]: what all moves together make of the layer */
    move *moves;
    const char **why; /* [n_moves] */
    int *order;       /* [n_moves]: their order; a trial takes the first ones */
    int n_moves;
    unsigned char **tried; /* [trials + 1][n_layers]: what each trial made of the layers */
    size_t products;
    bool aside; /* samples were kept aside */
} tuning;

/* Whether a layer rounds its inputs, on integers or in float between quantizers. */
static bool rounds(const tuning *t, size_t k)
{
    const oct_qlayer *l = &t->layer[k];
    return oct_is_static(l->job, l->node) || oct_is_dynamic(l->job, l->node) || oct_rounds_inputs(l->job, l->node);
}

static bool has_weights(const tuning *t, size_t k)
{
    return oct_is_product(t->layer[k].job, t->layer[k].node) || oct_is_dynamic(t->layer[k].job, t->layer[k].node);
}

/* Whether it may become float because of its weights; in a body, which is measured layer by layer, because of whatever
 * it rounds. */
static bool may_move(const tuning *t, size_t k)
{
    return has_weights(t, k) || (t->layer[k].job != t->j && rounds(t, k));
}

static bool takes(const move *m, size_t k)
{
    for (size_t i = 0; m->at && i < m->at->n; i++)
        if (m->at->layer[i] == k)
            return true;
    return m->layer >= 0 && (size_t)m->layer == k;
}

/* Whether a move still changes a layer, after the moves before it. */
static bool changes(const tuning *t, const move *m, size_t k)
{
    return rounds(t, k) && t->moved[k] < (m->wide ? WIDE : FLOATS);
}

static size_t size_of(const move *m)
{
    return m->layer >= 0 ? 1 : m->at->n;
}

static size_t layer_of(const move *m, size_t i)
{
    return m->layer >= 0 ? (size_t)m->layer : m->at->layer[i];
}

/* Whether all layers may be widened that a move would widen. */
static bool may_widen(const tuning *t, const move *m)
{
    for (size_t i = 0; i < m->at->n; i++) {
        const oct_qlayer *l = &t->layer[m->at->layer[i]];
        if (changes(t, m, m->at->layer[i]) && (oct_row_of(l->job, l->node)->typed || !oct_may_be_wide(l->job, l->node)))
            return false;
    }
    return true;
}

/* Whether no layer that rounds to 8 bits would compute or read the values of a place after a move; m NULL: at
 * present. */
static bool frees(const tuning *t, const move *m, const place *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (rounds(t, p->layer[i]) && t->moved[p->layer[i]] == AS_IT_WAS && !(m && takes(m, p->layer[i])))
            return false;
    return true;
}

/* The cost of a move at a layer: multiply-accumulates, and a constant for each layer, because borders take time too. */
static double cost_of(const tuning *t, const move *m, size_t k)
{
    const double whole = t->share[k] + (has_weights(t, k) ? 1 : 0.1) / (double)(t->products ? t->products : 1);
    return whole * (m->wide ? WIDE_COST : t->moved[k] == WIDE ? 1 - WIDE_COST : 1);
}

/* The noise that a move removes. */
static double gain_of(const tuning *t, const move *m, double *cost)
{
    double noise = 0;
    *cost = 0;
    for (size_t i = 0; i < size_of(m); i++) {
        const size_t k = layer_of(m, i);
        if (!changes(t, m, k))
            continue;
        noise += m->wide ? 0 : t->weights[k];
        *cost += cost_of(t, m, k);
    }
    for (size_t k = 0; k < t->n_places && *cost > 0; k++)
        if (t->place[k].noise > 0 && frees(t, m, &t->place[k]))
            noise += t->place[k].noise;
    return noise;
}

static oct_status perform(tuning *t, const move *m, double noise, oct_err *err)
{
    const oct_qlayer *l = m->layer >= 0 ? &t->layer[m->layer] : NULL;
    const char *what = !l               ? "the value"
                       : l->job == t->j ? "the weights of"
                                        : "the layer",
               *name = l ? oct_node_label(l->job->g, l->node) : oct_value_name(m->at->of->g, m->at->root);
    const char *as = m->wide ? "activations of 16 bits" : "left float";
    const char *why =
        noise > 0
            ? oct_arena_printf(
                  t->j->arena,
                  "%s to reach the goal: rounding %s '%s', and what goes with it, causes %.0f %% of the noise at the outputs",
                  as, what, name, 100 * noise / t->noise)
            : oct_arena_printf(t->j->arena, "%s to reach the goal: it computes or reads the value '%s'", as, name);
    if (!why)
        return oct_nomem(err);
    for (size_t i = 0; i < size_of(m); i++)
        if (changes(t, m, layer_of(m, i)))
            t->moved[layer_of(m, i)] = m->wide ? WIDE : FLOATS;
    for (size_t k = 0; k < t->n_places; k++)
        t->place[k].noise = frees(t, NULL, &t->place[k]) ? 0 : t->place[k].noise;
    t->moves[t->n_moves] = *m;
    t->why[t->n_moves] = why;
    t->order[t->n_moves] = t->n_moves;
    t->n_moves++;
    return OCT_OK;
}

static void consider(const tuning *t, const move *m, move *best, double *most, double *noise)
{
    double cost;
    if (m->wide && !may_widen(t, m))
        return;
    const double gain = gain_of(t, m, &cost);
    if (!(gain > 0) || !(gain / cost > *most))
        return;
    *best = *m;
    *most = gain / cost;
    *noise = gain;
}

/* Orders the moves by the noise that they remove for their cost, where each comes after those before it. */
static oct_status order_moves(tuning *t, oct_err *err)
{
    for (;;) {
        move best = { .layer = -1 };
        double most = 0, noise = 0;
        for (size_t k = 0; k < t->n_places; k++)
            for (int wide = 1; t->place[k].noise > 0 && wide >= 0; wide--)
                consider(t, &(move){ -1, &t->place[k], wide }, &best, &most, &noise);
        for (size_t k = 0; k < t->n_layers; k++)
            if (may_move(t, k))
                consider(t, &(move){ .layer = (int)k }, &best, &most, &noise);
        if (!(most > 0))
            return OCT_OK;
        OCT_TRY(perform(t, &best, noise, err));
    }
}

static oct_status add_place(tuning *t, const oct_site *s, oct_err *err)
{
    place *p = &t->place[t->n_places++];
    *p = (place){ .of = oct_site_job(t->j, s),
                  .root = s->value,
                  .noise = s->noise,
                  .layer = oct_arena_calloc(t->a, t->n_layers + 1, sizeof *p->layer) };
    if (!p->layer)
        return oct_nomem(err);
    for (size_t k = 0; k < t->n_layers; k++)
        if (t->layer[k].job == p->of && rounds(t, k) && oct_site_touches(p->of, t->layer[k].node, s->value))
            p->layer[p->n++] = k;
    return OCT_OK;
}

/* Adds a move that leaves everything around a value float, if that still changes something. */
static oct_status move_around(tuning *t, oct_qjob *of, int v, oct_err *err)
{
    const oct_site s = { .body = of == t->j ? NULL : of, .value = oct_params_root(of, v), .node = -1 };
    double cost;
    OCT_TRY(add_place(t, &s, err));
    const move m = { -1, &t->place[t->n_places - 1], false };
    gain_of(t, &m, &cost);
    if (cost > 0)
        return perform(t, &m, 0, err);
    t->n_places--;
    return OCT_OK;
}

/* The same for all values that still are rounded, from the outputs backwards. */
static oct_status move_the_rest(tuning *t, oct_err *err)
{
    size_t n_values = 0;
    for (size_t k = 0; k < t->n_layers; k++)
        n_values += (size_t)(t->layer[k].job->g->node[t->layer[k].node].n_in +
                             t->layer[k].job->g->node[t->layer[k].node].n_out);
    if (!(t->place = oct_arena_calloc(t->a, n_values + 1, sizeof *t->place)))
        return oct_nomem(err);
    t->n_places = 0;
    for (size_t i = t->n_layers; i-- > 0;) {
        oct_qjob *of = t->layer[i].job;
        const oct_node *n = &of->g->node[t->layer[i].node];
        for (int k = -n->n_out; k < n->n_in; k++) {
            const int v = k < 0 ? n->out[n->n_out + k] : n->in[k];
            if (v >= 0 && rounds(t, i) && t->moved[i] != FLOATS && oct_is_wanted(of, v) && !of->g->value[v].constant)
                OCT_TRY(move_around(t, of, v, err));
        }
    }
    return OCT_OK;
}

/* The layer that a site is; n_layers: it is a value, or a node that holds graphs, whose layers stand for it. */
static size_t layer_at(const tuning *t, const oct_site *s)
{
    const oct_qjob *of = oct_site_job(t->j, s);
    size_t k = 0;
    if (s->node < 0 || oct_node_graph_at(&of->g->node[s->node], 0))
        return t->n_layers;
    while (k < t->n_layers && !(t->layer[k].job == of && t->layer[k].node == s->node))
        k++;
    return k;
}

static oct_status find_sites(tuning *t, oct_err *err)
{
    oct_sensitivity s;
    OCT_TRY(oct_conversion_sensitivity(t->c, LEAST_SHARE, &s, err));
    OCT_TRY(oct_conversion_sensitivity_in_bodies(t->c, LEAST_SHARE, &s, err));
    if (!(t->place = oct_arena_calloc(t->a, s.n + 1, sizeof *t->place)))
        return oct_nomem(err);
    t->n_places = 0;
    t->noise = 0;
    memset(t->weights, 0, t->n_layers * sizeof *t->weights);
    for (size_t i = 0; i < s.n && s.site[i].noise > 0 && s.site[i].noise >= LEAST_SHARE * s.site[0].noise; i++) {
        const size_t k = layer_at(t, &s.site[i]);
        if (k < t->n_layers)
            t->weights[k] = s.site[i].noise;
        else if (s.site[i].value >= 0)
            OCT_TRY(add_place(t, &s.site[i], err));
        t->noise += k < t->n_layers || s.site[i].value >= 0 ? s.site[i].noise : 0;
    }
    return OCT_OK;
}

/* Adds moves after the existing ones, based on the current decisions. */
static oct_status find_more(tuning *t, oct_err *err)
{
    const int before = t->n_moves;
    OCT_TRY(find_sites(t, err));
    OCT_TRY(order_moves(t, err));
    return t->n_moves > before ? OCT_OK : move_the_rest(t, err);
}

static oct_status find_moves(tuning *t, oct_err *err)
{
    const size_t n_moves = 2 * t->n_layers + 1; /* each move changes a layer, which may become wide and later float */
    t->weights = oct_arena_calloc(t->a, t->n_layers + 1, sizeof *t->weights);
    t->moved = oct_arena_calloc(t->a, t->n_layers + 1, sizeof *t->moved);
    t->moves = oct_arena_calloc(t->a, n_moves, sizeof *t->moves);
    t->order = oct_arena_calloc(t->a, n_moves, sizeof *t->order);
    t->why = oct_arena_calloc(t->a, n_moves, sizeof *t->why);
    if (!t->weights || !t->moved || !t->moves || !t->order || !t->why)
        return oct_nomem(err);
    return find_more(t, err);
}

/* ---- one trial ---- */

/* What a trial may change. */
typedef struct oct_trial_start {
    oct_decisions of;
    oct_method_result *methods;
} decisions;

static oct_status keep(const oct_conversion *c, oct_arena *a, decisions *d, oct_err *err)
{
    d->methods = oct_arena_memdup(a, c->methods, c->n_methods * sizeof *c->methods);
    return d->methods ? oct_decisions_keep(c->job, a, &d->of, err) : oct_nomem(err);
}

static oct_status restore(tuning *t, const decisions *d, oct_err *err)
{
    OCT_TRY(oct_decisions_restore(t->j, &d->of, err));
    memcpy(t->c->methods, d->methods, t->c->n_methods * sizeof *t->c->methods);
    t->c->decided = true;
    oct_conversion_edited(t->c);
    return OCT_OK;
}

static bool has_trials(const oct_conversion *c)
{
    return c->o.n_goals && c->o.trials && c->src;
}

oct_status oct_goal_prepare(oct_conversion *c, oct_err *err)
{
    if (!has_trials(c))
        return OCT_OK;
    OCT_TRY(oct_conversion_settle(c, err));
    decisions *d = oct_arena_calloc(c->arena, 1, sizeof *d);
    c->before_rounding = d;
    return d ? keep(c, c->arena, d, err) : oct_nomem(err);
}

/* The reason of the move, among the first n, that leaves a layer float or widens it; NULL: there is none. *weights (may
 * be NULL): whether one of them does so because of its weights. */
static const char *moved_by(const tuning *t, int n, size_t k, bool wide, bool *weights)
{
    const char *why = NULL;
    for (int i = n; i-- > 0;)
        if (t->moves[t->order[i]].wide == wide && takes(&t->moves[t->order[i]], k)) {
            why = t->why[t->order[i]];
            if (weights)
                *weights |= t->moves[t->order[i]].layer >= 0;
        }
    return why;
}

/* A layer that quantizes its inputs when it runs keeps 8-bit weights if these are not the cause. (Recurrent layers keep
 * them in any case.) */
static oct_constraint constraint_of(const oct_qlayer *l, bool wide, bool weights, const char *why)
{
    oct_constraint c = {
        .kind = wide ? OCT_CONSTRAINT_WIDE : OCT_CONSTRAINT_FLOAT, .from = OCT_FROM_GOALS, .node = l->node, .why = why
    };
    if (!wide && !weights && oct_is_dynamic_product(l->job, l->node) && !oct_no_stored(l->job, l->node)) {
        c.kind = OCT_CONSTRAINT_FORM;
        c.scheme = OCT_SCHEME_STORED;
    }
    return c;
}

/* Decides with the first n moves. */
static oct_status decide(tuning *t, int n, oct_err *err)
{
    oct_conversion *c = t->c;
    OCT_TRY(restore(t, c->before_rounding, err));
    for (size_t k = 0; k < t->n_layers; k++) {
        bool weights = false;
        const char *floats = moved_by(t, n, k, false, &weights),
                   *widens = floats ? NULL : moved_by(t, n, k, true, NULL);
        const oct_constraint now = constraint_of(&t->layer[k], !floats, weights, floats ? floats : widens);
        if (now.why)
            OCT_TRY(oct_constrain(&t->layer[k].job->constraints, &now, err));
    }
    oct_conversion_changed(c);
    OCT_TRY(oct_conversion_settle(c, err));
    for (int step = OCT_STEP_CHOICE + 1; step < OCT_STEP_COUNT; step++)
        OCT_TRY(c->run_methods(c, (oct_method_step)step, err));
    return oct_conversion_settle(c, err);
}

static oct_status compare(tuning *t, oct_goal_trial *x, oct_err *err)
{
    oct_conversion *c = t->c;
    oct_graph *g;
    oct_eval_result *r = NULL;
    const oct_pick pick = { .aside = t->aside, .n = c->divided ? 2 : 0 };
    OCT_TRY(oct_source_pick(c->src, &pick, err));
    OCT_TRY(oct_quantized_copy(t->j, &g, err));
    const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, oct_conversion_result(c, c->o.name, g) };
    oct_status st = oct_conversion_compare(c, models, false, &r, err);
    if (st == OCT_OK)
        st = oct_goal_scores(c, r, x->score, err);
    if (st == OCT_OK) {
        x->sqnr = r->models[1].sqnr_db;
        x->samples = (uint64_t)r->samples;
        x->met = true;
        for (size_t i = 0; i < c->o.n_goals; i++)
            x->met &= !oct_eval_judge(&x->score[i], &c->o.goals[i].limit).missed;
    }
    oct_eval_free(r);
    oct_graph_destroy(g);
    return st;
}

static void tell(const oct_conversion *c, const oct_goal_trial *x)
{
    char text[OCT_GATE_TEXT], layers[OCT_TRIAL_TEXT];
    oct_buf b = OCT_BUF_INIT;
    for (size_t i = 0; i < c->o.n_goals; i++)
        oct_buf_printf(&b, "; %s", oct_goal_text(text, &c->o.goals[i], &x->score[i]));
    const size_t n = (size_t)(x - c->trials);
    if (n)
        oct_conversion_say((oct_conversion *)(uintptr_t)c, 0, "trial %zu: %s%s", n, oct_goal_trial_text(layers, x),
                           oct_buf_str(&b));
    else
        oct_conversion_say((oct_conversion *)(uintptr_t)c, 0, "before trials%s", oct_buf_str(&b));
    oct_buf_free(&b);
}

/* What the first n moves make of a layer; quantized: whether it was before. */
static unsigned char made_of(const tuning *t, int n, bool quantized, size_t k)
{
    if (!quantized)
        return AS_IT_WAS;
    return moved_by(t, n, k, false, NULL) ? FLOATS : moved_by(t, n, k, true, NULL) ? WIDE : AS_IT_WAS;
}

/* *at: the trial of the first n moves, or an earlier trial that made the same of all layers. */
static oct_status try_moves(tuning *t, int n, const decisions *first, size_t *at, oct_err *err)
{
    oct_conversion *c = t->c;
    oct_goal_trial *x = &c->trials[c->n_trials];
    unsigned char *set = t->tried[c->n_trials] = oct_arena_calloc(t->a, t->n_layers + 1, sizeof *set);
    if (!set)
        return oct_nomem(err);
    *x = (oct_goal_trial){ .layers = 0 };
    for (size_t k = 0; k < t->n_layers; k++) {
        const oct_qlayer *l = &t->layer[k];
        const oct_decisions *kept = oct_decisions_of(t->j, &first->of, l->job);
        const oct_scheme was = oct_kept_scheme(kept, l->node);
        set[k] = made_of(t, n, oct_kept_quantized(kept, l->node), k);
        if (set[k] == AS_IT_WAS || (was != OCT_SCHEME_STATIC && was != OCT_SCHEME_DYNAMIC))
            continue;
        const bool weighted = was == OCT_SCHEME_DYNAMIC || oct_op_of(l->job->g, l->node)->quant == OCT_QUANT_WEIGHTED;
        *(set[k] == WIDE ? &x->wide : &x->layers) += weighted;
        x->others += set[k] == FLOATS && !weighted;
        x->macs += set[k] == WIDE ? 0 : t->share[k];
    }
    for (*at = 1; *at < c->n_trials; ++*at)
        if (memcmp(t->tried[*at], set, t->n_layers * sizeof *set) == 0)
            return OCT_OK;
    OCT_TRY(decide(t, n, err));
    OCT_TRY(compare(t, x, err));
    c->n_trials++;
    tell(c, x);
    return OCT_OK;
}

/* ---- which trial is best ---- */

/* How far the goals are missed, each relative to how far the first trial missed it. */
static double missing(const oct_conversion *c, const oct_goal_trial *x)
{
    double sum = 0;
    for (size_t i = 0; i < c->o.n_goals; i++) {
        const oct_eval_gate now = oct_eval_judge(&x->score[i], &c->o.goals[i].limit);
        const double beyond = x->score[i].drop - now.allowed, at_first = c->trials[0].score[i].drop - now.allowed;
        if (now.missed)
            sum += isnan(beyond) ? INFINITY : at_first > 0 ? beyond / at_first : 1;
    }
    return sum;
}

/* Whether the samples cannot distinguish two trials by any goal: each lies within the interval of the other. */
static bool alike(const oct_conversion *c, const oct_goal_trial *x, const oct_goal_trial *y)
{
    for (size_t i = 0; i < c->o.n_goals; i++) {
        const oct_eval_score *a = &x->score[i], *b = &y->score[i];
        if (!(a->lo <= b->drop && b->drop <= a->hi && b->lo <= a->drop && a->drop <= b->hi))
            return false;
    }
    return true;
}

/* Of two trials that reach the goals, the better one has fewer float layers, then fewer 16-bit layers, then fewer other
 * operators in float. Of two that do not, the better one is nearer to the goals, or has the higher SQNR at the outputs
 * if the samples cannot distinguish them. */
static bool is_better(const oct_conversion *c, const oct_goal_trial *x, const oct_goal_trial *than)
{
    if (x->met != than->met)
        return x->met;
    if (x->met && x->layers != than->layers)
        return x->layers < than->layers;
    if (x->met)
        return x->macs != than->macs   ? x->macs < than->macs
               : x->wide != than->wide ? x->wide < than->wide
                                       : x->others < than->others;
    return alike(c, x, than) ? x->sqnr > than->sqnr : missing(c, x) < missing(c, than);
}

/* ---- the search ---- */

static bool may_go_on(oct_conversion *c)
{
    c->stopped = c->o.time_limit > 0 && oct_now() - c->began > c->o.time_limit;
    return !c->stopped && c->n_trials <= (size_t)c->o.trials;
}

/* The state of the search: the number of moves that is too small, the number that suffices, and how many of the first
 * moves are known to be needed. */
typedef struct bounds {
    int missed, met, needed; /* met 0: no sufficient number is known */
} bounds;

/* One move less is too few, so the last move is needed. It goes to the front, and then the search continues for the
 * fewest other moves that it needs beside it. This helps because moves are ordered by noise for their cost, and not by
 * what the goal lacks. */
static void keep_last(tuning *t, bounds *b)
{
    const int last = t->order[b->met - 1];
    memmove(t->order + b->needed + 1, t->order + b->needed, (size_t)(b->met - 1 - b->needed) * sizeof *t->order);
    t->order[b->needed] = last;
    b->missed = b->needed++;
}

/* The number of moves to try next; 0: none. */
static oct_status next_moves(tuning *t, bounds *b, int *n, oct_err *err)
{
    *n = 0;
    if (b->met && b->met - b->missed <= 1 && b->needed < b->met)
        keep_last(t, b);
    if (!may_go_on(t->c) || (b->met && b->needed >= b->met))
        return OCT_OK;
    if (b->missed == t->n_moves &&
        b->missed > 0) /* noise that was too small to be measured separately matters after the larger noise is gone */
        OCT_TRY(find_more(t, err));
    if (b->met)
        *n = b->needed > b->missed ? b->needed : (b->missed + b->met) / 2;
    else if (b->missed < t->n_moves)
        *n = b->missed == 0 ? 1 : 2 * b->missed < t->n_moves ? 2 * b->missed : t->n_moves;
    return OCT_OK;
}

static oct_status search(tuning *t, oct_err *err)
{
    oct_conversion *c = t->c;
    decisions first, best;
    bounds b = { 0, 0, 0 };
    size_t at = 0, now = 0;
    int n;
    if (!(t->tried = oct_arena_calloc(t->a, (size_t)c->o.trials + 1, sizeof *t->tried)))
        return oct_nomem(err);
    OCT_TRY(keep(c, t->a, &first, err));
    best = first;
    for (;;) {
        OCT_TRY(next_moves(t, &b, &n, err));
        if (!n)
            break;
        OCT_TRY(try_moves(t, n, &first, &now, err));
        if (now + 1 == c->n_trials && is_better(c, &c->trials[now], &c->trials[at])) {
            at = now;
            OCT_TRY(keep(c, t->a, &best, err));
        }
        *(c->trials[now].met ? &b.met : &b.missed) = n;
    }
    OCT_TRY(restore(t, &best, err));
    c->trials[at].taken = true;
    return OCT_OK;
}

/* Whether half of the samples suffice to decide every goal. Then the samples that choose need not judge as well. The
 * interval of half the samples is wider by the square root of 2. */
static bool halves_decide(const oct_conversion *c, const oct_goal_trial *x)
{
    for (size_t i = 0; i < c->o.n_goals; i++) {
        const oct_eval_score *s = &x->score[i];
        const bool enough = isnan(s->lo)
                                ? x->samples >= LEAST_DIVIDED
                                : (s->hi - s->lo) / sqrt(2) <= oct_drop_allowed(&c->o.goals[i].limit, s->reference);
        if (!enough)
            return false;
    }
    return true;
}

/* Measures the result without trials, on all samples that judge, or on the half that chooses. */
static oct_status measure_first(tuning *t, oct_err *err)
{
    oct_conversion *c = t->c;
    OCT_TRY(compare(t, &c->trials[0], err));
    if (c->trials[0].met || !t->aside || oct_conversion_in_pairs(c) || !halves_decide(c, &c->trials[0]))
        return OCT_OK;
    const oct_goal_trial all = c->trials[0];
    c->divided = true;
    OCT_TRY(compare(t, &c->trials[0], err));
    if (!c->trials[0].met)
        return OCT_OK;
    c->divided = false; /* the half that chooses finds the goals met */
    c->trials[0] = all;
    return OCT_OK;
}

static oct_status tune(tuning *t, oct_err *err)
{
    oct_conversion *c = t->c;
    OCT_TRY(measure_first(t, err));
    c->n_trials = 1;
    c->trials[0].taken = true;
    if (c->trials[0].met)
        return OCT_OK;
    tell(c, &c->trials[0]);
    OCT_TRY(find_moves(t, err));
    c->trials[0].taken = false;
    return search(t, err);
}

oct_status oct_goal_reach(oct_conversion *c, oct_err *err)
{
    tuning t = {
        .c = c, .j = c->job, .layer = c->job->all, .n_layers = c->job->n_all, .aside = c->judged == OCT_JUDGED_OTHERS
    };
    bool rounding = false;
    for (size_t k = 0; k < t.n_layers; k++) {
        t.products += has_weights(&t, k);
        rounding |= rounds(&t, k);
    }
    if (!has_trials(c) || !rounding || oct_conversion_unjudged(c, c->job->g))
        return OCT_OK;
    if (!(c->trials = oct_arena_calloc(c->arena, (size_t)c->o.trials + 1, sizeof *c->trials)))
        return oct_nomem(err);
    if (!(t.a = oct_arena_create()))
        return oct_nomem(err);
    oct_status s = (t.share = oct_arena_calloc(t.a, t.n_layers + 1, sizeof *t.share)) ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        oct_job_shares(t.j, t.share);
        s = tune(&t, err);
    }
    oct_arena_destroy(t.a);
    return s;
}
