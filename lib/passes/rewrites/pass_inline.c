/* Pass: replaces calls of model-local functions by the nodes of their bodies.
 *
 * A body may be written for another opset than the model. Nodes of an older opset are raised. Nodes of a newer one are
 * used if their operators did not change in between. Otherwise the call is kept. */
#include "passes/inline.h"

#include "passes/opset.h"

#include <string.h>

/* How deep calls may nest, and how much all inlining in a model may copy: nodes (calls and nodes of subgraphs
 * included), values, bytes of names, and bytes of attributes and constants. A written model contains attributes and
 * constants once for each copy, so the bound of their bytes is MOST_BYTES plus MAX_TIMES the bytes that the functions
 * contain. */
enum {
    MOST_NESTED = 64,
    MOST_NODES = 1 << 18,
    MOST_VALUES = 1 << 20,
    MOST_NAME_BYTES = 64 << 20,
    MOST_BYTES = 256 << 20,
    MAX_TIMES = 8
};

/* What one copy of a body takes, or all copies together. */
typedef struct amount {
    size_t nodes, values, names, name_bytes, bytes;
    size_t refs; /* attributes whose values come from the call */
} amount;

/* ---- what can be inlined ---- */

static bool same_meaning(const oct_graph *body, int64_t from, int64_t to)
{
    for (size_t i = 0; i < body->n_order; i++) {
        const oct_node *n = &body->node[body->order[i]];
        const oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
            if (!same_meaning(nested, from, to))
                return false;
        if (!n->domain[0] && !oct_opset_same(n->op, from, to))
            return false;
    }
    return true;
}

static bool fits(const oct_graph *g, const oct_graph *body)
{
    int64_t from = oct_graph_opset(body, ""), to = oct_graph_opset(g, "");
    return from == to || from == 0 || to == 0 || same_meaning(body, from, to);
}

/* Checks how deep calls nest, starting at `body`. A function that calls itself nests without end. Functions that were
 * visited are not walked again. */
static oct_status check_calls(const oct_graph *g, const oct_graph *body, bool *seen, int level, oct_err *err)
{
    if (level > MOST_NESTED)
        return oct_fail(err, OCT_EMALFORMED, "function '%s' calls itself, or calls nest more than %d deep", body->name,
                        MOST_NESTED);
    for (size_t i = 0; i < body->n_order; i++) {
        const oct_node *n = &body->node[body->order[i]];
        const oct_function *f = oct_graph_function(g, n->domain, n->op, n->overload);
        const oct_graph *nested;
        if (f && !seen[f - g->function]) {
            OCT_TRY(check_calls(g, f->body, seen, level + 1, err));
            seen[f - g->function] = true;
        }
        for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
            OCT_TRY(check_calls(g, nested, seen, level + 1, err));
    }
    return OCT_OK;
}

/* ---- bounds of copies ---- */

static size_t plus(size_t a, size_t b)
{
    size_t sum;
    return oct_add_size(a, b, &sum) ? sum : SIZE_MAX;
}

static size_t times(size_t a, size_t b)
{
    size_t product;
    return oct_mul_size(a, b, &product) ? product : SIZE_MAX;
}

static size_t attr_bytes(const oct_attr *a)
{
    size_t bytes = plus(a->s_len, a->t ? a->t->bytes : 0);
    bytes = plus(bytes, a->floats ? times((size_t)a->n, sizeof *a->floats) : 0);
    bytes = plus(bytes, a->ints ? times((size_t)a->n, sizeof *a->ints) : 0);
    for (int i = 0; a->strings && i < a->n; i++)
        bytes = plus(bytes, strlen(a->strings[i]));
    return bytes;
}

static void measure_value(const oct_value *v, amount *sum)
{
    sum->values++;
    sum->names++;
    sum->name_bytes = plus(sum->name_bytes, strlen(v->name));
    sum->bytes = plus(sum->bytes, v->constant && v->outer < 0 ? v->constant->bytes : 0);
}

