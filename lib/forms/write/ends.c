/* Inputs and outputs with other types than those of the float model. */
#include "forms/write/ends.h"

#include "forms/edit.h"
#include "kernels/quantize.h"
#include "passes/match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int least_of(oct_dtype t)
{
    return t == OCT_S8 ? -128 : 0;
}

/* ---- finding ---- */

/* The scale and the zero point, converted to type t, of a QuantizeLinear or DequantizeLinear with one constant scale;
 * false: the node is of another kind. */
static bool params_of(const oct_graph *g, int node, oct_dtype t, float *scale, float *zero)
{
    const oct_node *n = &g->node[node];
    if (n->n_in < 3 || n->in[1] < 0 || n->in[2] < 0)
        return false;
    const oct_tensor *s = g->value[n->in[1]].constant, *z = g->value[n->in[2]].constant;
    if (!s || !z || !s->data || !z->data || s->count != 1 || z->count != 1 || s->dtype != OCT_F32 ||
        (z->dtype != OCT_U8 && z->dtype != OCT_S8))
        return false;
    const int own = z->dtype == OCT_S8 ? *(const int8_t *)z->data : *(const uint8_t *)z->data;
    *scale = *(const float *)s->data;
    *zero = (float)(own - least_of(z->dtype) + least_of(t));
    return true;
}

static int end_at(const oct_graph *g, const oct_end *e)
{
    const size_t n = e->output ? g->n_output : g->n_input;
    for (size_t i = 0; i < n; i++)
        if (strcmp(g->value[e->output ? g->output[i] : g->input[i]].name, e->name) == 0)
            return e->output ? g->output[i] : g->input[i];
    return -1;
}

/* The QuantizeLinear that reads an input, or the DequantizeLinear that computes an output; -1: there is none. */
static int quantizer_of(const oct_graph *g, int v, bool output, oct_dtype t, float *scale, float *zero)
{
    const int p = g->value[v].producer;
    if (output)
        return p >= 0 && oct_is_op(&g->node[p], "DequantizeLinear") && params_of(g, p, t, scale, zero) ? p : -1;
    for (size_t i = 0; i < g->value[v].n_uses; i++) {
        const oct_use u = g->value[v].uses[i];
        if (u.slot == 0 && oct_is_op(&g->node[u.node], "QuantizeLinear") && params_of(g, u.node, t, scale, zero))
            return u.node;
    }
    return -1;
}

void oct_end_find(const oct_graph *g, oct_end *e)
{
    const int v = end_at(g, e);
    e->n = v >= 0 && quantizer_of(g, v, e->output, e->type, &e->scale[0], &e->zero[0]) >= 0;
}

/* ---- nodes ---- */

/* Adds a node at the end of the order, which is sorted later. *to: its new output. */
static oct_status add(oct_graph *g, const char *op, const int *in, int n_in, const char *base, oct_dtype t, int like,
                      int *node, int *to, oct_err *err)
{
    int made; /* to may be one of in */
    OCT_TRY(oct_edit_value(g, base, "", t, like, &made, err));
    OCT_TRY(oct_edit_node(g, op, in, n_in, made, -1, node, err));
    *to = made;
    return OCT_OK;
}

static oct_status cast(oct_graph *g, int v, oct_dtype t, const char *base, int like, int *to, oct_err *err)
{
    int node;
    OCT_TRY(add(g, "Cast", &v, 1, base, t, like, &node, to, err));
    return oct_node_set_int(g, node, "to", t, err);
}

/* Moves dimension 1 to the end, or (back) the last dimension to place 1. */
static oct_status move_channels(oct_graph *g, int *v, bool back, const char *base, oct_err *err)
{
    const oct_shape from = g->value[*v].shape;
    oct_dim d[OCT_MAX_RANK];
    int64_t perm[OCT_MAX_RANK];
    int node, to;
    for (int i = 0; i < from.rank; i++) {
        perm[i] = i == 0 ? 0 : back ? (i == 1 ? from.rank - 1 : i - 1) : i + 1 < from.rank ? i + 1 : 1;
        d[i] = from.d[perm[i]];
    }
    OCT_TRY(add(g, "Transpose", v, 1, base, g->value[*v].dtype, -1, &node, &to, err));
    *v = to;
    OCT_TRY(oct_graph_set_shape(g, to, from.rank, d, err));
    return oct_node_set_ints(g, node, "perm", perm, from.rank, err);
}

