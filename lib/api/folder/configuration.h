/* lib/api/folder/configuration.h -- the JSON files of a folder: what stands at a path, and setting it without touching
 * anything else of the text. */
#ifndef OCT_API_CONFIGURATION_H
#define OCT_API_CONFIGURATION_H

#include "api/folder/listing.h"
#include "base/buf.h"
#include "base/json_tree.h"

typedef struct oct_configuration {
    const char *label; /* FOLDER/file, for messages */
    char *text;
    size_t size;
    oct_tree *root;
} oct_configuration;

/* Reads a file of the folder, of at most 64 MB. OCT_EIO: it is not there. label in the arena. */
oct_status oct_configuration_read(const oct_listing *l, const char *file, oct_arena *arena, oct_configuration *c,
                                  oct_err *err);
void oct_configuration_close(oct_configuration *c);

/* Calls fn for each text at a path, "/model/decoder/filename", where * is any member; of an object or list there, for
 * each text in it. at: where it stands. */
typedef oct_status (*oct_configuration_fn)(void *arg, const char *text, const char *at, oct_err *err);
oct_status oct_configuration_texts(const oct_configuration *c, const char *path, oct_configuration_fn fn, void *arg,
                                   oct_err *err);
/* The number at such a path; `other` where there is none. */
double oct_configuration_number(const oct_configuration *c, const char *path, double other);
/* Whether something stands there. */
bool oct_configuration_has(const oct_configuration *c, const char *path);

/* Appends the text of a JSON object with the value at a path, "a/b" without a slash before it, replaced or added. text:
 * valid JSON; value: the text of a value. All else stays as it is. A name that the text spells with escapes is not
 * found: then the result has it twice, which oct_tree_parse refuses. */
void oct_json_set(const char *text, const char *path, const char *value, oct_buf *out);

#endif
