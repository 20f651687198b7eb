/* Loading a model, its inputs and outputs. */
#include "model_int.h"

#include "api/files.h"
#include "base/io.h"
#include "passes/pass.h"

#include <string.h>

enum { MOST_THREADS = 1024 }; /* as of --threads */

/* ---- what is shared, and a model's own ---- */

static void release_core(octet_core *c)
{
    if (atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    oct_pool_destroy(c->pool);
    oct_model_free(c->model);
    oct_arena_destroy(c->arena);
}

void octet_model_free(octet_model *m)
{
    if (!m || atomic_load(&m->busy))
        return;
    for (size_t i = 0; m->copy && i < m->core->n_out; i++)
        oct_free(m->copy[i].data);
    oct_runner_destroy(m->runner);
    oct_pool_destroy(m->others);
    release_core(m->core);
    oct_arena_destroy(m->arena);
}

/* A model with another reference to what it shares. */
static oct_status make_model(octet_core *c, octet_model **made, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    octet_model *m = a ? oct_arena_calloc(a, 1, sizeof *m) : NULL;
    if (!m) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    m->arena = a;
    m->core = c;
    atomic_fetch_add(&c->refs, 1);
    m->fed = oct_arena_calloc(a, c->n_in + 1, sizeof *m->fed);
    m->made = oct_arena_calloc(a, c->n_out + 1, sizeof *m->made);
    m->copy = oct_arena_calloc(a, c->n_out + 1, sizeof *m->copy);
    const oct_status s =
        m->fed && m->made && m->copy
            ? oct_runner_create(c->model->graph, &(oct_plan_opts){ .pool = c->pool }, c->want, c->n_in, &m->runner, err)
            : oct_nomem(err);
    if (s == OCT_OK)
        *made = m;
    else
        octet_model_free(m);
    return s;
}

/* ---- inputs and outputs ---- */

static octet_port port_of(const char *name, oct_dtype type, int rank, const int64_t *dims)
{
    octet_port p = { name, (octet_type)type, rank > OCTET_MAX_RANK ? -1 : rank, { 0 } };
    for (int i = 0; i < p.rank; i++)
        p.dims[i] = dims[i] < 0 ? -1 : dims[i];
    return p;
}

static octet_port port_of_value(const oct_value *v)
{
    int64_t dims[OCTET_MAX_RANK];
    const int rank = v->shape.rank > OCTET_MAX_RANK ? -1 : v->shape.rank;
    for (int i = 0; i < rank; i++)
        dims[i] = v->shape.d[i].n;
    return port_of(v->name, v->dtype, rank, dims);
}

/* ---- constants that are given ---- */

/* Whether an array is what the graph says of its input. */
static oct_status check_declared(const oct_value *v, const oct_array *a, oct_err *err)
{
    char want[128], got[96];
    if (v->kind != OCT_VALUE_TENSOR)
        return oct_fail(err, OCT_EMALFORMED, "constant '%s': the input of that name is no tensor", v->name);
    if (v->dtype != OCT_UNDEFINED && v->dtype != a->dtype)
        return oct_fail(err, OCT_EMALFORMED, "constant '%s' is %s, but the graph declares %s", v->name,
                        oct_dtype_name(a->dtype), oct_dtype_name(v->dtype));
    bool fits = v->shape.rank < 0 || v->shape.rank == a->rank;
    for (int k = 0; fits && k < v->shape.rank; k++)
        fits = v->shape.d[k].n < 0 || v->shape.d[k].n == a->dims[k];
    return fits ? OCT_OK
                : oct_fail(err, OCT_EMALFORMED, "constant '%s' is %s, but the graph declares %s", v->name,
                           oct_dims_text(got, a->rank, a->dims), oct_shape_text(&v->shape, want, sizeof want));
}

/* The array as a tensor of the graph, in place where it is aligned. */
static oct_status borrow(oct_graph *g, const oct_array *a, const oct_tensor **t, oct_err *err)
{
    oct_tensor *x;
    if (a->bytes && (uintptr_t)a->data % oct_dtype_align(a->dtype) != 0) {
        OCT_TRY(oct_tensor_new(g->arena, a->dtype, a->rank, a->dims, &x, err));
        memcpy((void *)(uintptr_t)x->data, a->data, a->bytes);
        *t = x;
        return OCT_OK;
    }
    x = oct_arena_calloc(g->arena, 1, sizeof *x);
    if (!x || !(x->dims = oct_arena_memdup(g->arena, a->dims, sizeof a->dims)))
        return oct_nomem(err);
    x->dtype = a->dtype;
    x->rank = a->rank;
    x->count = oct_array_count(a);
    x->bytes = a->bytes;
    x->data = a->data;
    *t = x;
    return OCT_OK;
}

static oct_status set_constant(oct_graph *g, const octet_array *given, size_t i, oct_err *err)
{
    oct_array a;
    const oct_tensor *t = NULL;
    if (!given->name)
        return oct_fail(err, OCT_EUSAGE, "constant %zu has no name", i);
    const int v = oct_graph_find(g, given->name);
    if (v >= 0 && g->value[v].constant)
        return oct_fail(err, OCT_EMALFORMED, "'%s' is given twice, or is a constant of the graph", given->name);
    if (v < 0 || !g->value[v].is_input)
        return oct_fail(err, OCT_EMALFORMED, "constant '%s': the graph has no input of that name", given->name);
    OCT_TRY(octet_take_array(given, "constant", given->name, &a, err));
    OCT_TRY(check_declared(&g->value[v], &a, err));
    OCT_TRY(borrow(g, &a, &t, err));
    OCT_TRY(oct_graph_set_dims(g, v, t->rank, t->dims, err)); /* set_const does not report a failure */
    oct_graph_set_const(g, v, t);
    g->value[v].is_input = false;
    return OCT_OK;
}

oct_status octet_set_constants(oct_graph *g, const octet_array *constants, size_t n, oct_err *err)
{
    if (!n)
        return OCT_OK;
    for (size_t i = 0; i < n; i++)
        OCT_TRY(set_constant(g, &constants[i], i, err));
    size_t left = 0;
    for (size_t i = 0; i < g->n_input; i++)
        if (g->value[g->input[i]].is_input)
            g->input[left++] = g->input[i];
    g->n_input = left;
    return oct_graph_update_captures(g, err);
}

/* ---- loading ---- */

/* Everything but the model itself. */
static oct_status prepare(octet_core *c, int threads, oct_err *err)
{
    const oct_graph *g = c->model->graph;
    const char *newer;
    OCT_TRY(oct_check_operators(g, &newer, err));
    OCT_TRY(oct_inputs_describe(&g, 1, c->arena, &c->want, &c->n_in, err));
    c->n_out = g->n_output;
    c->input = oct_arena_calloc(c->arena, c->n_in + 1, sizeof *c->input);
    c->output = oct_arena_calloc(c->arena, c->n_out + 1, sizeof *c->output);
    if (!c->input || !c->output)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_in; i++)
        c->input[i] = port_of(c->want[i].name, c->want[i].dtype, c->want[i].rank, c->want[i].dims);
    for (size_t i = 0; i < c->n_out; i++)
        c->output[i] = port_of_value(&g->value[g->output[i]]);
    return (c->pool = oct_pool_create(threads)) ? OCT_OK : oct_pool_fail(threads, err);
}

