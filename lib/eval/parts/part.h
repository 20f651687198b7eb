/* lib/eval/parts/part.h -- the file of a part of an evaluation: the contributions of some of the samples, from which
 * the whole result is computed. docs/formats.md describes it.
 *
 * A part is written while its samples run, a section (sections.h) each, so that memory does not grow with their number.
 * Parts are read side by side, in the order of the samples. */
#ifndef OCT_EVAL_PART_H
#define OCT_EVAL_PART_H

#include "base/sections.h"

/* ---- writing ---- */

typedef struct oct_part_out {
    oct_sections_out file;
    int64_t last; /* the index of the last sample */
} oct_part_out;

/* asked: a text that all parts have in common. index of count: which part this is. OCT_EIO. */
oct_status oct_part_create(oct_part_out *p, const char *path, const char *asked, uint32_t index, uint32_t count,
                           oct_err *err);
/* Adds the record of a sample. index: its position in the data, which must increase. */
oct_status oct_part_add(oct_part_out *p, int64_t index, const oct_buf *record, oct_err *err);
/* Writes the rest, which belongs to no sample, and replaces the output by the file. Closes p in any case. */
oct_status oct_part_commit(oct_part_out *p, const oct_buf *rest, oct_err *err);
void oct_part_abort(oct_part_out *p); /* does nothing after a commit */

/* ---- reading ---- */

typedef struct oct_part {
    oct_map map;
    const char *path;  /* borrowed */
    const char *asked; /* in the map */
    uint32_t index, count;
    uint64_t samples;
    oct_bytes left; /* sections of samples that have not been read */
    oct_bytes rest; /* what belongs to no sample */
} oct_part;

/* The same for bytes in memory, which are borrowed. label: their name in messages. */
oct_status oct_part_parse(oct_part *p, const void *data, size_t size, const char *label, oct_err *err);
void oct_part_close(oct_part *p);

/* Parts of the same whole, given in any order. */
typedef struct oct_parts {
    oct_part *v; /* by index */
    size_t n;
} oct_parts;

/* Opens all parts. A part that is given twice with the same bytes counts once. OCT_EUSAGE, with the file and a remedy:
 * two files of the same part differ, a part is missing, or one belongs to another whole. */
oct_status oct_parts_open(oct_parts *p, const char *const *path, size_t n, oct_err *err);
void oct_parts_close(oct_parts *p);
/* The next sample in the order of the data, and its part. *from is NULL after the last. OCT_EMALFORMED. */
oct_status oct_parts_next(oct_parts *p, int64_t *index, oct_bytes *record, const oct_part **from, oct_err *err);
uint64_t oct_parts_samples(const oct_parts *p);

/* The error that the contents of a part are not valid. */
oct_status oct_part_broken(const oct_part *p, const char *what, oct_err *err);

#endif
