/* ONNX test cases. */
#include "eval/run/testcase.h"

#include "base/array.h"
#include "onnx/model.h"
#include "ops/core/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- comparing ---- */

/* "[0,3]" for element `at`; "" for a scalar. */
static const char *index_text(char text[96], const oct_tensor *t, int64_t at)
{
    size_t len = 0;
    int64_t rest = at, below = t->count;
    text[0] = 0;
    for (int k = 0; k < t->rank && len + 24 < 96; k++) {
        below /= t->dims[k];
        len += (size_t)snprintf(text + len, 96 - len, "%s%lld", k ? "," : "[", (long long)(rest / below));
        rest %= below;
    }
    if (len)
        snprintf(text + len, 96 - len, "]");
    return text;
}

static bool close_to(double got, double want, const oct_check_options *o)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= o->atol + o->rtol * fabs(want);
}

static void compare_values(const char *name, const oct_tensor *want, const double *w, const double *g, size_t n,
                           const oct_check_options *o, oct_check_result *r)
{
    char index[96];
    for (size_t i = 0; i < n; i++) {
        double d = fabs(g[i] - w[i]);
        if (isfinite(d) && d > r->max_abs)
            r->max_abs = d;
        if (close_to(g[i], w[i], o))
            continue;
        r->differ++;
        if (!r->first[0])
            snprintf(r->first, sizeof r->first, "output '%.120s'%s is %.9g, expected %.9g", name,
                     index_text(index, want, (int64_t)i), g[i], w[i]);
    }
}

/* Converts to doubles. Types of less than 16 bits become the numbers that they represent. */
static oct_status to_doubles(const oct_tensor *t, double *v, oct_err *err)
{
    if (!oct_is_small(t->dtype))
        return oct_array_convert(t->dtype, t->data, OCT_F64, v, (size_t)t->count, err);
    for (int64_t i = 0; i < t->count; i++)
        v[i] = (double)oct_small_get(t->dtype, t->data, i);
    return OCT_OK;
}

/* For 16-bit floats the tolerance is at least two units in the last place, because expected values are rounded at each
 * step inside an operator, and ours only at its end. */
static oct_check_options tolerance(oct_dtype t, const oct_check_options *given)
{
    oct_check_options o = *given;
    const double two = t == OCT_F16 ? 0x1p-9 : t == OCT_BF16 ? 0x1p-6 : 0;
    o.rtol = two > o.rtol ? two : o.rtol;
    return o;
}

static oct_status compare_numbers(const char *name, const oct_tensor *want, const oct_tensor *got,
                                  const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    if (want->bytes == 0 || memcmp(want->data, got->data, want->bytes) == 0)
        return OCT_OK;
    const size_t n = (size_t)want->count;
    double *w = oct_calloc(n + 1, sizeof *w), *g = oct_calloc(n + 1, sizeof *g);
    oct_status s = w && g ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK)
        s = to_doubles(want, w, err);
    if (s == OCT_OK)
        s = to_doubles(got, g, err);
    const oct_check_options within = tolerance(want->dtype, o);
    if (s == OCT_OK)
        compare_values(name, want, w, g, n, &within, r);
    else
        oct_within(err, "output '%s'", name);
    oct_free(w);
    oct_free(g);
    return s;
}

static void compare_strings(const char *name, const oct_tensor *want, const oct_tensor *got, oct_check_result *r)
{
    const oct_str *w = want->data, *g = got->data;
    char index[96];
    for (int64_t i = 0; i < want->count; i++) {
        if (w[i].n == g[i].n && memcmp(w[i].s, g[i].s, w[i].n) == 0)
            continue;
        r->differ++;
        if (!r->first[0])
            snprintf(r->first, sizeof r->first, "output '%.80s'%s is '%.*s', expected '%.*s'", name,
                     index_text(index, want, i), g[i].n < 40 ? (int)g[i].n : 40, g[i].s, w[i].n < 40 ? (int)w[i].n : 40,
                     w[i].s);
    }
}

