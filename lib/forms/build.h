/* lib/forms/build.h -- adds several nodes in a row; errors are checked once, at the end. */
#ifndef OCT_FORMS_BUILD_H
#define OCT_FORMS_BUILD_H

#include "graph/graph.h"

/* Where nodes are added: before node `before` (-1: at the end). The first error is kept in status and in err. After it
 * nothing is added, and the calls return value 0. */
typedef struct oct_builder {
    oct_graph *g;
    int before;
    oct_status status;
    oct_err *err;
} oct_builder;

/* Keeps a status. Returns whether there was no error so far. */
bool oct_build_good(oct_builder *b, oct_status s);

/* Adds a node of the default domain that computes a new value, which is returned: "<base><suffix>", with this type and
 * unknown shape. node (may be NULL): the index of the node. */
int oct_build(oct_builder *b, const char *op, const char *base, const char *suffix, oct_dtype type, const int *in,
              int n_in, int *node);
/* The same for a float32 value, with one input (second < 0) or two. */
int oct_build_real(oct_builder *b, const char *op, const char *base, const char *suffix, int first, int second);
/* Adds a node that computes the existing value `out`. */
void oct_build_to(oct_builder *b, const char *op, const int *in, int n_in, int out, int *node);
/* Adds a Split of a float32 value along its last dimension. */
void oct_build_split(oct_builder *b, const char *base, int v, const int64_t sizes[2], const char *const suffix[2],
                     int part[2]);

/* Constants "<base><suffix>". f32: data with rank and dims, which are copied; n int64. */
int oct_build_const(oct_builder *b, const char *base, const char *suffix, oct_dtype type, int rank, const int64_t *dims,
                    const void *data);
int oct_build_list(oct_builder *b, const char *base, const char *suffix, const int64_t *i, int64_t n);

/* Attributes of such a node. */
void oct_build_int(oct_builder *b, int node, const char *name, int64_t i);
void oct_build_ints(oct_builder *b, int node, const char *name, const int64_t *i, int n);

#endif
