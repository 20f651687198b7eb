/* com.microsoft's Gelu, BiasGelu, FastGelu and QuickGelu in float: a function of x, or of x + bias along the last
 * dimension. */
#include "kernels/binary.h"
#include "kernels/unary.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

static const oct_operand *bias_of(const oct_step *s)
{
    return s->n_in > 1 ? s->in[1] : NULL;
}

static oct_status gelu_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *b = bias_of(s);
    if (x->dtype != OCT_F32 || (b && b->dtype != OCT_F32))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s cannot be run", s->op->type, oct_dtype_name(x->dtype));
    if (b && (x->rank < 1 || b->rank != 1 || b->dims[0] != x->dims[x->rank - 1]))
        return oct_fail(err, OCT_EMALFORMED, "the bias of %s does not fit the last dimension", s->op->type);
    s->overwrites = oct_elem_overwrites(s, 1);
    return OCT_OK;
}

static oct_unary function_of(const oct_step *s)
{
    if (s->op->type[0] == 'Q')
        return (oct_unary){ OCT_UNARY_SWISH, oct_node_float(s->node, "alpha", 1.702f), 0 };
    return (oct_unary){ s->op->type[0] == 'F' ? OCT_UNARY_GELU_TANH : OCT_UNARY_GELU, 0, 0 };
}

static oct_status gelu_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *b = bias_of(s), *y = s->out[0];
    const oct_unary f = function_of(s);
    const float *from = x->data;
    if (x->count == 0)
        return OCT_OK;
    if (b) {
        const int64_t rows[2] = { x->count / b->count, b->count };
        oct_broadcast spread;
        if (!oct_broadcast_shapes(&spread, rows, 2, b->dims, 1))
            return oct_fail(err, OCT_EINTERNAL, "the bias of %s does not broadcast", s->op->type);
        oct_binary_f32_nd(r->pool, OCT_BINARY_ADD, &spread, x->data, b->data, y->data);
        from = y->data;
    }
    oct_unary_f32(r->pool, &f, from, y->data, (size_t)y->count);
    return OCT_OK;
}

#define GELU(name, onnx, least, most)                            \
    const oct_op oct_op_##name = {                               \
        OCT_SCHEMA(onnx, "com.microsoft", 1, least, most, 1, 1), \
        .infer = oct_infer_like,                                 \
        .prepare = gelu_prepare,                                 \
        .run = gelu_run,                                         \
        .by_rows = oct_elem_by_rows,                             \
        .widens = true,                                          \
    }

GELU(gelu_ms, "Gelu", 1, 1);
GELU(bias_gelu, "BiasGelu", 2, 2);
GELU(fast_gelu, "FastGelu", 1, 2);
GELU(quick_gelu, "QuickGelu", 1, 1);
