/* Writes the decisions into the graph: QuantizeLinear and DequantizeLinear around integer operators.
 *
 * Scales of activations are scalars (rank 0), as ONNX Runtime's fusions ask; values that share a grid share its constants. A
 * clamp that a quantizer does goes away; the operator before it takes over its output's name, so that layers of the float
 * and the quantized model pair by name. */
#include "quant/writer.h"

#include "forms/forms_write.h"
#include "kernels/quantize.h"

#include <string.h>

const char *oct_writer_name(oct_writer *w, const char *name, const char *suffix)
{
    return oct_arena_printf(w->g->arena, "%s%s", name, suffix);
}

int oct_writer_after(const oct_writer *w, int node)
{
    const oct_graph *g = w->g;
    if (node < 0)
        return g->n_order ? g->order[0] : -1;
    for (size_t i = 0; i + 1 < g->n_order; i++)
        if (g->order[i] == node)
            return g->order[i + 1];
    return -1;
}

oct_status oct_writer_value(oct_writer *w, const char *base, const char *suffix, oct_dtype t, int like, int *v, oct_err *err)
{
    const char *name = oct_writer_name(w, base, suffix);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(w->g, name, t, v, err));
    if (like < 0)
        return OCT_OK;
    oct_shape s = w->g->value[like].shape;
    return oct_graph_set_shape(w->g, *v, s.rank, s.d, err);
}

oct_status oct_writer_const(oct_writer *w, const char *base, const char *suffix, oct_dtype t, int rank, const int64_t *dims,
                            const void *data, int *v, oct_err *err)
{
    const char *name = oct_writer_name(w, base, suffix);
    return name ? oct_graph_new_const(w->g, name, t, rank, dims, data, v, err) : oct_nomem(err);
}

/* Scale and zero point constants of a value's grid. */
static oct_status grid_consts(oct_writer *w, int value, int *scale, int *zero, oct_err *err)
{
    int root = oct_grid_root(w->j, value);
    const qvalue *q = &w->j->value[value];
    const char *base = w->g->value[value].name;
    if (w->scale[root] < 0) {
        uint8_t zp = (uint8_t)q->q.zero; /* the byte of a u8 or s8 zero point */
        OCT_TRY(oct_writer_const(w, base, "_scale", OCT_F32, 0, NULL, &q->q.scale, &w->scale[root], err));
        OCT_TRY(oct_writer_const(w, base, "_zero_point", q->dtype, 0, NULL, &zp, &w->zero[root], err));
    }
    *scale = w->scale[root];
    *zero = w->zero[root];
    return OCT_OK;
}

oct_status oct_writer_node(oct_writer *w, const char *op, const int *in, int n_in, int out, int before, int *node, oct_err *err)
{
    const char *name = oct_arena_printf(w->g->arena, "%s_%s", w->g->value[out].name, op);
    int id;
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_add_node(w->g, op, "", name, n_in, 1, before, &id, err));
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(w->g, id, i, in[i], err));
    OCT_TRY(oct_graph_set_output(w->g, id, 0, out, err));
    if (node)
        *node = id;
    return OCT_OK;
}

/* ---- clamps ---- */

static oct_status drop_clamps(oct_writer *w, oct_err *err)
{
    for (size_t i = 0; i < w->g->n_order;) {
        int id = w->g->order[i];
        if (id >= (int)w->j->n_nodes || w->j->node[id].role != OCT_ROLE_CLAMP) { /* new nodes have no role */
            i++;
            continue;
        }
        int pre = w->g->node[id].in[0], post = w->g->node[id].out[0], p = w->g->value[pre].producer;
        oct_graph_remove_node(w->g, id);
        OCT_TRY(oct_graph_set_output(w->g, p, 0, post, err));
        oct_graph_remove_value(w->g, pre);
    }
    return OCT_OK;
}

/* ---- activations ---- */

