/* What a run takes at most, from shapes and options alone. In float64, which neither wraps nor ends: only the order of
 * magnitude counts. */
#include "twins/twins.h"

#include "twins/twin_int.h"

#include <math.h>

/* Steps of what is no product: an element that is moved, looked up or compared. */
enum { MOVE = 8 };

/* Elements of a tensor. An empty axis counts as one: loops go over the others, too. */
static double count(const oct_tfl_model *m, int tensor)
{
    double n = tensor >= 0 && (size_t)tensor < m->n_tensor;
    for (int k = 0; n > 0 && k < m->tensor[tensor].rank; k++)
        n *= fmax(1, m->tensor[tensor].dims[k]);
    return n;
}

/* A dimension of operand i from behind, at least 1. */
static double dim(const oct_tfl_model *m, const oct_tfl_operator *op, int i, int from_behind)
{
    const int t = i < op->n_in ? op->in[i] : -1;
    const double n = t >= 0 && (size_t)t < m->n_tensor ? (double)oct_twin_dim(&m->tensor[t], from_behind) : 1;
    return n > 1 ? n : 1;
}

static double operand(const oct_tfl_model *m, const oct_tfl_operator *op, int i)
{
    return i < op->n_in ? count(m, op->in[i]) : 0;
}

/* Steps for each element of the results. */
static double each(const oct_tfl_model *m, const oct_tfl_operator *op)
{
    switch (op->code) {
    case OCT_TFL_CONV_2D: return operand(m, op, 1) / dim(m, op, 1, 3);
    case OCT_TFL_DEPTHWISE_CONV_2D: return dim(m, op, 1, 2) * dim(m, op, 1, 1);
    case OCT_TFL_FULLY_CONNECTED: return dim(m, op, 1, 0);
    case OCT_TFL_BATCH_MATMUL: return fmax(dim(m, op, 0, 0), dim(m, op, 0, 1));
    case OCT_TFL_UNIDIRECTIONAL_SEQUENCE_LSTM: return 4 * (dim(m, op, 1, 0) + dim(m, op, 5, 0));
    case OCT_TFL_AVERAGE_POOL_2D:
    case OCT_TFL_MAX_POOL_2D:
        return MOVE * fabs((double)oct_tfl_option(op, OCT_TFL_POOL_FILTER_W, 0)) *
               fabs((double)oct_tfl_option(op, OCT_TFL_POOL_FILTER_H, 0));
    default: return 0;
    }
}

static double steps_of(const oct_tfl_model *m, const oct_tfl_operator *op)
{
    double moved = 0, made = 0;
    for (int i = 0; i < op->n_in; i++)
        moved += operand(m, op, i);
    for (int i = 0; i < op->n_out; i++)
        made += count(m, op->out[i]);
    const double spread =
        op->code == OCT_TFL_TRANSPOSE_CONV ? operand(m, op, 2) * operand(m, op, 1) / dim(m, op, 1, 0) : 0;
    return MOVE * (moved + made) + made * each(m, op) + spread;
}

oct_twin_cost oct_twin_cost_of(const oct_tfl_model *m)
{
    oct_twin_cost c = { 0, 0 };
    for (size_t i = 0; i < m->n_tensor; i++)
        if (!m->tensor[i].data)
            c.bytes += count(m, (int)i) * (double)oct_tfl_type_bytes(m->tensor[i].type);
    for (size_t i = 0; i < m->n_op; i++)
        c.steps += steps_of(m, &m->op[i]);
    return c;
}

oct_status oct_twin_bounded(const oct_tfl_model *m, oct_err *err)
{
    const double most_bytes = ldexp(1, 34), most_steps = ldexp(1, 39);
    const oct_twin_cost c = oct_twin_cost_of(m);
    if (c.bytes <= most_bytes && c.steps <= most_steps)
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "the model takes %.2g %s for a sample, and twins compute models of at most %.2g",
             c.bytes > most_bytes ? c.bytes : c.steps, c.bytes > most_bytes ? "bytes of tensors" : "products and moves",
             c.bytes > most_bytes ? most_bytes : most_steps);
    oct_hint(err, "leave out --as, or let that runtime compute it: --runner");
    return OCT_EUNSUPPORTED;
}
