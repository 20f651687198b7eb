/* lib/forms/forms_write.h -- quantized values written as files spell them. */
#ifndef OCT_FORMS_WRITE_H
#define OCT_FORMS_WRITE_H

#include "graph/graph.h"

/* Nodes that compute on 16-bit floats. */
typedef struct oct_half_opts {
    const oct_dtype *type; /* by node: OCT_F16, OCT_BF16, or OCT_UNDEFINED: on what it did; nodes from n_types on, too */
    size_t n_types;
    oct_dtype ends;        /* what graph inputs and outputs of float32 become; OCT_UNDEFINED: they stay */
} oct_half_opts;

/* Writes their types, and a Cast for each value and type that the other side wants. Graphs that nodes hold are left alone. */
oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err);
/* Whether input `slot` has the type that the operator computes on: not Resize's scales. */
bool oct_half_follows(const oct_node *n, int slot);

#endif
