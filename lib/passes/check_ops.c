/* Checks that a graph's nodes are operators that ONNX defines, and that their operands have types that these operators
 * accept. */
#include "passes/pass.h"

#include "ops/op.h"
#include "ops/signature.h"

#include <stdio.h>
#include <string.h>

typedef oct_status (*check_node)(const oct_graph *g, const oct_node *n, void *arg, oct_err *err);

/* Calls a check for each node of g and of its subgraphs. Errors name the node. */
static oct_status each(const oct_graph *g, check_node check, void *arg, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_graph *nested;
        oct_status s = check(g, &g->node[id], arg, err);
        for (size_t k = 0; s == OCT_OK && (nested = oct_node_graph_at(&g->node[id], k)); k++)
            s = each(nested, check, arg, err);
        OCT_TRY(oct_within_node(g, id, s, err));
    }
    return OCT_OK;
}

/* ---- operators ---- */

static oct_status is_known(const oct_graph *g, const oct_node *n, void *arg, oct_err *err)
{
    const int64_t opset = oct_node_opset(g, n), first = oct_signature_first(n->op);
    const char **newer = arg;
    if (n->domain[0] || oct_op_find("", n->op, opset) || oct_signature_find("", n->op, opset) ||
        oct_graph_function(g, n->domain, n->op, n->overload))
        return OCT_OK;
    if (opset > oct_signature_newest()) {
        *newer = *newer ? *newer : n->op;
        return OCT_OK;
    }
    oct_fail(err, OCT_EMALFORMED, "opset %lld has no operator '%s'", (long long)opset, n->op);
    const char *nearest = oct_signature_nearest(n->op);
    if (first)
        oct_hint(err, "it exists from opset %lld on", (long long)first);
    else if (nearest)
        oct_hint(err, "did you mean '%s'? An operator of your own needs a domain of its own", nearest);
    else
        oct_hint(err, "an operator of your own needs a domain of its own");
    return OCT_EMALFORMED;
}

oct_status oct_check_operators(const oct_graph *g, const char **newer, oct_err *err)
{
    *newer = NULL;
    return each(g, is_known, newer, err);
}

/* ---- types ---- */

/* What the type letters of a signature stand for in a node: by letter, the first operand with it and that operand's
 * type. */
typedef struct binding {
    const oct_graph *g;
    const oct_node *n;
    const oct_signature *sig;
    oct_dtype type[24];
    const char *name[24];
} binding;

static oct_status bind(binding *b, char which, int value, const char *what, oct_err *err)
{
    const oct_value *v = value >= 0 ? &b->g->value[value] : NULL;
    if (!which || !v || v->kind != OCT_VALUE_TENSOR || v->dtype == OCT_UNDEFINED)
        return OCT_OK;
    const int at = which - 'A';
    const uint32_t set = b->sig->set[at];
    if (set && !(set >> v->dtype & 1) && b->sig->domain[0] == 0)
        return oct_fail(err, OCT_EMALFORMED, "its %s '%s' is %s, which %s of opset %d cannot be", what, v->name,
                        oct_dtype_name(v->dtype), b->n->op, b->sig->since);
    if (b->type[at] == OCT_UNDEFINED) {
        b->type[at] = v->dtype;
        b->name[at] = v->name;
    }
    if (b->type[at] != v->dtype)
        return oct_fail(err, OCT_EMALFORMED, "'%s' is %s and '%s' is %s, where %s wants one type", b->name[at],
                        oct_dtype_name(b->type[at]), v->name, oct_dtype_name(v->dtype), b->n->op);
    return OCT_OK;
}

static oct_status has_types(const oct_graph *g, const oct_node *n, void *arg, oct_err *err)
{
    const int64_t opset = oct_node_opset(g, n);
    binding b = { .g = g, .n = n, .sig = oct_signature_find(n->domain, n->op, opset) };
    if (!b.sig || (!n->domain[0] && opset > oct_signature_newest()))
        return OCT_OK;
    for (int i = 0; i < n->n_in; i++)
        OCT_TRY(bind(&b, oct_signature_letter(b.sig->in, i), n->in[i], "input", err));
    for (int k = 0; k < n->n_out; k++)
        OCT_TRY(bind(&b, oct_signature_letter(b.sig->out, k), n->out[k], "output", err));
    return OCT_OK;
}

oct_status oct_check_types(const oct_graph *g, oct_err *err)
{
    return each(g, has_types, NULL, err);
}
