/* lib/api/folder/folder_recipe.h -- recipes: which files of a folder are models, what becomes of each, and what the
 * program that loads the folder wants.
 *
 * A recipe is a text of lines, `key value...`, with `#` before a word for a comment; those of share/recipes are built
 * in. docs/formats.md has the keys:
 *
 *     summary  an encoder for ...
 *     found    config.json               # a folder is of this kind if it has one of the files of each such line
 *     model    *decoder*.onnx weight-only
 *     variant  _q4 q4 weight-only/4      # how the result of a scheme is called
 *
 * Patterns are those of fnmatch(3) for the path in the folder, where a slash matches itself alone. One that begins with
 * a slash is a path in the configuration instead, and means the file that is named there: /model/decoder/filename. */
#ifndef OCT_API_FOLDER_RECIPE_H
#define OCT_API_FOLDER_RECIPE_H

#include "base/mem.h"

typedef struct oct_folder_recipe_list {
    const char **v;
    size_t n, cap;
} oct_folder_recipe_list;

typedef struct oct_folder_recipe_model {
    const char *pattern;
    const char *scheme, *sampled; /* a scheme of qconvert(1): without samples, and with them */
    const char *input;            /* only of a model that has an input of such a name; NULL: of any */
} oct_folder_recipe_model;

/* What a model's name may end in. */
typedef struct oct_folder_recipe_variant {
    const char *suffix, *word;
    oct_folder_recipe_list
        schemes; /* "dynamic", "weight-only/4", "weight-only/4/float16": the result of these is called so */
} oct_folder_recipe_variant;

/* Names of inputs or outputs that a model must have. One that begins with a slash is a path in the configuration, whose
 * texts are the names; %d in these counts layers. */
typedef struct oct_folder_recipe_ends {
    const char *pattern;
    bool outputs;
    oct_folder_recipe_list names;
} oct_folder_recipe_ends;

/* A value of a configuration that is set. */
typedef struct oct_folder_recipe_amend {
    const char *file, *path; /* path: names with slashes between them */
    bool data;               /* to which results have external data; else to the words of their variants */
} oct_folder_recipe_amend;

typedef struct oct_folder_recipe {
    const char *name;
    oct_arena *arena;
    int names;          /* 1: results are called by their variants; 0: as the models were */
    const char *config; /* NULL: none */
    const char *count;  /* a path in it: how many layers there are; NULL: none */
    const char *data;   /* how the loader wants files of external data to be called, where * is the model's name without
                           its ending; NULL: as the model says */
    oct_folder_recipe_list *found, leave;
    oct_folder_recipe_model *model;
    oct_folder_recipe_variant *variant;
    oct_folder_recipe_ends *ends;
    oct_folder_recipe_amend *amend;
    size_t n_found, n_model, n_variant, n_ends, n_amend;
    size_t cap_found, cap_model, cap_variant, cap_ends, cap_amend;
} oct_folder_recipe;

/* The name of the i-th recipe that is built in, and its summary; NULL: there are fewer. */
const char *oct_folder_recipe_builtin(size_t i, const char **summary);
/* Opens a recipe that is built in, or the file of one, whose path has a slash. OCT_EUSAGE: there is no such recipe, and
 * the hint names the nearest; OCT_EIO, OCT_EMALFORMED. */
oct_status oct_folder_recipe_open(const char *word, oct_folder_recipe **r, oct_err *err);
/* The same for a text; label: for messages. */
oct_status oct_folder_recipe_parse(const char *text, const char *label, oct_folder_recipe **r, oct_err *err);
void oct_folder_recipe_close(oct_folder_recipe *r); /* NULL allowed */

/* The variant that the name of a model says, and how long the name is without it and ".onnx"; NULL: none. */
const oct_folder_recipe_variant *oct_folder_recipe_variant_of(const oct_folder_recipe *r, const char *path,
                                                              size_t *stem);
/* The variant for what a scheme makes of a model whose floats are of that type; NULL: the recipe has no name for it. */
const oct_folder_recipe_variant *oct_folder_recipe_variant_for(const oct_folder_recipe *r, const char *scheme, int bits,
                                                               const char *floats);

#endif
