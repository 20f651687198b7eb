/* UNIDIRECTIONAL_SEQUENCE_LSTM: on int8 with gates and cells of 16 bits, and on float32. A run begins with states that
 * mean 0, as runtimes have them when their variables are reset. */
#include "twins/wide/functions.h"

#include "kernels/math.h"
#include "twins/fixed_point.h"
#include "twins/twin_ops.h"

#include <math.h>
#include <stdlib.h>

/* Operands. */
enum {
    INPUT = 0,
    WEIGHTS = 1,   /* of the input, for each gate */
    RECURRENT = 5, /* of the state, for each gate */
    PEEPHOLES = 9, /* three */
    BIASES = 12,
    PROJECTION = 16, /* weights, bias */
    STATE = 18,
    CELLS = 19,
    NORMS = 20, /* four */
    OPERANDS = 24,
};

enum { IN, FORGET, CELL, OUT, GATES };
enum { HIDDEN = 4 /* of the tensors within: what is multiplied to the state */, FINE = 12 /* bits of a gate's sum */ };

struct oct_twin_lstm {
    const oct_rescaling *by;
    bool apart; /* the two sums of a gate saturate each, before they are added */
    int32_t (*logistic)(int32_t sum);
    int32_t (*tanh)(int32_t x, int fraction); /* bits behind the point */
    int32_t (*shifted)(int32_t product, int bits);
};

typedef struct layer {
    int64_t steps, batch, in, units;
    int64_t step_x, row_x, step_y, row_y; /* elements to the next step, and to the next sequence */
    const oct_twin_tensor *w[GATES], *r[GATES], *b[GATES];
} layer;

/* ---- operands ---- */

