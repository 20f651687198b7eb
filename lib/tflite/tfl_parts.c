/* What .tflite has in another size: normalizations become means, differences and products, and products with Erf become
 * Gelu. */
#include "forms/build.h"
#include "forms/edit.h"
#include "passes/pass.h"
#include "tflite/tfl_operators.h"
#include "tflite/tflite.h"

typedef struct norm {
    int x, scale, bias; /* bias -1: none */
    int first;          /* the first axis that is normalized */
    int rank;
    float epsilon;
} norm;

/* A mean over the last axes. From opset 18 on, axes are an input. */
static int mean_of(oct_builder *b, const char *base, const char *suffix, int v, const norm *p)
{
    int64_t axes[OCT_MAX_RANK];
    int n = 0, in[2] = { v, -1 }, node, mean;
    for (int k = p->first; k < p->rank; k++)
        axes[n++] = k;
    const bool is_input = oct_graph_opset(b->g, "") >= 18;
    if (is_input)
        in[1] = oct_build_list(b, base, "_axes", axes, n);
    mean = oct_build(b, "ReduceMean", base, suffix, OCT_F32, in, is_input ? 2 : 1, &node);
    if (!is_input)
        oct_build_ints(b, node, "axes", axes, n);
    return mean;
}

static oct_status write_parts(oct_graph *g, int id, const norm *p, oct_err *err)
{
    const int out = g->node[id].out[0];
    const char *base = g->value[out].name;
    oct_builder b = { .g = g, .before = id, .err = err };
    OCT_TRY(oct_graph_set_output(g, id, 0, -1, err));
    const int mean = mean_of(&b, base, "_mean", p->x, p);
    const int apart = oct_build_real(&b, "Sub", base, "_centred", p->x, mean);
    const int square = oct_build_real(&b, "Mul", base, "_square", apart, apart);
    const int variance = mean_of(&b, base, "_variance", square, p);
    const int least = oct_build_const(&b, base, "_epsilon", OCT_F32, 0, NULL, &p->epsilon);
    const int more = oct_build_real(&b, "Add", base, "_more", variance, least);
    const int root = oct_build_real(&b, "Sqrt", base, "_deviation", more, -1);
    const int unit = oct_build_real(&b, "Div", base, "_normalized", apart, root);
    if (p->bias < 0) {
        oct_build_to(&b, "Mul", (int[]){ unit, p->scale }, 2, out, NULL);
    } else {
        const int scaled = oct_build_real(&b, "Mul", base, "_scaled", unit, p->scale);
        oct_build_to(&b, "Add", (int[]){ scaled, p->bias }, 2, out, NULL);
    }
    if (b.status == OCT_OK)
        oct_graph_remove_node(g, id);
    return b.status;
}

/* A vector of channels with axes of size 1 behind it. */
static oct_status behind(oct_graph *g, int value, int axes, int *moved, oct_err *err)
{
    const oct_tensor *t = g->value[value].constant;
    int64_t dims[OCT_MAX_RANK];
    if (!t || !t->data || t->dtype != OCT_F32 || t->rank != 1 || axes + 1 > OCT_MAX_RANK) {
        *moved = -1;
        return OCT_OK;
    }
    dims[0] = t->count;
    for (int k = 0; k < axes; k++)
        dims[1 + k] = 1;
    return oct_edit_const(g, g->value[value].name, "_of_channels", OCT_F32, axes + 1, dims, t->data, moved, err);
}

static bool only_first(const oct_node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0)
            return false;
    return n->n_out > 0 && n->out[0] >= 0;
}

static oct_status read_norm(oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    const bool layer = oct_is_op(n, "LayerNormalization"), instance = oct_is_op(n, "InstanceNormalization");
    if ((!layer && !instance) || !only_first(n) || n->n_in < 2 || n->in[0] < 0 || n->in[1] < 0)
        return OCT_OK;
    norm p = { .x = n->in[0], .scale = n->in[1], .bias = oct_input_at(n, 2) };
    p.rank = g->value[p.x].shape.rank;
    p.epsilon = oct_node_float(n, "epsilon", 1e-5F);
    int64_t axis = layer ? oct_node_int(n, "axis", -1) : 2;
    axis += axis < 0 ? p.rank : 0;
    if (g->value[p.x].dtype != OCT_F32 || axis < 0 || axis >= p.rank)
        return OCT_OK;
    p.first = (int)axis;
    if (instance) {
        OCT_TRY(behind(g, p.scale, p.rank - 2, &p.scale, err));
        OCT_TRY(p.bias < 0 ? OCT_OK : behind(g, p.bias, p.rank - 2, &p.bias, err));
        if (p.scale < 0 || p.bias < 0)
            return OCT_OK;
    }
    return write_parts(g, id, &p, err);
}

oct_status oct_tfl_read_parts(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_node;
    for (size_t i = 0; i < n; i++)
        if (!g->node[i].dead)
            OCT_TRY(read_norm(g, (int)i, err));
    return OCT_OK;
}

oct_status oct_tflite_join(oct_graph *g, oct_err *err)
{
    OCT_TRY(oct_infer_shapes(g, err)); /* the pass asks for them */
    const size_t n = g->n_node;
    for (size_t i = 0; i < n; i++)
        if (!g->node[i].dead && oct_is_op(&g->node[i], "Erf"))
            OCT_TRY(oct_pass_activation.at(g, (int)i, &oct_pass_activation, NULL, err));
    return OCT_OK;
}
