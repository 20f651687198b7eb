/* LSTM. .tflite has one direction, a matrix for each gate in the order i, f, c, o, and states that are variables: they
 * are 0 when these are reset. On integers, gates and cells have 16 bits, and each matrix one scale. */
#include "tflite/tfl_operators.h"
#include "tflite/tfl_weights.h"

#include "kernels/math.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { GATES = 4, IN = 0, FORGET = 1, CELL = 2, OPERANDS = 24, BIASES = 12, STATE = 18, CELLS = 19, WITHIN = 5 };
enum { GATE_BITS = 12, CELL_BITS = 15, MOST_CELL_BITS = 6 /* in front of the point: kernels have no tanh of more */ };

/* Where gate k of .tflite stands in ONNX's order i, o, f, c. */
static const int of_onnx[GATES] = { 0, 2, 3, 1 };

typedef struct lstm {
    int64_t steps, batch, in, units;
    oct_tfl_kind kind;
    const float *bias; /* [GATES][units], in the order of .tflite; the sum of both */
    const oct_quant *state;
    bool turned; /* sequences stand in front of steps */
} lstm;

/* ---- what is refused ---- */

static bool is_zero(const oct_tfl_writer *w, int value)
{
    float x = 1;
    return value < 0 || (oct_tfl_one_real(w, value, &x) && x == 0);
}

static bool usual_activations(const oct_node *n)
{
    static const char *const usual[] = { "sigmoid", "tanh", "tanh" };
    const oct_attr *names = oct_node_attr(n, "activations");
    if (!names || (names->type == OCT_ATTR_STRINGS && !names->n))
        return true;
    bool same = names->type == OCT_ATTR_STRINGS && names->n == OCT_COUNT(usual);
    for (size_t i = 0; same && i < OCT_COUNT(usual); i++)
        same = strcasecmp(names->strings[i], usual[i]) == 0;
    return same;
}

static bool is_used(const oct_tfl_writer *w, const oct_node *n, int k)
{
    const oct_value *v = k < n->n_out && n->out[k] >= 0 ? &w->g->value[n->out[k]] : NULL;
    return v && (v->n_uses || v->is_output);
}

static oct_status check(const oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    if (strcmp(oct_node_str(n, "direction", "forward"), "forward") != 0)
        return oct_tfl_cannot(w, err, "make it an LSTM that runs forward for each direction, and a Concat",
                              "it has the direction %s", oct_node_str(n, "direction", "forward"));
    if (oct_node_int(n, "layout", 0) || oct_node_int(n, "input_forget", 0) || oct_node_attr(n, "clip") ||
        !usual_activations(n) || oct_input_at(n, 7) >= 0)
        return oct_tfl_cannot(w, err, "write it with the attributes' defaults, without peepholes",
                              "it has a layout, activations, clip, input_forget or peepholes");
    if (oct_input_at(n, 4) >= 0)
        return oct_tfl_cannot(w, err, "give all sequences the length of the input", "it has sequence_lens");
    if (!is_zero(w, oct_input_at(n, 5)) || !is_zero(w, oct_input_at(n, 6)))
        return oct_tfl_cannot(w, err, "let it begin with zeros: .tflite keeps states in variables",
                              "its first state is given");
    if (is_used(w, n, 2))
        return oct_tfl_cannot(w, err, "remove what reads it: .tflite keeps it in a variable",
                              "its last cells, Y_c, are read");
    return OCT_OK;
}

static oct_status read_sizes(const oct_tfl_writer *w, const oct_node *n, lstm *l, oct_err *err)
{
    int64_t x[OCT_MAX_RANK], in[OCT_MAX_RANK], of[OCT_MAX_RANK];
    int rank[3];
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank[0], x, err));
    OCT_TRY(oct_tfl_dims(w, n->in[1], &rank[1], in, err));
    OCT_TRY(oct_tfl_dims(w, n->in[2], &rank[2], of, err));
    if (rank[0] != 3 || rank[1] != 3 || rank[2] != 3 || in[0] != 1 || of[0] != 1 || in[2] != x[2] ||
        in[1] != GATES * of[2] || of[1] != in[1])
        return oct_tfl_cannot(w, err, NULL, "its operands do not fit each other");
    l->steps = x[0];
    l->batch = x[1];
    l->in = x[2];
    l->units = of[2];
    return l->steps > 0 && l->units > 0 ? OCT_OK : oct_tfl_cannot(w, err, NULL, "it has no steps");
}

