/* ONNX test cases. */
#include "eval/testcase.h"

#include "data/data.h"
#include "ops/core/small.h"
#include "runtime/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- comparing ---- */

static void note(oct_check_result *r, const char *name, const oct_array *a, int64_t at, double got, double want)
{
    char index[96] = "";
    size_t len = 0;
    int64_t rest = at, below = oct_array_count(a);
    for (int k = 0; k < a->rank && len + 24 < sizeof index; k++) {
        below /= a->dims[k];
        len += (size_t)snprintf(index + len, sizeof index - len, "%s%lld", k ? "," : "[", (long long)(rest / below));
        rest %= below;
    }
    if (len)
        snprintf(index + len, sizeof index - len, "]");
    snprintf(r->first, sizeof r->first, "output '%.120s'%s is %.9g, expected %.9g", name, index, got, want);
}

static bool close_to(double got, double want, const oct_check_options *o)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= o->atol + o->rtol * fabs(want);
}

static void compare_values(const char *name, const oct_array *want, const double *w, const double *g, size_t n,
                           const oct_check_options *o, oct_check_result *r)
{
    for (size_t i = 0; i < n; i++) {
        double d = fabs(g[i] - w[i]);
        if (isfinite(d) && d > r->max_abs)
            r->max_abs = d;
        if (close_to(g[i], w[i], o))
            continue;
        r->differ++;
        if (!r->first[0])
            note(r, name, want, (int64_t)i, g[i], w[i]);
    }
}

/* As numbers; those of less than 16 bits as what they stand for. */
static oct_status to_doubles(const oct_array *a, double *v, size_t n, oct_err *err)
{
    if (!oct_is_small(a->dtype))
        return oct_array_convert(a->dtype, a->data, OCT_F64, v, n, err);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)oct_small_get(a->dtype, a->data, (int64_t)i);
    return OCT_OK;
}

/* Two units in the last place of a 16-bit float at least: expected values are rounded at each step inside an operator, ours after it. */
static oct_check_options tolerance(oct_dtype t, const oct_check_options *given)
{
    oct_check_options o = *given;
    const double two = t == OCT_F16 ? 0x1p-9 : t == OCT_BF16 ? 0x1p-6 : 0;
    o.rtol = two > o.rtol ? two : o.rtol;
    return o;
}

oct_status oct_check_compare(const char *name, const oct_array *want, const oct_array *got, const oct_check_options *o,
                             oct_check_result *r, oct_err *err)
{
    char a[96], b[96];
    bool same = want->rank == got->rank;
    for (int k = 0; same && k < want->rank; k++)
        same = want->dims[k] == got->dims[k];
    r->outputs++;
    if (want->dtype != got->dtype || !same) {
        r->differ++;
        if (!r->first[0])
            snprintf(r->first, sizeof r->first, "output '%.100s' is %s%s, expected %s%s", name, oct_dtype_name(got->dtype),
                     oct_dims_text(a, got->rank, got->dims), oct_dtype_name(want->dtype), oct_dims_text(b, want->rank, want->dims));
        return OCT_OK;
    }
    size_t n = (size_t)oct_array_count(want);
    double *w = oct_calloc(n + 1, sizeof *w), *g = oct_calloc(n + 1, sizeof *g);
    oct_status s = w && g ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK)
        s = to_doubles(want, w, n, err);
    if (s == OCT_OK)
        s = to_doubles(got, g, n, err);
    const oct_check_options within = tolerance(want->dtype, o);
    if (s == OCT_OK)
        compare_values(name, want, w, g, n, &within, r);
    else
        oct_within(err, "output '%s'", name);
    r->values += n;
    oct_free(w);
    oct_free(g);
    return s;
}

/* ---- running a case ---- */

/* The array for a name, else the i-th when no array of the set has a name of this model. */
static const oct_array *find_array(const oct_testset *t, const char *name, size_t i, bool by_name)
{
    for (size_t k = 0; by_name && k < t->n; k++)
        if (t->names[k] && strcmp(t->names[k], name) == 0)
            return &t->arrays[k];
    return !by_name && i < t->n ? &t->arrays[i] : NULL;
}

static bool any_named(const oct_graph *g, const int *values, size_t n, const oct_testset *t)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < t->n; k++)
            if (t->names[k] && strcmp(t->names[k], g->value[values[i]].name) == 0)
                return true;
    return false;
}

