/* Writes a graph of ONNX Runtime as an ONNX message. The numbers of fields are those of ONNX's protobuf schema
 * (onnx.proto). */
#include "graph_bytes.h"

#include "provider_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- protobuf's wire format ---- */

static void put(bytes *b, const void *data, size_t n)
{
    if (b->failed || n == 0)
        return;
    if (n > b->cap - b->n) {
        const size_t cap = b->n + n > 2 * b->cap ? b->n + n + 64 : 2 * b->cap;
        uint8_t *more = n <= SIZE_MAX / 4 - b->n ? realloc(b->at, cap) : NULL;
        if (!more) {
            b->failed = true;
            return;
        }
        b->at = more;
        b->cap = cap;
    }
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void put_varint(bytes *b, uint64_t v)
{
    uint8_t text[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        text[n++] = (uint8_t)(v | 0x80);
    text[n++] = (uint8_t)v;
    put(b, text, n);
}

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

static void put_tag(bytes *b, unsigned field, unsigned wire)
{
    put_varint(b, field << 3 | wire);
}

static void put_int(bytes *b, unsigned field, int64_t v)
{
    put_tag(b, field, VARINT);
    put_varint(b, (uint64_t)v);
}

static void put_float(bytes *b, unsigned field, float v)
{
    put_tag(b, field, FIXED32);
    put(b, &v, sizeof v);
}

static void put_bytes(bytes *b, unsigned field, const void *data, size_t n)
{
    put_tag(b, field, BYTES);
    put_varint(b, n);
    put(b, data, n);
}

static void put_text(bytes *b, unsigned field, const char *s)
{
    put_bytes(b, field, s, strlen(s));
}

/* Puts a message into another one and releases it. */
static void put_message(bytes *b, unsigned field, bytes *m)
{
    put_bytes(b, field, m->at, m->n);
    b->failed |= m->failed;
    free(m->at);
    *m = (bytes){ 0 };
}

/* ---- lists of ONNX Runtime ---- */

/* Takes a list: its length, memory, its elements. The caller frees *list. */
#define TAKE_LIST(api, Count, Get, of, list, n)        \
    do {                                               \
        TRY((api)->Count(of, &(n)));                   \
        (list) = calloc((n) + 1, sizeof *(list));      \
        if (!(list))                                   \
            return no_memory(api);                     \
        ort_status *failed_ = (api)->Get(of, list, n); \
        if (failed_) {                                 \
            free(list);                                \
            return failed_;                            \
        }                                              \
    } while (0)

/* ---- types ---- */

enum { ELEMENTS_IN_BYTE = -2, NO_SIZE = 0 };

/* Bytes of an element by ONNX's number of its type; ELEMENTS_IN_BYTE: two elements share one. */
static int element_size(int type)
{
    static const int8_t size[] = { [1] = 4,
                                   [2] = 1,
                                   [3] = 1,
                                   [4] = 2,
                                   [5] = 2,
                                   [6] = 4,
                                   [7] = 8,
                                   [9] = 1,
                                   [10] = 2,
                                   [11] = 8,
                                   [12] = 4,
                                   [13] = 8,
                                   [14] = 8,
                                   [15] = 16,
                                   [16] = 2,
                                   [17] = 1,
                                   [18] = 1,
                                   [19] = 1,
                                   [20] = 1,
                                   [21] = ELEMENTS_IN_BYTE,
                                   [22] = ELEMENTS_IN_BYTE,
                                   [23] = ELEMENTS_IN_BYTE };
    return type > 0 && (size_t)type < sizeof size ? size[type] : NO_SIZE;
}

bool array_size(const octet_array *a, size_t *size)
{
    const int each = element_size((int)a->type);
    size_t n = 1;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] < 0 || __builtin_mul_overflow(n, (size_t)a->dims[i], &n))
            return false;
    if (each == ELEMENTS_IN_BYTE)
        *size = n / 2 + n % 2;
    return each == ELEMENTS_IN_BYTE || (each > 0 && !__builtin_mul_overflow(n, (size_t)each, size));
}

