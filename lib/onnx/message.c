/* Converts the graph back to a message: records that are still valid are kept, the others are made anew. */
#include "onnx/save.h"

#include <string.h>

typedef struct make {
    const oct_graph *g;
    const oct_graph_record *x;
    Onnx__GraphProto *out; /* a copy of x->p, filled anew */
    oct_arena *a;
    bool *written; /* by value */
    oct_err *err;
} make;

static oct_status write_graph(const oct_graph *g, Onnx__GraphProto *out, oct_arena *a, oct_err *err);

/* n pointers; NULL: out of memory. */
#define LIST(k, n) oct_arena_calloc((k)->a, (n) + 1, sizeof(void *))

static bool is_alive(const make *k, int v)
{
    return v >= 0 && !k->g->value[v].dead;
}

/* ---- attributes and nodes ---- */

static oct_status write_strings(make *k, const oct_attr *a, Onnx__AttributeProto *p)
{
    p->n_strings = (size_t)a->n;
    p->strings = oct_arena_calloc(k->a, p->n_strings + 1, sizeof *p->strings);
    if (!p->strings)
        return oct_nomem(k->err);
    for (int i = 0; i < a->n; i++)
        p->strings[i] = (ProtobufCBinaryData){ strlen(a->strings[i]), (uint8_t *)(uintptr_t)a->strings[i] };
    return OCT_OK;
}

/* The nested graphs of an attribute, written anew where they were changed. */
static oct_status write_graphs(make *k, const oct_attr *a, Onnx__AttributeProto *p)
{
    Onnx__GraphProto **list = LIST(k, (size_t)a->n);
    if (!list)
        return oct_nomem(k->err);
    for (int i = 0; i < a->n; i++) {
        const oct_graph_record *x = a->graphs[i]->origin;
        if (x && !oct_graph_is_changed(a->graphs[i])) {
            list[i] = (Onnx__GraphProto *)(uintptr_t)x->p;
            continue;
        }
        if (!(list[i] = oct_arena_alloc(k->a, sizeof *list[i])))
            return oct_nomem(k->err);
        if (x) {
            *list[i] = *x->p;
        } else {
            onnx__graph_proto__init(list[i]);
            list[i]->name = (char *)(uintptr_t)a->graphs[i]->name;
        }
        OCT_TRY(write_graph(a->graphs[i], list[i], k->a, k->err));
    }
    if (a->type == OCT_ATTR_GRAPH) {
        p->g = list[0];
    } else {
        p->graphs = list;
        p->n_graphs = (size_t)a->n;
    }
    return OCT_OK;
}

static bool has_changed_graph(const oct_attr *a)
{
    for (int i = 0; a->graphs && i < a->n; i++)
        if (!a->graphs[i]->origin || oct_graph_is_changed(a->graphs[i]))
            return true;
    return false;
}

static oct_status write_attr(make *k, const oct_attr *a, Onnx__AttributeProto **out)
{
    const Onnx__AttributeProto *old = a->origin;
    if (old && !has_changed_graph(a) && strcmp(old->name, a->name) == 0) {
        *out = (Onnx__AttributeProto *)(uintptr_t)old;
        return OCT_OK;
    }
    Onnx__AttributeProto *p = oct_arena_alloc(k->a, sizeof *p);
    if (!p)
        return oct_nomem(k->err);
    if (old)
        *p = *old;
    else
        onnx__attribute_proto__init(p);
    p->name = (char *)(uintptr_t)a->name;
    *out = p;
    if (old && !a->graphs) /* a call's argument, under the name that the function's node has for it */
        return OCT_OK;
    p->has_type = true;
    p->type = (Onnx__AttributeProto__AttributeType)a->type;
    switch (a->type) {
    case OCT_ATTR_GRAPH:
    case OCT_ATTR_GRAPHS: return write_graphs(k, a, p);
    case OCT_ATTR_FLOAT:
        p->has_f = true;
        p->f = a->f;
        return OCT_OK;
    case OCT_ATTR_INT:
        p->has_i = true;
        p->i = a->i;
        return OCT_OK;
    case OCT_ATTR_STRING:
        p->has_s = true;
        p->s = (ProtobufCBinaryData){ a->s_len, (uint8_t *)(uintptr_t)a->s };
        return OCT_OK;
    case OCT_ATTR_FLOATS:
        p->n_floats = (size_t)a->n;
        p->floats = (float *)(uintptr_t)a->floats;
        return OCT_OK;
    case OCT_ATTR_INTS:
        p->n_ints = (size_t)a->n;
        p->ints = (int64_t *)(uintptr_t)a->ints;
        return OCT_OK;
    case OCT_ATTR_STRINGS: return write_strings(k, a, p);
    case OCT_ATTR_TENSOR: return oct_tensor_encode(k->a, "", a->t, &p->t, k->err);
    default: return oct_fail(k->err, OCT_EINTERNAL, "attribute '%s' has no record to write", a->name);
    }
}

