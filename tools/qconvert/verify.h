/* tools/qconvert/verify.h -- makes a model again from what its record names; shared by the files that implement the
 * steps. */
#ifndef OCT_TOOLS_VERIFY_H
#define OCT_TOOLS_VERIFY_H

#include "qconvert/qconvert.h"

/* A recorded command, in which files have no folders. */
typedef struct recorded {
    oct_cli cli; /* which options were given */
    convert_args a;
    octet_convert_options x; /* what they stand for */
} recorded;

typedef struct verification {
    oct_cli *cli;
    const convert_args *a; /* the options of verify */
    oct_arena *arena;
    oct_model *m;        /* the model that is verified */
    const char *command; /* its metadata octet.command */
    oct_record record;
    recorded made;
    octet_convert_options again; /* the recorded options, with the files that were given */
    oct_session s;               /* the repeated conversion */
    struct oct_scratch *scratch; /* holds the draft; NULL: it is beside the model */
    oct_model_draft *draft;
} verification;

/* recorded.c: parses the text of octet.command. record tells which of its words are files. OCT_EMALFORMED: no run of
 * this program has written it. Texts are in the arena. */
oct_status recorded_read(recorded *r, const char *model, const char *text, const oct_record *record, oct_arena *arena,
                         oct_err *err);

/* statement.c: writes what was verified as an in-toto statement, if --statement asks for it. */
oct_status statement_write(const verification *v, oct_err *err);

#endif
