/* lib/quant/float_bytes.h -- what of a written model's bytes are still float: all layers may be int8 and the file nearly as large as before. */
#ifndef OCT_QUANT_FLOAT_BYTES_H
#define OCT_QUANT_FLOAT_BYTES_H

#include "quant/layers.h"

#define OCT_FLOAT_BYTES_SHARE 0.05 /* operators whose float constants take less of the file are not named */

/* The float constants of all nodes of an operator together. */
typedef struct oct_float_bytes {
    const char *op;     /* "" : constants that only nested graphs read */
    uint64_t bytes;
    double share;       /* of the file */
    size_t n;           /* how many constants */
    const char *largest; /* the name of the largest one */
    uint64_t most;       /* its bytes */
    const char *why;    /* why its reader stays float, as its layer says; "" if it is no layer */
} oct_float_bytes;

/* Finds the operators in g, which is written to a file of so many bytes, and in the graphs that its nodes hold, whose constants of 32 and 64-bit floats take
 * OCT_FLOAT_BYTES_SHARE of it or more, the most first. Scales and what belongs to integers is not counted. layers[n_layers]: of the conversion, for reasons. List
 * and texts are in arena, or belong to g and layers. */
oct_status oct_float_bytes_find(const oct_graph *g, uint64_t file, const oct_layer *layers, size_t n_layers, oct_arena *arena, oct_float_bytes **list, size_t *n,
                                oct_err *err);
/* Appends "41 % of its bytes are float: Gather (wte), because the target runs this operator in float; ..." for every report; nothing if n is 0. */
void oct_float_bytes_text(const oct_float_bytes *list, size_t n, oct_buf *out);

#endif
