/* Convolutions of int8 weights, of pictures of int8 or int16: these have the channels last, weights are
 * [out][height][width][in]. */
#include "twins/twin_ops.h"

/* What turns sums into results: a factor for each channel, the zero point, the bounds of the activation. */
typedef struct finish {
    const oct_rescaling *by;
    oct_rescale *scale; /* [channels] */
    const int32_t *bias;
    const int64_t *wide_bias; /* of int16 */
    const oct_twin_tensor *to;
    int32_t lo, hi;
} finish;

static oct_status prepare(const oct_twin_call *c, const oct_rescaling *by, const oct_twin_tensor *x,
                          const oct_twin_tensor *w, int bias, int slot, int64_t channels, finish *f, oct_err *err)
{
    const oct_twin_tensor *y = c->out[0];
    const oct_quant *q = w->t->quant;
    const oct_twin_tensor *b = bias < c->n_in ? c->in[bias] : NULL;
    const bool wide = oct_twin_is(x, OCT_TFL_INT16), wide_bias = b && b->t->type == OCT_TFL_INT64;
    if (!oct_twin_is_whole(x) || !oct_twin_is_whole(y) || !oct_twin_is(y, x->t->type) ||
        !oct_twin_is(w, OCT_TFL_INT8) || !q || !w->t->data)
        return oct_twin_cannot(c, err, "its operands are not int8 or int16, with constant weights of int8");
    if ((q->n != 1 && q->n != channels) ||
        (b && ((b->t->type != OCT_TFL_INT32 && !(wide && wide_bias)) || b->count != channels)))
        return oct_twin_unfit(c, "scales or biases are not as many as its channels", err);
    for (int i = 0; q->zp && i < q->n; i++)
        if (q->zp[i])
            return oct_twin_cannot(c, err, "its weights have a zero point");
    *f = (finish){
        .by = by, .bias = b && !wide_bias ? b->data : NULL, .wide_bias = wide_bias ? b->data : NULL, .to = y
    };
    if (!(f->scale = oct_twin_scratch(c, (size_t)channels, sizeof *f->scale)))
        return oct_nomem(err);
    for (int64_t k = 0; k < channels; k++)
        f->scale[k] = by->of(x->scale, q->scale[q->n == 1 ? 0 : k], y->scale);
    return oct_twin_activation(c, slot, by, &f->lo, &f->hi, err);
}

/* Element i of the result. */
static void put(const finish *f, int64_t i, int64_t channel, int64_t products)
{
    const int64_t bias = f->bias ? f->bias[channel] : f->wide_bias ? f->wide_bias[channel] : 0;
    const int64_t sum = (int64_t)((uint64_t)products + (uint64_t)bias);
    if (f->to->t->type == OCT_TFL_INT16)
        oct_twin_put(f->to, i, oct_twin_clamp(f->by->sum(&f->scale[channel], sum), f->lo, f->hi));
    else
        oct_twin_put(f->to, i,
                     f->by->to(&f->scale[channel], (int32_t)(uint32_t)(uint64_t)sum, f->to->zero, f->lo, f->hi));
}

enum { LANES = 16, EXACT = 256 * LANES }; /* products of 16 and 8 bits that a lane of 32 bits can add */

static int64_t dot(const int16_t *x, const int8_t *w, int64_t n)
{
    int64_t sum = 0;
    while (n >= LANES) {
        const int64_t some = n < EXACT ? n / LANES * LANES : EXACT;
        int32_t lane[LANES] = { 0 };
        for (int64_t i = 0; i < some; i += LANES)
            for (int k = 0; k < LANES; k++)
                lane[k] += x[i + k] * w[i + k];
        for (int k = 0; k < LANES; k++)
            sum += lane[k];
        x += some;
        w += some;
        n -= some;
    }
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * w[i];
    return sum;
}

/* The sums of the channels of one group at one place. */
typedef struct grouped {
    int64_t inputs, in, outputs; /* of the picture; of the weights; of a group */
} grouped;

static void conv_place(const int16_t *x, const int8_t *w, const oct_twin_window *win, const grouped *g,
                       int64_t channels, const int64_t at[2], int64_t *sum)
{
    const bool rows = win->dilation[1] == 1 && g->inputs == g->in; /* of the window lie one behind the other, in both */
    for (int64_t o = 0; o < channels; o++)
        sum[o] = 0;
    for (int64_t ky = 0; ky < win->kernel[0]; ky++) {
        const int64_t y = at[0] + ky * win->dilation[0];
        for (int64_t kx = 0, many = 1; kx < win->kernel[1] && y >= 0 && y < win->in[0]; kx += many) {
            const int64_t xx = at[1] + kx * win->dilation[1];
            many = 1;
            if (xx < 0 || xx >= win->in[1])
                continue;
            const int64_t left = win->kernel[1] - kx, inside = win->in[1] - xx;
            many = !rows ? 1 : left < inside ? left : inside;
            const int16_t *from = x + (y * win->in[1] + xx) * g->inputs;
            for (int64_t o = 0; o < channels; o++)
                sum[o] += dot(from + o / g->outputs * g->in,
                              w + ((o * win->kernel[0] + ky) * win->kernel[1] + kx) * g->in, many * g->in);
        }
    }
}

