/* lib/data/readers/list.h -- a list of sample files: what the readers of folders, CSV files and single files build.
 * Private. */
#ifndef OCT_DATA_LIST_H
#define OCT_DATA_LIST_H

#include "data/readers/readers.h"
#include "data/sound/sound.h"

#include "base/mem.h"

typedef struct oct_entry {
    char *name;
    char **paths; /* one per input, then one per extra input; NULL where there is none */
    int64_t label;
} oct_entry;

typedef struct oct_list {
    oct_arena *arena; /* holds everything, the list too */
    oct_entry *v;
    size_t n, cap, at;
    size_t n_inputs, n_all; /* n_all: with the extra ones */
    size_t folders;         /* walked through */
    const oct_feed_ctx *ctx;
    oct_sounds sounds; /* of entry `at` */
} oct_list;

oct_list *oct_list_create(const oct_feed_ctx *ctx);
/* A new entry, unlabelled, without paths; NULL when out of memory. */
oct_entry *oct_list_add(oct_list *l, const char *name);

/* The reader's functions for a list. */
int64_t oct_list_count(void *self);
oct_status oct_list_next(void *self, bool want, oct_item *item, bool *end, oct_err *err);
uint64_t oct_list_stamp(void *self, uint64_t h);
oct_status oct_list_rewind(void *self, oct_err *err);
void oct_list_close(void *self);

/* The names in a folder, sorted by bytes, without hidden ones. */
typedef struct oct_names {
    char **v;
    size_t n, cap;
} oct_names;
/* OCT_EIO with the system's reason, OCT_ENOMEM. */
oct_status oct_list_dir(const char *path, oct_arena *arena, oct_names *names, oct_err *err);

/* Whether these are the names of an ONNX test case (input_0.pb) or of a folder of them (test_data_set_0). */
bool oct_is_testset(const oct_names *names);

#endif
