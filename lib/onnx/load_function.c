/* Model-local functions. */
#include "onnx/load_int.h"

/* A function's body as a graph: its inputs and outputs are names without a type. */
static oct_status ends(load_graph *b, char *const *names, size_t n, Onnx__ValueInfoProto ***list)
{
    *list = oct_arena_calloc(b->m->arena, n + 1, sizeof **list);
    if (!*list)
        return oct_nomem(b->err);
    for (size_t i = 0; i < n; i++) {
        Onnx__ValueInfoProto *v = (*list)[i] = oct_arena_alloc(b->m->arena, sizeof *v);
        if (!v)
            return oct_nomem(b->err);
        onnx__value_info_proto__init(v);
        v->name = names[i];
    }
    return OCT_OK;
}

static oct_status build_body(load_graph *b, const Onnx__FunctionProto *p, oct_function *f)
{
    Onnx__GraphProto *body = oct_arena_alloc(b->m->arena, sizeof *body);
    oct_graph *g = oct_arena_calloc(b->g->arena, 1, sizeof *g);
    if (!body || !g)
        return oct_nomem(b->err);
    onnx__graph_proto__init(body);
    body->node = p->node;
    body->n_node = p->n_node;
    body->value_info = p->value_info;
    body->n_value_info = p->n_value_info;
    body->n_input = p->n_input;
    body->n_output = p->n_output;
    OCT_TRY(ends(b, p->input, p->n_input, &body->input));
    OCT_TRY(ends(b, p->output, p->n_output, &body->output));
    g->arena = b->g->arena;
    g->name = f->name;
    f->body = g;
    OCT_TRY(load_opsets(g, p->opset_import, p->n_opset_import, b->err));
    load_graph inner = { .m = b->m, .g = g, .p = body, .err = b->err };
    return load_build(&inner);
}

static oct_status read_defaults(load_graph *b, const Onnx__FunctionProto *p, oct_function *f)
{
    oct_attr *list = oct_arena_calloc(b->g->arena, p->n_attribute_proto + 1, sizeof *list);
    load_graph inner = { .m = b->m, .g = f->body, .err = b->err };
    if (!list)
        return oct_nomem(b->err);
    for (size_t i = 0; i < p->n_attribute_proto; i++) {
        if (!*load_text(p->attribute_proto[i]->name))
            return oct_fail(b->err, OCT_EMALFORMED, "an attribute has no name");
        OCT_TRY(load_attr(&inner, p->attribute_proto[i], &list[i]));
    }
    f->defaults = list;
    f->n_defaults = p->n_attribute_proto;
    return OCT_OK;
}

oct_status load_functions(load_graph *b, const Onnx__ModelProto *p)
{
    oct_function *f = oct_arena_calloc(b->g->arena, p->n_functions + 1, sizeof *f);
    if (!f)
        return oct_nomem(b->err);
    for (size_t i = 0; i < p->n_functions; i++) {
        const Onnx__FunctionProto *x = p->functions[i];
        f[i] = (oct_function){ .domain = load_domain(x->domain),
                               .name = load_text(x->name),
                               .overload = load_text(x->overload) };
        oct_status s = build_body(b, x, &f[i]);
        if (s == OCT_OK)
            s = read_defaults(b, x, &f[i]);
        if (s != OCT_OK) {
            oct_within(b->err, "function '%s%s%s'", f[i].domain, *f[i].domain ? "." : "", f[i].name);
            return s;
        }
    }
    return oct_graph_set_functions(b->g, f, p->n_functions, b->err);
}
