/* From the message to the graph. */
#include "onnx/load_int.h"

#include <limits.h>
#include <string.h>

enum { MAX_ATTRIBUTES = 1000, MAX_OPSET = 1000 };

static int *indices(load_graph *b, size_t n)
{
    int *v = oct_arena_alloc(b->m->arena, (n ? n : 1) * sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = -1;
    return v;
}

/* ---- initializers ---- */

static oct_status add_named(load_graph *b, const char *name, const char *what, int *value)
{
    if (!name || !*name)
        return oct_fail(b->err, OCT_EMALFORMED, "%s has no name", what);
    if (oct_graph_find(b->g, name) >= 0)
        return oct_fail(b->err, OCT_EMALFORMED, "%s '%s': the name is used twice", what, name);
    return oct_graph_add_value(b->g, name, OCT_UNDEFINED, value, b->err);
}

static oct_status add_initializer(load_graph *b, size_t i)
{
    const Onnx__TensorProto *t = b->p->initializer[i];
    oct_tensor *x;
    oct_tensor_kind kind;
    OCT_TRY(add_named(b, t->name, "initializer", &b->x->init[i]));
    OCT_TRY(oct_tensor_decode(b->m, b->g->arena, t, false, &x, &kind, b->err));
    int v = b->x->init[i];
    b->g->value[v].origin = t;
    b->x->init_tensor[i] = x;
    if (!x)
        return oct_graph_set_dims(b->g, v, (int)t->n_dims, t->dims, b->err);
    /* The shape first: set_const does not report a failure. */
    OCT_TRY(oct_graph_set_dims(b->g, v, x->rank, x->dims, b->err));
    oct_graph_set_const(b->g, v, x);
    return OCT_OK;
}

static oct_status add_sparse(load_graph *b, size_t i)
{
    const Onnx__SparseTensorProto *t = b->p->sparse_initializer[i];
    OCT_TRY(add_named(b, t->values ? t->values->name : NULL, "sparse initializer", &b->x->sparse[i]));
    int v = b->x->sparse[i], type = t->values->data_type;
    b->g->value[v].origin = t;
    b->g->value[v].dtype = type > 0 && type < OCT_DTYPE_COUNT ? (oct_dtype)type : OCT_UNDEFINED;
    int64_t count;
    if (t->n_dims > OCT_MAX_RANK || !oct_count(t->dims, (int)t->n_dims, &count))
        return oct_fail(b->err, OCT_EMALFORMED, "sparse initializer '%s': its shape is not usable", t->values->name);
    return oct_graph_set_dims(b->g, v, (int)t->n_dims, t->dims, b->err);
}

/* ---- declared types ---- */

static oct_status declared_shape(load_graph *b, int v, const Onnx__TensorShapeProto *s)
{
    oct_dim d[OCT_MAX_RANK];
    if (s->n_dim > OCT_MAX_RANK)
        return OCT_OK;
    for (size_t i = 0; i < s->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *x = s->dim[i];
        d[i] = (oct_dim){ -1, NULL };
        if (x->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && x->dim_value >= 0)
            d[i].n = x->dim_value;
        else if (x->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *load_text(x->dim_param))
            d[i].sym = x->dim_param;
    }
    return oct_graph_set_shape(b->g, v, (int)s->n_dim, d, b->err);
}

/* Sequences and optionals; other kinds of values have no name here. A sequence of maps is held as the table of their
 * values (ZipMap). */
static void declare_kind(oct_value *v, const Onnx__TypeProto *t)
{
    const Onnx__TypeProto *of =
        t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE ? t->sequence_type->elem_type : NULL;
    if (of && of->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE)
        return;
    if (t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        v->kind = OCT_VALUE_OPTIONAL;
        t = t->optional_type->elem_type;
    }
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        v->kind = v->kind == OCT_VALUE_OPTIONAL ? OCT_VALUE_OPTIONAL_SEQUENCE : OCT_VALUE_SEQUENCE;
        t = t->sequence_type->elem_type;
    }
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && t->tensor_type->elem_type > 0 &&
        t->tensor_type->elem_type < OCT_DTYPE_COUNT)
        v->elem = (oct_dtype)t->tensor_type->elem_type;
}

