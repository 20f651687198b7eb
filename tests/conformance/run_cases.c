/* Runs ONNX operator test cases through the runtime, a line each on standard output.
 *
 *   run_cases DIR NAME RTOL ATOL [NAME RTOL ATOL]...
 *
 * DIR/NAME holds model.onnx and test_data_set_* (scripts/checks/make_conformance.py says how). Each case is run in three ways: with all inputs given when running
 * ("run"); with all but the first one constant, as arguments and weights are in real models ("const"); with all constant
 * ("fold"). The first is repeated on every instruction set that this CPU has, with one thread and with two: the bytes of the
 * results must be the same. The line: NAME <tab> pass|fail|unsupported <tab> ways that ran <tab> reason. A case passes when at least one way ran
 * and none gave a wrong result; "unsupported" is said by the library, with its reason. */
#include "eval/testcase.h"
#include "kernels/cpu.h"
#include "onnx/model.h"
#include "runtime/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 64 };

typedef struct data_set {
    oct_datum *in[MAX_TENSORS], *out[MAX_TENSORS];
    size_t n_in, n_out;
} data_set;

typedef enum way { WAY_RUN, WAY_CONST, WAY_FOLD, WAY_COUNT } way;
static const char *const way_names[] = { "run", "const", "fold" };

static bool exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f)
        fclose(f);
    return f != NULL;
}

static oct_status load_tensor(const char *path, oct_arena *a, oct_datum **x, oct_err *err)
{
    oct_tensor *t;
    OCT_TRY(oct_tensor_load_pb(path, a, &t, err));
    return oct_datum_borrow(t->dtype, t->rank, t->dims, t->data, x, err);
}

static oct_status load_sequence(const char *folder, oct_arena *a, oct_datum **x, oct_err *err)
{
    char path[1100];
    OCT_TRY(oct_datum_sequence(OCT_UNDEFINED, x, err));
    for (int i = 0;; i++) {
        oct_datum *element;
        snprintf(path, sizeof path, "%s/%d.pb", folder, i);
        if (!exists(path))
            return OCT_OK;
        OCT_TRY(load_tensor(path, a, &element, err));
        oct_status s = oct_datum_push(*x, element, err);
        oct_datum_unref(element);
        OCT_TRY(s);
        (*x)->elem = (*x)->at[0]->t.dtype;
    }
}

static oct_status load_list(const char *dir, const char *kind, oct_arena *a, oct_datum **x, size_t *n, oct_err *err)
{
    char path[1024];
    for (*n = 0; *n < MAX_TENSORS; ++*n) {
        int len = snprintf(path, sizeof path - 8, "%s/%s_%zu", dir, kind, *n);
        if (exists(path)) {
            OCT_TRY(load_sequence(path, a, &x[*n], err));
            continue;
        }
        strcpy(path + len, ".none");
        if (exists(path)) {
            OCT_TRY(oct_datum_none(&x[*n], err));
            continue;
        }
        strcpy(path + len, ".pb");
        if (!exists(path))
            return OCT_OK;
        OCT_TRY(load_tensor(path, a, &x[*n], err));
    }
    return OCT_OK;
}

static void free_set(data_set *d)
{
    for (size_t i = 0; i < MAX_TENSORS; i++) {
        oct_datum_unref(d->in[i]);
        oct_datum_unref(d->out[i]);
    }
}

static bool all_tensors(const data_set *d)
{
    for (size_t i = 0; i < d->n_in; i++)
        if (d->in[i]->kind != OCT_DATUM_TENSOR)
            return false;
    return true;
}

/* Turns graph inputs from `first` on into constants; given[i] becomes the data set's index of input i that is left. */
static void fix_inputs(oct_graph *g, const data_set *d, size_t first, size_t *given)
{
    size_t kept = 0, n = g->n_input;
    for (size_t i = 0; i < n; i++) {
        int v = g->input[i];
        if (i >= first && i < d->n_in) {
            g->value[v].is_input = false;
            oct_graph_set_const(g, v, &d->in[i]->t);
        } else {
            given[kept] = i;
            g->input[kept++] = v;
        }
    }
    g->n_input = kept;
}

static oct_array array_of(const oct_tensor *t)
{
    oct_array a = { .dtype = t->dtype, .rank = t->rank, .data = (void *)(uintptr_t)t->data, .bytes = t->bytes };
    memcpy(a.dims, t->dims, (size_t)t->rank * sizeof *a.dims);
    return a;
}

static bool same_strings(const oct_tensor *a, const oct_tensor *b)
{
    const oct_str *x = a->data, *y = b->data;
    for (int64_t i = 0; i < a->count; i++)
        if (x[i].n != y[i].n || memcmp(x[i].s, y[i].s, x[i].n) != 0)
            return false;
    return true;
}

