#include "tflite/read/read_window.h"

oct_status oct_tfl_view_pad(const oct_tfl_reader *r, int k, oct_tfl_padding padding, oct_tfl_view *v, oct_err *err)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, k);
    for (int i = 0; i < 2; i++) {
        v->before[i] = v->after[i] = 0;
        if (v->kernel[i] < 1 || v->stride[i] < 1 || v->dilation[i] < 1)
            return oct_tfl_unread(r, err, NULL, "its window has kernel %lld, stride %lld and dilation %lld",
                                  (long long)v->kernel[i], (long long)v->stride[i], (long long)v->dilation[i]);
        if (padding != OCT_TFL_SAME || (v->kernel[i] == 1 && v->stride[i] == 1))
            continue;
        if (x->open == 1 + i)
            return oct_tfl_unread(r, err, "export the model with fixed heights and widths",
                                  "its pads depend on a dimension that is open");
        const int64_t in = x->dims[1 + i], out = (in + v->stride[i] - 1) / v->stride[i];
        const int64_t need = (out - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] + 1 - in;
        v->before[i] = need > 0 ? need / 2 : 0;
        v->after[i] = need > 0 ? need - v->before[i] : 0;
    }
    return OCT_OK;
}

oct_status oct_tfl_view_set(oct_tfl_reader *r, int node, const oct_tfl_view *v, bool dilations, oct_err *err)
{
    const int64_t pads[] = { v->before[0], v->before[1], v->after[0], v->after[1] };
    OCT_TRY(oct_node_set_ints(r->g, node, "kernel_shape", v->kernel, 2, err));
    OCT_TRY(oct_node_set_ints(r->g, node, "strides", v->stride, 2, err));
    OCT_TRY(oct_node_set_ints(r->g, node, "pads", pads, 4, err));
    return dilations ? oct_node_set_ints(r->g, node, "dilations", v->dilation, 2, err) : OCT_OK;
}