/* The type of a constant overrides its declaration; of two declarations, the first one counts. */
static oct_status declare(load_graph *b, int v, const Onnx__ValueInfoProto *info)
{
    oct_value *x = &b->g->value[v];
    if (!x->origin)
        x->origin = info;
    if (x->constant || !info->type)
        return OCT_OK;
    if (info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        declare_kind(x, info->type);
        return OCT_OK;
    }
    const Onnx__TypeProto__Tensor *t = info->type->tensor_type;
    if (x->dtype == OCT_UNDEFINED && t->elem_type > 0 && t->elem_type < OCT_DTYPE_COUNT)
        x->dtype = (oct_dtype)t->elem_type;
    return x->shape.rank < 0 && t->shape ? declared_shape(b, v, t->shape) : OCT_OK;
}

/* ---- inputs and outputs ---- */

static oct_status add_input(load_graph *b, size_t i)
{
    const Onnx__ValueInfoProto *info = b->p->input[i];
    oct_graph *g = b->g;
    int v = oct_graph_find(g, load_text(info->name));
    if (v >= 0 && !g->value[v].is_input) {
        b->x->input[i] = v; /* an initializer listed among the inputs, as IR version 3 wants it */
        return OCT_OK;
    }
    OCT_TRY(add_named(b, info->name, "graph input", &v));
    b->x->input[i] = v;
    g->value[v].is_input = true;
    if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input))
        return oct_nomem(b->err);
    g->input[g->n_input++] = v;
    return declare(b, v, info);
}

/* The value that a name denotes, in this graph or in a graph around it; -1: none. */
static oct_status resolve(const load_graph *b, const char *name, int *v)
{
    *v = oct_graph_find(b->g, name);
    if (*v >= 0 || !b->outer)
        return OCT_OK;
    OCT_TRY(resolve(b->outer, name, v));
    return *v >= 0 ? oct_graph_capture(b->g, *v, v, b->err) : OCT_OK;
}