oct_status oct_twin_conv(const oct_twin_call *c, const void *how, oct_err *err)
{
    oct_twin_window win;
    finish f;
    const oct_twin_tensor *x = c->in[0], *w = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    if (!x || !w || !oct_twin_window_read(c, x->t, w->t, OCT_TFL_CONV_STRIDE_W, OCT_TFL_CONV_DILATION_W, &win))
        return oct_twin_unfit(c, "its window does not fit its result", err);
    const int64_t channels = to->t->dims[3];
    grouped g = { x->t->dims[3], w->t->dims[3], 0 };
    const int64_t groups = g.in > 0 && g.inputs % g.in == 0 ? g.inputs / g.in : 0;
    g.outputs = groups > 0 ? channels / groups : 0;
    if (w->t->dims[0] != channels || g.outputs < 1 || channels % groups)
        return oct_twin_unfit(c, "its channels do not fit its weights", err);
    OCT_TRY(prepare(c, how, x, w, 2, OCT_TFL_CONV_ACTIVATION, channels, &f, err));
    const int16_t *v = oct_twin_shorts(c, x, x->zero);
    int64_t *sum = oct_twin_scratch(c, (size_t)channels, sizeof *sum);
    if (!v || !sum)
        return oct_nomem(err);
    int64_t at_y = 0;
    for (int64_t b = 0; b < x->t->dims[0]; b++, v += win.in[0] * win.in[1] * g.inputs)
        for (int64_t i = 0; i < win.out[0]; i++)
            for (int64_t k = 0; k < win.out[1]; k++) {
                const int64_t at[2] = { i * win.stride[0] - win.before[0], k * win.stride[1] - win.before[1] };
                conv_place(v, w->data, &win, &g, channels, at, sum);
                for (int64_t o = 0; o < channels; o++)
                    put(&f, at_y++, o, sum[o]);
            }
    return OCT_OK;
}

/* Each channel of the picture has `times` results. */
static void depthwise_place(const int16_t *x, const int8_t *w, const oct_twin_window *win, int64_t inputs,
                            int64_t times, const int64_t at[2], int64_t *sum)
{
    const int64_t channels = inputs * times;
    for (int64_t o = 0; o < channels; o++)
        sum[o] = 0;
    for (int64_t ky = 0; ky < win->kernel[0]; ky++) {
        const int64_t y = at[0] + ky * win->dilation[0];
        for (int64_t kx = 0; kx < win->kernel[1] && y >= 0 && y < win->in[0]; kx++) {
            const int64_t xx = at[1] + kx * win->dilation[1];
            if (xx < 0 || xx >= win->in[1])
                continue;
            const int16_t *from = x + (y * win->in[1] + xx) * inputs;
            const int8_t *by = w + (ky * win->kernel[1] + kx) * channels;
            for (int64_t o = 0; o < channels; o++)
                sum[o] += from[times == 1 ? o : o / times] * by[o];
        }
    }
}

oct_status oct_twin_depthwise(const oct_twin_call *c, const void *how, oct_err *err)
{
    oct_twin_window win;
    finish f;
    const oct_twin_tensor *x = c->in[0], *w = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    if (!x || !w ||
        !oct_twin_window_read(c, x->t, w->t, OCT_TFL_DEPTHWISE_STRIDE_W, OCT_TFL_DEPTHWISE_DILATION_W, &win))
        return oct_twin_unfit(c, "its window does not fit its result", err);
    const int64_t channels = to->t->dims[3], inputs = x->t->dims[3];
    if (w->t->dims[0] != 1 || w->t->dims[3] != channels || inputs < 1 || channels % inputs)
        return oct_twin_unfit(c, "its channels do not fit its weights", err);
    OCT_TRY(prepare(c, how, x, w, 2, OCT_TFL_DEPTHWISE_ACTIVATION, channels, &f, err));
    const int16_t *v = oct_twin_shorts(c, x, x->zero);
    int64_t *sum = oct_twin_scratch(c, (size_t)channels, sizeof *sum);
    if (!v || !sum)
        return oct_nomem(err);
    int64_t at_y = 0;
    for (int64_t b = 0; b < x->t->dims[0]; b++, v += win.in[0] * win.in[1] * inputs)
        for (int64_t i = 0; i < win.out[0]; i++)
            for (int64_t k = 0; k < win.out[1]; k++) {
                const int64_t at[2] = { i * win.stride[0] - win.before[0], k * win.stride[1] - win.before[1] };
                depthwise_place(v, w->data, &win, inputs, channels / inputs, at, sum);
                for (int64_t o = 0; o < channels; o++)
                    put(&f, at_y++, o, sum[o]);
            }
    return OCT_OK;
}