static oct_status reverse_channels(oct_graph *g, int *v, const oct_end *e, int axis, const char *base, oct_err *err)
{
    int64_t order[OCT_END_CHANNELS];
    const int64_t c = g->value[*v].shape.d[axis].n;
    int in[2] = { *v, -1 }, node;
    for (int64_t i = 0; i < c && i < OCT_END_CHANNELS; i++)
        order[i] = c - 1 - i;
    OCT_TRY(oct_edit_const(g, e->name, "_channels", OCT_S64, 1, &c, order, &in[1], err));
    OCT_TRY(add(g, "Gather", in, 2, base, g->value[in[0]].dtype, in[0], &node, v, err));
    return oct_node_set_int(g, node, "axis", axis, err);
}

/* Adds a constant with a number for each channel, in a shape that broadcasts to a tensor with the float model's
 * dimensions. */
static oct_status channel_const(oct_graph *g, const oct_end *e, const char *suffix, const float *x, int rank, int *v,
                                oct_err *err)
{
    const int64_t dims[OCT_MAX_RANK] = { e->n, 1, 1, 1, 1, 1, 1, 1 };
    return oct_edit_const(g, e->name, suffix, OCT_F32, e->n > 1 ? rank - e->axis : 0, dims, x, v, err);
}

/* Adds a QuantizeLinear, or (de) a DequantizeLinear, with one scale. */
static oct_status quantizer(oct_graph *g, const oct_end *e, bool de, int v, const char *base, int like, int *to,
                            oct_err *err)
{
    const uint8_t zero = (uint8_t)(int)e->zero[0]; /* for s8, too: the byte is the same */
    int in[3] = { v, -1, -1 };
    OCT_TRY(oct_edit_const(g, e->name, "_scale", OCT_F32, 0, NULL, e->scale, &in[1], err));
    OCT_TRY(oct_edit_const(g, e->name, "_zero_point", e->type, 0, NULL, &zero, &in[2], err));
    return add(g, de ? "DequantizeLinear" : "QuantizeLinear", in, 3, base, de ? OCT_F32 : e->type, like, NULL, to, err);
}

static bool is_whole(const oct_end *e)
{
    return e->n == 1 && e->zero[0] == rintf(e->zero[0]) && e->zero[0] >= (float)least_of(e->type) &&
           e->zero[0] <= (float)(least_of(e->type) + 255);
}

/* Computes (v - zero) * scale as a division by 1 / scale, because preprocessing divides by std. Steps that change
 * nothing are left out. */
static oct_status compute_reals(oct_graph *g, const oct_end *e, int v, const char *base, int like, int *real,
                                oct_err *err)
{
    const int rank = g->value[like].shape.rank;
    float by[OCT_END_CHANNELS];
    bool shifted = false, scaled = false;
    int in[2];
    for (int c = 0; c < e->n; c++) {
        by[c] = 1.0f / e->scale[c];
        shifted |= e->zero[c] != 0;
        scaled |= by[c] != 1;
    }
    OCT_TRY(cast(g, v, OCT_F32, base, like, &in[0], err));
    if (shifted) {
        OCT_TRY(channel_const(g, e, "_mean", e->zero, rank, &in[1], err));
        OCT_TRY(add(g, "Sub", in, 2, base, OCT_F32, like, NULL, &in[0], err));
    }
    if (scaled) {
        OCT_TRY(channel_const(g, e, "_std", by, rank, &in[1], err));
        OCT_TRY(add(g, "Div", in, 2, base, OCT_F32, like, NULL, &in[0], err));
    }
    *real = in[0];
    return OCT_OK;
}

/* ---- changing a graph's ends ---- */

