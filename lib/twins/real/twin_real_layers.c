/* Layers, pools and reductions on float32, in plain loops: as in twin_real.c, results are the runtimes' but for
 * rounding. */
#include "twins/twin_ops.h"

#include <math.h>

/* ---- convolutions ---- */

/* A convolution: each result of a picture's channel o is made of `in` channels of the picture. */
typedef struct layer {
    oct_twin_window win;
    const float *x, *w, *bias; /* bias NULL: none */
    int64_t inputs, channels, in;
    bool depthwise;
} layer;

static oct_status take_weights(const oct_twin_call *c, const oct_twin_tensor *w, int bias, layer *l, oct_err *err)
{
    const oct_twin_tensor *b = bias < c->n_in ? c->in[bias] : NULL;
    if (!w || w->t->type != OCT_TFL_FLOAT32 || (b && b->t->type != OCT_TFL_FLOAT32))
        return oct_twin_cannot(c, err, "its weights are not float32");
    if (b && b->count != l->channels)
        return oct_twin_unfit(c, "biases are not as many as its channels", err);
    l->w = w->data;
    l->bias = b ? b->data : NULL;
    return OCT_OK;
}

static oct_status read_layer(const oct_twin_call *c, layer *l, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *w = c->n_in > 1 ? c->in[1] : NULL;
    const int stride = l->depthwise ? OCT_TFL_DEPTHWISE_STRIDE_W : OCT_TFL_CONV_STRIDE_W,
              dilation = l->depthwise ? OCT_TFL_DEPTHWISE_DILATION_W : OCT_TFL_CONV_DILATION_W;
    if (!w || !oct_twin_window_read(c, x->t, w->t, stride, dilation, &l->win))
        return oct_twin_unfit(c, "its window does not fit its result", err);
    l->x = x->data;
    l->inputs = x->t->dims[3];
    l->channels = c->out[0]->t->dims[3];
    l->in = l->depthwise ? 1 : w->t->dims[3];
    const int64_t groups = l->in > 0 && l->inputs % l->in == 0 ? l->inputs / l->in : 0;
    const int64_t made = l->depthwise ? w->t->dims[3] : w->t->dims[0];
    if (groups < 1 || l->channels < 1 || l->channels % groups || made != l->channels ||
        (l->depthwise && w->t->dims[0] != 1))
        return oct_twin_unfit(c, "its channels do not fit its weights", err);
    return take_weights(c, w, 2, l, err);
}

/* Result o of the window that begins at row `y`, column `x` of a picture. */
static float at_place(const layer *l, const float *picture, int64_t y, int64_t x, int64_t o)
{
    const oct_twin_window *win = &l->win;
    const int64_t first = o / (l->channels / (l->inputs / l->in)) * l->in;
    float sum = 0;
    for (int64_t ky = 0; ky < win->kernel[0]; ky++)
        for (int64_t kx = 0; kx < win->kernel[1]; kx++) {
            const int64_t yy = y + ky * win->dilation[0], xx = x + kx * win->dilation[1];
            if (yy < 0 || yy >= win->in[0] || xx < 0 || xx >= win->in[1])
                continue;
            const float *from = picture + (yy * win->in[1] + xx) * l->inputs + first;
            const int64_t k = ky * win->kernel[1] + kx;
            const float *w =
                l->depthwise ? l->w + k * l->channels + o : l->w + (o * win->kernel[0] * win->kernel[1] + k) * l->in;
            for (int64_t n = 0; n < l->in; n++)
                sum += from[n] * w[n];
        }
    return l->bias ? sum + l->bias[o] : sum;
}

static oct_status convolve(const oct_twin_call *c, layer *l, int slot, oct_err *err)
{
    OCT_TRY(read_layer(c, l, err));
    float *y = c->out[0]->data;
    for (int64_t b = 0; b < c->in[0]->t->dims[0]; b++, l->x += l->win.in[0] * l->win.in[1] * l->inputs)
        for (int64_t i = 0; i < l->win.out[0]; i++)
            for (int64_t k = 0; k < l->win.out[1]; k++)
                for (int64_t o = 0; o < l->channels; o++)
                    *y++ = oct_twin_activated(c, slot,
                                              at_place(l, l->x, i * l->win.stride[0] - l->win.before[0],
                                                       k * l->win.stride[1] - l->win.before[1], o));
    return OCT_OK;
}

