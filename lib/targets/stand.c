/* Which nodes a target runs on integers: what all targets have in common, and targets that compute on integers wherever
 * values are quantized. Targets that look for quantizers or carry dequantizers are in around.c and carried.c. */
#include "targets/stand.h"

#include "forms/forms.h"
#include "forms/qlinear.h"
#include "targets/claim.h"
#include "targets/stand_int.h"
#include "targets/target_int.h"

#include <string.h>

/* ---- operators on quantized values ---- */

/* What an operator computes on according to its type only: an operator on integers, one with weights in blocks, or any
 * other. */
static oct_compute by_itself(const oct_op *op)
{
    return !op || !op->scheme ? OCT_ON_REALS : strcmp(op->scheme, "int8") == 0 ? OCT_ON_DYNAMIC : OCT_ON_BLOCKS;
}

static bool has_quantized(const oct_node *n, const oct_op *op)
{
    const oct_graph *nested;
    if ((op && (op->is_qdq || op->scheme)) || oct_qlinear_of(n) || strcmp(n->op, "DynamicQuantizeLinear") == 0)
        return true;
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        if (oct_has_quantized(nested))
            return true;
    return false;
}

bool oct_has_quantized(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (has_quantized(&g->node[g->order[i]], oct_op_of(g, g->order[i])))
            return true;
    return false;
}

/* ---- targets that run whatever our own operators can run ---- */

/* Whether a recurrent layer reads a quantized input and quantized matrices, and gives the target a quantized result:
 * one that wants it between quantizers computes it on integers. */
static bool rounds_recurrent(const oct_target *t, const oct_graph *read, int node)
{
    const oct_op *op = oct_op_of(read, node);
    const oct_node *n = &read->node[node];
    if (!op || op->quant != OCT_QUANT_RECURRENT || !oct_target_runs(t, read, node, OCT_TARGET_ROUNDED, NULL))
        return false;
    for (int i = 0; i < 3; i++)
        if (oct_input_at(n, i) < 0 || !read->value[n->in[i]].quant ||
            oct_dtype_bits(read->value[n->in[i]].quant->dtype) != 8)
            return false;
    return true;
}

oct_status oct_target_computes(const oct_target *t, const oct_graph *read, int node, oct_compute *how, const char **why,
                               oct_err *err)
{
    static const oct_target_form as[] = { [OCT_ON_QUANTIZED] = OCT_TARGET_STATIC,
                                          [OCT_ON_DYNAMIC] = OCT_TARGET_DYNAMIC,
                                          [OCT_ON_BLOCKS] = OCT_TARGET_WEIGHT_ONLY };
    *how = by_itself(oct_op_of(read, node));
    if (*how != OCT_ON_REALS)
        return OCT_OK;
    OCT_TRY(oct_compute_of(read, node, how, err));
    if (*how == OCT_ON_REALS && rounds_recurrent(t, read, node)) {
        *how = OCT_ON_QUANTIZED;
        return OCT_OK;
    }
    if (*how != OCT_ON_REALS && !oct_target_keeps(t, read, node, as[*how], why))
        *how = OCT_ON_REALS;
    return OCT_OK;
}

bool oct_is_spelling(const oct_graph *g, const oct_graph *read, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return read->node[node].dead || (op && op->is_qdq) || oct_border_of(read, &read->node[node]);
}

static oct_status stand_read(const oct_target *t, const oct_graph *g, const oct_graph *read, oct_stand *stand,
                             oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const char *why = "its values are not quantized, or not as its integer form needs it";
        oct_compute how;
        if (oct_is_spelling(g, read, id) || stand[id].kind == OCT_STANDS_APART) {
            stand[id] = (oct_stand){ OCT_STANDS_APART, "it only expresses quantization", -1 };
            continue;
        }
        oct_target_runs(t, g, id, OCT_TARGET_STATIC, &why);
        OCT_TRY(oct_target_computes(t, read, id, &how, &why, err));
        stand[id].kind = how == OCT_ON_REALS    ? OCT_STANDS_FLOAT
                         : how == OCT_ON_BLOCKS ? OCT_STANDS_BLOCKS
                                                : OCT_STANDS_INTEGER;
        stand[id].why = how == OCT_ON_REALS ? why : "quantized in the model";
    }
    return OCT_OK;
}

static oct_status stand_runtime(const oct_target *t, const oct_graph *g, oct_stand *stand, oct_err *err)
{
    oct_graph *read = NULL;
    OCT_TRY(oct_graph_clone(g, &read, err));
    oct_status s = oct_forms_read(read, NULL, NULL, err);
    if (s == OCT_OK) {
        oct_graph_prune(read);
        s = stand_read(t, g, read, stand, err);
    }
    oct_graph_destroy(read);
    return s;
}

/* Marks what a target that computes parts of g leaves to the runtime that holds g. */
static oct_status leave(const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err)
{
    oct_claim *claim;
    int n_parts;
    OCT_TRY(oct_claim_nodes(g, OCT_CLAIM_INTEGERS, arena, &claim, &n_parts, err));
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const bool holds = oct_node_graph_at(&g->node[id], 0) != NULL;
        if (claim[id].part < 0 && (stand[id].kind != OCT_STANDS_APART || holds))
            stand[id] = (oct_stand){ OCT_STANDS_LEFT, claim[id].reason, -1 };
    }
    return OCT_OK;
}

