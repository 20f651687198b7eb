/* Pass: an Einsum of data and a constant that equals a product with one matrix becomes a MatMul, so that it can be
 * quantized. The dimensions over which the product sums, and those that it adds, are merged around it. The constant is
 * brought into the order of both. */
#include "passes/pass.h"

#include "ops/nn/einsum.h"

#include <string.h>

/* The labels of the data that the product keeps, those over which it sums, and the labels that the constant adds. */
typedef struct plan {
    int node, x, w; /* values */
    oct_einsum_term data, weights, out, kept, summed, made;
} plan;

static bool repeats(const oct_einsum_term *t)
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < i; k++)
            if (t->label[i] == t->label[k])
                return true;
    return false;
}

static void append(oct_einsum_term *t, int8_t label)
{
    t->label[t->n++] = label;
}

/* Sorts labels into the plan. False: the product is not one with a single matrix for all data, or it sums over a single
 * operand. */
static bool sort_labels(plan *p)
{
    if (repeats(&p->data) || repeats(&p->weights) || repeats(&p->out))
        return false;
    for (int i = 0; i < p->data.n; i++) {
        const int8_t label = p->data.label[i];
        const bool weighs = oct_einsum_has(&p->weights, label), stays = oct_einsum_has(&p->out, label);
        if (weighs == stays)
            return false;
        append(weighs ? &p->summed : &p->kept, label);
    }
    for (int i = 0; i < p->out.n; i++)
        if (!oct_einsum_has(&p->data, p->out.label[i]))
            append(&p->made, p->out.label[i]);
    return p->kept.n > 0 && p->summed.n > 0 && p->made.n > 0 && p->weights.n == p->summed.n + p->made.n;
}

static int place_of(const oct_einsum_term *t, int label)
{
    int i = 0;
    while (t->label[i] != label)
        i++;
    return i;
}

static int64_t size_of(const oct_graph *g, const plan *p, int label)
{
    return g->value[p->w].constant->dims[place_of(&p->weights, label)];
}

/* Whether the dimensions of the sum have known sizes that are the same in both operands. An Einsum may otherwise
 * broadcast a dimension of 1. */
static bool sizes_agree(const oct_graph *g, const plan *p)
{
    bool agree = true;
    for (int i = 0; i < p->summed.n; i++)
        agree &= g->value[p->x].shape.d[place_of(&p->data, p->summed.label[i])].n == size_of(g, p, p->summed.label[i]);
    return agree;
}

static bool read_plan(const oct_graph *g, int id, plan *p)
{
    const oct_node *n = &g->node[id];
    if (strcmp(n->op, "Einsum") != 0 || n->domain[0] || n->n_in != 2 || n->n_out != 1 || n->in[0] < 0 || n->in[1] < 0 ||
        n->out[0] < 0)
        return false;
    const bool first = g->value[n->in[0]].constant != NULL;
    *p = (plan){ .node = id, .x = n->in[first], .w = n->in[!first] };
    const oct_value *x = &g->value[p->x], *w = &g->value[p->w];
    if (!w->constant || x->constant || w->dtype != OCT_F32 || x->dtype != OCT_F32 || x->shape.rank < 0)
        return false;
    const int rank[] = { first ? w->constant->rank : x->shape.rank, first ? x->shape.rank : w->constant->rank };
    oct_einsum e;
    if (oct_einsum_parse(oct_node_str(n, "equation", ""), rank, 2, &e, NULL) != OCT_OK)
        return false;
    p->data = e.in[first];
    p->weights = e.in[!first];
    p->out = e.out;
    return sort_labels(p) && sizes_agree(g, p);
}