/* Adds what a copy of a body takes. Captured values count, because they are copied too. */
static void measure(const oct_graph *body, amount *sum)
{
    for (size_t i = 0; i < body->n_value; i++)
        if (!body->value[i].dead)
            measure_value(&body->value[i], sum);
    for (size_t i = 0; i < body->n_order; i++) {
        const oct_node *n = &body->node[body->order[i]];
        const oct_graph *nested;
        sum->nodes++;
        sum->names++;
        sum->name_bytes = plus(sum->name_bytes, strlen(n->name) + strlen(n->op));
        for (size_t k = 0; k < n->n_attr; k++) {
            sum->bytes = plus(sum->bytes, attr_bytes(&n->attr[k]));
            sum->refs += n->attr[k].ref != NULL;
        }
        for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
            measure(nested, sum);
    }
}

typedef struct inlining {
    const oct_pass *self;
    const oct_pass_log *log;
    bool checked; /* it was checked that calls do not nest without end */
    bool *gone;   /* by function: its calls were inlined */
    bool *stays;  /* a call was not inlined */
    amount *each; /* by function: what a copy of its body takes */
    amount done;  /* what all copies took so far */
    size_t most_bytes;
} inlining;

static void measure_all(const oct_graph *g, inlining *l)
{
    size_t held = 0;
    for (size_t i = 0; i < g->n_function; i++) {
        l->each[i] = (amount){ .nodes = 1 }; /* the call itself, so that empty functions count too */
        measure(g->function[i].body, &l->each[i]);
        held = plus(held, l->each[i].bytes);
    }
    l->most_bytes = plus(MOST_BYTES, times(held, MAX_TIMES));
}

/* Counts the copy that will replace a call. */
static oct_status count_copy(inlining *l, const oct_node *call, const oct_function *f, const amount *a, oct_err *err)
{
    amount *d = &l->done;
    size_t given = 0;
    for (size_t i = 0; i < call->n_attr; i++)
        given = plus(given, attr_bytes(&call->attr[i]));
    for (size_t i = 0; i < f->n_defaults; i++)
        given = plus(given, attr_bytes(&f->defaults[i]));
    d->nodes += a->nodes;
    d->values += a->values;
    d->name_bytes =
        plus(d->name_bytes, plus(a->name_bytes, times(a->names, strlen(*call->name ? call->name : call->op) + 1)));
    d->bytes = plus(d->bytes, plus(a->bytes, times(a->refs, given)));
    if (d->nodes > MOST_NODES)
        return oct_fail(err, OCT_EUNSUPPORTED, "inlining the model's functions makes more than %d nodes", MOST_NODES);
    if (d->values > MOST_VALUES)
        return oct_fail(err, OCT_EUNSUPPORTED, "inlining the model's functions makes more than %d values", MOST_VALUES);
    if (d->name_bytes > MOST_NAME_BYTES)
        return oct_fail(err, OCT_EUNSUPPORTED, "inlining the model's functions makes more than %d MB of names",
                        MOST_NAME_BYTES >> 20);
    if (d->bytes > l->most_bytes)
        return oct_fail(err, OCT_EUNSUPPORTED, "inlining the model's functions copies more than %zu MB of constants",
                        l->most_bytes >> 20);
    return OCT_OK;
}

/* ---- one call ---- */

/* Fills an attribute of the body that refers to one of the call. */
static oct_status fill(void *arg, oct_attr *a, oct_err *err)
{
    const void *const *from = arg;
    const oct_node *call = from[0];
    const oct_function *f = from[1];
    const oct_attr *given = oct_node_attr(call, a->ref);
    for (size_t i = 0; !given && i < f->n_defaults; i++)
        if (strcmp(f->defaults[i].name, a->ref) == 0)
            given = &f->defaults[i];
    if (!given) {
        a->type = 0;
        return OCT_OK;
    }
    if (given->graphs || given->ref)
        return oct_fail(err, OCT_EUNSUPPORTED, "attribute '%s' cannot be handed to the function's nodes", a->ref);
    const char *name = a->name;
    *a = *given;
    a->name = name;
    return OCT_OK;
}

