/* lib/base/json_tree.h -- reads JSON as a tree, by jansson, with messages for what is not as expected. Without jansson
 * every text is refused. */
#ifndef OCT_BASE_JSON_TREE_H
#define OCT_BASE_JSON_TREE_H

#include "base/status.h"

/* A node of a tree, borrowed from its root, which is released by oct_tree_free. NULL: absent. */
typedef struct json_t oct_tree;

/* The root, which must be an object. OCT_EMALFORMED, "label:line:column: reason", also for duplicate names;
 * OCT_EUNSUPPORTED without jansson. */
oct_status oct_tree_parse(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err);
void oct_tree_free(oct_tree *root); /* NULL allowed */
/* The same errors for a text that is no JSON of any kind: it may be a list, names may repeat, and from a name with
 * U+0000 on nothing is looked at. */
oct_status oct_tree_check(const char *text, size_t size, const char *label, oct_err *err);

bool oct_tree_is_object(const oct_tree *t);
bool oct_tree_is_list(const oct_tree *t);
/* The number of members of an object or a list; 0 for others. */
size_t oct_tree_count(const oct_tree *t);
oct_tree *oct_tree_at(const oct_tree *list, size_t i);
oct_tree *oct_tree_member(const oct_tree *object, const char *name);
/* Walks the members of an object in their order: *at begins as NULL. False at the end. */
bool oct_tree_next(oct_tree *object, void **at, const char **name, oct_tree **member);

/* NULL and false for what is none. */
const char *oct_tree_text(const oct_tree *t);
bool oct_tree_number(const oct_tree *t, double *v);
/* true or false, also as the texts "True" and "False" of Python. */
bool oct_tree_bool(const oct_tree *t, bool *v);

#endif