static oct_status add_output(load_graph *b, size_t i)
{
    const Onnx__ValueInfoProto *info = b->p->output[i];
    oct_graph *g = b->g;
    int v;
    OCT_TRY(resolve(b, load_text(info->name), &v));
    if (v < 0)
        return oct_fail(b->err, OCT_EMALFORMED, "graph output '%s' is produced by no node", load_text(info->name));
    b->x->output[i] = v;
    g->value[v].is_output = true;
    if (!OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
        return oct_nomem(b->err);
    g->output[g->n_output++] = v;
    return declare(b, v, info);
}

/* ---- attributes ---- */

static const char *copy_bytes(load_graph *b, const ProtobufCBinaryData *s)
{
    return oct_arena_strndup(b->g->arena, s->len ? (const char *)s->data : "", s->len);
}

static oct_status read_strings(load_graph *b, const Onnx__AttributeProto *p, oct_attr *a)
{
    const char **list = oct_arena_calloc(b->g->arena, p->n_strings + 1, sizeof *list);
    if (!list)
        return oct_nomem(b->err);
    for (size_t i = 0; i < p->n_strings; i++)
        if (!(list[i] = copy_bytes(b, &p->strings[i])))
            return oct_nomem(b->err);
    a->strings = list;
    a->n = (int)p->n_strings;
    return OCT_OK;
}

static oct_status read_tensor(load_graph *b, const Onnx__AttributeProto *p, oct_attr *a)
{
    oct_tensor *t;
    oct_tensor_kind kind;
    if (!p->t)
        return oct_fail(b->err, OCT_EMALFORMED, "attribute '%s' holds no tensor", p->name);
    OCT_TRY(oct_tensor_decode(b->m, b->g->arena, p->t, false, &t, &kind, b->err));
    a->t = t;
    if (kind == OCT_TENSOR_OPAQUE)
        a->type = OCT_ATTR_OTHER;
    return OCT_OK;
}

/* Recursion is as deep as the message nests, which is bounded (wire.h). */
static oct_status read_graphs(load_graph *b, Onnx__GraphProto *const *p, size_t n, oct_attr *a)
{
    oct_graph **list = oct_arena_calloc(b->g->arena, n + 1, sizeof *list);
    if (!list)
        return oct_nomem(b->err);
    for (size_t i = 0; i < n; i++) {
        OCT_TRY(oct_graph_new_nested(b->g, &list[i], b->err));
        list[i]->name = load_text(p[i]->name);
        load_graph inner = { .m = b->m, .g = list[i], .p = p[i], .outer = b, .err = b->err };
        oct_status s = load_build(&inner);
        if (s != OCT_OK) {
            oct_within(b->err, "graph '%s' of attribute '%s'", list[i]->name, a->name);
            return s;
        }
    }
    a->graphs = list;
    a->n = (int)n;
    return OCT_OK;
}

/* Files of old exporters leave the type out. */
static int type_of(const Onnx__AttributeProto *p)
{
    if (p->has_type && p->type != 0)
        return (int)p->type;
    return p->has_f       ? OCT_ATTR_FLOAT
           : p->has_i     ? OCT_ATTR_INT
           : p->has_s     ? OCT_ATTR_STRING
           : p->t         ? OCT_ATTR_TENSOR
           : p->g         ? OCT_ATTR_GRAPH
           : p->n_floats  ? OCT_ATTR_FLOATS
           : p->n_ints    ? OCT_ATTR_INTS
           : p->n_strings ? OCT_ATTR_STRINGS
           : p->n_graphs  ? OCT_ATTR_GRAPHS
                          : OCT_ATTR_OTHER;
}

oct_status load_attr(load_graph *b, const Onnx__AttributeProto *p, oct_attr *a)
{
    *a = (oct_attr){ .name = p->name, .type = (oct_attr_type)type_of(p), .origin = p };
    a->ref = p->ref_attr_name && *p->ref_attr_name ? p->ref_attr_name : NULL;
    if (p->n_floats > INT_MAX || p->n_ints > INT_MAX || p->n_strings > INT_MAX || p->n_graphs > INT_MAX)
        return oct_fail(b->err, OCT_EUNSUPPORTED, "attribute '%s' is too long", p->name);
    if (a->ref)
        return OCT_OK;
    switch (a->type) {
    case OCT_ATTR_FLOAT: a->f = p->f; break;
    case OCT_ATTR_INT: a->i = p->i; break;
    case OCT_ATTR_STRING:
        a->s = copy_bytes(b, &p->s);
        a->s_len = p->s.len;
        return a->s ? OCT_OK : oct_nomem(b->err);
    case OCT_ATTR_FLOATS:
        a->floats = p->floats;
        a->n = (int)p->n_floats;
        break;
    case OCT_ATTR_INTS:
        a->ints = p->ints;
        a->n = (int)p->n_ints;
        break;
    case OCT_ATTR_STRINGS: return read_strings(b, p, a);
    case OCT_ATTR_TENSOR: return read_tensor(b, p, a);
    case OCT_ATTR_GRAPH:
        if (!p->g)
            return oct_fail(b->err, OCT_EMALFORMED, "attribute '%s' holds no graph", p->name);
        return read_graphs(b, (Onnx__GraphProto *const[]){ p->g }, 1, a);
    case OCT_ATTR_GRAPHS: return read_graphs(b, p->graphs, p->n_graphs, a);
    default: a->type = OCT_ATTR_OTHER;
    }
    return OCT_OK;
}

static oct_status read_attrs(load_graph *b, oct_node *n, const Onnx__NodeProto *p)
{
    if (p->n_attribute > MAX_ATTRIBUTES)
        return oct_fail(b->err, OCT_EUNSUPPORTED, "more than %d attributes", MAX_ATTRIBUTES);
    n->attr = oct_arena_calloc(b->g->arena, p->n_attribute + 1, sizeof *n->attr);
    if (!n->attr)
        return oct_nomem(b->err);
    n->cap_attr = p->n_attribute + 1;
    for (size_t i = 0; i < p->n_attribute; i++) {
        const char *name = p->attribute[i]->name;
        if (!name || !*name)
            return oct_fail(b->err, OCT_EMALFORMED, "an attribute has no name");
        if (oct_node_attr(n, name))
            return oct_fail(b->err, OCT_EMALFORMED, "attribute '%s' is given twice", name);
        OCT_TRY(load_attr(b, p->attribute[i], &n->attr[i]));
        n->n_attr++;
    }
    return OCT_OK;
}

/* ---- nodes ---- */

static oct_status add_node(load_graph *b, size_t i)
{
    const Onnx__NodeProto *p = b->p->node[i];
    oct_graph *g = b->g;
    int id, v;
    if (!p->op_type || !*p->op_type)
        return oct_fail(b->err, OCT_EMALFORMED, "node #%zu '%s' has no operator type", i, load_text(p->name));
    if (p->n_input > INT_MAX / 2 || p->n_output > INT_MAX / 2)
        return oct_fail(b->err, OCT_EUNSUPPORTED, "node #%zu '%s' has too many inputs", i, load_text(p->name));
    OCT_TRY(oct_graph_add_node(g, p->op_type, load_domain(p->domain), load_text(p->name), (int)p->n_input,
                               (int)p->n_output, -1, &id, b->err));
    g->node[id].origin = p;
    g->node[id].overload = load_text(p->overload);
    for (size_t k = 0; k < p->n_output; k++) {
        const char *name = p->output[k];
        if (!*name)
            continue;
        if (oct_graph_find(g, name) >= 0)
            return oct_fail(b->err, OCT_EMALFORMED, "node #%zu '%s' (%s): its output '%s' is defined elsewhere too", i,
                            load_text(p->name), p->op_type, name);
        OCT_TRY(oct_graph_add_value(g, name, OCT_UNDEFINED, &v, b->err));
        OCT_TRY(oct_graph_set_output(g, id, (int)k, v, b->err));
    }
    return OCT_OK;
}

static oct_status connect(load_graph *b, int id)
{
    const Onnx__NodeProto *p = b->g->node[id].origin;
    for (size_t k = 0; k < p->n_input; k++) {
        int v;
        if (!*p->input[k])
            continue;
        OCT_TRY(resolve(b, p->input[k], &v));
        if (v < 0)
            return oct_fail(b->err, OCT_EMALFORMED, "its input '%s' is defined nowhere", p->input[k]);
        OCT_TRY(oct_graph_set_input(b->g, id, (int)k, v, b->err));
    }
    OCT_TRY(read_attrs(b, &b->g->node[id], p));
    return oct_node_graph_at(&b->g->node[id], 0) ? oct_graph_set_captures(b->g, id, b->err) : OCT_OK;
}

static bool follows(const oct_graph *g, int id, const int *in, int n)
{
    for (int k = 0; k < n; k++)
        if (in[k] >= 0 && g->value[in[k]].producer >= id)
            return false;
    return true;
}

static bool is_sorted(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        const oct_node *n = &g->node[i];
        if (!follows(g, (int)i, n->in, n->n_in) || !follows(g, (int)i, n->captured, n->n_captured))
            return false;
    }
    return true;
}

