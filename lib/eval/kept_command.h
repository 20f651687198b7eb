/* lib/eval/kept_command.h -- a command that is kept running, and is written to and read from in turns, with a time limit for each answer.
 *
 * Nothing here waits longer than the limit, whatever the command does. It leads a process group of its own and is ended with all of that.
 * The process must ignore SIGPIPE. Messages begin with the command. */
#ifndef OCT_EVAL_KEPT_COMMAND_H
#define OCT_EVAL_KEPT_COMMAND_H

#include "base/status.h"

typedef struct oct_kept_command oct_kept_command;

/* Starts sh -c line; shown: the command in messages, borrowed as long as it runs. seconds: the limit. OCT_EIO, OCT_ENOMEM. */
oct_status oct_kept_start(const char *line, const char *shown, double seconds, oct_kept_command **k, oct_err *err);
/* A turn begins: the time limit counts from now. */
void oct_kept_turn(oct_kept_command *k);
/* Writes n bytes. While the command does not take them, what it writes is kept; OCT_EMALFORMED where that is more than an answer to nothing
 * could be. OCT_EIO: the time is up. Where it reads no more, that is no failure: it may have said why. */
oct_status oct_kept_write(oct_kept_command *k, const void *p, size_t n, oct_err *err);
/* Reads a line of at most size - 1 bytes, without its end, which is a line feed. OCT_EMALFORMED for a longer one, OCT_EIO: it ended, or
 * the time is up. */
oct_status oct_kept_line(oct_kept_command *k, char *dst, size_t size, oct_err *err);
/* Reads n bytes. OCT_EIO as above. */
oct_status oct_kept_read(oct_kept_command *k, void *p, size_t n, oct_err *err);
/* Closes its input. patient: it gets a few seconds to end by itself. What then still runs is ended. NULL allowed. */
void oct_kept_stop(oct_kept_command *k, bool patient);

#endif
