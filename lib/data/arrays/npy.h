/* lib/data/arrays/npy.h -- the header of an .npy file: element type, order and shape. */
#ifndef OCT_DATA_NPY_H
#define OCT_DATA_NPY_H

#include "base/buf.h"
#include "data/text/interned.h"
#include "data/arrays/array_files.h"

typedef struct oct_npy {
    oct_dtype dtype;
    bool fortran;
    int rank;
    int64_t dims[OCT_ARRAY_RANK];
    int64_t count; /* elements */
    size_t offset; /* of the first element */
    size_t bytes;  /* of all elements */
    size_t text;   /* OCT_STRING: bytes of an element, which is filled up with zeros */
    bool utf32;    /* OCT_STRING: characters of 4 bytes, little-endian; else bytes */
} oct_npy;

/* The size of the header in bytes, from the first 12 bytes of the file, of which n are available; 0 if they do not
 * begin an .npy file. At most 10 + 65535; longer headers are refused. */
size_t oct_npy_header_size(const void *p, size_t n);

/* Reads a header of n bytes or more; messages do not name the file (use oct_within). OCT_EMALFORMED, or
 * OCT_EUNSUPPORTED for big-endian, structured, string and object arrays. Does not look at the data. */
oct_status oct_npy_parse(const void *p, size_t n, oct_npy *h, oct_err *err);
/* The same for callers who take OCT_STRING, too. */
oct_status oct_npy_parse_any(const void *p, size_t n, oct_npy *h, oct_err *err);
/* Bytes of an element of the file. */
size_t oct_npy_element(const oct_npy *h);
/* The texts of n elements of a file of strings, as UTF-8. OCT_EMALFORMED: a number that is no character. */
oct_status oct_npy_texts(const oct_npy *h, const uint8_t *data, int64_t n, oct_interned *texts, oct_str *to,
                         oct_err *err);

/* Appends a header of format 1.0, padded so that it takes a multiple of 64 bytes and at least min_size.
 * False for a type numpy does not have. */
bool oct_npy_header(oct_buf *out, oct_dtype dtype, int rank, const int64_t *dims, size_t min_size);
/* The same for texts of `width` characters of 4 bytes, little-endian; shorter texts are padded with zeros. */
bool oct_npy_header_text(oct_buf *out, size_t width, int rank, const int64_t *dims, size_t min_size);
/* Appends n texts as such a file has them, with its header. Bytes that are no
 * UTF-8 become U+FFFD. False: memory ran out. */
bool oct_npy_put_texts(oct_buf *out, const oct_str *text, int64_t n, int rank, const int64_t *dims);

/* Copies n elements of axis 0, from `first` on, of Fortran-ordered data (rank >= 1) into dst, in C order. */
void oct_npy_gather(const oct_npy *h, const uint8_t *data, int64_t first, int64_t n, void *dst);

#endif
