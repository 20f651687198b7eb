/* Reading forms: values of codes and what they stand for, and the walk over the graph. */
#include "forms/read_int.h"

#include "kernels/half.h"
#include "ops/core/small.h"
#include "passes/match.h"

#include <math.h>
#include <string.h>

bool forms_is(const oct_node *n, const char *op)
{
    return strcmp(n->op, op) == 0 && (n->domain[0] == 0 || strcmp(n->domain, "com.microsoft") == 0);
}

/* What is known of a value; NULL: no memory. */
static forms_value *known(forms_reader *r, int v)
{
    while (r->n_value <= (size_t)v) {
        if (!OCT_GROW(r->g->arena, r->value, r->n_value, r->cap_value))
            return NULL;
        r->value[r->n_value++] = (forms_value){ NULL, -1 };
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

oct_status forms_move(forms_reader *r, int from, int to, oct_err *err)
{
    forms_value *x = known(r, from);
    if (!x)
        return oct_nomem(err);
    if (from != to && x->now < 0)
        x->now = to;
    return OCT_OK;
}

/* The node that stands behind another in the order; -1: none. */
static int after(forms_reader *r, int node)
{
    const oct_graph *g = r->g;
    const size_t from = r->near < g->n_order ? r->near : 0;
    for (size_t d = 0; d < g->n_order; d++)
        for (int back = 0; back < 2; back++) {
            const size_t i = back ? from - d : from + d; /* wraps beyond any order */
            if (i >= g->n_order || g->order[i] != node)
                continue;
            r->near = i;
            return i + 1 < g->n_order ? g->order[i + 1] : -1;
        }
    return -1;
}

/* ---- parameters ---- */

static bool is_zero_type(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16 || t == OCT_S32 || oct_is_small_int(t);
}

static int32_t zero_at(const oct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    case OCT_U16: return ((const uint16_t *)t->data)[i];
    case OCT_S16: return ((const int16_t *)t->data)[i];
    case OCT_S32: return ((const int32_t *)t->data)[i];
    default: return (int32_t)oct_small_get(t->dtype, t->data, i);
    }
}

oct_status forms_quant(forms_reader *r, const oct_quant *like, const oct_quant **q, oct_err *err)
{
    *q = oct_arena_memdup(r->g->arena, like, sizeof **q);
    return *q ? OCT_OK : oct_nomem(err);
}

/* Whether constants of scales and zero points fit the shape of the codes. */
static bool grid_fits(const forms_grid *grid, int64_t axis, const oct_tensor *s, const oct_tensor *z, const oct_value *codes)
{
    const oct_shape *x = &codes->shape;
    if (!(s->dtype == OCT_F32 || oct_is_half(s->dtype)) || s->count < 1 || s->count > INT32_MAX ||
        (z && (z->count != s->count || z->dtype != codes->dtype)))
        return false;
    if (grid->block == 0 && s->count == 1)
        return s->rank <= 1;
    if (axis < 0 || axis >= x->rank || (grid->block == 0 && (s->rank != 1 || x->d[axis].n != s->count)))
        return false;
    for (int i = 0; i < x->rank && grid->block > 0; i++)
        if (s->rank != x->rank || s->dims[i] != (i == axis ? x->d[i].n / grid->block + (x->d[i].n % grid->block != 0) : x->d[i].n))
            return false;
    return grid->block >= 0;
}

oct_status forms_params(forms_reader *r, const forms_grid *grid, int codes, const oct_quant **q, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_value *v = &g->value[codes];
    const oct_tensor *s = grid->scale >= 0 ? g->value[grid->scale].konst : NULL, *z = grid->zero >= 0 ? g->value[grid->zero].konst : NULL;
    const int64_t axis = grid->axis < 0 ? grid->axis + v->shape.rank : grid->axis;
    *q = NULL;
    if (!s || !s->data || (grid->zero >= 0 && (!z || !z->data)) || !is_zero_type(v->dtype) || !grid_fits(grid, axis, s, z, v))
        return OCT_OK;
    float *scales = oct_arena_calloc(g->arena, (size_t)s->count, sizeof *scales);
    int32_t *zeros = oct_arena_calloc(g->arena, (size_t)s->count, sizeof *zeros);
    if (!scales || !zeros)
        return oct_nomem(err);
    if (s->dtype == OCT_F32)
        memcpy(scales, s->data, (size_t)s->count * sizeof *scales);
    else
        oct_widen(NULL, s->dtype, s->data, (size_t)s->count, scales);
    for (int64_t i = 0; i < s->count; i++) {
        if (!isfinite(scales[i]) || (scales[i] <= 0.0f && grid->block == 0))
            return OCT_OK; /* in blocks a scale may bring a sign */
        zeros[i] = z ? zero_at(z, i) : 0;
    }
    const bool one = s->count == 1 && grid->block == 0;
    return forms_quant(r, &(oct_quant){ .n = (int)s->count, .axis = one ? 0 : (int)axis, .scale = scales, .zp = zeros, .dtype = v->dtype,
                                        .block = grid->block }, q, err);
}

oct_status forms_params_of(forms_reader *r, const oct_node *n, int codes, const oct_quant **q, oct_err *err)
{
    const forms_grid grid = { n->in[1], oct_input_at(n, 2), oct_node_int(n, "axis", 1), oct_node_int(n, "block_size", 0) };
    return forms_params(r, &grid, codes, q, err);
}

/* ---- values of codes ---- */

static oct_status add_twin(forms_reader *r, int codes, int v, oct_err *err)
{
    forms_value *x = known(r, codes);
    forms_twin *t = x ? oct_arena_alloc(r->g->arena, sizeof *t) : NULL;
    if (!t)
        return oct_nomem(err);
    *t = (forms_twin){ v, x->twin };
    x->twin = t;
    return OCT_OK;
}

/* One that reading has found: v stands for the codes from now on. */
static oct_status new_twin(forms_reader *r, int codes, int v, oct_err *err)
{
    OCT_TRY(add_twin(r, codes, v, err));
    return forms_move(r, codes, v, err);
}

/* A new value like `codes`, named as what these are codes of: X_quantized is of X. */
static oct_status new_value(forms_reader *r, int codes, oct_dtype real, const oct_quant *q, int *v, oct_err *err)
{
    static const char suffix[] = "_quantized";
    oct_graph *g = r->g;
    const char *name = g->value[codes].name;
    const size_t n = strlen(name), m = sizeof suffix - 1;
    if (n > m && strcmp(name + n - m, suffix) == 0 && !(name = oct_arena_printf(g->arena, "%.*s", (int)(n - m), name)))
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, name, real, v, err));
    g->value[*v].quant = q;
    return oct_graph_set_shape(g, *v, g->value[codes].shape.rank, g->value[codes].shape.d, err);
}

