/* The built-in targets, and the questions that a target answers. */
#include "targets/target_int.h"

#include "base/io.h"
#include "ops/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *summary, *text;
} builtin[] = {
#include "targets/builtin.inc"
};

static const struct {
    const char *name, *text;
} tables[] = {
#include "targets/builtin_costs.inc"
};

const char *oct_costs_builtin(size_t i)
{
    return i < OCT_COUNT(tables) ? tables[i].name : NULL;
}

const char *oct_costs_text(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(tables); i++)
        if (strcmp(tables[i].name, name) == 0)
            return tables[i].text;
    return NULL;
}

const char *oct_target_builtin(size_t i, const char **summary)
{
    if (i >= OCT_COUNT(builtin))
        return NULL;
    if (summary)
        *summary = builtin[i].summary;
    return builtin[i].name;
}

const char *oct_target_text(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(builtin); i++)
        if (strcmp(builtin[i].name, name) == 0)
            return builtin[i].text;
    return NULL;
}

enum { ALIAS = 40 };

/* The next word of the line `also` of a target's text, in dst; *at: NULL at first. false: there is no other. */
static bool next_alias(const char *text, const char **at, char dst[ALIAS])
{
    static const char key[] = "\nalso ";
    if (!*at && !(*at = strstr(text, key)))
        return false;
    const char *s = strncmp(*at, key, sizeof key - 1) == 0 ? *at + sizeof key - 1 : *at;
    s += strspn(s, " ");
    const size_t n = strcspn(s, " \n");
    *at = s + n;
    snprintf(dst, ALIAS, "%.*s", (int)n, s);
    return n > 0;
}

static bool is_called(const char *text, const char *word)
{
    char alias[ALIAS];
    for (const char *at = NULL; next_alias(text, &at, alias);)
        if (strcasecmp(alias, word) == 0)
            return true;
    return false;
}

bool oct_target_alias(size_t i, char *dst, size_t size)
{
    char alias[ALIAS];
    for (size_t k = 0; k < OCT_COUNT(builtin); k++)
        for (const char *at = NULL; next_alias(builtin[k].text, &at, alias);)
            if (i-- == 0) {
                snprintf(dst, size, "%s", alias);
                return true;
            }
    return false;
}

const char *oct_target_called(const char *word)
{
    for (size_t i = 0; i < OCT_COUNT(builtin); i++)
        if (strcmp(builtin[i].name, word) == 0)
            return builtin[i].name;
    for (size_t i = 0; i < OCT_COUNT(builtin); i++)
        if (is_called(builtin[i].text, word))
            return builtin[i].name;
    return NULL;
}

/* ---- opening ---- */

bool oct_target_is_file(const char *word)
{
    return strchr(word, '/') != NULL;
}

static oct_status open_file(const char *path, oct_target **t, oct_err *err)
{
    enum { MOST = 1 << 20 };
    char *text;
    OCT_TRY(oct_read_text(path, MOST, "a target file", &text, err));
    oct_status s = oct_target_parse(text, path, t, err);
    oct_free(text);
    return s;
}

oct_status oct_target_open(const char *word, oct_target **t, oct_err *err)
{
    if (oct_target_is_file(word))
        return open_file(word, t, err);
    const char *name = oct_target_called(word), *text = name ? oct_target_text(name) : NULL;
    return text ? oct_target_parse(text, name, t, err) : oct_fail(err, OCT_EUSAGE, "there is no target '%s'", word);
}

void oct_target_close(oct_target *t)
{
    if (t)
        oct_arena_destroy(t->arena);
}

/* ---- questions ---- */

const char *oct_target_name(const oct_target *t)
{
    return t->name;
}

oct_target_op *oct_target_entry(const oct_target *t, const char *op)
{
    for (size_t i = 0; i < t->n_op; i++)
        if (strcmp(t->op[i].op, op) == 0)
            return &t->op[i];
    return NULL;
}

const oct_target_rules *oct_target_rules_of(const oct_target *t)
{
    return &t->rules;
}

