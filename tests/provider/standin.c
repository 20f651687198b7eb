#include "standin.h"

#include "../../provider/graph_bytes.h"
#include "passes/pass.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ort_status *CreateEpFactories(const char *registered_name, const ort_api_base *base, const ort_logger *logger,
                              ort_ep_factory **factories, size_t max, size_t *n);
ort_status *ReleaseEpFactory(ort_ep_factory *base);

/* ---- objects ---- */

struct ort_status {
    int code;
    char text[];
};

struct ort_value {
    octet_array a;
    const oct_tensor *strings; /* of a constant of strings */
    void *own;                 /* memory, or NULL */
};

struct ort_tensor_info {
    int type;
    size_t rank;
    const oct_dim *shape; /* of a value in the graph; NULL: dims */
    int64_t dims[OCTET_MAX_RANK];
};

struct ort_type_info {
    int kind;
    ort_tensor_info tensor;
};

struct ort_value_info {
    const char *name;
    bool constant, typed;
    ort_type_info type;
    ort_value value;  /* of a constant */
    int64_t external; /* where its elements begin in the file beside the model; 0: they are in the value */
};

struct ort_external {
    int64_t offset;
    size_t size;
};

struct ort_attr {
    const oct_attr *a;
};

typedef struct list {
    const void **at;
    size_t n;
} list;

struct ort_node {
    const char *name, *op, *domain;
    list in, out, attrs, graphs, graph_names;
};

struct ort_graph {
    const oct_graph *g;
    const ort_node *parent;
    ort_value_info *value; /* [g->n_value] */
    ort_node *node;        /* [g->n_node] */
    list nodes, inputs, outputs, constants;
    oct_arena *arena; /* of a view: its memory */
};

struct ort_session_options {
    const char *const *settings;
};

struct ort_pairs {
    const char **keys, **values;
    size_t n;
};

struct ort_logger {
    int unused;
};

struct ort_device {
    int type;
};

struct ort_ep_device {
    const ort_device *of;
};

struct ort_support {
    standin_session *session;
};

struct ort_context {
    const standin_session *session;
    const ort_value **in;
    ort_value **out;
    size_t n_in, n_out;
};

/* What is computed at once: a group of the plug-in, or a node of its own. */
typedef struct step {
    ort_graph *graph;
    ort_node fused;
    ort_compute_info *info; /* of the plug-in */
    void *state;
    bool passes; /* it is the operator that the stand-in knows */
    graph_bytes bytes;
    octet *o;
    octet_model *model; /* of a node that nobody claims */
    pthread_mutex_t lock;
} step;

struct standin_session {
    ort_ep_factory *factory;
    ort_ep *ep;
    oct_model *m;
    oct_arena *arena;
    ort_graph *top;
    int *group; /* [nodes]: of the plug-in, -1: none */
    int n_groups;
    step *steps;
    size_t n_steps;
    ort_compute_info **infos;
    ort_node **contexts; /* of groups, by the plug-in; NULL: it made none */
    int lanes;
    size_t largest;
};

static struct {
    atomic_long live, calls, fail_at;
    _Atomic(const char *) failed;
    pthread_mutex_t lock; /* of the log */
    char log[1 << 16];
} now = { .lock = PTHREAD_MUTEX_INITIALIZER };

long standin_live(void)
{
    return atomic_load(&now.live);
}

void standin_fail_at(long k)
{
    atomic_store(&now.calls, 0);
    atomic_store(&now.failed, NULL);
    atomic_store(&now.fail_at, k);
}

const char *standin_failed(void)
{
    return atomic_load(&now.failed);
}

_Thread_local bool standin_inside;

/* Calls the plug-in. */
#define INSIDE(result, call)    \
    do {                        \
        standin_inside = true;  \
        (result) = (call);      \
        standin_inside = false; \
    } while (0)

/* Memory of the stand-in itself is there, or the test ends. */
static void *room(size_t n, size_t size)
{
    const bool inside = standin_inside;
    standin_inside = false;
    void *p = calloc(n + 1, size);
    if (!p)
        abort();
    standin_inside = inside;
    return p;
}

/* Memory whose size a model decides: NULL where there is none. */
static void *data_room(size_t size)
{
    const bool inside = standin_inside;
    standin_inside = false;
    void *p = calloc(size + 1, 1);
    standin_inside = inside;
    return p;
}

static void *arena_room(oct_arena *a, size_t n, size_t size)
{
    void *p = oct_arena_calloc(a, n + 1, size);
    if (!p)
        abort();
    return p;
}

/* ---- statuses ---- */

static ort_status *CreateStatus(int code, const char *message)
{
    const size_t n = strlen(message) + 1;
    ort_status *s = room(1, sizeof *s + n);
    s->code = code;
    memcpy(s->text, message, n);
    atomic_fetch_add(&now.live, 1);
    return s;
}

static const char *GetErrorMessage(const ort_status *s)
{
    return s->text;
}

static void ReleaseStatus(ort_status *s)
{
    if (s)
        atomic_fetch_sub(&now.live, 1);
    free(s);
}

static bool is_fault(const char *function)
{
    if (atomic_fetch_add(&now.calls, 1) + 1 != atomic_load(&now.fail_at))
        return false;
    atomic_store(&now.failed, function);
    return true;
}

#define MAY_FAIL                                      \
    do {                                              \
        if (is_fault(__func__))                       \
            return CreateStatus(ORT_FAIL, "a fault"); \
    } while (0)

/* Copies what a list has, which must be as much as is asked for. */
static ort_status *copy_list(const list *from, const void *to, size_t n)
{
    if (n != from->n)
        return CreateStatus(ORT_INVALID_ARGUMENT, "a list has another length");
    if (n)
        memcpy((void *)(uintptr_t)to, from->at, n * sizeof *from->at);
    return NULL;
}

static void add(oct_arena *a, list *l, const void *x)
{
    if ((l->n & (l->n - 1)) == 0) { /* full */
        const void **more = arena_room(a, 2 * l->n + 1, sizeof *more);
        if (l->n)
            memcpy(more, l->at, l->n * sizeof *more);
        l->at = more;
    }
    l->at[l->n++] = x;
}

static bool has(const list *l, const void *x)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] == x)
            return true;
    return false;
}