static oct_status compare_tensors(const char *name, const oct_tensor *want, const oct_tensor *got,
                                  const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    char a[96], b[96];
    const bool same =
        want->rank == got->rank && memcmp(want->dims, got->dims, (size_t)want->rank * sizeof *want->dims) == 0;
    if (want->dtype != got->dtype || !same) {
        r->differ++;
        if (!r->first[0])
            snprintf(r->first, sizeof r->first, "output '%.100s' is %s%s, expected %s%s", name,
                     oct_dtype_name(got->dtype), oct_dims_text(a, got->rank, got->dims), oct_dtype_name(want->dtype),
                     oct_dims_text(b, want->rank, want->dims));
        return OCT_OK;
    }
    r->values += (uint64_t)want->count;
    if (want->dtype != OCT_STRING)
        return compare_numbers(name, want, got, o, r, err);
    compare_strings(name, want, got, r);
    return OCT_OK;
}

static const char *kind_text(char text[48], const oct_datum *x)
{
    if (x->kind == OCT_DATUM_SEQUENCE)
        snprintf(text, 48, "a sequence of %zu tensor%s", x->n, x->n == 1 ? "" : "s");
    else
        snprintf(text, 48, "%s", x->kind == OCT_DATUM_TENSOR ? "a tensor" : "an empty optional");
    return text;
}

static oct_status compare_data(const char *name, const oct_datum *want, const oct_datum *got,
                               const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    if (want->kind == OCT_DATUM_TENSOR && got->kind == OCT_DATUM_TENSOR)
        return compare_tensors(name, &want->t, &got->t, o, r, err);
    if (want->kind != got->kind || want->n != got->n) {
        char a[48], b[48];
        r->differ++;
        if (!r->first[0])
            snprintf(r->first, sizeof r->first, "output '%.100s' is %s, expected %s", name, kind_text(a, got),
                     kind_text(b, want));
        return OCT_OK;
    }
    for (size_t i = 0; i < want->n; i++) {
        char element[128];
        snprintf(element, sizeof element, "%.100s/%zu", name, i);
        OCT_TRY(compare_data(element, want->at[i], got->at[i], o, r, err));
    }
    return OCT_OK;
}

oct_status oct_check_compare(const char *name, const oct_datum *want, const oct_datum *got, const oct_check_options *o,
                             oct_check_result *r, oct_err *err)
{
    r->outputs++;
    return compare_data(name, want, got, o, r, err);
}

oct_status oct_case_compare(const oct_plan *p, oct_datum *const *want, const oct_check_options *o, oct_check_result *r,
                            oct_err *err)
{
    for (size_t i = 0; i < oct_plan_n_outputs(p); i++) {
        oct_datum *got;
        if (!want[i])
            continue;
        OCT_TRY(oct_plan_output_datum(p, i, &got, err));
        const oct_status s = oct_check_compare(oct_plan_output_name(p, i), want[i], got, o, r, err);
        oct_datum_unref(got);
        OCT_TRY(s);
    }
    return OCT_OK;
}

/* ---- the values of a case ---- */

static oct_status sequence_of(const oct_stored_value *v, oct_datum **x, oct_err *err)
{
    OCT_TRY(oct_datum_sequence(v->elem, x, err));
    for (size_t i = 0; i < v->n; i++) {
        oct_datum *element;
        OCT_TRY(oct_datum_borrow(v->t[i]->dtype, v->t[i]->rank, v->t[i]->dims, v->t[i]->data, &element, err));
        const oct_status s = oct_datum_push(*x, element, err);
        oct_datum_unref(element);
        OCT_TRY(s);
    }
    return OCT_OK;
}

static oct_status datum_of(const oct_stored_value *v, oct_datum **x, oct_err *err)
{
    if (v->sequence)
        return sequence_of(v, x, err);
    return v->n ? oct_datum_borrow(v->t[0]->dtype, v->t[0]->rank, v->t[0]->dims, v->t[0]->data, x, err)
                : oct_datum_none(x, err);
}

/* The values in a folder's files of a kind, by number; NULL: there is no such file. */
typedef struct files {
    oct_stored_value **v;
    size_t n;
} files;

