/* Turns decisions into a quantized graph: values get their quantization parameters (graph/graph.h). Where float numbers
 * become such a value, a node with one input, a border, is added. lib/forms writes the result in the form of files.
 *
 * The quantized values of a constant X are a value of their own, named X_quantized; other nodes may still read X. A
 * clamp that a quantizer performs is removed. The operator before it takes over the name of its output, so that layers
 * of the float and the quantized model have the same names. */
#include "quant/job/annotate.h"

#include "forms/edit.h"
#include "kernels/quantize.h"
#include "passes/match.h"
#include "quant/job/job.h"
#include "quant/place/place.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <math.h>

/* Makes a quantized value with this name and the shape of value `like`; like = -1: the shape of the quantized
 * values. */
static oct_status new_value(oct_graph *g, const char *base, const char *suffix, const oct_quant *q, int like, int *v,
                            oct_err *err)
{
    OCT_TRY(oct_edit_value(g, base, suffix, OCT_F32, like, v, err));
    g->value[*v].quant = q;
    return like < 0 ? oct_graph_set_dims(g, *v, q->qvals->rank, q->qvals->dims, err) : OCT_OK;
}

/* ---- constants ---- */

/* Finds or makes the value of quantized weights. made: [n_values], by matrix: the value that was made of it last.
 * Layers that share weights share the value; there are several of a matrix that products have in several forms. */
static oct_status weights_value(const oct_qjob *j, oct_graph *g, const qweights *w, int *made, int *v, oct_err *err)
{
    *v = made[w->matrix];
    if (*v && g->value[*v].quant == &w->quant)
        return OCT_OK;
    for (size_t i = j->n_values; *v && i < g->n_value; i++)
        if (!g->value[i].dead && g->value[i].quant == &w->quant) {
            *v = (int)i;
            return OCT_OK;
        }
    OCT_TRY(new_value(g, g->value[w->matrix].name, "_quantized", &w->quant, w->matrix, v, err));
    made[w->matrix] = *v;
    return OCT_OK;
}

/* Constants that are converted to float have a scale for each row in recurrent layers and experts, and else for each
 * channel, of each matrix where there are several. */
static oct_status annotate_reals(oct_graph *g, int id, int slot, const oct_quant *q, oct_err *err)
{
    if (q->block)
        return oct_write_stored_blocks(g, id, slot, q, err);
    const oct_op *op = oct_op_of(g, id);
    const bool rows = op->quant == OCT_QUANT_RECURRENT || op->experts;
    const int rank = q->qvals->rank;
    int64_t scales[OCT_MAX_RANK];
    oct_weight_layout l;
    const bool several = !rows && oct_layer_layout(g, id, &l) && l.matrices > 1;
    for (int d = 0; d < rank; d++)
        scales[d] = (rows ? d + 1 < rank : several ? d != l.in_axis : d == q->axis) ? q->qvals->dims[d] : 1;
    return oct_write_stored(g, id, slot, q, scales, err);
}

/* Annotates the constants of a node that have this use. *any (may be NULL) is set if there are some. */
static oct_status annotate_constants(const oct_qjob *j, oct_graph *g, int id, oct_constant_use use, int *made,
                                     bool *any, oct_err *err)
{
    for (int slot = 0; slot < OCT_CONSTANT_SLOTS; slot++) {
        oct_qconstant c;
        int v;
        if (!oct_constant_of(j, id, slot, &c) || c.use != use)
            continue;
        if (any)
            *any = true;
        switch (use) {
        case OCT_CONSTANT_OPERAND:
            OCT_TRY(weights_value(j, g, c.weights, made, &v, err));
            OCT_TRY(oct_graph_set_input(g, id, slot, v, err));
            break;
        case OCT_CONSTANT_ROWS:
            OCT_TRY(c.quant->block ? oct_write_block_table(g, id, c.quant, err)
                    : c.at_once    ? oct_write_row_table(g, id, c.quant, err)
                                   : oct_write_table(g, id, c.quant, c.by_rows, err));
            break;
        case OCT_CONSTANT_REALS: OCT_TRY(annotate_reals(g, id, slot, c.quant, err)); break;
        }
    }
    return OCT_OK;
}