static oct_status import_opsets(oct_graph *g, const oct_graph *body, oct_err *err)
{
    for (size_t i = 0; i < body->n_opset; i++)
        if (oct_graph_opset(g, body->opset[i].domain) == 0)
            OCT_TRY(oct_graph_set_opset(g, body->opset[i].domain, body->opset[i].version, err));
    return OCT_OK;
}

static oct_status inline_call(oct_graph *g, size_t at, const oct_function *f, oct_err *err)
{
    int id = g->order[at];
    oct_node call = g->node[id];
    const char *prefix = oct_arena_printf(g->arena, "%s/", call.name[0] ? call.name : call.op);
    int *map = oct_calloc(f->body->n_value + 1, sizeof *map), next = at + 1 < g->n_order ? g->order[at + 1] : -1;
    oct_status s = prefix && map ? import_opsets(g, f->body, err) : oct_nomem(err);
    for (size_t v = 0; s == OCT_OK && v < f->body->n_value; v++)
        map[v] = -2;
    for (size_t i = 0; s == OCT_OK && i < f->body->n_input; i++)
        map[f->body->input[i]] = (int)i < call.n_in ? call.in[i] : -1;
    if (s == OCT_OK)
        s = oct_inline(g, id, f->body, prefix, map, fill, (const void *[]){ &call, f }, err);
    oct_free(map);
    OCT_TRY(s);
    int64_t from = oct_graph_opset(f->body, ""), to = oct_graph_opset(g, "");
    return from && from < to ? oct_raise_part(g, at, next, from, to, err) : OCT_OK;
}

/* ---- all of them ---- */

static oct_status inline_all(oct_graph *g, inlining *l, oct_err *err)
{
    char text[300];
    const oct_graph *top = g;
    while (top->outer)
        top = top->outer;
    for (size_t i = 0; i < g->n_order;) {
        int id = g->order[i];
        const oct_node *n = &g->node[id];
        const oct_function *f = oct_graph_function(g, n->domain, n->op, n->overload);
        oct_graph *nested;
        for (size_t k = 0; !f && (nested = oct_node_graph_at(n, k)); k++)
            OCT_TRY(inline_all(nested, l, err));
        if (!f || !fits(g, f->body)) {
            if (f)
                l->stays[f - top->function] = true;
            i++;
            continue;
        }
        const char *op = n->op, *name = n->name;
        oct_node_text(g, id, text, sizeof text);
        oct_status s = l->checked ? OCT_OK : check_calls(top, top, l->gone, 0, err);
        if (!l->checked)
            memset(l->gone, 0, top->n_function * sizeof *l->gone);
        l->checked = true;
        if (s == OCT_OK)
            s = count_copy(l, n, f, &l->each[f - top->function], err);
        if (s == OCT_OK)
            s = inline_call(g, i, f, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", text);
            return s;
        }
        l->gone[f - top->function] = true;
        oct_pass_note(l->log, l->self, op, name);
    }
    return OCT_OK;
}

/* Removes functions that nothing calls, unless a remaining function might call them. */
static void drop_functions(oct_graph *g, const inlining *l)
{
    bool all = true;
    for (size_t i = 0; i < g->n_function; i++)
        all &= l->gone[i] && !l->stays[i];
    if (all)
        g->n_function = 0;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    if (g->outer || !g->n_function)
        return OCT_OK; /* nested graphs are processed together with the outermost one */
    inlining l = { .self = self, .log = log };
    l.gone = oct_calloc(g->n_function, sizeof *l.gone);
    l.stays = oct_calloc(g->n_function, sizeof *l.stays);
    l.each = oct_calloc(g->n_function, sizeof *l.each);
    oct_status s = l.gone && l.stays && l.each ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        measure_all(g, &l);
        s = inline_all(g, &l, err);
    }
    if (s == OCT_OK)
        drop_functions(g, &l);
    oct_free(l.gone);
    oct_free(l.stays);
    oct_free(l.each);
    return s;
}

const oct_pass oct_pass_inline = { "inline", "put the nodes of functions in the place of their calls", run, true };
