#include "tflite/tfl_window.h"

#include "ops/nn/window.h"

#include <float.h>
#include <string.h>

oct_status oct_tfl_window_read(const oct_tfl_writer *w, int x, const int64_t *kernel, oct_tfl_window *win, oct_err *err)
{
    const oct_node *n = &w->g->node[w->node];
    int64_t in[OCT_MAX_RANK], out[OCT_MAX_RANK];
    int rank, rank_out;
    oct_window a;
    OCT_TRY(oct_tfl_dims(w, x, &rank, in, err));
    OCT_TRY(oct_tfl_dims(w, n->out[0], &rank_out, out, err));
    if (rank < 3 || rank > 4 || rank_out != rank)
        return oct_tfl_cannot(w, err, NULL, "its window has %d axes, and not one or two", rank - 2);
    OCT_TRY_WITHIN(oct_window_read(n, rank - 2, kernel, &a, err), err, "%s", n->name);
    *win = (oct_tfl_window){ .in = { 1, 1 },
                             .out = { 1, 1 },
                             .kernel = { 1, 1 },
                             .stride = { 1, 1 },
                             .dilation = { 1, 1 },
                             .batch = in[0],
                             .channels = in[1],
                             .lifted = rank == 3 };
    for (int i = 0; i < rank - 2; i++) {
        const int k = win->lifted ? 1 : i;
        int64_t size;
        if (strcmp(n->op, "ConvTranspose") != 0)
            OCT_TRY(oct_window_fit(&a, i, in[2 + i], &size, err));
        win->in[k] = in[2 + i];
        win->out[k] = out[2 + i];
        win->kernel[k] = a.kernel[i];
        win->stride[k] = a.stride[i];
        win->dilation[k] = a.dilation[i];
        win->before[k] = a.before[i];
        win->after[k] = a.after[i];
    }
    return OCT_OK;
}

oct_status oct_tfl_window_input(oct_tfl_writer *w, int x, const oct_tfl_window *win, oct_tfl_kind kind, int *tensor,
                                oct_err *err)
{
    const oct_tfl_order order = oct_tfl_channels_last(win->lifted ? 3 : 4);
    int flat;
    OCT_TRY(oct_tfl_read(w, x, &order, kind, win->lifted ? &flat : tensor, err));
    if (!win->lifted)
        return OCT_OK;
    OCT_TRY(oct_tfl_between(w, w->g->value[x].name, flat, 4, (int64_t[]){ win->batch, 1, win->in[1], win->channels },
                            w->value[x].open == 0 ? 0 : -1, tensor, err));
    return oct_tfl_reshape(w, flat, *tensor, err);
}

/* The pads that the windows of the output reach; those behind may be fewer than the node says. */
static int64_t reached(const oct_tfl_window *win, int i)
{
    const int64_t end = (win->out[i] - 1) * win->stride[i] + (win->kernel[i] - 1) * win->dilation[i] + 1;
    const int64_t after = end - win->in[i] - win->before[i];
    return after > 0 ? after : 0;
}

/* Whether "same" pads by as much. */
static bool is_same(const oct_tfl_window *win, int i)
{
    const int64_t total = win->before[i] + reached(win, i);
    return win->out[i] == (win->in[i] + win->stride[i] - 1) / win->stride[i] && win->before[i] == total / 2 &&
           total == ((win->out[i] - 1) * win->stride[i] + (win->kernel[i] - 1) * win->dilation[i] + 1 > win->in[i]
                         ? (win->out[i] - 1) * win->stride[i] + (win->kernel[i] - 1) * win->dilation[i] + 1 - win->in[i]
                         : 0);
}

/* A constant of one element that is less than any other of the tensor's type. */
static oct_status lowest_of(oct_tfl_writer *w, int tensor, int *number, oct_err *err)
{
    static const float real = -FLT_MAX;
    static const int8_t whole = INT8_MIN;
    static const int16_t wide = INT16_MIN;
    const oct_tfl_tensor t = w->m->tensor[tensor];
    const void *data = !t.quant ? (const void *)&real : t.type == OCT_TFL_INT16 ? (const void *)&wide : &whole;
    return oct_tfl_constant(w, "lowest", t.type, 0, NULL, t.quant, 0, data, number, err);
}

oct_status oct_tfl_window_pad(oct_tfl_writer *w, oct_tfl_window *win, oct_tfl_pads pads_are, int *tensor, oct_err *err)
{
    const int64_t after[2] = { reached(win, 0), reached(win, 1) };
    const bool lowest = pads_are == OCT_TFL_PADS_LOWEST;
    int pads, in[3] = { *tensor, 0, 0 };
    win->padding = OCT_TFL_VALID;
    if (!win->before[0] && !win->before[1] && !after[0] && !after[1])
        return OCT_OK;
    if (pads_are != OCT_TFL_PADS_COUNTED && is_same(win, 0) && is_same(win, 1)) {
        win->padding = OCT_TFL_SAME;
        return OCT_OK;
    }
    if (pads_are == OCT_TFL_PADS_SKIPPED)
        return oct_tfl_cannot(w, err, "give it pads as SAME_UPPER has them, or set count_include_pad",
                              "its averages leave out pads other than those of SAME");
    const int64_t v[8] = { 0, 0, win->before[0], after[0], win->before[1], after[1], 0, 0 };
    OCT_TRY(oct_tfl_numbers(w, "pads", 2, (int64_t[]){ 4, 2 }, v, &pads, err));
    in[1] = pads;
    if (lowest)
        OCT_TRY(lowest_of(w, *tensor, &in[2], err));
    const oct_tfl_tensor t = w->m->tensor[*tensor];
    OCT_TRY(
        oct_tfl_between(w, oct_arena_printf(w->arena, "%s_padded", t.name), *tensor, 4,
                        (int64_t[]){ win->batch, win->in[0] + v[2] + v[3], win->in[1] + v[4] + v[5], win->channels },
                        t.open, tensor, err));
    return oct_tfl_add(w, lowest ? OCT_TFL_PADV2 : OCT_TFL_PAD, in, lowest ? 3 : 2, tensor, 1, NULL, err);
}

oct_status oct_tfl_window_result(oct_tfl_writer *w, const oct_tfl_window *win, oct_tfl_kind kind, const oct_quant *like,
                                 int *tensor, int *done, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_channels_last(win->lifted ? 3 : 4);
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, like, done, err));
    *tensor = *done;
    if (!win->lifted)
        return OCT_OK;
    const oct_tfl_tensor t = w->m->tensor[*done];
    return oct_tfl_between(w, t.name, *done, 4, (int64_t[]){ t.dims[0], 1, t.dims[1], t.dims[2] }, t.open == 0 ? 0 : -1,
                           tensor, err);
}

oct_status oct_tfl_window_done(oct_tfl_writer *w, int made, int done, oct_err *err)
{
    return made == done ? OCT_OK : oct_tfl_reshape(w, made, done, err);
}