/* ---- all targets ---- */

static bool is_real(const oct_graph *g, int value)
{
    const oct_dtype t = value >= 0 ? g->value[value].dtype : OCT_UNDEFINED;
    return t == OCT_F32 || t == OCT_F16 || t == OCT_BF16 || t == OCT_F64;
}

/* Whether the target runs any operator on integers with scales that are computed at run time. */
static bool has_dynamic(const oct_target *t)
{
    for (size_t i = 0; i < t->n_op; i++)
        if (t->op[i].forms & OCT_TARGET_DYNAMIC)
            return true;
    return false;
}

/* Whether a line says that an operator runs in float. */
static bool in_float(const oct_target *t, const oct_node *n)
{
    const oct_target_op *e = n->domain[0] ? NULL : oct_target_entry(t, n->op);
    return e && e->rules.runs_float;
}

/* Whether the target converts an operator on integers to float: its line says fit-weights, and its constant weights
 * have a type that the target does not multiply, or a zero point other than 0. */
static bool has_unfit_weights(const oct_target *t, const oct_graph *g, const oct_node *n)
{
    const oct_qlinear *f = oct_qlinear_of(n);
    const oct_target_op *e = n->domain[0] ? NULL : oct_target_entry(t, n->op);
    if (!e || !e->rules.fit_weights || n->n_in < oct_qlinear_slot(f, 1) + 3)
        return false;
    const int x = n->in[oct_qlinear_slot(f, 0)], w = n->in[oct_qlinear_slot(f, 1)];
    const oct_tensor *zero = oct_linear_constant(g, n->in[oct_qlinear_slot(f, 1) + 2]);
    if (x < 0 || w < 0 || !g->value[w].constant)
        return false;
    if (zero && oct_dtype_bits(zero->dtype) != 8)
        return true;
    bool centred = true;
    for (int64_t i = 0; zero && i < zero->count; i++)
        centred &= ((const uint8_t *)zero->data)[i] == 0;
    return !centred || !oct_target_takes(t, g->value[x].dtype, g->value[w].dtype);
}

/* What is known without looking at the quantizers around a node: whether it is an operator on quantized values, or has
 * no real numbers. */
static oct_stand first_look(const oct_target *t, const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_compute how = by_itself(op);
    bool real = false, byte = false;
    if (oct_node_graph_at(n, 0))
        return (oct_stand){ OCT_STANDS_APART, "the nodes of its graphs are judged one by one", -1 };
    if (how == OCT_ON_BLOCKS)
        return (oct_stand){ OCT_STANDS_BLOCKS, "its weights are stored in few bits", -1 };
    if (how == OCT_ON_DYNAMIC && !has_dynamic(t))
        return (oct_stand){ OCT_STANDS_FLOAT, "the target has no dynamic quantization", -1 };
    if (oct_qlinear_of(n) && in_float(t, n))
        return (oct_stand){ OCT_STANDS_FLOAT, "the target runs this operator in float", -1 };
    if (oct_qlinear_of(n) && has_unfit_weights(t, g, n))
        return (oct_stand){ OCT_STANDS_FLOAT,
                            "its weights are not symmetric, or of a type that the target does not multiply", -1 };
    if (how == OCT_ON_DYNAMIC || oct_qlinear_of(n))
        return (oct_stand){ OCT_STANDS_INTEGER, "an operator on integers", -1 };
    if ((op && op->is_qdq) || strcmp(n->op, "DynamicQuantizeLinear") == 0)
        return (oct_stand){ OCT_STANDS_APART, "it only expresses quantization", -1 };
    for (int i = 0; i < n->n_in; i++)
        real |= is_real(g, n->in[i]);
    for (int k = 0; k < n->n_out; k++) {
        const oct_dtype type = n->out[k] >= 0 ? g->value[n->out[k]].dtype : OCT_UNDEFINED;
        real |= is_real(g, n->out[k]) || type == OCT_UNDEFINED;
        byte |= type == OCT_U8 || type == OCT_S8;
    }
    if (!real && byte && op && op->quant != OCT_QUANT_NONE && oct_target_lists(t, n->op, OCT_TARGET_STATIC))
        return (oct_stand){ OCT_STANDS_INTEGER, "it moves bytes", -1 };
    if (!real)
        return (oct_stand){ OCT_STANDS_APART, "it has no float values", -1 };
    return (oct_stand){ OCT_STANDS_FLOAT, op ? "nothing is quantized around it" : "the operator is unknown", -1 };
}

oct_status oct_target_stands(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand **stand, oct_err *err)
{
    oct_stand *s = oct_arena_calloc(arena, g->n_node + 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++)
        s[g->order[i]] = first_look(t, g, g->order[i]);
    *stand = s;
    if (t->rules.runs_all)
        OCT_TRY(stand_runtime(t, g, s, err));
    if (t->rules.in_parts && !g->outer)
        return leave(g, arena, s, err);
    if (t->rules.runs_all)
        return OCT_OK;
    return t->rules.carries ? oct_target_stand_carried(t, g, arena, s, err)
                            : oct_target_stand_around(t, g, arena, s, err);
}
