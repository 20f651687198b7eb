/* QuantizeLinear and DequantizeLinear with constant parameters, as targets look at them. */
#include "targets/stand_int.h"

#include <math.h>
#include <string.h>

const oct_tensor *oct_linear_constant(const oct_graph *g, int value)
{
    const oct_tensor *c = oct_graph_constant(g, value);
    return c && c->data ? c : NULL;
}

bool oct_linear_is(const oct_graph *g, const oct_node *n, const char *op)
{
    const oct_tensor *s = n->n_in > 1 ? oct_linear_constant(g, n->in[1]) : NULL;
    return strcmp(n->op, op) == 0 && n->in[0] >= 0 && n->n_out == 1 && n->out[0] >= 0 && s && s->count > 0 &&
           (n->n_in < 3 || n->in[2] < 0 || oct_linear_constant(g, n->in[2]));
}

oct_dtype oct_linear_type(const oct_graph *g, const oct_node *q)
{
    return g->value[strcmp(q->op, "QuantizeLinear") == 0 ? q->out[0] : q->in[0]].dtype;
}

int oct_linear_zero(const oct_graph *g, const oct_node *q)
{
    const oct_tensor *z = q->n_in > 2 ? oct_linear_constant(g, q->in[2]) : NULL;
    switch (z ? z->dtype : OCT_UNDEFINED) {
    case OCT_U8: return *(const uint8_t *)z->data;
    case OCT_S8: return *(const int8_t *)z->data;
    case OCT_U16: return *(const uint16_t *)z->data;
    case OCT_S16: return *(const int16_t *)z->data;
    default: return 0;
    }
}

float oct_linear_scale(const oct_graph *g, const oct_node *q, int64_t i)
{
    const oct_tensor *s = oct_linear_constant(g, q->in[1]);
    return s->dtype != OCT_F32 ? NAN : ((const float *)s->data)[s->count > 1 ? i : 0];
}

bool oct_linear_fits_bias(const oct_graph *g, const oct_node *x, const oct_node *w, const oct_node *b)
{
    enum { PARTS = 100 }; /* a difference of less than a hundredth of the product is taken for an error of rounding */
    const int64_t count = oct_linear_constant(g, b->in[1])->count, channels = oct_linear_constant(g, w->in[1])->count;
    bool fits = true;
    for (int64_t i = 0; i < count; i++) {
        const float want = oct_linear_scale(g, x, 0) * oct_linear_scale(g, w, channels > i ? i : 0);
        fits &= !(fabsf(oct_linear_scale(g, b, i) - want) > want / PARTS);
    }
    return fits;
}