static oct_status compare_tensors(const char *name, const oct_tensor *w, const oct_tensor *g, const oct_check_options *o,
                                  oct_check_result *r, oct_err *err)
{
    oct_array got = array_of(g), want = array_of(w);
    bool alike = got.dtype == want.dtype && got.rank == want.rank &&
                 memcmp(got.dims, want.dims, (size_t)got.rank * sizeof got.dims[0]) == 0;
    if (alike && want.dtype == OCT_STRING && same_strings(w, g))
        return OCT_OK;
    if (alike && want.dtype != OCT_STRING && (want.bytes == 0 || (got.data && memcmp(got.data, want.data, want.bytes) == 0)))
        return OCT_OK;
    if (oct_check_compare(name, &want, &got, o, r, err) != OCT_OK) /* what cannot be compared has not passed */
        return oct_fail(err, OCT_EINTERNAL, "output '%s' differs and cannot be compared", name);
    return OCT_OK;
}

static oct_status compare_data(const char *name, const oct_datum *want, const oct_datum *got, const oct_check_options *o,
                               oct_check_result *r, oct_err *err)
{
    if (want->kind != got->kind || want->n != got->n)
        return oct_fail(err, OCT_EINTERNAL, "output '%s' is of another kind or length", name);
    if (want->kind == OCT_DATUM_TENSOR)
        return compare_tensors(name, &want->t, &got->t, o, r, err);
    for (size_t i = 0; i < want->n; i++)
        OCT_TRY(compare_data(name, want->at[i], got->at[i], o, r, err));
    return OCT_OK;
}

static oct_status compare(oct_plan *p, const data_set *d, const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    for (size_t i = 0; i < d->n_out && i < oct_plan_n_outputs(p); i++) {
        oct_datum *got;
        OCT_TRY(oct_plan_output_datum(p, i, &got, err));
        const oct_status s = compare_data(oct_plan_output_name(p, i), d->out[i], got, o, r, err);
        oct_datum_unref(got);
        OCT_TRY(s);
    }
    return OCT_OK;
}

/* ---- the same bytes ---- */

static oct_pool *two; /* threads */

static bool same_bytes(const oct_datum *a, const oct_datum *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same_bytes(a->at[i], b->at[i]))
            return false;
    if (a->kind != OCT_DATUM_TENSOR)
        return true;
    if (a->t.dtype != b->t.dtype || a->t.rank != b->t.rank || memcmp(a->dims, b->dims, (size_t)a->t.rank * sizeof a->dims[0]) != 0)
        return false;
    return a->t.dtype == OCT_STRING ? same_strings(&a->t, &b->t) : a->t.bytes == 0 || memcmp(a->t.data, b->t.data, a->t.bytes) == 0;
}

/* A case as it is run: the graph with what is left of its inputs. */
typedef struct prepared {
    const oct_graph *g;
    oct_plan_input shapes[MAX_TENSORS];
    const void *data[MAX_TENSORS];
    oct_datum *feed[MAX_TENSORS];
    bool by_address;
} prepared;

static oct_status run_once(const prepared *c, oct_pool *pool, oct_plan **p, oct_err *err)
{
    const oct_plan_opts opts = { .pool = pool };
    OCT_TRY(oct_plan_create(c->g, c->shapes, &opts, p, err));
    return c->by_address ? oct_plan_run(*p, c->data, err) : oct_plan_run_data(*p, c->feed, err);
}

/* Runs once more and compares with what `first` holds. */
static oct_status repeat(const prepared *c, oct_plan *first, const char *isa, oct_pool *pool, oct_err *err)
{
    oct_plan *p = NULL;
    oct_status s = run_once(c, pool, &p, err);
    for (size_t i = 0; s == OCT_OK && i < oct_plan_n_outputs(p); i++) {
        oct_datum *a = NULL, *b = NULL;
        s = oct_plan_output_datum(first, i, &a, err);
        if (s == OCT_OK)
            s = oct_plan_output_datum(p, i, &b, err);
        if (s == OCT_OK && !same_bytes(a, b))
            s = oct_fail(err, OCT_EINTERNAL, "output '%s' has other bytes on %s with %d threads", oct_plan_output_name(p, i), isa,
                         pool ? 2 : 1);
        oct_datum_unref(a);
        oct_datum_unref(b);
    }
    oct_plan_destroy(p);
    return s;
}