/* ---- weights ---- */

/* The scale of a gate's matrix, by its place in ONNX's order; 0: its rows have several. */
static float gate_scale(const oct_quant *q, int gate, int64_t units)
{
    for (int64_t i = 1; q->n > 1 && i < units; i++)
        if (q->scale[gate * units + i] != q->scale[gate * units])
            return 0;
    return q->scale[q->n > 1 ? gate * units : 0];
}

/* Whether kernels on int8 take these weights. */
static bool weights_fit(const oct_tfl_writer *w, int value, int64_t units)
{
    const oct_quant *q = w->g->value[value].quant;
    if (!oct_tfl_weights_fit(w, value, 1) || (q->n != 1 && q->n != GATES * units))
        return false;
    for (int k = 0; k < GATES; k++)
        if (!(gate_scale(q, k, units) > 0))
            return false;
    return true;
}

/* The matrix of gate k, [units, columns]. */
static oct_status matrix(oct_tfl_writer *w, const lstm *l, int value, int k, int64_t columns, int *tensor, oct_err *err)
{
    static const char letter[] = "ifco";
    static const int32_t zero = 0;
    const oct_value *v = &w->g->value[value];
    const oct_quant *q = v->quant;
    const oct_tensor *t = q ? q->qvals : v->constant;
    const int64_t dims[] = { l->units, columns };
    const size_t first = (size_t)(of_onnx[k] * l->units * columns);
    const char *name = oct_arena_printf(w->arena, "%s_%c", v->name, letter[k]);
    if (!name)
        return oct_nomem(err);
    if (!t || !t->data || (q ? t->dtype != OCT_S8 || q->block : t->dtype != OCT_F32))
        return oct_tfl_cannot(w, err, "convert with --scheme static, or --scheme float",
                              "its weights '%s' are no constants of float32 or int8", v->name);
    if (!q)
        return oct_tfl_constant(w, name, OCT_TFL_FLOAT32, 2, dims, NULL, 0, (const float *)t->data + first, tensor,
                                err);
    const int8_t *from = (const int8_t *)t->data + first;
    if (l->kind == OCT_TFL_OWN) {
        const float scale = gate_scale(q, of_onnx[k], l->units);
        oct_quant *own = oct_arena_calloc(w->m->arena, 1, sizeof *own);
        const float *kept = oct_arena_memdup(w->m->arena, &scale, sizeof scale);
        if (!own || !kept)
            return oct_nomem(err);
        *own = (oct_quant){ .n = 1, .scale = kept, .zp = &zero, .dtype = OCT_S8 };
        return oct_tfl_constant(w, name, OCT_TFL_INT8, 2, dims, own, 0, from, tensor, err);
    }
    float *real = oct_arena_calloc(w->m->arena, (size_t)(l->units * columns) + 1, sizeof *real);
    if (!real)
        return oct_nomem(err);
    for (int64_t i = 0; i < l->units * columns; i++) {
        const int64_t c = q->n > 1 ? of_onnx[k] * l->units + i / columns : 0;
        real[i] = (float)(from[i] - q->zp[c]) * q->scale[c];
    }
    return oct_tfl_constant(w, name, OCT_TFL_FLOAT32, 2, dims, NULL, 0, real, tensor, err);
}