static void add_new(oct_arena *a, list *l, const void *x)
{
    if (!has(l, x))
        add(a, l, x);
}

/* ---- tensors ---- */

static ort_status *GetTensorMutableData(ort_value *v, void **data)
{
    MAY_FAIL;
    *data = (void *)(uintptr_t)v->a.data;
    return NULL;
}

static ort_status *GetStringTensorDataLength(const ort_value *v, size_t *length)
{
    MAY_FAIL;
    if (!v->strings)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no strings");
    *length = 0;
    for (int64_t i = 0; i < v->strings->count; i++)
        *length += ((const oct_str *)v->strings->data)[i].n;
    return NULL;
}

static ort_status *GetStringTensorContent(const ort_value *v, void *text, size_t length, size_t *offsets,
                                          size_t n_offsets)
{
    MAY_FAIL;
    size_t at = 0;
    if (!v->strings || n_offsets != (size_t)v->strings->count)
        return CreateStatus(ORT_INVALID_ARGUMENT, "another number of strings");
    for (size_t i = 0; i < n_offsets; i++) {
        const oct_str *s = (const oct_str *)v->strings->data + i;
        if (s->n > length - at)
            return CreateStatus(ORT_INVALID_ARGUMENT, "no room for strings");
        offsets[i] = at;
        if (s->n)
            memcpy((char *)text + at, s->s, s->n);
        at += s->n;
    }
    return NULL;
}

static ort_status *CastTypeInfoToTensorInfo(const ort_type_info *t, const ort_tensor_info **tensor)
{
    MAY_FAIL;
    *tensor = t->kind == ORT_TYPE_TENSOR ? &t->tensor : NULL;
    return NULL;
}

static ort_status *GetOnnxTypeFromTypeInfo(const ort_type_info *t, int *type)
{
    MAY_FAIL;
    *type = t->kind;
    return NULL;
}

static ort_status *GetTensorElementType(const ort_tensor_info *t, int *type)
{
    MAY_FAIL;
    *type = t->type;
    return NULL;
}

static ort_status *GetDimensionsCount(const ort_tensor_info *t, size_t *rank)
{
    MAY_FAIL;
    *rank = t->rank;
    return NULL;
}

static ort_status *GetDimensions(const ort_tensor_info *t, int64_t *dims, size_t rank)
{
    MAY_FAIL;
    for (size_t i = 0; i < rank && i < t->rank; i++)
        dims[i] = t->shape ? t->shape[i].n : t->dims[i];
    return NULL;
}

static ort_status *GetSymbolicDimensions(const ort_tensor_info *t, const char **names, size_t rank)
{
    MAY_FAIL;
    for (size_t i = 0; i < rank && i < t->rank; i++)
        names[i] = t->shape && t->shape[i].sym ? t->shape[i].sym : "";
    return NULL;
}

static ort_status *GetTensorTypeAndShape(const ort_value *v, ort_tensor_info **out)
{
    MAY_FAIL;
    ort_tensor_info *t = room(1, sizeof *t);
    t->type = (int)v->a.type;
    t->rank = (size_t)v->a.rank;
    memcpy(t->dims, v->a.dims, sizeof t->dims);
    atomic_fetch_add(&now.live, 1);
    *out = t;
    return NULL;
}

static void ReleaseTensorTypeAndShapeInfo(ort_tensor_info *t)
{
    if (t)
        atomic_fetch_sub(&now.live, 1);
    free(t);
}

static void ReleaseValue(ort_value *v)
{
    if (!v)
        return;
    atomic_fetch_sub(&now.live, 1);
    free(v->own);
    free(v);
}

/* A value in memory of its own; data NULL: zeros. */
static ort_value *new_value(const octet_array *a)
{
    size_t size;
    if (!array_size(a, &size))
        return NULL;
    ort_value *v = room(1, sizeof *v);
    v->a = *a;
    if (!(v->a.data = v->own = data_room(size))) {
        free(v);
        return NULL;
    }
    if (a->data && size)
        memcpy(v->own, a->data, size);
    atomic_fetch_add(&now.live, 1);
    return v;
}

/* ---- settings and the log ---- */

static ort_status *GetSessionOptionsConfigEntries(const ort_session_options *o, ort_pairs **out)
{
    MAY_FAIL;
    size_t n = 0;
    while (o->settings && o->settings[2 * n])
        n++;
    *out = room(1, sizeof **out);
    (*out)->keys = room(n, sizeof *(*out)->keys);
    (*out)->values = room(n, sizeof *(*out)->values);
    (*out)->n = n;
    for (size_t i = 0; i < n; i++) {
        (*out)->keys[i] = o->settings[2 * i];
        (*out)->values[i] = o->settings[2 * i + 1];
    }
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static void GetKeyValuePairs(const ort_pairs *p, const char *const **keys, const char *const **values, size_t *n)
{
    *keys = p->keys;
    *values = p->values;
    *n = p->n;
}

static void ReleaseKeyValuePairs(ort_pairs *p)
{
    if (!p)
        return;
    atomic_fetch_sub(&now.live, 1);
    free(p->keys);
    free(p->values);
    free(p);
}

static ort_status *Logger_LogMessage(const ort_logger *l, int severity, const char *message, const char *file, int line,
                                     const char *function)
{
    MAY_FAIL;
    pthread_mutex_lock(&now.lock);
    const size_t n = strlen(now.log);
    if (sizeof now.log - n > 1)
        snprintf(now.log + n, sizeof now.log - n, "%d %s\n", severity, message);
    pthread_mutex_unlock(&now.lock);
    return NULL;
}

/* ---- runs ---- */

static ort_status *KernelContext_GetInput(const ort_context *c, size_t i, const ort_value **v)
{
    MAY_FAIL;
    if (i >= c->n_in)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no such input");
    *v = c->in[i];
    return NULL;
}

static ort_status *KernelContext_GetOutput(ort_context *c, size_t i, const int64_t *dims, size_t rank, ort_value **v)
{
    MAY_FAIL;
    if (i >= c->n_out || rank > OCTET_MAX_RANK)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no such output");
    if (!c->out[i]->own) {
        octet_array a = c->out[i]->a;
        size_t size;
        a.rank = (int)rank;
        if (rank)
            memcpy(a.dims, dims, rank * sizeof *dims);
        if (!array_size(&a, &size))
            return CreateStatus(ORT_INVALID_ARGUMENT, "dimensions of no tensor");
        if (!(a.data = c->out[i]->own = data_room(size)))
            return CreateStatus(ORT_FAIL, "no memory for an output");
        c->out[i]->a = a;
    }
    *v = c->out[i];
    return NULL;
}

typedef struct share {
    void (*fn)(void *arg, size_t i);
    void *arg;
    size_t n;
    atomic_size_t next;
} share;

static void *work(void *arg)
{
    share *s = arg;
    for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n;)
        s->fn(s->arg, i);
    return NULL;
}