typedef struct source {
    const char *path;
    const void *data; /* NULL: the file `path` is read */
    size_t size;
    const octet_array *constants;
    size_t n_constants;
    int threads;
    octet_model **out;
} source;

static oct_status check_source(const source *x, oct_err *err)
{
    if (!x->out)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the model: m is NULL");
    if (!x->path)
        return oct_fail(err, OCT_EUSAGE, "the path is NULL");
    if (x->threads < 0 || x->threads > MOST_THREADS)
        return oct_fail(err, OCT_EUSAGE, "%d threads: not between 0 and %d", x->threads, MOST_THREADS);
    return OCT_OK;
}

static oct_status load_core(const source *x, octet_core *c, oct_err *err)
{
    OCT_TRY(oct_load_any((oct_voice){ 0 }, x->path, x->data, x->size, &c->model, err));
    oct_status s = octet_set_constants(c->model->graph, x->constants, x->n_constants, err);
    if (s == OCT_OK)
        s = prepare(c, x->threads, err);
    if (s == OCT_OK)
        s = make_model(c, x->out, err);
    if (s != OCT_OK)
        oct_within(err, "%s", x->path);
    return s;
}

static oct_status load(octet *o, void *arg, oct_err *err)
{
    const source *x = arg;
    OCT_TRY(check_source(x, err));
    oct_arena *a = oct_arena_create();
    octet_core *c = a ? oct_arena_calloc(a, 1, sizeof *c) : NULL;
    if (!c) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    c->arena = a;
    c->refs = 1;
    const oct_status s = load_core(x, c, err);
    release_core(c); /* the model has a reference of its own */
    return s;
}

