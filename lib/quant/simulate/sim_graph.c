/* Builds the graph in which parts of a job's rounding can be switched on: it has float nodes and rounded constants.
 * Where integer operators read a value that others read in float, they get a copy of it as a value of its own. */
#include "quant/simulate/simulate.h"

#include "eval/run/output_form.h"
#include "forms/edit.h"
#include "kernels/quantize.h"
#include "ops/core/block_matrix.h"
#include "quant/job/annotate.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

#include <string.h>

/* ---- constants ---- */

/* The real numbers that quantized weights stand for. Channels are looked up once for each row: in a row the channel is
 * constant, or increases by one after each step. */
static void to_reals(const qweights *w, const oct_weight_layout *l, float *real)
{
    const int8_t *qvals = w->qvals->data;
    const int64_t row = l->in_step > l->out_step ? l->in_step : l->out_step, run = w->quant.n > 1 ? l->out_step : row;
    for (int64_t e = 0; e < w->qvals->count;) {
        const float *scale = w->quant.scale + (w->quant.n > 1 ? oct_output_channel(l, e) : 0);
        for (const int64_t end = e + row; e < end; scale++)
            for (const int64_t last = e + run; e < last; e++)
                real[e] = (float)qvals[e] * *scale;
    }
}

/* The same for weights in blocks, which are stored by columns. */
static oct_status blocks_to_reals(oct_graph *g, int id, const qweights *w, const oct_weight_layout *l, float *real,
                                  oct_err *err)
{
    const oct_nbits_form f = oct_blocks_form(&w->quant, oct_layer_weights(g, id)->dims);
    oct_nbits_weights from;
    float *column = oct_arena_alloc(g->arena, f.k * sizeof *column + 1);
    if (!column)
        return oct_nomem(err);
    OCT_TRY(oct_blocks_weights(&w->quant, &f, g->arena, &from, err));
    for (size_t o = 0; o < f.n; o++) {
        oct_nbits_dequantize(&f, &from, o, column);
        for (size_t k = 0; k < f.k; k++)
            real[(int64_t)o * l->out_step + (int64_t)k * l->in_step] = column[k];
    }
    return OCT_OK;
}

static oct_status round_weights(oct_graph *g, int id, const qweights *w, const oct_weight_layout *l, oct_err *err)
{
    const oct_tensor *own = oct_layer_weights(g, id), *real = w->qvals; /* float32: they are real numbers already */
    if (!real || real->dtype != OCT_F32) {
        oct_tensor *made;
        OCT_TRY(oct_tensor_new(g->arena, OCT_F32, own->rank, own->dims, &made, err));
        if (w->quant.block)
            OCT_TRY(blocks_to_reals(g, id, w, l, (float *)(uintptr_t)made->data, err));
        else
            to_reals(w, l, (float *)(uintptr_t)made->data);
        real = made;
    }
    int v;
    OCT_TRY(oct_edit_refer(g, g->value[g->node[id].in[1]].name, "_rounded", real, &v, err));
    return oct_graph_set_input(g, id, 1, v, err);
}

static oct_status round_bias(oct_graph *g, int id, const oct_quant *bias, oct_err *err)
{
    const oct_tensor *t = bias->qvals;
    const int32_t *qvals = t->data;
    float *real = oct_calloc((size_t)t->count + 1, sizeof *real);
    if (!real)
        return oct_nomem(err);
    for (int64_t o = 0; o < t->count; o++)
        real[o] = (float)qvals[o] * bias->scale[bias->n > 1 ? o : 0];
    int v;
    oct_status s =
        oct_edit_const(g, g->value[g->node[id].out[0]].name, "_rounded", OCT_F32, t->rank, t->dims, real, &v, err);
    oct_free(real);
    return s == OCT_OK ? oct_graph_set_input(g, id, 2, v, err) : s;
}

static bool rounds_weights(const oct_qjob *j, int node)
{
    const oct_scheme scheme = oct_scheme_of(j, node);
    return (oct_is_product(j, node) || scheme == OCT_SCHEME_DYNAMIC || scheme == OCT_SCHEME_WEIGHT_ONLY) &&
           j->constants[node].weights[0] && oct_op_of(j->g, node)->quant == OCT_QUANT_WEIGHTED;
}