static const char *name_or_empty(const make *k, int v)
{
    return v < 0 ? "" : oct_value_name(k->g, v);
}

static char **names(make *k, const int *v, int n)
{
    char **list = LIST(k, (size_t)n);
    for (int i = 0; list && i < n; i++)
        list[i] = (char *)(uintptr_t)name_or_empty(k, v[i]);
    return list;
}

/* Keeps the record's own string when it says the same, so that an absent field stays absent. */
static char *field_text(char *old, const char *now)
{
    return strcmp(old ? old : "", now) == 0 ? old : (char *)(uintptr_t)now;
}

static bool is_as_read(const oct_node *n)
{
    bool same = n->origin && !n->changed;
    for (size_t i = 0; i < n->n_attr && same; i++)
        same = !has_changed_graph(&n->attr[i]);
    return same;
}

static oct_status write_node(make *k, const oct_node *n, Onnx__NodeProto **out)
{
    if (is_as_read(n)) {
        *out = (Onnx__NodeProto *)(uintptr_t)n->origin;
        return OCT_OK;
    }
    Onnx__NodeProto *p = oct_arena_alloc(k->a, sizeof *p);
    if (!p)
        return oct_nomem(k->err);
    if (n->origin)
        memcpy(p, n->origin, sizeof *p);
    else
        onnx__node_proto__init(p);
    p->op_type = (char *)(uintptr_t)n->op;
    p->name = field_text(p->name, n->name);
    if (!p->domain || strcmp(p->domain, "ai.onnx") != 0 || *n->domain)
        p->domain = field_text(p->domain, n->domain);
    p->overload = field_text(p->overload, n->overload);
    p->n_input = (size_t)n->n_in;
    p->n_output = (size_t)n->n_out;
    p->n_attribute = n->n_attr;
    p->input = names(k, n->in, n->n_in);
    p->output = names(k, n->out, n->n_out);
    p->attribute = LIST(k, n->n_attr);
    if (!p->input || !p->output || !p->attribute)
        return oct_nomem(k->err);
    for (size_t i = 0; i < n->n_attr; i++)
        OCT_TRY(write_attr(k, &n->attr[i], &p->attribute[i]));
    *out = p;
    return OCT_OK;
}

static oct_status write_nodes(make *k)
{
    Onnx__GraphProto *g = k->out;
    g->node = LIST(k, k->g->n_order);
    if (!g->node)
        return oct_nomem(k->err);
    g->n_node = k->g->n_order;
    for (size_t i = 0; i < g->n_node; i++)
        OCT_TRY(oct_within_node(k->g, k->g->order[i], write_node(k, &k->g->node[k->g->order[i]], &g->node[i]), k->err));
    return OCT_OK;
}

/* ---- constants ---- */

static oct_status write_initializers(make *k)
{
    Onnx__GraphProto *g = k->out;
    size_t n = 0;
    if (!(g->initializer = LIST(k, k->x->p->n_initializer + k->g->n_value)))
        return oct_nomem(k->err);
    for (size_t i = 0; i < k->x->p->n_initializer; i++) {
        int v = k->x->init[i];
        if (!is_alive(k, v) || k->g->value[v].producer >= 0)
            continue;
        const oct_tensor *now = k->g->value[v].constant;
        if (now == k->x->init_tensor[i])
            g->initializer[n++] = k->x->p->initializer[i];
        else if (now)
            OCT_TRY(oct_tensor_encode(k->a, k->g->value[v].name, now, &g->initializer[n++], k->err));
        k->written[v] = true;
    }
    for (size_t v = 0; v < k->g->n_value; v++) {
        const oct_value *x = &k->g->value[v];
        if (x->dead || k->written[v] || !x->constant || x->producer >= 0 || x->outer >= 0 ||
            (!x->n_uses && !x->is_output))
            continue;
        OCT_TRY(oct_tensor_encode(k->a, x->name, x->constant, &g->initializer[n++], k->err));
        k->written[v] = true;
    }
    g->n_initializer = n;
    return OCT_OK;
}

