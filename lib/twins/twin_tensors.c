/* What operators ask of their tensors and options. */
#include "twins/rescale.h"
#include "twins/twin_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *result_name(const oct_twin_call *c)
{
    return c->n_out && c->out[0] && c->out[0]->t->name ? c->out[0]->t->name : "";
}

oct_status oct_twin_cannot(const oct_twin_call *c, oct_err *err, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    oct_fail(err, OCT_EUNSUPPORTED, "%s cannot be computed as %s does: %s that makes '%s': %s", "the model",
             c->twin->name, oct_tfl_code_name(c->op->code), result_name(c), why);
    oct_hint(err, "leave out --as, or let that runtime compute it: --runner");
    return OCT_EUNSUPPORTED;
}

oct_status oct_twin_unfit(const oct_twin_call *c, const char *what, oct_err *err)
{
    return oct_fail(err, OCT_EMALFORMED, "%s that makes '%s': %s", oct_tfl_code_name(c->op->code), result_name(c),
                    what);
}

bool oct_twin_is(const oct_twin_tensor *t, oct_tfl_type type)
{
    return t && t->t->type == type;
}

bool oct_twin_is_int8(const oct_twin_tensor *t)
{
    return oct_twin_is(t, OCT_TFL_INT8) && t->t->quant && t->t->quant->n == 1 && t->scale > 0;
}

bool oct_twin_is_whole(const oct_twin_tensor *t)
{
    return oct_twin_is_int8(t) ||
           (oct_twin_is(t, OCT_TFL_INT16) && t->t->quant && t->t->quant->n == 1 && t->scale > 0 && t->zero == 0);
}

int32_t oct_twin_least(const oct_twin_tensor *t)
{
    return t->t->type == OCT_TFL_INT16 ? INT16_MIN : INT8_MIN;
}

int32_t oct_twin_most(const oct_twin_tensor *t)
{
    return t->t->type == OCT_TFL_INT16 ? INT16_MAX : INT8_MAX;
}

int16_t *oct_twin_shorts(const oct_twin_call *c, const oct_twin_tensor *t, int32_t less)
{
    int16_t *v = oct_twin_scratch(c, (size_t)t->count, sizeof *v);
    const bool wide = t->t->type == OCT_TFL_INT16;
    for (int64_t i = 0; v && i < t->count; i++)
        v[i] = (int16_t)((wide ? ((const int16_t *)t->data)[i] : ((const int8_t *)t->data)[i]) - less);
    return v;
}

bool oct_twin_has(const oct_twin_call *c, int n_in, oct_tfl_type in, oct_tfl_type out)
{
    for (int i = 0; i < n_in; i++)
        if (i >= c->n_in || !oct_twin_is(c->in[i], in))
            return false;
    return c->n_out >= 1 && oct_twin_is(c->out[0], out);
}

oct_status oct_twin_numbers(const oct_twin_call *c, int operand, int64_t v[OCT_MAX_RANK], int *n, oct_err *err)
{
    const oct_twin_tensor *t = operand < c->n_in ? c->in[operand] : NULL;
    if (!t || !t->t->data || t->count > OCT_MAX_RANK || (t->t->type != OCT_TFL_INT32 && t->t->type != OCT_TFL_INT64))
        return oct_twin_cannot(c, err, "operand %d is no constant of a few integers", operand);
    *n = (int)t->count;
    for (int i = 0; i < *n; i++)
        if (t->t->type == OCT_TFL_INT32) {
            int32_t x;
            memcpy(&x, (const char *)t->data + 4 * i, sizeof x);
            v[i] = x;
        } else
            memcpy(&v[i], (const char *)t->data + 8 * i, sizeof v[i]);
    return OCT_OK;
}

void *oct_twin_scratch(const oct_twin_call *c, size_t n, size_t bytes)
{
    return oct_arena_calloc(c->scratch, n + 1, bytes);
}

bool oct_twin_window_place(oct_twin_window *w, oct_tfl_padding padding)
{
    for (int k = 0; k < 2; k++) {
        if (w->stride[k] < 1 || w->dilation[k] < 1 || w->kernel[k] < 1 || w->kernel[k] > INT32_MAX / w->dilation[k])
            return false;
        const int64_t reach = (w->kernel[k] - 1) * w->dilation[k] + 1;
        const int64_t out = padding == OCT_TFL_SAME ? (w->in[k] + w->stride[k] - 1) / w->stride[k]
                                                    : (w->in[k] - reach + w->stride[k]) / w->stride[k];
        if (out != w->out[k] || out < 1)
            return false;
        const int64_t lack = (out - 1) * w->stride[k] + reach - w->in[k];
        w->before[k] = padding == OCT_TFL_SAME && lack > 0 ? lack / 2 : 0;
    }
    return true;
}

oct_status oct_twin_activation(const oct_twin_call *c, int slot, const oct_rescaling *by, int32_t *lo, int32_t *hi,
                               oct_err *err)
{
    const oct_twin_tensor *y = c->out[0];
    float least = 0, most = INFINITY;
    switch (oct_tfl_option(c->op, slot, OCT_TFL_ACT_NONE)) {
    case OCT_TFL_ACT_NONE:
        *lo = oct_twin_least(y);
        *hi = oct_twin_most(y);
        return OCT_OK;
    case OCT_TFL_ACT_RELU: break;
    case OCT_TFL_ACT_RELU6: most = 6; break;
    case OCT_TFL_ACT_RELU_N1_TO_1:
        least = -1;
        most = 1;
        break;
    default: return oct_twin_cannot(c, err, "its activation is not known");
    }
    if (y->t->type == OCT_TFL_INT16) {
        *lo = oct_twin_clamp((int64_t)roundf(least / y->scale), INT16_MIN, INT16_MAX);
        *hi = isinf(most) ? INT16_MAX : (int32_t)fminf(INT16_MAX, roundf(most / y->scale));
        return OCT_OK;
    }
    *lo = by->bound(least, y->scale, y->zero);
    *hi = isinf(most) ? 127 : by->bound(most, y->scale, y->zero);
    return OCT_OK;
}

bool oct_twin_window_read(const oct_twin_call *c, const oct_tfl_tensor *x, const oct_tfl_tensor *w, int stride,
                          int dilation, oct_twin_window *win)
{
    const oct_tfl_tensor *y = c->out[0]->t;
    if (x->rank != 4 || w->rank != 4 || y->rank != 4 || x->dims[0] != y->dims[0])
        return false;
    for (int k = 0; k < 2; k++) {
        win->in[k] = x->dims[1 + k];
        win->out[k] = y->dims[1 + k];
        win->kernel[k] = w->dims[1 + k];
        win->stride[k] = oct_tfl_option(c->op, stride + 1 - k, 0);
        win->dilation[k] = oct_tfl_option(c->op, dilation + 1 - k, 1);
    }
    return oct_twin_window_place(win, oct_tfl_option(c->op, OCT_TFL_CONV_PADDING, OCT_TFL_SAME));
}
