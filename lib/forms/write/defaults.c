/* Writes out attributes that have ONNX's defaults, for targets that read attributes without knowing these. */
#include "forms/write/forms_write.h"

#include "passes/match.h"

#include <string.h>

/* The number of spatial dimensions of a convolution or pool, and in kernel[] its extent, if that is not an attribute;
 * 0: the node is something else. */
static int window_of(const oct_graph *g, const oct_node *n, int64_t *kernel)
{
    const bool conv = oct_is_op(n, "Conv") || oct_is_op(n, "ConvTranspose");
    const int v = oct_input_at(n, 1);
    int count = 0;
    const int64_t *own = oct_node_ints(n, "kernel_shape", &count);
    if (own && (conv || oct_is_op(n, "MaxPool") || oct_is_op(n, "AveragePool")))
        return count;
    if (!conv || v < 0 || g->value[v].shape.rank < 3)
        return 0;
    for (int i = 2; i < g->value[v].shape.rank; i++)
        if ((kernel[i - 2] = g->value[v].shape.d[i].n) < 0)
            return 0;
    return g->value[v].shape.rank - 2;
}

static oct_status set_missing(oct_graph *g, int id, const char *name, const int64_t *x, int n, oct_err *err)
{
    return oct_node_attr(&g->node[id], name) ? OCT_OK : oct_node_set_ints(g, id, name, x, n, err);
}

static oct_status write_defaults(oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    int64_t kernel[OCT_MAX_RANK] = { 0 }, ones[OCT_MAX_RANK], zeros[2 * OCT_MAX_RANK] = { 0 };
    const int spatial = window_of(g, n, kernel);
    const bool pool = oct_is_op(n, "MaxPool") || oct_is_op(n, "AveragePool");
    const char *pad = oct_node_str(n, "auto_pad", "NOTSET");
    const bool padded = strncmp(pad, "SAME", 4) == 0 || oct_node_attr(n, "output_shape");
    for (int i = 0; i < OCT_MAX_RANK; i++)
        ones[i] = 1;
    if (!spatial)
        return OCT_OK;
    OCT_TRY(set_missing(g, id, "kernel_shape", kernel, spatial, err));
    OCT_TRY(set_missing(g, id, "strides", ones, spatial, err));
    if (!padded)
        OCT_TRY(set_missing(g, id, "pads", zeros, 2 * spatial, err));
    if (pool)
        return OCT_OK;
    OCT_TRY(set_missing(g, id, "dilations", ones, spatial, err));
    return oct_node_attr(n, "group") ? OCT_OK : oct_node_set_int(g, id, "group", 1, err);
}

oct_status oct_write_defaults(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++)
        OCT_TRY(write_defaults(g, g->order[i], err));
    return OCT_OK;
}