/* The matrices of a recurrent layer that reads its input behind a quantizer. */
static oct_status annotate_gates(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        for (int slot = 1; slot <= 2 && oct_rounds_inputs(j, id) && oct_op_of(g, id)->quant == OCT_QUANT_RECURRENT;
             slot++) {
            const int v = g->node[id].in[slot];
            oct_quant *q = oct_arena_calloc(g->arena, 1, sizeof *q);
            int to;
            if (!q)
                return oct_nomem(err);
            OCT_TRY(oct_quantize_gates(g->arena, g->value[v].constant, q, err));
            OCT_TRY(new_value(g, g->value[v].name, "_quantized", q, v, &to, err));
            OCT_TRY(oct_graph_set_input(g, id, slot, to, err));
        }
    }
    return OCT_OK;
}

/* ---- biases ---- */

/* A float bias, for targets that support no other: the original one, or the corrected one. */
static oct_status annotate_real_bias(const oct_qjob *j, oct_graph *g, int id, const char *base, oct_err *err)
{
    const oct_quant *b = j->constants[id].bias;
    const oct_tensor *old = oct_layer_bias(g, id);
    const int32_t *q = b->qvals->data;
    const int64_t outs = b->qvals->count;
    float *real = oct_arena_calloc(g->arena, (size_t)outs + 1, sizeof *real);
    bool moved = !old || old->dtype != OCT_F32 || old->count != outs;
    int v;
    if (!real)
        return oct_nomem(err);
    for (int64_t o = 0; o < outs; o++) {
        const float scale = b->scale[b->n > 1 ? o * b->n / outs : 0],
                    is = old && !moved ? ((const float *)old->data)[o] : 0;
        const bool same = old && fabsf(is - (float)q[o] * scale) <= scale;
        real[o] = same ? is : (float)q[o] * scale;
    }
    for (int64_t o = 0; old && !moved && o < outs; o++)
        moved = ((const float *)old->data)[o] != real[o];
    if (!moved)
        return OCT_OK;
    OCT_TRY(oct_graph_new_const_f32(g, base, 1, &outs, real, &v, err));
    return oct_graph_set_input(g, id, 2, v, err);
}

/* The same bias as bytes, with one scale of its own (weights.c has rounded it so that this changes nothing). */
static oct_status bytes_of(oct_graph *g, const oct_quant *b, const oct_quant **bytes, oct_err *err)
{
    oct_quant *q = oct_arena_calloc(g->arena, 1, sizeof *q);
    float *scale = oct_arena_calloc(g->arena, 1, sizeof *scale);
    int32_t *zero = oct_arena_calloc(g->arena, 1, sizeof *zero);
    oct_tensor *t;
    if (!q || !scale || !zero)
        return oct_nomem(err);
    const int64_t channels = b->qvals->count;
    OCT_TRY(oct_tensor_new(g->arena, OCT_S8, 1, &channels, &t, err));
    *scale = oct_own_bias_scale(b);
    for (int64_t o = 0; o < channels; o++) {
        const double real = ((const int32_t *)b->qvals->data)[o] * (double)b->scale[b->n > 1 ? o * b->n / channels : 0];
        ((int8_t *)(uintptr_t)t->data)[o] = (int8_t)rint(real / (double)*scale);
    }
    *q = (oct_quant){ .n = 1, .scale = scale, .zp = zero, .dtype = OCT_S8, .qvals = t };
    *bytes = q;
    return OCT_OK;
}

static oct_status annotate_bias(const oct_qjob *j, oct_graph *g, int id, oct_err *err)
{
    const oct_node *n = &g->node[id];
    const int old = oct_input_at(n, 2);
    const char *base = old >= 0 ? g->value[old].name : oct_arena_printf(g->arena, "%s_bias", oct_node_label(g, id));
    int v;
    if (!j->constants[id].bias)
        return OCT_OK;
    if (!base)
        return oct_nomem(err);
    if (oct_target_rules_of(j->opts.target)->biases == OCT_BIASES_FLOAT)
        return annotate_real_bias(j, g, id, base, err);
    const oct_quant *b = j->constants[id].bias;
    if (oct_target_rules_of(j->opts.target)->biases == OCT_BIASES_INT8)
        OCT_TRY(bytes_of(g, b, &b, err));
    OCT_TRY(new_value(g, base, "_quantized", b, -1, &v, err));
    return oct_graph_set_input(g, id, 2, v, err);
}