/* Adds a node before the Einsum, with one or two inputs; *out is its result, named after `base`. */
static oct_status emit(oct_graph *g, const plan *p, const char *base, const char *op, int a, int b, int *out,
                       oct_err *err)
{
    const char *name = g->node[p->node].name;
    int id;
    OCT_TRY(oct_graph_add_node(g, op, "", b >= 0 ? name : "", 1, 1, p->node, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, a, err));
    if (b >= 0)
        OCT_TRY(oct_graph_set_input(g, id, 1, b, err));
    OCT_TRY(oct_graph_new_value(g, base, OCT_F32, out, err));
    return oct_graph_set_output(g, id, 0, *out, err);
}

/* Transposes v, whose dimensions have the labels of `is`, to the order of a followed by b. */
static oct_status order(oct_graph *g, const plan *p, const oct_einsum_term *is, const oct_einsum_term *a,
                        const oct_einsum_term *b, const char *base, int *v, oct_err *err)
{
    int64_t perm[OCT_MAX_RANK];
    bool same = true;
    for (int i = 0; i < is->n; i++) {
        perm[i] = place_of(is, i < a->n ? a->label[i] : b->label[i - a->n]);
        same &= perm[i] == i;
    }
    if (same)
        return OCT_OK;
    OCT_TRY(emit(g, p, base, "Transpose", *v, -1, v, err));
    return oct_node_set_ints(g, g->value[*v].producer, "perm", perm, is->n, err);
}

static oct_status reshape(oct_graph *g, const plan *p, const int64_t *dims, int n, const char *base, int *v,
                          oct_err *err)
{
    int shape;
    OCT_TRY(oct_graph_new_const_s64(g, "einsum_shape", 1, (int64_t[]){ n }, dims, &shape, err));
    const int x = *v;
    OCT_TRY(emit(g, p, base, "Reshape", x, -1, v, err));
    return oct_graph_set_input(g, g->value[*v].producer, 1, shape, err);
}

static int64_t product_of(const oct_graph *g, const plan *p, const oct_einsum_term *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n; i++)
        n *= size_of(g, p, t->label[i]);
    return n;
}

static oct_status rewrite(oct_graph *g, const plan *p, oct_err *err)
{
    const int y = g->node[p->node].out[0];
    int64_t dims[OCT_MAX_RANK] = { 0 }; /* 0: the dimension is copied */
    int x = p->x, w = p->w;
    const char *const name = g->value[y].name, *const weights = g->value[w].name;
    OCT_TRY(order(g, p, &p->weights, &p->summed, &p->made, weights, &w, err));
    if (p->weights.n > 2)
        OCT_TRY(reshape(g, p, (int64_t[]){ product_of(g, p, &p->summed), product_of(g, p, &p->made) }, 2, weights, &w,
                        err));
    OCT_TRY(order(g, p, &p->data, &p->kept, &p->summed, name, &x, err));
    dims[p->kept.n] = product_of(g, p, &p->summed);
    if (p->summed.n > 1)
        OCT_TRY(reshape(g, p, dims, p->kept.n + 1, name, &x, err));
    OCT_TRY(emit(g, p, name, "MatMul", x, w, &x, err));
    for (int i = 0; i < p->made.n; i++)
        dims[p->kept.n + i] = size_of(g, p, p->made.label[i]);
    if (p->made.n > 1)
        OCT_TRY(reshape(g, p, dims, p->kept.n + p->made.n, name, &x, err));
    oct_einsum_term is = p->kept;
    for (int i = 0; i < p->made.n; i++)
        append(&is, p->made.label[i]);
    OCT_TRY(order(g, p, &is, &p->out, &(oct_einsum_term){ 0 }, name, &x, err));
    const int last = g->value[x].producer;
    oct_graph_remove_node(g, p->node);
    OCT_TRY(oct_graph_set_output(g, last, 0, y, err));
    oct_graph_remove_value(g, x);
    return OCT_OK;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    plan p;
    if (!read_plan(g, id, &p))
        return OCT_OK;
    oct_pass_note(log, self, "Einsum", g->node[id].name);
    return rewrite(g, &p, err);
}

const oct_pass oct_pass_einsum = { .name = "einsum",
                                   .summary = "make an Einsum that is a product with a constant matrix a MatMul",
                                   .at = at };