bool oct_sim_rounds(const oct_qjob *j, int node)
{
    return rounds_weights(j, node) || oct_has_own_form(j, node);
}

bool oct_sim_leaves_out(const oct_qjob *j, int node)
{
    const oct_scheme scheme = oct_scheme_of(j, node);
    oct_weight_layout l;
    if (scheme == OCT_SCHEME_FLOAT || oct_is_absorbed(j, node) || oct_has_own_form(j, node))
        return false;
    if (scheme == OCT_SCHEME_STATIC && !(oct_is_product(j, node) && oct_layer_weights(j->g, node)))
        return false; /* its values are rounded, if anything */
    return !rounds_weights(j, node) || !oct_layer_layout(j->g, node, &l);
}

/* Layers that share a matrix and its quantized form share its rounded numbers. last: by matrix, 1 + the layer that was
 * rounded last. */
static oct_status round_layer(const oct_qjob *j, oct_graph *g, int id, int *last, oct_err *err)
{
    const oct_quant *bias = j->constants[id].bias;
    oct_weight_layout l;
    if (!rounds_weights(j, id) || !oct_layer_layout(g, id, &l))
        return OCT_OK;
    int *before = &last[g->node[id].in[1]];
    if (*before && j->constants[*before - 1].weights[0] == j->constants[id].weights[0])
        OCT_TRY(oct_graph_set_input(g, id, 1, g->node[*before - 1].in[1], err));
    else
        OCT_TRY(round_weights(g, id, j->constants[id].weights[0], &l, err));
    *before = id + 1;
    return bias && oct_is_product(j, id) ? round_bias(g, id, bias, err) : OCT_OK;
}

/* ---- ways ---- */

/* The parameters with which readers round a value in a way; NULL: there are none. */
static const oct_quant *params_of(const oct_qjob *j, int v, size_t way)
{
    return way == OCT_SIM_OWN ? oct_quant_of(j, v) : way < OCT_SIM_AT_RUN ? oct_quant_as(j, v, way - 1) : NULL;
}

static bool reads(const oct_qjob *j, int v, oct_use u, size_t way)
{
    if (way == OCT_SIM_AT_RUN)
        return u.slot == 0 && oct_is_dynamic_product(j, u.node);
    return oct_reads_quantized(j, u.node, u.slot) &&
           (way == OCT_SIM_OWN || oct_read_as(j, u.node, u.slot) == params_of(j, v, way));
}

/* Makes the nodes that read value v in a way read value `to`. */
static oct_status redirect(const oct_qjob *j, oct_graph *g, int v, size_t way, int to, oct_err *err)
{
    if (way != OCT_SIM_AT_RUN)
        return oct_redirect(j, g, v, way == OCT_SIM_OWN ? NULL : params_of(j, v, way), to, err);
    for (size_t i = 0; i < g->value[v].n_uses;) {
        const oct_use u = g->value[v].uses[i];
        if (reads(j, v, u, way))
            OCT_TRY(oct_graph_set_input(g, u.node, u.slot, to, err));
        else
            i++;
    }
    return OCT_OK;
}

/* Rounds a constant operand of integer operators that read it in one way. */
static oct_status round_constant(const oct_qjob *j, oct_graph *g, int v, size_t way, oct_err *err)
{
    const oct_tensor *t = g->value[v].constant;
    float *real = oct_calloc((size_t)t->count + 1, sizeof *real);
    int to;
    if (!real)
        return oct_nomem(err);
    memcpy(real, t->data, (size_t)t->count * sizeof *real);
    oct_sim_round(j, oct_sim_rounding(j, v, way), &(oct_operand){ .dtype = OCT_F32, .count = t->count, .data = real });
    oct_status s = oct_edit_const(g, g->value[v].name, "_rounded", OCT_F32, t->rank, t->dims, real, &to, err);
    oct_free(real);
    return s == OCT_OK ? redirect(j, g, v, way, to, err) : s;
}

/* ---- values ---- */

