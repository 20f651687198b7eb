/* The policy table: which rules match a node, and the row that results. */
#include "quant/policy/policy_int.h"

#include "base/io.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "quant/policy_text.h"

#include <string.h>

enum { TENSOR, CHANNEL, FIRST_BLOCK }; /* granularities */
static const char *const schemes[OCT_SCHEME_COUNT] = { "auto",   "static", "dynamic", "weight-only",
                                                       "stored", "fp16",   "bf16",    "float" };
static const char *const weights[OCT_WEIGHT_COUNT] = { "s8", "s7", "u8", "s4", "u4" }, *const activations[] = {
    "u8", "s8", "u16", "s16"
};
static const oct_dtype activation_types[OCT_COUNT(activations)] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 };
static const char *const granularities[] = { "tensor",  "channel",  "block16", "block32",
                                             "block64", "block128", "block256" };
static const char *const symmetries[] = { "asym", "sym" };
const oct_policy_part oct_policy_parts[OCT_COLUMNS][OCT_PARTS] = {
    { { "scheme", schemes + 1, OCT_SCHEME_COUNT - 1 } }, /* without auto */
    { { "weight type", weights, OCT_WEIGHT_COUNT },
      { "granularity", granularities, OCT_COUNT(granularities) },
      { "symmetry", symmetries, 2 } },
    { { "activation type", activations, OCT_COUNT(activations) },
      { "granularity of activations", granularities, 1 },
      { "symmetry", symmetries, 2 } },
};

const char *oct_policy_activations(oct_dtype t)
{
    size_t i = 0;
    while (i + 1 < OCT_COUNT(activations) && activation_types[i] != t)
        i++;
    return activations[i];
}

int oct_policy_block(int granularity)
{
    return granularity < FIRST_BLOCK ? 0 : 16 << (granularity - FIRST_BLOCK);
}

const char *oct_scheme_name(oct_scheme s)
{
    return (unsigned)s < OCT_SCHEME_COUNT ? schemes[s] : "?";
}

bool oct_scheme_parse(const char *text, oct_scheme *s)
{
    for (int i = 0; i < OCT_SCHEME_COUNT; i++)
        if (strcmp(text, schemes[i]) == 0) {
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

const char *oct_policy_place(const char *reason)
{
    const char *open = strstr(reason, " ("), *close = open ? strchr(open, ')') : NULL, *colon = close;
    while (colon && colon > open && colon[-1] >= '0' && colon[-1] <= '9')
        colon--;
    return colon && colon < close && colon[-1] == ':' ? open + 2 : NULL;
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

/* ---- matching ---- */

const char *oct_policy_measured(const oct_policy *p)
{
    for (size_t i = 0; i < p->n_rule; i++)
        for (size_t k = 0; k < p->rule[i].n_match; k++)
            if (p->rule[i].match[k].term->takes == OCT_TAKES_MEASURE)
                return p->rule[i].match[k].place;
    return NULL;
}

bool oct_policy_uses(const oct_policy *p, oct_scheme s)
{
    for (size_t i = 0; i < p->n_rule; i++)
        if (p->rule[i].value[OCT_COLUMN_SCHEME][0] == (int)s - 1)
            return true;
    return false;
}

/* What the names of a match are of. */
typedef struct named {
    bool any, products;
} named;

static void find_named(const oct_match *m, size_t name, const oct_graph *g, oct_buf *where, named *is)
{
    const size_t here = where->len;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        const int id = g->order[i];
        const oct_op *op = oct_op_of(g, id);
        oct_buf_puts(where, oct_node_label(g, id));
        if (oct_match_has_name(m, name, g, id, oct_buf_str(where))) {
            is->any = true;
            is->products |= !op || op->quant == OCT_QUANT_WEIGHTED;
        }
        oct_buf_cut(where, here);
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++) {
            oct_node_put_path(g, id, k, where);
            find_named(m, name, nested, where, is);
            oct_buf_cut(where, here);
        }
    }
}

/* Whether all names of a match are those of nodes that are no products. */
static bool names_others(const oct_match *m, const oct_graph *g)
{
    bool others = oct_term_names(m->term) && !m->negated && m->n_names > 0;
    for (size_t i = 0; i < m->n_names && others; i++) {
        oct_buf where = OCT_BUF_INIT;
        named is = { 0 };
        find_named(m, i, g, &where, &is);
        others = is.any && !is.products && !where.failed;
        oct_buf_free(&where);
    }
    return others;
}

bool oct_policy_asks_blocks(const oct_policy *p, const oct_graph *g)
{
    for (size_t i = 0; i < p->n_rule; i++) {
        const oct_rule *r = &p->rule[i];
        bool others = r->value[OCT_COLUMN_SCHEME][0] != OCT_SCHEME_WEIGHT_ONLY - 1;
        for (size_t k = 0; k < r->n_match && !others; k++)
            others = names_others(&r->match[k], g);
        if (!others)
            return true;
    }
    return false;
}

bool oct_policy_uses_16_bits(const oct_policy *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n_rule; i++)
        any |= p->rule[i].value[OCT_COLUMN_ACTIVATIONS][0] >= 2; /* u16, s16 */
    return any;
}

