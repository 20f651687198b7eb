/* The terms of a match: whether a node matches a term. */
#include "quant/policy/policy_int.h"

#include "eval/metrics/summary.h"
#include "ops/traits.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

static oct_policy_fit fit_if(bool fits)
{
    return fits ? OCT_RULE_FITS : OCT_RULE_FITS_NOT;
}

static oct_policy_fit fits_any(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    return OCT_RULE_FITS;
}

static oct_policy_fit fits_none(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    return OCT_RULE_FITS_NOT;
}

static oct_policy_fit is_late(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    return fit_if(f->late);
}

/* ---- names ---- */

bool oct_term_names(const oct_term *t)
{
    return t->takes == OCT_TAKES_PATTERN || t->takes == OCT_TAKES_REGEX;
}

bool oct_match_has_value(const oct_match *m, const char *value)
{
    return fnmatch(m->names[0], value, 0) == 0;
}

static bool is_like(const oct_match *m, const char *name)
{
    return m->regex ? oct_regex_full_match(m->regex, name, strlen(name)) : fnmatch(m->names[0], name, 0) == 0;
}

bool oct_match_has_name(const oct_match *m, size_t i, const oct_graph *g, int node, const char *path)
{
    if (m->term->takes == OCT_TAKES_TYPES)
        return strcmp(m->names[i], g->node[node].op) == 0;
    return oct_term_names(m->term) && (is_like(m, oct_node_label(g, node)) || (path && is_like(m, path)));
}

static oct_policy_fit fits_name(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    bool fits = false;
    for (size_t i = 0; i < m->n_names && !fits; i++)
        fits = oct_match_has_name(m, i, g, node, f->path);
    return fit_if(fits);
}

/* ---- places ---- */

/* Whether no layer with constant weights comes before the node; if term->arg is 1: after it. */
static oct_policy_fit is_end(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    if (g->outer || !oct_layer_weights(g, node))
        return OCT_RULE_FITS_NOT;
    for (size_t k = 0; k < g->n_order; k++) {
        int id = g->order[m->term->arg ? g->n_order - 1 - k : k];
        if (oct_layer_weights(g, id))
            return fit_if(id == node);
    }
    return OCT_RULE_FITS_NOT;
}

static oct_policy_fit is_io(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_node *n = &g->node[node];
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        any |= n->in[i] >= 0 && g->value[n->in[i]].is_input && !g->value[n->in[i]].constant;
    for (int i = 0; i < n->n_out; i++)
        any |= n->out[i] >= 0 && g->value[n->out[i]].is_output;
    return fit_if(any && !g->outer);
}

static oct_policy_fit is_depthwise(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    oct_weight_layout l;
    return fit_if(oct_layer_layout(g, node, &l) && oct_is_depthwise(&l));
}

/* ---- numbers ---- */

/* Compares x with the match's number. The sign of term->arg says on which side x must be. */
static oct_policy_fit compare(const oct_match *m, double x)
{
    return fit_if((x > m->number) - (x < m->number) == m->term->arg);
}

static const oct_tensor *second_constant(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    return oct_node_constant(g, n, 1);
}

static oct_policy_fit has_weights(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    return fit_if(second_constant(g, node) != NULL);
}

static oct_policy_fit weights_are(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_tensor *w = second_constant(g, node);
    return w ? compare(m, (double)w->count) : OCT_RULE_FITS_NOT;
}

static oct_policy_fit rank_is(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_node *n = &g->node[node];
    const int rank = oct_input_at(n, 0) >= 0 ? g->value[n->in[0]].shape.rank : -1;
    return rank < 0 ? OCT_RULE_FITS_UNKNOWN : compare(m, rank);
}

static oct_policy_fit macs_are(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const double macs = (double)oct_node_macs(g, node);
    if (macs <= 0 && oct_op_of(g, node) && oct_op_is_layer(oct_op_of(g, node)))
        return OCT_RULE_FITS_UNKNOWN; /* a layer of unknown shape */
    if (!m->percent)
        return compare(m, macs);
    return f->macs > 0 ? compare(m, 100 * macs / (double)f->macs) : OCT_RULE_FITS_UNKNOWN;
}

/* The statistics of a node's output; NULL: not known. */
static const oct_stats *stats_of(const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_node *n = &g->node[node];
    const oct_calib_tensor *t =
        f->calib && n->n_out > 0 && n->out[0] >= 0 ? oct_calib_find(f->calib, oct_value_name(g, n->out[0])) : NULL;
    return t && !t->off && oct_stats_finite(&t->stats) ? &t->stats : NULL;
}

static oct_policy_fit range_is(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_stats *s = stats_of(g, node, f);
    return s ? compare(m, fmax(fabs((double)s->min), fabs((double)s->max))) : OCT_RULE_FITS_UNKNOWN;
}

/* The SQNR that 8 bits would give: with the usual type and the usual observer, whatever the layer gets. */
static oct_policy_fit sqnr_is(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_stats *s = stats_of(g, node, f);
    oct_qrange bytes;
    oct_selection sel;
    if (!s || oct_qrange_of(OCT_U8, false, &bytes, NULL) != OCT_OK ||
        oct_observe(s, oct_observer_default(), bytes, &sel, NULL) != OCT_OK)
        return OCT_RULE_FITS_UNKNOWN;
    return compare(m, oct_decibels(sel.signal, sel.mse));
}

const char oct_term_late[] = "late";
const oct_term oct_terms[OCT_TERMS] = {
    { "any", OCT_TAKES_NOTHING, fits_any, 0 },
    { "op:", OCT_TAKES_TYPES, fits_name, 0 },
    { "name:", OCT_TAKES_PATTERN, fits_name, 0 },
    { "name~", OCT_TAKES_REGEX, fits_name, 0 },
    { "first", OCT_TAKES_NOTHING, is_end, 0 },
    { "last", OCT_TAKES_NOTHING, is_end, 1 },
    { "io", OCT_TAKES_NOTHING, is_io, 0 },
    { "const-b", OCT_TAKES_NOTHING, has_weights, 0 },
    { "depthwise", OCT_TAKES_NOTHING, is_depthwise, 0 },
    { "value:", OCT_TAKES_VALUES, fits_none, 0 },
    { oct_term_late, OCT_TAKES_NOTHING, is_late, 0 },
    { "weights>", OCT_TAKES_NUMBER, weights_are, 1 },
    { "weights<", OCT_TAKES_NUMBER, weights_are, -1 },
    { "rank>", OCT_TAKES_NUMBER, rank_is, 1 },
    { "rank<", OCT_TAKES_NUMBER, rank_is, -1 },
    { "rank=", OCT_TAKES_NUMBER, rank_is, 0 },
    { "macs>", OCT_TAKES_SHARE, macs_are, 1 },
    { "macs<", OCT_TAKES_SHARE, macs_are, -1 },
    { "range>", OCT_TAKES_MEASURE, range_is, 1 },
    { "range<", OCT_TAKES_MEASURE, range_is, -1 },
    { "sqnr>", OCT_TAKES_MEASURE, sqnr_is, 1 },
    { "sqnr<", OCT_TAKES_MEASURE, sqnr_is, -1 },
};