static atomic_long n_divided;

long standin_divided(void)
{
    return n_divided;
}

/* When it fails, it has done a part of the work. */
static ort_status *KernelContext_ParallelFor(const ort_context *c, void (*fn)(void *arg, size_t i), size_t n,
                                             size_t batches, void *arg)
{
    enum { MOST = 16 };
    share s = { .fn = fn, .arg = arg, .n = n };
    pthread_t thread[MOST];
    int started = 0;
    n_divided++;
    if (is_fault(__func__)) {
        fn(arg, 0);
        return CreateStatus(ORT_FAIL, "a fault");
    }
    const int most = c->session->lanes < MOST ? c->session->lanes : MOST;
    while (started + 1 < most && (size_t)started + 1 < n && pthread_create(&thread[started], NULL, work, &s) == 0)
        started++;
    work(&s);
    while (started)
        pthread_join(thread[--started], NULL);
    return NULL;
}

/* ---- the graph ---- */

static ort_status *GetValueInfoName(const ort_value_info *v, const char **name)
{
    MAY_FAIL;
    *name = v->name;
    return NULL;
}

static ort_status *GetValueInfoTypeInfo(const ort_value_info *v, const ort_type_info **type)
{
    MAY_FAIL;
    *type = v->typed ? &v->type : NULL;
    return NULL;
}

static int HardwareDevice_Type(const ort_device *d)
{
    return d->type;
}

static ort_status *ValueInfo_GetInitializerValue(const ort_value_info *v, const ort_value **value)
{
    MAY_FAIL;
    if (v->external)
        return CreateStatus(ORT_FAIL, "a constant in a file is asked for");
    *value = v->constant && v->value.a.type ? &v->value : NULL;
    return NULL;
}

static const char model_path[] = "./standin.onnx", data_path[] = "standin.data";

