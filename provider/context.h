/* provider/context.h -- EPContext models: a part that was claimed stands in the model as one node, and its graph and
 * constants in a file beside the model, or in the node. ONNX Runtime neither reads nor rewrites them again, and the
 * file is mapped. The form, numbers little-endian:
 *
 *     head       64 bytes: "octet context 1\n", then u64: size of all, sum of what follows the sum, size of the
 *                message, number of constants, 0, 0
 *     constants  88 bytes each: u64 place of the name, u64 place of the data, u32 type, u32 rank, i64 dims[8]
 *     message    ModelProto, in which these constants are inputs
 *     names      each with a zero behind it
 *     data       each at a multiple of 64
 *
 * Places count from the head. The size of all is a multiple of 64. */
#ifndef OCT_PROVIDER_CONTEXT_H
#define OCT_PROVIDER_CONTEXT_H

#include "graph_bytes.h"
#include "provider_int.h"

/* Whether a node is an EPContext node of this provider. */
ort_status *context_is_ours(const ort_api *api, const ort_node *n, bool *ours);

/* Writes a graph and its constants in that form. *out is to be freed, also after a failure. */
ort_status *context_make(const ort_api *api, const graph_bytes *b, bytes *out);

/* An EPContext node in place of a fused node of g: with the bytes in it, or in a file that is written, as the session's
 * options say. ONNX Runtime releases the node. */
ort_status *context_node(const provider *p, const ort_graph *g, const ort_node *fused, const bytes *of,
                         ort_node **node);

/* Reads what such a node of g holds. Constants are in out->files, or in out->embedded. *out is to be released with
 * graph_bytes_free, also after a failure. */
ort_status *context_read(const provider *p, const ort_graph *g, const ort_node *n, graph_bytes *out);

#endif
