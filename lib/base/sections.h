/* lib/base/sections.h -- the form of files that Octet writes for itself: parts of evaluations, checkpoints.
 *
 *     NAME VERSION\n
 *     u32 tag, u64 size, the bytes of a section; and so on
 *     u32 0, u64 8, u64 FNV-1a of all bytes before
 *
 * Numbers are little-endian (bytes.h). A file is checked as a whole before anything in it is used. */
#ifndef OCT_BASE_SECTIONS_H
#define OCT_BASE_SECTIONS_H

#include "base/bytes.h"
#include "base/io.h"

typedef struct oct_sections_form {
    const char *name;
    unsigned version;
    const char *what;  /* as messages call such a file: "a checkpoint" */
    const char *again; /* the hint where one cannot be used: how to make another */
} oct_sections_form;

typedef struct oct_sections_out {
    oct_out out; /* to give up: oct_out_abort */
    uint64_t hash;
} oct_sections_out;

/* OCT_EIO. */
oct_status oct_sections_create(oct_sections_out *s, const oct_sections_form *form, const char *path, oct_err *err);
/* Writes a section. tag: not 0. OCT_ENOMEM: memory ran out while `bytes` was filled. */
oct_status oct_sections_add(oct_sections_out *s, uint32_t tag, const oct_buf *bytes, oct_err *err);
/* Replaces the output by the file. Closes s in any case. */
oct_status oct_sections_commit(oct_sections_out *s, oct_err *err);

/* Checks the bytes of a file, which are borrowed. *sections: for oct_section_next, whose data are not bad.
 * OCT_EMALFORMED, with `label` and the form's hint: the file is another one, cut short or changed; OCT_EUNSUPPORTED:
 * another version of Octet wrote it. */
oct_status oct_sections_open(const oct_sections_form *form, const void *data, size_t size, const char *label,
                             oct_bytes *sections, oct_err *err);
/* Takes the next section. False: there is none left. */
bool oct_section_next(oct_bytes *sections, uint32_t *tag, oct_bytes *section);

#endif
