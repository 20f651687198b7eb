#include "ops/control.h"

#include <string.h>

/* ---- inference ---- */

oct_status oct_body_input(oct_graph *body, size_t i, oct_dtype t, const oct_shape *s, oct_err *err)
{
    oct_value *v = &body->value[body->input[i]];
    if (t != OCT_UNDEFINED)
        v->dtype = t;
    return s->rank >= 0 ? oct_graph_set_shape(body, body->input[i], s->rank, s->d, err) : OCT_OK;
}

const oct_value *oct_body_output(const oct_graph *body, size_t i)
{
    return i < body->n_output ? &body->value[body->output[i]] : NULL;
}

/* How many loops are around a graph. */
static int depth_of(const oct_graph *g)
{
    int n = 0;
    for (; g->outer; g = g->outer)
        n++;
    return n;
}

/* What holds of an input that may have either shape; *changed when it is less than what held of `in`. */
static oct_status widen(oct_graph *body, int in, const oct_shape *s, bool *changed, oct_err *err)
{
    const oct_shape *have = &body->value[in].shape;
    if (have->rank < 0)
        return OCT_OK;
    if (have->rank != s->rank) {
        *changed = true;
        return oct_graph_set_shape(body, in, -1, NULL, err);
    }
    for (int k = 0; k < have->rank; k++)
        if (!oct_dim_same(have->d[k], s->d[k]) && (have->d[k].n >= 0 || have->d[k].sym)) {
            have->d[k] = (oct_dim){ -1, NULL };
            *changed = true;
        }
    return OCT_OK;
}

oct_status oct_body_infer(const oct_infer *c, oct_graph *body, size_t first, size_t from, int slot, size_t n, oct_err *err)
{
    /* Each round may widen a dimension; nested loops multiply rounds. */
    const int rounds = depth_of(c->g) < 3 ? 4 : 1;
    bool fits;
    for (size_t i = 0; i < n && first + i < body->n_input; i++) {
        oct_shape s = oct_in_shape(c, slot + (int)i);
        OCT_TRY(oct_body_input(body, first + i, oct_in_dtype(c, slot + (int)i), &s, err));
    }
    for (int r = 0; c->body && r < rounds; r++) {
        bool changed = false;
        OCT_TRY(c->body(body, true, &fits, err));
        for (size_t i = 0; i < n && first + i < body->n_input && from + i < body->n_output; i++) {
            const oct_shape none = { -1, NULL };
            bool last = !fits || r + 1 == rounds;
            OCT_TRY(widen(body, body->input[first + i], last ? &none : &body->value[body->output[from + i]].shape, &changed, err));
        }
        if (!changed)
            return OCT_OK;
    }
    return c->body ? c->body(body, true, &fits, err) : OCT_OK;
}

oct_status oct_out_stacked(const oct_infer *c, int slot, const oct_value *v, int64_t axis, oct_dim len, oct_err *err)
{
    oct_dim d[OCT_MAX_RANK + 1];
    if (!v)
        return OCT_OK;
    oct_out_dtype(c, slot, v->dtype);
    int rank = v->shape.rank, n = 0;
    if (rank < 0 || rank >= OCT_MAX_RANK)
        return OCT_OK;
    if (axis < -1)
        axis += rank + 1;
    for (int k = 0; k < rank; k++) {
        if (k == axis)
            d[n++] = len;
        d[n++] = v->shape.d[k];
    }
    if (axis == rank)
        d[n++] = len;
    return oct_out_shape(c, slot, n, d, err);
}

/* ---- running ---- */

oct_status oct_carry(oct_datum **in, size_t states, oct_datum **out, size_t n, oct_datum **piled, oct_err *err)
{
    /* All is copied before anything is dropped: outputs may lie in what was put in. */
    for (size_t i = 0; i < states; i++) {
        oct_datum *kept;
        OCT_TRY(oct_datum_keep(out[i], &kept, err));
        oct_datum_unref(out[i]);
        out[i] = kept;
    }
    for (size_t i = states; i < n; i++)
        OCT_TRY(oct_datum_push(piled[i - states], out[i], err));
    for (size_t i = 0; i < n; i++) {
        oct_datum_unref(i < states ? in[i] : out[i]);
        if (i < states)
            in[i] = out[i];
        out[i] = NULL;
    }
    return OCT_OK;
}

void oct_release(oct_datum **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        oct_datum_unref(list[i]);
    oct_free(list);
}

/* Bytes of one element; strings move as pointers. 0: packed. */
static size_t element(oct_dtype t)
{
    return t == OCT_STRING ? sizeof(oct_str) : (size_t)oct_dtype_bits(t) / 8;
}

