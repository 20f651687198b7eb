#include "ops/control/control.h"

#include <string.h>

/* ---- inference ---- */

oct_status oct_body_input(oct_graph *body, size_t i, oct_dtype t, const oct_shape *s, oct_err *err)
{
    oct_value *v = &body->value[body->input[i]];
    if (t != OCT_UNDEFINED) {
        v->dtype = t;
        v->kind = OCT_VALUE_TENSOR;
    }
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

oct_status oct_body_infer(const oct_infer *c, oct_graph *body, size_t first, size_t from, int slot, size_t n,
                          oct_err *err)
{
    /* Each round may widen a dimension; nested loops multiply rounds. */
    const int rounds = depth_of(c->g) < 3 ? 4 : 1;
    bool fits;
    for (size_t i = 0; i < n && first + i < body->n_input; i++) {
        oct_shape s = oct_in_shape(c, slot + (int)i);
        OCT_TRY(oct_body_input(body, first + i, oct_in_dtype(c, slot + (int)i), &s, err));
        const oct_value *start = oct_in_value(c, slot + (int)i);
        if (start && start->kind != OCT_VALUE_TENSOR) {
            body->value[body->input[first + i]].kind = start->kind;
            body->value[body->input[first + i]].elem = start->elem;
        }
    }
    for (int r = 0; c->body && r < rounds; r++) {
        bool changed = false;
        OCT_TRY(c->body(body, true, &fits, err));
        for (size_t i = 0; i < n && first + i < body->n_input && from + i < body->n_output; i++) {
            const oct_shape none = { -1, NULL };
            bool last = !fits || r + 1 == rounds;
            OCT_TRY(widen(body, body->input[first + i], last ? &none : &body->value[body->output[from + i]].shape,
                          &changed, err));
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
    oct_out_kind(c, slot, v->kind, v->elem);
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