/* ---- clamps ---- */

static oct_status drop_clamps(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_order;) {
        const int id = g->order[i];
        if (id >= (int)j->n_nodes || !oct_is_absorbed(j, id)) {
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

oct_status oct_redirect(const oct_qjob *j, oct_graph *g, int v, const oct_quant *q, int to, oct_err *err)
{
    for (size_t i = 0; i < g->value[v].n_uses;) {
        oct_use u = g->value[v].uses[i];
        if (oct_reads_quantized(j, u.node, u.slot) && (!q || oct_read_as(j, u.node, u.slot) == q))
            OCT_TRY(oct_graph_set_input(g, u.node, u.slot, to, err));
        else
            i++;
    }
    return OCT_OK;
}

/* Quantizes a constant operand of an integer operator. */
static oct_status annotate_constant(const oct_qjob *j, oct_graph *g, int v, const oct_quant *shared, oct_err *err)
{
    const oct_tensor *t = g->value[v].constant;
    oct_quant *q = oct_arena_memdup(g->arena, shared, sizeof *shared);
    oct_tensor *qvals;
    int to;
    OCT_TRY(oct_tensor_new(g->arena, shared->dtype, t->rank, t->dims, &qvals, err));
    oct_quantize_f32(NULL, shared->dtype, t->data, (size_t)t->count, shared->scale[0], shared->zp[0],
                     (uint8_t *)(uintptr_t)qvals->data);
    if (!q)
        return oct_nomem(err);
    q->qvals = qvals;
    OCT_TRY(new_value(g, g->value[v].name, "_quantized", q, -1, &to, err));
    return oct_redirect(j, g, v, shared, to, err);
}

static bool any_reads_as(const oct_qjob *j, const oct_graph *g, int v, const oct_quant *q)
{
    bool any = false;
    for (size_t i = 0; i < g->value[v].n_uses && !any; i++) {
        const oct_use u = g->value[v].uses[i];
        any = oct_reads_quantized(j, u.node, u.slot) && oct_read_as(j, u.node, u.slot) == q;
    }
    return any;
}

/* Adds a border after v for the nodes that read it quantized. */
static oct_status add_border(const oct_qjob *j, oct_graph *g, int v, const oct_quant *q, oct_err *err)
{
    const int before = oct_edit_after(g, g->value[v].producer);
    int to;
    OCT_TRY(new_value(g, g->value[v].name, "_quantized", q, v, &to, err));
    OCT_TRY(oct_redirect(j, g, v, q, to, err));
    return oct_edit_node(g, "QuantizeLinear", &v, 1, to, before, NULL, err);
}

/* The output of an integer operator is quantized. A float value gets a border in front of its integer readers. */
static oct_status annotate_value(const oct_qjob *j, oct_graph *g, int v, const oct_quant *q, oct_err *err)
{
    if (oct_makes_quantized(j, g->value[v].producer)) {
        g->value[v].quant = q;
        return OCT_OK;
    }
    return any_reads_as(j, g, v, q) ? add_border(j, g, v, q, err) : OCT_OK;
}

/* The same for readers that compute on other types. */
static oct_status annotate_conversions(const oct_qjob *j, oct_graph *g, int v, oct_err *err)
{
    for (size_t k = 0; k < OCT_READ_TYPES; k++) {
        const oct_quant *q = oct_quant_as(j, v, k);
        if (!q || !any_reads_as(j, g, v, q))
            continue;
        if (g->value[v].constant && !oct_operand_stays_real(j, g, v))
            OCT_TRY(annotate_constant(j, g, v, q, err));
        else
            OCT_TRY(add_border(j, g, v, q, err));
    }
    return OCT_OK;
}

static oct_status annotate_values(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    for (size_t v = 0; v < j->n_values; v++) {
        const oct_quant *q = oct_quant_of(j, v);
        if (!q || g->value[v].dead)
            continue;
        OCT_TRY(annotate_conversions(j, g, (int)v, err));
        OCT_TRY(g->value[v].constant && !oct_operand_stays_real(j, g, (int)v) ? annotate_constant(j, g, (int)v, q, err)
                                                                              : annotate_value(j, g, (int)v, q, err));
    }
    return OCT_OK;
}

/* The input of a dynamic product is quantized when the model runs. Products that read the same value share the
 * result. */
static oct_status annotate_input(oct_graph *g, int id, oct_err *err)
{
    static const oct_quant dynamic = { .dtype = OCT_U8 };
    const int x = g->node[id].in[0], border = oct_reader_of(g, x, "DynamicQuantizeLinear", 1);
    int v;
    if (border >= 0)
        return oct_graph_set_input(g, id, 0, g->node[border].out[0], err);
    OCT_TRY(new_value(g, oct_node_label(g, id), "_input_quantized", &dynamic, x, &v, err));
    OCT_TRY(oct_edit_node(g, "DynamicQuantizeLinear", &x, 1, v, id, NULL, err));
    return oct_graph_set_input(g, id, 0, v, err);
}

/* Annotates layers that compute on quantized weights: those whose activations have parameters, or the others. */
static oct_status annotate_layers(const oct_qjob *j, oct_graph *g, bool fixed, int *made, oct_err *err)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        bool any = false;
        if (oct_is_static(j, id) != fixed)
            continue;
        OCT_TRY(annotate_constants(j, g, id, OCT_CONSTANT_OPERAND, made, &any, err));
        if (any && fixed)
            OCT_TRY(annotate_bias(j, g, id, err));
        else if (any && oct_scheme_of(j, id) == OCT_SCHEME_DYNAMIC && oct_op_of(g, id)->quant != OCT_QUANT_RECURRENT)
            OCT_TRY(annotate_input(g, id, err));
    }
    return OCT_OK;
}