static ort_status *ValueInfo_GetExternalInitializerInfo(const ort_value_info *v, ort_external **x)
{
    MAY_FAIL;
    *x = NULL;
    if (!v->external)
        return NULL;
    *x = room(1, sizeof **x);
    (*x)->offset = v->external;
    array_size(&v->value.a, &(*x)->size);
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static void ReleaseExternalInitializerInfo(ort_external *x)
{
    free(x);
    atomic_fetch_sub(&now.live, 1);
}

static const char *ExternalInitializerInfo_GetFilePath(const ort_external *x)
{
    return data_path;
}

static int64_t ExternalInitializerInfo_GetFileOffset(const ort_external *x)
{
    return x->offset;
}

static size_t ExternalInitializerInfo_GetByteSize(const ort_external *x)
{
    return x->size;
}

static ort_status *Graph_GetModelPath(const ort_graph *g, const char **path)
{
    MAY_FAIL;
    *path = model_path;
    return NULL;
}

/* Puts the elements of constants that have several into a file, one behind the other, from an odd place on. */
static void put_external(ort_graph *g)
{
    FILE *f = fopen(data_path, "wb");
    size_t size;
    if (!f)
        abort();
    fputc(0, f);
    for (size_t i = 0; i < g->constants.n; i++) {
        ort_value_info *v = (ort_value_info *)(uintptr_t)g->constants.at[i];
        if (!v->value.a.rank || !v->value.a.data || !array_size(&v->value.a, &size) || !size)
            continue;
        v->external = ftell(f);
        fwrite(v->value.a.data, 1, size, f);
    }
    fclose(f);
}

static ort_status *ValueInfo_IsConstantInitializer(const ort_value_info *v, bool *constant)
{
    MAY_FAIL;
    *constant = v->constant;
    return NULL;
}

static const oct_graph *outermost(const oct_graph *g)
{
    while (g->outer)
        g = g->outer;
    return g;
}

static ort_status *Graph_GetNumOperatorSets(const ort_graph *g, size_t *n)
{
    MAY_FAIL;
    *n = outermost(g->g)->n_opset;
    return NULL;
}

static ort_status *Graph_GetOperatorSets(const ort_graph *g, const char **domains, int64_t *versions, size_t n)
{
    MAY_FAIL;
    const oct_graph *o = outermost(g->g);
    for (size_t i = 0; i < n && i < o->n_opset; i++) {
        domains[i] = o->opset[i].domain;
        versions[i] = o->opset[i].version;
    }
    return NULL;
}

#define LIST_FUNCTIONS(of, what, type, items, member)                            \
    static ort_status *of##_GetNum##what(const type *x, size_t *n)               \
    {                                                                            \
        MAY_FAIL;                                                                \
        *n = x->member.n;                                                        \
        return NULL;                                                             \
    }                                                                            \
    static ort_status *of##_Get##what(const type *x, const items **to, size_t n) \
    {                                                                            \
        MAY_FAIL;                                                                \
        return copy_list(&x->member, to, n);                                     \
    }
LIST_FUNCTIONS(Graph, Inputs, ort_graph, ort_value_info, inputs)
LIST_FUNCTIONS(Graph, Outputs, ort_graph, ort_value_info, outputs)
LIST_FUNCTIONS(Graph, Initializers, ort_graph, ort_value_info, constants)
LIST_FUNCTIONS(Graph, Nodes, ort_graph, ort_node, nodes)
LIST_FUNCTIONS(Node, Inputs, ort_node, ort_value_info, in)
LIST_FUNCTIONS(Node, Outputs, ort_node, ort_value_info, out)
LIST_FUNCTIONS(Node, Attributes, ort_node, ort_attr, attrs)

static ort_status *Graph_GetParentNode(const ort_graph *g, const ort_node **n)
{
    MAY_FAIL;
    *n = g->parent;
    return NULL;
}

static void set_border(oct_arena *a, ort_graph *group, const ort_graph *top);

/* The nodes of the outermost graph that are in the list. */
static ort_status *Graph_GetGraphView(const ort_graph *g, const ort_node **nodes, size_t n, ort_graph **view)
{
    MAY_FAIL;
    const bool inside = standin_inside;
    standin_inside = false;
    oct_arena *a = oct_arena_create();
    if (!a)
        abort();
    *view = arena_room(a, 1, sizeof **view);
    (*view)->arena = a;
    for (size_t i = 0; i < g->nodes.n; i++)
        for (size_t k = 0; k < n; k++)
            if (g->nodes.at[i] == nodes[k])
                add(a, &(*view)->nodes, nodes[k]);
    set_border(a, *view, g);
    if ((*view)->inputs.n) /* as 1.23 does where several nodes read an input */
        add(a, &(*view)->inputs, (*view)->inputs.at[0]);
    standin_inside = inside;
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static void ReleaseGraph(ort_graph *g)
{
    if (!g)
        return;
    atomic_fetch_sub(&now.live, 1);
    oct_arena_destroy(g->arena);
}

static ort_status *Node_GetName(const ort_node *n, const char **name)
{
    MAY_FAIL;
    *name = n->name;
    return NULL;
}

static ort_status *Node_GetOperatorType(const ort_node *n, const char **op)
{
    MAY_FAIL;
    *op = n->op;
    return NULL;
}

static ort_status *Node_GetDomain(const ort_node *n, const char **domain)
{
    MAY_FAIL;
    *domain = n->domain;
    return NULL;
}

static ort_status *Node_GetNumSubgraphs(const ort_node *n, size_t *count)
{
    MAY_FAIL;
    *count = n->graphs.n;
    return NULL;
}

static ort_status *Node_GetSubgraphs(const ort_node *n, const ort_graph **graphs, size_t count, const char **names)
{
    MAY_FAIL;
    ort_status *s = copy_list(&n->graphs, graphs, count);
    return s ? s : copy_list(&n->graph_names, names, count);
}

/* ---- attributes ---- */

static int attr_type(const oct_attr *a)
{
    static const int8_t types[] = {
        [OCT_ATTR_FLOAT] = ORT_ATTR_FLOAT,   [OCT_ATTR_INT] = ORT_ATTR_INT,        [OCT_ATTR_STRING] = ORT_ATTR_STRING,
        [OCT_ATTR_TENSOR] = ORT_ATTR_TENSOR, [OCT_ATTR_GRAPH] = ORT_ATTR_GRAPH,    [OCT_ATTR_FLOATS] = ORT_ATTR_FLOATS,
        [OCT_ATTR_INTS] = ORT_ATTR_INTS,     [OCT_ATTR_STRINGS] = ORT_ATTR_STRINGS
    };
    return (size_t)a->type < sizeof types ? types[a->type] : ORT_ATTR_UNDEFINED;
}

static ort_status *OpAttr_GetType(const ort_attr *a, int *type)
{
    MAY_FAIL;
    *type = attr_type(a->a);
    return NULL;
}

static ort_status *OpAttr_GetName(const ort_attr *a, const char **name)
{
    MAY_FAIL;
    *name = a->a->name;
    return NULL;
}

/* Views a tensor; it has no type when its elements are of a kind that ONNX Runtime has no number for. */
static void view(const oct_tensor *t, const char *name, ort_value *v)
{
    *v = (ort_value){ .a = { .name = name } };
    if (t->rank > OCTET_MAX_RANK || t->dtype > OCT_F4E2M1 || (t->bytes && !t->data))
        return;
    v->a.type = (octet_type)t->dtype;
    v->a.rank = t->rank;
    v->a.data = t->data;
    if (t->rank)
        memcpy(v->a.dims, t->dims, (size_t)t->rank * sizeof *t->dims);
    if (t->dtype == OCT_STRING)
        v->strings = t;
}

static ort_status *OpAttr_GetTensorAttributeAsOrtValue(const ort_attr *a, ort_value **out)
{
    MAY_FAIL;
    ort_value v;
    if (attr_type(a->a) != ORT_ATTR_TENSOR || !a->a->t)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no tensor");
    view(a->a->t, NULL, &v);
    if (!v.a.type)
        return CreateStatus(ORT_INVALID_ARGUMENT, "a tensor without elements");
    if (v.strings) {
        *out = room(1, sizeof v);
        **out = v;
        atomic_fetch_add(&now.live, 1);
        return NULL;
    }
    *out = new_value(&v.a);
    return *out ? NULL : CreateStatus(ORT_INVALID_ARGUMENT, "a tensor without a size");
}

static ort_status *ReadOpAttr(const ort_attr *x, int type, void *data, size_t size, size_t *needed)
{
    MAY_FAIL;
    const oct_attr *a = x->a;
    const void *from = NULL;
    size_t n = 0;
    if (type != attr_type(a))
        return CreateStatus(ORT_INVALID_ARGUMENT, "another type");
    switch (type) {
    case ORT_ATTR_INT: from = &a->i, n = sizeof a->i; break;
    case ORT_ATTR_INTS: from = a->ints, n = (size_t)a->n * sizeof *a->ints; break;
    case ORT_ATTR_FLOAT: from = &a->f, n = sizeof a->f; break;
    case ORT_ATTR_FLOATS: from = a->floats, n = (size_t)a->n * sizeof *a->floats; break;
    case ORT_ATTR_STRING: from = a->s, n = a->s_len; break;
    case ORT_ATTR_STRINGS:
        for (int i = 0; i < a->n; i++)
            n += strlen(a->strings[i]) + 1;
        break;
    default: return CreateStatus(ORT_INVALID_ARGUMENT, "no such type");
    }
    *needed = n;
    if (size < n)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no room for the attribute");
    if (n && from)
        memcpy(data, from, n);
    for (int i = 0; i < a->n && type == ORT_ATTR_STRINGS; i++) {
        const size_t k = strlen(a->strings[i]) + 1;
        memcpy(data, a->strings[i], k);
        data = (char *)data + k;
    }
    return NULL;
}

/* Attributes and nodes that the plug-in makes. They have memory of their own. */

static void *copy_of(const void *from, size_t n)
{
    void *to = room(n + 1, 1);
    memcpy(to, from, n);
    return to;
}

static ort_status *CreateOpAttr(const char *name, const void *data, int n, int type, ort_attr **out)
{
    MAY_FAIL;
    if (n < 0 || (type != ORT_ATTR_STRING && (type != ORT_ATTR_INT || n != 1)))
        return CreateStatus(ORT_INVALID_ARGUMENT, "an attribute of another kind");
    oct_attr a = { .name = copy_of(name, strlen(name)), .type = type == ORT_ATTR_INT ? OCT_ATTR_INT : OCT_ATTR_STRING };
    if (type == ORT_ATTR_INT)
        memcpy(&a.i, data, sizeof a.i);
    else
        a.s = copy_of(data, a.s_len = (size_t)n);
    *out = room(1, sizeof **out);
    (*out)->a = copy_of(&a, sizeof a);
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static void free_attr(const ort_attr *a)
{
    free((void *)(uintptr_t)a->a->name);
    free((void *)(uintptr_t)a->a->s);
    free((void *)(uintptr_t)a->a);
    free((void *)(uintptr_t)a);
}

static void ReleaseOpAttr(ort_attr *a)
{
    if (!a)
        return;
    atomic_fetch_sub(&now.live, 1);
    free_attr(a);
}

/* Copies the attributes. */
static ort_status *CreateNode(const char *op, const char *domain, const char *name, const char *const *in, size_t n_in,
                              const char *const *out, size_t n_out, ort_attr **attrs, size_t n_attrs, ort_node **node)
{
    MAY_FAIL;
    if (strcmp(op, "EPContext") != 0 || strcmp(domain, "com.microsoft") != 0 || !*name || !n_in || !n_out)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no EPContext node");
    *node = room(1, sizeof **node);
    (*node)->attrs = (list){ room(n_attrs, sizeof(void *)), n_attrs };
    for (size_t i = 0; i < n_attrs; i++) {
        ort_attr *a = NULL;
        const long at = atomic_exchange(&now.fail_at, 0), calls = atomic_load(&now.calls);
        const bool number = attr_type(attrs[i]->a) == ORT_ATTR_INT;
        if (CreateOpAttr(attrs[i]->a->name, number ? (const void *)&attrs[i]->a->i : attrs[i]->a->s,
                         number ? 1 : (int)attrs[i]->a->s_len, attr_type(attrs[i]->a), &a))
            abort();
        atomic_store(&now.calls, calls);
        atomic_store(&now.fail_at, at);
        atomic_fetch_sub(&now.live, 1);
        (*node)->attrs.at[i] = a;
    }
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static void ReleaseNode(ort_node *n)
{
    if (!n)
        return;
    atomic_fetch_sub(&now.live, 1);
    for (size_t i = 0; i < n->attrs.n; i++)
        free_attr(n->attrs.at[i]);
    free((void *)(uintptr_t)n->attrs.at);
    free(n);
}

/* ---- what providers answer ---- */

static ort_status *CreateEpDevice(struct ort_ep_factory *f, const ort_device *d, const ort_pairs *metadata,
                                  const ort_pairs *options, ort_ep_device **out)
{
    MAY_FAIL;
    *out = room(1, sizeof **out);
    (*out)->of = d;
    atomic_fetch_add(&now.live, 1);
    return NULL;
}

static ort_status *EpGraphSupportInfo_AddNodesToFuse(ort_support *support, const ort_node *const *nodes, size_t n,
                                                     const ort_fusion_options *options)
{
    MAY_FAIL;
    standin_session *s = support->session;
    if (!n || !options->drop_constant_initializers)
        return CreateStatus(ORT_INVALID_ARGUMENT, "no nodes, or constants are not dropped");
    for (size_t i = 0; i < n; i++) {
        const ptrdiff_t at = nodes[i] - s->top->node;
        if (at < 0 || (size_t)at >= s->top->g->n_node || s->group[at] >= 0)
            return CreateStatus(ORT_INVALID_ARGUMENT, "a node is claimed twice, or in another graph");
        s->group[at] = s->n_groups;
    }
    s->n_groups++;
    return NULL;
}

/* ---- the tables ---- */

static void (*table[400])(void);
static void (*ep_table[8])(void);
static void (*editor_table[8])(void);
static ort_api functions; /* the same by name */

static const void *GetEpApi(void)
{
    return ep_table;
}

static const void *GetModelEditorApi(void)
{
    return editor_table;
}

static const void *GetApi(uint32_t version)
{
    return version <= ORT_API_VERSION ? table : NULL;
}

static const char *GetVersionString(void)
{
    return "1.24.0";
}

static void fill_tables(void)
{
    void (**at)(void) = table;
#define SET(number, result, name, arguments) \
    functions.name = name;                   \
    at[number] = (void (*)(void))functions.name;
    ORT_API_FUNCTIONS(SET)
    at = ep_table;
    ORT_EP_API_FUNCTIONS(SET)
    at = editor_table;
    ORT_EDITOR_API_FUNCTIONS(SET)
#undef SET
}

static const ort_logger logger;
static const ort_device processor = { ORT_DEVICE_CPU }, graphics = { ORT_DEVICE_CPU + 1 };

/* Releases a status and gives its text; false: it is one. */
static bool good(ort_status *s, char error[STANDIN_TEXT])
{
    if (!s)
        return true;
    snprintf(error, STANDIN_TEXT, "%s", s->text);
    ReleaseStatus(s);
    return false;
}

ort_ep_factory *standin_register(char error[STANDIN_TEXT])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const ort_api_base base = { GetApi, GetVersionString };
    const ort_device *devices[] = { &graphics, &processor };
    ort_ep_factory *f = NULL;
    ort_ep_device *of[4] = { NULL };
    size_t n = 0, n_devices = 0;
    pthread_once(&once, fill_tables);
    if (!good(CreateEpFactories("octet", &base, &logger, &f, 1, &n), error))
        return NULL;
    if (n != 1 || strcmp(f->GetName(f), "OctetExecutionProvider") != 0)
        abort();
    const bool known = good(f->GetSupportedDevices(f, devices, 2, of, 4, &n_devices), error);
    if (known && (n_devices != 1 || of[0]->of != &processor))
        abort();
    for (size_t i = 0; i < n_devices; i++) {
        atomic_fetch_sub(&now.live, 1);
        free(of[i]);
    }
    if (known)
        return f;
    standin_unregister(f);
    return NULL;
}

void standin_unregister(ort_ep_factory *f)
{
    if (f)
        ReleaseStatus(ReleaseEpFactory(f));
}

/* ---- a graph as ONNX Runtime shows it ---- */

static void show_value(const oct_graph *g, int i, ort_value_info *x)
{
    enum { SEQUENCE = 4, OPTIONAL = 6 };
    const oct_value *v = &g->value[i];
    x->name = oct_value_name(g, i);
    x->typed = v->kind != OCT_VALUE_TENSOR || v->dtype != OCT_UNDEFINED;
    x->type.kind = v->kind == OCT_VALUE_TENSOR ? ORT_TYPE_TENSOR : v->kind == OCT_VALUE_SEQUENCE ? SEQUENCE : OPTIONAL;
    x->type.tensor.type = v->dtype <= OCT_F4E2M1 ? (int)v->dtype : 0;
    x->type.tensor.rank = v->shape.rank < 0 ? 0 : (size_t)v->shape.rank; /* 0 also where it is unknown */
    x->type.tensor.shape = v->shape.d;
    x->constant = v->outer < 0 && v->producer < 0 && !v->is_input;
    if (x->constant && v->constant)
        view(v->constant, x->name, &x->value);
}

static ort_graph *show_graph(oct_arena *a, const oct_graph *g, const ort_node *parent, bool with_constants);

static void show_node(oct_arena *a, ort_graph *of, int id)
{
    const oct_node *n = &of->g->node[id];
    ort_node *x = &of->node[id];
    x->name = n->name;
    x->op = n->op;
    x->domain = n->domain;
    for (int i = 0; i < n->n_in; i++)
        add(a, &x->in, n->in[i] < 0 ? NULL : &of->value[n->in[i]]);
    for (int i = 0; i < n->n_out; i++)
        add(a, &x->out, n->out[i] < 0 ? NULL : &of->value[n->out[i]]);
    ort_attr *attrs = arena_room(a, n->n_attr, sizeof *attrs);
    for (size_t i = 0; i < n->n_attr; i++) {
        attrs[i].a = &n->attr[i];
        add(a, &x->attrs, &attrs[i]);
        if (n->attr[i].type != OCT_ATTR_GRAPH || n->attr[i].n < 1)
            continue;
        add(a, &x->graphs, show_graph(a, n->attr[i].graphs[0], x, false));
        add(a, &x->graph_names, n->attr[i].name);
    }
}

/* with_constants: they are among the inputs, too, as in old files. */
static ort_graph *show_graph(oct_arena *a, const oct_graph *g, const ort_node *parent, bool with_constants)
{
    ort_graph *x = arena_room(a, 1, sizeof *x);
    *x = (ort_graph){ .g = g, .parent = parent };
    x->value = arena_room(a, g->n_value, sizeof *x->value);
    x->node = arena_room(a, g->n_node, sizeof *x->node);
    for (size_t i = 0; i < g->n_input; i++)
        add(a, &x->inputs, &x->value[g->input[i]]);
    for (size_t i = 0; i < g->n_value; i++)
        if (!g->value[i].dead) {
            show_value(g, (int)i, &x->value[i]);
            if (x->value[i].constant)
                add(a, &x->constants, &x->value[i]);
            if (x->value[i].constant && with_constants)
                add(a, &x->inputs, &x->value[i]);
        }
    for (size_t i = 0; i < g->n_output; i++)
        add(a, &x->outputs, &x->value[g->output[i]]);
    for (size_t i = 0; i < g->n_order; i++) {
        show_node(a, x, g->order[i]);
        add(a, &x->nodes, &x->node[g->order[i]]);
    }
    return x;
}

/* ---- groups ---- */

static bool is_in(const ort_graph *group, const ort_graph *top, int node)
{
    return node >= 0 && has(&group->nodes, &top->node[node]);
}

static void add_read(oct_arena *a, ort_graph *group, const ort_graph *top, int value)
{
    if (value < 0 || is_in(group, top, top->g->value[value].producer))
        return;
    add_new(a, top->value[value].constant ? &group->constants : &group->inputs, &top->value[value]);
}

static void add_made(oct_arena *a, ort_graph *group, const ort_graph *top, int value)
{
    if (value < 0)
        return;
    const oct_value *v = &top->g->value[value];
    bool outside = v->is_output;
    for (size_t i = 0; i < v->n_uses && !outside; i++)
        outside = !is_in(group, top, v->uses[i].node);
    if (outside)
        add_new(a, &group->outputs, &top->value[value]);
}

/* Inputs and outputs of a group, from its nodes. */
static void set_border(oct_arena *a, ort_graph *group, const ort_graph *top)
{
    group->g = top->g;
    group->value = top->value;
    group->node = top->node;
    for (size_t i = 0; i < group->nodes.n; i++) {
        const oct_node *n = &top->g->node[(const ort_node *)group->nodes.at[i] - top->node];
        for (int k = 0; k < n->n_in; k++)
            add_read(a, group, top, n->in[k]);
        for (int k = 0; k < n->n_captured; k++)
            add_read(a, group, top, n->captured[k]);
        for (int k = 0; k < n->n_out; k++)
            add_made(a, group, top, n->out[k]);
    }
}

static void make_steps(standin_session *s)
{
    const oct_graph *g = s->top->g;
    s->steps = arena_room(s->arena, g->n_node, sizeof *s->steps);
    s->n_steps = (size_t)s->n_groups;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i], group = s->group[id];
        step *x = &s->steps[group >= 0 ? (size_t)group : s->n_steps++];
        if (!x->graph)
            x->graph = arena_room(s->arena, 1, sizeof *x->graph);
        add(s->arena, &x->graph->nodes, &s->top->node[id]);
    }
    for (size_t i = 0; i < s->n_steps; i++) {
        step *x = &s->steps[i];
        const ort_node *first = x->graph->nodes.at[0];
        set_border(s->arena, x->graph, s->top);
        x->fused = (ort_node){ "fused", "Fused", "octet", x->graph->inputs, x->graph->outputs, { 0 } };
        x->passes = strcmp(first->op, STANDIN_OP) == 0 && strcmp(first->domain, STANDIN_DOMAIN) == 0;
        pthread_mutex_init(&x->lock, NULL);
        if (i < (size_t)s->n_groups && x->graph->nodes.n > s->largest)
            s->largest = x->graph->nodes.n;
    }
}

/* ---- sessions ---- */

static ort_status *ask_bodies(standin_session *s, const ort_graph *g, ort_support *support)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ort_node *n = g->nodes.at[i];
        for (size_t k = 0; k < n->graphs.n; k++) {
            ort_status *failed = ask_bodies(s, n->graphs.at[k], support);
            if (!failed)
                INSIDE(failed, s->ep->GetCapability(s->ep, n->graphs.at[k], support));
            if (failed)
                return failed;
        }
    }
    return NULL;
}

