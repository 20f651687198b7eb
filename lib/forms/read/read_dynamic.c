/* Dynamic quantization: DynamicQuantizeLinear - MatMulInteger - Cast - Mul by s_a * s_b is a MatMul whose first factor
 * is quantized at run time. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "passes/match.h"

/* The nodes of a chain, except for the product, and the parameters of the weights. */
typedef struct chain {
    int quantizer, cast, mul, scales;
    forms_qparams qparams;
} chain;

static int quantizer_of(const oct_graph *g, const oct_node *mm)
{
    const int id = g->value[mm->in[0]].producer;
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    const bool is = n && forms_is(n, "DynamicQuantizeLinear") && n->n_in == 1 && n->n_out == 3 && n->in[0] >= 0 &&
                    n->out[0] == mm->in[0] && n->out[1] >= 0 && n->out[2] == oct_input_at(mm, 2);
    return is && g->value[n->in[0]].dtype == OCT_F32 ? id : -1;
}

/* The node with this operator that is the only reader of a node's output, unless that output is looked at; -1: there is
 * none. */
static int behind(const forms_reader *r, int id, const char *op)
{
    const int value = r->g->node[id].out[0], next = forms_seen(r, value) ? -1 : oct_only_reader(r->g, value);
    return next >= 0 && oct_is_op(&r->g->node[next], op) && r->g->node[next].n_out == 1 ? next : -1;
}

/* Finds scale and zero point of the weights: one for all columns, or one for each. */
static bool find_qparams(const oct_graph *g, const oct_node *mm, int scale, forms_qparams *qparams)
{
    const int zero = oct_input_at(mm, 3);
    const oct_shape *b = &g->value[mm->in[1]].shape;
    const oct_tensor *s = oct_graph_constant(g, scale), *z = oct_graph_constant(g, zero);
    if (!s || s->dtype != OCT_F32 || s->rank > 1 || (zero >= 0 && (!z || z->rank > 1)))
        return false;
    *qparams = (forms_qparams){ scale, zero, .axis = -1, .count = z && z->count > s->count ? z->count : s->count };
    return qparams->count == 1 || qparams->count == b->d[b->rank - 1].n;
}

static bool match(const forms_reader *r, int id, chain *c)
{
    const oct_graph *g = r->g;
    const oct_node *mm = &g->node[id];
    if (!oct_is_op(mm, "MatMulInteger") || mm->n_in < 2 || mm->n_out != 1 || mm->out[0] < 0 || mm->in[0] < 0 ||
        mm->in[1] < 0)
        return false;
    c->quantizer = quantizer_of(g, mm);
    c->cast = behind(r, id, "Cast");
    c->mul = c->cast >= 0 && oct_node_int(&g->node[c->cast], "to", 0) == OCT_F32 ? behind(r, c->cast, "Mul") : -1;
    if (c->quantizer < 0 || c->mul < 0 || g->value[mm->in[1]].shape.rank < 2)
        return false;
    const int scales = oct_other_input(&g->node[c->mul], g->node[c->cast].out[0]);
    c->scales = oct_made_by(g, scales, "Mul", 2);
    if (c->scales < 0 || forms_seen(r, scales))
        return false;
    return find_qparams(g, mm, oct_other_input(&g->node[c->scales], g->node[c->quantizer].out[1]), &c->qparams);
}

/* The value after the border that quantizes x. Products that read the same x share it. */
static oct_status quantized(forms_reader *r, int quantizer, int *v, oct_err *err)
{
    static const oct_quant dynamic = { .dtype = OCT_U8 };
    oct_graph *g = r->g;
    const int x = g->node[quantizer].in[0], border = oct_reader_of(g, x, "DynamicQuantizeLinear", 1);
    int id;
    if (border >= 0) {
        *v = g->node[border].out[0];
        return OCT_OK;
    }
    OCT_TRY(oct_edit_value(g, g->value[x].name, "", OCT_F32, x, v, err));
    g->value[*v].quant = &dynamic;
    OCT_TRY(oct_graph_add_node(g, "DynamicQuantizeLinear", "", g->node[quantizer].name, 1, 1, quantizer, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, x, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, *v, err));
    return forms_add_annotated(r, g->node[quantizer].out[0], *v, err);
}

oct_status forms_read_dynamic(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    chain c;
    const oct_quant *q;
    int x, w;
    if (!match(r, id, &c))
        return OCT_OK;
    const int b = g->node[id].in[1], out = g->node[c.mul].out[0];
    OCT_TRY(forms_params(r, &c.qparams, b, &q, err));
    if (!q)
        return OCT_OK;
    OCT_TRY(quantized(r, c.quantizer, &x, err));
    OCT_TRY(forms_stem(r, g->value[g->node[id].out[0]].name, "_integer", g->node[id].name, &g->node[id].name, err));
    oct_graph_cut_inputs(g, id, 0);
    OCT_TRY(forms_annotated_of(r, b, q, OCT_F32, -1, id, &w, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, x, err));
    OCT_TRY(oct_graph_set_input(g, id, 1, w, err));
    if (oct_only_reader(g, g->node[c.scales].out[0]) == c.mul)
        oct_graph_remove_node(g, c.scales);
    oct_graph_remove_node(g, c.mul);
    oct_graph_remove_node(g, c.cast);
    OCT_TRY(oct_graph_set_output(g, id, 0, out, err));
    return oct_edit_become(g, id, "MatMul", "", 13, err);
}
