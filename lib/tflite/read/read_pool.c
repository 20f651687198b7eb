/* Pools, and reductions over axes. */
#include "tflite/read/read_operators.h"
#include "tflite/read/read_window.h"

#include <string.h>

static oct_status read_view(oct_tfl_reader *r, oct_tfl_view *v, oct_err *err)
{
    const oct_tfl_operator *op = r->op;
    OCT_TRY(oct_tfl_need(r, 0, 4, err));
    if (oct_tfl_in(r, 0)->rank != 4)
        return oct_tfl_unread(r, err, NULL, "its operand has %d axes", oct_tfl_in(r, 0)->rank);
    *v = (oct_tfl_view){ { oct_tfl_option(op, OCT_TFL_POOL_FILTER_H, 0), oct_tfl_option(op, OCT_TFL_POOL_FILTER_W, 0) },
                         { oct_tfl_option(op, OCT_TFL_POOL_STRIDE_H, 0), oct_tfl_option(op, OCT_TFL_POOL_STRIDE_W, 0) },
                         { 1, 1 } };
    return oct_tfl_view_pad(r, 0, (oct_tfl_padding)oct_tfl_option(op, OCT_TFL_POOL_PADDING, 0), v, err);
}

static oct_status pool(oct_tfl_reader *r, const char *onnx, const oct_tfl_view *v, oct_err *err)
{
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int x, node, y;
    OCT_TRY(oct_tfl_take(r, 0, &first, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, onnx, &x, 1, &node, &y, err));
    if (v)
        OCT_TRY(oct_tfl_view_set(r, node, v, false, err));
    OCT_TRY(oct_tfl_activate(r, OCT_TFL_POOL_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &first, y, err);
}

oct_status oct_tfl_read_max_pool(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_view v;
    OCT_TRY(read_view(r, &v, err));
    return pool(r, "MaxPool", &v, err);
}

/* Averages leave pads out, in both. */
oct_status oct_tfl_read_average_pool(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_view v;
    OCT_TRY(read_view(r, &v, err));
    const oct_tfl_tensor *x = oct_tfl_in(r, 0);
    const bool whole = v.kernel[0] == x->dims[1] && v.kernel[1] == x->dims[2] && !v.before[0] && !v.after[0] &&
                       !v.before[1] && !v.after[1] && x->open < 1;
    return whole ? pool(r, "GlobalAveragePool", NULL, err) : pool(r, "AveragePool", &v, err);
}

/* ---- reductions ---- */

static const char *reduction(oct_tfl_code code)
{
    switch (code) {
    case OCT_TFL_MEAN: return "ReduceMean";
    case OCT_TFL_SUM: return "ReduceSum";
    case OCT_TFL_REDUCE_MAX: return "ReduceMax";
    case OCT_TFL_REDUCE_MIN: return "ReduceMin";
    default: return "ReduceProd";
    }
}

/* The axes, as flags by axis of the tensor. */
static oct_status read_axes(oct_tfl_reader *r, bool gone[OCT_MAX_RANK], oct_err *err)
{
    const int rank = oct_tfl_in(r, 0)->rank;
    const int64_t *axis;
    int n;
    OCT_TRY(oct_tfl_take_ints(r, 1, &axis, &n, err));
    memset(gone, 0, OCT_MAX_RANK * sizeof *gone);
    for (int i = 0; i < n; i++) {
        const int64_t a = axis[i] < 0 ? axis[i] + rank : axis[i];
        if (a < 0 || a >= rank)
            return oct_tfl_unread(r, err, NULL, "it reduces axis %lld of %d", (long long)axis[i], rank);
        gone[a] = true;
    }
    return OCT_OK;
}

/* The order of what is left: the numbers of the axes that stay close ranks. */
static oct_tfl_order left_over(const oct_tfl_order *order, int rank, const bool *gone)
{
    oct_tfl_order o = oct_tfl_plain();
    int n = 0;
    for (int i = 0; i < rank; i++) {
        int before = 0;
        for (int a = 0; a < order->d[i]; a++)
            before += !gone[a];
        if (!gone[order->d[i]])
            o.d[n++] = (int8_t)before;
    }
    return o;
}

/* A mean over height and width is a pool, if they stay as axes of one element. */
static bool is_pool(const oct_tfl_reader *r, const bool *gone, bool keeps)
{
    return r->op->code == OCT_TFL_MEAN && oct_tfl_in(r, 0)->rank == 4 && keeps && !gone[0] && gone[1] && gone[2] &&
           !gone[3];
}

oct_status oct_tfl_read_reduce(oct_tfl_reader *r, oct_err *err)
{
    const bool keeps = oct_tfl_option(r->op, OCT_TFL_REDUCE_KEEP_DIMS, 0) != 0;
    const char *onnx = reduction(r->op->code);
    bool gone[OCT_MAX_RANK];
    int64_t axes[OCT_MAX_RANK];
    int in[2], node, y, n = 0;
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(read_axes(r, gone, err));
    if (is_pool(r, gone, keeps)) {
        const oct_tfl_order first = oct_tfl_channels_first(4);
        OCT_TRY(oct_tfl_take(r, 0, &first, &in[0], err));
        OCT_TRY(oct_tfl_node(r, 0, "GlobalAveragePool", in, 1, &node, &y, err));
        return oct_tfl_give(r, 0, &first, y, err);
    }
    const oct_tfl_order order = oct_tfl_shown_order(r, 0);
    const oct_tfl_order left = keeps ? order : left_over(&order, rank, gone);
    for (int i = 0; i < rank; i++)
        if (gone[order.d[i]])
            axes[n++] = i;
    const bool operand = oct_graph_opset(r->g, "") >= 18 || r->op->code == OCT_TFL_SUM;
    OCT_TRY(oct_tfl_take(r, 0, &order, &in[0], err));
    if (operand && n)
        OCT_TRY(oct_tfl_const_ints(r, "axes", axes, n, &in[1], err));
    if (!n) { /* ONNX would reduce all of them */
        OCT_TRY(oct_tfl_node(r, 0, "Identity", in, 1, &node, &y, err));
        return oct_tfl_give(r, 0, &left, y, err);
    }
    OCT_TRY(oct_tfl_node(r, 0, onnx, in, operand ? 2 : 1, &node, &y, err));
    if (!operand)
        OCT_TRY(oct_node_set_ints(r->g, node, "axes", axes, n, err));
    OCT_TRY(oct_node_set_int(r->g, node, "keepdims", keeps, err));
    return oct_tfl_give(r, 0, &left, y, err);
}

oct_status oct_tfl_read_arg(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const int64_t *axis;
    int x, node, y, n;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    OCT_TRY(oct_tfl_take_ints(r, 1, &axis, &n, err));
    if (n != 1)
        return oct_tfl_unread(r, err, NULL, "it has %d axes", n);
    OCT_TRY(oct_tfl_take(r, 0, &plain, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, r->op->code == OCT_TFL_ARG_MAX ? "ArgMax" : "ArgMin", &x, 1, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "axis", axis[0], err));
    OCT_TRY(oct_node_set_int(r->g, node, "keepdims", 0, err));
    if (oct_tfl_out(r, 0)->type == OCT_TFL_INT32) {
        x = y;
        OCT_TRY(oct_tfl_node(r, 0, "Cast", &x, 1, &node, &y, err));
        OCT_TRY(oct_node_set_int(r->g, node, "to", OCT_S32, err));
    }
    return oct_tfl_give(r, 0, &plain, y, err);
}