/* Renames a value. The nodes around it are marked as changed, because unchanged nodes are saved with the old name. */
static oct_status rename_value(oct_graph *g, int v, const char *name, oct_err *err)
{
    if (g->value[v].producer >= 0)
        g->node[g->value[v].producer].changed = true;
    for (size_t i = 0; i < g->value[v].n_uses; i++)
        g->node[g->value[v].uses[i].node].changed = true;
    g->value[v].origin = NULL;
    return oct_graph_rename(g, v, name, err);
}

/* Value `by` takes the place and the name of input or output `old`, which is renamed to that name with a suffix. */
static oct_status replace_end(oct_graph *g, int old, bool output, const char *suffix, int by, oct_err *err)
{
    const char *name = g->value[old].name, *other = oct_arena_printf(g->arena, "%s%s", name, suffix);
    if (!other)
        return oct_nomem(err);
    OCT_TRY(rename_value(g, old, other, err));
    OCT_TRY(rename_value(g, by, name, err));
    for (size_t i = 0; i < (output ? g->n_output : g->n_input); i++)
        if ((output ? g->output : g->input)[i] == old)
            (output ? g->output : g->input)[i] = by;
    if (output) {
        g->value[old].is_output = false;
        g->value[by].is_output = true;
    } else {
        g->value[old].is_input = false;
        g->value[by].is_input = true;
    }
    g->changed = true;
    return OCT_OK;
}

static oct_status finish(oct_graph *g, oct_err *err)
{
    oct_graph_prune(g);
    OCT_TRY(oct_graph_sort(g, err));
    return oct_graph_check(g, err);
}

/* Adds an input of e's type in place of v. *same: the value that has its elements in the layout of v. */
static oct_status new_input(oct_graph *g, const oct_end *e, int v, int *same, oct_err *err)
{
    const oct_shape s = g->value[v].shape;
    oct_dim d[OCT_MAX_RANK];
    int in;
    for (int i = 0; i < s.rank; i++)
        d[i] = s.d[e->nhwc && i > 0 ? (i + 1 < s.rank ? i + 1 : 1) : i];
    OCT_TRY(oct_edit_value(g, e->name, "_as_given", e->type, -1, &in, err));
    if (s.rank >= 0)
        OCT_TRY(oct_graph_set_shape(g, in, s.rank, d, err));
    OCT_TRY(replace_end(g, v, false, "_real", in, err));
    *same = in;
    if (e->nhwc)
        OCT_TRY(move_channels(g, same, true, e->name, err));
    return e->reversed ? reverse_channels(g, same, e, e->axis, e->name, err) : OCT_OK;
}

/* Removes the nodes that convert v to e's type (quantizers with e's parameters, and Casts). Their readers read `same`
 * instead. */
static oct_status drop_rounding(oct_graph *g, const oct_end *e, int v, int same, oct_err *err)
{
    for (size_t i = 0; i < g->value[v].n_uses;) {
        const oct_use u = g->value[v].uses[i];
        const oct_node *n = &g->node[u.node];
        float scale, zero;
        const bool quantizes = u.slot == 0 && oct_is_op(n, "QuantizeLinear") && e->n == 1 && !e->computed &&
                               params_of(g, u.node, e->type, &scale, &zero) && scale == e->scale[0] &&
                               zero == e->zero[0];
        if ((quantizes || oct_is_op(n, "Cast")) && g->value[n->out[0]].dtype == e->type &&
            !oct_edit_keeps(g, n->out[0])) {
            const int out = n->out[0];
            OCT_TRY(oct_graph_replace_uses(g, out, same, err));
            oct_graph_remove_node(g, u.node);
            oct_graph_remove_value(g, out);
        } else {
            i++;
        }
    }
    return OCT_OK;
}

static bool fills_constant(const oct_node *n)
{
    return strcmp(oct_node_str(n, "mode", "constant"), "constant") == 0;
}

/* Whether a node only moves elements of its data inputs, or, for Pad, repeats them or adds a known constant. */
static bool only_moves(const oct_graph *g, const oct_node *n)
{
    const oct_value *fill = oct_input_at(n, 2) >= 0 ? &g->value[n->in[2]] : NULL;
    if (oct_is_op(n, "Pad"))
        return !fills_constant(n) || !fill ||
               (fill->constant && fill->constant->data && fill->constant->dtype == OCT_F32);
    return oct_is_op(n, "Split") || oct_is_op(n, "Concat") || oct_is_op(n, "Transpose");
}

