/* lib/eval/part.h -- the file of a part of some work: of an evaluation, what some of the samples contributed, from which the whole is put together.
 *
 * docs/formats.md describes it. A part is written while its samples are run, a record each, so that memory does not grow with them; parts are read side by
 * side, in the order of the samples. A file is checked as a whole (length, checksum) before anything of it is believed, and every size in it
 * again where it is read. Other work that is divided has the same file, with a first line of its own (oct_part_form). */
#ifndef OCT_EVAL_PART_H
#define OCT_EVAL_PART_H

#include "base/buf.h"
#include "base/io.h"

typedef struct ev_bytes ev_bytes; /* part_bytes.h */

/* What it is a part of. */
typedef struct oct_part_form {
    const char *magic;      /* the first line of the file, with its end */
    const char *of, *other; /* "an evaluation", "another evaluation" */
    const char *made_by;    /* the command, up to the part: "qeval --shard" */
    const char *go;         /* what is the same in parts that go together */
} oct_part_form;
extern const oct_part_form oct_part_of_evaluation;

/* ---- writing ---- */

typedef struct oct_part_out {
    oct_out out;
    uint64_t hash, samples;
    int64_t last; /* index of the last sample */
} oct_part_out;

/* asked: what all parts have in common, a text; index of count: which part this is. OCT_EIO. */
oct_status oct_part_create(oct_part_out *p, const oct_part_form *form, const char *path, const char *asked, uint32_t index, uint32_t count, oct_err *err);
/* A sample, by its position in the data, which rises; or what else has a record. */
oct_status oct_part_add(oct_part_out *p, int64_t index, const oct_buf *record, oct_err *err);
/* The rest, which is no sample's; the file takes its place. Closes p either way. */
oct_status oct_part_commit(oct_part_out *p, const oct_buf *rest, oct_err *err);
void oct_part_abort(oct_part_out *p); /* after commit: does nothing */

/* ---- reading ---- */

typedef struct oct_part {
    const oct_part_form *form;
    oct_map map;
    const char *path; /* borrowed */
    char *asked;
    uint32_t index, count;
    uint64_t samples;
    const uint8_t *records, *rest;
    size_t n_records, n_rest; /* bytes */
} oct_part;

/* forms: those that may be, up to a NULL. path: borrowed. OCT_EMALFORMED: no part, cut short, or changed. */
oct_status oct_part_open(oct_part *p, const oct_part_form *const *forms, const char *path, oct_err *err);
/* The same of bytes in memory, which are borrowed; label: what messages call them. */
oct_status oct_part_parse(oct_part *p, const oct_part_form *const *forms, const void *data, size_t size, const char *label, oct_err *err);
void oct_part_close(oct_part *p);

/* Parts of one whole, in any order. */
typedef struct oct_parts {
    oct_part *v; /* by their index */
    size_t n;
    size_t *at;  /* [n]: bytes of records that were taken */
} oct_parts;

/* Opens them all. A part that is there twice, with the same bytes, counts once. OCT_EUSAGE, with the file and a remedy, where two files of a part
 * differ, one is missing, or is of another whole. */
oct_status oct_parts_open(oct_parts *p, const oct_part_form *const *forms, const char *const *path, size_t n, oct_err *err);
void oct_parts_close(oct_parts *p);
/* The next sample in the order of the data, and its part. *from NULL: there is no more. OCT_EMALFORMED. */
oct_status oct_parts_next(oct_parts *p, int64_t *index, ev_bytes *record, const oct_part **from, oct_err *err);
uint64_t oct_parts_samples(const oct_parts *p);

/* What is to be said of a part whose contents are not as they should be. */
oct_status oct_part_broken(const oct_part *p, const char *what, oct_err *err);

#endif
