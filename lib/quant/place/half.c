/* Chooses the nodes that compute in 16-bit floats.
 *
 * The policy asks for it. A node stays float32 in these cases: its operator does not support the type; its result
 * becomes integers, such as positions (2049 would be 2048 in float16); float16 does not represent its inputs or outputs
 * (half_range.c); or it stands among float32 nodes and far from weights, so that it would only add conversions. */
#include "forms/write/forms_write.h"
#include "ops/signature.h"
#include "quant/job/placed.h"
#include "quant/place/place_int.h"

oct_dtype oct_half_type(const oct_qjob *j, int node)
{
    const oct_scheme s = node < (int)j->n_nodes ? oct_scheme_of(j, node) : OCT_SCHEME_FLOAT;
    return s == OCT_SCHEME_FP16 ? OCT_F16 : s == OCT_SCHEME_BF16 ? OCT_BF16 : OCT_UNDEFINED;
}

/* ---- what operators support ---- */

/* Whether an operator of com.microsoft takes bfloat16 where it takes float16. */
static bool takes_bf16(const oct_qjob *j, int id, const oct_signature *s)
{
    const oct_node *n = &j->g->node[id];
    bool all = true;
    for (int i = 0; i < n->n_in; i++)
        all &= !oct_is_f32(j, n->in[i]) || !oct_half_follows(n, i) || oct_signature_takes(s, i, OCT_BF16);
    return all;
}

/* The types of the default domain's operators depend on the opset, and are in the records; those of com.microsoft are
 * in the signatures. What computes on integers stays as it is. */
static bool takes(const oct_qjob *j, int id, bool bf16)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    const int first = bf16 ? op->bf16 : op->f16;
    const bool container = op->exec && !op->run; /* sequences and optionals are not changed */
    if (container || first < 0 || oct_graph_opset(j->g, "") < first)
        return false;
    const oct_signature *s = n->domain[0] ? oct_signature_find(n->domain, n->op, INT64_MAX) : NULL;
    return !n->domain[0] || (s && !op->scheme && (!bf16 || takes_bf16(j, id, s)));
}

int oct_half_operand(const oct_qjob *j, int id, int i)
{
    const oct_node *n = &j->g->node[id];
    const int v = i < n->n_in ? (oct_half_follows(n, i) ? n->in[i] : -1) : n->out[i - n->n_in];
    return oct_is_f32(j, v) ? v : -1;
}

static bool computes_floats(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const bool out = oct_op_of(j->g, id)->converts;
    bool any = false;
    for (int i = out ? n->n_in : 0; i < (out ? n->n_in + n->n_out : n->n_in); i++)
        any |= oct_half_operand(j, id, i) >= 0;
    return any;
}

/* Whether the type of an operand is unknown, such as the output of an operator of another domain. Then no Cast can be
 * inserted before it. */
static bool has_unknown(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i] >= 0 && oct_half_follows(n, i) ? &j->g->value[n->in[i]] : NULL;
        any |= v && v->kind == OCT_VALUE_TENSOR && v->dtype == OCT_UNDEFINED;
    }
    return any;
}

static bool is_qdq(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    return op && op->is_qdq;
}

/* Whether a float tensor connects the node with one that quantizes or dequantizes. */
static bool touches_qdq(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        const int p = oct_is_f32(j, n->in[i]) ? j->g->value[n->in[i]].producer : -1;
        any |= p >= 0 && is_qdq(j, p);
    }
    for (int k = 0; k < n->n_out; k++)
        for (size_t u = 0; oct_is_f32(j, n->out[k]) && u < j->g->value[n->out[k]].n_uses; u++)
            any |= is_qdq(j, j->g->value[n->out[k]].uses[u].node);
    return any;
}

/* Whether it reads a constant that is large enough to be stored in 16 bits. */
static bool has_table(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    bool table = false;
    for (int i = 0; i < n->n_in; i++)
        table |= oct_is_f32(j, n->in[i]) && j->g->value[n->in[i]].constant &&
                 j->g->value[n->in[i]].constant->count >= OCT_HALF_TABLE;
    return table;
}

/* The reason why a node that should compute in 16-bit floats cannot, or NULL. */
static const char *no_half(const oct_qjob *j, int id, bool bf16)
{
    if (oct_node_graph_at(&j->g->node[id], 0) || j->g->node[id].n_captured)
        return "control flow: its graphs take and give float32";
    const bool stored = bf16 && oct_target_rules_of(j->opts.target)->bfloat16 != OCT_BFLOAT16_YES;
    if (bf16 && oct_target_rules_of(j->opts.target)->bfloat16 == OCT_BFLOAT16_NEVER)
        return "the target loads no bfloat16 tensors";
    if (stored && has_table(j, id))
        return NULL;
    if (has_unknown(j, id))
        return "the type of an input is not known";
    if (!computes_floats(j, id))
        return "it computes no floats";
    if (stored)
        return "the target has no bfloat16 kernels, and it has no constant large enough to be stored so";
    if (touches_qdq(j, id))
        return "it is quantized already";
    const char *trap = oct_target_trap(j->opts.target, j->g, id);
    if (trap)
        return trap;
    return takes(j, id, bf16) ? NULL : bf16 ? "the operator takes no bfloat16" : "the operator takes no float16";
}

