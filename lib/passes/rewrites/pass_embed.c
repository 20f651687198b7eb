/* Pass: ONNX Runtime's optimizer writes EmbedLayerNormalization of com.microsoft. It is taken apart into a Gather for
 * each table, their sum, and SkipLayerNormalization, so that tables are quantized as others are. */
#include "passes/pass.h"

#include <string.h>

enum { IDS, SEGMENTS, WORDS, PLACES, KINDS, GAMMA, BETA, MASK, PLACE_IDS };
enum { OUT_ROWS, OUT_MASK, OUT_SUM };

static int output(const oct_node *n, int slot)
{
    return slot < n->n_out ? n->out[slot] : -1;
}

static bool is_used(const oct_graph *g, int v)
{
    return v >= 0 && (g->value[v].n_uses || g->value[v].is_output);
}

/* Range needs opset 11, and ReduceSum on given axes 13. Tables that are computed do not become smaller. */
static bool match(const oct_graph *g, const oct_node *n)
{
    if (strcmp(n->op, "EmbedLayerNormalization") != 0 || strcmp(n->domain, "com.microsoft") != 0 ||
        output(n, OUT_ROWS) < 0 || oct_graph_opset(g, "") < 11)
        return false;
    for (int slot = IDS; slot <= BETA; slot++)
        if (oct_input_at(n, slot) < 0 && slot != SEGMENTS && slot != KINDS)
            return false;
    const bool counts = is_used(g, output(n, OUT_MASK));
    return g->value[n->in[WORDS]].constant && g->value[n->in[WORDS]].dtype == OCT_F32 &&
           (oct_input_at(n, SEGMENTS) < 0 || oct_input_at(n, KINDS) >= 0) &&
           (!counts || (oct_input_at(n, MASK) >= 0 && oct_graph_opset(g, "") >= 13));
}

/* Adds a node before node `before`. *out: a new value named after value `like`, of type t, or `last` if that is >= 0.
 */
static oct_status emit(oct_graph *g, const char *op, const int *in, int n_in, int before, oct_dtype t, int like,
                       int last, int *node, int *out, oct_err *err)
{
    int made = last;
    OCT_TRY(oct_graph_add_node(g, op, "", "", n_in, 1, before, node, err));
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(g, *node, i, in[i], err));
    if (last < 0)
        OCT_TRY(oct_graph_new_value(g, g->value[like].name, t, &made, err));
    *out = made;
    return oct_graph_set_output(g, *node, 0, made, err);
}

static oct_status scalar(oct_graph *g, int like, int64_t v, int *out, oct_err *err)
{
    return oct_graph_new_const_s64(g, g->value[like].name, 0, NULL, &v, out, err);
}

/* The positions 0, 1, ... of a sequence of ids. */
static oct_status count_up(oct_graph *g, int id, int ids, int *places, oct_err *err)
{
    int dims, zero, one, length, node;
    OCT_TRY(scalar(g, ids, 0, &zero, err));
    OCT_TRY(scalar(g, ids, 1, &one, err));
    OCT_TRY(emit(g, "Shape", &ids, 1, id, OCT_S64, ids, -1, &node, &dims, err));
    OCT_TRY(emit(g, "Gather", (const int[]){ dims, one }, 2, id, OCT_S64, ids, -1, &node, &length, err));
    return emit(g, "Range", (const int[]){ zero, length, one }, 3, id, OCT_S64, ids, -1, &node, places, err);
}

/* How many ones the mask has in each sequence. */
static oct_status count_mask(oct_graph *g, int id, int mask, int counts, oct_err *err)
{
    const int64_t last = 1, dims = 1;
    const int32_t one = 1;
    int in[2] = { mask, -1 }, node;
    OCT_TRY(oct_graph_new_const(g, g->value[mask].name, OCT_S32, 0, NULL, &one, &in[1], err));
    OCT_TRY(emit(g, "Equal", in, 2, id, OCT_BOOL, mask, -1, &node, &in[0], err));
    OCT_TRY(emit(g, "Cast", in, 1, id, OCT_S32, mask, -1, &node, &in[0], err));
    OCT_TRY(oct_node_set_int(g, node, "to", OCT_S32, err));
    OCT_TRY(oct_graph_new_const_s64(g, g->value[mask].name, 1, &dims, &last, &in[1], err));
    OCT_TRY(emit(g, "ReduceSum", in, 2, id, OCT_S32, mask, counts, &node, &counts, err));
    return oct_node_set_int(g, node, "keepdims", 0, err);
}

static oct_status pick(oct_graph *g, int id, int table, int ids, int *rows, oct_err *err)
{
    int node;
    return emit(g, "Gather", (const int[]){ table, ids }, 2, id, OCT_F32, g->node[id].out[OUT_ROWS], -1, &node, rows,
                err);
}

static oct_status take_apart(oct_graph *g, int id, oct_err *err)
{
    const int ids = g->node[id].in[IDS], segments = oct_input_at(&g->node[id], SEGMENTS),
              mask = oct_input_at(&g->node[id], MASK);
    const int gamma = g->node[id].in[GAMMA], beta = g->node[id].in[BETA], sum = output(&g->node[id], OUT_SUM),
              counts = output(&g->node[id], OUT_MASK), y = g->node[id].out[OUT_ROWS];
    int places = oct_input_at(&g->node[id], PLACE_IDS), x, skip, node;
    OCT_TRY(pick(g, id, g->node[id].in[WORDS], ids, &x, err));
    if (places < 0)
        OCT_TRY(count_up(g, id, ids, &places, err));
    OCT_TRY(pick(g, id, g->node[id].in[PLACES], places, &skip, err));
    if (segments >= 0) { /* in this order the operator adds them */
        OCT_TRY(emit(g, "Add", (const int[]){ x, skip }, 2, id, OCT_F32, y, -1, &node, &x, err));
        OCT_TRY(pick(g, id, g->node[id].in[KINDS], segments, &skip, err));
    }
    if (counts >= 0) {
        OCT_TRY(oct_graph_set_output(g, id, OUT_MASK, -1, err));
        if (is_used(g, counts))
            OCT_TRY(count_mask(g, id, mask, counts, err));
    }
    if (sum >= 0)
        OCT_TRY(oct_graph_set_output(g, id, OUT_SUM, -1, err));
    const int in[] = { x, skip, gamma, beta };
    oct_graph_cut_inputs(g, id, 0);
    for (int i = 0; i < 4; i++)
        OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    oct_node_drop_attr(g, id, "mask_index_type");
    g->node[id].op = "SkipLayerNormalization";
    g->node[id].changed = g->changed = true;
    return is_used(g, sum) ? oct_graph_set_output(g, id, 3, sum, err) : OCT_OK;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    if (!match(g, &g->node[id]))
        return OCT_OK;
    OCT_TRY(take_apart(g, id, err));
    oct_pass_note(log, self, "EmbedLayerNormalization", g->node[id].name);
    return OCT_OK;
}

const oct_pass oct_pass_embed = { "embed", "take EmbedLayerNormalization apart", .at = at };