static bool integer_use(const oct_writer *w, oct_use u)
{
    if (u.slot < 0 || u.node >= (int)w->j->n_nodes)
        return false;
    oct_role r = w->j->node[u.node].role;
    if (r != OCT_ROLE_PRODUCT && r != OCT_ROLE_INTEGER)
        return false;
    oct_quant_trait t = oct_op_of(w->g, u.node)->quant;
    if (t == OCT_QUANT_JOIN || t == OCT_QUANT_ARITH)
        return true;
    return u.slot == 0 || (t == OCT_QUANT_WEIGHTED && u.slot == 1 && !w->j->weights[u.node]);
}

/* Every integer reader of v reads dq instead; all other readers too when `all`. */
static oct_status redirect(oct_writer *w, int v, int dq, bool all, oct_err *err)
{
    for (size_t i = 0; i < w->g->value[v].n_uses;) {
        oct_use u = w->g->value[v].uses[i];
        if (u.slot >= 0 && (all || integer_use(w, u)))
            OCT_TRY(oct_graph_set_input(w->g, u.node, u.slot, dq, err));
        else
            i++;
    }
    return OCT_OK;
}

static int output_slot(const oct_node *n, int value)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] == value)
            return i;
    return 0;
}

/* v -> QuantizeLinear -> q -> DequantizeLinear -> dq. When v's own producer is an integer operator, nothing may read v
 * beside the quantizer. If v's name is needed (graph output, subgraph), the dequantized value takes it. */
static oct_status quantize_value(oct_writer *w, int v, oct_err *err)
{
    oct_graph *g = w->g;
    int p = g->value[v].producer, scale, zero, q, dq, from = v;
    bool integer = p >= 0 && (w->j->node[p].role == OCT_ROLE_PRODUCT || w->j->node[p].role == OCT_ROLE_INTEGER);
    bool keep_name = integer && (g->value[v].is_output || oct_value_is_captured(&g->value[v]));
    const char *base = g->value[v].name;
    int before = oct_writer_after(w, p);
    OCT_TRY(grid_consts(w, v, &scale, &zero, err));
    OCT_TRY(oct_writer_value(w, base, "_quantized", w->j->value[v].dtype, v, &q, err));
    if (keep_name) {
        OCT_TRY(oct_writer_value(w, base, "_raw", OCT_F32, v, &from, err));
        OCT_TRY(oct_graph_set_output(g, p, output_slot(&g->node[p], v), from, err));
        dq = v;
    } else {
        OCT_TRY(oct_writer_value(w, base, "_dequantized", OCT_F32, v, &dq, err));
        OCT_TRY(redirect(w, v, dq, integer, err));
    }
    OCT_TRY(oct_writer_node(w, "QuantizeLinear", (int[]){ from, scale, zero }, 3, q, before, NULL, err));
    return oct_writer_node(w, "DequantizeLinear", (int[]){ q, scale, zero }, 3, dq, before, NULL, err);
}

/* A constant operand of an integer operator: its codes and a DequantizeLinear. */
static oct_status quantize_constant(oct_writer *w, int v, oct_err *err)
{
    const oct_tensor *t = w->g->value[v].konst;
    const qvalue *x = &w->j->value[v];
    const char *base = w->g->value[v].name;
    int scale, zero, q, dq;
    uint8_t *codes = oct_alloc((size_t)t->count);
    if (!codes)
        return oct_nomem(err);
    oct_quantize_f32(NULL, x->dtype, t->data, (size_t)t->count, x->q.scale, x->q.zero, codes);
    oct_status s = oct_writer_const(w, base, "_quantized", x->dtype, t->rank, t->dims, codes, &q, err);
    oct_free(codes);
    OCT_TRY(s);
    OCT_TRY(grid_consts(w, v, &scale, &zero, err));
    OCT_TRY(oct_writer_value(w, base, "_dequantized", OCT_F32, v, &dq, err));
    OCT_TRY(redirect(w, v, dq, false, err));
    return oct_writer_node(w, "DequantizeLinear", (int[]){ q, scale, zero }, 3, dq, oct_writer_after(w, -1), NULL, err);
}

