/* A group of nodes that was claimed becomes a model of the library, and a node of ONNX Runtime that runs it. */
#define _GNU_SOURCE
#include "context.h"
#include "graph_bytes.h"
#include "provider_int.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What one run needs for itself. Runs at the same time have one each; they share the weights. */
typedef struct state {
    struct state *next;
    octet *o;
    octet_model *model;
    octet_array *in; /* [n_in] */
} state;

struct program {
    ort_compute_info base; /* first member */
    struct program *next;  /* of those that wait to be compiled */
    const provider *provider;
    octet_model *model; /* all states share it. It runs nothing itself */
    bytes context;      /* what an EPContext model will have of it */
    uint8_t *message;   /* the model; stays as long as it */
    uint8_t *constants; /* the bytes of its constants: ONNX Runtime releases its own */
    mapped_file *files; /* that have other constants */
    int lanes;          /* parts of the work for the session's threads; 1: the library has threads of its own */
    size_t n_in, n_out;
    size_t *in_at, *out_at; /* for each input and output of the model: its number at the fused node */
    pthread_mutex_t lock;
    state *idle; /* states that no run uses, last used first; guarded by lock */
};

/* ---- states ---- */

static void free_state(state *s)
{
    if (!s)
        return;
    octet_model_free(s->model);
    octet_close(s->o);
    free(s->in);
    free(s);
}

static state *new_state(size_t n_in)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->o = octet_open();
    s->in = calloc(n_in + 1, sizeof *s->in);
    if (!s->o || !s->in) {
        free_state(s);
        return NULL;
    }
    return s;
}

static void give_back(program *x, state *s)
{
    pthread_mutex_lock(&x->lock);
    s->next = x->idle;
    x->idle = s;
    pthread_mutex_unlock(&x->lock);
}

static state *take_idle(program *x)
{
    pthread_mutex_lock(&x->lock);
    state *s = x->idle;
    if (s)
        x->idle = s->next;
    pthread_mutex_unlock(&x->lock);
    return s;
}

/* ---- runs ---- */

static ort_status *take_input(const ort_api *api, const ort_context *c, size_t at, octet_array *a)
{
    const ort_value *v = NULL;
    ort_tensor_info *t;
    size_t rank;
    int type;
    void *data;
    TRY(api->KernelContext_GetInput(c, at, &v));
    if (!v)
        return fail(api, "input '%s' is missing", a->name);
    TRY(api->GetTensorTypeAndShape(v, &t));
    ort_status *s = api->GetTensorElementType(t, &type);
    s = s ? s : api->GetDimensionsCount(t, &rank);
    if (!s && rank > OCTET_MAX_RANK)
        s = fail(api, "input '%s' has %zu dimensions", a->name, rank);
    s = s ? s : api->GetDimensions(t, a->dims, rank);
    api->ReleaseTensorTypeAndShapeInfo(t);
    s = s ? s : api->GetTensorMutableData((ort_value *)v, &data);
    if (s)
        return s;
    a->type = (octet_type)type;
    a->rank = (int)rank;
    a->data = data;
    return NULL;
}

/* ONNX Runtime makes an output of the type that the graph says, and believes a file more than its operators. */
static ort_status *check_type(const ort_api *api, const ort_value *v, const octet_array *a)
{
    ort_tensor_info *t;
    int type;
    TRY(api->GetTensorTypeAndShape(v, &t));
    ort_status *s = api->GetTensorElementType(t, &type);
    api->ReleaseTensorTypeAndShapeInfo(t);
    if (!s && type != (int)a->type)
        s = fail(api, "output '%s' has elements of type %d, but the model says %d", a->name, (int)a->type, type);
    return s;
}

typedef struct run_context {
    const program *program;
    const ort_api *api;
    ort_context *context;
    ort_status *failed; /* the first failure of an output */
} run_context;

/* Memory of ONNX Runtime's for an output; *data stays NULL where nobody reads it. */
static ort_status *take_output(const ort_api *api, ort_context *c, size_t at, const octet_array *a, void **data)
{
    ort_value *v = NULL;
    size_t size;
    if (!array_size(a, &size))
        return fail(api, "output '%s' has a type that is no array", a->name);
    TRY(api->KernelContext_GetOutput(c, at, a->dims, (size_t)a->rank, &v));
    if (!v)
        return NULL;
    TRY(check_type(api, v, a));
    return size ? api->GetTensorMutableData(v, data) : NULL;
}

static void *place_output(void *context, size_t i, const octet_array *a)
{
    run_context *r = context;
    void *data = NULL;
    if (!r->failed)
        r->failed = take_output(r->api, r->context, r->program->out_at[i], a, &data);
    return r->failed ? NULL : data;
}

