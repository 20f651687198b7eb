/* lib/quant/budget/float_bytes.h -- what of a written model's bytes are still float: all layers may be int8 and the
 * file nearly as large as before. */
#ifndef OCT_QUANT_FLOAT_BYTES_H
#define OCT_QUANT_FLOAT_BYTES_H

#include "base/buf.h"
#include "graph/graph.h"

#define OCT_FLOAT_BYTES_SHARE 0.05 /* operators whose float constants take less of the file are not named */

/* The float constants of all nodes of an operator together. */
typedef struct oct_float_bytes {
    const char *op; /* "" : constants that only nested graphs read */
    uint64_t bytes;
    double share;        /* of the file */
    size_t n;            /* how many constants */
    const char *largest; /* the name of the largest one */
    uint64_t most;       /* its bytes */
    const char *reader;  /* the name of the node that reads it first; NULL: none does */
    const char *names;   /* those that take OCT_FLOAT_BYTES_SHARE of all float bytes, or else the largest one */
    const char *why;     /* why that node stayed float, or NULL; the caller sets it, for nodes that are no layers */
} oct_float_bytes;

/* Finds the operators in g, which is written to a file of so many bytes, and in the graphs that its nodes hold, whose
 * constants of 32 and 64-bit floats, and with halves of 16-bit ones, take OCT_FLOAT_BYTES_SHARE of it or more, the most
 * first. Scales and what else belongs to integers is not counted. The list is in arena, names belong to g. */
oct_status oct_float_bytes_find(const oct_graph *g, uint64_t file, bool halves, oct_arena *arena,
                                oct_float_bytes **list, size_t *n, oct_err *err);
/* Appends "41 % of the file is float: Gather (wte: the table is small), Conv (conv1.weight and others)" for every
 * report; nothing if n is 0. */
void oct_float_bytes_text(const oct_float_bytes *list, size_t n, oct_buf *out);

#endif
