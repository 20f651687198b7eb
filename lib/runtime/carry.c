/* States from run to run. */
#include "runtime/carry.h"

#include "base/mem.h"

#include <string.h>

/* There are two buffers of each, so that the inputs of a run are still valid after it has written its outputs. */
struct oct_carry {
    size_t n, n_arrays, side; /* side: the one that was written last */
    oct_state *states;
    oct_array *view[2]; /* [n_arrays] */
    oct_array *kept[2]; /* [n] */
};

oct_status oct_carry_create(const oct_state *states, size_t n, size_t n_arrays, oct_carry **out, oct_err *err)
{
    oct_carry *c = oct_calloc(1, sizeof *c);
    if (!c)
        return oct_nomem(err);
    *c = (oct_carry){ .n = n, .n_arrays = n_arrays };
    bool ok = (c->states = oct_calloc(n + 1, sizeof *c->states)) != NULL;
    for (int k = 0; ok && k < 2; k++)
        ok = (c->view[k] = oct_calloc(n_arrays + 1, sizeof **c->view)) &&
             (c->kept[k] = oct_calloc(n + 1, sizeof **c->kept));
    if (!ok) {
        oct_carry_destroy(c);
        return oct_nomem(err);
    }
    if (n)
        memcpy(c->states, states, n * sizeof *states);
    *out = c;
    return OCT_OK;
}

void oct_carry_destroy(oct_carry *c)
{
    if (!c)
        return;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; c->kept[k] && i < c->n; i++)
            oct_array_free(&c->kept[k][i]);
        oct_free(c->kept[k]);
        oct_free(c->view[k]);
    }
    oct_free(c->states);
    oct_free(c);
}

const oct_array *oct_carry_arrays(oct_carry *c, const oct_array *arrays, bool follows)
{
    if (!c || !c->n || !follows)
        return arrays;
    oct_array *view = c->view[c->side];
    memcpy(view, arrays, c->n_arrays * sizeof *view);
    for (size_t i = 0; i < c->n; i++)
        if (c->kept[c->side][i].data) {
            view[c->states[i].input] = c->kept[c->side][i];
            view[c->states[i].input].owned = false;
        }
    return view;
}

static oct_status keep(const oct_operand *x, size_t number, oct_array *a, oct_err *err)
{
    size_t bytes;
    if (!oct_dtype_bytes(x->dtype, x->count, &bytes) || !x->data || x->rank > OCT_ARRAY_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "output %zu is a state, and no tensor of numbers", number);
    if (!a->data || a->bytes != bytes || a->dtype != x->dtype || a->rank != x->rank) {
        oct_array_free(a);
        OCT_TRY(oct_array_create(a, x->dtype, x->rank, x->dims, err));
    }
    memcpy(a->dims, x->dims, (size_t)x->rank * sizeof a->dims[0]);
    memcpy(a->data, x->data, bytes);
    return OCT_OK;
}

/* A copy of the state before. */
static oct_status keep_on(const oct_array *before, oct_array *a, oct_err *err)
{
    if (a->bytes != before->bytes || a->dtype != before->dtype || a->rank != before->rank) {
        oct_array_free(a);
        OCT_TRY(oct_array_create(a, before->dtype, before->rank, before->dims, err));
    }
    memcpy(a->dims, before->dims, sizeof a->dims);
    memcpy(a->data, before->data, before->bytes);
    return OCT_OK;
}

const oct_operand *oct_carry_plan(const void *from, size_t i)
{
    return oct_plan_output(from, i);
}

oct_status oct_carry_keep(oct_carry *c, oct_carry_output_fn output, const void *from, oct_err *err)
{
    if (!c || !c->n)
        return OCT_OK;
    c->side ^= 1;
    for (size_t i = 0; i < c->n; i++) {
        const oct_operand *x = output(from, c->states[i].output);
        const oct_array *before = &c->kept[c->side ^ 1][i];
        if (x->count == 0 && before->bytes)
            OCT_TRY(keep_on(before, &c->kept[c->side][i], err));
        else
            OCT_TRY(keep(x, c->states[i].output, &c->kept[c->side][i], err));
    }
    return OCT_OK;
}
