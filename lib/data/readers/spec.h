/* lib/data/readers/spec.h -- turns the SPECs of a user into files and their readers. Private to lib/data. */
#ifndef OCT_DATA_SPEC_H
#define OCT_DATA_SPEC_H

#include "data/readers/readers.h"

#include "base/mem.h"

typedef struct oct_leaf {
    const oct_reader *reader;
    char *path;
    void *self;  /* the open reader, or NULL */
    char *left;  /* what a closed reader has left out, or NULL; owned */
    char *other; /* the name of an array that feeds an input which is called otherwise, or NULL; owned */
} oct_leaf;

typedef struct oct_leaves {
    oct_leaf *v; /* in the arena */
    size_t n, cap;
} oct_leaves;

/* Appends the files of one SPEC, as the user wrote it: "-" is standard input, and "pipe:CMD" a command, which is given
 * to the shell unchanged. In other words, braces {000..127} and {a,b} and the wildcards of glob(7) are expanded, unless
 * a file of exactly this name exists; the results are names of files, whatever they look like. OCT_EIO: there is no
 * such file; OCT_EUSAGE: not a known kind of data. */
oct_status oct_spec_expand(const char *spec, oct_arena *arena, oct_leaves *leaves, oct_err *err);
/* Appends generated samples (synthetic.h). OCT_EUSAGE if there is a file of that name. */
oct_status oct_spec_synthetic(oct_arena *arena, oct_leaves *leaves, oct_err *err);
/* Adds those that the caller has (oct_read_given). */
oct_status oct_spec_given(oct_arena *arena, oct_leaves *leaves, oct_err *err);

#endif