static oct_status quantize_values(oct_writer *w, oct_err *err)
{
    for (size_t v = 0; v < w->j->n_values; v++) {
        if (!w->j->value[v].wanted || !w->j->value[v].has_grid || w->g->value[v].dead)
            continue;
        OCT_TRY(w->g->value[v].konst ? quantize_constant(w, (int)v, err) : quantize_value(w, (int)v, err));
    }
    return OCT_OK;
}

/* ---- products ---- */

/* Constants for scale and zero point of weights: scalar per tensor, [channels] per channel. */
static oct_status weight_consts(oct_writer *w, const char *base, const qweights *q, int *scale, int *zero, oct_err *err)
{
    int rank = q->channels > 1;
    uint8_t *zeros = oct_alloc((size_t)q->channels);
    if (!zeros)
        return oct_nomem(err);
    memset(zeros, q->dtype == OCT_U8 ? 128 : 0, (size_t)q->channels);
    oct_status s = oct_writer_const(w, base, "_scale", OCT_F32, rank, &q->channels, q->scale, scale, err);
    if (s == OCT_OK)
        s = oct_writer_const(w, base, "_zero_point", q->dtype, rank, &q->channels, zeros, zero, err);
    oct_free(zeros);
    return s;
}

/* The codes as they are written, made once. */
static oct_status written_codes(oct_writer *w, qweights *q, oct_err *err)
{
    oct_tensor *t;
    if (q->written && q->written->dtype == q->dtype)
        return OCT_OK;
    OCT_TRY(oct_tensor_new(w->j->lasting, q->dtype, q->codes->rank, q->codes->dims, &t, err));
    const uint8_t *from = q->codes->data, flip = q->dtype == OCT_U8 ? 0x80 : 0;
    uint8_t *to = (uint8_t *)(uintptr_t)t->data;
    for (int64_t i = 0; i < t->count; i++)
        to[i] = from[i] ^ flip;
    q->written = t;
    return OCT_OK;
}

oct_status oct_writer_codes(oct_writer *w, qweights *q, const char *base, int *v, oct_err *err)
{
    OCT_TRY(written_codes(w, q, err));
    OCT_TRY(oct_writer_value(w, base, "_quantized", q->dtype, -1, v, err));
    OCT_TRY(oct_graph_set_dims(w->g, *v, q->codes->rank, q->codes->dims, err));
    oct_graph_set_const(w->g, *v, q->written);
    return OCT_OK;
}

static oct_status dequantized(oct_writer *w, const char *base, int q, int scale, int zero, int axis, bool per_channel, int before,
                              int *dq, oct_err *err)
{
    int node;
    OCT_TRY(oct_writer_value(w, base, "_dequantized", OCT_F32, q, dq, err));
    OCT_TRY(oct_writer_node(w, "DequantizeLinear", (int[]){ q, scale, zero }, 3, *dq, before, &node, err));
    return per_channel ? oct_node_set_int(w->g, node, "axis", axis, err) : OCT_OK;
}

static oct_status write_bias(oct_writer *w, int id, const qweights *q, oct_err *err)
{
    const oct_node *n = &w->g->node[id];
    int old = n->n_in > 2 ? n->in[2] : -1, v, scale, zero, dq;
    const char *base = old >= 0 ? w->g->value[old].name : oct_writer_name(w, n->name[0] ? n->name : w->g->value[n->out[0]].name, "_bias");
    float sx = w->j->value[n->in[0]].q.scale;
    bool per_channel = q->channels > 1;
    float *scales = oct_alloc((size_t)q->channels * sizeof *scales);
    int32_t *zeros = oct_calloc((size_t)q->channels, sizeof *zeros);
    oct_status s = base && scales && zeros ? OCT_OK : oct_nomem(err);
    for (int64_t i = 0; s == OCT_OK && i < q->channels; i++)
        scales[i] = sx * q->scale[i];
    if (s == OCT_OK)
        s = oct_writer_const(w, base, "_quantized", OCT_S32, 1, &q->n_bias, q->bias, &v, err);
    if (s == OCT_OK)
        s = oct_writer_const(w, base, "_scale", OCT_F32, per_channel, &q->channels, scales, &scale, err);
    if (s == OCT_OK)
        s = oct_writer_const(w, base, "_zero_point", OCT_S32, per_channel, &q->channels, zeros, &zero, err);
    oct_free(scales);
    oct_free(zeros);
    OCT_TRY(s);
    OCT_TRY(dequantized(w, base, v, scale, zero, 0, per_channel, id, &dq, err));
    return oct_graph_set_input(w->g, id, 2, dq, err);
}

