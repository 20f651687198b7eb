/* provider/graph_bytes.h -- a graph that ONNX Runtime holds as an ONNX message. Large constants stay where they are:
 * they are inputs in the message, and listed as arrays beside it, which is what octet_model_load_graph and
 * octet_graph_parts take. */
#ifndef OCT_PROVIDER_GRAPH_BYTES_H
#define OCT_PROVIDER_GRAPH_BYTES_H

#include "external.h"
#include "octet/octet.h"
#include "ort_abi.h"

/* Bytes that grow. After a failure to grow nothing is added any more. */
typedef struct bytes {
    uint8_t *at;
    size_t n, cap;
    bool failed;
} bytes;

typedef struct graph_bytes {
    bytes message;          /* ModelProto */
    octet_array *constants; /* names and data are ONNX Runtime's, valid as long as the graph is, or those of files */
    size_t n_constants, cap_constants;
    mapped_file *files; /* that have data of constants */
    void *embedded;     /* an EPContext node's bytes, which constants refer to */
    char **unread;      /* [n_nodes]: why a node cannot be read; NULL: it is. Of a graph to ask about */
    size_t n_nodes;
} graph_bytes;

typedef enum graph_use {
    GRAPH_TO_RUN, /* all of it must be readable */
    GRAPH_TO_ASK  /* what cannot be read is left out: a node becomes one of an operator that nobody knows */
} graph_use;

/* Writes g and all that its nodes hold. Only a graph to ask about has the dimensions of values that are not in bodies.
 * They are what ONNX Runtime believes: it takes a file's word, and a file whose inputs were changed may still have the
 * old dimensions behind them, with which ONNX Runtime runs it all the same. *out is to be released with
 * graph_bytes_free, also after a failure. */
ort_status *graph_bytes_make(const ort_api *api, const ort_graph *g, graph_use use, graph_bytes *out);
void graph_bytes_free(graph_bytes *b);

/* Type and dimensions that ONNX Runtime believes of a value; an open dimension is -1. The rank is -1 if the value is no
 * tensor, or has more dimensions than an array, or none: ONNX Runtime also says that of a shape that nobody knows. */
ort_status *value_shape(const ort_api *api, const ort_value_info *v, octet_array *a);

/* The value of an attribute that is no graph and no tensor. *value is to be freed, also after a failure; there is room
 * for a byte behind it. */
ort_status *attr_read(const ort_api *api, const ort_attr *a, int type, void **value, size_t *size);

/* The bytes of an array; false: it has a type without a fixed size, or is too large. */
bool array_size(const octet_array *a, size_t *size);

#endif
