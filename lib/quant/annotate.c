/* From decisions to a quantized graph: values get their quantization (graph/graph.h), and where real numbers become such a value a
 * node of one input stands as a border. lib/forms writes that as files spell it.
 *
 * Codes of constants are values of their own, named X_quantized for the constant X, which others may go on reading. A clamp that a
 * quantizer does goes away; the operator before it takes over its output's name, so that layers of the float and the quantized model
 * pair by name. */
#include "quant/job.h"

#include "forms/edit.h"
#include "kernels/quantize.h"

#include <string.h>

/* Parameters in the graph's memory; scale may be NULL, to be filled in. codes: may be NULL. */
static oct_status new_quant(oct_qjob *j, oct_dtype t, int64_t n, int axis, const float *scale, int32_t zero, const oct_tensor *codes,
                            oct_quant **out, oct_err *err)
{
    oct_arena *a = j->g->arena;
    oct_quant *q = oct_arena_calloc(a, 1, sizeof *q);
    float *s = oct_arena_calloc(a, (size_t)n, sizeof *s);
    int32_t *z = oct_arena_calloc(a, (size_t)n, sizeof *z);
    if (!q || !s || !z)
        return oct_nomem(err);
    for (int64_t i = 0; i < n; i++) {
        s[i] = scale ? scale[i] : 0;
        z[i] = zero;
    }
    *q = (oct_quant){ .n = (int)n, .axis = axis, .scale = s, .zp = z, .dtype = t, .codes = codes };
    *out = q;
    return OCT_OK;
}

/* A quantized value, named after what it stands for. */
static oct_status new_value(oct_qjob *j, const char *base, const char *suffix, const oct_quant *q, int like, int *v, oct_err *err)
{
    OCT_TRY(oct_edit_value(j->g, base, suffix, OCT_F32, like, v, err));
    j->g->value[*v].quant = q;
    return like < 0 ? oct_graph_set_dims(j->g, *v, q->codes->rank, q->codes->dims, err) : OCT_OK;
}

/* Input `slot` of a node becomes the quantized constant. */
static oct_status take_constant(oct_qjob *j, int id, int slot, const char *base, const oct_quant *q, oct_err *err)
{
    int v;
    OCT_TRY(new_value(j, base, "_quantized", q, -1, &v, err));
    return oct_graph_set_input(j->g, id, slot, v, err);
}

/* ---- weights ---- */

/* The codes in the type they are written in, made once: all copies of the graph share them. */
static oct_status written_codes(oct_qjob *j, qweights *q, oct_err *err)
{
    oct_tensor *t;
    if (q->written && q->written->dtype == q->dtype)
        return OCT_OK;
    OCT_TRY(oct_tensor_new(j->lasting, q->dtype, q->codes->rank, q->codes->dims, &t, err));
    const uint8_t *from = q->codes->data, flip = q->dtype == OCT_U8 ? 0x80 : 0;
    uint8_t *to = (uint8_t *)(uintptr_t)t->data;
    for (int64_t i = 0; i < t->count; i++)
        to[i] = from[i] ^ flip;
    q->written = t;
    return OCT_OK;
}

static oct_status annotate_weights(oct_qjob *j, int id, int slot, qweights *w, oct_err *err)
{
    oct_quant *q;
    OCT_TRY(written_codes(j, w, err));
    OCT_TRY(new_quant(j, w->dtype, w->channels, w->axis, w->scale, w->dtype == OCT_U8 ? 128 : 0, w->written, &q, err));
    q->block = w->block;
    return take_constant(j, id, slot, j->g->value[j->g->node[id].in[slot]].name, q, err);
}

/* At s_x * s_w. */
static oct_status annotate_bias(oct_qjob *j, int id, float sx, const qweights *w, oct_err *err)
{
    const oct_node *n = &j->g->node[id];
    const int old = n->n_in > 2 ? n->in[2] : -1;
    const char *base = old >= 0 ? j->g->value[old].name
                                : oct_arena_printf(j->g->arena, "%s_bias", n->name[0] ? n->name : j->g->value[n->out[0]].name);
    oct_tensor *codes;
    oct_quant *q;
    if (!base)
        return oct_nomem(err);
    OCT_TRY(oct_tensor_new(j->g->arena, OCT_S32, 1, &w->n_bias, &codes, err));
    memcpy((void *)(uintptr_t)codes->data, w->bias, codes->bytes);
    OCT_TRY(new_quant(j, OCT_S32, w->channels, 0, w->scale, 0, codes, &q, err));
    for (int i = 0; i < q->n; i++)
        ((float *)(uintptr_t)q->scale)[i] *= sx;
    return take_constant(j, id, 2, base, q, err);
}

