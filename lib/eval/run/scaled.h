/* lib/eval/run/scaled.h -- the record in a model of values whose channels were multiplied in comparison with the float
 * model, because layers were scaled against each other (the metadata `octet.scaled`, docs/formats.md). */
#ifndef OCT_EVAL_SCALED_H
#define OCT_EVAL_SCALED_H

#include "base/buf.h"
#include "base/mem.h"

#include <stdint.h>

#define OCT_SCALED_KEY "octet.scaled"

typedef struct oct_scaled_channels {
    const char *name; /* the name of the value */
    int axis;         /* the dimension that holds its channels */
    size_t n;
    const float *factor; /* [n]: by what the float model's channels were multiplied */
} oct_scaled_channels;

/* Appends a line of the metadata. A name is left out if it does not fit a line or is not UTF-8. Check b->failed. */
void oct_scaled_put(oct_buf *b, const oct_scaled_channels *s);
/* Parses the metadata (NULL: there are none) into arena. Lines that are not understood are skipped. OCT_ENOMEM. */
oct_status oct_scaled_read(const char *text, oct_arena *arena, oct_scaled_channels **list, size_t *n, oct_err *err);
/* The entry of a value; NULL: there is none. */
const oct_scaled_channels *oct_scaled_find(const oct_scaled_channels *list, size_t n, const char *name);
/* Divides x, f32 of dims[rank] in C order, by the factors, or multiplies by them if `again`. Does nothing if the
 * dimensions do not match. */
void oct_scaled_undo(const oct_scaled_channels *s, int rank, const int64_t *dims, bool again, float *x);

#endif
