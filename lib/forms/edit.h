/* lib/forms/edit.h -- adds values and nodes whose names are derived from others. */
#ifndef OCT_FORMS_EDIT_H
#define OCT_FORMS_EDIT_H

#include "graph/graph.h"

/* The node that follows `node` in the order, or the first one for -1; -1: there is none. */
int oct_edit_after(oct_graph *g, int node);
/* Adds a value or a constant named "<base><suffix>". The value has the shape of value `like` (-1: unknown). */
oct_status oct_edit_value(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int like, int *v,
                          oct_err *err);
oct_status oct_edit_const(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int rank,
                          const int64_t *dims, const void *data, int *v, oct_err *err);
/* The same for a tensor that is not copied. */
oct_status oct_edit_refer(oct_graph *g, const char *base, const char *suffix, const oct_tensor *t, int *v,
                          oct_err *err);
/* The same for a constant of rank 2 with these bytes. */
oct_status oct_edit_refer_matrix(oct_graph *g, const char *base, const char *suffix, oct_dtype t, size_t rows,
                                 size_t columns, const void *data, int *v, oct_err *err);
/* Whether the name of a value is known outside its graph, or in a subgraph. */
bool oct_edit_keeps(const oct_graph *g, int v);
/* Adds a node of the default domain, which is named after its output, because names of values are unique. node may be
 * NULL. */
oct_status oct_edit_node(oct_graph *g, const char *op, const int *in, int n_in, int out, int before, int *node,
                         oct_err *err);
/* Adds a node after value v that computes its squares, *to. */
oct_status oct_edit_square(oct_graph *g, int v, int *to, oct_err *err);
/* Changes the operator of a node, which keeps its name. op and domain are not copied; the domain is imported if
 * necessary. opset 0: that of the graph. */
oct_status oct_edit_become(oct_graph *g, int node, const char *op, const char *domain, int64_t opset, oct_err *err);
/* Whether a node is a QuantizeLinear or DequantizeLinear (op), of any domain, with a scale. */
bool oct_edit_is_quantizer(const oct_node *n, const char *op);
/* The output slot of a node that holds a value. */
int oct_edit_output_slot(const oct_graph *g, int node, int value);

#endif