/* Runs before activations are annotated: a product's inputs still are the float values. */
static oct_status annotate_product(oct_qjob *j, int id, oct_err *err)
{
    qweights *w = j->weights[id];
    OCT_TRY(annotate_weights(j, id, 1, w, err));
    return w->bias ? annotate_bias(j, id, j->value[j->g->node[id].in[0]].q.scale, w, err) : OCT_OK;
}

/* ---- clamps ---- */

static oct_status drop_clamps(oct_qjob *j, oct_err *err)
{
    oct_graph *g = j->g;
    for (size_t i = 0; i < g->n_order;) {
        const int id = g->order[i];
        if (j->node[id].role != OCT_ROLE_CLAMP) {
            i++;
            continue;
        }
        const int pre = g->node[id].in[0], post = g->node[id].out[0], p = g->value[pre].producer;
        oct_graph_remove_node(g, id);
        OCT_TRY(oct_graph_set_output(g, p, 0, post, err));
        oct_graph_remove_value(g, pre);
    }
    return OCT_OK;
}

/* ---- activations ---- */

static bool is_integer(const oct_qjob *j, int node)
{
    return node >= 0 && node < (int)j->n_nodes && (j->node[node].role == OCT_ROLE_PRODUCT || j->node[node].role == OCT_ROLE_INTEGER);
}

static bool integer_use(const oct_qjob *j, oct_use u)
{
    if (u.slot < 0 || !is_integer(j, u.node))
        return false;
    oct_quant_trait t = oct_op_of(j->g, u.node)->quant;
    if (t == OCT_QUANT_JOIN || t == OCT_QUANT_ARITH)
        return true;
    return u.slot == 0 || (t == OCT_QUANT_WEIGHTED && u.slot == 1 && !j->weights[u.node]);
}

/* Integer readers of v read `to`. */
static oct_status redirect(oct_qjob *j, int v, int to, oct_err *err)
{
    for (size_t i = 0; i < j->g->value[v].n_uses;) {
        oct_use u = j->g->value[v].uses[i];
        if (integer_use(j, u))
            OCT_TRY(oct_graph_set_input(j->g, u.node, u.slot, to, err));
        else
            i++;
    }
    return OCT_OK;
}

/* A constant operand of an integer operator. */
static oct_status annotate_constant(oct_qjob *j, int v, const oct_quant *grid, oct_err *err)
{
    const oct_tensor *t = j->g->value[v].konst;
    oct_tensor *codes;
    OCT_TRY(oct_tensor_new(j->g->arena, grid->dtype, t->rank, t->dims, &codes, err));
    oct_quantize_f32(NULL, grid->dtype, t->data, (size_t)t->count, grid->scale[0], grid->zp[0], (uint8_t *)(uintptr_t)codes->data);
    oct_quant *q = oct_arena_memdup(j->g->arena, grid, sizeof *grid);
    int to;
    if (!q)
        return oct_nomem(err);
    q->codes = codes;
    OCT_TRY(new_value(j, j->g->value[v].name, "_quantized", q, -1, &to, err));
    return redirect(j, v, to, err);
}

/* What an integer operator makes is quantized; what else does gets a border in front of its integer readers. */
static oct_status annotate_value(oct_qjob *j, int v, const oct_quant *q, oct_err *err)
{
    const int p = j->g->value[v].producer, before = oct_edit_after(j->g, p);
    int to;
    if (is_integer(j, p)) {
        j->g->value[v].quant = q;
        return OCT_OK;
    }
    OCT_TRY(new_value(j, j->g->value[v].name, "_quantized", q, v, &to, err));
    OCT_TRY(redirect(j, v, to, err));
    return oct_edit_node(j->g, "QuantizeLinear", &v, 1, to, before, NULL, err);
}

static oct_status annotate_values(oct_qjob *j, oct_err *err)
{
    oct_quant **grid = oct_arena_calloc(j->g->arena, j->n_values + 1, sizeof *grid); /* by root */
    if (!grid)
        return oct_nomem(err);
    for (size_t v = 0; v < j->n_values; v++) {
        const qvalue *x = &j->value[v];
        if (!x->wanted || !x->has_grid || j->g->value[v].dead)
            continue;
        oct_quant **q = &grid[oct_grid_root(j, (int)v)];
        if (!*q)
            OCT_TRY(new_quant(j, x->dtype, 1, 0, &x->q.scale, x->q.zero, NULL, q, err));
        OCT_TRY(j->g->value[v].konst ? annotate_constant(j, (int)v, *q, err) : annotate_value(j, (int)v, *q, err));
    }
    return OCT_OK;
}

/* ---- products without a grid for their activation ---- */

