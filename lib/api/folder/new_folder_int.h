/* lib/api/folder/new_folder_int.h -- the folder that a conversion makes. Private to lib/api. */
#ifndef OCT_API_NEW_FOLDER_INT_H
#define OCT_API_NEW_FOLDER_INT_H

#include "api/folder/folder.h"
#include "base/scratch.h"

/* What becomes of a model. */
typedef struct oct_made_model {
    const struct oct_folder_job *job;
    const oct_folder_model *m;
    const char *scheme;                       /* NULL: what the options say without one */
    const oct_folder_recipe_variant *variant; /* by which the result is called; NULL: as the model is */
    const char *result;                       /* its path in the new folder */
    octet_samples samples;
    bool sampled, copied, external; /* external: the result has a file of external data */
    bool quantized;                 /* before the conversion */
    const oct_listed *pool;         /* the file of external data that it shares with others; NULL: none */
    oct_document *report;           /* of its conversion; NULL: it is a copy */
    const char *text;               /* what that says, with the place where the result will be */
    uint64_t bytes;                 /* without data that it shares */
} oct_made_model;

/* What becomes of another file. */
typedef struct oct_other_file {
    const oct_listed *file;
    const char *what, *why; /* what: "copied", "amended", "left out" */
} oct_other_file;

/* A conversion of a folder. */
typedef struct oct_folder_job {
    const octet_convert_options *x;
    const oct_session_host *h;
    oct_arena *arena;
    oct_folder f;
    oct_made_model *made; /* [f.n_model] */
    oct_other_file *other;
    size_t n_other, cap_other;
    const char **warning;
    size_t n_warning, cap_warning;
    oct_scratch *staging; /* NULL: a dry run */
    bool missed;          /* a goal: nothing will be written */
    uint64_t before, after;
} oct_folder_job;

/* new_folder.c: the path of a file of the new folder; in a dry run, of the old one. NULL: memory ran out. */
char *oct_new_folder_at(const oct_folder_job *j, const char *path);
/* Copies a file, or writes a text in its place unless that is NULL. */
oct_status oct_new_folder_copy(const oct_folder_job *j, const oct_listed *file, const char *text, size_t size,
                               oct_err *err);
/* A line of the report, and at once for who looks on. */
oct_status oct_new_folder_warn(oct_folder_job *j, const char *file, const char *text, oct_err *err);
/* Warns of a file that is copied or amended and that its loader cannot read: JSON that is cut short, a tokenizer whose
 * parts do not fit. The folder is made all the same, since not every loader reads every file. */
oct_status oct_new_folder_examine(oct_folder_job *j, oct_other_file *o, oct_err *err);
/* Copies and amends what is no model. */
oct_status oct_new_folder_add_others(oct_folder_job *j, oct_err *err);
/* new_folder_data.c: gives results the files of external data that the loader wants. */
oct_status oct_new_folder_place_data(oct_folder_job *j, oct_err *err);
/* new_folder_report.c: a text in which a file of the new folder is named as it will be, and not where it is made aside.
 */
const char *oct_new_folder_text(const oct_folder_job *j, const char *text);
/* Of schema octet-folder-1. */
void oct_new_folder_report(oct_folder_job *j, oct_document *to);

#endif