bool oct_half_is_own(const oct_qjob *j)
{
    const oct_scheme s = j->opts.scheme;
    return (s == OCT_SCHEME_FP16 && j->opts.source == OCT_F16) || (s == OCT_SCHEME_BF16 && j->opts.source == OCT_BF16);
}

static void choose(oct_qjob *j, int id)
{
    oct_policy_row own = *oct_row_of(j, id);
    if (oct_half_is_own(j) && !own.asked && own.scheme == OCT_SCHEME_FLOAT) {
        own.scheme = j->opts.scheme;
        own.rule = "the model computes in that type";
    }
    const oct_policy_row *row = &own;
    const oct_scheme scheme = row->scheme;
    if (oct_scheme_of(j, id) != OCT_SCHEME_FLOAT || oct_kept_float(&j->constraints, id) || !oct_op_of(j->g, id) ||
        !(oct_scheme_is_half(scheme) || oct_scheme_is_half(j->opts.scheme)))
        return;
    const char *why = oct_scheme_is_half(scheme) ? no_half(j, id, scheme == OCT_SCHEME_BF16) : row->rule;
    oct_set_scheme(j, id, why ? OCT_SCHEME_FLOAT : scheme, why ? why : row->rule);
}

/* ---- results that become integers ---- */

/* Whatever contributes to a number that counts must stay exact as well. */
static void keep_counts(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        if (oct_counting_of(j, id) != OCT_COUNTS_NOT && oct_half_type(j, id))
            oct_set_scheme(j, id, OCT_SCHEME_FLOAT, oct_becomes_integers);
    }
}

/* ---- islands ---- */

static bool has_weights(const oct_qjob *j, int id)
{
    return oct_op_is_layer(oct_op_of(j->g, id)) || has_table(j, id);
}

/* Nodes that are reached, each of which is looked from once. */
typedef struct reach {
    bool *reached;
    int *node; /* those reached, in turn */
    size_t n;
} reach;

static void spread(const oct_qjob *j, int id, reach *r)
{
    if (id < 0 || r->reached[id] || !oct_half_type(j, id))
        return;
    r->reached[id] = true;
    r->node[r->n++] = id;
}

/* To the neighbours that a float tensor connects with a node. */
static void spread_from(const oct_qjob *j, int id, reach *r)
{
    const oct_node *n = &j->g->node[id];
    for (int i = 0; i < n->n_in; i++)
        if (oct_is_f32(j, n->in[i]))
            spread(j, j->g->value[n->in[i]].producer, r);
    for (int k = 0; k < n->n_out; k++)
        for (size_t u = 0; oct_is_f32(j, n->out[k]) && u < j->g->value[n->out[k]].n_uses; u++)
            spread(j, j->g->value[n->out[k]].uses[u].node, r);
}

/* reached, node: [n_nodes], cleared. */
static void drop_islands(oct_qjob *j, bool *reached, int *node)
{
    reach r = { .reached = reached, .node = node };
    for (size_t i = 0; i < j->g->n_order; i++)
        if (has_weights(j, j->g->order[i]))
            spread(j, j->g->order[i], &r);
    for (size_t i = 0; i < r.n; i++)
        spread_from(j, r.node[i], &r);
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        if (oct_half_type(j, id) && !reached[id])
            oct_set_scheme(j, id, OCT_SCHEME_FLOAT, "none of its 16-bit neighbours has weights");
    }
}

/* Ranges matter only for float16, because bfloat16 has the range of float32. */
static void want_ranges(oct_qjob *j, int id)
{
    for (int i = 0; i < j->g->node[id].n_in + j->g->node[id].n_out; i++) {
        const int v = oct_half_operand(j, id, i);
        if (v >= 0 && !j->g->value[v].constant)
            oct_want_range(j, v);
    }
}

oct_status oct_half_place(oct_qjob *j, oct_err *err)
{
    bool any = false;
    for (size_t i = 0; i < j->g->n_order; i++) {
        choose(j, j->g->order[i]);
        any |= oct_half_type(j, j->g->order[i]) != OCT_UNDEFINED;
    }
    if (!any)
        return OCT_OK;
    bool *mark = oct_calloc(j->n_nodes + 1, sizeof *mark);
    int *node = oct_calloc(j->n_nodes + 1, sizeof *node);
    if (!mark || !node) {
        oct_free(mark);
        oct_free(node);
        return oct_nomem(err);
    }
    keep_counts(j);
    drop_islands(j, mark, node);
    oct_free(mark);
    oct_free(node);
    for (size_t i = 0; i < j->g->n_order; i++)
        if (oct_half_type(j, j->g->order[i]) == OCT_F16)
            want_ranges(j, j->g->order[i]);
    return OCT_OK;
}
