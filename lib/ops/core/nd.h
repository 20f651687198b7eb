/* lib/ops/core/nd.h -- walks several strided arrays of one shape, in rows of the fastest dimension.
 *
 * Array 0 is the output: dimensions are sorted by its strides, those of one element dropped and neighbours that
 * are contiguous in every array joined, so that equal layouts become one long row. Work is cut into items that
 * do not depend on the number of threads. */
#ifndef OCT_OPS_ND_H
#define OCT_OPS_ND_H

#include "ops/op.h"

enum {
    OCT_ND_RANK = 2 * OCT_MAX_RANK, /* Tile and DepthToSpace split dimensions */
    OCT_ND_ARRAYS = 4,
    OCT_ND_CHUNK = 1024 /* most elements of one call */
};

typedef struct oct_nd {
    int rank, arrays;
    int64_t dims[OCT_ND_RANK];
    int64_t stride[OCT_ND_ARRAYS][OCT_ND_RANK]; /* in elements; 0 repeats, negative runs backwards */
} oct_nd;

/* A walk over the output t; further arrays are added below. */
void oct_nd_init(oct_nd *d, const oct_operand *t);
/* Adds operand t, broadcast to the dimensions of d. Its dimensions must be compatible. */
void oct_nd_add(oct_nd *d, const oct_operand *t);
/* Adds an array by strides: stride[d->rank]. */
void oct_nd_add_strides(oct_nd *d, const int64_t *stride);

/* Called with at most OCT_ND_CHUNK elements: offset[k] is the first element of array k, stride[k] its step. */
typedef void (*oct_nd_fn)(void *arg, const int64_t *offset, const int64_t *stride, int64_t n);
/* Sorts and joins d, then calls fn for every element once. */
void oct_nd_run(oct_nd *d, oct_pool *pool, oct_nd_fn fn, void *arg);

/* dst[walk of array 0] = src[walk of array 1] for elements of `size` bytes (1, 2, 4, 8 or 16). table: NULL, or for
 * size 1 a map of 256 bytes applied on the way. Array offsets are relative to dst and src. */
void oct_nd_copy(oct_nd *d, oct_pool *pool, void *dst, const void *src, size_t size, const uint8_t *table);

#endif
