/* lib/quant/target.h -- deployment targets: what runs on integers there, and what must be avoided. */
#ifndef OCT_QUANT_TARGET_H
#define OCT_QUANT_TARGET_H

#include "graph/graph.h"
#include "ops/op.h"

typedef struct oct_target {
    const char *name, *summary;
    /* 16-bit pair sums saturate on some of its CPUs: s8 weights must be proved safe (saturate.h). */
    bool saturates;
    bool conv_needs_output; /* Conv without a quantized output stays float */
    /* Operators besides products that it runs on integers between DequantizeLinear and QuantizeLinear, names joined by
     * spaces with a leading and trailing one. */
    const char *integer_ops;
    const char *products;   /* the same for products */
    const char *dynamic;    /* the same for dynamic quantization */
} oct_target;

const oct_target *oct_target_find(const char *name); /* NULL: none */
const oct_target *oct_target_default(void); /* onnxruntime-x86 */

/* Whether the target runs this operator type on integers. */
bool oct_target_integer(const oct_target *t, const char *op);
bool oct_target_product(const oct_target *t, const char *op);
bool oct_target_dynamic(const oct_target *t, const char *op);

#endif
