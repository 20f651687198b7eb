/* Sliding windows: attributes and output sizes. */
#include "ops/nn/window.h"

#include <string.h>

oct_status oct_window_list(const oct_node *node, const char *name, int n, int64_t absent, int64_t least, int64_t *dst,
                           oct_err *err)
{
    int count;
    const int64_t *v = oct_node_ints(node, name, &count);
    for (int i = 0; i < n; i++)
        dst[i] = absent;
    if (!v)
        return OCT_OK;
    if (count != n)
        return oct_fail(err, OCT_EMALFORMED, "attribute '%s' has %d values, expected %d", name, count, n);
    for (int i = 0; i < n; i++) {
        if (v[i] < least || v[i] > INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "attribute '%s' holds %lld", name, (long long)v[i]);
        dst[i] = v[i];
    }
    return OCT_OK;
}

oct_status oct_window_read(const oct_node *node, int n, const int64_t *kernel, oct_window *w, oct_err *err)
{
    *w = (oct_window){ .n = n };
    if (n < 1 || n > OCT_SPATIAL_MAX)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d spatial dimensions; 1 to %d are supported", n, OCT_SPATIAL_MAX);
    int count;
    const int64_t *given = oct_node_ints(node, "kernel_shape", &count);
    if (!given && !kernel)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'kernel_shape' is missing");
    OCT_TRY(oct_window_list(node, "kernel_shape", n, 1, 1, w->kernel, err));
    for (int i = 0; kernel && i < n; i++) {
        if (given && kernel[i] >= 0 && w->kernel[i] != kernel[i])
            return oct_fail(err, OCT_EMALFORMED, "attribute 'kernel_shape' says %lld, the weights have %lld",
                            (long long)w->kernel[i], (long long)kernel[i]);
        if (kernel[i] > INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "a window of %lld", (long long)kernel[i]);
        w->kernel[i] = kernel[i];
    }
    OCT_TRY(oct_window_list(node, "strides", n, 1, 1, w->stride, err));
    OCT_TRY(oct_window_list(node, "dilations", n, 1, 1, w->dilation, err));
    int64_t pads[2 * OCT_SPATIAL_MAX];
    OCT_TRY(oct_window_list(node, "pads", 2 * n, 0, INT32_MIN, pads, err));
    for (int i = 0; i < n; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[n + i];
    }
    const char *mode = oct_node_str(node, "auto_pad", "NOTSET");
    if (strcmp(mode, "SAME_UPPER") == 0)
        w->auto_pad = OCT_PAD_SAME_UPPER;
    else if (strcmp(mode, "SAME_LOWER") == 0)
        w->auto_pad = OCT_PAD_SAME_LOWER;
    else if (strcmp(mode, "VALID") == 0)
        w->auto_pad = OCT_PAD_VALID;
    else if (strcmp(mode, "NOTSET") != 0 && mode[0])
        return oct_fail(err, OCT_EMALFORMED, "attribute 'auto_pad' is '%s'", mode);
    w->ceil_mode = oct_node_int(node, "ceil_mode", 0) != 0;
    return OCT_OK;
}

oct_status oct_window_of_weights(const oct_node *node, oct_shape weights, oct_window *w, oct_err *err)
{
    int64_t kernel[OCT_SPATIAL_MAX] = { -1, -1, -1 };
    for (int i = 2; i < weights.rank && i < 2 + OCT_SPATIAL_MAX; i++)
        kernel[i - 2] = weights.d[i].n;
    return oct_window_read(node, weights.rank - 2, kernel, w, err);
}

oct_status oct_window_fit(oct_window *w, int i, int64_t in, int64_t *out, oct_err *err)
{
    int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1, stride = w->stride[i];
    if (w->auto_pad == OCT_PAD_SAME_UPPER || w->auto_pad == OCT_PAD_SAME_LOWER) {
        *out = (in + stride - 1) / stride;
        int64_t total = (*out - 1) * stride + span - in;
        if (total < 0)
            total = 0;
        w->before[i] = w->auto_pad == OCT_PAD_SAME_UPPER ? total / 2 : (total + 1) / 2;
        w->after[i] = total - w->before[i];
        return OCT_OK;
    }
    if (w->auto_pad == OCT_PAD_VALID)
        w->before[i] = w->after[i] = 0;
    int64_t room = in + w->before[i] + w->after[i] - span;
    if (room < 0)
        return oct_fail(err, OCT_EMALFORMED, "a window of %lld does not fit into %lld with padding %lld and %lld",
                        (long long)span, (long long)in, (long long)w->before[i], (long long)w->after[i]);
    *out = room / stride + 1;
    if (w->ceil_mode && room % stride) {
        if (*out * stride < in + w->before[i])
            ++*out;
    }
    return OCT_OK;
}

oct_status oct_window_infer(const oct_infer *c, oct_window *w, oct_dim channels, int slot, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    if (x.rank != w->n + 2)
        return oct_fail(err, OCT_EMALFORMED, "input '%s' has %d dimensions, expected %d", oct_in_value(c, 0)->name,
                        x.rank, w->n + 2);
    oct_dim d[OCT_MAX_RANK] = { x.d[0], channels };
    for (int i = 0; i < w->n; i++) {
        d[2 + i] = (oct_dim){ -1, NULL };
        if (x.d[2 + i].n >= 0 && w->kernel[i] >= 0)
            OCT_TRY(oct_window_fit(w, i, x.d[2 + i].n, &d[2 + i].n, err));
        else if (w->stride[i] == 1 && (w->auto_pad == OCT_PAD_SAME_LOWER || w->auto_pad == OCT_PAD_SAME_UPPER ||
                                       w->before[i] + w->after[i] == (w->kernel[i] - 1) * w->dilation[i]))
            d[2 + i] = x.d[2 + i];
    }
    return oct_out_shape(c, slot, x.rank, d, err);
}