/* x as it is quantized when it runs; products that read one value share it. */
static oct_status dynamic_input(oct_qjob *j, int id, int *v, oct_err *err)
{
    static const oct_quant dynamic = { .dtype = OCT_U8 };
    oct_graph *g = j->g;
    const int x = g->node[id].in[0];
    const char *base = g->node[id].name[0] ? g->node[id].name : g->value[g->node[id].out[0]].name;
    for (size_t i = 0; i < g->value[x].n_uses; i++) {
        const oct_node *n = &g->node[g->value[x].uses[i].node];
        if (oct_is_op(n, "DynamicQuantizeLinear") && g->value[n->out[0]].quant) {
            *v = n->out[0];
            return OCT_OK;
        }
    }
    OCT_TRY(new_value(j, base, "_input_quantized", &dynamic, x, v, err));
    return oct_edit_node(g, "DynamicQuantizeLinear", &x, 1, *v, id, NULL, err);
}

static oct_status annotate_dynamic(oct_qjob *j, int id, oct_err *err)
{
    int x;
    OCT_TRY(annotate_weights(j, id, 1, j->weights[id], err));
    if (j->recurrence[id])
        return annotate_weights(j, id, 2, j->recurrence[id], err);
    OCT_TRY(dynamic_input(j, id, &x, err));
    return oct_graph_set_input(j->g, id, 0, x, err);
}

/* Products of one matrix share its value. */
static oct_status annotate_blocks(oct_qjob *j, int id, oct_err *err)
{
    qblocks *b = j->blocks[id];
    if (b->value < 0)
        OCT_TRY(new_value(j, j->g->value[b->matrix].name, "_quantized", &b->quant, b->matrix, &b->value, err));
    return oct_graph_set_input(j->g, id, 1, b->value, err);
}

static oct_status annotate(oct_qjob *j, oct_err *err)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (j->node[j->layer[i]].role == OCT_ROLE_PRODUCT && j->weights[j->layer[i]])
            OCT_TRY(annotate_product(j, j->layer[i], err));
    OCT_TRY(drop_clamps(j, err));
    OCT_TRY(annotate_values(j, err));
    for (size_t i = 0; i < j->n_layer; i++)
        if (j->blocks[j->layer[i]])
            j->blocks[j->layer[i]]->value = -1;
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        if (j->node[id].role == OCT_ROLE_DYNAMIC && j->weights[id])
            OCT_TRY(annotate_dynamic(j, id, err));
        else if (j->node[id].role == OCT_ROLE_BLOCKS)
            OCT_TRY(annotate_blocks(j, id, err));
    }
    return oct_graph_sort(j->g, err);
}

static oct_status annotate_all(oct_qjob *j, oct_err *err)
{
    OCT_TRY(oct_bodies_do(j, annotate_all, err));
    return annotate(j, err);
}

/* ---- 16-bit floats, and all of it ---- */

/* *any: whether a node is to compute on 16-bit floats. */
static oct_status half_opts(const oct_qjob *j, oct_half_opts *o, bool *any, oct_err *err)
{
    oct_dtype *type = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *type);
    const oct_dtype ends = j->opts.scheme == OCT_SCHEME_BF16 ? OCT_BF16 : OCT_F16;
    *any = false;
    if (!type)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_nodes; i++)
        *any |= (type[i] = oct_half_type(j, (int)i)) != OCT_UNDEFINED;
    *o = (oct_half_opts){ type, j->n_nodes, j->opts.half_io ? ends : OCT_UNDEFINED };
    return OCT_OK;
}

static oct_status halve(oct_qjob *j, oct_err *err)
{
    oct_half_opts o;
    bool any;
    OCT_TRY(oct_bodies_do(j, halve, err));
    OCT_TRY(half_opts(j, &o, &any, err));
    if (any)
        OCT_TRY(oct_half_write(j->g, &o, err));
    oct_graph_prune(j->g); /* constants that have other types now, here or in bodies */
    OCT_TRY(oct_graph_sort(j->g, err));
    return oct_graph_check(j->g, err);
}

static oct_status write_forms(oct_qjob *j, oct_err *err)
{
    oct_half_opts half;
    bool any;
    OCT_TRY(oct_bodies_do(j, write_forms, err));
    OCT_TRY(half_opts(j, &half, &any, err));
    return oct_forms_write(j->g, &(oct_forms_write_opts){ j->opts.blocks_qdq, j->opts.operators, &half }, err);
}

oct_status oct_qjob_annotate(oct_qjob *j, oct_err *err)
{
    OCT_TRY(annotate_all(j, err));
    return halve(j, err);
}

oct_status oct_qjob_rewrite(oct_qjob *j, oct_err *err)
{
    OCT_TRY(annotate_all(j, err));
    OCT_TRY(write_forms(j, err));
    return halve(j, err); /* between written quantizers: Casts are named after what these make */
}
