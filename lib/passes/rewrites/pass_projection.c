/* Pass: ONNX Runtime's optimizer writes Attention of com.microsoft, which contains the weights of queries, keys and
 * values, so that they cannot be quantized. It becomes MatMul, Split and MultiHeadAttention, which adds the bias and
 * computes the rest in the same way. It is kept in these cases: it has a past or a present, which are joined in another
 * way; it rotates; or it has a mask that MultiHeadAttention does not support. */
#include "passes/pass.h"

#include "ops/traits.h"

#include <string.h>

enum { X, WEIGHTS, BIAS, MASK, PAST, SCORES, PAST_LENGTH };
enum { PARTS = 3, SPLIT_TAKES_INPUT = 13 };

/* The sizes of queries, keys and values. False: they do not add up to the number of columns. */
static bool part_sizes(const oct_node *n, int64_t columns, int64_t sizes[PARTS])
{
    int count;
    const int64_t *given = oct_node_ints(n, "qkv_hidden_sizes", &count);
    if (count && count != PARTS)
        return false;
    for (int i = 0; i < PARTS; i++)
        sizes[i] = count ? given[i] : columns / PARTS;
    return sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0 && sizes[0] + sizes[1] + sizes[2] == columns;
}

static bool same_dim(const oct_dim *a, const oct_dim *b)
{
    return a->n >= 0 ? a->n == b->n : b->n < 0 && a->sym && b->sym && strcmp(a->sym, b->sym) == 0;
}

/* Both operators support masks with a length for each sample, or a number for each key or each pair. Only Attention
 * supports lists of starts and ends, and masks of four dimensions. */
static bool takes_mask(const oct_graph *g, const oct_node *n)
{
    const int m = oct_input_at(n, MASK);
    if (m < 0)
        return true;
    const oct_shape *s = &g->value[m].shape, *x = &g->value[n->in[X]].shape;
    return s->rank == 2 || s->rank == 3 || (s->rank == 1 && x->rank == 3 && same_dim(&s->d[0], &x->d[0]));
}

static bool suits(const oct_graph *g, const oct_node *n, int64_t sizes[PARTS])
{
    const oct_tensor *w = oct_node_constant(g, n, WEIGHTS);
    const bool own = strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op, "Attention") == 0 &&
                     oct_graph_opset(g, "") >= SPLIT_TAKES_INPUT;
    const bool shown = n->n_out > 1 && n->out[1] >= 0;
    return own && oct_input_at(n, X) >= 0 && w && w->data && w->dtype == OCT_F32 && w->rank == 2 && n->n_out > 0 &&
           n->out[0] >= 0 && !shown && oct_input_at(n, PAST) < 0 && oct_input_at(n, PAST_LENGTH) < 0 &&
           !oct_node_int(n, "do_rotary", 0) && !oct_node_int(n, "past_present_share_buffer", 0) &&
           g->value[n->in[X]].dtype == OCT_F32 && takes_mask(g, n) && part_sizes(n, w->dims[1], sizes);
}

/* Makes a value with the shape of x except for the last dimension. */
static oct_status new_part(oct_graph *g, int x, const char *base, const char *suffix, int64_t columns, int *v,
                           oct_err *err)
{
    oct_dim d[OCT_MAX_RANK];
    const char *name = oct_arena_printf(g->arena, "%s%s", base, suffix);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, name, OCT_F32, v, err));
    const oct_shape s = g->value[x].shape;
    if (s.rank < 1)
        return OCT_OK;
    memcpy(d, s.d, (size_t)s.rank * sizeof *d);
    d[s.rank - 1] = (oct_dim){ columns, NULL };
    return oct_graph_set_shape(g, *v, s.rank, d, err);
}

static oct_status apart(oct_graph *g, int id, const int64_t sizes[PARTS], oct_err *err)
{
    static const char *const suffix[PARTS] = { "_query", "_key", "_value" };
    const int x = g->node[id].in[X], weights = g->node[id].in[WEIGHTS];
    const char *base = g->value[g->node[id].out[0]].name, *name = oct_node_label(g, id);
    int product, lengths, mul, split, part[PARTS];
    OCT_TRY(new_part(g, x, base, "_projected", sizes[0] + sizes[1] + sizes[2], &product, err));
    OCT_TRY(oct_graph_add_node(g, "MatMul", "", oct_arena_printf(g->arena, "%s_MatMul", name), 2, 1, id, &mul, err));
    OCT_TRY(oct_graph_set_input(g, mul, 0, x, err));
    OCT_TRY(oct_graph_set_input(g, mul, 1, weights, err));
    OCT_TRY(oct_graph_set_output(g, mul, 0, product, err));
    OCT_TRY(oct_graph_new_const_s64(g, oct_arena_printf(g->arena, "%s_sizes", base), 1, (const int64_t[]){ PARTS },
                                    sizes, &lengths, err));
    OCT_TRY(
        oct_graph_add_node(g, "Split", "", oct_arena_printf(g->arena, "%s_Split", name), 2, PARTS, id, &split, err));
    OCT_TRY(oct_graph_set_input(g, split, 0, product, err));
    OCT_TRY(oct_graph_set_input(g, split, 1, lengths, err));
    OCT_TRY(oct_node_set_int(g, split, "axis", -1, err));
    for (int i = 0; i < PARTS; i++) {
        OCT_TRY(new_part(g, x, base, suffix[i], sizes[i], &part[i], err));
        OCT_TRY(oct_graph_set_output(g, split, i, part[i], err));
    }
    const oct_node *n = &g->node[id];
    const int bias = oct_input_at(n, BIAS), mask = oct_input_at(n, MASK), scores = oct_input_at(n, SCORES);
    const int in[] = { part[0], part[1], part[2], bias, mask, scores };
    oct_graph_cut_inputs(g, id, 0);
    for (int i = 0; i < (int)OCT_COUNT(in); i++)
        if (in[i] >= 0)
            OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    static const char *const own[] = { "qkv_hidden_sizes", "do_rotary", "rotary_embedding_dim",
                                       "past_present_share_buffer" };
    for (size_t i = 0; i < OCT_COUNT(own); i++)
        oct_node_drop_attr(g, id, own[i]);
    g->node[id].op = "MultiHeadAttention";
    g->node[id].changed = g->changed = true;
    return OCT_OK;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    int64_t sizes[PARTS];
    if (!suits(g, &g->node[id], sizes))
        return OCT_OK;
    oct_pass_note(log, self, "Attention", oct_node_label(g, id));
    return apart(g, id, sizes, err);
}

const oct_pass oct_pass_projection = { "projection",
                                       "take the product with the weights out of com.microsoft's Attention", .at = at };