static oct_status add_nodes(load_graph *b)
{
    for (size_t i = 0; i < b->p->n_node; i++)
        OCT_TRY(add_node(b, i));
    for (size_t i = 0; i < b->g->n_node; i++)
        OCT_TRY(oct_within_node(b->g, (int)i, connect(b, (int)i), b->err));
    return is_sorted(b->g) ? OCT_OK : oct_graph_sort(b->g, b->err);
}

/* ---- the whole ---- */

oct_status load_opsets(oct_graph *g, Onnx__OperatorSetIdProto *const *list, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__OperatorSetIdProto *o = list[i];
        if (o->version < 1 || (o->version > MAX_OPSET && !*load_domain(o->domain)))
            return oct_fail(err, OCT_EMALFORMED, "operator set '%s' has version %lld", load_text(o->domain),
                            (long long)o->version);
        OCT_TRY(oct_graph_set_opset(g, load_domain(o->domain), o->version, err));
    }
    return OCT_OK;
}

static oct_status make_record(load_graph *b)
{
    oct_graph_record *x = oct_arena_calloc(b->m->arena, 1, sizeof *x);
    if (!x)
        return oct_nomem(b->err);
    x->p = b->p;
    x->init = indices(b, b->p->n_initializer);
    x->init_tensor = oct_arena_calloc(b->m->arena, b->p->n_initializer + 1, sizeof *x->init_tensor);
    x->sparse = indices(b, b->p->n_sparse_initializer);
    x->input = indices(b, b->p->n_input);
    x->output = indices(b, b->p->n_output);
    x->info = indices(b, b->p->n_value_info);
    b->g->origin = b->x = x;
    return x->init && x->init_tensor && x->sparse && x->input && x->output && x->info ? OCT_OK : oct_nomem(b->err);
}

