/* lib/tflite/tflite.h -- a graph as a .tflite model. What quantization decided stays as it is: this is a mapping.
 *
 * Operators on pictures have the channels last in .tflite. Inputs that they read get that order, and so do outputs that
 * they make; the notes say so, and name each TRANSPOSE that had to be added. */
#ifndef OCT_TFLITE_TFLITE_H
#define OCT_TFLITE_TFLITE_H

#include "tflite/tfl_model.h"

typedef struct oct_tflite {
    oct_tfl_model model;
    oct_graph *read; /* holds what the model borrows */
    oct_arena *arena;
    oct_buf notes; /* lines of text: ends whose order of axes changed, transposes that were added */
} oct_tflite;

/* Makes a .tflite model of a graph, which is not changed and must outlive it. description: who made it. Call
 * oct_tflite_free also after a failure. OCT_EUNSUPPORTED names the first node that cannot be written, and a remedy. */
oct_status oct_tflite_make(const oct_graph *g, const char *description, oct_tflite *t, oct_err *err);
void oct_tflite_free(oct_tflite *t);

/* Makes nodes that spell a Gelu by Erf one node: .tflite has no Erf, and between them values would be quantized. The
 * graph can be run and made a .tflite model, but must not be saved. Constants must be folded. */
oct_status oct_tflite_join(oct_graph *g, oct_err *err);

#endif