static const oct_twin_tensor *operand(const oct_twin_call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

static bool absent(const oct_twin_call *c, int first, int n)
{
    for (int i = first; i < first + n; i++)
        if (operand(c, i))
            return false;
    return true;
}

static bool is_matrix(const oct_twin_tensor *t, int64_t rows, int64_t columns)
{
    return t && t->t->rank == 2 && t->t->dims[0] == rows && t->t->dims[1] == columns;
}

static oct_status check_options(const oct_twin_call *c, oct_err *err)
{
    const char *has = !absent(c, PEEPHOLES, 3)    ? "peepholes"
                      : !absent(c, PROJECTION, 2) ? "a projection"
                      : !absent(c, NORMS, 4)      ? "normalized gates"
                      : oct_tfl_option_real(c->op, OCT_TFL_LSTM_CELL_CLIP, 0) > 0 ||
                              oct_tfl_option_real(c->op, OCT_TFL_LSTM_PROJECTION_CLIP, 0) > 0
                          ? "limits of its cells"
                      : oct_tfl_option(c->op, OCT_TFL_LSTM_DIAGONAL, 0) ? "diagonal weights"
                      : oct_tfl_option(c->op, OCT_TFL_LSTM_ACTIVATION, OCT_TFL_ACT_NONE) != OCT_TFL_ACT_TANH
                          ? "another activation than tanh"
                          : NULL;
    if (has)
        return oct_twin_cannot(c, err, "it has %s", has);
    return OCT_OK;
}

static oct_status read_layer(const oct_twin_call *c, layer *l, oct_err *err)
{
    const oct_twin_tensor *x = c->in[INPUT], *y = c->out[0];
    const bool major = oct_tfl_option(c->op, OCT_TFL_LSTM_TIME_MAJOR, 0);
    OCT_TRY(check_options(c, err));
    if (c->n_in != OPERANDS || !x || x->t->rank != 3 || y->t->rank != 3)
        return oct_twin_unfit(c, "its operands do not fit", err);
    *l = (layer){ .steps = x->t->dims[major ? 0 : 1],
                  .batch = x->t->dims[major ? 1 : 0],
                  .in = x->t->dims[2],
                  .units = y->t->dims[2] };
    l->row_x = major ? l->in : l->steps * l->in;
    l->step_x = major ? l->batch * l->in : l->in;
    l->row_y = major ? l->units : l->steps * l->units;
    l->step_y = major ? l->batch * l->units : l->units;
    bool fits = y->t->dims[0] == x->t->dims[0] && y->t->dims[1] == x->t->dims[1];
    const oct_tfl_type type = x->t->type, bias = type == OCT_TFL_FLOAT32 ? OCT_TFL_FLOAT32 : OCT_TFL_INT32;
    for (int k = 0; k < GATES; k++) {
        l->w[k] = operand(c, WEIGHTS + k);
        l->r[k] = operand(c, RECURRENT + k);
        l->b[k] = operand(c, BIASES + k);
        if (k == IN && (!l->w[k] || !l->r[k]))
            return oct_twin_cannot(c, err, "it has no input gate");
        fits = fits && is_matrix(l->w[k], l->units, l->in) && is_matrix(l->r[k], l->units, l->units) && l->b[k] &&
               l->b[k]->count == l->units && oct_twin_is(l->w[k], type) && oct_twin_is(l->r[k], type) &&
               oct_twin_is(l->b[k], bias);
    }
    return fits ? OCT_OK : oct_twin_unfit(c, "its operands do not fit", err);
}

/* ---- on integers ---- */

typedef struct integers {
    const struct oct_twin_lstm *how;
    layer l;
    oct_rescale x[GATES], h[GATES], out;
    int32_t zero_x, zero_h, cell_bits;
    int8_t *state; /* of all sequences */
    int16_t *cell;
} integers;

static oct_status begin(const oct_twin_call *c, integers *n, oct_err *err)
{
    const oct_twin_tensor *x = c->in[INPUT], *h = operand(c, STATE), *cells = operand(c, CELLS);
    const oct_twin_tensor *hidden = c->n_within > HIDDEN ? c->within[HIDDEN] : NULL;
    int exponent;
    OCT_TRY(read_layer(c, &n->l, err));
    for (int k = 0; k < GATES; k++)
        if (!oct_twin_is_int8(n->l.w[k]) || !oct_twin_is_int8(n->l.r[k]) || n->l.w[k]->zero || n->l.r[k]->zero)
            return oct_twin_cannot(c, err, "its weights are not int8 with one scale and no zero point");
    if (!oct_twin_is_int8(h) || !oct_twin_is(cells, OCT_TFL_INT16) || !(cells->scale > 0) ||
        frexpf(cells->scale, &exponent) != 0.5f || exponent - 1 < -15 || exponent - 1 > -9)
        return oct_twin_cannot(c, err, "its state is not int8, or its cells not int16 with a power of two as scale");
    if (!hidden || hidden->scale != h->scale || hidden->zero != h->zero || c->out[0]->scale != h->scale ||
        c->out[0]->zero != h->zero)
        return oct_twin_cannot(c, err, "its state and its result differ in scale");
    const float fine = ldexpf(1, -FINE), gate = ldexpf(1, -15);
    n->cell_bits = 1 - exponent;
    n->zero_x = x->zero;
    n->zero_h = h->zero;
    for (int k = 0; k < GATES; k++) {
        n->x[k] = n->how->by->of(x->scale, n->l.w[k]->scale, fine);
        n->h[k] = n->how->by->of(h->scale, n->l.r[k]->scale, fine);
    }
    n->out = n->how->by->of(gate, gate, h->scale);
    const size_t states = (size_t)(n->l.batch * n->l.units);
    n->state = oct_twin_scratch(c, states, sizeof *n->state);
    n->cell = oct_twin_scratch(c, states, sizeof *n->cell);
    if (!n->state || !n->cell)
        return oct_nomem(err);
    for (size_t i = 0; i < states; i++)
        n->state[i] = (int8_t)h->zero;
    return OCT_OK;
}

static int32_t dot(const int8_t *x, int32_t zero, const oct_twin_tensor *w, int64_t row, int64_t n)
{
    const int8_t *by = (const int8_t *)w->data + row * n;
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (uint32_t)((x[i] - zero) * by[i]);
    return (int32_t)sum;
}

/* The sum of a gate of one unit, with 12 bits behind the point. */
static int32_t gate_sum(const integers *n, int k, const int8_t *x, const int8_t *h, int64_t unit)
{
    const oct_rescaling *by = n->how->by;
    const uint32_t of_x =
        (uint32_t)dot(x, n->zero_x, n->l.w[k], unit, n->l.in) + (uint32_t)((const int32_t *)n->l.b[k]->data)[unit];
    const int32_t a = by->to(&n->x[k], (int32_t)of_x, 0, INT16_MIN, INT16_MAX);
    const int32_t of_h = dot(h, n->zero_h, n->l.r[k], unit, n->l.units);
    if (!n->how->apart)
        return by->to(&n->h[k], of_h, a, INT16_MIN, INT16_MAX);
    return oct_twin_clamp(a + by->to(&n->h[k], of_h, 0, INT16_MIN, INT16_MAX), INT16_MIN, INT16_MAX);
}

/* One step of a sequence; next: its state behind it. */
static void step(const integers *n, const int8_t *x, const int8_t *h, int16_t *cell, int8_t *next)
{
    const struct oct_twin_lstm *how = n->how;
    for (int64_t u = 0; u < n->l.units; u++) {
        int32_t g[GATES];
        for (int k = 0; k < GATES; k++) {
            const int32_t sum = gate_sum(n, k, x, h, u);
            g[k] = k == CELL ? how->tanh(sum, FINE) : how->logistic(sum);
        }
        const int32_t kept = (int16_t)how->shifted(g[FORGET] * cell[u], 15),
                      more = (int16_t)how->shifted(g[IN] * g[CELL], 30 - n->cell_bits);
        cell[u] = (int16_t)oct_twin_clamp(kept + more, INT16_MIN, INT16_MAX);
        next[u] = (int8_t)how->by->to(&n->out, g[OUT] * how->tanh(cell[u], n->cell_bits), n->zero_h, -128, 127);
    }
}

oct_status oct_twin_lstm(const oct_twin_call *c, const void *how, oct_err *err)
{
    integers n = { .how = how };
    OCT_TRY(begin(c, &n, err));
    for (int64_t t = 0; t < n.l.steps; t++)
        for (int64_t b = 0; b < n.l.batch; b++) {
            const int8_t *x = (const int8_t *)c->in[INPUT]->data + t * n.l.step_x + b * n.l.row_x;
            int8_t *y = (int8_t *)c->out[0]->data + t * n.l.step_y + b * n.l.row_y, *h = n.state + b * n.l.units;
            step(&n, x, h, n.cell + b * n.l.units, y);
            for (int64_t u = 0; u < n.l.units; u++)
                h[u] = y[u];
        }
    return OCT_OK;
}

/* ---- the two ways ---- */

static int32_t logistic_fixed(int32_t sum)
{
    return oct_fixed_logistic(16, sum, 15 - FINE);
}

static int32_t tanh_fixed(int32_t x, int fraction)
{
    return oct_fixed_tanh(16, x, 15 - fraction);
}

static int32_t logistic_table(int32_t sum)
{
    return oct_wide_logistic(sum, 0, 0);
}

static int32_t tanh_table(int32_t x, int fraction)
{
    return fraction <= FINE ? oct_wide_tanh(x, 0, FINE - fraction) : oct_wide_tanh(x, 3, fraction - FINE);
}

static int32_t shifted_twice(int32_t product, int bits)
{
    const oct_rescale r = oct_rescale_fixed(ldexp(1, -bits));
    return oct_twin_clamp(oct_rescale_twice(&r, product), INT16_MIN, INT16_MAX);
}

const struct oct_twin_lstm oct_twin_lstm_fixed = { &oct_rescaling_double_in_float, false, logistic_fixed, tanh_fixed,
                                                   oct_divide_power };
const struct oct_twin_lstm oct_twin_lstm_table = { &oct_rescaling_double, true, logistic_table, tanh_table,
                                                   shifted_twice };

/* ---- on reals ---- */

static float real_sum(const layer *l, int k, const float *x, const float *h, int64_t unit)
{
    const float *w = (const float *)l->w[k]->data + unit * l->in, *r = (const float *)l->r[k]->data + unit * l->units;
    float sum = ((const float *)l->b[k]->data)[unit];
    for (int64_t i = 0; i < l->in; i++)
        sum += x[i] * w[i];
    for (int64_t i = 0; i < l->units; i++)
        sum += h[i] * r[i];
    return sum;
}

static void real_step(const layer *l, const float *x, const float *h, float *cell, float *next)
{
    for (int64_t u = 0; u < l->units; u++) {
        float g[GATES];
        for (int k = 0; k < GATES; k++) {
            const float sum = real_sum(l, k, x, h, u);
            g[k] = k == CELL ? oct_tanhf(sum) : oct_sigmoidf(sum);
        }
        cell[u] = g[FORGET] * cell[u] + g[IN] * g[CELL];
        next[u] = g[OUT] * oct_tanhf(cell[u]);
    }
}

oct_status oct_twin_lstm_real(const oct_twin_call *c, const void *how, oct_err *err)
{
    layer l;
    (void)how;
    OCT_TRY(read_layer(c, &l, err));
    const size_t states = (size_t)(l.batch * l.units);
    float *cell = oct_twin_scratch(c, states, sizeof *cell), *state = oct_twin_scratch(c, states, sizeof *state);
    if (!cell || !state)
        return oct_nomem(err);
    for (int64_t t = 0; t < l.steps; t++)
        for (int64_t b = 0; b < l.batch; b++) {
            const float *x = (const float *)c->in[INPUT]->data + t * l.step_x + b * l.row_x;
            float *y = (float *)c->out[0]->data + t * l.step_y + b * l.row_y, *h = state + b * l.units;
            real_step(&l, x, h, cell + b * l.units, y);
            for (int64_t u = 0; u < l.units; u++)
                h[u] = y[u];
        }
    return OCT_OK;
}
