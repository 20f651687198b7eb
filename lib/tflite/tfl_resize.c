/* Resize of height and width. .tflite has three ways to place its points: which one a node means is found by comparing,
 * point by point. */
#include "tflite/tfl_operators.h"

#include <math.h>
#include <string.h>

/* The ways of .tflite. */
enum { SCALED, ALIGNED, HALF_PIXEL, WAYS };

/* The coordinate that point i of `out` reads among `in`, as ONNX has it. */
static float coordinate(const char *mode, int64_t i, float scale, int64_t in, int64_t out)
{
    const float x = (float)i;
    if (strcmp(mode, "asymmetric") == 0)
        return x / scale;
    if (strcmp(mode, "align_corners") == 0)
        return out == 1 ? 0 : x * (float)(in - 1) / (float)(out - 1);
    if (strcmp(mode, "pytorch_half_pixel") == 0 && out == 1)
        return 0;
    return (x + 0.5f) / scale - 0.5f;
}

static float rounded(const char *mode, float x)
{
    if (strcmp(mode, "floor") == 0)
        return floorf(x);
    if (strcmp(mode, "ceil") == 0)
        return ceilf(x);
    return strcmp(mode, "round_prefer_ceil") == 0 ? floorf(x + 0.5f) : ceilf(x - 0.5f);
}

/* The same in .tflite. */
static float theirs(int way, bool nearest, int64_t i, int64_t in, int64_t out)
{
    const float scale = way == ALIGNED && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out,
                x = (float)i;
    if (nearest)
        return way == ALIGNED ? roundf(x * scale) : floorf((x + (way == HALF_PIXEL ? 0.5f : 0)) * scale);
    return way == HALF_PIXEL ? (x + 0.5f) * scale - 0.5f : x * scale;
}

static float inside(float x, int64_t n)
{
    return x < 0 ? 0 : x > (float)(n - 1) ? (float)(n - 1) : x;
}

typedef struct resize {
    const char *mode, *round;
    bool nearest;
    float scale[2];
    int64_t in[2], out[2];
} resize;

static bool is_way(const resize *r, int way)
{
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < r->out[k]; i++) {
            float ours = coordinate(r->mode, i, r->scale[k], r->in[k], r->out[k]);
            if (r->nearest)
                ours = rounded(r->round, ours);
            if (!(fabsf(inside(ours, r->in[k]) - inside(theirs(way, r->nearest, i, r->in[k], r->out[k]), r->in[k])) <
                  1e-3f))
                return false;
        }
    return true;
}

/* The scales that a node states, of height and width; those of the sizes without. */
static oct_status read_scales(const oct_tfl_writer *w, const oct_node *n, resize *r, oct_err *err)
{
    const oct_tensor *t = oct_node_constant(w->g, n, 2);
    int count = 0;
    const int64_t *axes = oct_node_ints(n, "axes", &count);
    for (int k = 0; k < 2; k++)
        r->scale[k] = (float)((double)r->out[k] / (double)r->in[k]);
    if (!t || !t->data || t->dtype != OCT_F32 || t->count == 0)
        return OCT_OK;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t axis = !axes ? i : i < count ? (axes[i] < 0 ? axes[i] + 4 : axes[i]) : -1;
        if (axis == 2 || axis == 3)
            r->scale[axis - 2] = ((const float *)t->data)[i];
    }
    return OCT_OK;
}

oct_status oct_tfl_write_resize(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order last = oct_tfl_channels_last(4);
    const bool whole = oct_tfl_runs_whole(w, 0, 1);
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    const char *mode = oct_node_str(n, "mode", "nearest");
    resize r = { .mode = oct_node_str(n, "coordinate_transformation_mode", "half_pixel"),
                 .round = oct_node_str(n, "nearest_mode", "round_prefer_floor"),
                 .nearest = strcmp(mode, "nearest") == 0 };
    int64_t dims[OCT_MAX_RANK], made[OCT_MAX_RANK];
    int rank, in[2], out, way = 0;
    oct_tfl_operator *op;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    OCT_TRY(oct_tfl_dims(w, n->out[0], &rank, made, err));
    if (rank != 4 || dims[0] != made[0] || dims[1] != made[1] || !dims[2] || !dims[3])
        return oct_tfl_cannot(w, err, NULL, "it resizes other axes than height and width");
    if ((!r.nearest && strcmp(mode, "linear") != 0) || oct_node_int(n, "antialias", 0))
        return oct_tfl_cannot(w, err, "use mode linear or nearest", "its mode is %s", mode);
    for (int k = 0; k < 2; k++) {
        r.in[k] = dims[2 + k];
        r.out[k] = made[2 + k];
    }
    OCT_TRY(read_scales(w, n, &r, err));
    while (way < WAYS && !is_way(&r, way))
        way++;
    if (way == WAYS || strcmp(r.mode, "tf_crop_and_resize") == 0)
        return oct_tfl_cannot(w, err,
                              "use asymmetric with floor, align_corners or half_pixel, and sizes that are multiples",
                              "its coordinates (%s%s%s) are none of .tflite's", r.mode, r.nearest ? ", " : "",
                              r.nearest ? r.round : "");
    OCT_TRY(oct_tfl_read(w, n->in[0], &last, kind, &in[0], err));
    OCT_TRY(oct_tfl_numbers(w, "size", 1, (int64_t[]){ 2 }, r.out, &in[1], err));
    OCT_TRY(oct_tfl_result(w, w->out, &last, kind, whole ? w->g->value[n->in[0]].quant : NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, r.nearest ? OCT_TFL_RESIZE_NEAREST_NEIGHBOR : OCT_TFL_RESIZE_BILINEAR, in, 2, &out, 1, &op,
                        err));
    if (way != SCALED)
        oct_tfl_set_byte(op,
                         way == ALIGNED ? (r.nearest ? OCT_TFL_NEAREST_ALIGN_CORNERS : OCT_TFL_BILINEAR_ALIGN_CORNERS)
                                        : (r.nearest ? OCT_TFL_NEAREST_HALF_PIXEL : OCT_TFL_BILINEAR_HALF_PIXEL),
                         1);
    if (way == HALF_PIXEL || (way == ALIGNED && r.nearest))
        op->version = 3;
    return OCT_OK;
}