/* "-" would be standard input, which is the process's own. */
static oct_status load_file(octet *o, void *arg, oct_err *err)
{
    const source *x = arg;
    OCT_TRY(check_source(x, err));
    const int fd = oct_path_fd(x->path);
    if (strcmp(x->path, "-") == 0 || (fd >= 0 && fd <= 2))
        return oct_fail(err, OCT_EUSAGE, "'%s': the library reads and writes files, not the streams of its process",
                        x->path);
    return load(o, arg, err);
}

octet_status octet_model_load(octet *o, const char *path, int threads, octet_model **m)
{
    if (m)
        *m = NULL;
    return octet_do(o, load_file, &(source){ .path = path, .threads = threads, .out = m });
}

static oct_status load_bytes(octet *o, void *arg, oct_err *err)
{
    source *x = arg;
    OCT_TRY(check_source(x, err));
    if (!x->data && x->size)
        return oct_fail(err, OCT_EUSAGE, "%zu bytes at NULL", x->size);
    if (!x->constants && x->n_constants)
        return oct_fail(err, OCT_EUSAGE, "%zu constants at NULL", x->n_constants);
    x->data = x->data ? x->data : "";
    return load(o, x, err);
}

octet_status octet_model_load_memory(octet *o, const void *data, size_t size, int threads, octet_model **m)
{
    if (m)
        *m = NULL;
    return octet_do(o, load_bytes,
                    &(source){ .path = "model in memory", .data = data, .size = size, .threads = threads, .out = m });
}

octet_status octet_model_load_graph(octet *o, const void *data, size_t size, const octet_array *constants,
                                    size_t n_constants, int threads, octet_model **m)
{
    if (m)
        *m = NULL;
    return octet_do(o, load_bytes,
                    &(source){ .path = "graph in memory",
                               .data = data,
                               .size = size,
                               .constants = constants,
                               .n_constants = n_constants,
                               .threads = threads,
                               .out = m });
}

typedef struct sharing {
    const octet_model *m;
    octet_model **out;
} sharing;

static oct_status share(octet *o, void *arg, oct_err *err)
{
    const sharing *x = arg;
    if (!x->out)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the model: shared is NULL");
    if (!x->m)
        return oct_fail(err, OCT_EUSAGE, "the model is NULL");
    return make_model(x->m->core, x->out, err);
}

octet_status octet_model_share(octet *o, const octet_model *m, octet_model **shared)
{
    if (shared)
        *shared = NULL;
    return octet_do(o, share, &(sharing){ m, shared });
}

/* ---- questions ---- */

const octet_port *octet_model_input(const octet_model *m, size_t i)
{
    return m && i < m->core->n_in ? &m->core->input[i] : NULL;
}

const octet_port *octet_model_output(const octet_model *m, size_t i)
{
    return m && i < m->core->n_out ? &m->core->output[i] : NULL;
}

const char *octet_model_metadata(const octet_model *m, const char *key)
{
    return m && key ? oct_model_meta(m->core->model, key) : NULL;
}
