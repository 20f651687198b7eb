/* lib/ops/core/args.c -- attributes or inputs, propagated integers, steps of raise(). */
#include "ops/core/args.h"

#include "ops/core/elem.h"

#include <string.h>

static int copy_ints(int64_t *v, int max, const int64_t *from, int n)
{
    if (n > max)
        return OCT_ARG_UNKNOWN;
    if (n > 0)
        memcpy(v, from, (size_t)n * sizeof *v);
    return n;
}

int oct_arg_ints(const oct_infer *c, const char *attr, int slot, int64_t *v, int max)
{
    int n;
    if (attr != NULL && oct_node_attr(oct_in_node(c), attr) != NULL) {
        const int64_t *a = oct_node_ints(oct_in_node(c), attr, &n);
        return copy_ints(v, max, a, n);
    }
    if (slot < 0 || oct_in_value(c, slot) == NULL)
        return OCT_ARG_ABSENT;
    n = oct_in_consts(c, slot, v, max);
    return n < 0 ? OCT_ARG_UNKNOWN : n;
}

int oct_step_ints(const oct_step *s, const char *attr, int slot, int64_t *v, int max)
{
    if (attr != NULL && oct_node_attr(s->node, attr) != NULL) {
        int n;
        const int64_t *a = oct_node_ints(s->node, attr, &n);
        return copy_ints(v, max, a, n);
    }
    if (slot < 0 || slot >= s->n_in || s->in[slot] == NULL)
        return OCT_ARG_ABSENT;
    const oct_operand *t = s->in[slot];
    if (t->count > max || (t->data == NULL && t->count > 0))
        return OCT_ARG_UNKNOWN;
    for (int64_t i = 0; i < t->count; i++)
        v[i] = oct_elem_int(t, i);
    return (int)t->count;
}

bool oct_step_scalar(const oct_step *s, const char *attr, int slot, double absent, double *v)
{
    *v = absent;
    if (attr != NULL && oct_node_attr(s->node, attr) != NULL) {
        *v = oct_node_float(s->node, attr, (float)absent);
        return true;
    }
    if (slot < 0 || slot >= s->n_in || s->in[slot] == NULL || s->in[slot]->count == 0)
        return true;
    if (s->in[slot]->data == NULL)
        return false;
    *v = oct_elem_double(s->in[slot], 0);
    return true;
}

oct_status oct_step_types(const oct_step *s, oct_dtype t, uint32_t others, oct_err *err)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] != NULL && s->in[i]->dtype != t && !(others >> i & 1))
            return oct_fail(err, OCT_EUNSUPPORTED, "input %d is %s, expected %s", i, oct_dtype_name(s->in[i]->dtype),
                            oct_dtype_name(t));
    return OCT_OK;
}

oct_status oct_axes_mask(const int64_t *axes, int n, int rank, uint32_t *mask, oct_err *err)
{
    *mask = 0;
    for (int i = 0; i < n; i++) {
        int axis;
        OCT_TRY(oct_axis(axes[i], rank, &axis, err));
        if (*mask >> axis & 1)
            return oct_fail(err, OCT_EMALFORMED, "axis %d is given twice", axis);
        *mask |= 1u << axis;
    }
    return OCT_OK;
}

bool oct_known_get(oct_dim d, int64_t *v)
{
    *v = d.n;
    return d.n != -1 || d.sym == oct_minus_one;
}

oct_dim oct_known_of(int64_t v)
{
    return (oct_dim){ v, v == -1 ? oct_minus_one : NULL };
}

bool oct_known_wanted(const oct_infer *c)
{
    const oct_value *v = oct_out_value(c, 0);
    return v != NULL && (v->dtype == OCT_S64 || v->dtype == OCT_S32) && v->shape.rank >= 0 && v->shape.rank <= 1;
}

oct_status oct_known_copy(const oct_infer *c, int from, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX];
    if (!oct_known_wanted(c))
        return OCT_OK;
    int n = oct_in_ints(c, from, d, OCT_KNOWN_MAX);
    return n < 0 ? OCT_OK : oct_out_known(c, 0, n, d, err);
}

static oct_status set_arg(oct_graph *g, int node, const char *attr, int slot, int value, oct_err *err)
{
    while (g->node[node].n_in < slot)
        OCT_TRY(oct_graph_set_input(g, node, g->node[node].n_in, -1, err));
    OCT_TRY(oct_graph_set_input(g, node, slot, value, err));
    oct_node_drop_attr(g, node, attr);
    return OCT_OK;
}

oct_status oct_raise_ints(oct_graph *g, int node, const char *attr, int slot, oct_err *err)
{
    if (oct_node_attr(&g->node[node], attr) == NULL)
        return OCT_OK;
    int n, value;
    const int64_t *v = oct_node_ints(&g->node[node], attr, &n);
    int64_t dims[1] = { n };
    OCT_TRY(oct_graph_new_const_s64(g, attr, 1, dims, v, &value, err));
    return set_arg(g, node, attr, slot, value, err);
}