static oct_status write_sparse(make *k)
{
    Onnx__GraphProto *g = k->out;
    g->n_sparse_initializer = 0;
    if (!(g->sparse_initializer = LIST(k, k->x->p->n_sparse_initializer)))
        return oct_nomem(k->err);
    for (size_t i = 0; i < k->x->p->n_sparse_initializer; i++) {
        int v = k->x->sparse[i];
        if (is_alive(k, v) && !k->written[v] && k->g->value[v].producer < 0)
            g->sparse_initializer[g->n_sparse_initializer++] = k->x->p->sparse_initializer[i];
    }
    return OCT_OK;
}

/* ---- values ---- */

static oct_status write_type(make *k, const oct_value *v, Onnx__TypeProto **out)
{
    Onnx__TypeProto *type = oct_arena_alloc(k->a, sizeof *type);
    Onnx__TypeProto__Tensor *t = oct_arena_alloc(k->a, sizeof *t);
    if (!type || !t)
        return oct_nomem(k->err);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(t);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = t;
    t->has_elem_type = true;
    t->elem_type = (int32_t)v->dtype;
    *out = type;
    if (v->shape.rank < 0)
        return OCT_OK;
    size_t n = (size_t)v->shape.rank;
    Onnx__TensorShapeProto *s = oct_arena_alloc(k->a, sizeof *s);
    Onnx__TensorShapeProto__Dimension *d = oct_arena_alloc(k->a, (n + 1) * sizeof *d);
    if (!s || !d)
        return oct_nomem(k->err);
    onnx__tensor_shape_proto__init(s);
    t->shape = s;
    s->n_dim = n;
    if (!(s->dim = LIST(k, n)))
        return oct_nomem(k->err);
    for (size_t i = 0; i < n; i++) {
        onnx__tensor_shape_proto__dimension__init(&d[i]);
        s->dim[i] = &d[i];
        if (v->shape.d[i].n >= 0) {
            d[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d[i].dim_value = v->shape.d[i].n;
        } else if (v->shape.d[i].sym) {
            d[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d[i].dim_param = (char *)(uintptr_t)v->shape.d[i].sym;
        }
    }
    return OCT_OK;
}

static bool is_tensor(const Onnx__ValueInfoProto *info)
{
    return info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
}

/* Whether a record does not contradict what is known of the value. */
static bool agrees(const oct_value *v, const Onnx__ValueInfoProto *info)
{
    if (!is_tensor(info) || v->dtype == OCT_UNDEFINED)
        return true;
    const Onnx__TypeProto__Tensor *t = info->type->tensor_type;
    if (t->elem_type != (int32_t)v->dtype)
        return false;
    if (!t->shape || v->shape.rank < 0)
        return true;
    if (t->shape->n_dim != (size_t)v->shape.rank)
        return false;
    for (size_t i = 0; i < t->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0 &&
            v->shape.d[i].n >= 0 && v->shape.d[i].n != d->dim_value)
            return false;
    }
    return true;
}

/* Records of the graph's inputs or outputs: the old one where it still describes the value. */
static oct_status write_ends(make *k, const int *list, size_t n, const int *old_value, Onnx__ValueInfoProto *const *old,
                             size_t n_old, Onnx__ValueInfoProto ***out)
{
    Onnx__ValueInfoProto **made = LIST(k, n);
    const Onnx__ValueInfoProto **by_value = oct_arena_calloc(k->a, k->g->n_value + 1, sizeof *by_value);
    if (!made || !by_value)
        return oct_nomem(k->err);
    for (size_t i = 0; i < n_old; i++)
        if (old_value[i] >= 0)
            by_value[old_value[i]] = old[i];
    for (size_t i = 0; i < n; i++) {
        const oct_value *v = &k->g->value[list[i]];
        const Onnx__ValueInfoProto *record = by_value[list[i]];
        const char *name = oct_value_name(k->g, list[i]);
        if (record && agrees(v, record) && strcmp(record->name, name) == 0) {
            made[i] = (Onnx__ValueInfoProto *)(uintptr_t)record;
            continue;
        }
        if (!(made[i] = oct_arena_alloc(k->a, sizeof *made[i])))
            return oct_nomem(k->err);
        if (record)
            *made[i] = *record;
        else
            onnx__value_info_proto__init(made[i]);
        made[i]->name = (char *)(uintptr_t)name;
        if (v->dtype != OCT_UNDEFINED && (!record || !agrees(v, record)))
            OCT_TRY(write_type(k, v, &made[i]->type));
    }
    *out = made;
    return OCT_OK;
}

static oct_status write_value_info(make *k)
{
    Onnx__GraphProto *g = k->out;
    size_t n = 0;
    if (!(g->value_info = LIST(k, k->x->p->n_value_info)))
        return oct_nomem(k->err);
    for (size_t i = 0; i < k->x->p->n_value_info; i++) {
        int v = k->x->info[i];
        if (v < 0 || (is_alive(k, v) && agrees(&k->g->value[v], k->x->p->value_info[i])))
            g->value_info[n++] = k->x->p->value_info[i];
    }
    g->n_value_info = n;
    return OCT_OK;
}

/* ---- the whole ---- */

/* Of a graph that no file held: empty lists. */
static int no_value[1];
static const oct_tensor *no_tensor[1];
static const oct_graph_record no_record = { .p = &(const Onnx__GraphProto)ONNX__GRAPH_PROTO__INIT,
                                            .init = no_value,
                                            .init_tensor = no_tensor,
                                            .sparse = no_value,
                                            .input = no_value,
                                            .output = no_value,
                                            .info = no_value };

static oct_status write_graph(const oct_graph *g, Onnx__GraphProto *out, oct_arena *a, oct_err *err)
{
    make k = { .g = g, .x = g->origin ? g->origin : &no_record, .out = out, .a = a, .err = err };
    const oct_graph_record *x = k.x;
    if (!(k.written = oct_arena_calloc(a, g->n_value + 1, sizeof *k.written)))
        return oct_nomem(err);
    OCT_TRY(write_nodes(&k));
    OCT_TRY(write_initializers(&k));
    OCT_TRY(write_sparse(&k));
    OCT_TRY(write_ends(&k, g->input, g->n_input, x->input, x->p->input, x->p->n_input, &out->input));
    OCT_TRY(write_ends(&k, g->output, g->n_output, x->output, x->p->output, x->p->n_output, &out->output));
    out->n_input = g->n_input;
    out->n_output = g->n_output;
    return write_value_info(&k);
}

static const char *normal_domain(const char *s)
{
    return s && strcmp(s, "ai.onnx") != 0 ? s : "";
}

static oct_status write_opsets(const oct_model *m, Onnx__ModelProto *p, oct_arena *a, oct_err *err)
{
    const Onnx__ModelProto *old = m->proto;
    const oct_graph *g = m->graph;
    size_t n = 0;
    Onnx__OperatorSetIdProto **list = oct_arena_calloc(a, old->n_opset_import + g->n_opset + 1, sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < old->n_opset_import + g->n_opset; i++) {
        const Onnx__OperatorSetIdProto *was = i < old->n_opset_import ? old->opset_import[i] : NULL;
        const oct_opset *extra = was ? NULL : &g->opset[i - old->n_opset_import];
        const char *domain = was ? normal_domain(was->domain) : extra->domain;
        bool there = false;
        for (size_t j = 0; j < n && !was; j++)
            there |= strcmp(normal_domain(list[j]->domain), domain) == 0;
        if (there)
            continue;
        Onnx__OperatorSetIdProto *made = oct_arena_alloc(a, sizeof *made);
        if (!made)
            return oct_nomem(err);
        if (was)
            *made = *was;
        else
            onnx__operator_set_id_proto__init(made);
        if (!was)
            made->domain = (char *)(uintptr_t)domain;
        made->has_version = true;
        made->version = oct_graph_opset(g, domain);
        list[n++] = made;
    }
    p->opset_import = list;
    p->n_opset_import = n;
    return OCT_OK;
}

/* Without the functions that the graph has no more: all calls of them were inlined. */
static oct_status write_functions(const oct_model *m, Onnx__ModelProto *p, oct_arena *a, oct_err *err)
{
    const Onnx__ModelProto *old = m->proto;
    Onnx__FunctionProto **kept = oct_arena_calloc(a, old->n_functions + 1, sizeof *kept);
    if (!kept)
        return oct_nomem(err);
    p->n_functions = 0;
    for (size_t i = 0; i < old->n_functions; i++) {
        const Onnx__FunctionProto *f = old->functions[i];
        if (oct_graph_function(m->graph, normal_domain(f->domain), f->name ? f->name : "",
                               f->overload ? f->overload : ""))
            kept[p->n_functions++] = old->functions[i];
    }
    p->functions = kept;
    return OCT_OK;
}

oct_status oct_message_make(const oct_model *m, oct_message *msg, oct_err *err)
{
    const Onnx__ModelProto *old = m->proto;
    msg->model = *old;
    msg->graph = *old->graph;
    msg->model.graph = &msg->graph;
    msg->model.ir_version = m->ir_version;
    if (!oct_graph_is_changed(m->graph))
        return OCT_OK;
    if (msg->model.ir_version < 4)
        msg->model.ir_version = 4;
    OCT_TRY(write_graph(m->graph, &msg->graph, msg->arena, err));
    OCT_TRY(write_opsets(m, &msg->model, msg->arena, err));
    return write_functions(m, &msg->model, msg->arena, err);
}
