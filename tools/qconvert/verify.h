/* tools/qconvert/verify.h -- making a model again from what its record names: shared by the files that do its steps. */
#ifndef OCT_TOOLS_VERIFY_H
#define OCT_TOOLS_VERIFY_H

#include "qconvert/qconvert.h"

/* A command as it was recorded: files without folders. */
typedef struct recorded {
    oct_cli cli;    /* which options were given */
    convert_args a;
} recorded;

typedef struct verification {
    oct_cli *cli;
    const convert_args *a;     /* of verify */
    oct_arena *arena;
    oct_model *m;              /* the model, as it is */
    const char *command;       /* its octet.command */
    oct_record record;
    recorded made;
    convert_args again;        /* the same with the files that were given */
    session s;                 /* that conversion */
    char *folder;              /* where the draft goes; NULL: beside the model */
    oct_model_draft *draft;
} verification;

/* recorded.c: reads the text of octet.command; record tells what of it is a file. OCT_EMALFORMED: no run of this program has written it. Texts live in
 * the arena. */
oct_status recorded_read(recorded *r, const char *model, const char *text, const oct_record *record, oct_arena *arena, oct_err *err);

/* statement.c: what was verified, as an in-toto statement, where --statement asks for it. */
oct_status statement_write(const verification *v, oct_err *err);

#endif
