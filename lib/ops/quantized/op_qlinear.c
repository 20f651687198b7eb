/* The QLinear operators, by shape inference alone: they are read as the operators that they stand for
 * (forms/qlinear.c), so they need no run of their own. */
#include "ops/core/infer.h"
#include "ops/nn/window.h"

#include <string.h>

/* Element type of the output: that of its zero point (input zp), else of input x. */
static void type_from(const oct_infer *c, int zp, int x)
{
    oct_dtype t = oct_in_dtype(c, zp);
    oct_out_dtype(c, 0, t != OCT_UNDEFINED ? t : oct_in_dtype(c, x));
}

/* With channels last a pass puts Transposes around the node (passes/rewrites/pass_nhwc.c), which needs no more than the
 * rank. */
static bool is_last(const oct_infer *c)
{
    return oct_node_int(oct_in_node(c), "channels_last", 0) != 0;
}

static oct_status last_infer(const oct_infer *c, oct_dim channels, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK];
    if (x.rank < 3 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    for (int i = 0; i < x.rank; i++)
        d[i] = i == 0 ? x.d[0] : (oct_dim){ -1, NULL };
    d[x.rank - 1] = channels;
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status conv_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 3);
    type_from(c, 7, 0);
    if (x.rank < 0 || w.rank < 3)
        return OCT_OK;
    if (is_last(c))
        return last_infer(c, w.d[0], err);
    oct_window win;
    OCT_TRY(oct_window_of_weights(oct_in_node(c), w, &win, err));
    return oct_window_infer(c, &win, w.d[0], 0, err);
}

static oct_status product_shape(const oct_infer *c, oct_shape a, oct_shape b, oct_err *err)
{
    if (a.rank < 2 || b.rank < 2)
        return OCT_OK;
    oct_dim d[OCT_MAX_RANK + 2];
    int rank;
    oct_shape la = { a.rank - 2, a.d }, lb = { b.rank - 2, b.d };
    OCT_TRY(oct_broadcast_dims(&la, &lb, &rank, d, err));
    if (rank < 0)
        return OCT_OK;
    d[rank++] = a.d[a.rank - 2];
    d[rank++] = b.d[b.rank - 1];
    return oct_out_shape(c, 0, rank, d, err);
}

static oct_status matmul_infer(const oct_infer *c, oct_err *err)
{
    type_from(c, 7, 0);
    return product_shape(c, oct_in_shape(c, 0), oct_in_shape(c, 3), err);
}

static oct_status gemm_infer(const oct_infer *c, oct_err *err)
{
    oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 3);
    const oct_node *n = oct_in_node(c);
    if (oct_input_at(n, 7) >= 0)
        type_from(c, 8, 0);
    else
        oct_out_dtype(c, 0, OCT_F32);
    if (a.rank != 2 || b.rank != 2)
        return OCT_OK;
    oct_dim d[2] = { a.d[oct_node_int(n, "transA", 0) ? 1 : 0], b.d[oct_node_int(n, "transB", 0) ? 0 : 1] };
    return oct_out_shape(c, 0, 2, d, err);
}

static oct_status binary_infer(const oct_infer *c, oct_err *err)
{
    oct_shape a = oct_in_shape(c, 0), b = oct_in_shape(c, 3);
    oct_dim d[OCT_MAX_RANK];
    int rank;
    type_from(c, 7, 0);
    OCT_TRY(oct_broadcast_dims(&a, &b, &rank, d, err));
    return oct_out_shape(c, 0, rank, d, err);
}

static oct_status pool_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 3)
        return OCT_OK;
    if (is_last(c))
        return last_infer(c, x.d[x.rank - 1], err);
    oct_window w;
    OCT_TRY(oct_window_read(oct_in_node(c), x.rank - 2, NULL, &w, err));
    return oct_window_infer(c, &w, x.d[1], 0, err);
}

static oct_status global_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 2 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    if (is_last(c))
        return last_infer(c, x.d[x.rank - 1], err);
    oct_dim d[OCT_MAX_RANK] = { x.d[0], x.d[1] };
    for (int i = 2; i < x.rank; i++)
        d[i] = oct_dim_of(1);
    return oct_out_shape(c, 0, x.rank, d, err);
}

/* Channels last always. */
static oct_status max_pool_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    return x.rank < 3 ? OCT_OK : last_infer(c, x.d[x.rank - 1], err);
}

/* y_scale, y_zero_point, then (x, scale, zero point) of every input. */
static oct_status concat_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 2);
    type_from(c, 1, 2);
    int axis;
    if (x.rank < 1 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", 1), x.rank, &axis, err));
    oct_dim d[OCT_MAX_RANK];
    memcpy(d, x.d, (size_t)x.rank * sizeof *d);
    for (int i = 5; i < oct_in_node(c)->n_in; i += 3) {
        oct_shape s = oct_in_shape(c, i);
        d[axis] = s.rank == x.rank ? oct_dim_add(d[axis], s.d[axis]) : (oct_dim){ -1, NULL };
    }
    return oct_out_shape(c, 0, x.rank, d, err);
}

#define MS "com.microsoft"
#define QLINEAR(var, name, dom, first, least, most, fn) \
    const oct_op var = { OCT_SCHEMA(name, dom, first, least, most, 1, 1), .infer = fn, .f16 = -1, .bf16 = -1 }

QLINEAR(oct_op_qlinear_conv, "QLinearConv", "", 10, 8, 9, conv_infer);
QLINEAR(oct_op_qlinear_conv_ms, "QLinearConv", MS, 1, 8, 9, conv_infer);
QLINEAR(oct_op_qlinear_matmul, "QLinearMatMul", "", 10, 8, 8, matmul_infer);
QLINEAR(oct_op_qgemm, "QGemm", MS, 1, 6, 9, gemm_infer);
QLINEAR(oct_op_qlinear_add, "QLinearAdd", MS, 1, 7, 8, binary_infer);
QLINEAR(oct_op_qlinear_mul, "QLinearMul", MS, 1, 7, 8, binary_infer);
QLINEAR(oct_op_qlinear_leaky_relu, "QLinearLeakyRelu", MS, 1, 4, 5, oct_infer_like);
QLINEAR(oct_op_qlinear_sigmoid, "QLinearSigmoid", MS, 1, 4, 5, oct_infer_like);
QLINEAR(oct_op_qlinear_softmax, "QLinearSoftmax", MS, 1, 5, 5, oct_infer_like);
QLINEAR(oct_op_qlinear_average_pool, "QLinearAveragePool", MS, 1, 4, 5, pool_infer);
QLINEAR(oct_op_qlinear_global_average_pool, "QLinearGlobalAveragePool", MS, 1, 5, 5, global_infer);
QLINEAR(oct_op_qlinear_concat, "QLinearConcat", MS, 1, 5, -1, concat_infer);
QLINEAR(oct_op_nhwc_max_pool, "NhwcMaxPool", MS, 1, 1, 1, max_pool_infer);
