/* lib/tflite/flat_read.h -- a flatbuffer from anywhere, read with checks: whatever the bytes are, nothing outside them
 * is touched. What is absent or wrong reads as nothing; the first fault sticks and is asked for when a part is read
 * (oct_flat_in.fault). */
#ifndef OCT_TFLITE_FLAT_READ_H
#define OCT_TFLITE_FLAT_READ_H

#include "base/status.h"

typedef struct oct_flat_in {
    const uint8_t *data;
    size_t size;
    uint64_t left;     /* bytes that may still be read: few bytes that are referred to often would read as many */
    const char *fault; /* what is wrong, in words; NULL: nothing yet */
} oct_flat_in;

/* A table; at 0: absent, and so are its fields. */
typedef struct oct_flat_node {
    size_t at, layout, slots, bytes;
} oct_flat_node;

/* A vector; p NULL: absent. */
typedef struct oct_flat_list {
    const uint8_t *p; /* of any alignment */
    size_t at, n;     /* where it begins; its elements */
} oct_flat_list;

/* The buffer's root. data is borrowed. */
oct_flat_node oct_flat_root(oct_flat_in *f, const void *data, size_t size);
/* Whether a field is there. */
bool oct_flat_has(oct_flat_in *f, const oct_flat_node *t, int slot);
/* A number of 1, 4 or 8 bytes; without a sign. */
uint64_t oct_flat_number(oct_flat_in *f, const oct_flat_node *t, int slot, int bytes, uint64_t absent);
oct_flat_node oct_flat_child(oct_flat_in *f, const oct_flat_node *t, int slot);
/* A vector of elements of `bytes` bytes (of tables: 4). */
oct_flat_list oct_flat_elements(oct_flat_in *f, const oct_flat_node *t, int slot, size_t bytes);
/* The same of bytes that are not read now. */
oct_flat_list oct_flat_bytes(oct_flat_in *f, const oct_flat_node *t, int slot);
/* Table i of a vector of tables. */
oct_flat_node oct_flat_element(oct_flat_in *f, const oct_flat_list *l, size_t i);
/* A text, borrowed; "" where it is absent. */
const char *oct_flat_text(oct_flat_in *f, const oct_flat_node *t, int slot);

#endif