static oct_status conv(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return convolve(c, &(layer){ .depthwise = false }, OCT_TFL_CONV_ACTIVATION, err);
}

static oct_status depthwise(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return convolve(c, &(layer){ .depthwise = true }, OCT_TFL_DEPTHWISE_ACTIVATION, err);
}

/* Operands: the shape of the result, the weights, the picture, biases. */
static oct_status transpose_conv(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *w = c->n_in > 2 ? c->in[1] : NULL, *x = c->n_in > 2 ? c->in[2] : NULL, *to = c->out[0];
    layer l = { .channels = to->t->rank == 4 ? to->t->dims[3] : 0 };
    oct_twin_window *win = &l.win;
    (void)how;
    if (!w || !x || w->t->rank != 4 || x->t->rank != 4 || to->t->rank != 4 || x->t->dims[0] != to->t->dims[0])
        return oct_twin_unfit(c, "its operands are no pictures", err);
    for (int k = 0; k < 2; k++) {
        win->in[k] = to->t->dims[1 + k];
        win->out[k] = x->t->dims[1 + k];
        win->kernel[k] = w->t->dims[1 + k];
        win->stride[k] = oct_tfl_option(c->op, OCT_TFL_TRANSPOSE_CONV_STRIDE_W + 1 - k, 0);
        win->dilation[k] = 1;
    }
    l.inputs = x->t->dims[3];
    if (!oct_twin_window_place(win, oct_tfl_option(c->op, OCT_TFL_TRANSPOSE_CONV_PADDING, OCT_TFL_SAME)) ||
        w->t->dims[0] != l.channels || w->t->dims[3] != l.inputs)
        return oct_twin_unfit(c, "its window does not fit its result", err);
    OCT_TRY(take_weights(c, w, 3, &l, err));
    float *y = to->data;
    for (int64_t i = 0; i < to->count; i++)
        y[i] = l.bias ? l.bias[i % l.channels] : 0;
    const float *v = x->data;
    for (int64_t b = 0; b < x->t->dims[0]; b++, y += win->in[0] * win->in[1] * l.channels)
        for (int64_t i = 0; i < win->out[0] * win->out[1]; i++, v += l.inputs)
            for (int64_t k = 0; k < win->kernel[0] * win->kernel[1]; k++) {
                const int64_t yy = i / win->out[1] * win->stride[0] - win->before[0] + k / win->kernel[1],
                              xx = i % win->out[1] * win->stride[1] - win->before[1] + k % win->kernel[1];
                for (int64_t o = 0; o < l.channels && yy >= 0 && yy < win->in[0] && xx >= 0 && xx < win->in[1]; o++) {
                    const float *of = l.w + (o * win->kernel[0] * win->kernel[1] + k) * l.inputs;
                    for (int64_t n = 0; n < l.inputs; n++)
                        y[(yy * win->in[1] + xx) * l.channels + o] += v[n] * of[n];
                }
            }
    for (int64_t i = 0; i < to->count; i++)
        ((float *)to->data)[i] = oct_twin_activated(c, OCT_TFL_TRANSPOSE_CONV_ACTIVATION, ((const float *)to->data)[i]);
    return OCT_OK;
}

static oct_status dense(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *w = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    layer l = { .depthwise = false };
    (void)how;
    if (!w || w->t->rank != 2)
        return oct_twin_unfit(c, "its weights are no matrix", err);
    l.channels = w->t->dims[0];
    l.inputs = w->t->dims[1];
    if (l.inputs < 1 || l.channels < 1 || x->count % l.inputs || to->count != x->count / l.inputs * l.channels)
        return oct_twin_unfit(c, "its operands do not fit its weights", err);
    OCT_TRY(take_weights(c, w, 2, &l, err));
    const float *v = x->data;
    float *y = to->data;
    for (int64_t i = 0; i < x->count / l.inputs; i++, v += l.inputs)
        for (int64_t o = 0; o < l.channels; o++) {
            float sum = l.bias ? l.bias[o] : 0;
            for (int64_t n = 0; n < l.inputs; n++)
                sum += v[n] * l.w[o * l.inputs + n];
            *y++ = oct_twin_activated(c, OCT_TFL_DENSE_ACTIVATION, sum);
        }
    return OCT_OK;
}

