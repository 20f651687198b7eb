/* The borders of a read graph (forms/forms.h): where reals become integers, and where integers are a value's numbers,
 * as those of an input or output of the model. */
#include "tflite/tfl_operators.h"

/* int8 or uint8 with one scale, or int16 with zero point 0: what QUANTIZE and DEQUANTIZE take. */
static bool suits(const oct_quant *q)
{
    return q && q->n == 1 && !q->block &&
           (q->dtype == OCT_S8 || q->dtype == OCT_U8 || (q->dtype == OCT_S16 && q->zp[0] == 0));
}

oct_status oct_tfl_write_quantize(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_value *x = &w->g->value[n->in[0]], *y = &w->g->value[n->out[0]];
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int in, out;
    const oct_quant *q = y->quant ? y->quant : x->quant;
    if (!suits(q))
        return oct_tfl_cannot(w, err, "convert for --target litert", "'%s' is not quantized to int8 with one scale",
                              y->name);
    if (!y->quant) { /* the integers as numbers: an output of the model */
        int64_t same[OCT_MAX_RANK];
        for (int i = 0; i < OCT_MAX_RANK; i++)
            same[i] = i;
        return oct_tfl_rename(w, n->out[0], n->in[0], same, err);
    }
    if (x->quant && !suits(x->quant))
        return oct_tfl_cannot(w, err, "convert for --target litert", "'%s' is not quantized to int8 with one scale",
                              x->name);
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_OWN, &in, err));
    OCT_TRY(oct_tfl_result(w, n->out[0], &order, OCT_TFL_OWN, NULL, &out, err));
    return oct_tfl_add(w, OCT_TFL_QUANTIZE, &in, 1, &out, 1, NULL, err);
}

oct_status oct_tfl_write_dequantize(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_value *x = &w->g->value[n->in[0]], *y = &w->g->value[n->out[0]];
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    int64_t same[OCT_MAX_RANK];
    int in;
    if (!suits(y->quant) || x->dtype != y->quant->dtype || x->quant)
        return oct_tfl_cannot(w, err, "convert for --target litert", "'%s' is not quantized to int8 with one scale",
                              y->name);
    for (int i = 0; i < OCT_MAX_RANK; i++)
        same[i] = i;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, OCT_TFL_OWN, &in, err));
    w->m->tensor[in].quant = y->quant; /* both values are the same bytes */
    return oct_tfl_rename(w, n->out[0], n->in[0], same, err);
}
