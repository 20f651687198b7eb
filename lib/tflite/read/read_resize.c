/* Resize of height and width; how points are placed has a name in ONNX for each way of .tflite. */
#include "tflite/read/read_operators.h"

#include <math.h>

/* Whether a size follows from the scale that is its quotient. */
static bool scale_says(int64_t in, int64_t out, float scale)
{
    return in > 0 && out > 0 && floorf((float)in * scale) == (float)out;
}

/* Sizes where all are known, else scales, which leave the batch open. */
static oct_status set_size(oct_tfl_reader *r, int *in, oct_err *err)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, 0);
    const int64_t *size;
    int n;
    OCT_TRY(oct_tfl_take_ints(r, 1, &size, &n, err));
    if (n != 2 || x->rank != 4)
        return oct_tfl_unread(r, err, NULL, "it has %d sizes for %d axes", n, x->rank);
    const float scales[] = { 1, 1, (float)((double)size[0] / x->dims[1]), (float)((double)size[1] / x->dims[2]) };
    if (x->open < 0 && !r->open)
        return oct_tfl_const_ints(r, "sizes", (int64_t[]){ x->dims[0], x->dims[3], size[0], size[1] }, 4, &in[3], err);
    if (x->open > 0 || !scale_says(x->dims[1], size[0], scales[2]) || !scale_says(x->dims[2], size[1], scales[3]))
        return oct_tfl_unread(r, err, "export the model with a fixed batch", "its sizes are no multiples");
    return oct_graph_new_const_f32(r->g, "scales", 1, (int64_t[]){ 4 }, scales, &in[2], err);
}

oct_status oct_tfl_read_resize(oct_tfl_reader *r, oct_err *err)
{
    const bool nearest = r->op->code == OCT_TFL_RESIZE_NEAREST_NEIGHBOR;
    const bool aligned =
        oct_tfl_option(r->op, nearest ? OCT_TFL_NEAREST_ALIGN_CORNERS : OCT_TFL_BILINEAR_ALIGN_CORNERS, 0) != 0;
    const bool half = oct_tfl_option(r->op, nearest ? OCT_TFL_NEAREST_HALF_PIXEL : OCT_TFL_BILINEAR_HALF_PIXEL, 0) != 0;
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int in[4] = { -1, -1, -1, -1 }, node, y;
    OCT_TRY(oct_tfl_need(r, 0, 4, err));
    OCT_TRY(set_size(r, in, err));
    OCT_TRY(oct_tfl_take(r, 0, &first, &in[0], err));
    OCT_TRY(oct_tfl_node(r, 0, "Resize", in, in[3] < 0 ? 3 : 4, &node, &y, err));
    OCT_TRY(oct_node_set_str(r->g, node, "mode", nearest ? "nearest" : "linear", err));
    OCT_TRY(oct_node_set_str(r->g, node, "coordinate_transformation_mode",
                             aligned ? "align_corners"
                             : half  ? "half_pixel"
                                     : "asymmetric",
                             err));
    if (nearest)
        OCT_TRY(oct_node_set_str(r->g, node, "nearest_mode", aligned || half ? "round_prefer_ceil" : "floor", err));
    return oct_tfl_give(r, 0, &first, y, err);
}