/* Runs before activations are rewritten: a product's inputs still are the float values. */
static oct_status write_weights(oct_writer *w, int id, oct_err *err)
{
    qweights *q = w->j->weights[id];
    int b = w->g->node[id].in[1], v, scale, zero, dq;
    const char *base = w->g->value[b].name;
    OCT_TRY(oct_writer_codes(w, q, base, &v, err));
    OCT_TRY(weight_consts(w, base, q, &scale, &zero, err));
    OCT_TRY(dequantized(w, base, v, scale, zero, q->axis, q->channels > 1, id, &dq, err));
    OCT_TRY(oct_graph_set_input(w->g, id, 1, dq, err));
    return q->bias ? write_bias(w, id, q, err) : OCT_OK;
}

/* ---- dynamic products ---- */

/* Codes as [k][n]: MatMulInteger has no transposition. */
static oct_status plain_matrix(oct_writer *w, qweights *q, const char *base, int *v, oct_err *err)
{
    if (q->axis == 1)
        return oct_writer_codes(w, q, base, v, err);
    int64_t rows = q->codes->dims[0], cols = q->codes->dims[1];
    uint8_t *t = oct_alloc((size_t)q->codes->count), flip = q->dtype == OCT_U8 ? 0x80 : 0;
    if (!t)
        return oct_nomem(err);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            t[k * rows + i] = ((const uint8_t *)q->codes->data)[i * cols + k] ^ flip;
    oct_status s = oct_writer_const(w, base, "_quantized", q->dtype, 2, (int64_t[]){ cols, rows }, t, v, err);
    oct_free(t);
    return s;
}

/* Codes, scale and zero point of the product's input; products that read one value share them. */
static oct_status dynamic_input(oct_writer *w, int id, const char *base, int out[3], oct_err *err)
{
    oct_graph *g = w->g;
    const int x = g->node[id].in[0];
    for (size_t i = 0; i < g->value[x].n_uses; i++) {
        const oct_node *n = &g->node[g->value[x].uses[i].node];
        if (g->value[x].uses[i].slot == 0 && oct_is_op(n, "DynamicQuantizeLinear") && n->n_out == 3 &&
            n->out[0] >= 0 && n->out[1] >= 0 && n->out[2] >= 0) {
            memcpy(out, n->out, 3 * sizeof *out);
            return OCT_OK;
        }
    }
    int node;
    OCT_TRY(oct_writer_value(w, base, "_input_quantized", OCT_U8, x, &out[0], err));
    OCT_TRY(oct_writer_value(w, base, "_input_scale", OCT_F32, -1, &out[1], err));
    OCT_TRY(oct_writer_value(w, base, "_input_zero_point", OCT_U8, -1, &out[2], err));
    OCT_TRY(oct_writer_node(w, "DynamicQuantizeLinear", &x, 1, out[0], id, &node, err));
    OCT_TRY(oct_graph_set_output(g, node, 1, out[1], err));
    return oct_graph_set_output(g, node, 2, out[2], err);
}

/* x -> DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul by (s_x * s_w) [-> Add bias], the form that ONNX Runtime fuses
 * to one operator. */
