/* tools/library/octet_int.h -- internals of the library: the contents of an octet. */
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
    char *text;     /* of the last command; NULL: none */
    oct_err err;    /* of the last call */
};

/* Ends a call. Keeps the error if s is not OCT_OK. */
octet_status octet_end(octet *o, oct_status s, const oct_err *err);

#endif
