/* Helpers for shape inference: getters, setters, symbolic dimension arithmetic, broadcasting. */
#include "ops/core/infer.h"

#include <string.h>

const char oct_minus_one[] = "-1";

const oct_value *oct_in_value(const oct_infer *c, int slot)
{
    const oct_node *n = oct_in_node(c);
    return slot < n->n_in && n->in[slot] >= 0 ? &c->g->value[n->in[slot]] : NULL;
}

const oct_value *oct_out_value(const oct_infer *c, int slot)
{
    const oct_node *n = oct_in_node(c);
    return slot < n->n_out && n->out[slot] >= 0 ? &c->g->value[n->out[slot]] : NULL;
}

oct_shape oct_in_shape(const oct_infer *c, int slot)
{
    const oct_value *v = oct_in_value(c, slot);
    return v ? v->shape : (oct_shape){ -1, NULL };
}

oct_dtype oct_in_dtype(const oct_infer *c, int slot)
{
    const oct_value *v = oct_in_value(c, slot);
    return v ? v->dtype : OCT_UNDEFINED;
}

static int64_t tensor_int(const oct_tensor *t, int64_t i)
{
    return t->dtype == OCT_S64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static bool int_tensor(const oct_tensor *t)
{
    return t && t->data && (t->dtype == OCT_S64 || t->dtype == OCT_S32) && t->rank <= 1;
}

int oct_in_ints(const oct_infer *c, int slot, oct_dim *d, int max)
{
    const oct_value *v = oct_in_value(c, slot);
    if (!v)
        return -1;
    if (int_tensor(v->constant)) {
        if (v->constant->count > max)
            return -1;
        for (int64_t i = 0; i < v->constant->count; i++) {
            int64_t n = tensor_int(v->constant, i);
            d[i] = (oct_dim){ n, n == -1 ? oct_minus_one : NULL };
        }
        return (int)v->constant->count;
    }
    if (v->known && v->n_known <= max) {
        memcpy(d, v->known, (size_t)v->n_known * sizeof *d);
        return v->n_known;
    }
    if (!v->constant && v->shape.rank == 1 && v->shape.d[0].n >= 0 && v->shape.d[0].n <= max) {
        for (int64_t i = 0; i < v->shape.d[0].n; i++)
            d[i] = (oct_dim){ -1, NULL };
        return (int)v->shape.d[0].n;
    }
    return -1;
}

int oct_in_consts(const oct_infer *c, int slot, int64_t *x, int max)
{
    const oct_value *v = oct_in_value(c, slot);
    if (!v)
        return -1;
    if (int_tensor(v->constant) && v->constant->count <= max) {
        for (int64_t i = 0; i < v->constant->count; i++)
            x[i] = tensor_int(v->constant, i);
        return (int)v->constant->count;
    }
    if (!v->known || v->n_known > max)
        return -1;
    for (int i = 0; i < v->n_known; i++) {
        if (v->known[i].n < 0 && v->known[i].sym != oct_minus_one)
            return -1;
        x[i] = v->known[i].n;
    }
    return v->n_known;
}

void oct_out_dtype(const oct_infer *c, int slot, oct_dtype t)
{
    const oct_value *v = oct_out_value(c, slot);
    if (v && t != OCT_UNDEFINED)
        c->g->value[oct_in_node(c)->out[slot]].dtype = t;
}

oct_status oct_out_shape(const oct_infer *c, int slot, int rank, const oct_dim *d, oct_err *err)
{
    const oct_value *v = oct_out_value(c, slot);
    if (!v || rank < 0)
        return OCT_OK;
    if (rank > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "output '%s' would have %d dimensions; at most %d are supported",
                        v->name, rank, OCT_MAX_RANK);
    oct_dim merged[OCT_MAX_RANK];
    bool declared = v->shape.rank == rank;
    for (int i = 0; i < rank; i++) {
        merged[i] = d[i];
        if (d[i].n < 0 && declared && (v->shape.d[i].n >= 0 || !d[i].sym))
            merged[i] = v->shape.d[i];
    }
    return oct_graph_set_shape(c->g, oct_in_node(c)->out[slot], rank, merged, err);
}

void oct_out_kind(const oct_infer *c, int slot, oct_value_kind kind, oct_dtype elem)
{
    if (!oct_out_value(c, slot))
        return;
    oct_value *v = &c->g->value[oct_in_node(c)->out[slot]];
    v->kind = kind;
    v->elem = elem != OCT_UNDEFINED ? elem : v->elem;
}

oct_status oct_out_like(const oct_infer *c, int slot, int from, oct_err *err)
{
    oct_shape s = oct_in_shape(c, from);
    const oct_value *v = oct_in_value(c, from);
    if (v)
        oct_out_kind(c, slot, v->kind, v->elem);
    oct_out_dtype(c, slot, oct_in_dtype(c, from));
    return oct_out_shape(c, slot, s.rank, s.d, err);
}

oct_status oct_infer_like(const oct_infer *c, oct_err *err)
{
    return oct_out_like(c, 0, 0, err);
}

oct_status oct_out_known(const oct_infer *c, int slot, int n, const oct_dim *d, oct_err *err)
{
    if (!oct_out_value(c, slot))
        return OCT_OK;
    oct_value *v = &c->g->value[oct_in_node(c)->out[slot]];
    oct_dim *copy = oct_arena_memdup(c->g->arena, d, (size_t)n * sizeof *d);
    if (!copy)
        return oct_nomem(err);
    for (int i = 0; i < n && v->dtype == OCT_S32; i++)
        if (copy[i].n > INT32_MAX || copy[i].n < INT32_MIN) /* it wraps when it is computed */
            copy[i] = (oct_dim){ -1, NULL };
    v->known = copy;
    v->n_known = n;
    return OCT_OK;
}

bool oct_dim_same(oct_dim a, oct_dim b)
{
    if (a.n >= 0 || b.n >= 0)
        return a.n == b.n;
    return a.sym && b.sym && strcmp(a.sym, b.sym) == 0;
}

oct_dim oct_dim_add(oct_dim a, oct_dim b)
{
    oct_dim r = { -1, NULL };
    if (a.n >= 0 && b.n >= 0 && !__builtin_add_overflow(a.n, b.n, &r.n))
        return r;
    if (a.n == 0)
        return b;
    if (b.n == 0)
        return a;
    return (oct_dim){ -1, NULL };
}

oct_dim oct_dim_mul(oct_dim a, oct_dim b)
{
    oct_dim r = { -1, NULL };
    if (a.n >= 0 && b.n >= 0 && !__builtin_mul_overflow(a.n, b.n, &r.n))
        return r;
    if (a.n == 1)
        return b;
    if (b.n == 1)
        return a;
    return (oct_dim){ -1, NULL };
}

oct_status oct_broadcast_dims(const oct_shape *a, const oct_shape *b, int *rank, oct_dim d[OCT_MAX_RANK], oct_err *err)
{
    *rank = -1;
    if (a->rank < 0 || b->rank < 0)
        return OCT_OK;
    int r = a->rank > b->rank ? a->rank : b->rank;
    if (r > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d dimensions; at most %d are supported", r, OCT_MAX_RANK);
    for (int i = 0; i < r; i++) {
        int ia = i - (r - a->rank), ib = i - (r - b->rank);
        oct_dim x = ia < 0 ? oct_dim_of(1) : a->d[ia], y = ib < 0 ? oct_dim_of(1) : b->d[ib];
        if (x.n == 1)
            d[i] = y;
        else if (y.n == 1 || oct_dim_same(x, y))
            d[i] = x;
        else if (x.n >= 0 && y.n >= 0) {
            char ta[128], tb[128];
            return oct_fail(err, OCT_EMALFORMED, "shapes %s and %s do not broadcast", oct_shape_text(a, ta, sizeof ta),
                            oct_shape_text(b, tb, sizeof tb));
        } else {
            /* A known size above 1 is the result; for two different symbols it is unknown. */
            d[i] = x.n >= 0 ? x : y.n >= 0 ? y : (oct_dim){ -1, NULL };
        }
    }
    *rank = r;
    return OCT_OK;
}

oct_status oct_axis(int64_t axis, int rank, int *out, oct_err *err)
{
    if (axis < -rank || axis >= (rank ? rank : 1))
        return oct_fail(err, OCT_EMALFORMED, "axis %lld is outside of a tensor with %d dimensions", (long long)axis,
                        rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return OCT_OK;
}
