/* The policy table: which rules fit a node, and what they add up to. */
#include "quant/policy_int.h"

#include "base/io.h"
#include "ops/signature.h"
#include "ops/traits.h"
#include "quant/policy_text.h"

#include <stdio.h>
#include <string.h>

static const char *const scheme_names[OCT_SCHEME_COUNT] = { "auto", "static", "dynamic", "weight-only",
                                                            "fp16", "bf16",   "float" };

const char *oct_scheme_name(oct_scheme s)
{
    return (unsigned)s < OCT_SCHEME_COUNT ? scheme_names[s] : "?";
}

bool oct_scheme_parse(const char *text, oct_scheme *s)
{
    for (int i = 0; i < OCT_SCHEME_COUNT; i++)
        if (strcmp(text, scheme_names[i]) == 0) {
            *s = (oct_scheme)i;
            return true;
        }
    return false;
}

/* ---- creation ---- */

const char *oct_policy_builtin(void)
{
    return builtin_policy;
}

oct_status oct_policy_add(oct_policy *p, const char *text, const char *label, oct_err *err)
{
    return oct_policy_parse(p, text, label, false, err);
}

static oct_status add_file(oct_policy *p, const char *path, oct_err *err)
{
    enum { MOST = 16 << 20 };
    char *text;
    OCT_TRY(oct_read_text(path, MOST, "a policy table", &text, err));
    oct_status s = oct_policy_parse(p, text, path, false, err);
    oct_free(text);
    return s;
}

oct_status oct_policy_create(const char *file, oct_policy **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_policy *p = a ? oct_arena_calloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    p->arena = a;
    oct_status s = oct_policy_parse(p, builtin_policy, "built-in", true, err);
    if (s == OCT_OK && file)
        s = add_file(p, file, err);
    if (s != OCT_OK) {
        oct_policy_destroy(p);
        return s;
    }
    *out = p;
    return OCT_OK;
}

void oct_policy_destroy(oct_policy *p)
{
    if (p)
        oct_arena_destroy(p->arena);
}

/* ---- patterns ---- */

/* Reads one element of a pattern at *p and steps over it; whether c fits it. */
static bool glob_one(const char **p, char c)
{
    const char *s = *p;
    if (*s == '[') {
        const char *q = s + 1;
        bool negated = *q == '!' || *q == '^', fits = false;
        q += negated;
        for (const char *first = q; *q && (*q != ']' || q == first);) {
            unsigned char lo = (unsigned char)*q++, hi = lo, u = (unsigned char)c;
            if (*q == '-' && q[1] && q[1] != ']') {
                hi = (unsigned char)q[1];
                q += 2;
            }
            fits |= lo <= u && u <= hi;
        }
        if (*q == ']') {
            *p = q + 1;
            return fits != negated;
        } /* without an end: a bracket like any other character */
    }
    if (*s == '\\' && s[1])
        s++;
    else if (*s == '?') {
        *p = s + 1;
        return true;
    }
    *p = s + 1;
    return *s == c;
}

bool oct_glob(const char *p, const char *name)
{
    const char *star = NULL, *back = NULL;
    while (*name) {
        const char *next = p;
        if (*p == '*') {
            star = ++p;
            back = name;
        } else if (*p && glob_one(&next, *name)) {
            p = next;
            name++;
        } else if (star) { /* let the last star take one more */
            p = star;
            name = ++back;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == '\0';
}

/* ---- matching ---- */

/* A node without a name goes by that of its first output. */
static const char *name_of(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    if (n->name[0])
        return n->name;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            return g->value[n->out[i]].name;
    return "";
}

static const oct_tensor *second_input(const oct_graph *g, const oct_node *n)
{
    return n->n_in > 1 && n->in[1] >= 0 ? g->value[n->in[1]].konst : NULL;
}

/* Whether no layer with constant weights stands before (after) the node. */
static bool is_end(const oct_graph *g, int node, bool first)
{
    if (g->outer || !oct_layer_weights(g, node))
        return false;
    for (size_t k = 0; k < g->n_order; k++) {
        int id = g->order[first ? k : g->n_order - 1 - k];
        if (oct_layer_weights(g, id))
            return id == node;
    }
    return false;
}

static bool is_io(const oct_graph *g, const oct_node *n)
{
    if (g->outer)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && g->value[n->in[i]].is_input && !g->value[n->in[i]].konst)
            return true;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && g->value[n->out[i]].is_output)
            return true;
    return false;
}

static bool is_depthwise(const oct_graph *g, int node)
{
    oct_weight_layout l;
    return oct_layer_layout(g, node, &l) && oct_is_depthwise(&l);
}

static bool fits_one(const oct_match *m, const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_tensor *w = second_input(g, n);
    switch (m->kind) {
    case OCT_MATCH_ANY: return true;
    case OCT_MATCH_OP:
        for (size_t i = 0; i < m->n_names; i++)
            if (strcmp(m->names[i], n->op) == 0)
                return true;
        return false;
    case OCT_MATCH_NAME: return oct_glob(m->text, name_of(g, node));
    case OCT_MATCH_FIRST: return is_end(g, node, true);
    case OCT_MATCH_LAST: return is_end(g, node, false);
    case OCT_MATCH_IO: return is_io(g, n);
    case OCT_MATCH_CONST_B: return w != NULL;
    case OCT_MATCH_DEPTHWISE: return is_depthwise(g, node);
    case OCT_MATCH_MORE: return w && w->count > m->number;
    case OCT_MATCH_FEWER: return w && w->count < m->number;
    }
    return false;
}