/* Lets ONNX Runtime's threads do the work. What they have left undone after a failure is done here: parts that are
 * complete find nothing to do. */
static void on_session_threads(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg)
{
    const run_context *r = context;
    ort_status *s = r->api->KernelContext_ParallelFor(r->context, work, n, 0, arg);
    if (!s)
        return;
    r->api->ReleaseStatus(s);
    for (size_t i = 0; i < n; i++)
        work(arg, i);
}

static ort_status *set_threads(const program *x, state *s, run_context *r)
{
    if (x->lanes > 1 && octet_model_parallel(s->o, s->model, x->lanes, on_session_threads, r) != OCTET_OK)
        return fail_with(x->provider->api, s->o);
    return NULL;
}

static ort_status *run(const program *x, state *s, ort_context *c)
{
    const ort_api *api = x->provider->api;
    for (size_t i = 0; i < x->n_in; i++)
        TRY(take_input(api, c, x->in_at[i], &s->in[i]));
    run_context r = { x, api, c, NULL };
    TRY(set_threads(x, s, &r));
    if (octet_model_run_into(s->o, s->model, s->in, x->n_in, place_output, &r) != OCTET_OK && !r.failed)
        return fail_with(api, s->o);
    return r.failed;
}

/* A state beside those that are in use. */
static ort_status *another_state(program *x, state **out)
{
    const ort_api *api = x->provider->api;
    state *s = new_state(x->n_in);
    ort_status *failed = s ? NULL : no_memory(api);
    if (!failed && octet_model_share(s->o, x->model, &s->model) != OCTET_OK)
        failed = fail_with(api, s->o);
    if (!failed && x->provider->options.profile && octet_model_profile(s->o, s->model, 1) != OCTET_OK)
        failed = fail_with(api, s->o);
    if (failed) {
        free_state(s);
        return failed;
    }
    for (size_t i = 0; i < x->n_in; i++)
        s->in[i].name = octet_model_input(s->model, i)->name;
    *out = s;
    return NULL;
}

static ort_status *compute(ort_compute_info *base, void *unused, ort_context *c)
{
    program *x = (program *)base;
    state *s = take_idle(x);
    if (!s)
        TRY(another_state(x, &s));
    ort_status *failed = run(x, s, c);
    give_back(x, s);
    return failed;
}

/* ONNX Runtime keeps one state for a node, which all its runs get: not what a run needs for itself. */
static ort_status *create_state(ort_compute_info *base, void *context, void **out)
{
    *out = base;
    return NULL;
}

static void release_state(ort_compute_info *base, void *unused)
{
}

/* ---- profiles ---- */

/* A field, with blanks for what would end it. */
static void put_field(FILE *f, const char *s)
{
    for (; *s; s++)
        fputc((unsigned char)*s < ' ' ? ' ' : *s, f);
    fputc('\t', f);
}

/* A line for each step that ran. What cannot be written is lost: a session that ends tells nobody. */
static void put_profile(const program *x, const state *s)
{
    FILE *f = x->provider->options.profile;
    octet_step step;
    flockfile(f); /* lines of one state stand together */
    for (size_t i = 0; octet_model_step(s->model, i, &step); i++) {
        if (!step.calls)
            continue;
        put_field(f, octet_model_output(x->model, 0)->name);
        put_field(f, step.name);
        put_field(f, step.op);
        put_field(f, step.scheme);
        put_field(f, step.algorithm);
        put_field(f, step.kernel);
        fprintf(f, "%" PRIu64 "\t%.6f\t%" PRIu64 "\n", step.calls, step.seconds * 1e3, step.macs);
    }
    funlockfile(f);
}

/* ---- programs ---- */

static void free_program(program *x)
{
    if (!x)
        return;
    for (state *s; (s = x->idle);) {
        x->idle = s->next;
        if (x->provider->options.profile)
            put_profile(x, s);
        free_state(s);
    }
    octet_model_free(x->model);
    pthread_mutex_destroy(&x->lock);
    free(x->in_at);
    free(x->out_at);
    free(x->constants);
    external_free(x->files);
    free(x->context.at);
    free(x->message);
    free(x);
}

/* New pages cost more than what is copied there. */
static void *with_huge_pages(void *p, size_t size)
{
    const uintptr_t page = 2 << 20, from = ((uintptr_t)p + page - 1) & ~(page - 1),
                    to = ((uintptr_t)p + size) & ~(page - 1);
    if (p && from < to)
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish */
    return p;
}