/* As in ONNX Runtime, a provider that fails here claims nothing. */
static void ask(standin_session *s, bool whole)
{
    const size_t n = s->top->g->n_node;
    ort_support support = { s };
    char ignored[STANDIN_TEXT];
    s->group = arena_room(s->arena, n, sizeof *s->group);
    for (size_t i = 0; i < n; i++)
        s->group[i] = -1;
    ort_status *failed = ask_bodies(s, s->top, &support);
    if (!failed)
        INSIDE(failed, s->ep->GetCapability(s->ep, s->top, &support));
    const bool asked = good(failed, ignored);
    if (!asked || whole)
        s->n_groups = whole && n;
    for (size_t i = 0; (!asked || whole) && i < n; i++)
        s->group[i] = whole ? 0 : -1;
}

static bool compile(standin_session *s, char error[STANDIN_TEXT])
{
    const size_t n = (size_t)s->n_groups;
    const ort_graph **graphs = arena_room(s->arena, n, sizeof *graphs);
    const ort_node **fused = arena_room(s->arena, n, sizeof *fused);
    ort_node **contexts = arena_room(s->arena, n, sizeof *contexts);
    ort_compute_info **infos = arena_room(s->arena, n, sizeof *infos);
    for (size_t i = 0; i < n; i++) {
        graphs[i] = s->steps[i].graph;
        fused[i] = &s->steps[i].fused;
    }
    ort_status *failed = NULL;
    if (n)
        INSIDE(failed, s->ep->Compile(s->ep, graphs, fused, n, infos, contexts));
    if (!good(failed, error)) {
        for (size_t i = 0; i < n; i++)
            if (contexts[i] || infos[i])
                abort();
        return false;
    }
    s->infos = infos;
    s->contexts = contexts;
    for (size_t i = 0; i < n; i++) {
        s->steps[i].info = infos[i];
        INSIDE(failed, infos[i]->CreateState(infos[i], NULL, &s->steps[i].state));
        if (!good(failed, error))
            return false;
    }
    return true;
}

