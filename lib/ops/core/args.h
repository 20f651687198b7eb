/* lib/ops/core/args.h -- arguments that were attributes in old opsets and are inputs in new ones; propagation of small
 * integer values; common steps of raise() functions. */
#ifndef OCT_OPS_ARGS_H
#define OCT_OPS_ARGS_H

#include "ops/core/infer.h"

enum {
    OCT_KNOWN_MAX = 64,  /* longest integer tensor whose elements are propagated */
    OCT_ARG_ABSENT = -2, /* neither the attribute nor the input is there */
    OCT_ARG_UNKNOWN = -1 /* the input exists, but its value is not known yet (or is too long) */
};

/* Integers from attribute `attr` (NULL: none) or else input `slot` (-1: none): their count, OCT_ARG_ABSENT or
 * OCT_ARG_UNKNOWN. */
int oct_arg_ints(const oct_infer *c, const char *attr, int slot, int64_t *v, int max);
/* The same when running: the inputs' data. At prepare time a computed input is OCT_ARG_UNKNOWN. */
int oct_step_ints(const oct_step *s, const char *attr, int slot, int64_t *v, int max);
/* Scalar from float attribute or input (any numeric type), while running or preparing; false when the input's data
 * is not there yet. absent is the value when there is neither. */
bool oct_step_scalar(const oct_step *s, const char *attr, int slot, double absent, double *v);
/* OCT_EUNSUPPORTED unless all inputs that are present have type t. others: a bit for each slot that is not checked. */
oct_status oct_step_types(const oct_step *s, oct_dtype t, uint32_t others, oct_err *err);

/* Fails with OCT_EMALFORMED: the index is outside an axis of n elements. The hint is about token ids, the usual case.
 */
oct_status oct_index_outside(int64_t index, int64_t n, oct_err *err);
/* Index i of t, which holds int32 or int64, from the end where it is negative, into an axis of n elements. */
oct_status oct_index_at(const oct_operand *t, int64_t i, int64_t n, int64_t *index, oct_err *err);
/* Of indices [first, first + n) of `index`: which element of x each means that has its own coordinates but for the one
 * of `axis`, which it gives itself. Both have the same number of dimensions. */
oct_status oct_index_places(const oct_operand *index, const oct_operand *x, int axis, int64_t first, int64_t n,
                            int64_t *at, oct_err *err);

/* Sorted axes as a mask of rank bits; OCT_EMALFORMED for an axis outside or given twice. */
oct_status oct_axes_mask(const int64_t *axes, int n, int rank, uint32_t *mask, oct_err *err);

/* A propagated integer: whether it is a known number (the special -1 included), and back. */
bool oct_known_get(oct_dim d, int64_t *v);
oct_dim oct_known_of(int64_t v);
/* Passes the known elements of input `from` to output 0 unchanged (they keep their order and count). */
oct_status oct_known_copy(const oct_infer *c, int from, oct_err *err);
/* Whether output 0 is an integer tensor of rank <= 1, so that known elements make sense. */
bool oct_known_wanted(const oct_infer *c);

/* Before opset 7, input 1 is aligned with the dimensions of input 0 from attribute `axis` on if `broadcast` is set
 * (PRelu: from 1 on). tail: the number of trailing dimensions of size 1 that it lacks; 0 if it is aligned with the last
 * ones; -1: depends on unknown ranks. */
int oct_early_tail(const oct_node *n, int64_t opset, int rank0, int rank1);
/* The shape of input 1 with those dimensions, in d; what of it is not known has rank -1. */
oct_shape oct_early_shape(const oct_infer *c, oct_dim d[OCT_MAX_RANK]);
/* raise() from opset 6: puts an Unsqueeze before input 1 that adds them. OCT_EUNSUPPORTED where ranks are not known. */
oct_status oct_raise_early(oct_graph *g, int node, int64_t from, oct_err *err);

/* raise(): moves INTS attribute `attr` to input `slot` as an int64 constant; nothing when it is absent. */
oct_status oct_raise_ints(oct_graph *g, int node, const char *attr, int slot, oct_err *err);
/* raise(): moves a FLOAT attribute to input `slot` as a scalar of the type of input 0. */
oct_status oct_raise_float(oct_graph *g, int node, const char *attr, int slot, oct_err *err);
/* raise(): a node op(a, b) before node `before`, its result a new value of type t in *out; b < 0: of a alone. */
oct_status oct_raise_node(oct_graph *g, const char *op, int before, int a, int b, const char *base, oct_dtype t,
                          int *out, int *node, oct_err *err);

#endif
