/* Pools and reductions. */
#include "tflite/tfl_operators.h"
#include "tflite/tfl_window.h"

#include <string.h>

static oct_status pool(oct_tfl_writer *w, const oct_node *n, oct_tfl_code code, oct_tfl_pads pads_are, oct_err *err)
{
    const oct_tfl_kind kind = oct_tfl_runs_whole(w, 0, 1) ? OCT_TFL_OWN : OCT_TFL_REAL;
    const oct_quant *like = kind == OCT_TFL_OWN ? w->g->value[n->in[0]].quant : NULL;
    oct_tfl_window win;
    oct_tfl_operator *op;
    int in, made, done;
    OCT_TRY(oct_tfl_window_read(w, n->in[0], NULL, &win, err));
    if (win.dilation[0] != 1 || win.dilation[1] != 1)
        return oct_tfl_cannot(w, err, NULL, "it has dilations");
    OCT_TRY(oct_tfl_window_input(w, n->in[0], &win, kind, &in, err));
    OCT_TRY(oct_tfl_window_pad(w, &win, pads_are, &in, err));
    OCT_TRY(oct_tfl_window_result(w, &win, kind, like, &made, &done, err));
    OCT_TRY(oct_tfl_add(w, code, &in, 1, &made, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_POOL_PADDING, win.padding);
    oct_tfl_set(op, OCT_TFL_POOL_STRIDE_W, (int32_t)win.stride[1]);
    oct_tfl_set(op, OCT_TFL_POOL_STRIDE_H, (int32_t)win.stride[0]);
    oct_tfl_set(op, OCT_TFL_POOL_FILTER_W, (int32_t)win.kernel[1]);
    oct_tfl_set(op, OCT_TFL_POOL_FILTER_H, (int32_t)win.kernel[0]);
    oct_tfl_set_byte(op, OCT_TFL_POOL_ACTIVATION, w->activation);
    return oct_tfl_window_done(w, made, done, err);
}

oct_status oct_tfl_write_max_pool(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    if (n->n_out > 1 && n->out[1] >= 0)
        return oct_tfl_cannot(w, err, NULL, "it has a second output, the indices");
    return pool(w, n, OCT_TFL_MAX_POOL_2D, OCT_TFL_PADS_LOWEST, err);
}

/* With count_include_pad, pads are zeros like others, as far as the node states them; those of ceil_mode never count.
 */
oct_status oct_tfl_write_average_pool(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const bool counts = oct_node_int(n, "count_include_pad", 0) != 0;
    if (counts && oct_node_int(n, "ceil_mode", 0))
        return oct_tfl_cannot(w, err, "drop ceil_mode", "it has both count_include_pad and ceil_mode");
    return pool(w, n, OCT_TFL_AVERAGE_POOL_2D, counts ? OCT_TFL_PADS_COUNTED : OCT_TFL_PADS_SKIPPED, err);
}

/* Reduces axes, as many as mask has bits. int8 where the operator has such a kernel; `keeps`: they stay, with size 1.
 */
static oct_status reduce(oct_tfl_writer *w, const oct_node *n, oct_tfl_code code, uint32_t mask, bool keeps,
                         oct_err *err)
{
    const bool whole = oct_tfl_runs_whole(w, 0, 1) && code != OCT_TFL_SUM;
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    const oct_quant *like = whole && code != OCT_TFL_MEAN ? w->g->value[n->in[0]].quant : NULL;
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    oct_tfl_order left = order;
    oct_tfl_operator *op;
    int64_t dims[OCT_MAX_RANK], axes[OCT_MAX_RANK];
    int rank, in[2], out, n_axes = 0, n_left = 0;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    for (int i = 0; i < rank; i++) {
        const int axis = order.d[i];
        if (mask >> axis & 1) {
            axes[n_axes++] = i;
            continue;
        }
        int renumbered = axis;
        for (int k = 0; k < axis; k++)
            renumbered -= (int)(mask >> k & 1);
        if (!keeps)
            left.d[n_left++] = (int8_t)renumbered;
    }
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind, &in[0], err));
    OCT_TRY(oct_tfl_numbers(w, "axes", 1, (int64_t[]){ n_axes }, axes, &in[1], err));
    OCT_TRY(oct_tfl_result(w, w->out, &left, kind, like, &out, err));
    OCT_TRY(oct_tfl_add(w, code, in, 2, &out, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_REDUCE_KEEP_DIMS, keeps);
    return OCT_OK;
}

oct_status oct_tfl_write_reduce(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_code code = strcmp(n->op, "ReduceMean") == 0  ? OCT_TFL_MEAN
                              : strcmp(n->op, "ReduceSum") == 0 ? OCT_TFL_SUM
                              : strcmp(n->op, "ReduceMax") == 0 ? OCT_TFL_REDUCE_MAX
                                                                : OCT_TFL_REDUCE_MIN;
    int64_t dims[OCT_MAX_RANK];
    int rank, count = 0;
    const int64_t *axes = oct_node_ints(n, "axes", &count);
    uint32_t mask = 0;
    if (!axes)
        OCT_TRY(oct_tfl_ints(w, oct_input_at(n, 1), &axes, &count, err));
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    if (!count && oct_node_int(n, "noop_with_empty_axes", 0))
        return oct_tfl_cannot(w, err, "remove it", "it reduces no axis");
    for (int i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return oct_tfl_cannot(w, err, NULL, "it has no axis %lld", (long long)axes[i]);
        mask |= 1u << axis;
    }
    if (!count)
        mask = (1u << rank) - 1;
    return reduce(w, n, code, mask, oct_node_int(n, "keepdims", 1) != 0, err);
}

/* Of all positions. */
static uint32_t spatial(int rank)
{
    return ((1u << rank) - 1) & ~3u;
}

oct_status oct_tfl_write_global_max_pool(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    return reduce(w, n, OCT_TFL_REDUCE_MAX, spatial(w->g->value[n->in[0]].shape.rank), true, err);
}

/* One window over all, where the scale stays: it is rounded once, as ONNX's; a mean where it changes. */
oct_status oct_tfl_write_global_average_pool(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_value *x = &w->g->value[n->in[0]];
    const oct_tfl_order last = oct_tfl_channels_last(4);
    const bool whole = oct_tfl_runs_whole(w, 0, 1);
    oct_tfl_operator *op;
    int64_t dims[OCT_MAX_RANK];
    int rank, in, out;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    if (rank != 4 || (whole && !oct_quant_same(x->quant, w->g->value[w->out].quant)))
        return reduce(w, n, OCT_TFL_MEAN, spatial(rank), true, err);
    OCT_TRY(oct_tfl_read(w, n->in[0], &last, whole ? OCT_TFL_OWN : OCT_TFL_REAL, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &last, whole ? OCT_TFL_OWN : OCT_TFL_REAL, NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_AVERAGE_POOL_2D, &in, 1, &out, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_POOL_PADDING, OCT_TFL_VALID);
    oct_tfl_set(op, OCT_TFL_POOL_STRIDE_W, 1);
    oct_tfl_set(op, OCT_TFL_POOL_STRIDE_H, 1);
    oct_tfl_set(op, OCT_TFL_POOL_FILTER_W, (int32_t)dims[3]);
    oct_tfl_set(op, OCT_TFL_POOL_FILTER_H, (int32_t)dims[2]);
    return OCT_OK;
}