static bool inputs_are(const oct_graph *g, const oct_node *n, const bool *of)
{
    bool all = true;
    for (int i = 0; i < (oct_is_op(n, "Concat") ? n->n_in : 1); i++)
        all &= n->in[i] >= 0 && of[n->in[i]];
    return all && only_moves(g, n);
}

/* Marks in of[] the values that consist of elements of v. Returns whether only nodes that move them and quantizers with
 * e's parameters read these values. */
static bool moved_from(const oct_graph *g, const oct_end *e, int v, bool *of)
{
    bool only = e->n == 1 && !e->computed;
    of[v] = true;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        for (int k = 0; n->n_in && inputs_are(g, n, of) && k < n->n_out; k++)
            if (n->out[k] >= 0)
                of[n->out[k]] = true;
    }
    for (size_t w = 0; w < g->n_value; w++)
        for (size_t i = 0; of[w] && i < g->value[w].n_uses; i++) {
            const oct_use u = g->value[w].uses[i];
            float scale, zero;
            const oct_node *n = &g->node[u.node];
            const bool rounds = u.slot == 0 && oct_is_op(n, "QuantizeLinear") &&
                                params_of(g, u.node, e->type, &scale, &zero) && scale == e->scale[0] &&
                                zero == e->zero[0] && g->value[n->out[0]].dtype == e->type;
            only &= u.slot >= 0 && !oct_edit_keeps(g, (int)w) && (rounds || (n->out[0] >= 0 && of[n->out[0]]));
        }
    return only;
}

/* Replaces the constant that a Pad fills in, 0 where it names none, by its quantized value. */
static oct_status fill_integers(oct_graph *g, const oct_end *e, int node, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const float none = 0;
    uint8_t q;
    int fill;
    if (!fills_constant(n))
        return OCT_OK;
    const void *real = oct_input_at(n, 2) >= 0 ? g->value[n->in[2]].constant->data : &none;
    oct_quantize_f32(NULL, e->type, real, 1, e->scale[0], (int32_t)e->zero[0], &q);
    OCT_TRY(oct_edit_const(g, e->name, "_fill", e->type, 0, NULL, &q, &fill, err));
    return oct_graph_set_input(g, node, 2, fill, err);
}

static oct_status move_integers(oct_graph *g, const oct_end *e, int v, oct_err *err)
{
    bool *of = oct_arena_calloc(g->arena, g->n_value, sizeof *of);
    if (!of)
        return oct_nomem(err);
    if (!moved_from(g, e, v, of))
        return OCT_OK;
    const size_t n = g->n_value;
    for (size_t w = 0; w < n; w++) {
        const int p = g->value[w].producer;
        if (!of[w])
            continue;
        g->value[w].dtype = e->type;
        g->value[w].origin = NULL;
        if (p >= 0 && oct_is_op(&g->node[p], "Pad"))
            OCT_TRY(fill_integers(g, e, p, err));
        OCT_TRY(drop_rounding(g, e, (int)w, (int)w, err));
    }
    return OCT_OK;
}

static oct_status close_input(oct_graph *g, const oct_end *e, int v, oct_err *err)
{
    int same, real;
    OCT_TRY(move_integers(g, e, v, err));
    OCT_TRY(new_input(g, e, v, &same, err));
    if (g->value[v].dtype == e->type) {
        OCT_TRY(oct_graph_replace_uses(g, v, same, err));
        oct_graph_remove_value(g, v);
        return finish(g, err);
    }
    OCT_TRY(drop_rounding(g, e, v, same, err));
    if (g->value[v].n_uses == 0) {
        oct_graph_remove_value(g, v);
        return finish(g, err);
    }
    if (e->type == OCT_F16)
        OCT_TRY(cast(g, same, OCT_F32, e->name, v, &real, err));
    else
        OCT_TRY(e->computed ? compute_reals(g, e, same, e->name, v, &real, err)
                            : quantizer(g, e, true, same, e->name, v, &real, err));
    OCT_TRY(oct_graph_replace_uses(g, v, real, err));
    oct_graph_remove_value(g, v);
    return finish(g, err);
}