static oct_status annotate(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    OCT_TRY(oct_bodies_do(j, g, annotate, err));
    int *made = oct_arena_calloc(g->arena, j->n_values + 1, sizeof *made);
    if (!made)
        return oct_nomem(err);
    OCT_TRY(annotate_layers(j, g, true, made, err));
    OCT_TRY(drop_clamps(j, g, err));
    OCT_TRY(annotate_values(j, g, err));
    OCT_TRY(annotate_gates(j, g, err));
    OCT_TRY(annotate_layers(j, g, false, made, err));
    for (size_t i = 0; i < j->n_layer; i++) /* behind products, whose values some tables refer to */
        OCT_TRY(annotate_constants(j, g, j->layer[i], OCT_CONSTANT_ROWS, made, NULL, err));
    for (size_t i = 0; i < j->n_layer; i++)
        OCT_TRY(annotate_constants(j, g, j->layer[i], OCT_CONSTANT_REALS, made, NULL, err));
    return oct_graph_sort(g, err);
}

/* ---- 16-bit floats, and the whole graph ---- */

/* chosen: by node, which may compute in 16-bit floats; NULL: all. *any: whether one does. */
static oct_status half_opts(const oct_qjob *j, const bool *chosen, oct_half_opts *o, bool *any, oct_err *err)
{
    oct_dtype *type = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *type);
    const oct_dtype ends = j->opts.scheme == OCT_SCHEME_BF16 ? OCT_BF16 : OCT_F16;
    *any = false;
    if (!type)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_nodes; i++)
        *any |= (!chosen || chosen[i]) && (type[i] = oct_half_type(j, (int)i)) != OCT_UNDEFINED;
    *o = (oct_half_opts){ type, j->n_nodes, j->opts.half_io ? ends : OCT_UNDEFINED,
                          oct_target_rules_of(j->opts.target)->bfloat16 != OCT_BFLOAT16_YES };
    return OCT_OK;
}

/* A constant that is not a number makes results that are none. Infinities are meant: masks have them. */
static oct_status check_numbers(const oct_graph *g, int node, oct_err *err)
{
    const oct_node *n = &g->node[node];
    for (int i = 0; i < n->n_in; i++) {
        const oct_tensor *t = oct_graph_constant(g, n->in[i]);
        const float *v = t && t->dtype == OCT_F32 ? t->data : NULL;
        for (int64_t e = 0; v && e < t->count; e++)
            if (isnan(v[e]))
                return oct_within_node(g, node,
                                       oct_fail(err, OCT_ENUMERIC, "a weight is not a number (element %lld of '%s')",
                                                (long long)e, g->value[n->in[i]].name),
                                       err);
    }
    return OCT_OK;
}

