/* lib/api/folder/demands.h -- what the program that loads a folder wants of its models. */
#ifndef OCT_API_DEMANDS_H
#define OCT_API_DEMANDS_H

#include "api/folder/folder_plan.h"

/* Checks that `made` can stand for `source`: it has the inputs and outputs in the same order, with the same names and
 * shapes and, with `types`, element types; it has the entries of metadata; and all its nodes take the types of their
 * operands. Both are loaded; shapes of `made` are inferred. OCT_EMALFORMED: the text says what differs. */
oct_status oct_demands_alike(const oct_model *source, oct_model *made, bool types, oct_err *err);
/* Says what the recipe wants of a model and the model does not have: calls note for each line, with what the model
 * lacks in words. */
oct_status oct_demands_missing(const oct_folder *f, const char *path, const oct_graph *g,
                               oct_status (*note)(void *arg, const char *text, oct_err *err), void *arg, oct_err *err);

#endif
