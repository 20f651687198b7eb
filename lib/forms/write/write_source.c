/* Stores large float32 constants in the 16-bit type of the model that they come from, with a Cast after them. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "kernels/half.h"

#include <string.h>

enum { LEAST = 128 }; /* the number of elements from which on a Cast takes less space than it saves */

/* The least ratio of the power of the numbers to that of the rounding noise if passes have computed new numbers, for
 * example by folding a BatchNormalization: 50 dB for the 11 bits of float16, and 40 dB for the 8 bits of bfloat16. This
 * is less noise than the type's own arithmetic adds in one layer, and leaves room for a few small numbers. */
static double least_ratio(oct_dtype type)
{
    return type == OCT_F16 ? 1e5 : 1e4;
}

/* Rounds t to a 16-bit type. *half is NULL if the type cannot represent its numbers. */
static oct_status to_half(oct_arena *a, const oct_tensor *t, oct_dtype type, oct_tensor **half, oct_err *err)
{
    enum { PART = 1024 };
    float again[PART];
    double power = 0, noise = 0;
    oct_tensor *made;
    OCT_TRY(oct_tensor_new(a, type, t->rank, t->dims, &made, err));
    uint16_t *to = (uint16_t *)(uintptr_t)made->data;
    const float *from = t->data;
    for (int64_t i = 0, n; i < t->count; i += n) {
        n = t->count - i < PART ? t->count - i : PART;
        oct_narrow(NULL, type, from + i, (size_t)n, to + i);
        oct_widen(NULL, type, to + i, (size_t)n, again);
        for (int64_t k = 0; k < n; k++) {
            const double x = from[i + k], d = memcmp(&again[k], &from[i + k], sizeof(float)) == 0 ? 0 : again[k] - x;
            power += x * x;
            noise += d * d;
        }
    }
    *half = noise == 0 || noise * least_ratio(type) < power
                ? made
                : NULL; /* a new infinity or NaN makes both comparisons false */
    return OCT_OK;
}

static bool is_large(const oct_value *v)
{
    const oct_tensor *t = v->constant;
    return !v->dead && t && t->data && t->dtype == OCT_F32 && t->count >= LEAST && v->outer < 0 && v->n_uses &&
           !v->is_input && !v->is_output && !oct_value_is_captured(v);
}

oct_status oct_source_write(oct_graph *g, oct_dtype type, oct_err *err)
{
    const size_t values = g->n_value, nodes = g->n_order;
    for (size_t i = 0; i < nodes; i++) {
        oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(oct_source_write(nested, type, err));
    }
    for (size_t i = 0; i < values; i++) {
        oct_tensor *half = NULL;
        int v, id;
        if (is_large(&g->value[i]))
            OCT_TRY(to_half(g->arena, g->value[i].constant, type, &half, err));
        if (!half)
            continue;
        OCT_TRY(oct_edit_value(g, g->value[i].name, type == OCT_F16 ? "_float16" : "_bfloat16", type, (int)i, &v, err));
        oct_graph_set_const(g, v, half);
        g->value[i].constant = NULL;
        g->value[i].origin = NULL;
        OCT_TRY(oct_edit_node(g, "Cast", &v, 1, (int)i, g->order[0], &id, err));
        OCT_TRY(oct_node_set_int(g, id, "to", OCT_F32, err));
    }
    return OCT_OK;
}