/* A border of one input in front of node `before`. */
static oct_status add_border(forms_reader *r, const char *op, int from, int to, int before, oct_err *err)
{
    int id;
    OCT_TRY(oct_graph_add_node(r->g, op, "", r->g->value[to].name, 1, 1, before, &id, err));
    OCT_TRY(oct_graph_set_input(r->g, id, 0, from, err));
    return oct_graph_set_output(r->g, id, 0, to, err);
}

/* The quantizer that makes codes of reals, with what these stand for; -1: none that is read. */
static oct_status quantizer_of(forms_reader *r, int codes, const oct_quant **q, int *id, oct_err *err)
{
    const oct_graph *g = r->g;
    const int p = g->value[codes].producer;
    const oct_node *n = p >= 0 ? &g->node[p] : NULL;
    *id = -1;
    *q = NULL;
    if (!n || !forms_is(n, "QuantizeLinear") || n->n_in < 2 || n->n_out != 1 || n->in[0] < 0 || oct_node_int(n, "block_size", 0))
        return OCT_OK;
    const oct_dtype real = g->value[n->in[0]].dtype;
    if (real != OCT_F32 && !oct_is_half(real))
        return OCT_OK;
    OCT_TRY(forms_params_of(r, n, codes, q, err));
    *id = *q ? p : -1;
    return OCT_OK;
}

