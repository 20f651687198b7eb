/* Adds several nodes in a row. */
#include "forms/build.h"

#include "forms/edit.h"

bool oct_build_good(oct_builder *b, oct_status s)
{
    b->status = b->status == OCT_OK ? s : b->status;
    return b->status == OCT_OK;
}

void oct_build_to(oct_builder *b, const char *op, const int *in, int n_in, int out, int *node)
{
    int id = 0;
    if (b->status == OCT_OK)
        oct_build_good(b, oct_edit_node(b->g, op, in, n_in, out, b->before, &id, b->err));
    if (node)
        *node = id;
}

int oct_build(oct_builder *b, const char *op, const char *base, const char *suffix, oct_dtype type, const int *in,
              int n_in, int *node)
{
    int v = 0;
    if (b->status == OCT_OK && oct_build_good(b, oct_edit_value(b->g, base, suffix, type, -1, &v, b->err)))
        oct_build_to(b, op, in, n_in, v, node);
    return v;
}

int oct_build_real(oct_builder *b, const char *op, const char *base, const char *suffix, int first, int second)
{
    return oct_build(b, op, base, suffix, OCT_F32, (const int[]){ first, second }, second >= 0 ? 2 : 1, NULL);
}

int oct_build_const(oct_builder *b, const char *base, const char *suffix, oct_dtype type, int rank, const int64_t *dims,
                    const void *data)
{
    int v = 0;
    if (b->status == OCT_OK)
        oct_build_good(b, oct_edit_const(b->g, base, suffix, type, rank, dims, data, &v, b->err));
    return v;
}

int oct_build_list(oct_builder *b, const char *base, const char *suffix, const int64_t *i, int64_t n)
{
    return oct_build_const(b, base, suffix, OCT_S64, 1, &n, i);
}

void oct_build_int(oct_builder *b, int node, const char *name, int64_t i)
{
    if (b->status == OCT_OK)
        oct_build_good(b, oct_node_set_int(b->g, node, name, i, b->err));
}

void oct_build_ints(oct_builder *b, int node, const char *name, const int64_t *i, int n)
{
    if (b->status == OCT_OK)
        oct_build_good(b, oct_node_set_ints(b->g, node, name, i, n, b->err));
}

void oct_build_split(oct_builder *b, const char *base, int v, const int64_t sizes[2], const char *const suffix[2],
                     int part[2])
{
    int node = 0;
    const int in[2] = { v, oct_build_list(b, base, "_sizes", sizes, 2) };
    part[0] = oct_build(b, "Split", base, suffix[0], OCT_F32, in, 2, &node);
    if (b->status == OCT_OK && oct_build_good(b, oct_edit_value(b->g, base, suffix[1], OCT_F32, -1, &part[1], b->err)))
        oct_build_good(b, oct_graph_set_output(b->g, node, 1, part[1], b->err));
    oct_build_int(b, node, "axis", -1);
}
