/* lib/forms/edit.h -- adding values and nodes that are named after what they stand for. */
#ifndef OCT_FORMS_EDIT_H
#define OCT_FORMS_EDIT_H

#include "graph/graph.h"

/* The node that stands behind `node` in the order, or the first for -1; -1: none. */
int oct_edit_after(oct_graph *g, int node);
/* A value or constant named "<base><suffix>"; the value has the shape of value `like` (-1: none yet). */
oct_status oct_edit_value(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int like, int *v, oct_err *err);
oct_status oct_edit_const(oct_graph *g, const char *base, const char *suffix, oct_dtype t, int rank, const int64_t *dims, const void *data,
                          int *v, oct_err *err);
/* The same, of a tensor that is referred to instead of copied. */
oct_status oct_edit_refer(oct_graph *g, const char *base, const char *suffix, const oct_tensor *t, int *v, oct_err *err);
/* The same, of rank 2, of these bytes. */
oct_status oct_edit_refer_matrix(oct_graph *g, const char *base, const char *suffix, oct_dtype t, size_t rows, size_t columns, const void *data,
                                 int *v, oct_err *err);
/* Whether the name of a value is known outside of its graph, or in one that a node holds. */
bool oct_edit_keeps(const oct_graph *g, int v);
/* A node of the default domain, named by what it makes, since names of values differ. node may be NULL. */
oct_status oct_edit_node(oct_graph *g, const char *op, const int *in, int n_in, int out, int before, int *node, oct_err *err);
/* A node behind value v that makes its squares, *to. */
oct_status oct_edit_square(oct_graph *g, int v, int *to, oct_err *err);
/* Makes a node another operator, under its name; op and domain are kept by reference, the domain is imported if it was not. opset 0: the graph's. */
oct_status oct_edit_become(oct_graph *g, int node, const char *op, const char *domain, int64_t opset, oct_err *err);
/* The slot at which a node makes a value. */
int oct_edit_output_slot(const oct_graph *g, int node, int value);

#endif
