/* lib/data/spec.h -- from what a user writes to files and their readers. Private to lib/data. */
#ifndef OCT_DATA_SPEC_H
#define OCT_DATA_SPEC_H

#include "data/reader.h"

#include "base/mem.h"

typedef struct oct_leaf {
    const oct_reader *reader;
    char *path;
    void *self; /* the open reader, or NULL */
} oct_leaf;

typedef struct oct_leaves {
    oct_leaf *v; /* in the arena */
    size_t n, cap;
} oct_leaves;

/* Appends the files of one SPEC, a word of the user: "-" is standard input and "pipe:CMD" a command, which goes to the shell as it is;
 * of other words braces {000..127} and {a,b} and the wildcards of glob(7) are expanded where no file
 * has the very name, and what they give are names of files, whatever they look like. OCT_EIO: there is no such file; OCT_EUSAGE: not a kind of data that is known. */
oct_status oct_spec_expand(const char *spec, oct_arena *arena, oct_leaves *leaves, oct_err *err);

#endif