static oct_status read_bias(oct_tfl_writer *w, const oct_node *n, lstm *l, oct_err *err)
{
    const int value = oct_input_at(n, 3);
    const oct_tensor *t = value >= 0 ? w->g->value[value].constant : NULL;
    float *sum = oct_arena_calloc(w->m->arena, (size_t)(GATES * l->units) + 1, sizeof *sum);
    if (!sum)
        return oct_nomem(err);
    l->bias = sum;
    if (value < 0)
        return OCT_OK;
    if (!t || !t->data || t->dtype != OCT_F32 || t->count != 2 * GATES * l->units)
        return oct_tfl_cannot(w, err, NULL, "its bias '%s' is no constant of float32", w->g->value[value].name);
    const float *b = t->data;
    for (int k = 0; k < GATES; k++)
        for (int64_t u = 0; u < l->units; u++) {
            const int64_t at = of_onnx[k] * l->units + u;
            sum[k * l->units + u] = b[at] + b[GATES * l->units + at];
        }
    return OCT_OK;
}

/* The bias of gate k; for integers with the scale of the input times that of its matrix. */
static oct_status gate_bias(oct_tfl_writer *w, const lstm *l, int k, int x, int weights, int *tensor, oct_err *err)
{
    static const int32_t zero = 0;
    static const char letter[] = "ifco";
    const float *real = l->bias + k * l->units;
    const char *name = oct_arena_printf(w->arena, "%s_b_%c", w->m->tensor[weights].name, letter[k]);
    if (!name)
        return oct_nomem(err);
    if (l->kind == OCT_TFL_REAL)
        return oct_tfl_constant(w, name, OCT_TFL_FLOAT32, 1, &l->units, NULL, 0, real, tensor, err);
    const float scale = w->m->tensor[x].quant->scale[0] * w->m->tensor[weights].quant->scale[0];
    int32_t *sum = oct_arena_calloc(w->m->arena, (size_t)l->units + 1, sizeof *sum);
    const float *kept = oct_arena_memdup(w->m->arena, &scale, sizeof scale);
    oct_quant *q = oct_arena_calloc(w->m->arena, 1, sizeof *q);
    if (!sum || !kept || !q)
        return oct_nomem(err);
    *q = (oct_quant){ .n = 1, .scale = kept, .zp = &zero, .dtype = OCT_S32 };
    for (int64_t u = 0; u < l->units; u++) {
        const double v = rint((double)real[u] / (double)scale);
        sum[u] = v > INT32_MAX ? INT32_MAX : v >= INT32_MIN ? (int32_t)v : INT32_MIN;
    }
    return oct_tfl_constant(w, name, OCT_TFL_INT32, 1, &l->units, q, 0, sum, tensor, err);
}

/* ---- cells ---- */

/* The least and the largest sum of gate k of a unit, of all inputs and states that there are. */
static void sum_bounds(const oct_tfl_writer *w, const lstm *l, const int *in, int k, int64_t unit, double bound[2])
{
    const oct_tfl_tensor *m = w->m->tensor;
    const int operand[2] = { in[0], in[STATE] }, by[2] = { in[1 + k], in[1 + GATES + k] };
    bound[0] = bound[1] = (double)l->bias[k * l->units + unit];
    for (int part = 0; part < 2; part++) {
        const oct_quant *q = m[operand[part]].quant;
        const double least = (double)q->scale[0] * (-128 - q->zp[0]), most = (double)q->scale[0] * (127 - q->zp[0]);
        const int64_t columns = m[by[part]].dims[1];
        const int8_t *row = (const int8_t *)m[by[part]].data + unit * columns;
        for (int64_t i = 0; i < columns; i++) {
            const double a = (double)m[by[part]].quant->scale[0] * row[i];
            bound[0] += a * (a > 0 ? least : most);
            bound[1] += a * (a > 0 ? most : least);
        }
    }
}

/* Bits in front of the point that no cell leaves after all steps: each step keeps a part of it, as large as the forget
 * gate can be, and adds at most what input gate and candidate can be. */