enum { MOST_RANK = 64 };

/* TypeProto of a tensor. Names of dimensions that are not known tell which of them are equal. ONNX Runtime also says
 * rank 0 of a shape that nobody knows, so no shape is written for it. */
static ort_status *put_tensor_type(const ort_api *api, bytes *b, unsigned field, const ort_tensor_info *t, bool sized)
{
    bytes type = { 0 }, tensor = { 0 }, shape = { 0 };
    int64_t dims[MOST_RANK];
    const char *names[MOST_RANK];
    size_t rank;
    int element;
    TRY(api->GetTensorElementType(t, &element));
    TRY(api->GetDimensionsCount(t, &rank));
    if (rank > MOST_RANK)
        return fail(api, "a tensor has %zu dimensions", rank);
    TRY(api->GetDimensions(t, dims, rank));
    TRY(api->GetSymbolicDimensions(t, names, rank));
    for (size_t i = 0; i < rank; i++) {
        bytes dim = { 0 };
        if (sized && dims[i] >= 0)
            put_int(&dim, 1, dims[i]);
        else if (sized && names[i] && *names[i])
            put_text(&dim, 2, names[i]);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, element);
    if (rank)
        put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_message(b, field, &type);
    return NULL;
}

/* The type of a tensor, which is ONNX Runtime's; NULL for anything else. */
static ort_status *tensor_of(const ort_api *api, const ort_value_info *v, const ort_tensor_info **tensor)
{
    const ort_type_info *type = NULL;
    int kind = ORT_TYPE_UNKNOWN;
    *tensor = NULL;
    TRY(api->GetValueInfoTypeInfo(v, &type));
    if (type)
        TRY(api->GetOnnxTypeFromTypeInfo(type, &kind));
    return kind == ORT_TYPE_TENSOR ? api->CastTypeInfoToTensorInfo(type, tensor) : NULL;
}

ort_status *value_shape(const ort_api *api, const ort_value_info *v, octet_array *a)
{
    const ort_tensor_info *t;
    size_t rank = 0;
    int type;
    a->rank = -1;
    TRY(tensor_of(api, v, &t));
    if (t)
        TRY(api->GetDimensionsCount(t, &rank));
    if (rank == 0 || rank > OCTET_MAX_RANK)
        return NULL;
    TRY(api->GetTensorElementType(t, &type));
    TRY(api->GetDimensions(t, a->dims, rank));
    a->type = (octet_type)type;
    a->rank = (int)rank;
    return NULL;
}

/* ValueInfoProto; the type of what is no tensor is left out. */
static ort_status *put_value(const ort_api *api, bytes *b, unsigned field, const ort_value_info *v, bool sized)
{
    bytes value = { 0 };
    const char *name;
    const ort_tensor_info *tensor;
    TRY(api->GetValueInfoName(v, &name));
    TRY(tensor_of(api, v, &tensor));
    put_text(&value, 1, name);
    ort_status *s = tensor ? put_tensor_type(api, &value, 2, tensor, sized) : NULL;
    put_message(b, field, &value);
    return s;
}

/* ---- tensors ---- */

/* Type, dimensions and data of a dense tensor that ONNX Runtime holds. *data is not set for strings. */
static ort_status *view_tensor(const ort_api *api, const ort_value *v, octet_array *a)
{
    ort_tensor_info *t;
    size_t rank;
    int type;
    void *data = NULL;
    TRY(api->GetTensorTypeAndShape(v, &t));
    ort_status *s = api->GetTensorElementType(t, &type);
    s = s ? s : api->GetDimensionsCount(t, &rank);
    if (!s && rank > OCTET_MAX_RANK)
        s = fail(api, "a tensor has %zu dimensions, more than %d", rank, OCTET_MAX_RANK);
    s = s ? s : api->GetDimensions(t, a->dims, rank);
    api->ReleaseTensorTypeAndShapeInfo(t);
    if (s)
        return s;
    a->type = (octet_type)type;
    a->rank = (int)rank;
    if (type != TYPE_STRING)
        TRY(api->GetTensorMutableData((ort_value *)v, &data));
    a->data = data;
    return NULL;
}