/* Makes the copy that nodes read which round a value in one way. Others read the value as it is. */
static oct_status copy_value(const oct_qjob *j, oct_graph *g, int v, size_t way, int *to, oct_err *err)
{
    static const float one = 1;
    int c;
    OCT_TRY(oct_graph_new_const_f32(g, "one", 0, NULL, &one, &c, err));
    OCT_TRY(oct_edit_value(g, g->value[v].name, way == OCT_SIM_AT_RUN ? "_rounded_at_run" : "_rounded", OCT_F32, v, to,
                           err));
    OCT_TRY(redirect(j, g, v, way, *to, err));
    return oct_edit_node(g, "Mul", (int[]){ v, c }, 2, *to, oct_edit_after(g, g->value[v].producer), NULL, err);
}

/* If a value only has a quantizer because the target wants one everywhere, its readers read it in float. */
static bool has_reader(const oct_qjob *j, const oct_graph *g, int v, size_t way)
{
    bool any = false;
    for (size_t i = 0; i < g->value[v].n_uses && !any; i++)
        any = reads(j, v, g->value[v].uses[i], way);
    return any;
}

static oct_status add_tap(const oct_qjob *j, oct_graph *g, int v, size_t way, bool constants, oct_arena *arena,
                          const char **tap, oct_err *err)
{
    int to = v;
    if (g->value[v].constant)
        return constants && has_reader(j, g, v, way) ? round_constant(j, g, v, way, err) : OCT_OK;
    const bool made = way == OCT_SIM_OWN && oct_is_static(j, oct_maker_node(j, v));
    if (!made && !has_reader(j, g, v, way))
        return OCT_OK;
    if (!made)
        OCT_TRY(copy_value(j, g, v, way, &to, err));
    tap[oct_sim_rounding(j, v, way)] = oct_arena_strdup(arena, g->value[to].name);
    return tap[oct_sim_rounding(j, v, way)] ? OCT_OK : oct_nomem(err);
}

static oct_status add_taps(const oct_qjob *j, oct_graph *g, bool constants, oct_arena *arena, const char **tap,
                           oct_err *err)
{
    memset(tap, 0, j->n_values * OCT_SIM_WAYS * sizeof *tap);
    for (size_t v = 0; v < j->n_values; v++)
        for (size_t way = OCT_SIM_WAYS; way-- > 0 && !g->value[v].dead;) /* that of all other readers is the last */
            if (way == OCT_SIM_AT_RUN || params_of(j, (int)v, way))
                OCT_TRY(add_tap(j, g, (int)v, way, constants, arena, tap, err));
    return OCT_OK;
}

/* ---- outputs ---- */

/* The value that a Cast between types of floats gives in another type, as at the ends of models of 16 or 64 bits. */
static int before_cast(const oct_graph *g, int v)
{
    for (int p = g->value[v].producer; p >= 0; p = g->value[v].producer) {
        const oct_op *op = oct_op_of(g, p);
        const int x = g->node[p].in[0];
        if (!op || !op->converts || x < 0 || !oct_dtype_is_real(g->value[x].dtype) ||
            !oct_dtype_is_real(g->value[v].dtype))
            break;
        v = x;
    }
    return v;
}

/* The value before a Softmax, Sigmoid or the like at an output; otherwise the output itself. After these functions most
 * errors vanish, so that results on few samples would depend on luck. The Sigmoid of a map is an exception: it has many
 * values, and most of them are so far from 0 before it that they would outweigh the few that matter. */
static int logits_of(const oct_graph *g, int v)
{
    const bool map = g->value[v].shape.rank > 3;
    int found = v = before_cast(g, v);
    for (int p = g->value[v].producer; p >= 0; p = g->value[v].producer) {
        const oct_op *op = oct_op_of(g, p);
        if (!op || !(op->fixed_range || op->quant == OCT_QUANT_SAME) || g->node[p].in[0] < 0)
            break;
        v = g->node[p].in[0];
        if (op->fixed_range && !op->competes && map)
            break;
        if (op->fixed_range && g->value[v].producer >= 0)
            found = v;
    }
    return found;
}

/* The value of the copy from which a real number is measured: as integer operators read it, or before a Softmax. */
static int measured(const oct_graph *g, int v, const char *tap)
{
    const int logits = logits_of(g, v), read = tap ? oct_graph_find(g, tap) : -1;
    return logits == v && read >= 0 ? read : logits;
}

/* The axis along which a Softmax or LogSoftmax compares the elements of a value, which it reads or makes; -1: none
 * does. */
