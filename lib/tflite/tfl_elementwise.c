/* Operators on single elements: sums, products, activations. Their results have the order of axes of their operands. */
#include "tflite/tfl_number.h"

#include <math.h>
#include <string.h>

/* The order in which an operator with several operands works: that of the first one with all axes of the result. */
static oct_tfl_order common_order(const oct_tfl_writer *w, const oct_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !oct_value_is_constant(&w->g->value[n->in[i]]) &&
            w->g->value[n->in[i]].shape.rank == w->g->value[n->out[0]].shape.rank)
            return oct_tfl_order_of(w, n->in[i]);
    return oct_tfl_plain();
}

/* An operand with as many axes as the result, in its order; those that it lacks stand in front, with size 1. */
static oct_status operand(oct_tfl_writer *w, int value, const oct_tfl_order *order, int rank, oct_tfl_kind kind,
                          int *tensor, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const oct_value *v = &w->g->value[value];
    int64_t dims[OCT_MAX_RANK], wide[OCT_MAX_RANK], physical[OCT_MAX_RANK];
    int own, from, n = 0;
    OCT_TRY(oct_tfl_dims(w, value, &own, dims, err));
    if (own > rank)
        return oct_tfl_cannot(w, err, NULL, "its operand '%s' has more axes than its result", v->name);
    if (own == rank)
        return oct_tfl_read(w, value, order, kind, tensor, err);
    if (own == 0)
        return oct_tfl_read(w, value, &plain, kind, tensor, err);
    for (int i = 0; i < rank; i++)
        wide[i] = i < rank - own ? 1 : dims[i - (rank - own)];
    if (oct_value_is_constant(v) && (!v->quant || kind == OCT_TFL_OWN))
        return oct_tfl_read_constant(w, value, rank, wide, order, v->quant ? v->quant->axis + rank - own : 0, tensor,
                                     err);
    for (int i = 0; i < rank; i++) {
        physical[i] = wide[order->d[i]];
        n += physical[i] != 1;
    }
    if (n > 1 && !oct_tfl_same_order(order, &plain, rank)) {
        oct_tfl_order moved = plain;
        int at = 0;
        for (int i = 0; i < rank; i++)
            if (order->d[i] >= rank - own)
                moved.d[at++] = (int8_t)(order->d[i] - (rank - own));
        OCT_TRY(oct_tfl_read(w, value, &moved, kind, &from, err));
    } else {
        OCT_TRY(oct_tfl_read(w, value, &plain, kind, &from, err));
    }
    OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_wide", v->name), from, rank, physical, -1, tensor, err));
    return oct_tfl_reshape(w, from, *tensor, err);
}

static float scale_of(const oct_tfl_writer *w, int value)
{
    return w->g->value[value].quant->scale[0];
}

/* Whether both operands and the result mean the same by their integers. */
static bool has_one_scale(const oct_tfl_writer *w, const oct_node *n)
{
    const oct_quant *y = w->g->value[w->out].quant;
    return oct_quant_same(w->g->value[n->in[0]].quant, y) && oct_quant_same(w->g->value[n->in[1]].quant, y);
}

oct_status oct_tfl_write_binary(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const struct {
        const char *onnx;
        oct_tfl_code code;
        enum { REALS, INT8, INT8_OF_ONE_SCALE } runs;
    } codes[] = { { "Add", OCT_TFL_ADD, INT8 },
                  { "Sub", OCT_TFL_SUB, INT8 },
                  { "Mul", OCT_TFL_MUL, INT8 },
                  { "Div", OCT_TFL_DIV, REALS },
                  { "Pow", OCT_TFL_POW, REALS },
                  { "Max", OCT_TFL_MAXIMUM, INT8_OF_ONE_SCALE },
                  { "Min", OCT_TFL_MINIMUM, INT8_OF_ONE_SCALE } };
    const oct_tfl_order order = common_order(w, n);
    const int rank = w->g->value[n->out[0]].shape.rank;
    oct_tfl_operator *op;
    size_t k = 0;
    int in[2], out;
    if (oct_tfl_is_product(w, n))
        return oct_tfl_write_product(w, n, err);
    while (strcmp(n->op, codes[k].onnx) != 0)
        k++;
    if (n->n_in != 2)
        return oct_tfl_cannot(w, err, "write it as several nodes of two operands", "it has %d operands", n->n_in);
    const bool whole =
        codes[k].runs != REALS && oct_tfl_runs_whole(w, 0, 2) && (codes[k].runs == INT8 || has_one_scale(w, n));
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    for (int i = 0; i < 2; i++)
        OCT_TRY(operand(w, n->in[i], &order, rank, kind, &in[i], err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, codes[k].code, in, 2, &out, 1, &op, err));
    if (w->activation)
        oct_tfl_set_byte(op, OCT_TFL_BINARY_ACTIVATION, w->activation);
    const bool wide = whole && w->g->value[w->out].quant->dtype == OCT_S16;
    if (wide && codes[k].code != OCT_TFL_MUL)
        oct_tfl_clear_byte(op, OCT_TFL_BINARY_POWERS);
    if (codes[k].code == OCT_TFL_MUL && whole && !wide &&
        scale_of(w, n->in[0]) * scale_of(w, n->in[1]) / scale_of(w, w->out) >= 1)
        op->version = 3;
    return OCT_OK;
}

