/* Integer values of a graph that is read, and the annotated values that represent them. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "base/array.h"
#include "kernels/half.h"
#include "ops/core/small.h"
#include "passes/match.h"

#include <math.h>
#include <string.h>

bool forms_is(const oct_node *n, const char *op)
{
    return strcmp(n->op, op) == 0 && (n->domain[0] == 0 || strcmp(n->domain, "com.microsoft") == 0);
}

/* What is known about a value; NULL: out of memory. */
static forms_value *known(forms_reader *r, int v)
{
    while (r->n_value <= (size_t)v) {
        if (!OCT_GROW(r->g->arena, r->value, r->n_value, r->cap_value))
            return NULL;
        r->value[r->n_value++] = (forms_value){ .now = -1 };
    }
    return &r->value[v];
}

bool forms_seen(const forms_reader *r, int v)
{
    for (size_t i = 0; i < r->opts->n_seen; i++)
        if (r->opts->seen[i] == v)
            return true;
    return false;
}

/* Notes that value `to` replaces value `from`. */
static oct_status move(forms_reader *r, int from, int to, oct_err *err)
{
    forms_value *x = known(r, from);
    if (!x)
        return oct_nomem(err);
    if (x->now < 0)
        x->now = to;
    return OCT_OK;
}

oct_status forms_replace(forms_reader *r, int from, int to, oct_err *err)
{
    oct_graph *g = r->g;
    const int p = g->value[from].producer;
    if (p >= 0)
        OCT_TRY(oct_graph_set_output(g, p, oct_edit_output_slot(g, p, from), to, err));
    if (g->value[from].quant)
        g->value[to].quant = g->value[from].quant;
    OCT_TRY(oct_graph_replace_uses(g, from, to, err));
    oct_graph_remove_value(g, from);
    return move(r, from, to, err);
}

/* ---- parameters ---- */

static bool is_zero_type(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16 || t == OCT_S32 || oct_is_small_int(t);
}

oct_status forms_quant(forms_reader *r, const oct_quant *like, const oct_quant **q, oct_err *err)
{
    *q = oct_arena_memdup(r->g->arena, like, sizeof **q);
    return *q ? OCT_OK : oct_nomem(err);
}

/* Whether constants of scales and zero points fit the shape of the quantized values. */
static bool qparams_fit(const forms_qparams *qparams, int64_t axis, const oct_tensor *s, const oct_tensor *z,
                        const oct_value *qvals)
{
    const oct_shape *x = &qvals->shape;
    const int64_t n = qparams->count;
    if (!(s->dtype == OCT_F32 || oct_is_half(s->dtype)) || s->count < 1 || s->count > INT32_MAX || n > INT32_MAX ||
        (z && z->dtype != qvals->dtype))
        return false;
    if (n)
        return (s->count == n || s->count == 1) && (!z || z->count == n || z->count == 1);
    if (z && z->count != s->count)
        return false;
    if (qparams->block == 0 && s->count == 1)
        return s->rank <= 1;
    if (axis < 0 || axis >= x->rank || (qparams->block == 0 && (s->rank != 1 || x->d[axis].n != s->count)))
        return false;
    for (int i = 0; i < x->rank && qparams->block > 0; i++)
        if (s->rank != x->rank ||
            s->dims[i] != (i == axis ? x->d[i].n / qparams->block + (x->d[i].n % qparams->block != 0) : x->d[i].n))
            return false;
    return qparams->block >= 0;
}

/* Whether all channels have the same parameters, as oct_keep_real_layers writes them. */
static bool are_equal(const float *scales, const int32_t *zeros, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (scales[i] != scales[0] || zeros[i] != zeros[0])
            return false;
    return true;
}