static int cell_bits(const oct_tfl_writer *w, const lstm *l, const int *in)
{
    double most = 0;
    for (int64_t u = 0; u < l->units; u++) {
        double sum[GATES][2], cell = 0;
        for (int k = 0; k < GATES - 1; k++)
            sum_bounds(w, l, in, k, u, sum[k]);
        const double kept = 1 / (1 + oct_exp(-sum[FORGET][1])), let = 1 / (1 + oct_exp(-sum[IN][1]));
        const double more = let * oct_tanh(fmax(fabs(sum[CELL][0]), fabs(sum[CELL][1])));
        for (int64_t t = 0; t < l->steps && cell < 1 << MOST_CELL_BITS; t++)
            cell = kept * cell + more;
        most = fmax(most, cell);
    }
    int bits = 0;
    while (bits < MOST_CELL_BITS && most > 1 << bits)
        bits++;
    return bits;
}

/* ---- the operator ---- */

static oct_status scales(oct_tfl_writer *w, float scale, oct_dtype type, const oct_quant **q, oct_err *err)
{
    static const int32_t zero = 0;
    const float *kept = oct_arena_memdup(w->m->arena, &scale, sizeof scale);
    const oct_quant own = { .n = 1, .scale = kept, .zp = &zero, .dtype = type };
    *q = kept ? oct_arena_memdup(w->m->arena, &own, sizeof own) : NULL;
    return *q ? OCT_OK : oct_nomem(err);
}

/* A tensor that operators make or keep; like: one with its type. */
static oct_status inner(oct_tfl_writer *w, const char *suffix, int like, oct_tfl_type type, const oct_quant *q,
                        int rank, const int64_t *dims, int *tensor, oct_err *err)
{
    const char *name = oct_arena_printf(w->arena, "%s_%s", w->m->tensor[like].name, suffix);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_between(w, name, like, rank, dims, -1, tensor, err));
    w->m->tensor[*tensor].type = type;
    w->m->tensor[*tensor].quant = q;
    return OCT_OK;
}

static oct_status states(oct_tfl_writer *w, const lstm *l, int y, int *in, oct_err *err)
{
    const int64_t dims[] = { l->batch, l->units };
    const oct_tfl_type type = w->m->tensor[y].type;
    OCT_TRY(inner(w, "state", y, type, l->state, 2, dims, &in[STATE], err));
    OCT_TRY(inner(w, "cells", y, l->state ? OCT_TFL_INT16 : type, NULL, 2, dims, &in[CELLS], err));
    w->m->tensor[in[STATE]].variable = w->m->tensor[in[CELLS]].variable = true;
    return OCT_OK;
}

/* The scales of what a kernel on integers computes on the way: sums of gates, and the state. */
static oct_status tell_scales(oct_tfl_writer *w, const lstm *l, int y, int *in, int *within, oct_err *err)
{
    const int64_t none[] = { 0 };
    const oct_quant *gate, *cell;
    OCT_TRY(scales(w, ldexpf(1, -GATE_BITS), OCT_S16, &gate, err));
    OCT_TRY(scales(w, ldexpf(1, cell_bits(w, l, in) - CELL_BITS), OCT_S16, &cell, err));
    w->m->tensor[in[CELLS]].quant = cell;
    for (int k = 0; k < WITHIN; k++)
        OCT_TRY(inner(w, k < GATES ? "gate" : "hidden", y, k < GATES ? OCT_TFL_INT16 : OCT_TFL_INT8,
                      k < GATES ? gate : l->state, 1, none, &within[k], err));
    return OCT_OK;
}

