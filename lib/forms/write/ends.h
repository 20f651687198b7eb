/* lib/forms/write/ends.h -- inputs and outputs of a model that hold integers or 16-bit floats where the float model has
 * float32.
 *
 * A real x of channel c stands in the file as round(x / scale[c] + zero[c]), in the range of the type; as float16 it
 * stands as it is. What a file says of it is its metadata `octet.ends` (docs/formats.md), a line for each end. */
#ifndef OCT_FORMS_ENDS_H
#define OCT_FORMS_ENDS_H

#include "base/buf.h"
#include "graph/graph.h"

#define OCT_ENDS_KEY "octet.ends"
enum { OCT_END_CHANNELS = 4 };

typedef struct oct_end {
    const char *name;
    bool output;
    oct_dtype type; /* OCT_U8, OCT_S8 or OCT_F16 */
    bool nhwc;      /* the channels are the last dimension here, and dimension 1 in the float model */
    bool reversed;  /* the channels are in the opposite order compared with the float model */
    int axis;       /* the dimension of the channels in the float model, if there are several scales */
    int n;          /* how many scales and zeros there are, in the float model's order of channels; 0: none */
    float scale[OCT_END_CHANNELS], zero[OCT_END_CHANNELS];
    /* For oct_end_close. true: Sub and Div compute the float values from the integers. false: a QuantizeLinear with
     * that scale and zero point is removed, and other readers get a DequantizeLinear. */
    bool computed;
} oct_end;

/* Finds the quantizer that reads input e->name, or computes output e->name, in a graph as in files, and stores its
 * parameters in n, scale[0] and zero[0], for e->type. n stays 0 if there is none. */
void oct_end_find(const oct_graph *g, oct_end *e);
/* Changes a float32 input or output to the type of e, in a graph as in files. It keeps its name. Needs e->n, except for
 * OCT_F16. OCT_EUNSUPPORTED: a subgraph reads the value. */
oct_status oct_end_close(oct_graph *g, const oct_end *e, oct_err *err);
/* The opposite, for a model that was read: adds nodes that compute the integers of input e->name from the float model's
 * input, or the float values of an output. Does nothing if the graph has no such input or output. */
oct_status oct_end_reopen(oct_graph *g, const oct_end *e, oct_err *err);
/* Gives an input or output the dimensions of the same one elsewhere, where the two differ in that channels are
 * dimension 1 in one and the last dimension in the other: adds a Transpose, and *turned is true. The first dimension
 * does not count. */
oct_status oct_end_turn(oct_graph *g, const char *name, bool output, const oct_shape *like, bool *turned, oct_err *err);

/* Makes the readers of an input read factor[c] * x + term[c] for each of its n channels (dimension `axis`), after the
 * order of the channels was reversed if `reversed`. */
oct_status oct_input_scale(oct_graph *g, const char *input, int axis, bool reversed, int n, const float *factor,
                           const float *term, oct_err *err);

/* Appends a line of the metadata. Check b->failed. */
void oct_end_put(oct_buf *b, const oct_end *e);
/* Parses the metadata (NULL: there are none) into arena. Lines that are not understood are skipped. OCT_ENOMEM. */
oct_status oct_ends_read(const char *text, oct_arena *arena, oct_end **ends, size_t *n, oct_err *err);

#endif