static ort_status *put_strings(const ort_api *api, bytes *b, unsigned field, const ort_value *v, size_t n)
{
    size_t length;
    TRY(api->GetStringTensorDataLength(v, &length));
    char *text = malloc(length + 1);
    size_t *from = calloc(n + 1, sizeof *from);
    ort_status *s = text && from ? api->GetStringTensorContent(v, text, length, from, n) : no_memory(api);
    for (size_t i = 0; i < n && !s; i++)
        put_bytes(b, field, text + from[i], (i + 1 < n ? from[i + 1] : length) - from[i]);
    free(from);
    free(text);
    return s;
}

/* TensorProto with its data. */
static ort_status *put_tensor(const ort_api *api, bytes *b, unsigned field, const char *name, const ort_value *v)
{
    bytes tensor = { 0 };
    octet_array a = { .name = name };
    size_t size = 0, n = 1;
    TRY(view_tensor(api, v, &a));
    for (int i = 0; i < a.rank; i++) {
        put_int(&tensor, 1, a.dims[i]);
        n *= (size_t)a.dims[i];
    }
    put_int(&tensor, 2, a.type);
    if (name)
        put_text(&tensor, 8, name);
    ort_status *s = NULL;
    if ((int)a.type == TYPE_STRING)
        s = put_strings(api, &tensor, 6, v, n);
    else if (array_size(&a, &size))
        put_bytes(&tensor, 9, a.data, size);
    else
        s = fail(api, "tensor '%s' has elements of type %d", name ? name : "", (int)a.type);
    if (s)
        free(tensor.at);
    else
        put_message(b, field, &tensor);
    return s;
}

/* ---- attributes ---- */

enum { ONNX_FLOAT = 1, ONNX_INT, ONNX_STRING, ONNX_TENSOR, ONNX_GRAPH, ONNX_FLOATS, ONNX_INTS, ONNX_STRINGS };

/* The value of an attribute as ReadOpAttr gives it: numbers, the bytes of a string, or strings that end with 0. */
ort_status *attr_read(const ort_api *api, const ort_attr *a, int type, void **value, size_t *size)
{
    *size = 0;
    *value = NULL;
    ort_status *s = api->ReadOpAttr(a, type, NULL, 0, size); /* fails where there is something, and says how much */
    if (s && *size == 0)
        return s;
    if (s)
        api->ReleaseStatus(s);
    if (!(*value = malloc(*size + 1)))
        return no_memory(api);
    return *size ? api->ReadOpAttr(a, type, *value, *size, size) : NULL;
}

static void put_attr_value(bytes *b, int type, const void *value, size_t size)
{
    static const int8_t onnx[] = {
        [ORT_ATTR_INT] = ONNX_INT,       [ORT_ATTR_INTS] = ONNX_INTS,     [ORT_ATTR_FLOAT] = ONNX_FLOAT,
        [ORT_ATTR_FLOATS] = ONNX_FLOATS, [ORT_ATTR_STRING] = ONNX_STRING, [ORT_ATTR_STRINGS] = ONNX_STRINGS
    };
    const int64_t *i = value;
    const float *f = value;
    const char *s = value, *end = s + size;
    switch (type) {
    case ORT_ATTR_INT:
    case ORT_ATTR_INTS:
        for (size_t k = 0; k < size / sizeof *i; k++)
            put_int(b, type == ORT_ATTR_INT ? 3 : 8, i[k]);
        break;
    case ORT_ATTR_FLOAT:
    case ORT_ATTR_FLOATS:
        for (size_t k = 0; k < size / sizeof *f; k++)
            put_float(b, type == ORT_ATTR_FLOAT ? 2 : 7, f[k]);
        break;
    case ORT_ATTR_STRING: put_bytes(b, 4, value, size); break;
    default:
        for (; s < end; s += strnlen(s, (size_t)(end - s)) + 1)
            put_bytes(b, 9, s, strnlen(s, (size_t)(end - s)));
    }
    put_int(b, 20, onnx[type]);
}

