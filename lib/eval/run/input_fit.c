/* lib/eval/run/input_fit.c -- compares samples with the ranges of the quantizers after a model's inputs. */
#include "eval/run/input_fit.h"

#include "kernels/bins.h"
#include "ops/op.h"

#include <math.h>
#include <string.h>

#define MUCH_OUTSIDE 0.05
#define LITTLE_USED 0.2
#define STEPS 255

static const oct_tensor *constant_of(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data && t->count == 1 ? t : NULL;
}

/* The range that the integers of a quantizer can represent. False: it does not have one scale and 8 bits. */
static bool range_of(const oct_graph *g, const oct_node *n, double *lo, double *hi)
{
    const oct_tensor *s = constant_of(g, n, 1), *z = constant_of(g, n, 2);
    if (!s || s->dtype != OCT_F32 || !z || (z->dtype != OCT_U8 && z->dtype != OCT_S8))
        return false;
    const double scale = (double)*(const float *)s->data;
    const int zero = z->dtype == OCT_U8 ? *(const uint8_t *)z->data : *(const int8_t *)z->data,
              least = z->dtype == OCT_U8 ? 0 : -128;
    *lo = scale * (least - zero);
    *hi = scale * (least + STEPS - zero);
    return isfinite(*lo) && isfinite(*hi) && *lo < *hi;
}

/* The first quantizer that reads a value. */
static bool quantizer_of(const oct_graph *g, int value, double *lo, double *hi)
{
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_op *op = oct_op_of(g, v->uses[i].node);
        if (op && op->is_qdq && v->uses[i].slot == 0 && v->dtype == OCT_F32 &&
            range_of(g, &g->node[v->uses[i].node], lo, hi))
            return true;
    }
    return false;
}

oct_status oct_input_fit_find(const oct_graph *g, const oct_input_desc *inputs, size_t n_inputs, oct_arena *arena,
                              oct_input_fit **fit, size_t *n, oct_err *err)
{
    *n = 0;
    if (!(*fit = oct_arena_calloc(arena, n_inputs + 1, sizeof **fit)))
        return oct_nomem(err);
    for (size_t i = 0; i < n_inputs; i++) {
        const int v = oct_graph_find(g, inputs[i].name);
        double lo, hi;
        if (inputs[i].dtype == OCT_F32 && v >= 0 && g->value[v].is_input && quantizer_of(g, v, &lo, &hi))
            (*fit)[(*n)++] = (oct_input_fit){
                .input = g->value[v].name, .at = i, .lo = lo, .hi = hi, .min = INFINITY, .max = -INFINITY
            };
    }
    return OCT_OK;
}

void oct_input_fit_add(oct_input_fit *fit, size_t n, const oct_array *arrays)
{
    for (size_t i = 0; i < n; i++) {
        oct_input_fit *f = &fit[i];
        const oct_array *a = &arrays[f->at];
        const float *x = a->data;
        const size_t count = a->dtype == OCT_F32 ? (size_t)oct_array_count(a) : 0;
        /* Half a step further out, values are rounded as well as any other: a zero point in the middle of a range is a
         * whole number, too. What exceeds half a step is the rounding of the scale. */
        const double half = 0.5001 * (f->hi - f->lo) / STEPS;
        const float lo = (float)(f->lo - half), hi = (float)(f->hi + half);
        oct_scan s = { .min = INFINITY, .max = -INFINITY };
        size_t outside = 0;
        oct_scan_f32(x, count, 0, &s);
        for (size_t k = 0; k < count && (s.min < lo || s.max > hi); k++)
            outside += x[k] < lo || x[k] > hi;
        f->min = fmin(f->min, (double)(s.min + 0.0f)); /* never -0 */
        f->max = fmax(f->max, (double)(s.max + 0.0f));
        f->n += count;
        f->outside += outside;
    }
}

oct_fit oct_input_fit_judge(const oct_input_fit *f)
{
    if (f->n == 0)
        return OCT_FIT_GOOD;
    if ((double)f->outside > MUCH_OUTSIDE * (double)f->n)
        return OCT_FIT_OUTSIDE;
    return f->max - f->min < LITTLE_USED * (f->hi - f->lo) ? OCT_FIT_NARROW : OCT_FIT_GOOD;
}
