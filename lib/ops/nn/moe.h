/* lib/ops/nn/moe.h -- what a mixture of experts does between its matrices. */
#ifndef OCT_OPS_MOE_H
#define OCT_OPS_MOE_H

#include "base/pool.h"
#include "graph/graph.h"

typedef enum oct_moe_function {
    OCT_MOE_RELU,
    OCT_MOE_GELU,
    OCT_MOE_SILU,
    OCT_MOE_IDENTITY,
    OCT_MOE_SWIGLU /* of a gate and a value: the first layer is twice as wide as the second one is deep */
} oct_moe_function;

typedef struct oct_moe_rule {
    oct_moe_function function;
    bool interleaved;
    float alpha, beta, limit;
    size_t experts, k; /* how many there are, and how many of them compute a token */
} oct_moe_rule;

/* Reads the attributes of a MoE or QMoE. OCT_EUNSUPPORTED, OCT_EMALFORMED. */
oct_status oct_moe_read(const oct_node *n, size_t experts, oct_moe_rule *r, oct_err *err);
/* The k best experts of a token by score[experts], the best first. */
void oct_moe_best(const oct_moe_rule *r, const float *score, int32_t *expert);
/* to[rows][width], the inputs of the second layer, of the outputs of the first. The pool may be NULL. */
void oct_moe_activate(const oct_moe_rule *r, oct_pool *pool, const float *from, float *to, size_t rows, size_t width);

#endif