static oct_status load_file(const oct_graph *g, const int *value, size_t n, const char *path, size_t k, oct_arena *a,
                            files *f, oct_err *err)
{
    if (!(f->v[k] = oct_arena_calloc(a, 1, sizeof *f->v[k])))
        return oct_nomem(err);
    return oct_value_load_pb(path, k < n ? g->value[value[k]].kind : OCT_VALUE_TENSOR, a, f->v[k], err);
}

/* There may be more files than the n values of the model, if an initializer is also an input. */
static oct_status load_files(const oct_graph *g, const int *value, size_t n, const char *dir, const char *kind,
                             oct_arena *a, files *f, oct_err *err)
{
    size_t cap = 0;
    for (size_t k = 0;; k++) {
        oct_path_kind there;
        const char *path = oct_arena_printf(a, "%s/%s_%zu.pb", dir, kind, k);
        if (!path || !OCT_GROW(a, f->v, f->n, cap))
            return oct_nomem(err);
        f->v[k] = NULL;
        OCT_TRY(oct_path_look(path, &there, err));
        if (there == OCT_PATH_NONE && k >= n)
            return OCT_OK;
        if (there != OCT_PATH_NONE)
            OCT_TRY(load_file(g, value, n, path, k, a, f, err));
        f->n++;
    }
}

static const oct_stored_value *named(const files *f, const char *name)
{
    for (size_t k = 0; k < f->n; k++)
        if (f->v[k] && strcmp(f->v[k]->name, name) == 0)
            return f->v[k];
    return NULL;
}

oct_status oct_case_load(const oct_graph *g, const int *value, size_t n, const char *dir, const char *kind,
                         oct_arena *a, oct_datum **x, oct_err *err)
{
    files f = { 0 };
    bool by_name = false;
    OCT_TRY(load_files(g, value, n, dir, kind, a, &f, err));
    for (size_t i = 0; i < n; i++)
        by_name |= named(&f, g->value[value[i]].name) != NULL;
    for (size_t i = 0; i < n; i++) {
        const oct_stored_value *v = by_name ? named(&f, g->value[value[i]].name) : f.v[i];
        if (v)
            OCT_TRY(datum_of(v, &x[i], err));
    }
    return OCT_OK;
}

void oct_case_free(oct_datum **x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        oct_datum_unref(x[i]);
}

/* ---- running a case ---- */

oct_status oct_case_inputs(const oct_graph *g, oct_datum *const *x, oct_plan_input *in, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        if (!x[i])
            return oct_fail(err, OCT_EMALFORMED, "no input_%zu.pb for input '%s'", i, v->name);
        in[i] = (oct_plan_input){ .tensor = v->kind == OCT_VALUE_TENSOR };
        if (!in[i].tensor)
            continue;
        in[i].dtype = x[i]->t.dtype;
        in[i].rank = x[i]->t.rank;
        memcpy(in[i].dims, x[i]->dims, (size_t)in[i].rank * sizeof *in[i].dims);
    }
    return OCT_OK;
}

static void hint_case(oct_err *err)
{
    oct_hint(
        err,
        "a test case is a folder like test_data_set_0, with a file for each input and output of the model: input_0.pb, output_0.pb");
}

static oct_status incomplete(const char *dir, oct_err *err)
{
    oct_within(err, "%s", dir);
    hint_case(err);
    return OCT_EMALFORMED;
}

static oct_status run_graph(const oct_graph *g, const oct_plan_input *shapes, oct_datum *const *in,
                            oct_datum *const *want, const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    oct_plan *p = NULL;
    oct_status s = oct_plan_create(g, shapes, &(oct_plan_opts){ .pool = o->pool }, &p, err);
    if (s == OCT_OK)
        s = oct_plan_run_data(p, in, err);
    if (s == OCT_OK)
        s = oct_case_compare(p, want, o, r, err);
    oct_plan_destroy(p);
    return s;
}

enum { SETTLED_ELEMENTS = 64 };