/* Copies the constants that are ONNX Runtime's, each aligned for any type, and lets the arrays refer to the copies. */
static ort_status *keep_constants(program *x, graph_bytes *b)
{
    enum { ALIGN = 64 };
    size_t total = ALIGN, size;
    x->files = b->files;
    b->files = NULL;
    for (size_t i = 0; i < b->n_constants; i++) {
        if (external_has(x->files, b->constants[i].data))
            continue;
        array_size(&b->constants[i], &size);
        if (__builtin_add_overflow(total, size + ALIGN, &total))
            return no_memory(x->provider->api);
    }
    if (!(x->constants = with_huge_pages(malloc(total), total)))
        return no_memory(x->provider->api);
    uint8_t *at = x->constants;
    for (size_t i = 0; i < b->n_constants; i++) {
        if (external_has(x->files, b->constants[i].data))
            continue;
        array_size(&b->constants[i], &size);
        at += -(uintptr_t)at % ALIGN;
        if (size)
            memcpy(at, b->constants[i].data, size);
        b->constants[i].data = at;
        at += size;
    }
    return NULL;
}

/* ONNX Runtime does not say how many threads a session has: no more than processors that it may use, unless somebody
 * wants to wait. Work that is divided among more parts than threads takes longer. */
static int session_lanes(void)
{
    enum { MOST = 64 };
    cpu_set_t set;
    const long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST ? MOST : (int)n;
}

static ort_status *load(program *x, graph_bytes *b)
{
    const ort_api *api = x->provider->api;
    const int threads = x->provider->options.threads;
    x->lanes = threads ? 1 : session_lanes();
    TRY(keep_constants(x, b));
    x->message = b->message.at;
    b->message.at = NULL;
    octet *o = octet_open();
    if (!o)
        return no_memory(api);
    ort_status *s = NULL;
    if (octet_model_load_graph(o, x->message, b->message.n, b->constants, b->n_constants, threads ? threads : 1,
                               &x->model) != OCTET_OK)
        s = fail_with(api, o);
    octet_close(o);
    return s;
}

/* The place of a name in a list, or n. */
static ort_status *place_of(const ort_api *api, const ort_value_info *const *list, size_t n, const char *name,
                            size_t *at)
{
    const char *other;
    for (*at = 0; *at < n; ++*at) {
        TRY(api->GetValueInfoName(list[*at], &other));
        if (strcmp(other, name) == 0)
            return NULL;
    }
    return fail(api, "the fused node has no '%s'", name);
}

typedef const octet_port *(*port_fn)(const octet_model *, size_t);

/* For each input (or output) of the model: its number among those of the fused node. */
static ort_status *match(const program *x, port_fn port, const ort_value_info *const *list, size_t n, size_t *at)
{
    const octet_port *p;
    for (size_t i = 0; (p = port(x->model, i)); i++)
        TRY(place_of(x->provider->api, list, n, p->name, &at[i]));
    return NULL;
}

/* Fails if the program's inputs and outputs are not those of the node. */
static ort_status *match_node(program *x, const ort_node *fused)
{
    const ort_api *api = x->provider->api;
    size_t n;
    TRY(api->Node_GetNumInputs(fused, &n));
    const ort_value_info **list = calloc(n + 1, sizeof *list);
    ort_status *s = list ? api->Node_GetInputs(fused, list, n) : no_memory(api);
    s = s ? s : match(x, octet_model_input, list, n, x->in_at);
    free(list);
    if (s)
        return s;
    TRY(api->Node_GetNumOutputs(fused, &n));
    if (n != x->n_out)
        return fail(api, "the fused node has %zu outputs, not %zu", n, x->n_out);
    list = calloc(n + 1, sizeof *list);
    s = list ? api->Node_GetOutputs(fused, list, n) : no_memory(api);
    s = s ? s : match(x, octet_model_output, list, n, x->out_at);
    free(list);
    return s;
}

static ort_status *take_ports(program *x)
{
    while (octet_model_input(x->model, x->n_in))
        x->n_in++;
    while (octet_model_output(x->model, x->n_out))
        x->n_out++;
    x->in_at = calloc(x->n_in + 1, sizeof *x->in_at);
    x->out_at = calloc(x->n_out + 1, sizeof *x->out_at);
    return x->in_at && x->out_at ? NULL : no_memory(x->provider->api);
}

/* Sets the shape of the input as ONNX Runtime knows it. *fixed stays true if it is known. */
static ort_status *set_shape(const ort_api *api, const ort_value_info *v, octet_array *in, bool *fixed)
{
    octet_array a;
    TRY(value_shape(api, v, &a));
    *fixed &= a.rank > 0;
    for (int i = 0; i < a.rank; i++)
        *fixed &= a.dims[i] >= 0;
    if (!*fixed)
        return NULL;
    in->type = a.type;
    in->rank = a.rank;
    memcpy(in->dims, a.dims, sizeof a.dims);
    return NULL;
}

