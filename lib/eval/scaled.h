/* lib/eval/scaled.h -- what a model says of values whose channels hold more or less than the float model's, since layers were scaled against
 * each other (the metadata `octet.scaled`, docs/formats.md). */
#ifndef OCT_EVAL_SCALED_H
#define OCT_EVAL_SCALED_H

#include "base/buf.h"
#include "base/mem.h"

#include <stdint.h>

#define OCT_SCALED_KEY "octet.scaled"

typedef struct oct_scaled_channels {
    const char *name; /* of the value */
    int axis;         /* the dimension of its channels */
    size_t n;
    const float *factor; /* [n]: what the float model's channels were multiplied by */
} oct_scaled_channels;

/* Appends a line of the metadata. A name that does not fit one, or is no UTF-8, is left out. Check b->failed. */
void oct_scaled_put(oct_buf *b, const oct_scaled_channels *s);
/* Reads the metadata's text (NULL: none) into arena; lines that are not understood are passed over. OCT_ENOMEM. */
oct_status oct_scaled_read(const char *text, oct_arena *arena, oct_scaled_channels **list, size_t *n, oct_err *err);
/* The entry of a value, or NULL. */
const oct_scaled_channels *oct_scaled_find(const oct_scaled_channels *list, size_t n, const char *name);
/* Divides x, f32 of dims[rank] in C order, by the factors; multiplies where `again`. Does nothing where dimensions differ. */
void oct_scaled_undo(const oct_scaled_channels *s, int rank, const int64_t *dims, bool again, float *x);

#endif