/* A copy of g in which small inputs of rank 0 and 1 are constants, as the scales of quantized operators must be. shapes
 * and in: those of the remaining inputs. */
static oct_status settle_inputs(const oct_graph *g, oct_plan_input *shapes, oct_datum **in, oct_graph **copy,
                                oct_err *err)
{
    OCT_TRY(oct_graph_clone(g, copy, err));
    oct_graph *c = *copy;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        const int v = g->input[i];
        if (!shapes[i].tensor || shapes[i].rank > 1 || in[i]->t.count > SETTLED_ELEMENTS) {
            shapes[kept] = shapes[i];
            in[kept] = in[i];
            c->input[kept++] = v;
            continue;
        }
        c->value[v].is_input = false;
        oct_graph_set_const(c, v, &in[i]->t);
    }
    c->n_input = kept;
    return OCT_OK;
}

static oct_status run_settled(const oct_graph *g, oct_plan_input *shapes, oct_datum *const *in, oct_datum *const *want,
                              const oct_check_options *o, oct_arena *a, oct_check_result *r, oct_err *err)
{
    oct_graph *settled = NULL;
    oct_datum **rest = oct_arena_memdup(a, in, g->n_input * sizeof *rest);
    oct_status s = rest ? settle_inputs(g, shapes, rest, &settled, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = run_graph(settled, shapes, rest, want, o, r, err);
    oct_graph_destroy(settled);
    return s;
}

static oct_status run_case(const oct_graph *g, const char *dir, oct_datum *const *in, oct_datum *const *want,
                           const oct_check_options *o, oct_arena *a, oct_check_result *r, oct_err *err)
{
    oct_plan_input *shapes = oct_arena_calloc(a, g->n_input + 1, sizeof *shapes);
    if (!shapes)
        return oct_nomem(err);
    if (oct_case_inputs(g, in, shapes, err) != OCT_OK)
        return incomplete(dir, err);
    oct_err first = OCT_ERR_INIT, second = OCT_ERR_INIT;
    oct_status s = run_graph(g, shapes, in, want, o, r, &first);
    if (s == OCT_EUNSUPPORTED && g->n_input) {
        const oct_status again = run_settled(g, shapes, in, want, o, a, r, &second);
        /* If this does not help, the error for the unchanged model is reported. */
        if (again != OCT_EUNSUPPORTED) {
            first = second;
            s = again;
        }
    }
    if (s != OCT_OK && err)
        *err = first;
    if (s != OCT_OK || r->outputs)
        return s;
    oct_fail(err, OCT_EMALFORMED, "no output_*.pb for an output of the model");
    return incomplete(dir, err);
}

static oct_status check_folder(const char *dir, oct_err *err)
{
    oct_path_kind there;
    OCT_TRY(oct_path_look(dir, &there, err));
    if (there == OCT_PATH_FOLDER)
        return OCT_OK;
    if (there == OCT_PATH_NONE)
        oct_fail_open(err, dir);
    else
        oct_fail(err, OCT_EIO, "%s: not a folder", dir);
    hint_case(err);
    return OCT_EIO;
}

oct_status oct_check_case(const oct_graph *g, const char *dir, const oct_check_options *o, oct_check_result *r,
                          oct_err *err)
{
    *r = (oct_check_result){ 0 };
    oct_arena *a = oct_arena_create();
    if (!a)
        return oct_nomem(err);
    oct_datum **in = oct_arena_calloc(a, g->n_input + 1, sizeof *in),
              **want = oct_arena_calloc(a, g->n_output + 1, sizeof *want);
    oct_status s = in && want ? check_folder(dir, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_case_load(g, g->input, g->n_input, dir, "input", a, in, err);
    if (s == OCT_OK)
        s = oct_case_load(g, g->output, g->n_output, dir, "output", a, want, err);
    if (s == OCT_OK)
        s = run_case(g, dir, in, want, o, a, r, err);
    oct_case_free(in, g->n_input);
    oct_case_free(want, g->n_output);
    oct_arena_destroy(a);
    return s;
}