static oct_status halve(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    oct_half_opts o;
    bool any;
    OCT_TRY(oct_bodies_do(j, g, halve, err));
    OCT_TRY(half_opts(j, NULL, &o, &any, err));
    for (size_t i = 0; any && i < j->n_nodes; i++)
        if (o.type[i] != OCT_UNDEFINED)
            OCT_TRY(check_numbers(g, (int)i, err));
    if (any)
        OCT_TRY(oct_half_write(g, &o, err));
    oct_graph_prune(g); /* removes constants that were replaced, here or in bodies */
    OCT_TRY(oct_graph_sort(g, err));
    return oct_graph_check(g, err);
}

static oct_status write_forms(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    oct_half_opts half;
    bool any;
    OCT_TRY(oct_bodies_do(j, g, write_forms, err));
    OCT_TRY(half_opts(j, NULL, &half, &any, err));
    OCT_TRY(oct_forms_write(g, &(oct_forms_write_opts){ j->opts.blocks_qdq, j->opts.operators, &half }, err));
    if (!oct_target_rules_of(j->opts.target)->never_in_ort)
        OCT_TRY(oct_keep_real_layers(g, err));
    if (oct_target_rules_of(j->opts.target)->writes_defaults)
        OCT_TRY(oct_write_defaults(g, err));
    const bool quantizers = oct_target_rules_of(j->opts.target)->own_quantizers;
    const bool each = quantizers || oct_target_rules_of(j->opts.target)->own_dequantizers;
    return each && !j->opts.operators ? oct_dedicate_pairs(g, quantizers, err) : OCT_OK;
}

static oct_status annotate_all(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    OCT_TRY(annotate(j, g, err));
    return halve(j, g, err);
}

/* ---- some nodes of a float graph ---- */

static bool rounds_any(const oct_qjob *j)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_scheme_of(j, j->layer[i]) != OCT_SCHEME_FLOAT || oct_rounds_inputs(j, j->layer[i]) ||
            oct_has_own_form(j, j->layer[i]))
            return true;
    return false;
}

bool oct_has_own_form(const oct_qjob *j, int node)
{
    oct_qconstant c;
    bool any = oct_is_dynamic_recurrent(j, node) || oct_half_type(j, node) != OCT_UNDEFINED;
    for (int slot = 0; slot < OCT_CONSTANT_SLOTS; slot++)
        any |= oct_constant_of(j, node, slot, &c) && c.use != OCT_CONSTANT_OPERAND;
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = j->body[i].node == node && rounds_any(j->body[i].job);
    return any;
}

static oct_status give_bodies(const oct_qjob *j, oct_graph *g, const bool *chosen, oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++) {
        const qbody *b = &j->body[i];
        if (chosen && !chosen[b->node])
            continue;
        OCT_TRY_WITHIN(annotate_all(b->job, oct_node_graph_at(&g->node[b->node], b->at), err), err, "in '%s'",
                       b->job->where);
        OCT_TRY(oct_graph_set_captures(g, b->node, err));
    }
    return OCT_OK;
}

oct_status oct_give_own_forms(const oct_qjob *j, oct_graph *g, const bool *chosen, oct_err *err)
{
    static const oct_constant_use uses[] = { OCT_CONSTANT_OPERAND, OCT_CONSTANT_ROWS, OCT_CONSTANT_REALS };
    oct_half_opts half;
    bool any;
    int *made = oct_arena_calloc(g->arena, j->n_values + 1, sizeof *made);
    if (!made)
        return oct_nomem(err);
    OCT_TRY(give_bodies(j, g, chosen, err));
    for (size_t u = 0; u < OCT_COUNT(uses); u++)
        for (size_t i = 0; i < j->n_layer; i++)
            if ((!chosen || chosen[j->layer[i]]) &&
                (uses[u] != OCT_CONSTANT_OPERAND || oct_is_dynamic_recurrent(j, j->layer[i])))
                OCT_TRY(annotate_constants(j, g, j->layer[i], uses[u], made, NULL, err));
    OCT_TRY(half_opts(j, chosen, &half, &any, err));
    half.ends = OCT_UNDEFINED;
    return any ? oct_half_write(g, &half, err) : OCT_OK;
}