static oct_status close_output(oct_graph *g, const oct_end *e, int v, oct_err *err)
{
    float scale, zero;
    const int p = quantizer_of(g, v, true, e->type, &scale, &zero), q = p >= 0 ? g->node[p].in[0] : -1;
    int to = q;
    if (q < 0 || g->value[q].dtype != e->type || g->value[q].is_output || g->value[q].is_input ||
        oct_value_is_captured(&g->value[q]))
        OCT_TRY(e->type == OCT_F16 ? cast(g, v, OCT_F16, e->name, v, &to, err)
                                   : quantizer(g, e, false, v, e->name, v, &to, err));
    OCT_TRY(replace_end(g, v, true, "_real", to, err));
    return finish(g, err);
}

/* Whether a value has the dimensions that e needs: those of images for nhwc, and few channels if these have their own
 * scales or are reversed. moved: the value is the one in the file, whose channels may be the last dimension. */
static bool has_dims(const oct_graph *g, const oct_end *e, int v, bool moved)
{
    const oct_shape *s = &g->value[v].shape;
    const int at = moved && e->nhwc ? s->rank - 1 : e->axis;
    if (e->nhwc && (s->rank != 4 || e->axis > 1))
        return false;
    return (!e->reversed && e->n <= 1) || (at >= 0 && at < s->rank && s->d[at].n > 0 && s->d[at].n <= OCT_END_CHANNELS);
}

oct_status oct_end_close(oct_graph *g, const oct_end *e, oct_err *err)
{
    const int v = end_at(g, e);
    if (v < 0 || g->value[v].dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "'%s' is not of float32", e->name);
    if (oct_value_is_captured(&g->value[v]) || (!e->output && g->value[v].is_output))
        return oct_fail(err, OCT_EUNSUPPORTED, "'%s' is read where its type cannot be changed", e->name);
    if (!has_dims(g, e, v, false))
        return oct_fail(err, OCT_EUNSUPPORTED, "'%s' has no known number of channels", e->name);
    return e->output ? close_output(g, e, v, err) : close_input(g, e, v, err);
}

/* ---- the way back ---- */

/* Computes round(x / scale + zero), clamped, for each channel. */
static oct_status round_channels(oct_graph *g, const oct_end *e, int x, int *to, oct_err *err)
{
    const int rank = g->value[x].shape.rank;
    const float lo = (float)least_of(e->type), hi = lo + 255;
    int in[3] = { x, -1, -1 };
    OCT_TRY(channel_const(g, e, "_scale", e->scale, rank, &in[1], err));
    OCT_TRY(add(g, "Div", in, 2, e->name, OCT_F32, x, NULL, &in[0], err));
    OCT_TRY(channel_const(g, e, "_zero", e->zero, rank, &in[1], err));
    OCT_TRY(add(g, "Add", in, 2, e->name, OCT_F32, x, NULL, &in[0], err));
    OCT_TRY(add(g, "Round", in, 1, e->name, OCT_F32, x, NULL, &in[0], err));
    OCT_TRY(oct_edit_const(g, e->name, "_min", OCT_F32, 0, NULL, &lo, &in[1], err));
    OCT_TRY(oct_edit_const(g, e->name, "_max", OCT_F32, 0, NULL, &hi, &in[2], err));
    OCT_TRY(add(g, "Clip", in, 3, e->name, OCT_F32, x, NULL, &in[0], err));
    return cast(g, in[0], e->type, e->name, x, to, err);
}

