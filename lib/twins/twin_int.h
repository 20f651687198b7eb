/* lib/twins/twin_int.h -- operators of a twin. Private to lib/twins. */
#ifndef OCT_TWINS_TWIN_INT_H
#define OCT_TWINS_TWIN_INT_H

#include "twins/twins.h"

/* A tensor while a model runs. */
typedef struct oct_twin_tensor {
    const oct_tfl_tensor *t;
    void *data;
    int64_t count;
    float scale; /* the first of its quantization; 0: it has none */
    int32_t zero;
} oct_twin_tensor;

/* An operator at work. */
typedef struct oct_twin_call {
    const oct_twin *twin;
    const oct_tfl_operator *op;
    const oct_twin_tensor *const *in, *const *out; /* NULL: absent */
    int n_in, n_out;
    const oct_twin_tensor *const *within; /* as the operator's */
    int n_within;
    oct_arena *scratch; /* of this operator alone */
} oct_twin_call;

/* how: the arithmetic in which runtimes differ; what it is, the function says. */
typedef oct_status (*oct_twin_fn)(const oct_twin_call *c, const void *how, oct_err *err);

/* Which tensors a rule takes, by the first operand that is an activation, and the first result. */
typedef enum oct_twin_types {
    OCT_TWIN_INT8,
    OCT_TWIN_INT16,
    OCT_TWIN_WHOLE, /* either of these, which may differ */
    OCT_TWIN_REAL,
    OCT_TWIN_ANY
} oct_twin_types;

typedef struct oct_twin_rule {
    oct_tfl_code code;
    oct_twin_types types;
    oct_twin_fn compute; /* NULL: behind the last */
    const void *how;
} oct_twin_rule;

/* twin_cost.c: whether a run is within the limits that oct_twin_open states. */
oct_status oct_twin_bounded(const oct_tfl_model *m, oct_err *err);

/* ---- what operators ask of their tensors ---- */

/* OCT_EUNSUPPORTED: the twin does not have this; OCT_EMALFORMED: its tensors do not fit it. */
oct_status oct_twin_cannot(const oct_twin_call *c, oct_err *err, const char *fmt, ...) OCT_PRINTF(3, 4);
oct_status oct_twin_unfit(const oct_twin_call *c, const char *what, oct_err *err);

/* Whether there are n operands and one result, of these types. */
bool oct_twin_has(const oct_twin_call *c, int n_in, oct_tfl_type in, oct_tfl_type out);
bool oct_twin_is(const oct_twin_tensor *t, oct_tfl_type type);
/* Whether it is a quantized tensor of int8 with one scale. */
bool oct_twin_is_int8(const oct_twin_tensor *t);
/* The same of int8, or of int16 with zero point 0. */
bool oct_twin_is_whole(const oct_twin_tensor *t);
/* The least and the largest integer of its type, int8 or int16. */
int32_t oct_twin_least(const oct_twin_tensor *t);
int32_t oct_twin_most(const oct_twin_tensor *t);
/* Its integers, int8 or int16, less a number; in scratch. */
int16_t *oct_twin_shorts(const oct_twin_call *c, const oct_twin_tensor *t, int32_t less);
/* Sets integer i of a tensor of int8 or int16. */
static inline void oct_twin_put(const oct_twin_tensor *t, int64_t i, int32_t x)
{
    if (t->t->type == OCT_TFL_INT16)
        ((int16_t *)t->data)[i] = (int16_t)x;
    else
        ((int8_t *)t->data)[i] = (int8_t)x;
}
/* The integers of a small constant, of 32 or 64 bits. Fails where it is none. */
oct_status oct_twin_numbers(const oct_twin_call *c, int operand, int64_t v[OCT_MAX_RANK], int *n, oct_err *err);
/* The bounds of the activation that is fused into it; by: how they become integers. */
struct oct_rescaling;
oct_status oct_twin_activation(const oct_twin_call *c, int slot, const struct oct_rescaling *by, int32_t *lo,
                               int32_t *hi, oct_err *err);
/* Memory that is zero, until the operator ends. */
void *oct_twin_scratch(const oct_twin_call *c, size_t n, size_t bytes);

/* A tensor's dimension from behind: 0 is the last. 1 in front of the first. */
static inline int64_t oct_twin_dim(const oct_tfl_tensor *t, int from_behind)
{
    return from_behind < t->rank ? t->dims[t->rank - 1 - from_behind] : 1;
}

/* A window over height and width, and where a picture lies in it. */
typedef struct oct_twin_window {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2];
} oct_twin_window;
/* before, from the padding; fails where out does not follow from in. */
bool oct_twin_window_place(oct_twin_window *w, oct_tfl_padding padding);
/* The window of a convolution of x by w; strides and dilations by the slots of its options, width before height. */
bool oct_twin_window_read(const oct_twin_call *c, const oct_tfl_tensor *x, const oct_tfl_tensor *w, int stride,
                          int dilation, oct_twin_window *win);

#endif