/* A node that nobody claims, as a model of its own; false: it is not one of ours. No call fails in this. */
static bool load_step(step *x)
{
    const long at = atomic_exchange(&now.fail_at, 0), calls = atomic_load(&now.calls);
    ort_status *s = graph_bytes_make(&functions, x->graph, GRAPH_TO_RUN, &x->bytes);
    x->o = octet_open();
    const bool loaded = !s && x->o &&
                        octet_model_load_graph(x->o, x->bytes.message.at, x->bytes.message.n, x->bytes.constants,
                                               x->bytes.n_constants, 1, &x->model) == OCTET_OK;
    ReleaseStatus(s);
    atomic_store(&now.calls, calls);
    atomic_store(&now.fail_at, at);
    return loaded;
}

standin_session *standin_open(ort_ep_factory *f, oct_model *m, const standin_options *options, char error[STANDIN_TEXT])
{
    enum { OLD_IR = 3 }; /* its files have constants among the inputs */
    const ort_device *devices[] = { &processor };
    const ort_pairs *metadata[] = { NULL };
    const ort_session_options settings = { options->settings };
    oct_err ignored = OCT_ERR_INIT;
    standin_session *s = room(1, sizeof *s);
    s->factory = f;
    s->m = m;
    s->lanes = options->lanes ? options->lanes : 1;
    if (!(s->arena = oct_arena_create()))
        abort();
    pthread_mutex_lock(&now.lock);
    now.log[0] = 0;
    pthread_mutex_unlock(&now.lock);
    (void)oct_infer_shapes(m->graph, &ignored); /* as far as it goes */
    s->top = show_graph(s->arena, m->graph, NULL, m->ir_version <= OLD_IR);
    if (options->external)
        put_external(s->top);
    ort_status *failed;
    INSIDE(failed, f->CreateEp(f, devices, metadata, 1, &settings, &logger, &s->ep));
    bool made = good(failed, error);
    if (made) {
        ask(s, options->whole);
        make_steps(s);
        made = compile(s, error);
    }
    for (size_t i = (size_t)s->n_groups; made && i < s->n_steps; i++)
        if (!s->steps[i].passes)
            load_step(&s->steps[i]); /* if it cannot be, runs fail */
    if (made)
        return s;
    standin_close(s);
    return NULL;
}