oct_status load_build(load_graph *b)
{
    OCT_TRY(make_record(b));
    for (size_t i = 0; i < b->p->n_initializer; i++)
        OCT_TRY(add_initializer(b, i));
    for (size_t i = 0; i < b->p->n_sparse_initializer; i++)
        OCT_TRY(add_sparse(b, i));
    for (size_t i = 0; i < b->p->n_input; i++)
        OCT_TRY(add_input(b, i));
    OCT_TRY(add_nodes(b));
    for (size_t i = 0; i < b->p->n_output; i++)
        OCT_TRY(add_output(b, i));
    for (size_t i = 0; i < b->p->n_value_info; i++) {
        int v = oct_graph_find(b->g, load_text(b->p->value_info[i]->name));
        b->x->info[i] = v;
        if (v >= 0)
            OCT_TRY(declare(b, v, b->p->value_info[i]));
    }
    for (size_t i = 0; i < b->g->n_node; i++) {
        OCT_TRY(oct_graph_pass_on(b->g, (int)i, b->err));
        b->g->node[i].changed = false;
    }
    b->g->changed = false;
    return OCT_OK;
}

static oct_status unpack(oct_model *m, oct_err *err)
{
    if (!m->size)
        return oct_fail(err, OCT_EMALFORMED, "the file is empty");
    oct_status s = oct_proto_unpack(m->data, m->size, &onnx__model_proto__descriptor, m->arena, &m->proto, err);
    if (s == OCT_EMALFORMED)
        oct_within(err, "not an ONNX model, or damaged");
    OCT_TRY(s);
    const Onnx__ModelProto *p = m->proto;
    if (!p->has_ir_version || !p->graph)
        return oct_fail(err, OCT_EMALFORMED, "not an ONNX model: it has no %s", p->graph ? "IR version" : "graph");
    if (p->ir_version < OCT_IR_OLDEST || p->ir_version > OCT_IR_NEWEST)
        return oct_fail(err, OCT_EUNSUPPORTED, "ONNX IR version %lld; versions %d to %d can be read",
                        (long long)p->ir_version, OCT_IR_OLDEST, OCT_IR_NEWEST);
    m->ir_version = p->ir_version;
    const char *version = load_text(p->producer_version);
    m->producer = oct_arena_printf(m->arena, "%s%s%s", load_text(p->producer_name), *version ? " " : "", version);
    return m->producer ? OCT_OK : oct_nomem(err);
}