static oct_status reopen_input(oct_graph *g, const oct_end *e, int v, oct_err *err)
{
    const oct_shape s = g->value[v].shape;
    oct_dim d[OCT_MAX_RANK];
    int x, to;
    for (int i = 0; i < s.rank; i++)
        d[i] = s.d[e->nhwc && i > 0 ? (i == 1 ? s.rank - 1 : i - 1) : i];
    OCT_TRY(oct_edit_value(g, e->name, "_float", OCT_F32, -1, &x, err));
    if (s.rank >= 0)
        OCT_TRY(oct_graph_set_shape(g, x, s.rank, d, err));
    OCT_TRY(replace_end(g, v, false, "_as_given", x, err));
    if (e->type == OCT_F16)
        OCT_TRY(cast(g, x, OCT_F16, e->name, x, &to, err));
    else
        OCT_TRY(is_whole(e) ? quantizer(g, e, false, x, e->name, x, &to, err) : round_channels(g, e, x, &to, err));
    if (e->reversed)
        OCT_TRY(reverse_channels(g, &to, e, e->axis, e->name, err));
    if (e->nhwc)
        OCT_TRY(move_channels(g, &to, false, e->name, err));
    OCT_TRY(oct_graph_replace_uses(g, v, to, err));
    oct_graph_remove_value(g, v);
    return finish(g, err);
}

oct_status oct_end_reopen(oct_graph *g, const oct_end *e, oct_err *err)
{
    const int v = end_at(g, e);
    int to;
    if (v < 0 || g->value[v].dtype != e->type || (e->n == 0 && e->type != OCT_F16))
        return OCT_OK;
    if (!has_dims(g, e, v, true) || (e->output && e->type != OCT_F16 && !is_whole(e)))
        return OCT_OK;
    if (!e->output)
        return reopen_input(g, e, v, err);
    OCT_TRY(e->type == OCT_F16 ? cast(g, v, OCT_F32, e->name, v, &to, err)
                               : quantizer(g, e, true, v, e->name, v, &to, err));
    OCT_TRY(replace_end(g, v, true, "_as_given", to, err));
    return finish(g, err);
}

typedef enum channels_move { STAY, TO_END, TO_FRONT } channels_move;

/* Whether the dimensions behind the first one are known, and those of a are those of b when its channels are moved. */
static bool are_dims(const oct_shape *a, const oct_shape *b, channels_move how)
{
    bool same = a->rank == b->rank;
    for (int i = 1; same && i < a->rank; i++) {
        const int from = how == STAY ? i : how == TO_END ? i % (a->rank - 1) + 1 : i == 1 ? a->rank - 1 : i - 1;
        same = a->d[i].n >= 0 && a->d[i].n == b->d[from].n;
    }
    return same;
}

oct_status oct_end_turn(oct_graph *g, const char *name, bool output, const oct_shape *like, bool *turned, oct_err *err)
{
    const oct_end e = { .name = name, .output = output };
    const int v = end_at(g, &e);
    const oct_shape s = v >= 0 ? g->value[v].shape : (oct_shape){ .rank = -1 };
    *turned = s.rank > 2 && !are_dims(like, &s, STAY) && (are_dims(like, &s, TO_END) || are_dims(like, &s, TO_FRONT));
    if (!*turned)
        return OCT_OK;
    const bool to_end = are_dims(like, &s, TO_END);
    int x = v, to;
    if (output) {
        OCT_TRY(move_channels(g, &x, !to_end, name, err));
        OCT_TRY(replace_end(g, v, true, "_as_made", x, err));
        return finish(g, err);
    }
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0; i < s.rank; i++)
        d[i] = i ? like->d[i] : s.d[0];
    OCT_TRY(oct_edit_value(g, name, "_turned", g->value[v].dtype, -1, &x, err));
    OCT_TRY(oct_graph_set_shape(g, x, s.rank, d, err));
    OCT_TRY(replace_end(g, v, false, "_as_read", x, err));
    to = x;
    OCT_TRY(move_channels(g, &to, to_end, name, err));
    OCT_TRY(oct_graph_replace_uses(g, v, to, err));
    oct_graph_remove_value(g, v);
    return finish(g, err);
}

/* ---- scaled inputs ---- */

