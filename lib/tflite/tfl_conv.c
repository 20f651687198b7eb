/* Conv and ConvTranspose. Weights have the input's channels last: [out, height, width, in]; those of a depthwise
 * convolution [1, height, width, out]. */
#include "tflite/tfl_operators.h"
#include "tflite/tfl_weights.h"
#include "tflite/tfl_window.h"

#include <string.h>

static void set_conv(oct_tfl_operator *op, const oct_tfl_writer *w, const oct_tfl_window *win)
{
    oct_tfl_set_byte(op, OCT_TFL_CONV_PADDING, win->padding);
    oct_tfl_set(op, OCT_TFL_CONV_STRIDE_W, (int32_t)win->stride[1]);
    oct_tfl_set(op, OCT_TFL_CONV_STRIDE_H, (int32_t)win->stride[0]);
    oct_tfl_set_byte(op, OCT_TFL_CONV_ACTIVATION, w->activation);
    oct_tfl_set(op, OCT_TFL_CONV_DILATION_W, (int32_t)win->dilation[1]);
    oct_tfl_set(op, OCT_TFL_CONV_DILATION_H, (int32_t)win->dilation[0]);
}

static void set_depthwise(oct_tfl_operator *op, const oct_tfl_writer *w, const oct_tfl_window *win, int64_t multiplier)
{
    oct_tfl_set_byte(op, OCT_TFL_DEPTHWISE_PADDING, win->padding);
    oct_tfl_set(op, OCT_TFL_DEPTHWISE_STRIDE_W, (int32_t)win->stride[1]);
    oct_tfl_set(op, OCT_TFL_DEPTHWISE_STRIDE_H, (int32_t)win->stride[0]);
    oct_tfl_set(op, OCT_TFL_DEPTHWISE_MULTIPLIER, (int32_t)multiplier);
    oct_tfl_set_byte(op, OCT_TFL_DEPTHWISE_ACTIVATION, w->activation);
    oct_tfl_set(op, OCT_TFL_DEPTHWISE_DILATION_W, (int32_t)win->dilation[1]);
    oct_tfl_set(op, OCT_TFL_DEPTHWISE_DILATION_H, (int32_t)win->dilation[0]);
    if (op->version == 1 && (win->dilation[0] > 1 || win->dilation[1] > 1))
        op->version = 2;
}

/* The dimensions of weights, with a height where they have only a width. */
static oct_status read_kernel(const oct_tfl_writer *w, int value, int64_t dims[4], oct_err *err)
{
    int rank;
    int64_t d[OCT_MAX_RANK];
    OCT_TRY(oct_tfl_dims(w, value, &rank, d, err));
    if (rank < 3 || rank > 4 || rank != w->g->value[w->g->node[w->node].in[0]].shape.rank)
        return oct_tfl_cannot(w, err, NULL, "its window has %d axes, and not one or two", rank - 2);
    dims[0] = d[0];
    dims[1] = d[1];
    dims[2] = rank == 3 ? 1 : d[2];
    dims[3] = d[rank - 1];
    return OCT_OK;
}

oct_status oct_tfl_write_conv(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const oct_tfl_order ohwi = { { 0, 2, 3, 1 } }, depth = { { 1, 2, 3, 0 } };
    const int64_t groups = oct_node_int(n, "group", 1);
    const bool whole = oct_tfl_runs_whole(w, 0, 1) && oct_tfl_weights_fit(w, n->in[1], 0);
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    oct_tfl_window win;
    oct_tfl_operator *op;
    oct_tfl_scaled scaled;
    int64_t dims[4];
    int in[3], made, done, product;
    OCT_TRY(read_kernel(w, n->in[1], dims, err));
    OCT_TRY(oct_tfl_window_read(w, n->in[0], w->g->value[n->in[1]].shape.rank == 3 ? &dims[3] : &dims[2], &win, err));
    const bool depthwise = groups > 1 && groups == win.channels;
    if (win.kernel[0] != dims[2] || win.kernel[1] != dims[3])
        return oct_tfl_cannot(w, err, NULL, "its kernel_shape is not that of its weights");
    OCT_TRY(oct_tfl_window_input(w, n->in[0], &win, kind, &in[0], err));
    OCT_TRY(oct_tfl_window_pad(w, &win, OCT_TFL_PADS_ZERO, &in[0], err));
    OCT_TRY(oct_tfl_weights(w, n->in[1], 4, dims, depthwise ? &depth : &ohwi, 0, kind, &in[1], err));
    OCT_TRY(oct_tfl_bias(w, oct_input_at(n, 2), dims[0], n->in[0], n->in[1], kind, &in[2], err));
    OCT_TRY(oct_tfl_window_result(w, &win, kind, NULL, &made, &done, err));
    product = made;
    OCT_TRY(oct_tfl_scaled_begin(w, n->in[1], 0, kind, &in[2], &product, &scaled, err));
    OCT_TRY(oct_tfl_add(w, depthwise ? OCT_TFL_DEPTHWISE_CONV_2D : OCT_TFL_CONV_2D, in, 3, &product, 1, &op, err));
    if (depthwise)
        set_depthwise(op, w, &win, dims[0] / groups);
    else
        set_conv(op, w, &win);
    if (!depthwise && groups > 1)
        op->version = 6;
    OCT_TRY(oct_tfl_scaled_end(w, product, &scaled, err));
    return oct_tfl_window_done(w, made, done, err);
}

