/* lib/base/status.h -- status codes, and the error record.
 *
 * Every function that can fail returns oct_status and takes oct_err *err last. The function that finds a fault calls
 * oct_fail() once; its callers may add context with oct_within(). Only tools/ prints. The codes are the tools' exit
 * codes (man pages, EXIT STATUS). */
#ifndef OCT_BASE_STATUS_H
#define OCT_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum oct_status {
    OCT_OK = 0,
    OCT_EGOAL = 1,        /* a requested goal was not met (accuracy, --check) */
    OCT_EUSAGE = 2,       /* wrong options or arguments                             */
    OCT_EIO = 3,          /* cannot read or write                                   */
    OCT_EMALFORMED = 4,   /* an input breaks its format                             */
    OCT_EUNSUPPORTED = 5, /* a valid input that this version cannot process         */
    OCT_ENUMERIC = 6,     /* NaN, overflow, empty range                             */
    OCT_ENOMEM = 7,       /* out of memory                                          */
    OCT_ESTOPPED = 8,     /* the caller asked to stop (base/stop.h); never the exit code of a program */
    OCT_EINTERNAL = 70    /* our own bug                                            */
} oct_status;

/* A fault: its code and one line of text. Fixed size, so that reporting never allocates; a text that does not fit is
 * cut between characters. */
typedef struct oct_err {
    oct_status status;
    char text[1000]; /* "m.onnx: node 'conv1' (Conv): input 'w' is [64,3,7], expected 4-D" */
    char hint[400];  /* what to do about it; may be empty */
} oct_err;

#define OCT_ERR_INIT   \
    {                  \
        OCT_OK, { 0 }, \
        {              \
            0          \
        }              \
    }

#if defined(__GNUC__)
#define OCT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define OCT_PRINTF(f, a)
#endif

/* Fills err (NULL allowed) and returns s, so that a fault is one line: return oct_fail(err, ...). */
oct_status oct_fail(oct_err *err, oct_status s, const char *fmt, ...) OCT_PRINTF(3, 4);

/* OCT_ENOMEM with the text "out of memory". */
oct_status oct_nomem(oct_err *err);

/* Puts "<context>: " in front of the text; does nothing when err is NULL or holds no fault. */
void oct_within(oct_err *err, const char *fmt, ...) OCT_PRINTF(2, 3);

/* Sets the remedy shown under the message. The first hint stays. */
void oct_hint(oct_err *err, const char *fmt, ...) OCT_PRINTF(2, 3);

/* snprintf that truncates between characters, for texts that become part of an error. */
void oct_print_whole(char *dst, size_t size, const char *fmt, ...) OCT_PRINTF(3, 4);

/* "cannot read or write", ... for a code; never NULL. */
const char *oct_status_name(oct_status s);

/* Forwards a failure. */
#define OCT_TRY(expr)                   \
    do {                                \
        oct_status oct_try_s_ = (expr); \
        if (oct_try_s_ != OCT_OK)       \
            return oct_try_s_;          \
    } while (0)

/* The same, with where it was in front of err's text (oct_within). */
#define OCT_TRY_WITHIN(expr, err, ...)    \
    do {                                  \
        oct_status oct_try_s_ = (expr);   \
        if (oct_try_s_ != OCT_OK) {       \
            oct_within(err, __VA_ARGS__); \
            return oct_try_s_;            \
        }                                 \
    } while (0)

#define OCT_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