/* The quantizer makes v, and the codes are its numbers for who reads them still. */
static oct_status make_border(forms_reader *r, int id, int codes, int v, oct_err *err)
{
    oct_graph *g = r->g;
    const int behind = after(r, id);
    oct_graph_cut_inputs(g, id, 1);
    OCT_TRY(oct_graph_set_output(g, id, 0, v, err));
    if (!g->value[codes].n_uses && !g->value[codes].is_output)
        return oct_graph_remove_value(g, codes), OCT_OK;
    return add_border(r, "QuantizeLinear", v, codes, behind, err);
}

static oct_status constant_twin(forms_reader *r, int codes, const oct_quant *q, int v, oct_err *err)
{
    oct_quant with = *q;
    with.codes = r->g->value[codes].konst;
    return forms_quant(r, &with, &r->g->value[v].quant, err);
}

oct_status forms_twin_of(forms_reader *r, int codes, const oct_quant *q, oct_dtype real, int into, int before, int *v, oct_err *err)
{
    oct_graph *g = r->g;
    const forms_value *x = known(r, codes);
    const oct_quant *own;
    int id;
    if (!x)
        return oct_nomem(err);
    for (const forms_twin *t = x->twin; t; t = t->next)
        if (!g->value[t->value].dead && g->value[t->value].dtype == real && oct_quant_same(g->value[t->value].quant, q)) {
            *v = t->value;
            return OCT_OK;
        }
    *v = into;
    if (into < 0)
        OCT_TRY(new_value(r, codes, real, q, v, err));
    g->value[*v].quant = q;
    if (g->value[codes].konst) {
        OCT_TRY(constant_twin(r, codes, q, *v, err));
        return new_twin(r, codes, *v, err);
    }
    OCT_TRY(quantizer_of(r, codes, &own, &id, err));
    if (id >= 0 && oct_quant_same(own, q) && g->value[g->node[id].in[0]].dtype == real)
        OCT_TRY(make_border(r, id, codes, *v, err));
    else
        OCT_TRY(add_border(r, "DequantizeLinear", codes, *v, before, err));
    return new_twin(r, codes, *v, err);
}

oct_status forms_known(forms_reader *r, int codes, int before, int *v, oct_err *err)
{
    const forms_value *x = known(r, codes);
    const oct_quant *q;
    int id;
    *v = -1;
    if (!x)
        return oct_nomem(err);
    for (const forms_twin *t = x->twin; t && *v < 0; t = t->next)
        if (!r->g->value[t->value].dead)
            *v = t->value;
    if (*v >= 0)
        return OCT_OK;
    OCT_TRY(quantizer_of(r, codes, &q, &id, err));
    return id < 0 ? OCT_OK : forms_twin_of(r, codes, q, r->g->value[r->g->node[id].in[0]].dtype, -1, before, v, err);
}

oct_status forms_take_output(forms_reader *r, int node, int slot, const oct_quant *q, oct_err *err)
{
    const int codes = r->g->node[node].out[slot], behind = after(r, node);
    int v;
    OCT_TRY(new_value(r, codes, OCT_F32, q, &v, err));
    OCT_TRY(oct_graph_set_output(r->g, node, slot, v, err));
    OCT_TRY(add_border(r, "QuantizeLinear", v, codes, behind, err));
    return new_twin(r, codes, v, err);
}