static bool is_by_name(const oct_rule *r)
{
    for (size_t k = 0; k < r->n_match; k++)
        if (oct_term_names(r->match[k].term) && !r->match[k].negated)
            return true;
    return false;
}

static void apply(const oct_rule *r, int value[OCT_COLUMNS][OCT_PARTS], oct_policy_row *row)
{
    for (int c = 0; c < OCT_COLUMNS; c++)
        for (int i = 0; i < OCT_PARTS; i++)
            value[c][i] = r->value[c][i] >= 0 ? r->value[c][i] : value[c][i];
    if (r->value[OCT_COLUMN_SCHEME][0] >= 0) {
        row->rule = r->text;
        row->asked = !r->builtin;
        row->named = row->asked && is_by_name(r);
    }
    if (r->value[OCT_COLUMN_ACTIVATIONS][0] >= 0) {
        row->types_asked = !r->builtin;
        row->types_rule = r->builtin ? NULL : r->text;
    }
    row->typed |= r->value[OCT_COLUMN_ACTIVATIONS][0] >= 0 && !r->builtin && is_by_name(r);
    if (!r->observer.observer)
        return;
    if (strstr(r->text, " (" OCT_POLICY_OBSERVER ":"))
        row->observer_replaced = row->observer_rule;
    row->observer = r->observer;
    row->observer_rule = r->builtin ? NULL : r->text;
}

static bool fits(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f)
{
    const oct_policy_fit fit = m->term->fits(m, g, node, f);
    return fit != OCT_RULE_FITS_UNKNOWN && (fit == OCT_RULE_FITS) != m->negated;
}

void oct_policy_match(const oct_policy *p, const oct_graph *g, int node, const oct_policy_facts *facts,
                      oct_policy_row *row)
{
    static const oct_policy_facts none;
    int value[OCT_COLUMNS][OCT_PARTS] = { { OCT_SCHEME_FLOAT - 1 }, { OCT_WEIGHT_S8, CHANNEL } };
    *row = (oct_policy_row){ .rule = "no rule matches" };
    for (size_t i = 0; i < p->n_rule; i++) {
        const oct_rule *r = &p->rule[i];
        bool all = true;
        for (size_t k = 0; k < r->n_match && all; k++)
            all = fits(&r->match[k], g, node, facts ? facts : &none);
        if (all)
            apply(r, value, row);
    }
    row->scheme = (oct_scheme)(value[OCT_COLUMN_SCHEME][0] + 1);
    row->weights = (oct_weight_type)value[OCT_COLUMN_WEIGHTS][0];
    row->per_channel = value[OCT_COLUMN_WEIGHTS][1] == CHANNEL;
    row->block = oct_policy_block(value[OCT_COLUMN_WEIGHTS][1]);
    row->activations = activation_types[value[OCT_COLUMN_ACTIVATIONS][0]];
    row->symmetric = value[OCT_COLUMN_ACTIVATIONS][2];
}

static bool is_of_values(const oct_rule *r)
{
    return r->match[0].term->takes == OCT_TAKES_VALUES;
}

static bool is_late(const oct_rule *r)
{
    for (size_t k = 0; k < r->n_match; k++)
        if (r->match[k].term->word == oct_term_late && !r->match[k].negated)
            return true;
    return false;
}

bool oct_policy_waits(const oct_policy *p)
{
    for (size_t i = 0; i < p->n_rule; i++)
        if (is_late(&p->rule[i]))
            return true;
    return oct_policy_measured(p) != NULL;
}

oct_observer_spec oct_policy_observer_of(const oct_policy *p, const char *value, bool late)
{
    oct_observer_spec o = { 0 };
    for (size_t i = 0; i < p->n_rule; i++)
        if (is_of_values(&p->rule[i]) && (late || !is_late(&p->rule[i])) &&
            oct_match_has_value(&p->rule[i].match[0], value))
            o = p->rule[i].observer;
    return o;
}

