/* lib/api/files.h -- the files of a call: the model that is read, and that no output is an input. */
#ifndef OCT_API_FILES_H
#define OCT_API_FILES_H

#include "api/voice.h"
#include "base/document.h"
#include "base/json.h"

/* Loads a model, ONNX or .tflite, from `size` bytes at data if data is not NULL, and says what reading changed. */
oct_status oct_load_any(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err);

/* The same, and checks that its operators exist in its opset; says
 * it if that is newer than what is known. */
oct_status oct_load_checked(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err);

/* The same, by v.load where there is one. */
oct_status oct_load(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err);

/* The length of a model's path without its extension, .onnx or .tflite. */
size_t oct_model_stem(const char *path);

/* Fails before any work if `out` cannot be the output: it is one of the files, also through links; it matches one of
 * the patterns; it is a folder; or its folder does not exist. out NULL never fails. Inputs that only a list names are
 * noticed when the file is opened (oct_out_claim). in: n paths, which may be NULL. */
oct_status oct_check_output(const char *out, const char *const *in, size_t n, oct_err *err);
/* The same for the files of a model. */
oct_status oct_check_model_output(const char *out, const oct_model *m, oct_err *err);

/* Writes a text to a file. */
oct_status oct_write_text(const char *path, const oct_buf *text, oct_err *err);
/* Appends an argument, quoted for a shell. */
void oct_quote(oct_buf *b, const char *arg);

#endif