/* ONNX's version of the format that came with an opset. */
static int64_t ir_of(int64_t opset)
{
    return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

/* A file of another format: its graph, in a message that holds nothing else. */
static oct_status load_other(oct_model *m, const oct_model_format *format, oct_buf *notes, oct_err *err)
{
    Onnx__ModelProto *p = oct_arena_alloc(m->arena, sizeof *p);
    Onnx__GraphProto *graph = oct_arena_alloc(m->arena, sizeof *graph);
    const char *maker = "";
    if (!p || !graph || !(m->graph = oct_graph_create()))
        return oct_nomem(err);
    onnx__model_proto__init(p);
    onnx__graph_proto__init(graph);
    p->graph = graph;
    m->proto = p;
    load_graph b = { .m = m, .g = m->graph, .p = graph, .err = err };
    OCT_TRY(load_build(&b));
    OCT_TRY(format->read(m->data, m->size, m->graph, &maker, notes, err));
    p->has_ir_version = true;
    p->ir_version = m->ir_version = ir_of(oct_graph_opset(m->graph, ""));
    p->producer_name = oct_arena_strdup(m->arena, maker);
    graph->name = oct_arena_strdup(m->arena, m->graph->name);
    m->producer = p->producer_name;
    m->other_format = true;
    m->graph->changed = true; /* no message of it was read */
    return p->producer_name && graph->name ? OCT_OK : oct_nomem(err);
}

static oct_status load(oct_model *m, const oct_model_format *also, oct_buf *notes, oct_err *err)
{
    if (also && also->is(m->data, m->size))
        return load_other(m, also, notes, err);
    oct_status s = unpack(m, err);
    if (s == OCT_EMALFORMED) {
        oct_format_hint(m->data, m->size, err);
        oct_hint(err, "if this was an ONNX model, it is damaged or cut short: copy or export it again");
    }
    OCT_TRY(s);
    const Onnx__ModelProto *p = m->proto;
    if (!(m->graph = oct_graph_create()))
        return oct_nomem(err);
    m->graph->name = load_text(p->graph->name);
    load_graph b = { .m = m, .g = m->graph, .p = p->graph, .err = err };
    OCT_TRY(load_opsets(m->graph, p->opset_import, p->n_opset_import, err));
    OCT_TRY(load_build(&b));
    OCT_TRY(load_functions(&b, p));
    OCT_TRY(oct_external_find(m, err));
    m->graph->changed = false;
    return OCT_OK;
}

static oct_model *model_create(const char *path)
{
    oct_arena *a = oct_arena_create();
    oct_model *m = a ? oct_arena_calloc(a, 1, sizeof *m) : NULL;
    if (m) {
        m->arena = a;
        m->path = oct_arena_strdup(a, path);
    }
    if (!m || !m->path) {
        oct_arena_destroy(a);
        return NULL;
    }
    return m;
}

static oct_status finish(oct_model *made, oct_status s, oct_model **m, oct_err *err)
{
    if (s != OCT_OK) {
        oct_within(err, "%s", made->path);
        oct_model_free(made);
        return s;
    }
    *m = made;
    return OCT_OK;
}

oct_status oct_model_load_mem(const void *data, size_t size, const char *path, oct_model **m, oct_err *err)
{
    return oct_model_load_mem_as(data, size, path, NULL, NULL, m, err);
}

oct_status oct_model_load_mem_as(const void *data, size_t size, const char *path, const oct_model_format *also,
                                 oct_buf *notes, oct_model **m, oct_err *err)
{
    oct_model *made = model_create(path);
    if (!made)
        return oct_nomem(err);
    made->data = data;
    made->size = size;
    return finish(made, load(made, also, notes, err), m, err);
}

/* The first map is the model file, as if it had been opened by its name. */
static oct_status use_file(oct_model *made, const oct_model_format *also, oct_buf *notes, oct_err *err)
{
    made->from_file = true;
    made->data = made->maps[0].data;
    made->size = made->maps[0].size;
    return load(made, also, notes, err);
}

oct_status oct_model_load_written(const oct_out *model, const oct_out *data, const char *location, oct_model **m,
                                  oct_err *err)
{
    oct_model *made = model_create(model->path);
    if (!made)
        return oct_nomem(err);
    oct_status s =
        OCT_GROW(made->arena, made->maps, 0, made->cap_maps) ? oct_out_map(model, &made->maps[0], err) : oct_nomem(err);
    made->n_maps = s == OCT_OK;
    if (s == OCT_OK && data) {
        made->pending = location;
        s = oct_out_map(data, &made->maps[1], err);
        made->n_maps += s == OCT_OK;
    }
    if (s != OCT_OK) {
        oct_model_free(made);
        return s;
    }
    return finish(made, use_file(made, NULL, NULL, err), m, err);
}

oct_status oct_model_load(const char *path, oct_model **m, oct_err *err)
{
    return oct_model_load_as(path, NULL, NULL, m, err);
}

oct_status oct_model_load_as(const char *path, const oct_model_format *also, oct_buf *notes, oct_model **m,
                             oct_err *err)
{
    oct_model *made = model_create(path);
    if (!made)
        return oct_nomem(err);
    oct_status s;
    if (strcmp(path, "-") == 0) {
        s = oct_read_all(path, INT_MAX, &made->input, &made->size, err);
        made->data = made->input;
    } else {
        s = OCT_GROW(made->arena, made->maps, 0, made->cap_maps) ? oct_map_open(&made->maps[0], path, err)
                                                                 : oct_nomem(err);
        made->n_maps = s == OCT_OK;
    }
    if (s != OCT_OK) { /* the message names the file already */
        oct_model_free(made);
        return s;
    }
    return finish(made, made->n_maps ? use_file(made, also, notes, err) : load(made, also, notes, err), m, err);
}

/* The message with entries of metadata that can be changed. */
static oct_status copy_proto(const oct_model *m, oct_model *copy, oct_err *err)
{
    const Onnx__ModelProto *from = m->proto;
    if (!from) /* it was not loaded */
        return OCT_OK;
    Onnx__ModelProto *p = oct_arena_memdup(copy->arena, from, sizeof *p);
    if (!p)
        return oct_nomem(err);
    const size_t n = from->n_metadata_props;
    p->metadata_props = oct_arena_calloc(copy->arena, n + 1, sizeof *p->metadata_props);
    if (!p->metadata_props)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (!(p->metadata_props[i] =
                  oct_arena_memdup(copy->arena, from->metadata_props[i], sizeof *p->metadata_props[i])))
            return oct_nomem(err);
    copy->proto = p;
    return OCT_OK;
}

oct_status oct_model_copy(const oct_model *m, oct_model **copy, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_model *c = a ? oct_arena_memdup(a, m, sizeof *m) : NULL;
    if (!c) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    c->arena = a;
    c->graph = NULL;
    c->is_copy = true;
    c->maps = oct_arena_memdup(a, m->maps, m->n_maps * sizeof *m->maps);
    c->cap_maps = m->n_maps;
    oct_status s = c->maps ? copy_proto(m, c, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_graph_clone(m->graph, &c->graph, err);
    if (s == OCT_OK)
        *copy = c;
    else
        oct_model_free(c);
    return s;
}

void oct_model_free(oct_model *m)
{
    if (!m)
        return;
    oct_graph_destroy(m->graph);
    for (size_t i = 0; i < m->n_maps && !m->is_copy; i++)
        oct_map_close(&m->maps[i]);
    if (!m->is_copy)
        oct_free(m->input);
    oct_arena_destroy(m->arena);
}

void oct_model_forget_all(const oct_model *m)
{
    for (size_t i = 0; i < m->n_maps; i++)
        oct_map_forget(m->maps[i].data, m->maps[i].size);
}

uint64_t oct_model_bytes(const oct_model *m)
{
    uint64_t bytes = m->size;
    for (size_t i = m->from_file ? 1 : 0; i < m->n_maps; i++)
        bytes += m->maps[i].size;
    return bytes;
}

uint64_t oct_model_hash(const oct_model *m)
{
    uint64_t h = oct_hash(OCT_HASH_INIT, m->data, m->size);
    for (size_t i = m->from_file ? 1 : 0; i < m->n_maps; i++)
        h = oct_hash(h, m->maps[i].data, m->maps[i].size);
    return h;
}