static oct_status collect_inputs(const oct_graph *g, const oct_testset *t, oct_array *in, oct_err *err)
{
    bool by_name = any_named(g, g->input, g->n_input, t);
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_array *a = find_array(t, g->value[g->input[i]].name, i, by_name);
        if (!a || a->dtype == OCT_UNDEFINED)
            return oct_fail(err, OCT_EMALFORMED, "the test case has no array for input '%s'", g->value[g->input[i]].name);
        in[i] = *a;
    }
    return OCT_OK;
}

static oct_status compare_outputs(const oct_graph *g, const oct_plan *p, const oct_testset *want, const oct_check_options *o,
                                  oct_check_result *r, oct_err *err)
{
    bool by_name = any_named(g, g->output, g->n_output, want);
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->value[g->output[i]].name;
        const oct_array *w = find_array(want, name, i, by_name);
        if (!w || w->dtype == OCT_UNDEFINED)
            continue;
        const oct_operand *t = oct_plan_output(p, i);
        oct_array got = { .dtype = t->dtype, .rank = t->rank, .data = t->data };
        memcpy(got.dims, t->dims, (size_t)t->rank * sizeof t->dims[0]);
        OCT_TRY(oct_check_compare(name, w, &got, o, r, err));
    }
    if (r->outputs == 0)
        return oct_fail(err, OCT_EMALFORMED, "the test case has no expected output of this model");
    return OCT_OK;
}

enum { SHAPE_ELEMENTS = 64 };

/* A copy of g in which small inputs of rank 0 and 1 (shapes, axes, scales) are constants: plans need to know them. */
static oct_status settle_inputs(const oct_graph *g, const oct_array *x, oct_graph **copy, oct_err *err)
{
    OCT_TRY(oct_graph_clone(g, copy, err));
    oct_graph *c = *copy;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        int v = g->input[i];
        if (x[i].rank > 1 || oct_array_count(&x[i]) > SHAPE_ELEMENTS) {
            c->input[kept++] = v;
            continue;
        }
        oct_tensor *t;
        OCT_TRY(oct_tensor_new(c->arena, x[i].dtype, x[i].rank, x[i].dims, &t, err));
        memcpy((void *)(uintptr_t)t->data, x[i].data, t->bytes);
        c->value[v].is_input = false;
        oct_graph_set_const(c, v, t);
    }
    c->n_input = kept;
    return OCT_OK;
}

static oct_status run_graph(const oct_graph *g, const oct_input_desc *d, size_t n, const oct_array *x, const oct_testset *want,
                            const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    oct_plan_opts opts = { .pool = o->pool };
    oct_runner *runner = NULL;
    oct_plan *p;
    oct_status s = oct_runner_create(g, &opts, d, n, &runner, err);
    if (s == OCT_OK)
        s = oct_runner_run(runner, x, &p, err);
    if (s == OCT_OK)
        s = compare_outputs(g, p, want, o, r, err);
    oct_runner_destroy(runner);
    return s;
}

static oct_status run_case(const oct_graph *g, const oct_testset *in, const oct_testset *want, const oct_check_options *o,
                           oct_arena *a, oct_check_result *r, oct_err *err)
{
    oct_array *x = oct_arena_calloc(a, g->n_input + 1, sizeof *x);
    oct_input_desc *d;
    size_t n;
    if (!x)
        return oct_nomem(err);
    OCT_TRY(collect_inputs(g, in, x, err));
    OCT_TRY(oct_inputs_describe(&g, 1, a, &d, &n, err));
    oct_err first = OCT_ERR_INIT, second = OCT_ERR_INIT;
    oct_status s = run_graph(g, d, n, x, want, o, r, &first);
    if (s == OCT_EUNSUPPORTED) {
        oct_graph *settled = NULL;
        oct_status again = settle_inputs(g, x, &settled, &second);
        if (again == OCT_OK)
            again = run_graph(settled, d, n, x, want, o, r, &second);
        oct_graph_destroy(settled);
        /* If it is still unsupported, the error of the original model is reported. */
        if (again != OCT_EUNSUPPORTED) {
            first = second;
            s = again;
        }
    }
    if (s != OCT_OK && err)
        *err = first;
    return s;
}

oct_status oct_check_case(const oct_graph *g, const char *dir, const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    *r = (oct_check_result){ 0 };
    oct_testset in = { 0 }, want = { 0 };
    oct_arena *a = oct_arena_create();
    oct_status s = a ? oct_testset_load(dir, "input", &in, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_testset_load(dir, "output", &want, err);
    if (s == OCT_OK)
        s = run_case(g, &in, &want, o, a, r, err);
    oct_testset_free(&in);
    oct_testset_free(&want);
    oct_arena_destroy(a);
    return s;
}
