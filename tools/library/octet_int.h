/* tools/library/octet_int.h -- internals of the library: the contents of an octet, and what surrounds each call. */
#ifndef OCT_TOOLS_OCTET_INT_H
#define OCT_TOOLS_OCTET_INT_H

#include "octet/octet.h"

#include "base/mem.h"

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>

struct octet {
    octet_progress_fn progress;
    void *progress_arg;
    octet_message_fn message;
    void *message_arg;
    pthread_mutex_t speaking; /* held while one of these functions is called */
    oct_arena *claims;        /* of the last octet_graph_parts; NULL: none */
    oct_err err;              /* of the last call */
    locale_t locale;          /* of the thread that called */
    atomic_bool busy;         /* a call is using this */
    atomic_bool stop;         /* that call is to end (octet_stop) */
};

typedef oct_status (*octet_work_fn)(octet *o, void *arg, oct_err *err);

/* A call of the library: does the work and keeps its error. OCTET_USAGE, without work, if o is NULL or another call
 * uses it. During the work numbers are read and written with a point, the thread has stack enough (base/stack.h), and
 * octet_stop ends it. */
octet_status octet_do(octet *o, octet_work_fn work, void *arg);

/* Writes s into dst of `size` bytes in one line of valid UTF-8, cut between characters: names come from files and may
 * hold anything. */
void octet_clean(char *dst, size_t size, const char *s);

/* ---- alone.c ---- */

/* A visit to the caller's functions, which have the caller's locale and are called one at a time, maybe by threads of
 * a pool. */
typedef struct octet_visit {
    locale_t locale;
    bool inside;
} octet_visit;
octet_visit octet_visit_begin(octet *o);
void octet_visit_end(octet *o, octet_visit v);
bool octet_in_callback(void); /* whether this thread is on such a visit */
/* Visits with a line, and with progress; o: octet *. */
void octet_say(void *o, bool warning, const char *text);
void octet_tell_progress(void *o, const char *what, int64_t done, int64_t total);
/* Does work of which only one may run in this process at a time, with SIGPIPE blocked. in_callback: of the thread that
 * called. */
oct_status octet_alone(octet *o, bool in_callback, octet_work_fn work, void *arg, oct_err *err);

#endif
