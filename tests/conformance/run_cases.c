/* Runs ONNX operator test cases through the runtime, a line each on standard output.
 *
 *   run_cases DIR NAME RTOL ATOL [NAME RTOL ATOL]...
 *
 * DIR/NAME holds model.onnx and test_data_set_*. Each case is run in three ways: with all inputs given when running
 * ("run"); with all but the first one constant, as arguments and weights are in real models ("const"); with all constant
 * ("fold"). The line: NAME <tab> pass|fail|unsupported <tab> ways that ran <tab> reason. A case passes when at least one way ran
 * and none gave a wrong result; "unsupported" is said by the library, with its reason. */
#include "eval/check.h"
#include "onnx/model.h"
#include "ops/small.h"
#include "runtime/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 64 };

typedef struct data_set {
    oct_tensor *in[MAX_TENSORS], *out[MAX_TENSORS];
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

static oct_status load_list(const char *dir, const char *kind, oct_arena *a, oct_tensor **t, size_t *n, oct_err *err)
{
    char path[1024];
    for (*n = 0; *n < MAX_TENSORS; ++*n) {
        snprintf(path, sizeof path, "%s/%s_%zu.pb", dir, kind, *n);
        if (!exists(path))
            return OCT_OK;
        OCT_TRY(oct_tensor_load_pb(path, a, &t[*n], err));
    }
    return OCT_OK;
}

/* Turns graph inputs from `first` on into constants; given[i] becomes the data set's index of input i that is left. */
static void fix_inputs(oct_graph *g, const data_set *d, size_t first, size_t *given)
{
    size_t kept = 0, n = g->n_input;
    for (size_t i = 0; i < n; i++) {
        int v = g->input[i];
        if (i >= first && i < d->n_in) {
            g->value[v].is_input = false;
            oct_graph_set_const(g, v, d->in[i]);
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

/* Small types are compared as the float32 numbers they stand for. */
static bool widen(oct_array *a, oct_arena *arena)
{
    if (!oct_is_small(a->dtype))
        return true;
    int64_t n = oct_array_count(a);
    float *v = oct_arena_calloc(arena, (size_t)n + 1, sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = oct_small_get(a->dtype, a->data, i);
    a->dtype = OCT_F32;
    a->data = v;
    return v != NULL;
}

/* Two units in the last place of a 16-bit float: the expected values are rounded at each step inside an operator, ours after it. */
static oct_check_options coarse(oct_dtype t, const oct_check_options *given)
{
    oct_check_options o = *given;
    const double two = t == OCT_F16 ? 0x1p-9 : t == OCT_BF16 ? 0x1p-6 : 0;
    o.rtol = two > o.rtol ? two : o.rtol;
    return o;
}

static oct_status compare(const oct_plan *p, const data_set *d, const oct_check_options *given, oct_check_result *r, oct_err *err)
{
    for (size_t i = 0; i < d->n_out && i < oct_plan_n_outputs(p); i++) {
        const oct_operand *t = oct_plan_output(p, i);
        oct_array got = { .dtype = t->dtype, .rank = t->rank, .data = t->data }, want = array_of(d->out[i]);
        memcpy(got.dims, t->dims, (size_t)t->rank * sizeof t->dims[0]);
        if (got.dtype == want.dtype && got.rank == want.rank &&
            memcmp(got.dims, want.dims, (size_t)got.rank * sizeof got.dims[0]) == 0 &&
            (want.bytes == 0 || (got.data && memcmp(got.data, want.data, want.bytes) == 0)))
            continue;
        oct_check_options o = coarse(want.dtype, given);
        oct_arena *arena = oct_arena_create();
        bool same = got.dtype == want.dtype;
        oct_status s = arena && (!same || (widen(&want, arena) && widen(&got, arena))) ? OCT_OK : oct_nomem(err);
        if (s == OCT_OK)
            s = oct_check_compare(oct_plan_output_name(p, i), &want, &got, &o, r, err);
        oct_arena_destroy(arena);
        if (s != OCT_OK) /* what cannot be compared has not passed */
            return oct_fail(err, OCT_EINTERNAL, "output '%s' differs and cannot be compared", oct_plan_output_name(p, i));
    }
    return OCT_OK;
}

static oct_status run_set(const char *model, const data_set *d, way w, const oct_check_options *o, oct_check_result *r, oct_err *err)
{
    oct_model *m = NULL;
    oct_plan *p = NULL;
    size_t given[MAX_TENSORS];
    oct_input_shape shapes[MAX_TENSORS];
    const void *data[MAX_TENSORS];
    OCT_TRY(oct_model_load(model, &m, err));
    oct_graph *g = m->graph;
    oct_status s = OCT_OK;
    if (g->n_input != d->n_in || g->n_input > MAX_TENSORS)
        s = oct_fail(err, OCT_EUNSUPPORTED, "%zu inputs, %zu given", g->n_input, d->n_in);
    if (s == OCT_OK) {
        fix_inputs(g, d, w == WAY_RUN ? d->n_in : w == WAY_CONST ? 1 : 0, given);
        for (size_t i = 0; i < g->n_input; i++) {
            const oct_tensor *t = d->in[given[i]];
            shapes[i] = (oct_input_shape){ g->value[g->input[i]].name, t->rank, { 0 } };
            memcpy(shapes[i].dims, t->dims, (size_t)t->rank * sizeof *t->dims);
            data[i] = t->data;
        }
        s = oct_plan_create(g, shapes, g->n_input, NULL, &p, err);
    }
    if (s == OCT_OK)
        s = oct_plan_run(p, data, err);
    if (s == OCT_OK)
        s = compare(p, d, o, r, err);
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
        snprintf(set, sizeof set, "%s/test_data_set_%d/output_0.pb", dir, k);
        if (!exists(set))
            return k > 0;
        *strrchr(set, '/') = 0;
        oct_arena *a = oct_arena_create();
        oct_status s = a ? load_list(set, "input", a, d.in, &d.n_in, &err) : oct_nomem(&err);
        if (s == OCT_OK)
            s = load_list(set, "output", a, d.out, &d.n_out, &err);
        if (s == OCT_OK && (w != WAY_CONST || d.n_in > 1) && (w != WAY_FOLD || d.n_in > 0))
            s = run_set(model, &d, w, o, &r, &err);
        else if (s == OCT_OK)
            s = OCT_EUNSUPPORTED; /* the same as another way */
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
    for (int i = 2; i < argc; i += 3) {
        oct_check_options o = { .rtol = strtod(argv[i + 1], NULL), .atol = strtod(argv[i + 2], NULL) };
        run_case(argv[1], argv[i], &o);
    }
    return 0;
}
