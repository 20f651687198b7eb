/* Finds the causes of a conversion's loss: the sensitivities, in the form of its record. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "quant/simulate/sensitivity.h"

#include <math.h>

#define LEAST 0.01 /* causes below this share of the noise of their kind are not measured separately */

static double decibels(double noise)
{
    return noise > 0 ? -10 * log10(noise) : INFINITY;
}

/* The node of a site's layer, or -1. */
static int node_of(const oct_qjob *j, const oct_site *s)
{
    if (s->node >= 0)
        return s->node;
    const int maker = oct_maker_node(j, s->value);
    return maker >= 0 ? maker : j->g->value[s->value].producer;
}

static oct_status set_cause(oct_conversion *c, const oct_site *s, double all, oct_cause *x, oct_err *err)
{
    const oct_qjob *j = oct_site_job(c->job, s);
    const int node = node_of(j, s);
    *x = (oct_cause){
        .layer = "", .op = "", .node = node, .noise = s->noise, .share = s->noise / all, .sqnr = decibels(s->noise)
    };
    /* Names must outlive the graph that is written. */
    if (node >= 0 && (!(x->layer = oct_arena_printf(c->arena, "%s%s", j->where, oct_node_label(j->g, node))) ||
                      !(x->op = oct_arena_strdup(c->arena, j->g->node[node].op))))
        return oct_nomem(err);
    if (s->value >= 0 && !(x->value = oct_arena_strdup(c->arena, oct_value_name(j->g, s->value))))
        return oct_nomem(err);
    x->whole =
        s->node >= 0 && (s->body || oct_is_dynamic_recurrent(j, s->node) || oct_node_graph_at(&j->g->node[s->node], 0));
    x->gain = x->share < 1 ? -10 * log10(1 - x->share) : INFINITY;
    return OCT_OK;
}

static void add_to_layer(oct_conversion *c, const oct_graph *g, const oct_cause *x)
{
    for (size_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].d.graph == g && c->layers[i].d.node == x->node)
            c->layers[i].loss += x->share;
}

/* The sum of what the counted sites cost alone. It may exceed what they cost together, because errors can compensate
 * each other: a bias is chosen for the rounding before it. Shares refer to the larger of the two numbers, so that they
 * are parts of a whole. */
static double sum_of(const oct_qjob *j, const oct_sensitivity *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += oct_site_counts(j, &s->site[i]) ? s->site[i].noise : 0;
    return sum;
}

static oct_status list_left_out(oct_conversion *c, oct_causes *x, oct_err *err)
{
    const oct_qjob *j = c->job;
    if (!(x->left_out = oct_arena_calloc(c->arena, j->n_layer + 1, sizeof *x->left_out)))
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_sim_leaves_out(j, j->layer[i]) &&
            !(x->left_out[x->n_left_out++] = oct_arena_strdup(c->arena, oct_node_label(j->g, j->layer[i]))))
            return oct_nomem(err);
    return OCT_OK;
}

static oct_status record(oct_conversion *c, const oct_sensitivity *s, oct_err *err)
{
    oct_causes *x = &c->causes;
    const double left = oct_sensitivity_left(c->job, s), sum = sum_of(c->job, s), all = fmax(left, sum);
    *x = (oct_causes){ .least = s->least,
                       .weights = s->of_layers,
                       .samples = s->samples,
                       .all = decibels(left),
                       .sum = decibels(sum),
                       .worst_output = c->o.sensitivity ? s->all.sqnr : NAN };
    OCT_TRY(list_left_out(c, x, err));
    if (!(x->cause = oct_arena_calloc(c->arena, s->n + 1, sizeof *x->cause)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        if (oct_site_counts(c->job, &s->site[i])) {
            OCT_TRY(set_cause(c, &s->site[i], all, &x->cause[x->n], err));
            add_to_layer(c, oct_site_job(c->job, &s->site[i])->g, &x->cause[x->n++]);
        }
        x->small += s->site[i].noise == 0;
    }
    x->of_values = decibels(s->values.noise);
    x->of_weights = decibels(s->weights.noise);
    return oct_conversion_find_culprits(c, s, err);
}

oct_status oct_conversion_sensitivity(oct_conversion *c, double least, oct_sensitivity *out, oct_err *err)
{
    oct_sim *s;
    oct_memo *memo = NULL;
    size_t known = 0;
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, 0, &s, err));
    if (c->o.sensitivity_file)
        OCT_TRY(oct_memo_open(c->o.sensitivity_file, oct_memo_key(c, s), c->arena, &memo, &known, err));
    if (known)
        oct_conversion_say(c, 0, "%s: %zu measurements are taken from it", c->o.sensitivity_file, known);
    OCT_TRY(oct_sensitivity_measure(s, c->job, least, true, memo, c->arena, out, err));
    return memo ? oct_memo_save(memo, err) : OCT_OK;
}

oct_status oct_conversion_sensitivity_in_bodies(oct_conversion *c, double least, oct_sensitivity *out, oct_err *err)
{
    oct_sim *s;
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, 0, &s, err));
    return oct_sensitivity_add_bodies(s, c->job, least, c->arena, out, err);
}

oct_status oct_conversion_find_causes(oct_conversion *c, oct_err *err)
{
    oct_sensitivity s;
    if (!c->o.sensitivity)
        return c->sensitivity ? record(c, c->sensitivity, err) : OCT_OK;
    const char *why = c->src ? oct_no_simulating(c) : "there are no samples";
    if (why) {
        oct_conversion_say(c, OCT_NOTE_WARNING, "what each value and layer costs was not measured: %s", why);
        return OCT_OK;
    }
    OCT_TRY(oct_conversion_sensitivity(c, LEAST, &s, err));
    return record(c, &s, err);
}