oct_status oct_raise_float(oct_graph *g, int node, const char *attr, int slot, oct_err *err)
{
    if (oct_node_attr(&g->node[node], attr) == NULL)
        return OCT_OK;
    const oct_node *n = &g->node[node];
    float v = oct_node_float(n, attr, 0.0f);
    oct_dtype t = oct_input_at(n, 0) >= 0 ? g->value[n->in[0]].dtype : OCT_F32;
    uint64_t bytes = 0;
    if (oct_dom_of(t) == OCT_DOM_NONE)
        t = OCT_F32;
    oct_elem_store(t, &bytes, 0, 1, 1, OCT_DOM_F, &v);
    int value;
    OCT_TRY(oct_graph_new_const(g, attr, t, 0, NULL, &bytes, &value, err));
    return set_arg(g, node, attr, slot, value, err);
}

oct_status oct_raise_node(oct_graph *g, const char *op, int before, int a, int b, const char *base, oct_dtype t,
                          int *out, int *node, oct_err *err)
{
    OCT_TRY(oct_graph_add_node(g, op, "", "", b < 0 ? 1 : 2, 1, before, node, err));
    OCT_TRY(oct_graph_set_input(g, *node, 0, a, err));
    if (b >= 0)
        OCT_TRY(oct_graph_set_input(g, *node, 1, b, err));
    OCT_TRY(oct_graph_new_value(g, base, t, out, err));
    return oct_graph_set_output(g, *node, 0, *out, err);
}

int oct_early_tail(const oct_node *n, int64_t opset, int rank0, int rank1)
{
    const bool slope = strcmp(n->op, "PRelu") == 0;
    if (opset >= 7 || n->domain[0] != 0 || (!slope && oct_node_int(n, "broadcast", 0) == 0))
        return 0;
    const int64_t axis = slope ? 1 : oct_node_int(n, "axis", -1);
    if (axis < 0)
        return 0;
    if (rank0 < 0 || rank1 < 0)
        return -1;
    return axis > rank0 || rank0 - axis <= rank1 ? 0 : (int)(rank0 - axis - rank1);
}

oct_shape oct_early_shape(const oct_infer *c, oct_dim d[OCT_MAX_RANK])
{
    const oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 1);
    const int tail = oct_early_tail(oct_in_node(c), c->opset, a.rank, b.rank);
    if (tail <= 0 || b.rank + tail > OCT_MAX_RANK)
        return tail == 0 ? b : (oct_shape){ -1, NULL };
    for (int i = 0; i < b.rank + tail; i++)
        d[i] = i < b.rank ? b.d[i] : oct_dim_of(1);
    return (oct_shape){ b.rank + tail, d };
}

oct_status oct_raise_early(oct_graph *g, int node, int64_t from, oct_err *err)
{
    const oct_node *n = &g->node[node];
    if (from != 6 || n->n_in < 2 || n->in[0] < 0 || n->in[1] < 0)
        return OCT_OK;
    const int b = n->in[1], rank = g->value[b].shape.rank,
              tail = oct_early_tail(n, from, g->value[n->in[0]].shape.rank, rank);
    int64_t axes[OCT_MAX_RANK];
    int unsqueeze, wide;
    if (tail < 0 || rank + tail > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED,
                        "opset 6: which dimensions input 1 lies at depends on ranks that are not known");
    oct_node_drop_attr(g, node, "axis");
    oct_node_drop_attr(g, node, "broadcast");
    if (tail == 0)
        return OCT_OK;
    for (int i = 0; i < tail; i++)
        axes[i] = rank + i;
    OCT_TRY(oct_raise_node(g, "Unsqueeze", node, b, -1, g->value[b].name, g->value[b].dtype, &wide, &unsqueeze, err));
    OCT_TRY(oct_node_set_ints(g, unsqueeze, "axes", axes, tail, err));
    return oct_graph_set_input(g, node, 1, wide, err);
}

oct_status oct_index_outside(int64_t index, int64_t n, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "index %lld is outside of an axis of %lld elements", (long long)index, (long long)n);
    oct_hint(err, "token ids beyond a model's table come from another tokenizer than the model's");
    return OCT_EMALFORMED;
}

oct_status oct_index_at(const oct_operand *t, int64_t i, int64_t n, int64_t *index, oct_err *err)
{
    const int64_t v = t->dtype == OCT_S64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
    if (v < -n || v >= n)
        return oct_index_outside(v, n, err);
    *index = v < 0 ? v + n : v;
    return OCT_OK;
}

oct_status oct_index_places(const oct_operand *index, const oct_operand *x, int axis, int64_t first, int64_t n,
                            int64_t *at, oct_err *err)
{
    int64_t stride[OCT_MAX_RANK] = { 0 };
    const int last = index->rank - 1;
    oct_operand_strides(x, stride);
    const int64_t have = x->dims[axis], length = index->dims[last], along = stride[axis],
                  step = last == axis ? 0 : stride[last];
    for (int64_t done = 0, m; done < n; done += m) { /* a row, or what is wanted of it */
        const int64_t column = (first + done) % length;
        int64_t rest = (first + done) / length, base = column * step;
        for (int k = last - 1; k >= 0; k--) {
            base += k == axis ? 0 : rest % index->dims[k] * stride[k];
            rest /= index->dims[k];
        }
        m = length - column < n - done ? length - column : n - done;
        for (int64_t j = 0; j < m; j++) {
            const int64_t i = first + done + j, v = index->dtype == OCT_S64 ? ((const int64_t *)index->data)[i]
                                                                            : ((const int32_t *)index->data)[i];
            if (v < -have || v >= have)
                return oct_index_outside(v, have, err);
            at[done + j] = base + j * step + (v < 0 ? v + have : v) * along;
        }
    }
    return OCT_OK;
}
