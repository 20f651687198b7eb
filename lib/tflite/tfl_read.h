/* lib/tflite/tfl_read.h -- the bytes of a .tflite file as a model in memory. */
#ifndef OCT_TFLITE_TFL_READ_H
#define OCT_TFLITE_TFL_READ_H

#include "tflite/tfl_model.h"

/* Whether bytes are those of a .tflite file, by its identifier. */
bool oct_tfl_is_model(const void *data, size_t size);

/* Reads the first subgraph of a file. data is borrowed: it must outlive the model, whose names, scales and constants
 * are in it where they are aligned. arena: holds the rest, and is the model's.
 *
 * Of what was read one may rely on this:
 *   - Indices in operators and ends are those of tensors, or -1 for an absent input. Each operator stands behind those
 *     that make its operands; a tensor is made once, and neither an input, a constant nor a variable is made.
 *   - A constant has as many bytes as its type and shape say (types of fixed size), aligned to its elements. An empty
 *     one has data, too.
 *   - quant is set of integers alone: scales are finite and above 0, zero points in the range of the type, and several
 *     scales are as many as dimension `axis` has.
 *   - Versions and codes are as in the file, and may be unknown. Options have the fields that the file states, with the
 *     widths of schema_options.inc.
 * Inputs and outputs have the names of the file's signature, else those of their tensors, which may be "".
 *
 * path is for messages; NULL: they do not name it. OCT_EMALFORMED names the tensor or operator; OCT_EUNSUPPORTED:
 * sparse tensors, scales by blocks, rank above 8, another version of the schema; OCT_ENOMEM. Memory is bounded by a
 * multiple of the file's size.
 */
oct_status oct_tfl_model_read(const void *data, size_t size, const char *path, oct_arena *arena, oct_tfl_model *m,
                              oct_err *err);

/* "operator #3 (CONV_2D, 'conv1')" into dst: its place, its name and that of its first output. */
const char *oct_tfl_operator_text(const oct_tfl_model *m, size_t op, char *dst, size_t size);

#endif