/* A tensor of strings whose bytes are others': a copy with its own takes its place. */
static oct_status own_strings(oct_datum **x, oct_err *err)
{
    oct_datum *copy;
    if ((*x)->t.dtype != OCT_STRING)
        return OCT_OK;
    oct_status s = oct_datum_strings((*x)->t.rank, (*x)->dims, (*x)->t.data, &copy, err);
    oct_datum_unref(*x);
    *x = s == OCT_OK ? copy : NULL;
    return s;
}

oct_status oct_datum_slice(const oct_datum *x, int axis, int64_t at, oct_datum **out, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK], outer = 1, inner = 1;
    size_t size = element(x->t.dtype);
    int rank = 0;
    for (int k = 0; k < x->t.rank; k++) {
        if (k < axis)
            outer *= x->dims[k];
        if (k > axis)
            inner *= x->dims[k];
        if (k != axis)
            dims[rank++] = x->dims[k];
    }
    if (!size)
        return oct_fail(err, OCT_EUNSUPPORTED, "parts of a tensor of %s cannot be taken", oct_dtype_name(x->t.dtype));
    const char *from = (const char *)x->t.data + (size_t)at * (size_t)inner * size;
    if (outer == 1)
        return oct_datum_borrow(x->t.dtype, rank, dims, from, out, err);
    OCT_TRY(oct_datum_tensor(x->t.dtype, rank, dims, out, err));
    size_t row = (size_t)inner * size;
    char *to = oct_datum_data(*out);
    for (int64_t o = 0; o < outer && row; o++, to += row, from += row * (size_t)x->dims[axis])
        memcpy(to, from, row);
    return own_strings(out, err);
}

static oct_status check_alike(const oct_datum *parts, oct_err *err)
{
    const oct_datum *a = parts->at[0];
    for (size_t i = 0; i < parts->n; i++) {
        const oct_datum *b = parts->at[i];
        if (b->kind != OCT_DATUM_TENSOR || b->t.dtype != a->t.dtype || b->t.rank != a->t.rank ||
            memcmp(a->dims, b->dims, (size_t)a->t.rank * sizeof *a->dims) != 0)
            return oct_fail(err, OCT_EMALFORMED, "a result of iteration %zu has another shape or type than that of the first", i);
    }
    return OCT_OK;
}

/* Nothing was made: what inference says of one part, unknown dimensions being 0. */
static oct_status stack_none(int64_t axis, const oct_value *like, oct_datum **out, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK] = { 0 };
    int rank = like && like->shape.rank >= 0 && like->shape.rank < OCT_MAX_RANK ? like->shape.rank : 0;
    for (int k = 0, n = 0; k < rank; k++, n++) {
        n += n == axis;
        if (n <= rank)
            dims[n] = like->shape.d[k].n > 0 ? like->shape.d[k].n : 0;
    }
    if (axis >= 0 && axis <= rank)
        dims[axis] = 0;
    oct_dtype t = like && like->dtype != OCT_UNDEFINED ? like->dtype : OCT_F32;
    return oct_datum_tensor(t, rank + 1, dims, out, err);
}

oct_status oct_datum_stack(const oct_datum *parts, int64_t axis, bool reversed, const oct_value *like, oct_datum **out, oct_err *err)
{
    int rank = parts->n ? parts->at[0]->t.rank : like && like->shape.rank >= 0 ? like->shape.rank : 0, to_axis;
    OCT_TRY(oct_axis(axis, rank + 1, &to_axis, err));
    if (!parts->n)
        return stack_none(to_axis, like, out, err);
    OCT_TRY(check_alike(parts, err));
    const oct_datum *a = parts->at[0];
    int64_t dims[OCT_MAX_RANK + 1], outer = 1, inner = 1;
    size_t size = element(a->t.dtype);
    if (!size)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensors of %s cannot be joined", oct_dtype_name(a->t.dtype));
    for (int k = 0; k <= rank; k++)
        dims[k] = k == to_axis ? (int64_t)parts->n : a->dims[k - (k > to_axis)];
    for (int k = 0; k < rank; k++)
        *(k < to_axis ? &outer : &inner) *= a->dims[k];
    OCT_TRY(oct_datum_tensor(a->t.dtype, rank + 1, dims, out, err));
    size_t row = (size_t)inner * size;
    for (size_t i = 0; i < parts->n && row; i++) {
        const char *from = parts->at[reversed ? parts->n - 1 - i : i]->t.data;
        char *to = (char *)oct_datum_data(*out) + i * row;
        for (int64_t o = 0; o < outer; o++, from += row, to += row * parts->n)
            memcpy(to, from, row);
    }
    return own_strings(out, err);
}
