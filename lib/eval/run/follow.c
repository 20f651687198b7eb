/* Computes the states of recorded samples. A state may grow from sample to sample, as a cache does. */
#include "eval/run/follow.h"

#include "base/mem.h"
#include "eval/run/decoder_inputs.h"
#include "runtime/runner.h"

#include <string.h>

/* ---- masks and positions beside a cache ---- */

typedef struct lengthener {
    size_t n, ids, cache; /* n: of the inputs; 0: there is nothing to do */
    int axis;             /* of the cache's positions */
    int64_t past;         /* tokens before the sample */
    oct_input_turn *turn; /* [n] */
} lengthener;

static void lengthener_free(void *arg)
{
    lengthener *l = arg;
    if (!l)
        return;
    oct_free(l->turn);
    oct_free(l);
}

static oct_status lengthener_create(const oct_graph *g, const oct_state *states, size_t n, const oct_input_desc *inputs,
                                    lengthener **out, oct_err *err)
{
    lengthener *l = *out = oct_calloc(1, sizeof *l);
    if (!l || !(l->turn = oct_calloc(g->n_input + 1, sizeof *l->turn)))
        return oct_nomem(err);
    const bool text = oct_decoder_inputs(g, states, n, l->turn, &l->ids) == 1;
    for (size_t i = 0; i < n && inputs && text && !l->n; i++) {
        const oct_input_desc *in = &inputs[states[i].input];
        if (in->past <= 0 || in->past > in->rank)
            continue;
        l->n = g->n_input;
        l->cache = states[i].input;
        l->axis = in->past - 1;
    }
    return OCT_OK;
}

/* Ones for the tokens in the cache, before those of the sample. */
static oct_status lengthen(oct_array *a, int64_t past, oct_err *err)
{
    const int64_t one = 1, length = a->dims[1];
    oct_array to;
    const size_t size = a->bytes / (size_t)length;
    OCT_TRY(oct_array_create(&to, a->dtype, 2, (int64_t[]){ 1, past + length }, err));
    for (int64_t i = 0; i < past; i++) {
        const oct_status s = oct_array_convert(OCT_S64, &one, to.dtype, (char *)to.data + (size_t)i * size, 1, err);
        if (s != OCT_OK) {
            oct_array_free(&to);
            return s;
        }
    }
    memcpy((char *)to.data + (size_t)past * size, a->data, a->bytes);
    oct_array_free(a);
    *a = to;
    return OCT_OK;
}

/* Positions that count from 0 go on; others are the caller's. */
static oct_status go_on(oct_array *a, int64_t past, oct_err *err)
{
    const int64_t n = oct_array_count(a), length = a->dims[a->rank - 1];
    int64_t *at = oct_calloc((size_t)n + 1, sizeof *at);
    oct_status s = at ? oct_array_convert(a->dtype, a->data, OCT_S64, at, (size_t)n, err) : oct_nomem(err);
    bool counts = s == OCT_OK;
    for (int64_t i = 0; i < n && counts; i++)
        counts = at[i] == i % length;
    for (int64_t i = 0; i < n && counts; i++)
        at[i] += past;
    if (counts)
        s = oct_array_convert(OCT_S64, at, a->dtype, a->data, (size_t)n, err);
    oct_free(at);
    return s;
}

static oct_status lengthen_visit(void *arg, oct_array *arrays, bool follows, oct_err *err)
{
    lengthener *l = arg;
    const oct_array *ids = &arrays[l->ids], *cache = &arrays[l->cache];
    if (!l->n || ids->rank != 2 || ids->dims[0] != 1)
        return OCT_OK;
    const int64_t length = ids->dims[1];
    if (!follows)
        l->past = l->axis < cache->rank ? cache->dims[l->axis] : 0;
    for (size_t i = 0; i < l->n && l->past && length; i++) {
        oct_array *a = &arrays[i];
        if (l->turn[i] == OCT_TURN_MASK && a->rank == 2 && a->dims[0] == 1 && a->dims[1] == length)
            OCT_TRY(lengthen(a, l->past, err));
        else if (l->turn[i] == OCT_TURN_POSITIONS && a->rank > 0 && a->dims[a->rank - 1] == length)
            OCT_TRY(go_on(a, l->past, err));
    }
    l->past += length;
    return OCT_OK;
}

oct_status oct_lengthen_masks(oct_source *src, const oct_graph *g, const oct_state *states, size_t n,
                              const oct_input_desc *inputs, oct_err *err)
{
    lengthener *l;
    const oct_status s = lengthener_create(g, states, n, inputs, &l, err);
    if (s == OCT_OK && l->n)
        oct_source_set_visit(src, lengthen_visit, lengthener_free, l);
    else
        lengthener_free(l);
    return s;
}

/* ---- states ---- */

typedef struct follower {
    lengthener *masks;
    oct_graph *g;
    oct_runner *runner;
    oct_carry *carry;
    oct_state *states;
    size_t n;
} follower;

static void done(void *arg)
{
    follower *f = arg;
    if (!f)
        return;
    lengthener_free(f->masks);
    oct_runner_destroy(f->runner);
    oct_carry_destroy(f->carry);
    oct_graph_destroy(f->g);
    oct_free(f->states);
    oct_free(f);
}

static oct_status take_state(const oct_array *from, oct_array *to, oct_err *err)
{
    if (from->data == to->data)
        return OCT_OK;
    if (from->rank != to->rank || memcmp(from->dims, to->dims, (size_t)to->rank * sizeof to->dims[0]) != 0) {
        const oct_dtype type = to->dtype;
        oct_array_free(to);
        OCT_TRY(oct_array_create(to, type, from->rank, from->dims, err));
    }
    return oct_array_convert(from->dtype, from->data, to->dtype, to->data, (size_t)oct_array_count(from), err);
}

static oct_status visit(void *arg, oct_array *arrays, bool follows, oct_err *err)
{
    follower *f = arg;
    oct_plan *plan;
    const oct_array *x = oct_carry_arrays(f->carry, arrays, follows);
    for (size_t i = 0; i < f->n; i++)
        OCT_TRY(take_state(&x[f->states[i].input], &arrays[f->states[i].input], err));
    OCT_TRY(lengthen_visit(f->masks, arrays, follows, err));
    OCT_TRY(oct_runner_run(f->runner, arrays, &plan, err));
    return oct_carry_keep(f->carry, oct_carry_plan, plan, err);
}

static oct_status create(const oct_graph *g, const oct_state *states, size_t n, const oct_input_desc *inputs,
                         follower *f, oct_err *err)
{
    if (!(f->states = oct_calloc(n + 1, sizeof *states)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        f->states[f->n++] = states[i];
    OCT_TRY(lengthener_create(g, states, n, inputs, &f->masks, err));
    OCT_TRY(oct_graph_clone(g, &f->g, err));
    OCT_TRY(oct_carry_create(states, n, g->n_input, &f->carry, err));
    return oct_runner_create(f->g, &(oct_plan_opts){ .no_passes = true }, NULL, 0, &f->runner, err);
}

oct_status oct_follow(oct_source *src, const oct_graph *g, const oct_state *states, size_t n,
                      const oct_input_desc *inputs, oct_err *err)
{
    follower *f = oct_calloc(1, sizeof *f);
    const oct_status s = f ? create(g, states, n, inputs, f, err) : oct_nomem(err);
    if (s != OCT_OK)
        done(f);
    else
        oct_source_set_visit(src, visit, done, f);
    return s;
}