oct_status forms_params(forms_reader *r, const forms_qparams *qparams, int qvals, const oct_quant **q, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_value *v = &g->value[qvals];
    const oct_tensor *s = oct_graph_constant(g, qparams->scale), *z = oct_graph_constant(g, qparams->zero);
    const int64_t axis = qparams->axis < 0 ? qparams->axis + v->shape.rank : qparams->axis;
    *q = NULL;
    if (!s || !s->data || (qparams->zero >= 0 && (!z || !z->data)) || !is_zero_type(v->dtype) ||
        !qparams_fit(qparams, axis, s, z, v))
        return OCT_OK;
    const int64_t n = qparams->count ? qparams->count : s->count;
    float *scales = oct_arena_calloc(g->arena, (size_t)n, sizeof *scales);
    int32_t *zeros = oct_arena_calloc(g->arena, (size_t)n, sizeof *zeros);
    if (!scales || !zeros)
        return oct_nomem(err);
    OCT_TRY(oct_array_convert(s->dtype, s->data, OCT_F32, scales, (size_t)s->count, err));
    for (int64_t i = 0; z && oct_is_small_int(z->dtype) && i < z->count; i++)
        zeros[i] = (int32_t)oct_small_get(z->dtype, z->data, i);
    if (z && !oct_is_small_int(z->dtype))
        OCT_TRY(oct_array_convert(z->dtype, z->data, OCT_S32, zeros, (size_t)z->count, err));
    for (int64_t i = 0; i < n; i++) {
        scales[i] = scales[s->count > 1 ? i : 0];
        zeros[i] = zeros[z && z->count == 1 ? 0 : i];
        if (!isfinite(scales[i]) || (scales[i] <= 0.0f && qparams->block == 0))
            return OCT_OK; /* in blocks, scales may be negative */
    }
    const bool one =
        qparams->block == 0 && (n == 1 || (!qparams->count && !v->constant && are_equal(scales, zeros, n)));
    const oct_quant made = { .n = one ? 1 : (int)n,
                             .axis = one ? 0 : (int)axis,
                             .scale = scales,
                             .zp = zeros,
                             .dtype = v->dtype,
                             .block = qparams->block };
    forms_value *of = known(r, qparams->scale);
    if (!of || (!(of->qparams && oct_quant_same(of->qparams, &made)) &&
                !(of->qparams = oct_arena_memdup(g->arena, &made, sizeof made))))
        return oct_nomem(err);
    *q = of->qparams;
    return OCT_OK;
}

oct_status forms_params_of(forms_reader *r, const oct_node *n, int qvals, const oct_quant **q, oct_err *err)
{
    const forms_qparams qparams = { n->in[1], oct_input_at(n, 2), oct_node_int(n, "axis", 1),
                                    oct_node_int(n, "block_size", 0) };
    return forms_params(r, &qparams, qvals, q, err);
}

/* ---- integer values ---- */

static bool is_needed(const oct_graph *g, int v)
{
    return g->value[v].n_uses || g->value[v].is_output;
}

oct_status forms_add_annotated(forms_reader *r, int qvals, int v, oct_err *err)
{
    forms_value *x = known(r, qvals);
    forms_annotated *t = x ? oct_arena_alloc(r->g->arena, sizeof *t) : NULL;
    if (!t)
        return oct_nomem(err);
    *t = (forms_annotated){ v, x->annotated };
    x->annotated = t;
    return OCT_OK;
}

/* The same for a value that reading has found or made: from now on, v replaces the quantized values. */
static oct_status new_annotated(forms_reader *r, int qvals, int v, oct_err *err)
{
    OCT_TRY(forms_add_annotated(r, qvals, v, err));
    return move(r, qvals, v, err);
}

oct_status forms_stem(forms_reader *r, const char *name, const char *suffix, const char *absent, const char **stem,
                      oct_err *err)
{
    const size_t n = strlen(name), m = strlen(suffix);
    const bool ends = n > m && strcmp(name + n - m, suffix) == 0;
    *stem = ends ? oct_arena_strndup(r->g->arena, name, n - m) : absent;
    return *stem ? OCT_OK : oct_nomem(err);
}

/* Adds a value with the shape of `qvals`. If these are named X_quantized, it is named X. */
static oct_status new_value(forms_reader *r, int qvals, oct_dtype real, int *v, oct_err *err)
{
    const oct_graph *g = r->g;
    const char *name;
    OCT_TRY(forms_stem(r, g->value[qvals].name, "_quantized", g->value[qvals].name, &name, err));
    return oct_edit_value(r->g, name, "", real, qvals, v, err);
}

/* The quantization of values that a QuantizeLinear computes from real numbers; NULL: something else computes them, or
 * the node cannot be read. */
static oct_status quantizer_of(forms_reader *r, int qvals, const oct_quant **q, oct_err *err)
{
    const oct_graph *g = r->g;
    const int p = g->value[qvals].producer;
    const oct_node *n = p >= 0 ? &g->node[p] : NULL;
    *q = NULL;
    if (!n || !forms_is(n, "QuantizeLinear") || n->n_in < 2 || n->n_out != 1 || n->in[0] < 0 ||
        oct_node_int(n, "block_size", 0))
        return OCT_OK;
    const oct_dtype real = g->value[n->in[0]].dtype;
    return real == OCT_F32 || oct_is_half(real) ? forms_params_of(r, n, qvals, q, err) : OCT_OK;
}

/* Makes a quantizer the border that computes v. If the quantized values are still needed, a second border computes them
 * from v. */