/* One operator from an input in its own order to the result. like: what its integers mean if that is fixed. */
static oct_status unary(oct_tfl_writer *w, const oct_node *n, oct_tfl_code code, oct_tfl_kind kind,
                        const oct_quant *like, oct_tfl_operator **op, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int in, out;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, like, &out, err));
    return oct_tfl_add(w, code, &in, 1, &out, 1, op, err);
}

static const oct_quant *fixed(const oct_tfl_writer *w, oct_tfl_code code)
{
    static const float s32768 = 1.0f / 32768;
    static const float s256 = 1.0f / 256, s128 = 1.0f / 128, s16 = 1.0f / 16;
    static const int32_t low = -128, zero = 0, high = 127;
    static const oct_quant unit = { .n = 1, .scale = &s256, .zp = &low, .dtype = OCT_S8 },
                           both = { .n = 1, .scale = &s128, .zp = &zero, .dtype = OCT_S8 },
                           fine = { .n = 1, .scale = &s32768, .zp = &zero, .dtype = OCT_S16 },
                           logs = { .n = 1, .scale = &s16, .zp = &high, .dtype = OCT_S8 };
    if (w->g->value[w->out].quant->dtype == OCT_S16)
        return code == OCT_TFL_LOGISTIC || code == OCT_TFL_SOFTMAX || code == OCT_TFL_TANH ? &fine : NULL;
    return code == OCT_TFL_LOGISTIC || code == OCT_TFL_SOFTMAX ? &unit
           : code == OCT_TFL_TANH                              ? &both
           : code == OCT_TFL_LOG_SOFTMAX                       ? &logs
                                                               : NULL;
}

oct_status oct_tfl_write_unary(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const struct {
        const char *onnx;
        oct_tfl_code code;
        bool int8;
    } codes[] = { { "Sigmoid", OCT_TFL_LOGISTIC, true },
                  { "Tanh", OCT_TFL_TANH, true },
                  { "HardSwish", OCT_TFL_HARD_SWISH, true },
                  { "LeakyRelu", OCT_TFL_LEAKY_RELU, true },
                  { "Elu", OCT_TFL_ELU, true },
                  { "Gelu", OCT_TFL_GELU, true },
                  { "Exp", OCT_TFL_EXP, false },
                  { "Log", OCT_TFL_LOG, false },
                  { "Sqrt", OCT_TFL_SQRT, false },
                  { "Abs", OCT_TFL_ABS, true },
                  { "Neg", OCT_TFL_NEG, false },
                  { "Floor", OCT_TFL_FLOOR, false } };
    oct_tfl_operator *op;
    size_t k = 0;
    if (oct_tfl_is_product(w, n))
        return oct_tfl_write_product(w, n, err);
    while (strcmp(n->op, codes[k].onnx) != 0)
        k++;
    const oct_tfl_code code = codes[k].code;
    const oct_tfl_kind kind = codes[k].int8 && oct_tfl_runs_whole(w, 0, 1) ? OCT_TFL_OWN : OCT_TFL_REAL;
    if (code == OCT_TFL_HARD_SWISH && kind == OCT_TFL_REAL && oct_tfl_has_integers(w))
        return oct_tfl_write_hard_swish(w, n, err);
    if (code == OCT_TFL_ELU && oct_node_float(n, "alpha", 1) != 1)
        return oct_tfl_cannot(w, err, NULL, "its alpha is not 1");
    OCT_TRY(unary(w, n, code, kind, kind == OCT_TFL_OWN ? fixed(w, code) : NULL, &op, err));
    if (code == OCT_TFL_LEAKY_RELU)
        oct_tfl_set_real(op, OCT_TFL_LEAKY_RELU_ALPHA, oct_node_float(n, "alpha", 0.01f));
    if (code == OCT_TFL_GELU)
        oct_tfl_set_byte(op, OCT_TFL_GELU_APPROXIMATE, strcmp(oct_node_str(n, "approximate", "none"), "tanh") == 0);
    return OCT_OK;
}

/* One number a channel, from the statistics of a normalization; NULL: they are computed. */
static const float *channel_numbers(const oct_tfl_writer *w, int value, int64_t n)
{
    const oct_tensor *t = w->g->value[value].constant;
    return t && t->data && t->dtype == OCT_F32 && t->count == n ? t->data : NULL;
}

