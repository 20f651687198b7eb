/* tools/library/octet_int.h -- within the library: what an octet holds. */
#ifndef OCT_TOOLS_OCTET_INT_H
#define OCT_TOOLS_OCTET_INT_H

#include "octet/octet.h"

#include "base/buf.h"

struct octet {
    octet_progress_fn progress;
    void *progress_arg;
    octet_message_fn message;
    void *message_arg;
    oct_buf report; /* of the last command */
    char *text;     /* the same; NULL: none */
    oct_err err;    /* of the last call */
};

/* Ends a call: keeps the fault, for s other than OCT_OK. */
octet_status octet_end(octet *o, oct_status s, const oct_err *err);

#endif