void standin_close(standin_session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_steps; i++) {
        step *x = &s->steps[i];
        if (x->info && x->state)
            x->info->ReleaseState(x->info, x->state);
        octet_model_free(x->model);
        octet_close(x->o);
        graph_bytes_free(&x->bytes);
        pthread_mutex_destroy(&x->lock);
    }
    for (int i = 0; i < s->n_groups && s->contexts; i++)
        ReleaseNode(s->contexts[i]);
    if (s->infos)
        s->ep->ReleaseNodeComputeInfos(s->ep, s->infos, (size_t)s->n_groups);
    if (s->ep)
        s->factory->ReleaseEp(s->factory, s->ep);
    oct_arena_destroy(s->arena);
    oct_model_free(s->m);
    free(s);
}

standin_facts standin_facts_of(const standin_session *s)
{
    standin_facts f = { .n_nodes = s->top->nodes.n, .n_groups = (size_t)s->n_groups, .largest = s->largest };
    for (int i = 0; i < s->n_groups; i++)
        f.n_claimed += s->steps[i].graph->nodes.n;
    f.log = now.log;
    const ort_node *c = s->contexts && s->n_groups ? s->contexts[0] : NULL;
    for (size_t i = 0; c && i < c->attrs.n; i++) {
        const oct_attr *a = ((const ort_attr *)c->attrs.at[i])->a;
        if (strcmp(a->name, "ep_cache_context") == 0) {
            f.context = a->s;
            f.context_size = a->s_len;
        }
    }
    return f;
}

