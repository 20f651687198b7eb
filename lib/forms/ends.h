/* lib/forms/ends.h -- inputs and outputs of a model that hold integers or 16-bit floats where the float model has float32.
 *
 * A real x of channel c stands in the file as round(x / scale[c] + zero[c]), in the range of the type; as float16 it stands as it is. What a
 * file says of it is its metadata `octet.ends` (docs/formats.md), a line for each end. */
#ifndef OCT_FORMS_ENDS_H
#define OCT_FORMS_ENDS_H

#include "base/buf.h"
#include "graph/graph.h"

#define OCT_ENDS_KEY "octet.ends"
enum { OCT_END_CHANNELS = 4 };

typedef struct oct_end {
    const char *name;
    bool output;
    oct_dtype type;  /* OCT_U8, OCT_S8 or OCT_F16 */
    bool nhwc;       /* channels are the last dimension, and dimension 1 in the float model */
    bool reversed;   /* channels are in the opposite order of the float model's */
    int axis;        /* of the float model's channels, where there are several */
    int n;           /* of scale and zero, in the float model's order of channels; 0: none */
    float scale[OCT_END_CHANNELS], zero[OCT_END_CHANNELS];
    /* For oct_end_close: the reals are computed from the integers by Sub and Div; else a QuantizeLinear of that scale and zero point goes
     * away, and a DequantizeLinear stands in front of other readers. */
    bool computed;
} oct_end;

/* The parameters of the quantizer that reads input e->name, or that makes output e->name, of a graph as files spell it, go into n, scale[0] and zero[0],
 * for e->type; n stays 0 where none is there. */
void oct_end_find(const oct_graph *g, oct_end *e);
/* Gives an input or output of float32 the type of e, in a graph as files spell it; it keeps its name. Needs e->n, but for OCT_F16.
 * OCT_EUNSUPPORTED for a value that a nested graph reads. */
oct_status oct_end_close(oct_graph *g, const oct_end *e, oct_err *err);
/* The opposite, around a model that was read: nodes that make what input e->name holds of the float model's input, or the reals of an output. Where
 * the graph has no such end it stays as it is. */
oct_status oct_end_reopen(oct_graph *g, const oct_end *e, oct_err *err);

/* What reads an input of a graph reads factor[c] * x + term[c] instead, of each of its n channels, dimension 1, after these were put in the opposite order
 * where `reversed`. */
oct_status oct_input_scale(oct_graph *g, const char *input, bool reversed, int n, const float *factor, const float *term, oct_err *err);

/* Appends a line of the metadata. Check b->failed. */
void oct_end_put(oct_buf *b, const oct_end *e);
/* Reads the metadata's text (NULL: none) into arena; lines that are not understood are passed over. OCT_ENOMEM. */
oct_status oct_ends_read(const char *text, oct_arena *arena, oct_end **ends, size_t *n, oct_err *err);

#endif