/* Adds what one place of the picture gives to the sums of the result. */
static void spread_place(const int16_t *x, const int8_t *w, const oct_twin_window *win, int64_t inputs,
                         int64_t channels, const int64_t at[2], int64_t *sum)
{
    for (int64_t ky = 0; ky < win->kernel[0]; ky++) {
        const int64_t y = at[0] + ky;
        for (int64_t kx = 0; kx < win->kernel[1] && y >= 0 && y < win->in[0]; kx++) {
            const int64_t xx = at[1] + kx;
            for (int64_t o = 0; o < channels && xx >= 0 && xx < win->in[1]; o++)
                sum[(y * win->in[1] + xx) * channels + o] +=
                    dot(x, w + ((o * win->kernel[0] + ky) * win->kernel[1] + kx) * inputs, inputs);
        }
    }
}

/* Operands: the shape of the result, the weights, the picture, biases. Its window slides over the result. */
oct_status oct_twin_transpose_conv(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *w = c->n_in > 2 ? c->in[1] : NULL, *x = c->n_in > 2 ? c->in[2] : NULL, *to = c->out[0];
    oct_twin_window win;
    finish f;
    if (!w || !x || w->t->rank != 4 || x->t->rank != 4 || to->t->rank != 4 || x->t->dims[0] != to->t->dims[0])
        return oct_twin_unfit(c, "its operands are no pictures", err);
    const int64_t channels = to->t->dims[3], inputs = x->t->dims[3];
    for (int k = 0; k < 2; k++) {
        win.in[k] = to->t->dims[1 + k];
        win.out[k] = x->t->dims[1 + k];
        win.kernel[k] = w->t->dims[1 + k];
        win.stride[k] = oct_tfl_option(c->op, OCT_TFL_TRANSPOSE_CONV_STRIDE_W + 1 - k, 0);
        win.dilation[k] = 1;
    }
    if (!oct_twin_window_place(&win, oct_tfl_option(c->op, OCT_TFL_TRANSPOSE_CONV_PADDING, OCT_TFL_SAME)) ||
        w->t->dims[0] != channels || w->t->dims[3] != inputs)
        return oct_twin_unfit(c, "its window does not fit its result", err);
    OCT_TRY(prepare(c, how, x, w, 3, OCT_TFL_TRANSPOSE_CONV_ACTIVATION, channels, &f, err));
    const int16_t *v = oct_twin_shorts(c, x, x->zero);
    int64_t *sum = oct_twin_scratch(c, (size_t)to->count, sizeof *sum);
    if (!v || !sum)
        return oct_nomem(err);
    const int64_t each = win.in[0] * win.in[1] * channels;
    for (int64_t b = 0; b < x->t->dims[0]; b++)
        for (int64_t i = 0; i < win.out[0]; i++)
            for (int64_t k = 0; k < win.out[1]; k++, v += inputs) {
                const int64_t at[2] = { i * win.stride[0] - win.before[0], k * win.stride[1] - win.before[1] };
                spread_place(v, w->data, &win, inputs, channels, at, sum + b * each);
            }
    for (int64_t i = 0; i < to->count; i++)
        put(&f, i, i % channels, sum[i]);
    return OCT_OK;
}

oct_status oct_twin_dense(const oct_twin_call *c, const void *how, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *w = c->n_in > 1 ? c->in[1] : NULL, *to = c->out[0];
    finish f;
    if (!x || !w || w->t->rank != 2)
        return oct_twin_unfit(c, "its weights are no matrix", err);
    const int64_t channels = w->t->dims[0], inputs = w->t->dims[1];
    if (inputs < 1 || channels < 1 || x->count % inputs || to->count != x->count / inputs * channels)
        return oct_twin_unfit(c, "its operands do not fit its weights", err);
    OCT_TRY(prepare(c, how, x, w, 2, OCT_TFL_DENSE_ACTIVATION, channels, &f, err));
    const int16_t *v = oct_twin_shorts(c, x, x->zero);
    if (!v)
        return oct_nomem(err);
    int64_t at_y = 0;
    for (int64_t i = 0; i < x->count / inputs; i++, v += inputs)
        for (int64_t o = 0; o < channels; o++)
            put(&f, at_y++, o, dot(v, (const int8_t *)w->data + o * inputs, inputs));
    return OCT_OK;
}