/* Borders that were there already. */
static oct_status note_border(forms_reader *r, const oct_node *n, oct_err *err)
{
    if (n->n_in != 1 || n->n_out != 1 || n->in[0] < 0 || n->out[0] < 0)
        return OCT_OK;
    const bool to = r->g->value[n->out[0]].quant != NULL, from = r->g->value[n->in[0]].quant != NULL;
    if (oct_is_op(n, "QuantizeLinear") && from && !to)
        return add_twin(r, n->out[0], n->in[0], err);
    return oct_is_op(n, "DequantizeLinear") && to ? add_twin(r, n->in[0], n->out[0], err) : OCT_OK;
}

/* ---- the walk ---- */

static oct_status read_graph(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err);

static oct_status read_nested(oct_graph *g, int node, const oct_read_opts *opts, oct_err *err)
{
    oct_graph *nested;
    if (!oct_node_graph_at(&g->node[node], 0))
        return OCT_OK;
    OCT_TRY(oct_graph_pass_on(g, node, err));
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[node], k)); k++)
        OCT_TRY(read_graph(nested, &(oct_read_opts){ .operators_only = opts->operators_only }, NULL, err));
    return oct_graph_set_captures(g, node, err);
}

static oct_status read_node(forms_reader *r, int id, const oct_read_opts *opts, oct_err *err)
{
    bool done;
    OCT_TRY(note_border(r, &r->g->node[id], err));
    OCT_TRY(forms_read_qlinear(r, id, &done, err));
    if (done || opts->operators_only)
        return done ? OCT_OK : read_nested(r->g, id, opts, err);
    OCT_TRY(forms_read_blocks(r, id, err));
    OCT_TRY(forms_read_dequantize(r, id, err));
    if (!r->g->node[id].dead)
        OCT_TRY(forms_read_dynamic(r, id, err));
    if (!r->g->node[id].dead)
        OCT_TRY(forms_read_move(r, id, err));
    return r->g->node[id].dead ? OCT_OK : read_nested(r->g, id, opts, err);
}

/* Where each of n values is to be found. */
static oct_status tell(forms_reader *r, size_t n, const int **now, oct_err *err)
{
    int *list = oct_arena_alloc(r->g->arena, (n + 1) * sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (size_t v = 0; v < n; v++) {
        list[v] = (int)v;
        while ((size_t)list[v] < r->n_value && r->value[list[v]].now >= 0)
            list[v] = r->value[list[v]].now;
    }
    *now = list;
    return OCT_OK;
}

static oct_status walk(forms_reader *r, size_t n, const oct_read_opts *opts, oct_err *err)
{
    oct_graph *g = r->g;
    char text[300];
    for (size_t i = 0; i < n; i++) {
        oct_status s = g->node[r->at[i]].dead ? OCT_OK : read_node(r, r->at[i], opts, err);
        if (s != OCT_OK)
            return oct_within(err, "%s", oct_node_text(g, r->at[i], text, sizeof text)), s;
    }
    for (size_t i = 0; i < n && !opts->operators_only; i++)
        if (!g->node[r->at[i]].dead)
            OCT_TRY(forms_read_quantize(r, r->at[i], err));
    for (size_t i = 0; i < n && !opts->operators_only; i++)
        if (!g->node[r->at[i]].dead)
            OCT_TRY(forms_absorb(r, r->at[i], err));
    return OCT_OK;
}

static oct_status read_graph(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err)
{
    forms_reader r = { .g = g, .opts = opts };
    const size_t values = g->n_value, nodes = g->n_order;
    if (!(r.at = oct_arena_memdup(g->arena, g->order, nodes * sizeof *r.at)))
        return oct_nomem(err);
    OCT_TRY(walk(&r, nodes, opts, err));
    return now ? tell(&r, values, now, err) : OCT_OK;
}

oct_status oct_forms_read(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err)
{
    static const oct_read_opts all = { .operators_only = false };
    OCT_TRY(read_graph(g, opts ? opts : &all, now, err));
#ifndef NDEBUG
    OCT_TRY(oct_graph_check(g, err));
#endif
    return OCT_OK;
}
