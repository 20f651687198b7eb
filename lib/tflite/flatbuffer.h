/* lib/tflite/flatbuffer.h -- a flatbuffer, written forwards: a table comes before what it refers to, whose places are
 * filled in when that is written. Offsets count from the beginning of the buffer. */
#ifndef OCT_TFLITE_FLATBUFFER_H
#define OCT_TFLITE_FLATBUFFER_H

#include "base/buf.h"

enum { OCT_FLAT_SLOTS = 16, OCT_FLAT_LAYOUTS = 64 };

/* A field of a table. bytes 1 or 4: a number, its bits in `bits`; 0: an offset, to be filled in by oct_flat_point. */
typedef struct oct_flat_field {
    int slot, bytes;
    uint32_t bits;
} oct_flat_field;

typedef struct oct_flat {
    oct_buf b;
    size_t layout[OCT_FLAT_LAYOUTS]; /* where tables' layouts stand that later tables can share */
    size_t n_layouts;
} oct_flat;

/* Writes a table of n fields, in increasing order of their slots. at[slot] becomes the place of each field. Returns the
 * table's place. */
size_t oct_flat_table(oct_flat *f, const oct_flat_field *field, size_t n, size_t at[OCT_FLAT_SLOTS]);
/* Makes the offset at a place refer to another place, which is behind it. */
void oct_flat_point(oct_flat *f, size_t at, size_t to);
/* Writes a vector of n elements of 1, 4 or 8 bytes. data NULL: n offsets to be filled in. Returns its place; the
 * elements stand 4 bytes behind it. */
size_t oct_flat_vector(oct_flat *f, const void *data, size_t n, size_t bytes);
size_t oct_flat_string(oct_flat *f, const char *text);
/* Adds zeros until `ahead` bytes behind the end the place is a multiple of `align`. */
void oct_flat_align(oct_flat *f, size_t align, size_t ahead);

#endif
