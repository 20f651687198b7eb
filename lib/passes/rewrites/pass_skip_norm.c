/* Fusion: an addition whose result is normalized along its last dimension becomes SkipLayerNormalization (or
 * SkipSimplifiedLayerNormalization) of com.microsoft, which reads both terms once. If other nodes read the sum, it
 * becomes the operator's fourth output. */
#include "passes/match.h"

#include <string.h>

typedef struct skip {
    int norm, add, x, other; /* nodes; values */
} skip;

static bool is_row(const oct_graph *g, int value, int64_t n)
{
    const oct_shape *s = &g->value[value].shape;
    return g->value[value].dtype == OCT_F32 && s->rank == 1 && s->d[0].n == n;
}

static bool is_rms(const oct_node *n)
{
    return oct_is_op(n, "RMSNormalization") || oct_is_op(n, "SimplifiedLayerNormalization");
}

/* Whether a node normalizes rows, with one scale (and shift) for each element of a row. */
static bool is_row_norm(const oct_graph *g, const oct_node *n)
{
    const bool rms = is_rms(n);
    if ((!rms && !oct_is_op(n, "LayerNormalization")) || n->n_in < 2 || n->n_out < 1 || n->out[0] < 0 || n->in[0] < 0 ||
        n->in[1] < 0)
        return false;
    for (int k = 1; k < n->n_out; k++)
        if (n->out[k] >= 0)
            return false;
    const oct_value *x = &g->value[n->in[0]];
    const int64_t axis = oct_node_int(n, "axis", -1);
    if (x->dtype != OCT_F32 || !oct_shape_known(&x->shape, NULL) || x->shape.rank < 1 ||
        (axis != -1 && axis != x->shape.rank - 1) || oct_node_int(n, "stash_type", 1) != 1)
        return false;
    const int64_t last = x->shape.d[x->shape.rank - 1].n;
    const int shift = oct_input_at(n, 2);
    return is_row(g, n->in[1], last) && (rms || shift < 0 || is_row(g, shift, last));
}

/* Both terms must have the same shape and not be constant. A row that is added to all rows (a bias) belongs to the
 * product before it. */
static bool match(const oct_graph *g, int id, skip *s)
{
    const oct_node *n = &g->node[id];
    if (!is_row_norm(g, n))
        return false;
    const int add = oct_made_by(g, n->in[0], "Add", 2);
    *s = (skip){ id, add, add >= 0 ? g->node[add].in[0] : -1, add >= 0 ? g->node[add].in[1] : -1 };
    for (int i = 1; i < n->n_in; i++) /* a scale that is computed from the sum would have to precede it */
        if (n->in[i] >= 0 && !g->value[n->in[i]].constant)
            return false;
    return add >= 0 && oct_same_dims(g, s->x, n->in[0]) && oct_same_dims(g, s->other, n->in[0]) &&
           !g->value[s->x].constant && !g->value[s->other].constant;
}

static oct_status fuse(oct_graph *g, const skip *s, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const oct_node *n = &g->node[s->norm];
    const bool rms = is_rms(n);
    const int sum = n->in[0], shift = rms ? -1 : oct_input_at(n, 2);
    const float eps = oct_node_float(n, "epsilon", 1e-5f);
    const bool seen = !oct_value_used_once(&g->value[sum]);
    oct_match m = { { s->norm }, 1 };
    int made;
    if (!seen)
        oct_match_add(&m, s->add);
    const oct_fused f = { rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization",
                          "com.microsoft",
                          1,
                          { s->x, s->other, n->in[1], shift },
                          shift >= 0 ? 4 : 3 };
    OCT_TRY(oct_match_replace(g, &m, s->norm, s->norm, &f, &made, err));
    OCT_TRY(oct_node_set_float(g, made, "epsilon", eps, err));
    oct_pass_note(log, self, f.op, g->node[made].name);
    return seen ? oct_graph_set_output(g, made, 3, sum, err) : OCT_OK;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    skip s;
    return match(g, id, &s) ? fuse(g, &s, self, log, err) : OCT_OK;
}

const oct_pass oct_pass_skip_norm = { "skip-norm", "make a sum and its normalisation one operator", .at = at };