const oct_target_op_rules *oct_target_op_rules_of(const oct_target *t, const char *op)
{
    static const oct_target_op_rules nothing;
    const oct_target_op *e = oct_target_entry(t, op);
    return e ? &e->rules : &nothing;
}

bool oct_target_lists(const oct_target *t, const char *op, oct_target_form form)
{
    const oct_target_op *e = oct_target_entry(t, op);
    return e && (e->forms & form);
}

static bool has_value(const oct_target_op *e, const oct_attr *a)
{
    for (size_t i = 0; i < e->n_value; i++) {
        char *end;
        if (a->type == OCT_ATTR_STRING && strcmp(a->s, e->value[i]) == 0)
            return true;
        if (a->type == OCT_ATTR_INT && strtoll(e->value[i], &end, 10) == a->i && *end == '\0')
            return true;
    }
    return false;
}

static bool condition_holds(const oct_target_op *e, const oct_node *n)
{
    if (!e->attr)
        return true;
    const oct_attr *a = oct_node_attr(n, e->attr);
    return a ? has_value(e, a) : e->absent;
}

static const char *no_form(oct_target_form form)
{
    switch (form) {
    case OCT_TARGET_DYNAMIC: return "no dynamic form in the target";
    case OCT_TARGET_WEIGHT_ONLY: return "the target takes no weights in blocks here";
    case OCT_TARGET_ROUNDED: return "the target wants no quantizers around it";
    case OCT_TARGET_RESIDUAL: return "no layer adds it up in the target";
    default: return "the target runs this operator in float";
    }
}

static bool weights_are_constant(const oct_graph *g, const oct_node *n)
{
    return oct_input_at(n, 1) >= 0 && oct_value_is_constant(&g->value[n->in[1]]);
}

bool oct_target_runs(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    const oct_target_op *e = n->domain[0] ? NULL : oct_target_entry(t, n->op);
    const char *reason = NULL;
    if (!e || !(e->forms & form) || (!op && form != OCT_TARGET_ROUNDED) || (form == OCT_TARGET_STATIC && !op->integer))
        reason = no_form(form);
    else if (form == OCT_TARGET_DYNAMIC && op->quant == OCT_QUANT_WEIGHTED && !weights_are_constant(g, n))
        reason = no_form(form);
    else if (!condition_holds(e, n))
        reason = e->otherwise;
    if (reason && why)
        *why = reason;
    return !reason;
}

bool oct_target_keeps(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why)
{
    return t->rules.runs_all || oct_target_runs(t, g, node, form, why);
}

bool oct_target_needs_output(const oct_target *t, const char *op, bool clamped)
{
    const oct_target_op_rules *r = oct_target_op_rules_of(t, op);
    return r->needs_output || (clamped && r->clamp_needs_output);
}

bool oct_target_scale_of(const oct_target *t, const char *op, oct_dtype type, float *scale, int32_t *zero)
{
    for (size_t i = 0; i < t->n_scale; i++)
        if (t->scale[i].type == type && strcmp(t->scale[i].op, op) == 0) {
            *scale = t->scale[i].scale;
            *zero = t->scale[i].zero;
            return true;
        }
    return false;
}

bool oct_target_takes(const oct_target *t, oct_dtype activations, oct_dtype weights)
{
    const int a = activations == OCT_U8 ? 0 : activations == OCT_S8 ? 1 : activations == OCT_U16 ? 2 : 3;
    return t->takes[a][weights == OCT_S8];
}

const char *oct_target_no_factors(const oct_target *t, const char *op, oct_dtype x, oct_dtype y)
{
    return oct_target_takes(t, x, y) || t->rules.runs_all || oct_target_op_rules_of(t, op)->any_weights
               ? NULL
               : "the target does not multiply two activations of these types";
}

const char *oct_target_no_factor(const oct_target *t, const oct_quant *q)
{
    const bool centred = q->n == 1 && (q->zp[0] == 0 || q->zp[0] == (q->dtype == OCT_U8 ? 128 : -128));
    return t->rules.carries && !centred ? "the product of two activations needs zero points of 0 in the target" : NULL;
}

bool oct_target_saturates(const oct_target *t)
{
    return t->rules.pair_sums != OCT_SUMS_EXACT;
}