/* ---- pools ---- */

static float pooled(const oct_twin_window *w, const float *x, int64_t channels, int64_t y, int64_t from, bool most)
{
    float sum = 0, largest = -INFINITY;
    int64_t n = 0;
    for (int64_t ky = 0; ky < w->kernel[0]; ky++)
        for (int64_t kx = 0; kx < w->kernel[1]; kx++) {
            const int64_t yy = y + ky, xx = from + kx;
            if (yy < 0 || yy >= w->in[0] || xx < 0 || xx >= w->in[1])
                continue;
            const float v = x[(yy * w->in[1] + xx) * channels];
            sum += v;
            largest = fmaxf(largest, v);
            n++;
        }
    return most ? largest : sum / (float)(n ? n : 1);
}

static oct_status pool(const oct_twin_call *c, const void *how, oct_err *err)
{
    oct_twin_window w;
    (void)how;
    OCT_TRY(oct_twin_pool_window(c, &w, err));
    const int64_t channels = c->in[0]->t->dims[3];
    const float *x = c->in[0]->data;
    float *y = c->out[0]->data;
    for (int64_t b = 0; b < c->in[0]->t->dims[0]; b++, x += w.in[0] * w.in[1] * channels)
        for (int64_t i = 0; i < w.out[0]; i++)
            for (int64_t k = 0; k < w.out[1]; k++)
                for (int64_t o = 0; o < channels; o++)
                    *y++ =
                        oct_twin_activated(c, OCT_TFL_POOL_ACTIVATION,
                                           pooled(&w, x + o, channels, i * w.stride[0] - w.before[0],
                                                  k * w.stride[1] - w.before[1], c->op->code == OCT_TFL_MAX_POOL_2D));
    return OCT_OK;
}

/* ---- reductions ---- */

static oct_status reduce(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    const bool extreme = c->op->code == OCT_TFL_REDUCE_MAX || c->op->code == OCT_TFL_REDUCE_MIN;
    const float sign = c->op->code == OCT_TFL_REDUCE_MIN ? -1 : 1;
    const int64_t *to;
    int64_t each;
    (void)how;
    OCT_TRY(oct_twin_reduced(c, &to, &each, err));
    double *sum = oct_twin_scratch(c, (size_t)y->count, sizeof *sum);
    if (!sum)
        return oct_nomem(err);
    for (int64_t i = 0; i < y->count && extreme; i++)
        sum[i] = -INFINITY;
    for (int64_t i = 0; i < x->count; i++) {
        const double v = sign * ((const float *)x->data)[i];
        sum[to[i]] = extreme ? fmax(sum[to[i]], v) : sum[to[i]] + v;
    }
    for (int64_t i = 0; i < y->count; i++)
        ((float *)y->data)[i] = (float)(extreme                      ? sign * sum[i]
                                        : c->op->code == OCT_TFL_SUM ? sum[i]
                                                                     : sum[i] / (double)each);
    return OCT_OK;
}

const oct_twin_rule oct_twin_real_layers[] = {
    { OCT_TFL_CONV_2D, OCT_TWIN_REAL, conv, NULL },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_REAL, depthwise, NULL },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_REAL, transpose_conv, NULL },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_REAL, dense, NULL },
    { OCT_TFL_BATCH_MATMUL, OCT_TWIN_REAL, oct_twin_matmul_real, NULL },
    { OCT_TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, OCT_TWIN_REAL, oct_twin_lstm_real, NULL },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_REAL, pool, NULL },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_REAL, pool, NULL },
    { OCT_TFL_MEAN, OCT_TWIN_REAL, reduce, NULL },
    { OCT_TFL_SUM, OCT_TWIN_REAL, reduce, NULL },
    { OCT_TFL_REDUCE_MAX, OCT_TWIN_REAL, reduce, NULL },
    { OCT_TFL_REDUCE_MIN, OCT_TWIN_REAL, reduce, NULL },
    { OCT_TFL_RESIZE_BILINEAR, OCT_TWIN_REAL, oct_twin_bilinear_real, NULL },
    { 0, 0, NULL, NULL },
};
