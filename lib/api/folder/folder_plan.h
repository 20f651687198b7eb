/* lib/api/folder/folder_plan.h -- what is in a folder, by a recipe: its models, the other variants of these, and the
 * rest. */
#ifndef OCT_API_FOLDER_PLAN_H
#define OCT_API_FOLDER_PLAN_H

#include "api/folder/configuration.h"
#include "api/folder/folder_recipe.h"
#include "api/voice.h"

/* A model that others are made from. */
typedef struct oct_folder_model {
    const oct_listed *file;
    const char *name; /* its path without ".onnx" and the suffix of a variant */
    const oct_folder_recipe_model *line;
    const oct_folder_recipe_variant *given; /* the variant that the file is itself; NULL: the name says none */
    /* From oct_folder_look: */
    const char *floats; /* "float32", "float16", "bfloat16": the type of most of its constants */
    const char **data;  /* [n_data]: its files of external data, real paths */
    size_t n_data;
    uint64_t bytes; /* with these */
} oct_folder_model;

/* A file that is another variant of a model, or of none that is there. */
typedef struct oct_folder_variant {
    const oct_listed *file;
    const oct_folder_recipe_variant *of;
    const oct_folder_model *model; /* NULL: its float model is not there */
} oct_folder_variant;

typedef struct oct_folder {
    oct_arena *arena;
    oct_listing listing;
    oct_folder_recipe *recipe;
    oct_configuration configuration; /* root NULL: the recipe names none */
    oct_folder_model *model;
    oct_folder_variant *variant;
    const oct_listed **unknown; /* models that no line of the recipe names */
    size_t n_model, n_variant, n_unknown, cap_model, cap_variant, cap_unknown;
} oct_folder;

/* Reads a folder by a recipe; NULL, "auto": the first built-in one that the folder fits. Call oct_folder_close also
 * after a failure. OCT_EUSAGE: there is no such recipe; the folder fits none, or not this one, and the text says what
 * was looked for; there are two float models of one name. OCT_EUNSUPPORTED: there is no float model. OCT_EIO: the
 * configuration names a file that is not there. */
oct_status oct_folder_open(oct_folder *f, const char *path, const char *recipe, oct_err *err);
void oct_folder_close(oct_folder *f);
/* Loads each model, and finds what the plan needs to know of it. Errors of loading name the file. */
oct_status oct_folder_look(oct_folder *f, oct_voice v, oct_err *err);
/* Whether a pattern of the recipe means that file: by its path, or as the configuration names it. */
bool oct_folder_fits(const oct_folder *f, const char *pattern, const char *path);
/* The name of a model without folders, as options name it. */
const char *oct_folder_model_name(const oct_folder_model *m);
/* Whether it has external data in that file. */
bool oct_folder_model_reads(const oct_folder_model *m, const oct_listed *file);

#endif