/* AttributeProto, but for graphs, which Node_GetSubgraphs gives. */
static ort_status *put_attr(const ort_api *api, bytes *b, unsigned field, const ort_attr *a)
{
    bytes attr = { 0 };
    const char *name;
    int type;
    TRY(api->OpAttr_GetType(a, &type));
    TRY(api->OpAttr_GetName(a, &name));
    if (type == ORT_ATTR_GRAPH)
        return NULL;
    if (type < ORT_ATTR_INT || type > ORT_ATTR_TENSOR)
        return fail(api, "attribute '%s' has a type that cannot be read", name);
    put_text(&attr, 1, name);
    ort_status *s;
    if (type == ORT_ATTR_TENSOR) {
        ort_value *t = NULL;
        s = api->OpAttr_GetTensorAttributeAsOrtValue(a, &t);
        s = s ? s : put_tensor(api, &attr, 5, NULL, t);
        put_int(&attr, 20, ONNX_TENSOR);
        if (t)
            api->ReleaseValue(t);
    } else {
        void *value;
        size_t size;
        s = attr_read(api, a, type, &value, &size);
        if (!s)
            put_attr_value(&attr, type, value, size);
        free(value);
    }
    put_message(b, field, &attr);
    return s;
}

/* ---- nodes and graphs ---- */

typedef struct writer {
    const ort_api *api;
    graph_bytes *out;
    graph_use use;
    int depth; /* of graphs in nodes */
} writer;

enum { MOST_DEPTH = 64 };

static ort_status *put_graph(writer *w, bytes *b, unsigned field, const ort_graph *g);

static ort_status *put_names(const ort_api *api, bytes *b, unsigned field, const ort_value_info *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = "";
        if (list[i]) /* NULL: an optional one that is left out */
            TRY(api->GetValueInfoName(list[i], &name));
        put_text(b, field, name);
    }
    return NULL;
}

static ort_status *put_node_values(const ort_api *api, bytes *b, const ort_node *n)
{
    const ort_value_info **list = NULL;
    size_t count;
    TAKE_LIST(api, Node_GetNumInputs, Node_GetInputs, n, list, count);
    ort_status *s = put_names(api, b, 1, list, count);
    free(list);
    if (s)
        return s;
    TAKE_LIST(api, Node_GetNumOutputs, Node_GetOutputs, n, list, count);
    s = put_names(api, b, 2, list, count);
    free(list);
    return s;
}

static ort_status *put_node_attrs(const ort_api *api, bytes *b, const ort_node *n)
{
    const ort_attr **list = NULL;
    size_t count;
    ort_status *s = NULL;
    TAKE_LIST(api, Node_GetNumAttributes, Node_GetAttributes, n, list, count);
    for (size_t i = 0; i < count && !s; i++)
        s = put_attr(api, b, 5, list[i]);
    free(list);
    return s;
}

static ort_status *put_node_graphs(writer *w, bytes *b, const ort_node *n)
{
    const ort_api *api = w->api;
    size_t count;
    TRY(api->Node_GetNumSubgraphs(n, &count));
    if (count == 0)
        return NULL;
    const ort_graph **graphs = calloc(count, sizeof *graphs);
    const char **names = calloc(count, sizeof *names);
    ort_status *s = graphs && names ? api->Node_GetSubgraphs(n, graphs, count, names) : no_memory(api);
    for (size_t i = 0; i < count && !s; i++) {
        bytes attr = { 0 };
        put_text(&attr, 1, names[i]);
        s = put_graph(w, &attr, 6, graphs[i]);
        put_int(&attr, 20, ONNX_GRAPH);
        put_message(b, 5, &attr);
    }
    free(names);
    free(graphs);
    return s;
}