static oct_status make_border(forms_reader *r, int id, int qvals, int v, oct_err *err)
{
    oct_graph *g = r->g;
    const int behind = oct_edit_after(g, id);
    oct_graph_cut_inputs(g, id, 1);
    if (g->node[id].domain[0]) /* within the graph a border is of ONNX's domain */
        OCT_TRY(oct_edit_become(g, id, "QuantizeLinear", "", 0, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, v, err));
    return is_needed(g, qvals) ? oct_edit_node(g, "QuantizeLinear", &v, 1, qvals, behind, NULL, err) : OCT_OK;
}

oct_status forms_annotated_of(forms_reader *r, int qvals, const oct_quant *q, oct_dtype real, int into, int before,
                              int *v, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_tensor *constant = g->value[qvals].constant;
    const forms_value *x = known(r, qvals);
    const oct_quant *own;
    const int id = g->value[qvals].producer;
    if (!x)
        return oct_nomem(err);
    for (const forms_annotated *t = x->annotated; t; t = t->next)
        if (!g->value[t->value].dead && g->value[t->value].dtype == real &&
            oct_quant_same(g->value[t->value].quant, q)) {
            *v = t->value;
            return OCT_OK;
        }
    OCT_TRY(quantizer_of(r, qvals, &own, err));
    const bool rounds = own && oct_quant_same(own, q) && g->value[g->node[id].in[0]].dtype == real;
    if (rounds && oct_quant_same(g->value[g->node[id].in[0]].quant, q)) {
        *v = g->node[id].in[0]; /* it has these parameters already, and the quantized values are its numbers */
        oct_graph_cut_inputs(g, id, 1);
        return new_annotated(r, qvals, *v, err);
    }
    *v = into;
    if (into < 0)
        OCT_TRY(new_value(r, qvals, real, v, err));
    g->value[*v].quant = q;
    if (constant) {
        oct_quant with = *q;
        with.qvals = constant;
        OCT_TRY(forms_quant(r, &with, &g->value[*v].quant, err));
    } else {
        OCT_TRY(rounds ? make_border(r, id, qvals, *v, err)
                       : oct_edit_node(g, "DequantizeLinear", &qvals, 1, *v, before, NULL, err));
    }
    return new_annotated(r, qvals, *v, err);
}

/* The first value that carries the quantization of these quantized values; -1: there is none. */
static int first_annotated(const forms_reader *r, int qvals)
{
    const forms_annotated *t = (size_t)qvals < r->n_value ? r->value[qvals].annotated : NULL;
    while (t && r->g->value[t->value].dead)
        t = t->next;
    return t ? t->value : -1;
}

oct_status forms_known(forms_reader *r, int qvals, int before, int *v, oct_err *err)
{
    const oct_quant *q;
    const int id = r->g->value[qvals].producer;
    *v = first_annotated(r, qvals);
    if (*v >= 0)
        return OCT_OK;
    OCT_TRY(quantizer_of(r, qvals, &q, err));
    return !q ? OCT_OK : forms_annotated_of(r, qvals, q, r->g->value[r->g->node[id].in[0]].dtype, -1, before, v, err);
}

oct_status forms_take_output(forms_reader *r, int node, int slot, const oct_quant *q, oct_err *err)
{
    const int qvals = r->g->node[node].out[slot], behind = oct_edit_after(r->g, node);
    int v;
    OCT_TRY(new_value(r, qvals, OCT_F32, &v, err));
    r->g->value[v].quant = q;
    OCT_TRY(oct_graph_set_output(r->g, node, slot, v, err));
    OCT_TRY(oct_edit_node(r->g, "QuantizeLinear", &v, 1, qvals, behind, NULL, err));
    return new_annotated(r, qvals, v, err);
}

oct_status forms_settle(forms_reader *r, int qvals, oct_err *err)
{
    oct_graph *g = r->g;
    oct_value *c = &g->value[qvals];
    const int v = first_annotated(r, qvals);
    if (v < 0 || c->dead || c->is_input || c->outer >= 0 || is_needed(g, qvals) || forms_seen(r, qvals))
        return OCT_OK;
    const oct_value *x = &g->value[v];
    const int p = x->producer;
    const oct_node *n = c->producer >= 0 ? &g->node[c->producer] : NULL;
    if (oct_edit_keeps(g, v) || !(x->quant->qvals || (p >= 0 && oct_border_of(g, &g->node[p]))))
        return OCT_OK;
    for (int k = 0; n && k < n->n_out; k++)
        if (n->out[k] >= 0 && is_needed(g, n->out[k]))
            return OCT_OK;
    if (n)
        oct_graph_remove_node(g, c->producer);
    c->dtype = x->dtype;
    c->shape = x->shape;
    c->constant = NULL;
    r->value[qvals].now = -1;
    return forms_replace(r, v, qvals, err);
}
