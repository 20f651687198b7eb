/* Gemm and MatMul. A second factor that is constant becomes weights, [outputs, inputs]. */
#include "tflite/tfl_operators.h"
#include "tflite/tfl_weights.h"

/* FULLY_CONNECTED of the first input with weights, of which axis `channel` counts the outputs. */
static oct_status dense(oct_tfl_writer *w, const oct_node *n, int channel, int bias, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain(), turned = { { 1, 0 } };
    const oct_tfl_kind kind =
        oct_tfl_runs_whole(w, 0, 1) && oct_tfl_weights_fit(w, n->in[1], channel) ? OCT_TFL_OWN : OCT_TFL_REAL;
    oct_tfl_operator *op;
    oct_tfl_scaled scaled;
    int64_t dims[OCT_MAX_RANK];
    int rank, in[3], out;
    OCT_TRY(oct_tfl_dims(w, n->in[1], &rank, dims, err));
    if (rank != 2)
        return oct_tfl_cannot(w, err, NULL, "its weights have %d axes", rank);
    OCT_TRY(oct_tfl_read(w, n->in[0], &plain, kind, &in[0], err));
    OCT_TRY(oct_tfl_weights(w, n->in[1], 2, dims, channel ? &turned : &plain, channel, kind, &in[1], err));
    OCT_TRY(oct_tfl_bias(w, bias, dims[channel], n->in[0], n->in[1], kind, &in[2], err));
    OCT_TRY(oct_tfl_result(w, w->out, &plain, kind, NULL, &out, err));
    OCT_TRY(oct_tfl_scaled_begin(w, n->in[1], channel, kind, &in[2], &out, &scaled, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_FULLY_CONNECTED, in, 3, &out, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_DENSE_ACTIVATION, w->activation);
    if (w->m->tensor[in[0]].rank > 2) {
        oct_tfl_set_byte(op, OCT_TFL_DENSE_KEEP_DIMS, 1);
        op->version = op->version < 5 ? 5 : op->version;
    }
    return oct_tfl_scaled_end(w, out, &scaled, err);
}

oct_status oct_tfl_write_gemm(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    if (oct_node_int(n, "transA", 0) || oct_node_float(n, "alpha", 1) != 1 ||
        (n->n_in > 2 && oct_node_float(n, "beta", 1) != 1))
        return oct_tfl_cannot(w, err, "write it as Transpose, MatMul, Mul and Add", "it has transA, alpha or beta");
    return dense(w, n, oct_node_int(n, "transB", 0) ? 0 : 1, oct_input_at(n, 2), err);
}

/* The product of two tensors, matrix by matrix. */
static oct_status batch(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const bool whole = oct_tfl_runs_whole(w, 0, 2) && w->g->value[w->out].quant->dtype == OCT_S8;
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    int in[2], out;
    for (int i = 0; i < 2; i++)
        OCT_TRY(oct_tfl_read(w, n->in[i], &plain, kind, &in[i], err));
    OCT_TRY(oct_tfl_result(w, w->out, &plain, kind, NULL, &out, err));
    return oct_tfl_add(w, OCT_TFL_BATCH_MATMUL, in, 2, &out, 1, NULL, err);
}

oct_status oct_tfl_write_matmul(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_value *a = &w->g->value[n->in[0]], *b = &w->g->value[n->in[1]];
    if (a->shape.rank < 2 || b->shape.rank < 2)
        return oct_tfl_cannot(w, err, "give both factors two axes or more", "a factor is a vector");
    if (oct_value_is_constant(b) && b->shape.rank == 2 && !oct_value_is_constant(a))
        return dense(w, n, 1, -1, err);
    return batch(w, n, err);
}