static ort_status *put_node(writer *w, bytes *b, unsigned field, const ort_node *n)
{
    const ort_api *api = w->api;
    bytes node = { 0 };
    const char *name, *op, *domain;
    TRY(api->Node_GetName(n, &name));
    TRY(api->Node_GetOperatorType(n, &op));
    TRY(api->Node_GetDomain(n, &domain));
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    put_text(&node, 7, domain);
    ort_status *s = put_node_values(api, &node, n);
    if (w->use == GRAPH_TO_RUN || strcmp(op, "EPContext") != 0) /* those hold whole models, and nobody asks for them */
        s = s ? s : put_node_attrs(api, &node, n);
    s = s ? s : put_node_graphs(w, &node, n);
    if (s)
        free(node.at);
    else
        put_message(b, field, &node);
    return s;
}

/* A node of which only the names of its values are known. *why is told and released. */
static ort_status *put_unread(writer *w, bytes *b, unsigned field, const ort_node *n, size_t at, ort_status *why)
{
    bytes node = { 0 };
    w->out->unread[at] = strdup(w->api->GetErrorMessage(why));
    w->api->ReleaseStatus(why);
    if (!w->out->unread[at])
        return no_memory(w->api);
    put_text(&node, 4, "Unread");
    put_text(&node, 7, "octet.unread");
    ort_status *s = put_node_values(w->api, &node, n);
    put_message(b, field, &node);
    return s;
}

static ort_status *add_constant(writer *w, const octet_array *a)
{
    graph_bytes *o = w->out;
    if (o->n_constants == o->cap_constants) {
        const size_t cap = o->cap_constants ? 2 * o->cap_constants : 64;
        octet_array *more = realloc(o->constants, cap * sizeof *more);
        if (!more)
            return no_memory(w->api);
        o->constants = more;
        o->cap_constants = cap;
    }
    o->constants[o->n_constants++] = *a;
    return NULL;
}

/* ValueInfoProto of a constant, from the tensor. */
static void put_constant_input(bytes *b, unsigned field, const octet_array *a)
{
    bytes value = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    for (int i = 0; i < a->rank; i++) {
        bytes dim = { 0 };
        put_int(&dim, 1, a->dims[i]);
        put_message(&shape, 1, &dim);
    }
    put_text(&value, 1, a->name);
    put_int(&tensor, 1, a->type);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_message(&value, 2, &type);
    put_message(b, field, &value);
}

/* A constant of the top-level graph with elements of a fixed size is an input; others have their data in the message.
 */
static ort_status *put_constant(writer *w, bytes *b, const ort_graph *g, const ort_value_info *v)
{
    const ort_api *api = w->api;
    octet_array a = { 0 };
    const ort_value *value = NULL;
    bool constant;
    size_t size;
    TRY(api->ValueInfo_IsConstantInitializer(v, &constant));
    if (!constant) /* its input may be given at run time */
        return NULL;
    if (w->depth == 1) {
        TRY(value_shape(api, v, &a));
        if (a.rank > 0)
            TRY(external_find(api, g, v, &a, &w->out->files));
    }
    TRY(api->GetValueInfoName(v, &a.name));
    if (a.data) {
        TRY(add_constant(w, &a));
        put_constant_input(b, 11, &a);
        return NULL;
    }
    TRY(api->ValueInfo_GetInitializerValue(v, &value));
    if (!value)
        return fail(api, "the constant '%s' has no value", a.name);
    TRY(view_tensor(api, value, &a));
    if (w->depth > 1 || !array_size(&a, &size))
        return put_tensor(api, b, 5, a.name, value);
    TRY(add_constant(w, &a));
    put_constant_input(b, 11, &a);
    return NULL;
}

/* A constant that cannot be read has a name all the same: as a sparse one without elements, which the library does not
 * read either. */
static ort_status *put_unread_constant(const ort_api *api, bytes *b, const ort_value_info *v, ort_status *why)
{
    bytes sparse = { 0 }, values = { 0 };
    const char *name;
    api->ReleaseStatus(why);
    TRY(api->GetValueInfoName(v, &name));
    put_text(&values, 8, name);
    put_message(&sparse, 1, &values);
    put_message(b, 15, &sparse);
    return NULL;
}