oct_status oct_input_scale(oct_graph *g, const char *input, int axis, bool reversed, int n, const float *factor,
                           const float *term, oct_err *err)
{
    const int v = oct_graph_find(g, input);
    const size_t n_uses = g->value[v].n_uses;
    const oct_use *use = oct_arena_memdup(g->arena, g->value[v].uses, n_uses * sizeof *use);
    oct_end e = { .name = input, .axis = axis, .n = n };
    int in[2] = { v, -1 };
    if (!use)
        return oct_nomem(err);
    if (reversed)
        OCT_TRY(reverse_channels(g, &in[0], &e, axis, input, err));
    OCT_TRY(channel_const(g, &e, "_factor", factor, g->value[v].shape.rank, &in[1], err));
    OCT_TRY(add(g, "Mul", in, 2, input, OCT_F32, v, NULL, &in[0], err));
    OCT_TRY(channel_const(g, &e, "_term", term, g->value[v].shape.rank, &in[1], err));
    OCT_TRY(add(g, "Add", in, 2, input, OCT_F32, v, NULL, &in[0], err));
    for (size_t i = 0; i < n_uses; i++)
        OCT_TRY(oct_graph_set_input(g, use[i].node, use[i].slot, in[0], err));
    return finish(g, err);
}

/* ---- the metadata ---- */

static void put_floats(oct_buf *b, const float *x, int n)
{
    for (int i = 0; i < n; i++)
        oct_buf_printf(b, "%s%.9g", i ? "," : " ", (double)x[i]);
}

void oct_end_put(oct_buf *b, const oct_end *e)
{
    if (e->name[strcspn(e->name, "\n")])
        return; /* a name with a line break does not fit into a line */
    const float one = 1, none = 0;
    oct_buf_printf(b, "%s %s %s %s %d", e->output ? "output" : "input", oct_dtype_name(e->type), e->nhwc ? "nhwc" : "-",
                   e->reversed ? "reversed" : "-", e->axis);
    put_floats(b, e->n ? e->scale : &one, e->n ? e->n : 1);
    put_floats(b, e->n ? e->zero : &none, e->n ? e->n : 1);
    oct_buf_printf(b, " %s\n", e->name);
}

/* Reads "a,b,c" up to the space after it, and returns how many numbers these are; 0: the text is not such a list. */
static int read_floats(char **at, float *x)
{
    for (int n = 0; n < OCT_END_CHANNELS;) {
        char *end;
        x[n++] = strtof(*at, &end);
        if (end == *at || !isfinite(x[n - 1]) || (*end != ',' && *end != ' '))
            return 0;
        *at = end + 1;
        if (*end == ' ')
            return n;
    }
    return 0;
}

static bool read_line(char *line, oct_end *e)
{
    char way[8], type[12], layout[8], order[12];
    int used = 0, axis;
    if (sscanf(line, "%7s %11s %7s %11s %d %n", way, type, layout, order, &axis, &used) != 5 || !used || axis < 0 ||
        axis >= OCT_MAX_RANK)
        return false;
    *e = (oct_end){ .output = strcmp(way, "output") == 0,
                    .nhwc = strcmp(layout, "nhwc") == 0,
                    .reversed = strcmp(order, "reversed") == 0,
                    .axis = axis };
    for (oct_dtype t = 1; t <= OCT_F16; t++)
        if ((t == OCT_U8 || t == OCT_S8 || t == OCT_F16) && strcmp(type, oct_dtype_name(t)) == 0)
            e->type = t;
    char *at = line + used;
    e->n = read_floats(&at, e->scale);
    bool good = e->type && e->n && read_floats(&at, e->zero) == e->n && *at;
    for (int i = 0; i < e->n; i++)
        good &= e->scale[i] > 0;
    e->name = at;
    return good && (!e->output || e->n == 1);
}

oct_status oct_ends_read(const char *text, oct_arena *arena, oct_end **ends, size_t *n, oct_err *err)
{
    size_t lines = 0;
    *n = 0;
    for (const char *c = text; c && *c; c++)
        lines += *c == '\n';
    if (!(*ends = oct_arena_calloc(arena, lines + 1, sizeof **ends)))
        return oct_nomem(err);
    for (const char *end; lines && (end = strchr(text, '\n')); text = end + 1) {
        char *line = oct_arena_strndup(arena, text, (size_t)(end - text));
        if (!line)
            return oct_nomem(err);
        *n += read_line(line, &(*ends)[*n]);
    }
    return OCT_OK;
}
