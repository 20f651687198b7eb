/* UNIDIRECTIONAL_SEQUENCE_LSTM as LSTM. Its states begin with zeros, as they do in a runtime that resets its
 * variables. */
#include "tflite/read/read_operators.h"

enum { GATES = 4, BIASES = 12, STATE = 18, OPERANDS = 24 };

/* Gates of ONNX, i, o, f, c, by their places among i, f, c, o. */
static const int of_tflite[GATES] = { 0, 3, 1, 2 };

static oct_status check(const oct_tfl_reader *r, oct_err *err)
{
    static const struct {
        int first, n;
        const char *name;
    } absent[] = { { 9, 3, "peepholes" }, { 16, 2, "a projection" }, { 20, 4, "normalized gates" } };
    if (r->op->n_in != OPERANDS)
        return oct_tfl_unread(r, err, NULL, "it has %d operands", r->op->n_in);
    for (size_t i = 0; i < OCT_COUNT(absent); i++)
        for (int k = 0; k < absent[i].n; k++)
            if (oct_tfl_in(r, absent[i].first + k))
                return oct_tfl_unread(r, err, NULL, "it has %s", absent[i].name);
    if (oct_tfl_option_real(r->op, OCT_TFL_LSTM_CELL_CLIP, 0) > 0 ||
        oct_tfl_option_real(r->op, OCT_TFL_LSTM_PROJECTION_CLIP, 0) > 0 ||
        oct_tfl_option(r->op, OCT_TFL_LSTM_DIAGONAL, 0) ||
        oct_tfl_option(r->op, OCT_TFL_LSTM_ACTIVATION, OCT_TFL_ACT_NONE) != OCT_TFL_ACT_TANH)
        return oct_tfl_unread(r, err, NULL, "it has limits, diagonal weights, or another activation than tanh");
    if (!oct_tfl_in(r, 1) || !oct_tfl_in(r, 5))
        return oct_tfl_unread(r, err, NULL, "it has no input gate");
    return OCT_OK;
}

/* The real numbers of a bias, [units]. */
static oct_status real_bias(const oct_tfl_reader *r, int k, int64_t units, float *to, oct_err *err)
{
    const oct_tfl_tensor *b = oct_tfl_in(r, BIASES + k), *x = oct_tfl_in(r, 0), *w = oct_tfl_in(r, 1 + k);
    const bool whole = b && b->type == OCT_TFL_INT32, scaled = b && b->quant && b->quant->n == 1;
    if (!b || !b->data || b->bytes != 4 * (size_t)units || (!whole && b->type != OCT_TFL_FLOAT32) ||
        (whole && !scaled && (!x->quant || !w->quant)))
        return oct_tfl_unread(r, err, NULL, "its bias %d is no constant of float32 or int32, of a number for each unit",
                              k);
    const float scale = !whole ? 1 : scaled ? b->quant->scale[0] : x->quant->scale[0] * w->quant->scale[0];
    for (int64_t i = 0; i < units; i++)
        to[i] = whole ? (float)((const int32_t *)b->data)[i] * scale : ((const float *)b->data)[i];
    return OCT_OK;
}

static oct_status biases(oct_tfl_reader *r, int64_t units, int *value, oct_err *err)
{
    const int64_t dims[] = { 1, 2 * GATES * units };
    float *b = oct_arena_calloc(r->arena, (size_t)dims[1] + 1, sizeof *b);
    if (!b)
        return oct_nomem(err);
    for (int k = 0; k < GATES; k++)
        OCT_TRY(real_bias(r, of_tflite[k], units, b + k * units, err));
    return oct_graph_new_const_f32(r->g, "bias", 2, dims, b, value, err);
}

oct_status oct_tfl_read_lstm(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain(), turned = { { 1, 0, 2, 3, 4, 5, 6, 7 } };
    const oct_tfl_order *order = oct_tfl_option(r->op, OCT_TFL_LSTM_TIME_MAJOR, 0) ? &plain : &turned;
    int in[4], of_x[GATES], of_state[GATES], node, y;
    OCT_TRY(oct_tfl_need(r, 0, 3, err));
    OCT_TRY(check(r, err));
    if (oct_tfl_in(r, 0)->rank != 3 || oct_tfl_out(r, 0)->rank != 3)
        return oct_tfl_unread(r, err, NULL, "it does not have three axes");
    for (int k = 0; k < GATES; k++) {
        of_x[k] = 1 + of_tflite[k];
        of_state[k] = 1 + GATES + of_tflite[k];
    }
    OCT_TRY(oct_tfl_take(r, 0, order, &in[0], err));
    OCT_TRY(oct_tfl_take_stacked(r, of_x, GATES, &in[1], err));
    OCT_TRY(oct_tfl_take_stacked(r, of_state, GATES, &in[2], err));
    const int64_t units = oct_tfl_in(r, 1)->dims[0];
    OCT_TRY(biases(r, units, &in[3], err));
    OCT_TRY(oct_tfl_node(r, 0, "LSTM", in, 4, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "hidden_size", units, err));
    OCT_TRY(oct_tfl_round(r, 0, &y, err)); /* before its axis is taken away, so that it is the layer's own */
    in[0] = y;
    OCT_TRY(oct_tfl_const_ints(r, "axes", (int64_t[]){ 1 }, 1, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "Squeeze", in, 2, &node, &y, err));
    return oct_tfl_give(r, 0, order, y, err);
}
