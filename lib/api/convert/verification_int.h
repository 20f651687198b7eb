/* lib/api/convert/verification_int.h -- the inside of a verification (api/inspect.h). Private to lib/api. */
#ifndef OCT_API_VERIFICATION_INT_H
#define OCT_API_VERIFICATION_INT_H

#include "api/convert/session_int.h"

/* A model, and the files that it was made from as they are now. */
typedef struct oct_verification {
    const octet_convert_options *x; /* the model, and the files that its command names; nothing else but threads */
    const char *source;             /* the float model */
    const oct_session_host *h;
    oct_arena *arena;
    oct_model *m;        /* the model that is verified */
    const char *command; /* its metadata octet.command */
    oct_record record;
    octet_convert_options made;  /* the recorded command, in which files have no folders */
    octet_convert_options again; /* the same with the files that were given */
    oct_session *s;              /* the repeated conversion */
    struct oct_scratch *scratch; /* holds the draft; NULL: it is beside the model */
    oct_model_draft *draft;
} oct_verification;

/* verification_statement.c: the name of an input in the recorded command. The file may have another name now: it is the
 * digest that decides. */
const char *oct_verification_name(const oct_verification *v, oct_record_part p);
/* Of a model that is verified, an in-toto statement with the metrics of a report of an
 * evaluation of it, unless that is NULL. */
oct_status oct_verification_state(const oct_verification *v, const char *evaluation, oct_document *to, oct_err *err);

#endif
