/* lib/api/folder/demands.h -- what the program that loads a folder wants of its models. */
#ifndef OCT_API_DEMANDS_H
#define OCT_API_DEMANDS_H

#include "api/folder/folder_plan.h"
#include "graph/graph.h"

/* How much alike two models must be. */
typedef enum oct_alike {
    OCT_ALIKE_MADE,     /* names, types and shapes of inputs and outputs in their order, and entries of metadata */
    OCT_ALIKE_RETYPED,  /* the same, but for types, which were to become others */
    OCT_ALIKE_PUBLISHED /* names and shapes in any order; a float may be another one */
} oct_alike;

/* Checks that `made` can stand for `source`, and that all its nodes take the types of their operands. Both are loaded;
 * shapes of `made` are inferred. OCT_EMALFORMED: the text says what differs. */
oct_status oct_demands_alike(const oct_model *source, oct_model *made, oct_alike how, oct_err *err);
/* The second part alone. */
oct_status oct_demands_types(oct_model *made, oct_err *err);
/* Says what the recipe wants of a model and the model does not have: calls note for each line, with what the model
 * lacks in words. */
oct_status oct_demands_missing(const oct_folder *f, const char *path, const oct_graph *g,
                               oct_status (*note)(void *arg, const char *text, oct_err *err), void *arg, oct_err *err);

#endif