static ort_status *put_constants(writer *w, bytes *b, const ort_graph *g)
{
    const ort_value_info **list = NULL;
    size_t n;
    ort_status *s = NULL;
    TAKE_LIST(w->api, Graph_GetNumInitializers, Graph_GetInitializers, g, list, n);
    for (size_t i = 0; i < n && !s; i++) {
        s = put_constant(w, b, g, list[i]);
        if (s && w->use == GRAPH_TO_ASK && w->depth == 1)
            s = put_unread_constant(w->api, b, list[i], s);
    }
    free(list);
    return s;
}

/* Those of a list that are there. */
static ort_status *put_values(const writer *w, bytes *b, unsigned field, const ort_value_info *const *list, size_t n)
{
    ort_status *s = NULL;
    for (size_t i = 0; i < n && !s; i++)
        if (list[i])
            s = put_value(w->api, b, field, list[i], w->use == GRAPH_TO_ASK || w->depth > 1);
    return s;
}

typedef struct named {
    const char *name;
    size_t at;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Adds the names of what the nodes of g make, each with 0. */
static ort_status *add_made(const ort_api *api, const ort_graph *g, named **all, size_t *k)
{
    const ort_node **nodes = NULL;
    const ort_value_info **list = NULL;
    size_t n, count;
    ort_status *s = NULL;
    TAKE_LIST(api, Graph_GetNumNodes, Graph_GetNodes, g, nodes, n);
    for (size_t i = 0; i < n && !s; i++) {
        s = api->Node_GetNumOutputs(nodes[i], &count);
        named *more = s ? NULL : realloc(*all, (*k + count + 1) * sizeof *more);
        const ort_value_info **longer = more ? realloc(list, (count + 1) * sizeof *list) : NULL;
        *all = more ? more : *all;
        list = longer ? longer : list;
        s = s || longer ? s : no_memory(api);
        s = s ? s : api->Node_GetOutputs(nodes[i], list, count);
        for (size_t j = 0; j < count && !s; j++)
            if (list[j]) {
                (*all)[*k].at = 0;
                s = api->GetValueInfoName(list[j], &(*all)[(*k)++].name);
            }
    }
    free(list);
    free(nodes);
    return s;
}

/* In a view of ONNX Runtime 1.23 an input stands in the list as often as nodes read it, and what a node reads is an
 * input also where a later node of the list makes it. */
static ort_status *drop_repeated(const ort_api *api, const ort_graph *g, const ort_value_info **list, size_t n)
{
    named *all = calloc(n + 1, sizeof *all);
    ort_status *s = all ? NULL : no_memory(api);
    size_t k = 0;
    for (size_t i = 0; i < n && !s; i++)
        if (list[i]) {
            all[k].at = i + 1;
            s = api->GetValueInfoName(list[i], &all[k++].name);
        }
    s = s ? s : add_made(api, g, &all, &k);
    if (!s)
        qsort(all, k, sizeof *all, by_name);
    for (size_t i = 1; i < k && !s; i++)
        if (all[i].at && strcmp(all[i].name, all[i - 1].name) == 0)
            list[all[i].at - 1] = NULL;
    free(all);
    return s;
}

static ort_status *put_inputs(const writer *w, bytes *b, const ort_graph *g)
{
    const ort_api *api = w->api;
    const ort_value_info **list = NULL;
    size_t n;
    ort_status *s = NULL;
    TAKE_LIST(api, Graph_GetNumInputs, Graph_GetInputs, g, list, n);
    for (size_t i = 0; i < n && !s; i++) {
        bool constant = false;
        s = api->ValueInfo_IsConstantInitializer(list[i], &constant);
        list[i] = constant ? NULL : list[i];
    }
    s = s ? s : drop_repeated(api, g, list, n);
    s = s ? s : put_values(w, b, 11, list, n);
    free(list);
    return s;
}

static ort_status *put_outputs(const writer *w, bytes *b, const ort_graph *g)
{
    const ort_api *api = w->api;
    const ort_value_info **list = NULL;
    size_t n;
    ort_status *s = NULL;
    TAKE_LIST(api, Graph_GetNumOutputs, Graph_GetOutputs, g, list, n);
    s = put_values(w, b, 12, list, n);
    free(list);
    return s;
}

/* The types of what a node makes: behind an operator that is unknown here nothing else tells them. */
static ort_status *put_made(const writer *w, bytes *b, const ort_node *n)
{
    const ort_api *api = w->api;
    const ort_value_info **list = NULL;
    size_t count;
    ort_status *s = NULL;
    TAKE_LIST(api, Node_GetNumOutputs, Node_GetOutputs, n, list, count);
    s = put_values(w, b, 13, list, count);
    free(list);
    return s;
}

static ort_status *put_nodes(writer *w, bytes *b, const ort_graph *g)
{
    const ort_node **list = NULL;
    size_t n;
    ort_status *s = NULL;
    TAKE_LIST(w->api, Graph_GetNumNodes, Graph_GetNodes, g, list, n);
    const bool ask = w->use == GRAPH_TO_ASK && w->depth == 1;
    if (ask) {
        w->out->n_nodes = n;
        s = (w->out->unread = calloc(n + 1, sizeof *w->out->unread)) ? NULL : no_memory(w->api);
    }
    for (size_t i = 0; i < n && !s; i++) {
        const int depth = w->depth; /* a body that cannot be read is left in the middle */
        s = put_node(w, b, 1, list[i]);
        w->depth = depth;
        if (s && ask)
            s = put_unread(w, b, 1, list[i], i, s);
        if (!s && w->depth == 1)
            s = put_made(w, b, list[i]);
    }
    free(list);
    return s;
}

static ort_status *put_graph(writer *w, bytes *b, unsigned field, const ort_graph *g)
{
    bytes graph = { 0 };
    if (w->depth >= MOST_DEPTH)
        return fail(w->api, "graphs are nested more than %d deep", MOST_DEPTH);
    w->depth++;
    put_text(&graph, 2, "g");
    ort_status *s = put_inputs(w, &graph, g);
    s = s ? s : put_constants(w, &graph, g);
    s = s ? s : put_nodes(w, &graph, g);
    s = s ? s : put_outputs(w, &graph, g);
    put_message(b, field, &graph);
    w->depth--;
    return s;
}

static ort_status *put_opsets(const ort_api *api, bytes *b, const ort_graph *g)
{
    size_t n;
    TRY(api->Graph_GetNumOperatorSets(g, &n));
    const char **domains = calloc(n + 1, sizeof *domains);
    int64_t *versions = calloc(n + 1, sizeof *versions);
    ort_status *s = domains && versions ? api->Graph_GetOperatorSets(g, domains, versions, n) : no_memory(api);
    for (size_t i = 0; i < n && !s; i++) {
        bytes opset = { 0 };
        put_text(&opset, 1, domains[i]);
        put_int(&opset, 2, versions[i]);
        put_message(b, 8, &opset);
    }
    free(versions);
    free(domains);
    return s;
}

ort_status *graph_bytes_make(const ort_api *api, const ort_graph *g, graph_use use, graph_bytes *out)
{
    enum { IR_VERSION = 10 };
    writer w = { .api = api, .out = out, .use = use };
    *out = (graph_bytes){ 0 };
    put_int(&out->message, 1, IR_VERSION);
    TRY(put_opsets(api, &out->message, g));
    TRY(put_graph(&w, &out->message, 7, g));
    return out->message.failed ? no_memory(api) : NULL;
}

void graph_bytes_free(graph_bytes *b)
{
    for (size_t i = 0; i < b->n_nodes && b->unread; i++)
        free(b->unread[i]);
    free(b->unread);
    free(b->message.at);
    free(b->constants);
    free(b->embedded);
    external_free(b->files);
    *b = (graph_bytes){ 0 };
}
