/* Products of matrices. */
#include "tflite/read/read_operators.h"
#include "tflite/read/read_weights.h"

/* The input as rows of `width` elements. */
static oct_status rows(oct_tfl_reader *r, int64_t width, int *value, oct_err *err)
{
    const int64_t shape[] = { -1, width };
    int in[2], node;
    OCT_TRY(oct_tfl_take_elements(r, 0, &in[0], err));
    OCT_TRY(oct_tfl_const_ints(r, "shape", shape, 2, &in[1], err));
    return oct_tfl_node(r, 0, "Reshape", in, 2, &node, value, err);
}

/* Whether a bias adds nothing, as that of a product has to. */
static bool is_nothing(const oct_tfl_tensor *b)
{
    const uint8_t *p = b ? b->data : NULL;
    for (size_t i = 0; p && i < b->bytes; i++)
        if (p[i])
            return false;
    return p != NULL;
}

/* x [..., inputs] times weights [outputs, inputs], as MatMul and Add. */
static oct_status wide(oct_tfl_reader *r, int *y, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain(), turned = { { 1, 0 } };
    int in[2], node;
    OCT_TRY(oct_tfl_take(r, 0, &plain, &in[0], err));
    OCT_TRY(oct_tfl_take(r, 1, &turned, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "MatMul", in, 2, &node, y, err));
    in[0] = *y;
    if (is_nothing(oct_tfl_in(r, 2)))
        return OCT_OK;
    OCT_TRY(oct_tfl_take_bias(r, 2, 0, 1, &in[1], err));
    return in[1] < 0 ? OCT_OK : oct_tfl_node(r, 0, "Add", in, 2, &node, y, err);
}

static oct_status gemm(oct_tfl_reader *r, int *y, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int in[3], node;
    if (oct_tfl_in(r, 0)->rank == 2)
        OCT_TRY(oct_tfl_take(r, 0, &plain, &in[0], err));
    else
        OCT_TRY(rows(r, oct_tfl_in(r, 1)->dims[1], &in[0], err));
    OCT_TRY(oct_tfl_take(r, 1, &plain, &in[1], err));
    OCT_TRY(oct_tfl_take_bias(r, 2, 0, 1, &in[2], err));
    OCT_TRY(oct_tfl_node(r, 0, "Gemm", in, in[2] < 0 ? 2 : 3, &node, y, err));
    return oct_node_set_int(r->g, node, "transB", 1, err);
}

oct_status oct_tfl_read_dense(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int y;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    OCT_TRY(oct_tfl_need(r, 1, 2, err));
    if (oct_tfl_in(r, 1)->rank != 2)
        return oct_tfl_unread(r, err, NULL, "its weights have %d axes", oct_tfl_in(r, 1)->rank);
    if (oct_tfl_option(r->op, OCT_TFL_DENSE_FORMAT, 0))
        return oct_tfl_unread(r, err, NULL, "its weights are shuffled");
    const bool keeps = oct_tfl_option(r->op, OCT_TFL_DENSE_KEEP_DIMS, 0) && oct_tfl_in(r, 0)->rank > 2;
    OCT_TRY(keeps ? wide(r, &y, err) : gemm(r, &y, err));
    OCT_TRY(oct_tfl_activate(r, OCT_TFL_DENSE_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &plain, y, err);
}

oct_status oct_tfl_read_matmul(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int in[2], node, y;
    for (int k = 0; k < 2; k++) {
        OCT_TRY(oct_tfl_need(r, k, 2, err));
        const int rank = oct_tfl_in(r, k)->rank;
        oct_tfl_order order = plain;
        if (oct_tfl_option(r->op, k ? OCT_TFL_MATMUL_ADJ_Y : OCT_TFL_MATMUL_ADJ_X, 0)) {
            order.d[rank - 2] = (int8_t)(rank - 1);
            order.d[rank - 1] = (int8_t)(rank - 2);
        }
        OCT_TRY(oct_tfl_take(r, k, &order, &in[k], err));
    }
    OCT_TRY(oct_tfl_node(r, 0, "MatMul", in, 2, &node, &y, err));
    return oct_tfl_give(r, 0, &plain, y, err);
}