static oct_status write_dynamic(oct_writer *w, int id, oct_err *err)
{
    oct_graph *g = w->g;
    qweights *q = w->j->weights[id];
    int b = g->node[id].in[1], y = g->node[id].out[0];
    int bias = g->node[id].n_in > 2 ? g->node[id].in[2] : -1;
    const char *base = g->node[id].name[0] ? g->node[id].name : g->value[y].name, *wname = g->value[b].name;
    int codes, scale, zero, in[3], acc, real, mult, out, cast;
    OCT_TRY(plain_matrix(w, q, wname, &codes, err));
    OCT_TRY(weight_consts(w, wname, q, &scale, &zero, err));
    OCT_TRY(dynamic_input(w, id, base, in, err));
    OCT_TRY(oct_writer_value(w, base, "_integer", OCT_S32, y, &acc, err));
    OCT_TRY(oct_writer_value(w, base, "_real", OCT_F32, y, &real, err));
    OCT_TRY(oct_writer_value(w, base, "_scale", OCT_F32, scale, &mult, err));
    OCT_TRY(oct_writer_node(w, "MatMulInteger", (int[]){ in[0], codes, in[2], zero }, 4, acc, id, NULL, err));
    OCT_TRY(oct_writer_node(w, "Cast", &acc, 1, real, id, &cast, err));
    OCT_TRY(oct_node_set_int(g, cast, "to", OCT_F32, err));
    OCT_TRY(oct_writer_node(w, "Mul", (int[]){ in[1], scale }, 2, mult, id, NULL, err));
    out = y;
    if (bias >= 0)
        OCT_TRY(oct_writer_value(w, base, "_scaled", OCT_F32, y, &out, err));
    int before = oct_writer_after(w, id);
    oct_graph_remove_node(g, id);
    OCT_TRY(oct_writer_node(w, "Mul", (int[]){ real, mult }, 2, out, before, NULL, err));
    return bias >= 0 ? oct_writer_node(w, "Add", (int[]){ out, bias }, 2, y, before, NULL, err) : OCT_OK;
}

static oct_status halve(oct_qjob *j, oct_err *err)
{
    oct_dtype *type = oct_calloc(j->n_nodes + 1, sizeof *type);
    const oct_dtype ends = j->opts.scheme == OCT_SCHEME_BF16 ? OCT_BF16 : OCT_F16;
    bool any = false;
    if (!type)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_nodes; i++)
        any |= (type[i] = oct_half_type(j, (int)i)) != OCT_UNDEFINED;
    const oct_half_opts o = { type, j->n_nodes, j->opts.half_io ? ends : OCT_UNDEFINED };
    oct_status s = any ? oct_half_write(j->g, &o, err) : OCT_OK;
    oct_free(type);
    return s;
}

static oct_status write_all(oct_writer *w, oct_err *err)
{
    oct_qjob *j = w->j;
    for (size_t i = 0; i < j->n_layer; i++) {
        int id = j->layer[i];
        if (j->node[id].role == OCT_ROLE_PRODUCT && j->weights[id])
            OCT_TRY(write_weights(w, id, err));
    }
    OCT_TRY(drop_clamps(w, err));
    OCT_TRY(quantize_values(w, err));
    for (size_t i = 0; i < j->n_layer; i++)
        if (j->blocks[j->layer[i]])
            memset(j->blocks[j->layer[i]]->written, -1, sizeof j->blocks[j->layer[i]]->written);
    for (size_t i = 0; i < j->n_layer; i++) {
        int id = j->layer[i];
        if (j->node[id].role == OCT_ROLE_DYNAMIC && j->recurrence[id])
            OCT_TRY(oct_write_lstm(w, id, err));
        else if (j->node[id].role == OCT_ROLE_DYNAMIC && j->weights[id])
            OCT_TRY(write_dynamic(w, id, err));
        else if (j->node[id].role == OCT_ROLE_BLOCKS)
            OCT_TRY(oct_write_blocks(w, id, err));
    }
    OCT_TRY(halve(j, err));
    oct_graph_prune(j->g);
    OCT_TRY(oct_graph_sort(j->g, err));
    return oct_graph_check(j->g, err);
}

oct_status oct_qjob_rewrite(oct_qjob *j, oct_err *err)
{
    OCT_TRY(oct_bodies_rewrite(j, err));
    oct_writer w = { .j = j, .g = j->g };
    w.scale = oct_arena_alloc(j->arena, (j->n_values + 1) * sizeof *w.scale);
    w.zero = oct_arena_alloc(j->arena, (j->n_values + 1) * sizeof *w.zero);
    if (!w.scale || !w.zero)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_values; i++)
        w.scale[i] = w.zero[i] = -1;
    return write_all(&w, err);
}