/* ---- rules that match nothing ---- */

static void note_node(oct_rule *r, const oct_graph *g, int node, const char *path)
{
    for (size_t k = 0; k < r->n_match; k++)
        for (size_t i = 0; i < r->match[k].n_names; i++)
            r->match[k].found[i] = r->match[k].found[i] || oct_match_has_name(&r->match[k], i, g, node, path);
}

static void note_values(oct_rule *r, const oct_graph *g)
{
    for (size_t v = 0; v < g->n_value && is_of_values(r); v++)
        r->match[0].found[0] = r->match[0].found[0] || oct_match_has_value(&r->match[0], g->value[v].name);
}

/* where: the path to g, with room for the paths to its nodes. It is unchanged on return. */
static void note_graph(oct_policy *p, const oct_graph *g, oct_buf *where)
{
    const size_t here = where->len;
    for (size_t k = 0; k < p->n_rule; k++)
        note_values(&p->rule[k], g);
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        const int id = g->order[i];
        oct_buf_puts(where, oct_node_label(g, id));
        for (size_t k = 0; k < p->n_rule; k++)
            if (!p->rule[k].builtin)
                note_node(&p->rule[k], g, id, oct_buf_str(where));
        oct_buf_cut(where, here);
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++) {
            oct_node_put_path(g, id, k, where);
            note_graph(p, nested, where);
            oct_buf_cut(where, here);
        }
    }
}

oct_status oct_policy_note(oct_policy *p, const oct_graph *g, oct_err *err)
{
    oct_buf where = OCT_BUF_INIT;
    note_graph(p, g, &where);
    const bool failed = where.failed;
    oct_buf_free(&where);
    return failed ? oct_nomem(err) : OCT_OK;
}

static void consider_nodes(oct_nearest *n, const oct_graph *g, bool op)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        const int id = g->order[i];
        oct_nearest_try(n, op ? g->node[id].op : oct_node_label(g, id));
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++)
            consider_nodes(n, nested, op);
    }
}

static oct_status no_such(const oct_match *m, const char *what, const oct_nearest *n, oct_err *err)
{
    const bool node = m->term->takes != OCT_TAKES_TYPES;
    oct_fail(err, OCT_EUSAGE, "%s: %s '%.100s'", m->place, what, n->word);
    oct_nearest_hint(n, OCT_NEAREST,
                     n->n || !node ? NULL : "'qconvert MODEL --dry-run --dump-policy -' names all nodes", err);
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

static oct_status check_match(const oct_match *m, const oct_graph *g,
                              void (*fn)(void *arg, const char *place, const char *op), void *arg, oct_err *err)
{
    const bool types = m->term->takes == OCT_TAKES_TYPES;
    for (size_t i = 0; i < m->n_names; i++) {
        const char *word = m->names[i], *known = types ? oct_signature_nearest(word) : NULL;
        if (m->found[i])
            continue;
        if (types && is_operator(word)) {
            fn(arg, m->place, word);
            continue;
        }
        oct_nearest n = { .word = word, .most = (int)strlen(word) / 3 + 1 };
        consider_nodes(&n, g, types);
        if (known)
            oct_nearest_try(&n, known);
        return no_such(m,
                       types      ? "there is no operator"
                       : m->regex ? "no node has a name like"
                                  : "no node is named",
                       &n, err);
    }
    return OCT_OK;
}

oct_status oct_policy_check(const oct_policy *p, const oct_graph *g,
                            void (*fn)(void *arg, const char *place, const char *op), void *arg, oct_err *err)
{
    for (size_t i = 0; i < p->n_rule; i++) /* a late rule may name a node that a method adds */
        for (size_t k = 0;
             k < p->rule[i].n_match && !p->rule[i].builtin && !is_of_values(&p->rule[i]) && !is_late(&p->rule[i]); k++)
            OCT_TRY(check_match(&p->rule[i].match[k], g, fn, arg, err));
    return OCT_OK;
}

void oct_policy_check_values(const oct_policy *p, void (*fn)(void *arg, const char *place, const char *pattern),
                             void *arg)
{
    for (size_t i = 0; i < p->n_rule; i++) {
        const oct_match *m = &p->rule[i].match[0];
        if (is_of_values(&p->rule[i]) && !m->found[0])
            fn(arg, m->place, m->names[0]);
    }
}