static void apply(const oct_rule *r, oct_policy_row *row)
{
    if (r->set & OCT_SET_SCHEME) {
        row->scheme = r->row.scheme;
        row->rule = r->row.rule;
    }
    if (r->set & OCT_SET_WEIGHTS)
        row->weights = r->row.weights;
    if (r->set & OCT_SET_PER) {
        row->per_channel = r->row.per_channel;
        row->block = r->row.block;
    }
    if (r->set & OCT_SET_ACTIVATIONS)
        row->activations = r->row.activations;
    if (r->set & OCT_SET_SYMMETRIC)
        row->symmetric = r->row.symmetric;
    if (r->set & OCT_SET_OBSERVER)
        row->observer = r->row.observer;
}

bool oct_policy_uses(const oct_policy *p, oct_scheme s)
{
    for (size_t i = 0; i < p->n_rule; i++)
        if ((p->rule[i].set & OCT_SET_SCHEME) && p->rule[i].row.scheme == s)
            return true;
    return false;
}

void oct_policy_match(const oct_policy *p, const oct_graph *g, int node, oct_policy_row *row)
{
    *row = (oct_policy_row){ .scheme = OCT_SCHEME_FLOAT, .weights = OCT_WEIGHT_S8, .per_channel = true, .activations = OCT_U8,
                             .rule = "no rule matches" };
    for (size_t i = 0; i < p->n_rule; i++) {
        const oct_rule *r = &p->rule[i];
        bool fits = true;
        for (size_t k = 0; k < r->n_match && fits; k++)
            fits = fits_one(&r->match[k], g, node) != r->match[k].negated;
        if (fits)
            apply(r, row);
    }
}

/* ---- rules that match nothing ---- */

static void note_node(oct_rule *r, const oct_graph *g, int node)
{
    for (size_t k = 0; k < r->n_match; k++) {
        oct_match *m = &r->match[k];
        if (m->kind == OCT_MATCH_NAME && !m->found[0])
            m->found[0] = oct_glob(m->text, name_of(g, node));
        for (size_t o = 0; m->kind == OCT_MATCH_OP && o < m->n_names; o++)
            m->found[o] |= strcmp(m->names[o], g->node[node].op) == 0;
    }
}

void oct_policy_note(oct_policy *p, const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        for (size_t k = 0; k < p->n_rule; k++)
            if (!p->rule[k].builtin)
                note_node(&p->rule[k], g, g->order[i]);
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            oct_policy_note(p, nested);
    }
}

static void consider_nodes(oct_nearest *n, const oct_graph *g, bool op)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        const int id = g->order[i];
        oct_nearest_try(n, op ? g->node[id].op : name_of(g, id));
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++)
            consider_nodes(n, nested, op);
    }
}

static oct_nearest near_to(const char *word)
{
    return (oct_nearest){ .word = word, .most = (int)strlen(word) / 3 + 1 };
}

static oct_status no_such(const oct_match *m, const char *what, const oct_nearest *n, oct_err *err)
{
    oct_fail(err, OCT_EUSAGE, "%s: %s '%.100s'", m->place, what, n->word);
    if (n->n)
        oct_hint(err, "did you mean '%.100s'%s%.100s%s%s%.100s%s?", n->name[0], n->n > 1 ? ", '" : "", n->n > 1 ? n->name[1] : "", n->n > 1 ? "'" : "",
                 n->n > 2 ? " or '" : "", n->n > 2 ? n->name[2] : "", n->n > 2 ? "'" : "");
    return OCT_EUSAGE;
}

static bool is_operator(const char *op)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    bool known = oct_signature_first(op) != 0;
    for (size_t i = 0; i < n && !known; i++)
        known = strcmp(all[i]->type, op) == 0;
    return known;
}

static oct_status check_match(const oct_match *m, const oct_graph *g, void (*fn)(void *arg, const char *place, const char *op), void *arg,
                              oct_err *err)
{
    if (m->kind == OCT_MATCH_NAME && !m->found[0]) {
        oct_nearest n = near_to(m->text);
        consider_nodes(&n, g, false);
        return no_such(m, "no node is named", &n, err);
    }
    for (size_t o = 0; m->kind == OCT_MATCH_OP && o < m->n_names; o++) {
        if (m->found[o])
            continue;
        if (is_operator(m->names[o])) {
            fn(arg, m->place, m->names[o]);
            continue;
        }
        const char *known = oct_signature_nearest(m->names[o]);
        oct_nearest n = near_to(m->names[o]);
        consider_nodes(&n, g, true);
        if (known)
            oct_nearest_try(&n, known);
        return no_such(m, "there is no operator", &n, err);
    }
    return OCT_OK;
}

oct_status oct_policy_check(const oct_policy *p, const oct_graph *g, void (*fn)(void *arg, const char *place, const char *op), void *arg,
                            oct_err *err)
{
    for (size_t i = 0; i < p->n_rule; i++)
        for (size_t k = 0; k < p->rule[i].n_match && !p->rule[i].builtin; k++)
            OCT_TRY(check_match(&p->rule[i].match[k], g, fn, arg, err));
    return OCT_OK;
}
