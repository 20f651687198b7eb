/* Plans kept by input shape; feeding a model. */
#include "runtime/runner.h"

#include "ops/core/tested_nan.h"
#include "runtime/model_inputs.h"
#include "runtime/plan_int.h"

#include <string.h>

struct oct_runner {
    oct_arena *arena;
    const oct_graph *g;
    oct_plan like; /* has the options */
    oct_model_inputs in;
    rt_kept kept; /* ragged data: the oldest plan goes when another shape comes */
    oct_tap_fn tap;
    void *tap_arg;
    bool profile;
};

oct_status oct_runner_create(const oct_graph *g, const oct_plan_opts *opts, const oct_input_desc *feed, size_t n_feed,
                             oct_runner **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_runner *r = a ? oct_arena_calloc(a, 1, sizeof *r) : NULL;
    if (!r) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    r->arena = a;
    r->g = g;
    if (opts)
        r->like.opts = *opts;
    oct_status s = oct_model_inputs_match(&r->in, g, feed, n_feed, a, err);
    if (s == OCT_OK)
        s = rt_kept_init(&r->kept, g, a, err);
    if (s != OCT_OK) {
        oct_runner_destroy(r);
        return s;
    }
    *out = r;
    return OCT_OK;
}

void oct_runner_destroy(oct_runner *r)
{
    if (!r)
        return;
    rt_kept_free(&r->kept);
    oct_model_inputs_free(&r->in);
    oct_arena_destroy(r->arena);
}

oct_status oct_runner_plan(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err)
{
    for (size_t i = 0; i < r->in.n; i++) {
        const oct_array *x = &arrays[r->in.from[i]];
        oct_plan_input *in = &r->kept.want[i];
        *in = (oct_plan_input){ .tensor = r->g->value[r->g->input[i]].kind == OCT_VALUE_TENSOR, .rank = x->rank };
        memcpy(in->dims, x->dims, (size_t)x->rank * sizeof x->dims[0]);
    }
    OCT_TRY(rt_kept_plan(&r->kept, &r->like, plan, err));
    oct_plan_set_tap(*plan, r->tap, r->tap_arg);
    if (r->profile && !(*plan)->profile)
        oct_plan_profile(*plan, true);
    return OCT_OK;
}

static oct_status feed(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err)
{
    OCT_TRY(oct_runner_plan(r, arrays, plan, err));
    return oct_model_inputs_convert(&r->in, arrays, err);
}

oct_status oct_runner_run(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err)
{
    OCT_TRY(feed(r, arrays, plan, err));
    return oct_plan_run(*plan, r->in.data, err);
}

oct_status oct_runner_begin(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err)
{
    OCT_TRY(feed(r, arrays, plan, err));
    return oct_plan_begin(*plan, r->in.data, err);
}

void oct_runner_set_tap(oct_runner *r, oct_tap_fn fn, void *arg)
{
    r->tap = fn;
    r->tap_arg = arg;
}

void oct_runner_profile(oct_runner *r, bool on)
{
    r->profile = on;
    for (size_t i = 0; i < RT_KEPT; i++)
        if (r->kept.of[i].plan)
            oct_plan_profile(r->kept.of[i].plan, on);
}

const oct_plan *oct_runner_kept(const oct_runner *r, size_t i)
{
    for (size_t k = 0; k < RT_KEPT; k++)
        if (r->kept.of[k].plan && i-- == 0)
            return r->kept.of[k].plan;
    return NULL;
}

/* ---- inputs ---- */

/* Takes over what another graph fixes. */
static void merge_dims(int64_t *dims, int rank, const oct_value *v)
{
    if (v->shape.rank != rank)
        return;
    for (int k = 0; k < rank; k++)
        if (dims[k] < 0)
            dims[k] = v->shape.d[k].n;
}

static bool is_read(const oct_value *v)
{
    return v->n_uses > 0 || v->is_output || v->dtype == OCT_STRING;
}

/* Whether a word occurs in a name. */
static bool says(const char *name, const char *word)
{
    return name && strstr(name, word);
}

/* The dimension that counts the positions of a cache of keys and values, from 1: the free one whose own name speaks of
 * the past, or, if the input's name does, the last free one that is not the first; 0: the input is no such cache.
 * Beyond the rank: the flag of a merged decoder that says whether there is a cache, which is false without one. */
static int past_of(const oct_value *v)
{
    const bool is_float = v->dtype == OCT_F32 || v->dtype == OCT_F16 || v->dtype == OCT_BF16;
    int last = 0;
    if (v->dtype == OCT_BOOL && strcmp(v->name, "use_cache_branch") == 0)
        return v->shape.rank < 0 ? 1 : v->shape.rank + 1;
    if (!is_float || v->shape.rank < 3)
        return 0;
    for (int k = 1; k < v->shape.rank; k++) {
        if (v->shape.d[k].n < 0 && says(v->shape.d[k].sym, "past"))
            return k + 1;
        last = v->shape.d[k].n < 0 ? k + 1 : last;
    }
    return says(v->name, "past") ? last : 0;
}

oct_status oct_inputs_describe(const oct_graph *const *g, size_t n, oct_arena *arena, oct_input_desc **inputs,
                               size_t *n_inputs, oct_err *err)
{
    oct_input_desc *d = oct_arena_calloc(arena, g[0]->n_input + 1, sizeof *d);
    if (!d)
        return oct_nomem(err);
    for (size_t i = 0; i < g[0]->n_input; i++) {
        const oct_value *v = &g[0]->value[g[0]->input[i]];
        int64_t *dims = oct_arena_calloc(arena, OCT_MAX_RANK, sizeof *dims);
        if (!dims)
            return oct_nomem(err);
        for (int k = 0; k < v->shape.rank; k++)
            dims[k] = v->shape.d[k].n;
        bool read = is_read(v);
        const bool nan = v->dtype == OCT_F32 && oct_tests_nan(g[0], g[0]->input[i]);
        for (size_t m = 1; m < n; m++) {
            int at = oct_graph_find(g[m], v->name);
            if (at < 0 && i < g[m]->n_input)
                at = g[m]->input[i];
            if (at < 0)
                continue;
            merge_dims(dims, v->shape.rank, &g[m]->value[at]);
            read |= is_read(&g[m]->value[at]);
        }
        d[i] = (oct_input_desc){ v->name, v->dtype, v->shape.rank, dims, !read, nan, past_of(v) };
    }
    *inputs = d;
    *n_inputs = g[0]->n_input;
    return OCT_OK;
}