/* Whether "same" makes this output: .tflite then takes away (in - 1) * stride + kernel - out, the smaller half in
 * front. */
static bool is_same(const oct_tfl_window *win, int i)
{
    const int64_t total = (win->in[i] - 1) * win->stride[i] + win->kernel[i] - win->out[i];
    return total >= 0 && (win->out[i] + win->stride[i] - 1) / win->stride[i] == win->in[i] &&
           win->before[i] == total / 2;
}

/* Cuts the output out of one that was made without pads. */
static oct_status cut(oct_tfl_writer *w, const oct_tfl_window *win, int from, int to, oct_err *err)
{
    const oct_tfl_tensor t = w->m->tensor[to];
    const int64_t begin[4] = { 0, win->before[0], win->before[1], 0 }, size[4] = { -1, t.dims[1], t.dims[2], -1 };
    int in[3] = { from, 0, 0 };
    OCT_TRY(oct_tfl_numbers(w, "begin", 1, (int64_t[]){ 4 }, begin, &in[1], err));
    OCT_TRY(oct_tfl_numbers(w, "size", 1, (int64_t[]){ 4 }, size, &in[2], err));
    return oct_tfl_add(w, OCT_TFL_SLICE, in, 3, &to, 1, NULL, err);
}

oct_status oct_tfl_write_conv_transpose(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    static const oct_tfl_order ohwi = { { 1, 2, 3, 0 } };
    const bool whole = oct_tfl_runs_whole(w, 0, 1) && oct_tfl_weights_fit(w, n->in[1], 1);
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    oct_tfl_window win;
    oct_tfl_operator *op;
    oct_tfl_scaled scaled;
    int64_t dims[4], full[4];
    int in[4], made, done, out, product;
    OCT_TRY(read_kernel(w, n->in[1], dims, err));
    OCT_TRY(oct_tfl_window_read(w, n->in[0], w->g->value[n->in[1]].shape.rank == 3 ? &dims[3] : &dims[2], &win, err));
    if (oct_node_int(n, "group", 1) != 1 || win.dilation[0] != 1 || win.dilation[1] != 1)
        return oct_tfl_cannot(w, err, "split its groups before the conversion", "it has groups or dilations");
    if (oct_node_attr(n, "output_shape") || strncmp(oct_node_str(n, "auto_pad", "NOTSET"), "SAME", 4) == 0)
        return oct_tfl_cannot(w, err, "give it pads and output_padding in numbers",
                              "its pads follow from output_shape or auto_pad");
    OCT_TRY(oct_tfl_window_input(w, n->in[0], &win, kind, &in[2], err));
    OCT_TRY(oct_tfl_weights(w, n->in[1], 4, dims, &ohwi, 1, kind, &in[1], err));
    OCT_TRY(oct_tfl_bias(w, oct_input_at(n, 2), dims[1], n->in[0], n->in[1], kind, &in[3], err));
    OCT_TRY(oct_tfl_window_result(w, &win, kind, NULL, &out, &done, err));
    const oct_tfl_tensor t = w->m->tensor[out];
    for (int i = 0; i < 2; i++) {
        const int64_t least = (win.in[i] - 1) * win.stride[i] + win.kernel[i], reach = win.before[i] + win.out[i];
        full[1 + i] = reach > least ? reach : least;
        if (full[1 + i] >= least + win.stride[i])
            return oct_tfl_cannot(w, err, NULL, "its output_padding is not below its stride");
    }
    full[0] = t.dims[0];
    full[3] = t.dims[3];
    win.padding = is_same(&win, 0) && is_same(&win, 1) ? OCT_TFL_SAME : OCT_TFL_VALID;
    const bool whole_output = full[1] == t.dims[1] && full[2] == t.dims[2] && !win.before[0] && !win.before[1];
    made = out;
    if (whole_output)
        win.padding = OCT_TFL_VALID;
    else if (win.padding == OCT_TFL_VALID)
        OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_whole", t.name), out, 4, full, t.open, &made, err));
    const oct_tfl_tensor *m = &w->m->tensor[made];
    OCT_TRY(oct_tfl_numbers(w, "shape", 1, (int64_t[]){ 4 },
                            (int64_t[]){ m->dims[0], m->dims[1], m->dims[2], m->dims[3] }, &in[0], err));
    product = made;
    OCT_TRY(oct_tfl_scaled_begin(w, n->in[1], 1, kind, &in[3], &product, &scaled, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_TRANSPOSE_CONV, in, 4, &product, 1, &op, err));
    op->version = 3;
    oct_tfl_set_byte(op, OCT_TFL_TRANSPOSE_CONV_PADDING, win.padding);
    oct_tfl_set(op, OCT_TFL_TRANSPOSE_CONV_STRIDE_W, (int32_t)win.stride[1]);
    oct_tfl_set(op, OCT_TFL_TRANSPOSE_CONV_STRIDE_H, (int32_t)win.stride[0]);
    OCT_TRY(oct_tfl_scaled_end(w, product, &scaled, err));
    if (made != out)
        OCT_TRY(cut(w, &win, made, out, err));
    return oct_tfl_window_done(w, out, done, err);
}
