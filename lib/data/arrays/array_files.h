/* lib/data/arrays/array_files.h -- arrays (base/array.h) from files. */
#ifndef OCT_DATA_ARRAY_FILES_H
#define OCT_DATA_ARRAY_FILES_H

#include "base/array.h"

enum { OCT_DEFLATE_RATIO = 1032 }; /* largest ratio that deflate can reach: a header that claims more is wrong */

/* A whole .npy file, copied (C order; Fortran order is rearranged). */
oct_status oct_npy_load(const char *path, oct_array *a, oct_err *err);

/* An ONNX TensorProto file (input_0.pb), copied. *name (may be NULL) receives its name, to be released with
 * oct_free; "" when it has none. All numeric types; strings and external data are OCT_EUNSUPPORTED. */
oct_status oct_pb_load(const char *path, oct_array *a, char **name, oct_err *err);

#endif
