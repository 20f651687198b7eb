/* Reads QLinear operators by the table of qlinear.h. */
#include "forms/edit.h"
#include "forms/qlinear.h"
#include "forms/read/read_int.h"

/* A node as it is read. */
typedef struct qnode {
    const oct_qlinear *f;
    const int *in; /* its inputs */
    int n_in, n_data;
    const oct_quant **q; /* of the data, then of the bias */
    const oct_quant *y;  /* NULL: the output is real */
} qnode;

static int at(const qnode *x, int slot)
{
    return slot >= 0 && slot < x->n_in ? x->in[slot] : -1;
}

static oct_status read_params(forms_reader *r, const oct_node *n, qnode *x, bool *fits, oct_err *err)
{
    const oct_qlinear *f = x->f;
    *fits = false;
    for (int i = 0; i < x->n_data; i++) {
        const int slot = oct_qlinear_slot(f, i), data = at(x, slot);
        if (data < 0)
            return OCT_OK;
        const forms_qparams qparams = { at(x, slot + 1), at(x, slot + 2),
                                        oct_qlinear_axis(f, n, i, r->g->value[data].shape.rank), 0 };
        OCT_TRY(forms_params(r, &qparams, data, &x->q[i], err));
        if (!x->q[i])
            return OCT_OK;
    }
    const forms_qparams qparams = { at(x, f->y), at(x, f->y + 1), 0, 0 };
    OCT_TRY(forms_params(r, &qparams, n->out[0], &x->y, err));
    *fits = x->y || (f->y_real && qparams.scale < 0);
    return OCT_OK;
}

/* The quantization of the bias, with scale s_x * s_w. */
static oct_status bias_quant(forms_reader *r, const qnode *x, const oct_quant **q, oct_err *err)
{
    const oct_quant *w = x->q[1];
    float *scale = oct_arena_calloc(r->g->arena, (size_t)w->n, sizeof *scale);
    int32_t *zero = oct_arena_calloc(r->g->arena, (size_t)w->n, sizeof *zero);
    if (!scale || !zero)
        return oct_nomem(err);
    for (int i = 0; i < w->n; i++)
        scale[i] = x->q[0]->scale[0] * w->scale[i];
    return forms_quant(r, &(oct_quant){ .n = w->n, .scale = scale, .zp = zero, .dtype = OCT_S32 }, q, err);
}

/* Turns the node into the operator on real numbers. */
static oct_status become(forms_reader *r, int id, qnode *x, oct_err *err)
{
    oct_graph *g = r->g;
    const int bias = at(x, x->f->bias);
    oct_graph_cut_inputs(g, id, 0);
    if (bias >= 0)
        OCT_TRY(bias_quant(r, x, &x->q[x->n_data], err));
    for (int i = 0; i < x->n_data + (bias >= 0); i++) {
        const int qvals = i < x->n_data ? at(x, oct_qlinear_slot(x->f, i)) : bias;
        int v;
        OCT_TRY(forms_annotated_of(r, qvals, x->q[i], OCT_F32, -1, id, &v, err));
        OCT_TRY(oct_graph_set_input(g, id, i, v, err));
    }
    OCT_TRY(oct_edit_become(g, id, x->f->op, "", x->f->opset, err));
    return x->y ? forms_take_output(r, id, 0, x->y, err) : OCT_OK;
}

/* Whether the table describes the node. It does not if a factor gives the bias another scale. Channels as the last
 * dimension are left to a pass (passes/rewrites/pass_nhwc.c). */
static bool is_plain(const qnode *x, const oct_node *n)
{
    const bool factor = at(x, x->f->bias) >= 0 && oct_node_float(n, "alpha", 1.0f) != 1.0f;
    return !factor && !oct_node_int(n, "channels_last", 0) && n->n_out == 1 && n->out[0] >= 0;
}

oct_status forms_read_qlinear(forms_reader *r, int id, bool *done, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[id];
    qnode x = { .f = oct_qlinear_of(n), .n_in = n->n_in };
    bool fits;
    *done = false;
    if (!x.f)
        return OCT_OK;
    x.n_data = x.f->n_data < 0 ? (n->n_in - x.f->first) / 3 : x.f->n_data;
    if (x.n_data < 1 || (x.f->n_data < 0 && oct_qlinear_slot(x.f, x.n_data) != n->n_in))
        return OCT_OK;
    x.in = oct_arena_memdup(g->arena, n->in, (size_t)n->n_in * sizeof *n->in);
    x.q = oct_arena_calloc(g->arena, (size_t)x.n_data + 1, sizeof *x.q);
    if (!x.in || !x.q)
        return oct_nomem(err);
    if (!is_plain(&x, n))
        return OCT_OK;
    OCT_TRY(read_params(r, n, &x, &fits, err));
    if (!fits || x.q[0]->n != 1)
        return OCT_OK;
    *done = true;
    return become(r, id, &x, err);
}
