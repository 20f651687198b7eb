/* Convolutions. Their weights are constants, and get ONNX's order of axes here. */
#include "tflite/read/read_operators.h"
#include "tflite/read/read_weights.h"
#include "tflite/read/read_window.h"

/* What a convolution's operands must be, whatever the file says of them. */
static oct_status check(const oct_tfl_reader *r, int x, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, x, 4, err));
    OCT_TRY(oct_tfl_need(r, 1, 4, err));
    const oct_tfl_tensor *in = oct_tfl_in(r, x), *w = oct_tfl_in(r, 1);
    if (in->rank != 4 || w->rank != 4)
        return oct_tfl_unread(r, err, NULL, "its operands have %d and %d axes", in->rank, w->rank);
    return OCT_OK;
}

static oct_status finish(oct_tfl_reader *r, int *in, const oct_tfl_view *v, int64_t group, int act, oct_err *err)
{
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int node, y;
    OCT_TRY(oct_tfl_take_bias(r, 2, 0, 1, &in[2], err));
    OCT_TRY(oct_tfl_node(r, 0, "Conv", in, in[2] < 0 ? 2 : 3, &node, &y, err));
    OCT_TRY(oct_tfl_view_set(r, node, v, true, err));
    OCT_TRY(oct_node_set_int(r->g, node, "group", group, err));
    OCT_TRY(oct_tfl_activate(r, act, &y, err));
    return oct_tfl_give(r, 0, &first, y, err);
}

oct_status oct_tfl_read_conv(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_operator *op = r->op;
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int in[3];
    OCT_TRY(check(r, 0, err));
    const oct_tfl_tensor *x = oct_tfl_in(r, 0), *w = oct_tfl_in(r, 1);
    const int64_t dims[] = { w->dims[0], w->dims[1], w->dims[2], w->dims[3] };
    if (!dims[3] || x->dims[3] % dims[3])
        return oct_tfl_unread(r, err, NULL, "it has %d channels, and weights for %d", x->dims[3], w->dims[3]);
    oct_tfl_view v = { { dims[1], dims[2] },
                       { oct_tfl_option(op, OCT_TFL_CONV_STRIDE_H, 0), oct_tfl_option(op, OCT_TFL_CONV_STRIDE_W, 0) },
                       { oct_tfl_option(op, OCT_TFL_CONV_DILATION_H, 1),
                         oct_tfl_option(op, OCT_TFL_CONV_DILATION_W, 1) } };
    OCT_TRY(oct_tfl_view_pad(r, 0, (oct_tfl_padding)oct_tfl_option(op, OCT_TFL_CONV_PADDING, 0), &v, err));
    OCT_TRY(oct_tfl_take(r, 0, &first, &in[0], err));
    OCT_TRY(oct_tfl_take_constant(r, 1, 4, dims, (int[]){ 0, 3, 1, 2 }, NULL, &in[1], err));
    return finish(r, in, &v, x->dims[3] / dims[3], OCT_TFL_CONV_ACTIVATION, err);
}

oct_status oct_tfl_read_depthwise(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_operator *op = r->op;
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int in[3];
    OCT_TRY(check(r, 0, err));
    const oct_tfl_tensor *x = oct_tfl_in(r, 0), *w = oct_tfl_in(r, 1);
    const int64_t dims[] = { w->dims[0], w->dims[1], w->dims[2], w->dims[3] };
    if (dims[0] != 1 || !x->dims[3] || dims[3] % x->dims[3])
        return oct_tfl_unread(r, err, NULL, "it has %d channels, and weights for %d", x->dims[3], w->dims[3]);
    oct_tfl_view v = {
        { dims[1], dims[2] },
        { oct_tfl_option(op, OCT_TFL_DEPTHWISE_STRIDE_H, 0), oct_tfl_option(op, OCT_TFL_DEPTHWISE_STRIDE_W, 0) },
        { oct_tfl_option(op, OCT_TFL_DEPTHWISE_DILATION_H, 1), oct_tfl_option(op, OCT_TFL_DEPTHWISE_DILATION_W, 1) }
    };
    OCT_TRY(oct_tfl_view_pad(r, 0, (oct_tfl_padding)oct_tfl_option(op, OCT_TFL_DEPTHWISE_PADDING, 0), &v, err));
    OCT_TRY(oct_tfl_take(r, 0, &first, &in[0], err));
    OCT_TRY(oct_tfl_take_constant(r, 1, 4, dims, (int[]){ 3, 0, 1, 2 }, NULL, &in[1], err));
    return finish(r, in, &v, x->dims[3], OCT_TFL_DEPTHWISE_ACTIVATION, err);
}

/* The pads that make a transposed convolution give the result that the file states, and what that has beyond. */
static oct_status pad_transposed(const oct_tfl_reader *r, oct_tfl_view *v, int64_t beyond[2], oct_err *err)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, 2), *y = oct_tfl_out(r, 0);
    for (int i = 0; i < 2; i++) {
        if (v->kernel[i] < 1 || v->stride[i] < 1 || y->rank != 4 || x->open > 0)
            return oct_tfl_unread(r, err, "export the model with fixed heights and widths", "its shapes are not known");
        const int64_t full = ((int64_t)x->dims[1 + i] - 1) * v->stride[i] + v->kernel[i], out = y->dims[1 + i];
        const int64_t cut = full > out ? full - out : 0;
        v->before[i] = oct_tfl_option(r->op, OCT_TFL_TRANSPOSE_CONV_PADDING, 0) == OCT_TFL_SAME ? cut / 2 : 0;
        v->after[i] = cut - v->before[i];
        beyond[i] = out > full ? out - full : 0;
        if (beyond[i] >= v->stride[i] && beyond[i])
            return oct_tfl_unread(r, err, NULL, "its result is larger than its input makes it");
    }
    return OCT_OK;
}

oct_status oct_tfl_read_transpose_conv(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_operator *op = r->op;
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int64_t beyond[2];
    int in[3], node, y;
    OCT_TRY(check(r, 2, err));
    const oct_tfl_tensor *w = oct_tfl_in(r, 1);
    const int64_t dims[] = { w->dims[0], w->dims[1], w->dims[2], w->dims[3] };
    oct_tfl_view v = { { dims[1], dims[2] },
                       { oct_tfl_option(op, OCT_TFL_TRANSPOSE_CONV_STRIDE_H, 0),
                         oct_tfl_option(op, OCT_TFL_TRANSPOSE_CONV_STRIDE_W, 0) },
                       { 1, 1 } };
    OCT_TRY(pad_transposed(r, &v, beyond, err));
    OCT_TRY(oct_tfl_take(r, 2, &first, &in[0], err));
    OCT_TRY(oct_tfl_take_constant(r, 1, 4, dims, (int[]){ 3, 0, 1, 2 }, NULL, &in[1], err));
    OCT_TRY(oct_tfl_take_bias(r, 3, 2, 1, &in[2], err));
    OCT_TRY(oct_tfl_node(r, 0, "ConvTranspose", in, in[2] < 0 ? 2 : 3, &node, &y, err));
    OCT_TRY(oct_tfl_view_set(r, node, &v, true, err));
    if (beyond[0] || beyond[1])
        OCT_TRY(oct_node_set_ints(r->g, node, "output_padding", beyond, 2, err));
    OCT_TRY(oct_tfl_activate(r, OCT_TFL_TRANSPOSE_CONV_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &first, y, err);
}