/* ---- all ---- */

oct_status oct_qjob_annotate(oct_qjob *j, oct_err *err)
{
    return annotate_all(j, j->g, err);
}

/* If several bodies read the same matrix from outside, each has quantized it. This merges the copies. */
enum { LEAST_SHARED = 256 };

static bool keeps_bf16(const oct_qjob *j)
{
    return oct_target_rules_of(j->opts.target)->bfloat16 == OCT_BFLOAT16_YES;
}

/* Whether a rule of the user keeps the node float32, where 16 bits are what is asked of the others. */
static bool is_asked_float(const oct_qjob *j, int id)
{
    return oct_scheme_is_half(j->opts.scheme) && id < (int)j->n_nodes && oct_row_of(j, id)->asked &&
           oct_row_of(j, id)->scheme == OCT_SCHEME_FLOAT;
}

static oct_status compute_in_own_type(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    OCT_TRY(oct_bodies_do(j, g, compute_in_own_type, err));
    bool *stays = oct_calloc(g->n_node + 1, sizeof *stays);
    if (!stays)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++)
        stays[g->order[i]] = oct_target_trap(j->opts.target, g, g->order[i]) || is_asked_float(j, g->order[i]);
    const oct_status s = oct_own_type_write(g, keeps_bf16(j), stays, err);
    oct_free(stays);
    return s;
}

/* Layers stay in the 16-bit type of the model, except where the target fails on such nodes. */
static oct_status write_own_type(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    OCT_TRY(oct_own_ends_write(g, keeps_bf16(j), err));
    OCT_TRY(oct_infer_shapes(g, err));
    return compute_in_own_type(j, g, err);
}

static oct_status rewrite(const oct_qjob *j, oct_graph *g, const oct_pass_log *log, oct_err *err)
{
    OCT_TRY(oct_job_unfold(j, g, log, err));
    OCT_TRY(annotate(j, g, err));
    OCT_TRY(write_forms(j, g, err));
    OCT_TRY(halve(j, g, err)); /* between written quantizers, because Casts are named after their results */
    if ((j->opts.source && j->opts.scheme == OCT_SCHEME_WEIGHT_ONLY) || oct_half_is_own(j))
        OCT_TRY(write_own_type(j, g, err));
    OCT_TRY(oct_graph_share_constants(g, LEAST_SHARED, oct_is_in_blocks, err));
    if (j->opts.source == OCT_F16 ||
        (j->opts.source == OCT_BF16 && oct_target_rules_of(j->opts.target)->bfloat16 != OCT_BFLOAT16_NEVER))
        OCT_TRY(oct_source_write(g, j->opts.source, err));
    if (!oct_target_rules_of(j->opts.target)->never_in_ort)
        OCT_TRY(oct_keep_moved_captures(g, err));
    return oct_graph_check(g, err);
}

oct_status oct_qjob_rewrite(oct_qjob *j, oct_err *err)
{
    return rewrite(j, j->g, j->opts.log, err);
}

static oct_status rewrite_unlogged(const oct_qjob *j, oct_graph *g, oct_err *err)
{
    return rewrite(j, g, NULL, err); /* the caller will log it when it happens */
}

static oct_status make_copy(const oct_qjob *j, oct_status (*make)(const oct_qjob *, oct_graph *, oct_err *),
                            oct_graph **copy, oct_err *err)
{
    oct_graph *c;
    OCT_TRY(oct_graph_clone(j->g, &c, err)); /* indices are the same in both */
    const oct_status s = make(j, c, err);
    if (s != OCT_OK)
        oct_graph_destroy(c);
    else
        *copy = c;
    return s;
}

oct_status oct_quantized_copy(const oct_qjob *j, oct_graph **copy, oct_err *err)
{
    return make_copy(j, annotate_all, copy, err);
}

oct_status oct_written_copy(const oct_qjob *j, oct_graph **copy, oct_err *err)
{
    return make_copy(j, rewrite_unlogged, copy, err);
}