static oct_status add_operator(oct_tfl_writer *w, const oct_node *n, const lstm *l, int x, int y, oct_err *err)
{
    int in[OPERANDS], within[WITHIN];
    oct_tfl_operator *op;
    for (int i = 0; i < OPERANDS; i++)
        in[i] = -1;
    in[0] = x;
    for (int k = 0; k < GATES; k++) {
        OCT_TRY(matrix(w, l, n->in[1], k, l->in, &in[1 + k], err));
        OCT_TRY(matrix(w, l, n->in[2], k, l->units, &in[1 + GATES + k], err));
        OCT_TRY(gate_bias(w, l, k, x, in[1 + k], &in[BIASES + k], err));
    }
    OCT_TRY(states(w, l, y, in, err));
    if (l->state)
        OCT_TRY(tell_scales(w, l, y, in, within, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, in, OPERANDS, &y, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_LSTM_ACTIVATION, OCT_TFL_ACT_TANH);
    oct_tfl_set_byte(op, OCT_TFL_LSTM_TIME_MAJOR, !l->turned);
    if (!l->state)
        return OCT_OK;
    op->n_within = WITHIN;
    op->within = oct_arena_memdup(w->m->arena, within, sizeof within);
    return op->within ? OCT_OK : oct_nomem(err);
}

/* The last step of all. */
static oct_status last_step(oct_tfl_writer *w, const lstm *l, int all, int to, oct_err *err)
{
    int64_t begin[3] = { 0 }, size[3] = { -1, -1, -1 };
    int in[3] = { all, 0, 0 };
    begin[l->turned] = l->steps - 1;
    size[l->turned] = 1;
    OCT_TRY(oct_tfl_numbers(w, "begin", 1, (int64_t[]){ 3 }, begin, &in[1], err));
    OCT_TRY(oct_tfl_numbers(w, "size", 1, (int64_t[]){ 3 }, size, &in[2], err));
    return oct_tfl_add(w, OCT_TFL_SLICE, in, 3, &to, 1, NULL, err);
}

/* Orders of X [steps, batch, in], Y [steps, 1, batch, units] and Y_h [1, batch, units] with sequences in front. */
static const oct_tfl_order turned_x = { { 1, 0, 2 } }, turned_y[2] = { { { 2, 0, 1, 3 } }, { { 1, 0, 2 } } };

oct_status oct_tfl_write_lstm(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain(), order = oct_tfl_order_of(w, n->in[0]);
    lstm l = { .kind = OCT_TFL_REAL };
    int x, y, to[2] = { -1, -1 }, value[2] = { -1, -1 };
    bool whole = oct_tfl_is_int8(w, n->in[0]);
    if (n->n_in < 3 || n->in[1] < 0 || n->in[2] < 0)
        return oct_tfl_cannot(w, err, NULL, "it has no weights");
    OCT_TRY(check(w, n, err));
    OCT_TRY(read_sizes(w, n, &l, err));
    for (int k = 0; k < 2; k++)
        if (is_used(w, n, k)) {
            value[k] = oct_tfl_behind_border(w, n->out[k]);
            whole = whole && oct_tfl_is_int8(w, value[k]);
        }
    if (value[0] < 0 && value[1] < 0)
        return oct_tfl_cannot(w, err, "remove it", "nothing reads what it makes");
    if (whole && weights_fit(w, n->in[1], l.units) && weights_fit(w, n->in[2], l.units)) {
        l.kind = OCT_TFL_OWN;
        l.state = value[0] >= 0 ? w->g->value[value[0]].quant : NULL;
        if (!l.state) /* what is read of the last step says nothing of the others */
            OCT_TRY(scales(w, 1.0F / 128, OCT_S8, &l.state, err));
    }
    l.turned = oct_tfl_same_order(&order, &turned_x, 3);
    OCT_TRY(read_bias(w, n, &l, err));
    OCT_TRY(oct_tfl_read(w, n->in[0], l.turned ? &turned_x : &plain, l.kind, &x, err));
    for (int k = 0; k < 2; k++)
        if (value[k] >= 0)
            OCT_TRY(oct_tfl_result(w, value[k], l.turned ? &turned_y[k] : &plain, l.kind, l.state, &to[k], err));
    const int like = to[0] >= 0 ? to[0] : to[1];
    const int64_t dims[] = { l.turned ? l.batch : l.steps, l.turned ? l.steps : l.batch, l.units };
    OCT_TRY(inner(w, "steps", like, w->m->tensor[like].type, l.state, 3, dims, &y, err));
    OCT_TRY(add_operator(w, n, &l, x, y, err));
    if (to[0] >= 0)
        OCT_TRY(oct_tfl_reshape(w, y, to[0], err));
    return to[1] >= 0 ? last_step(w, &l, y, to[1], err) : OCT_OK;
}