static int axis_of(const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    int node = x->producer >= 0 && oct_op_of(g, x->producer) && oct_op_of(g, x->producer)->competes ? x->producer : -1;
    for (size_t i = 0; i < x->n_uses && node < 0; i++) {
        const oct_op *op = oct_op_of(g, x->uses[i].node);
        node = op && op->competes ? x->uses[i].node : -1;
    }
    if (node < 0)
        return -1;
    const int axis = (int)oct_node_int(&g->node[node], "axis", -1);
    return axis < 0 ? axis + x->shape.rank : axis;
}

/* Makes outputs of the values on which errors are measured. For outputs that are answers, or rows that values chose,
 * these are the real numbers before the decision: a mask is as good as the scores that its threshold cuts. own: the
 * graph without rounding, of which the values are the same in every copy, so that outputs correspond whatever is
 * rounded. */
static oct_status take_reals(const oct_graph *own, oct_graph *g, const char *const *tap, oct_arena *arena,
                             oct_sim_end *end, oct_err *err)
{
    int *value = oct_arena_calloc(arena, own->n_value + 1, sizeof *value),
        *output = oct_arena_calloc(g->arena, own->n_value + 1, sizeof *output);
    bool *taken = oct_arena_calloc(arena, own->n_value + 1, sizeof *taken),
         *rows = oct_arena_calloc(arena, own->n_value + 1, sizeof *rows);
    size_t n, kept = 0;
    if (!value || !output || !taken || !rows)
        return oct_nomem(err);
    OCT_TRY(oct_output_reals(own, value, rows, &n, err));
    if (n == 0) {
        memcpy(value, own->output, own->n_output * sizeof *value);
        n = own->n_output;
    }
    for (size_t k = 0; k < n; k++) {
        const int v = value[k], from = logits_of(own, v); /* in the copy, where they end depends on what is rounded */
        if (taken[from] && !own->value[v].is_output)
            continue;
        taken[from] = true;
        end[kept] = (oct_sim_end){ rows[k], axis_of(own, from) };
        output[kept++] = own->value[v].is_output ? logits_of(g, v) : measured(g, v, tap[v]);
    }
    g->output = output;
    g->n_output = kept;
    for (size_t v = 0; v < g->n_value; v++)
        g->value[v].is_output = false;
    for (size_t k = 0; k < kept; k++)
        g->value[output[k]].is_output = true;
    oct_graph_prune(g);
    return OCT_OK;
}

static oct_status build(const oct_qjob *j, oct_graph *g, const bool *rounds, bool constants, oct_arena *arena,
                        const char **tap, oct_sim_end *end, oct_err *err)
{
    int *last = oct_arena_calloc(arena, g->n_value + 1, sizeof *last);
    if (!last)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_layer; i++)
        if (!rounds || rounds[j->layer[i]])
            OCT_TRY(round_layer(j, g, j->layer[i], last, err));
    OCT_TRY(add_taps(j, g, constants, arena, tap, err));
    OCT_TRY(oct_give_own_forms(j, g, rounds, err));
    OCT_TRY(take_reals(j->g, g, tap, arena, end, err));
    return oct_graph_sort(g, err);
}

oct_status oct_sim_graph(const oct_qjob *j, const bool *rounds, bool constants, oct_arena *arena, oct_graph **g,
                         const char **tap, oct_sim_end **end, oct_err *err)
{
    oct_graph *copy;
    if (!(*end = oct_arena_calloc(arena, j->g->n_value + 1, sizeof **end)))
        return oct_nomem(err);
    OCT_TRY(oct_graph_clone(j->g, &copy, err)); /* nodes and values have the same indices in both */
    const oct_status s = build(j, copy, rounds, constants, arena, tap, *end, err);
    if (s == OCT_OK)
        *g = copy;
    else
        oct_graph_destroy(copy);
    return s;
}

void oct_sim_round_to(const oct_qjob *j, int rounding, const float *x, size_t n, float *y)
{
    const oct_quant *q = params_of(j, oct_sim_value(j, rounding), oct_sim_way(j, rounding));
    if (q)
        oct_fake_quantize_f32(q->dtype, x, n, q->scale[0], q->zp[0], y);
    else
        oct_fake_dynamic_quantize_f32(x, n, y);
}

void oct_sim_round(const oct_qjob *j, int rounding, const oct_operand *t)
{
    oct_sim_round_to(j, rounding, t->data, (size_t)t->count, t->data);
}
