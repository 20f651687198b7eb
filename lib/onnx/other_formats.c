/* lib/onnx/other_formats.c -- files of other formats that are often given by mistake. */
#include "onnx/tensor.h"

#include <string.h>

void oct_format_hint(const uint8_t *p, size_t n, oct_err *err)
{
    static const struct {
        const char *start, *hint;
    } known[] = {
        { "version https://git-lfs", "this is a Git LFS pointer: fetch the file itself with git lfs pull" },
        { "PK\003\004", "this is a zip archive (a PyTorch file?): export it to ONNX first" },
        { "\211HDF", "this is an HDF5 file (Keras?): export it to ONNX first" },
        { "\x1f\x8b", "this is gzip-compressed: unpack it first" },
        { "<", "this is HTML or XML: was the download redirected?" },
        { "{", "this is JSON: give the model in ONNX's binary format" },
    };
    for (size_t i = 0; i < OCT_COUNT(known); i++)
        if (n >= strlen(known[i].start) && memcmp(p, known[i].start, strlen(known[i].start)) == 0)
            oct_hint(err, "%s", known[i].hint);
    if (n > 8 && memcmp(p + 4, "ORTM", 4) == 0)
        oct_hint(err, "this is a model in ONNX Runtime's own format: give the .onnx file that it was made from");
}
