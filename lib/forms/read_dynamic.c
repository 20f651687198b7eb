/* Dynamic quantization: DynamicQuantizeLinear - MatMulInteger - Cast - Mul by s_a * s_b is a MatMul of what is quantized when run. */
#include "forms/read_int.h"

#include "passes/match.h"

#include <string.h>

/* The values and nodes of a chain. */
typedef struct chain {
    int quantizer, cast, mul; /* nodes */
    int b, zb, sb;            /* of the weights; zb -1: none */
    int out;
} chain;

static int64_t count_of(const oct_graph *g, int value)
{
    int64_t d[OCT_MAX_RANK], n;
    const oct_shape *s = &g->value[value].shape;
    return oct_shape_known(s, d) && oct_count(d, s->rank, &n) ? n : -1;
}

/* Whether the product of scales is s_a times a constant: one, or one a column. */
static bool match_scales(const oct_graph *g, int value, int64_t columns, chain *c)
{
    const int id = oct_made_by(g, value, "Mul", 2), sa = g->node[c->quantizer].out[1];
    c->sb = id >= 0 ? oct_other_input(&g->node[id], sa) : -1;
    const oct_tensor *t = c->sb >= 0 ? g->value[c->sb].konst : NULL;
    return t && t->dtype == OCT_F32 && t->rank <= 1 && (t->count == 1 || t->count == columns);
}

/* A constant zero point of B, or one a column. */
static bool plain_zeros(const oct_graph *g, int zb, int64_t columns)
{
    const oct_tensor *t = zb >= 0 ? g->value[zb].konst : NULL;
    return zb < 0 || (t && t->data && t->rank <= 1 && (t->count == 1 || t->count == columns));
}

static int quantizer_of(const oct_graph *g, const oct_node *mm)
{
    const int id = g->value[mm->in[0]].producer;
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    const bool is = n && forms_is(n, "DynamicQuantizeLinear") && n->n_in == 1 && n->n_out == 3 && n->in[0] >= 0 && n->out[0] == mm->in[0] &&
                    n->out[1] >= 0 && n->out[2] == oct_input_at(mm, 2);
    return is && g->value[n->in[0]].dtype == OCT_F32 ? id : -1;
}

static bool match(const forms_reader *r, int id, chain *c)
{
    const oct_graph *g = r->g;
    const oct_node *mm = &g->node[id];
    if (!oct_is_op(mm, "MatMulInteger") || mm->n_in < 2 || mm->n_out != 1 || mm->out[0] < 0 || mm->in[0] < 0 || mm->in[1] < 0)
        return false;
    *c = (chain){ .quantizer = quantizer_of(g, mm), .b = mm->in[1], .zb = oct_input_at(mm, 3) };
    const oct_shape *acc = &g->value[mm->out[0]].shape;
    c->cast = oct_only_reader(g, mm->out[0]);
    if (c->quantizer < 0 || acc->rank < 1 || g->value[c->b].shape.rank < 2 || c->cast < 0 || !oct_is_op(&g->node[c->cast], "Cast") ||
        oct_node_int(&g->node[c->cast], "to", 0) != OCT_F32)
        return false;
    const int real = g->node[c->cast].out[0];
    const int64_t columns = acc->d[acc->rank - 1].n;
    c->mul = oct_only_reader(g, real);
    const oct_node *n = c->mul >= 0 ? &g->node[c->mul] : NULL;
    const int scales = n && oct_is_op(n, "Mul") && n->n_out == 1 ? oct_other_input(n, real) : -1;
    if (scales < 0 || forms_seen(r, mm->out[0]) || forms_seen(r, real) || forms_seen(r, scales))
        return false;
    if (!plain_zeros(g, c->zb, columns) || !match_scales(g, scales, columns, c))
        return false;
    c->out = n->out[0];
    return g->value[c->out].shape.rank == acc->rank && count_of(g, c->out) == count_of(g, real);
}

/* Where scale and zero point differ in number, the one there is stands for all. */
static oct_status widen(forms_reader *r, int value, int64_t count, int *wide, oct_err *err)
{
    const oct_tensor *t = r->g->value[value].konst;
    const size_t size = t->count ? t->bytes / (size_t)t->count : 0;
    *wide = value;
    if (t->count == count)
        return OCT_OK;
    char *to = oct_arena_calloc(r->g->arena, (size_t)count, size);
    for (int64_t i = 0; to && i < count; i++)
        memcpy(to + (size_t)i * size, t->data, size);
    return to ? oct_graph_new_const(r->g, r->g->value[value].name, t->dtype, 1, &count, to, wide, err) : oct_nomem(err);
}

/* The weights' grid; NULL: none that can be read. */
static oct_status weights(forms_reader *r, chain *c, const oct_quant **q, oct_err *err)
{
    const int64_t scales = r->g->value[c->sb].konst->count, zeros = c->zb >= 0 ? r->g->value[c->zb].konst->count : 1;
    const int64_t most = scales > zeros ? scales : zeros;
    OCT_TRY(widen(r, c->sb, most, &c->sb, err));
    if (c->zb >= 0)
        OCT_TRY(widen(r, c->zb, most, &c->zb, err));
    return forms_params(r, &(forms_grid){ c->sb, c->zb, -1, 0 }, c->b, q, err);
}

/* The value that carries what x is quantized to; products of one x share it. */
static oct_status quantized(forms_reader *r, int quantizer, int *v, oct_err *err)
{
    oct_graph *g = r->g;
    const int x = g->node[quantizer].in[0];
    int id;
    for (size_t i = 0; i < g->value[x].n_uses; i++) {
        const oct_node *n = g->value[x].uses[i].slot == 0 ? &g->node[g->value[x].uses[i].node] : NULL;
        if (n && oct_is_op(n, "DynamicQuantizeLinear") && n->n_out == 1) {
            *v = n->out[0];
            return OCT_OK;
        }
    }
    oct_quant *q = oct_arena_calloc(g->arena, 1, sizeof *q);
    if (!q)
        return oct_nomem(err);
    q->dtype = OCT_U8;
    OCT_TRY(oct_graph_new_value(g, g->value[x].name, OCT_F32, v, err));
    OCT_TRY(oct_graph_set_shape(g, *v, g->value[x].shape.rank, g->value[x].shape.d, err));
    g->value[*v].quant = q;
    OCT_TRY(oct_graph_add_node(g, "DynamicQuantizeLinear", "", g->node[quantizer].name, 1, 1, quantizer, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, x, err));
    return oct_graph_set_output(g, id, 0, *v, err);
}

oct_status forms_read_dynamic(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    chain c;
    const oct_quant *q;
    int x, w;
    if (!match(r, id, &c))
        return OCT_OK;
    OCT_TRY(weights(r, &c, &q, err));
    if (!q)
        return OCT_OK;
    OCT_TRY(quantized(r, c.quantizer, &x, err));
    OCT_TRY(forms_twin_of(r, c.b, q, OCT_F32, -1, id, &w, err));
    oct_graph_remove_node(g, c.mul);
    oct_graph_remove_node(g, c.cast);
    oct_graph_cut_inputs(g, id, 2);
    OCT_TRY(oct_graph_set_input(g, id, 0, x, err));
    OCT_TRY(oct_graph_set_input(g, id, 1, w, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, c.out, err));
    g->node[id].op = "MatMul";
    g->node[id].opset = 13;
    return OCT_OK;
}