static oct_status repeat_all(const prepared *c, oct_plan *first, oct_err *err)
{
    const char *isa;
    oct_status s = OCT_OK;
    for (size_t i = 0; s == OCT_OK && (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        s = repeat(c, first, isa, NULL, err);
        if (s == OCT_OK)
            s = repeat(c, first, isa, two, err);
    }
    if (oct_isa_limit("native", NULL) != OCT_OK)
        return oct_fail(err, OCT_EINTERNAL, "this CPU's own instructions cannot be had again");
    return s;
}

/* ---- one data set, one way ---- */

static oct_status prepare(oct_graph *g, const data_set *d, way w, prepared *c, oct_err *err)
{
    size_t given[MAX_TENSORS];
    *c = (prepared){ .g = g, .by_address = true };
    if (g->n_input != d->n_in || g->n_input > MAX_TENSORS)
        return oct_fail(err, OCT_EUNSUPPORTED, "%zu inputs, %zu given", g->n_input, d->n_in);
    fix_inputs(g, d, w == WAY_RUN ? d->n_in : w == WAY_CONST ? 1 : 0, given);
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_datum *x = d->in[given[i]];
        c->shapes[i] = (oct_plan_input){ .tensor = g->value[g->input[i]].kind == OCT_VALUE_TENSOR, .rank = x->t.rank };
        memcpy(c->shapes[i].dims, x->dims, (size_t)x->t.rank * sizeof *x->dims);
        c->data[i] = x->t.data;
        c->feed[i] = d->in[given[i]];
        c->by_address &= g->value[g->input[i]].kind == OCT_VALUE_TENSOR;
    }
    return OCT_OK;
}

static oct_status run_set(const char *model, const data_set *d, way w, const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    oct_model *m = NULL;
    oct_plan *p = NULL;
    prepared c;
    OCT_TRY(oct_model_load(model, &m, err));
    oct_status s = prepare(m->graph, d, w, &c, err);
    if (s == OCT_OK)
        s = run_once(&c, NULL, &p, err);
    if (s == OCT_OK)
        s = compare(p, d, o, r, err);
    if (s == OCT_OK && w == WAY_RUN)
        s = repeat_all(&c, p, err);
    oct_plan_destroy(p);
    oct_model_free(m);
    return s;
}

/* Whether a case ran this way; a wrong result or a failure other than "unsupported" goes to *wrong, a refusal to *refused. */
static bool run_way(const char *dir, way w, const oct_check_options *o, char *wrong, char *refused, size_t size)
{
    char model[900], set[1000];
    snprintf(model, sizeof model, "%s/model.onnx", dir);
    for (int k = 0;; k++) {
        data_set d = { .n_in = 0 };
        oct_check_result r = { 0 };
        oct_err err = OCT_ERR_INIT;
        snprintf(set, sizeof set, "%s/test_data_set_%d", dir, k);
        if (!exists(set))
            return k > 0;
        oct_arena *a = oct_arena_create();
        oct_status s = a ? load_list(set, "input", a, d.in, &d.n_in, &err) : oct_nomem(&err);
        if (s == OCT_OK)
            s = load_list(set, "output", a, d.out, &d.n_out, &err);
        bool another = w == WAY_RUN || (all_tensors(&d) && d.n_in > (w == WAY_CONST ? 1 : 0));
        if (s == OCT_OK && another)
            s = run_set(model, &d, w, o, &r, &err);
        else if (s == OCT_OK)
            s = OCT_EUNSUPPORTED; /* the same as another way */
        free_set(&d);
        oct_arena_destroy(a);
        if (s == OCT_EUNSUPPORTED && err.text[0]) /* the last way's reason says the most */
            snprintf(refused, size, "%s", err.text);
        else if (s != OCT_OK && s != OCT_EUNSUPPORTED)
            snprintf(wrong, size, "%s: %s", way_names[w], err.text);
        else if (s == OCT_OK && r.first[0])
            snprintf(wrong, size, "%s: %s", way_names[w], r.first);
        if (s != OCT_OK || wrong[0])
            return false;
    }
}

static void run_case(const char *root, const char *name, const oct_check_options *o)
{
    char dir[800], wrong[1200] = "", refused[1200] = "", ways[32] = "";
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    for (int w = 0; w < WAY_COUNT && !wrong[0]; w++)
        if (run_way(dir, (way)w, o, wrong, refused, sizeof wrong))
            snprintf(ways + strlen(ways), sizeof ways - strlen(ways), "%s%s", ways[0] ? "," : "", way_names[w]);
    const char *result = wrong[0] ? "fail" : ways[0] ? "pass" : "unsupported";
    printf("%s\t%s\t%s\t%s\n", name, result, ways, wrong[0] ? wrong : refused);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 2 || (argc - 2) % 3) {
        fprintf(stderr, "usage: run_cases DIR [NAME RTOL ATOL]...\n");
        return 2;
    }
    two = oct_pool_create(2);
    for (int i = 2; i < argc; i += 3) {
        oct_check_options o = { .rtol = strtod(argv[i + 1], NULL), .atol = strtod(argv[i + 2], NULL) };
        run_case(argv[1], argv[i], &o);
    }
    oct_pool_destroy(two);
    return 0;
}
