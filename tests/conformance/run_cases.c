/* Runs ONNX operator test cases in the ways that `qeval --check` does not, a line each on standard output.
 *
 *   run_cases DIR NAME RTOL ATOL [NAME RTOL ATOL]...
 *
 * DIR/NAME holds model.onnx and test_data_set_* (tests/checks/make_conformance.py says how). Each case is run in
 * three ways: with all inputs given when running
 * ("run"); with all but the first one constant, as arguments and weights are in real models ("const"); with all
 * constant
 * ("fold"). The first is repeated on every instruction set that this CPU has, with one thread and with two: the bytes
 * of the results must be the same. The line: NAME <tab> pass|fail <tab> reason. A way that the library does not support
 * is no failure: whether a case runs at all is for the tool to say. */
#include "eval/run/testcase.h"
#include "base/io.h"
#include "kernels/cpu.h"
#include "onnx/model.h"

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

static oct_status load_set(const oct_graph *g, const char *dir, oct_arena *a, data_set *d, oct_err *err)
{
    if (g->n_input > MAX_TENSORS || g->n_output > MAX_TENSORS)
        return oct_fail(err, OCT_EINTERNAL, "more than %d inputs or outputs", MAX_TENSORS);
    d->n_in = g->n_input;
    d->n_out = g->n_output;
    OCT_TRY(oct_case_load(g, g->input, d->n_in, dir, "input", a, d->in, err));
    return oct_case_load(g, g->output, d->n_out, dir, "output", a, d->out, err);
}

static void free_set(data_set *d)
{
    oct_case_free(d->in, MAX_TENSORS);
    oct_case_free(d->out, MAX_TENSORS);
}

static bool all_tensors(const data_set *d)
{
    for (size_t i = 0; i < d->n_in; i++)
        if (!d->in[i] || d->in[i]->kind != OCT_DATUM_TENSOR)
            return false;
    return true;
}

/* Turns graph inputs from `first` on into constants; what is left is fed. */
static void fix_inputs(oct_graph *g, const data_set *d, size_t first, oct_datum **feed)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        int v = g->input[i];
        if (i >= first) {
            g->value[v].is_input = false;
            oct_graph_set_const(g, v, &d->in[i]->t);
        } else {
            feed[kept] = d->in[i];
            g->input[kept++] = v;
        }
    }
    g->n_input = kept;
}

/* ---- the same bytes ---- */

static oct_pool *two; /* threads */

static bool same_strings(const oct_tensor *a, const oct_tensor *b)
{
    const oct_str *x = a->data, *y = b->data;
    for (int64_t i = 0; i < a->count; i++)
        if (x[i].n != y[i].n || memcmp(x[i].s, y[i].s, x[i].n) != 0)
            return false;
    return true;
}

static bool same_bytes(const oct_datum *a, const oct_datum *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same_bytes(a->at[i], b->at[i]))
            return false;
    if (a->kind != OCT_DATUM_TENSOR)
        return true;
    if (a->t.dtype != b->t.dtype || a->t.rank != b->t.rank ||
        memcmp(a->dims, b->dims, (size_t)a->t.rank * sizeof a->dims[0]) != 0)
        return false;
    return a->t.dtype == OCT_STRING ? same_strings(&a->t, &b->t)
                                    : a->t.bytes == 0 || memcmp(a->t.data, b->t.data, a->t.bytes) == 0;
}

/* A case as it is run: the graph with what is left of its inputs. */
typedef struct prepared {
    const oct_graph *g;
    oct_plan_input shapes[MAX_TENSORS];
    oct_datum *feed[MAX_TENSORS];
} prepared;

static oct_status run_once(const prepared *c, oct_pool *pool, oct_plan **p, oct_err *err)
{
    const oct_plan_opts opts = { .pool = pool };
    OCT_TRY(oct_plan_create(c->g, c->shapes, &opts, p, err));
    return oct_plan_run_data(*p, c->feed, err);
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
            s = oct_fail(err, OCT_EINTERNAL, "output '%s' has other bytes on %s with %d threads",
                         oct_plan_output_name(p, i), isa, pool ? 2 : 1);
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

static bool is_apart(const data_set *d, way w)
{
    return w == WAY_RUN || (all_tensors(d) && d->n_in > (w == WAY_CONST ? 1 : 0)); /* else the same as another way */
}

static oct_status run_prepared(oct_graph *g, const data_set *d, way w, const oct_check_options *o, oct_check_result *r,
                               oct_err *err)
{
    prepared c = { .g = g };
    oct_plan *p = NULL;
    OCT_TRY(oct_case_inputs(g, d->in, c.shapes, err));
    fix_inputs(g, d, w == WAY_RUN ? d->n_in : w == WAY_CONST ? 1 : 0, c.feed);
    oct_status s = run_once(&c, NULL, &p, err);
    if (s == OCT_OK)
        s = oct_case_compare(p, d->out, o, r, err);
    if (s == OCT_OK && w == WAY_RUN)
        s = repeat_all(&c, p, err);
    oct_plan_destroy(p);
    return s;
}

static oct_status run_set(const char *model, const char *dir, way w, const oct_check_options *o, oct_check_result *r,
                          oct_err *err)
{
    oct_model *m = NULL;
    data_set d = { .n_in = 0 };
    OCT_TRY(oct_model_load(model, &m, err));
    oct_arena *a = oct_arena_create();
    oct_status s = a ? load_set(m->graph, dir, a, &d, err) : oct_nomem(err);
    if (s == OCT_OK && is_apart(&d, w))
        s = run_prepared(m->graph, &d, w, o, r, err);
    free_set(&d);
    oct_arena_destroy(a);
    oct_model_free(m);
    return s;
}

/* What is wrong with a case that is run this way, into wrong[size]. */
static void run_way(const char *dir, way w, const oct_check_options *o, char *wrong, size_t size)
{
    char model[900], set[1000];
    snprintf(model, sizeof model, "%s/model.onnx", dir);
    for (int k = 0; !wrong[0]; k++) {
        oct_check_result r = { 0 };
        oct_err err = OCT_ERR_INIT;
        snprintf(set, sizeof set, "%s/test_data_set_%d", dir, k);
        if (!oct_path_is_dir(set))
            return;
        const oct_status s = run_set(model, set, w, o, &r, &err);
        if ((s != OCT_OK && s != OCT_EUNSUPPORTED) || r.first[0])
            snprintf(wrong, size, "%s: %s", way_names[w], r.first[0] ? r.first : err.text);
    }
}

static void run_case(const char *root, const char *name, const oct_check_options *o)
{
    char dir[800], wrong[1200] = "";
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    for (int w = 0; w < WAY_COUNT && !wrong[0]; w++)
        run_way(dir, (way)w, o, wrong, sizeof wrong);
    printf("%s\t%s\t%s\n", name, wrong[0] ? "fail" : "pass", wrong);
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
