/* lib/api/verification.h -- makes a model again from what its record names. */
#ifndef OCT_API_VERIFICATION_H
#define OCT_API_VERIFICATION_H

#include "api/session.h"

/* A model, and the files that it was made from as they are now. */
typedef struct oct_verification {
    /* given by the caller */
    const octet_convert_options *x; /* the model, and the files that its command names; nothing else but threads */
    const char *source;             /* the float model */
    const char *evaluation;         /* a report of an evaluation of the model, for the statement; or NULL */
    const oct_session_host *h;      /* h->written: files that this run writes */
    /* found; see oct_verification_close */
    oct_arena *arena;
    oct_model *m;        /* the model that is verified */
    const char *command; /* its metadata octet.command */
    oct_record record;
    octet_convert_options made;  /* the recorded command, in which files have no folders */
    octet_convert_options again; /* the same with the files that were given */
    oct_session s;               /* the repeated conversion */
    struct oct_scratch *scratch; /* holds the draft; NULL: it is beside the model */
    oct_model_draft *draft;
} oct_verification;

/* Verifies, and makes the report of it, of schema octet-verify-1. OCT_EGOAL: another model was made; there is a report,
 * too. Call oct_verification_close in any case. */
oct_status oct_verification_run(oct_verification *v, oct_document *to, oct_err *err);
/* verification_statement.c: of a model that is verified, an in-toto statement. */
oct_status oct_verification_statement(const oct_verification *v, oct_document *to, oct_err *err);
void oct_verification_close(oct_verification *v);

#endif