/* ---- a run ---- */

static bool fault(char error[STANDIN_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fault(char error[STANDIN_TEXT], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, STANDIN_TEXT, format, args);
    va_end(args);
    return false;
}

static bool run_own(step *x, const ort_context *c, char error[STANDIN_TEXT])
{
    octet_array *in = room(c->n_in, sizeof *in);
    const octet_array *out;
    size_t n_out, size;
    if (!x->model) {
        free(in);
        return fault(error, "nobody computes %s: %s", ((const ort_node *)x->graph->nodes.at[0])->op, octet_error(x->o));
    }
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < c->n_in; i++) {
        in[i] = c->in[i]->a;
        in[i].name = ((const ort_value_info *)x->fused.in.at[i])->name;
    }
    bool done = octet_model_run(x->o, x->model, in, c->n_in, &out, &n_out) == OCTET_OK && n_out == c->n_out;
    if (!done)
        fault(error, "%s", octet_error(x->o));
    for (size_t i = 0; done && i < n_out; i++) { /* in the order of the group's outputs */
        done = array_size(&out[i], &size);
        c->out[i]->a = out[i];
        c->out[i]->a.data = c->out[i]->own = done ? data_room(size) : NULL;
        if (c->out[i]->own && size)
            memcpy(c->out[i]->own, out[i].data, size);
    }
    pthread_mutex_unlock(&x->lock);
    free(in);
    return done;
}

static bool run_step(const standin_session *s, step *x, ort_value **slot, char error[STANDIN_TEXT])
{
    ort_context c = { .session = s, .n_in = x->fused.in.n, .n_out = x->fused.out.n };
    bool done;
    c.in = room(c.n_in, sizeof *c.in);
    c.out = room(c.n_out, sizeof *c.out);
    for (size_t i = 0; i < c.n_in; i++)
        c.in[i] = slot[(const ort_value_info *)x->fused.in.at[i] - s->top->value];
    for (size_t i = 0; i < c.n_out; i++) {
        const ort_value_info *v = x->fused.out.at[i];
        c.out[i] = room(1, sizeof **c.out);
        c.out[i]->a.type = (octet_type)v->type.tensor.type;
        c.out[i]->a.name = v->name;
        atomic_fetch_add(&now.live, 1);
        slot[v - s->top->value] = c.out[i];
    }
    if (x->info) {
        ort_status *failed;
        INSIDE(failed, x->info->Compute(x->info, x->state, &c));
        done = good(failed, error);
    } else if (x->passes) {
        size_t size;
        done = c.n_in == 1 && c.n_out == 1 && array_size(&c.in[0]->a, &size);
        if (done && (c.out[0]->own = data_room(size))) {
            c.out[0]->a = c.in[0]->a;
            c.out[0]->a.data = memcpy(c.out[0]->own, c.in[0]->a.data, size);
        }
    } else {
        done = run_own(x, &c, error);
    }
    for (size_t i = 0; i < c.n_out && done; i++)
        if (!c.out[i]->own)
            done = fault(error, "output '%s' was not made", ((const ort_value_info *)x->fused.out.at[i])->name);
    free(c.in);
    free(c.out);
    return done;
}

static bool is_ready(const standin_session *s, const step *x, ort_value *const *slot)
{
    for (size_t i = 0; i < x->fused.in.n; i++)
        if (!slot[(const ort_value_info *)x->fused.in.at[i] - s->top->value])
            return false;
    return true;
}

/* Steps in any order that their inputs allow. */
static bool run_steps(const standin_session *s, ort_value **slot, char error[STANDIN_TEXT])
{
    bool *done = room(s->n_steps, sizeof *done), fine = true, any = true;
    size_t n_done = 0;
    while (any && fine) {
        any = false;
        for (size_t i = 0; i < s->n_steps && fine; i++)
            if (!done[i] && is_ready(s, &s->steps[i], slot)) {
                fine = run_step(s, &s->steps[i], slot, error);
                done[i] = any = true;
                n_done++;
            }
    }
    free(done);
    return fine && (n_done == s->n_steps || fault(error, "%zu groups wait for each other", s->n_steps - n_done));
}

static bool take_outputs(const standin_session *s, ort_value *const *slot, standin_outputs *out,
                         char error[STANDIN_TEXT])
{
    const list *l = &s->top->outputs;
    out->of = room(l->n, sizeof *out->of);
    for (; out->n < l->n; out->n++) {
        const ort_value_info *v = l->at[out->n];
        const ort_value *from = slot[v - s->top->value] ? slot[v - s->top->value] : &v->value;
        size_t size;
        if (!from->a.type || !array_size(&from->a, &size))
            return fault(error, "output '%s' has no value", v->name);
        out->of[out->n] = from->a;
        out->of[out->n].name = v->name;
        if (!(out->of[out->n].data = data_room(size)))
            return fault(error, "no memory for output '%s'", v->name);
        if (size)
            memcpy((void *)(uintptr_t)out->of[out->n].data, from->a.data, size);
    }
    return true;
}

bool standin_run(standin_session *s, const octet_array *in, size_t n_in, standin_outputs *out, char error[STANDIN_TEXT])
{
    const oct_graph *g = s->top->g;
    ort_value **slot = room(g->n_value, sizeof *slot);
    bool fine = n_in == g->n_input || fault(error, "%zu inputs, not %zu", g->n_input, n_in);
    *out = (standin_outputs){ 0 };
    for (size_t i = 0; i < n_in && fine; i++)
        fine = (slot[g->input[i]] = new_value(&in[i])) || fault(error, "input %zu is no array", i);
    fine = fine && run_steps(s, slot, error) && take_outputs(s, slot, out, error);
    for (size_t i = 0; i < g->n_value; i++)
        ReleaseValue(slot[i]);
    free(slot);
    if (!fine)
        standin_outputs_free(out);
    return fine;
}

void standin_outputs_free(standin_outputs *o)
{
    for (size_t i = 0; i < o->n; i++)
        free((void *)(uintptr_t)o->of[i].data);
    free(o->of);
    *o = (standin_outputs){ 0 };
}
