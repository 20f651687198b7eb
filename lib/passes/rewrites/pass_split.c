/* Pass: ONNX Runtime's optimizer writes FusedConv and FusedGemm of com.microsoft. They are split into Conv or Gemm, the
 * Add after it, and the activation. The runtime fuses them again, and so they can be quantized. */
#include "passes/pass.h"

#include "ops/core/args.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PARAMS = 2 };

/* Functions that these operators apply, with attributes in the order of FusedConv's activation_params. */
typedef struct activation {
    const char *op, *attr[MOST_PARAMS];
    int since;
} activation;

static const activation activations[] = {
    { "Relu", { NULL }, 6 },
    { "Tanh", { NULL }, 6 },
    { "Sigmoid", { NULL }, 6 },
    { "LeakyRelu", { "alpha" }, 6 },
    { "Clip", { "min", "max" }, 6 },
    { "HardSigmoid", { "alpha", "beta" }, 6 },
    { "HardSwish", { NULL }, 14 },
    { "Elu", { "alpha" }, 6 },
    { "Celu", { "alpha" }, 12 },
    { "Selu", { "alpha", "gamma" }, 6 },
    { "Softplus", { NULL }, 6 },
    { "Softsign", { NULL }, 6 },
    { "ThresholdedRelu", { "alpha" }, 10 },
};

static bool is_fused(const oct_node *n)
{
    return strcmp(n->domain, "com.microsoft") == 0 &&
           (strcmp(n->op, "FusedConv") == 0 || strcmp(n->op, "FusedGemm") == 0) && n->n_in > 1 && n->n_out == 1 &&
           n->out[0] >= 0;
}

/* If an operator has no record here, or needs a newer opset, the node is not split. */
static bool find_activation(const oct_graph *g, const oct_node *n, const activation **a)
{
    const char *name = oct_node_str(n, "activation", "");
    const int64_t opset = oct_graph_opset(g, "");
    *a = NULL;
    if (name[0] == 0)
        return opset > 0;
    for (size_t i = 0; i < OCT_COUNT(activations); i++)
        if (strcmp(activations[i].op, name) == 0 && opset >= activations[i].since)
            *a = &activations[i];
    return *a != NULL;
}

/* Parameter i of the activation: FusedConv has one list of all, and FusedGemm has an attribute for each. */
static bool param_of(const oct_node *n, const activation *a, int i, float *v)
{
    char name[40];
    int count;
    const float *list = oct_node_floats(n, "activation_params", &count);
    snprintf(name, sizeof name, "activation_%s", a->attr[i]);
    if (strcmp(n->op, "FusedConv") == 0) {
        *v = i < count ? list[i] : 0.0f;
        return i < count;
    }
    *v = oct_node_float(n, name, 0.0f);
    return oct_node_attr(n, name) != NULL;
}

/* Adds a node after `from` that computes a new value, or `last` if that is >= 0. */
static oct_status append(oct_graph *g, const char *op, int from, int other, int before, int last, int *node, int *out,
                         oct_err *err)
{
    *out = last;
    OCT_TRY(oct_graph_add_node(g, op, "", "", 1, 1, before, node, err));
    OCT_TRY(oct_graph_set_input(g, *node, 0, from, err));
    if (other >= 0)
        OCT_TRY(oct_graph_set_input(g, *node, 1, other, err));
    if (last < 0)
        OCT_TRY(oct_graph_new_value(g, g->value[from].name, g->value[from].dtype, out, err));
    return oct_graph_set_output(g, *node, 0, *out, err);
}

static oct_status set_params(oct_graph *g, int node, const activation *a, const float *v, const bool *given,
                             oct_err *err)
{
    for (int i = 0; i < MOST_PARAMS && a->attr[i] != NULL; i++)
        if (given[i])
            OCT_TRY(oct_node_set_float(g, node, a->attr[i], v[i], err));
    if (strcmp(a->op, "Clip") != 0 || oct_graph_opset(g, "") < 11)
        return OCT_OK;
    OCT_TRY(oct_raise_float(g, node, "min", 1, err));
    return oct_raise_float(g, node, "max", 2, err);
}

/* The node itself becomes the Conv or Gemm, with those attributes that it keeps, and the others follow it. next: the
 * node before which they are inserted, or -1. */
static oct_status split(oct_graph *g, int id, int next, const activation *a, oct_err *err)
{
    const bool conv = strcmp(g->node[id].op, "FusedConv") == 0;
    const int y = g->node[id].out[0], sum = conv && g->node[id].n_in > 3 ? g->node[id].in[3] : -1;
    float v[MOST_PARAMS];
    bool given[MOST_PARAMS] = { false };
    char name[40];
    int node, at = y;
    for (int i = 0; a != NULL && i < MOST_PARAMS && a->attr[i] != NULL; i++) {
        given[i] = param_of(&g->node[id], a, i, &v[i]);
        snprintf(name, sizeof name, "activation_%s", a->attr[i]);
        oct_node_drop_attr(g, id, name);
    }
    oct_node_drop_attr(g, id, "activation");
    oct_node_drop_attr(g, id, "activation_params");
    g->node[id].op = conv ? "Conv" : "Gemm";
    g->node[id].domain = "";
    g->node[id].changed = g->changed = true;
    if (conv)
        oct_graph_cut_inputs(g, id, 3);
    if (sum >= 0 || a != NULL) {
        OCT_TRY(oct_graph_new_value(g, g->value[y].name, g->value[y].dtype, &at, err));
        OCT_TRY(oct_graph_set_output(g, id, 0, at, err));
    }
    if (sum >= 0)
        OCT_TRY(append(g, "Add", at, sum, next, a != NULL ? -1 : y, &node, &at, err));
    if (a == NULL)
        return OCT_OK;
    OCT_TRY(append(g, a->op, at, -1, next, y, &node, &at, err));
    return set_params(g, node, a, v, given, err);
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i], next = i + 1 < g->n_order ? g->order[i + 1] : -1;
        const activation *a;
        if (!is_fused(&g->node[id]) || !find_activation(g, &g->node[id], &a))
            continue;
        const char *was = g->node[id].op;
        OCT_TRY(split(g, id, next, a, err));
        oct_pass_note(log, self, was, g->node[id].name);
    }
    return OCT_OK;
}

const oct_pass oct_pass_split = { "split", "take FusedConv and FusedGemm apart", run, true };