/* Makes what a run needs, where the graph fixes all shapes: so that it fails now, or never. */
static ort_status *prepare(const program *x, state *s, const ort_graph *g)
{
    const ort_api *api = x->provider->api;
    size_t n, at;
    bool fixed = true;
    TRY(api->Graph_GetNumInputs(g, &n));
    const ort_value_info **list = calloc(n + 1, sizeof *list);
    ort_status *failed = list ? api->Graph_GetInputs(g, list, n) : no_memory(api);
    for (size_t i = 0; i < x->n_in && fixed && !failed; i++) {
        failed = place_of(api, list, n, s->in[i].name, &at);
        failed = failed ? failed : set_shape(api, list[at], &s->in[i], &fixed);
    }
    free(list);
    if (!failed && fixed)
        failed = set_threads(x, s, NULL);
    if (!failed && fixed && octet_model_prepare(s->o, s->model, s->in, x->n_in) != OCTET_OK)
        failed = fail_with(api, s->o);
    return failed;
}

/* A graph of nodes, or of one node that holds such a graph. */
static ort_status *read_graph(const provider *p, const ort_graph *g, graph_bytes *b)
{
    const ort_node *only;
    bool ours = false;
    size_t n;
    *b = (graph_bytes){ 0 };
    TRY(p->api->Graph_GetNumNodes(g, &n));
    if (n == 1) {
        TRY(p->api->Graph_GetNodes(g, &only, 1));
        TRY(context_is_ours(p->api, only, &ours));
    }
    return ours ? context_read(p, g, only, b) : graph_bytes_make(p->api, g, GRAPH_TO_RUN, b);
}

static ort_status *make_program(const provider *p, const ort_graph *g, program **out)
{
    graph_bytes b;
    state *first = NULL;
    program *x = calloc(1, sizeof *x);
    if (!x)
        return no_memory(p->api);
    x->base = (ort_compute_info){ ORT_API_VERSION, create_state, compute, release_state };
    x->provider = p;
    pthread_mutex_init(&x->lock, NULL);
    ort_status *s = read_graph(p, g, &b);
    if (p->options.context)
        s = s ? s : context_make(p->api, &b, &x->context);
    s = s ? s : load(x, &b);
    graph_bytes_free(&b);
    s = s ? s : take_ports(x);
    s = s ? s : another_state(x, &first);
    s = s ? s : prepare(x, first, g);
    if (s) {
        free_state(first);
        free_program(x);
        return s;
    }
    give_back(x, first);
    *out = x;
    return NULL;
}

ort_status *provider_keep_program(provider *p, const ort_graph *view)
{
    program *x;
    TRY(make_program(p, view, &x));
    x->next = p->claimed;
    p->claimed = x;
    return NULL;
}

void provider_drop_program(provider *p)
{
    program *x = p->claimed;
    if (x)
        p->claimed = x->next;
    free_program(x);
}

void provider_drop_programs(provider *p)
{
    while (p->claimed)
        provider_drop_program(p);
}

/* The program that was kept for a node; if there is none, one is made. */
static ort_status *take_program(provider *p, const ort_graph *g, const ort_node *fused, program **out)
{
    program *x;
    for (program **at = &p->claimed; (x = *at); at = &x->next) {
        ort_status *s = match_node(x, fused);
        if (s) {
            p->api->ReleaseStatus(s);
            continue;
        }
        *at = x->next;
        *out = x;
        return NULL;
    }
    TRY(make_program(p, g, &x));
    ort_status *s = match_node(x, fused);
    if (s)
        free_program(x);
    else
        *out = x;
    return s;
}

static void release_contexts(const provider *p, ort_node **contexts, size_t n)
{
    for (size_t i = 0; i < n && p->options.context; i++) {
        p->api->ReleaseNode(contexts[i]);
        contexts[i] = NULL;
    }
}

ort_status *provider_compile(ort_ep *ep, const ort_graph **graphs, const ort_node **fused, size_t n,
                             ort_compute_info **programs, ort_node **contexts)
{
    provider *p = (provider *)ep;
    for (size_t i = 0; i < n; i++) {
        program *x = NULL;
        ort_status *s = take_program(p, graphs[i], fused[i], &x);
        programs[i] = s ? NULL : &x->base;
        if (!s && p->options.context) {
            s = context_node(p, graphs[i], fused[i], &x->context, &contexts[i]);
            free(x->context.at);
            x->context = (bytes){ 0 };
        }
        if (s) {
            release_contexts(p, contexts, i);
            provider_release_programs(ep, programs, i + 1);
            return s;
        }
    }
    p->has_compiled |= n > 0;
    provider_drop_programs(p);
    return NULL;
}

void provider_release_programs(ort_ep *ep, ort_compute_info **programs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free_program((program *)programs[i]);
        programs[i] = NULL;
    }
}