/* (x - mean) / sqrt(var + epsilon) * scale + bias, as x a + b. */
oct_status oct_tfl_write_batchnorm(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int64_t dims[OCT_MAX_RANK], wide[OCT_MAX_RANK];
    int rank, in[2], between, out, number[2];
    const float *given[4];
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    for (int i = 0; i < 4; i++)
        if (n->n_in < 5 || rank < 2 || n->in[1 + i] < 0 || !(given[i] = channel_numbers(w, n->in[1 + i], dims[1])))
            return oct_tfl_cannot(w, err, NULL, "its statistics are computed at run time");
    float *line[2] = { oct_arena_calloc(w->m->arena, (size_t)dims[1] + 1, sizeof(float)),
                       oct_arena_calloc(w->m->arena, (size_t)dims[1] + 1, sizeof(float)) };
    if (!line[0] || !line[1])
        return oct_nomem(err);
    for (int64_t i = 0; i < dims[1]; i++) {
        const double a = (double)given[0][i] / sqrt((double)given[3][i] + (double)oct_node_float(n, "epsilon", 1e-5f));
        line[0][i] = (float)a;
        line[1][i] = (float)((double)given[1][i] - (double)given[2][i] * a);
    }
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_REAL, &in[0], err));
    const oct_tfl_tensor t = w->m->tensor[in[0]];
    for (int i = 0; i < rank; i++)
        wide[i] = order.d[i] == 1 ? dims[1] : 1;
    for (int i = 0; i < 2; i++)
        OCT_TRY(oct_tfl_constant(w, w->g->value[n->in[1 + i]].name, OCT_TFL_FLOAT32, rank, wide, NULL, 0, line[i],
                                 &number[i], err));
    for (int i = 0; i < rank; i++)
        wide[i] = t.dims[i];
    OCT_TRY(
        oct_tfl_between(w, oct_arena_printf(w->arena, "%s_scaled", t.name), in[0], rank, wide, t.open, &between, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, OCT_TFL_REAL, NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_MUL, (int[]){ in[0], number[0] }, 2, &between, 1, NULL, err));
    return oct_tfl_add(w, OCT_TFL_ADD, (int[]){ between, number[1] }, 2, &out, 1, NULL, err);
}

oct_status oct_tfl_write_prelu(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const oct_tfl_kind kind = oct_tfl_runs_whole(w, 0, 2) ? OCT_TFL_OWN : OCT_TFL_REAL;
    const oct_value *slope = &w->g->value[n->in[1]];
    const int rank = w->g->value[n->in[0]].shape.rank;
    int64_t wide[OCT_MAX_RANK], dims[OCT_MAX_RANK];
    int in[2], out, own;
    if (!oct_value_is_constant(slope))
        return oct_tfl_cannot(w, err, NULL, "its slopes are computed at run time");
    OCT_TRY(oct_tfl_dims(w, n->in[1], &own, dims, err));
    if (own > rank)
        return oct_tfl_cannot(w, err, NULL, "its slopes have %d axes", own);
    for (int i = 0; i < rank; i++)
        wide[i] = i < rank - own ? 1 : dims[i - (rank - own)];
    if (rank > 0 && wide[0] != 1)
        return oct_tfl_cannot(w, err, "give all of the batch the same slopes", "its slopes differ along the batch");
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind, &in[0], err));
    if (kind == OCT_TFL_REAL && slope->quant)
        return oct_tfl_cannot(w, err, NULL, "its slopes are quantized, and it is not");
    OCT_TRY(oct_tfl_read_constant(w, n->in[1], rank, wide, &order, -1, &in[1], err));
    if (order.d[0] == 0 && rank > 1) { /* without the batch, as the kernels want it */
        oct_tfl_tensor *t = &w->m->tensor[in[1]];
        t->rank = rank - 1;
        memmove(t->dims, t->dims + 1, (size_t)t->rank * sizeof *t->dims);
    }
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, NULL, &out, err));
    return oct_tfl_add(w, OCT_TFL_PRELU, in, 2, &out, 1, NULL, err);
}

/* Along the last axis alone: the order of axes is changed where another one is meant. */
oct_status oct_tfl_write_softmax(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_code code = strcmp(n->op, "Softmax") == 0 ? OCT_TFL_SOFTMAX : OCT_TFL_LOG_SOFTMAX;
    const oct_tfl_kind kind = oct_tfl_runs_whole(w, 0, 1) ? OCT_TFL_OWN : OCT_TFL_REAL;
    const int rank = w->g->value[n->in[0]].shape.rank;
    oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    oct_tfl_operator *op;
    int in, out;
    const int at = oct_tfl_axis(&order, rank, oct_node_int(n, "axis", -1));
    const int8_t axis = order.d[at];
    for (int i = at; i + 1 < rank; i++)
        order.d[i] = order.d[i + 1];
    if (rank > 0)
        order.d[rank - 1] = axis;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, kind == OCT_TFL_OWN ? fixed(w, code) : NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, code, &in, 1, &out, 1, &op, err));
    if (code == OCT_TFL_SOFTMAX)
        oct_tfl_set_real(op, OCT_TFL_SOFTMAX_BETA, 1);
    return OCT_OK;
}
