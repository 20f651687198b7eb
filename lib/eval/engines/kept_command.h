/* lib/eval/engines/kept_command.h -- a command that keeps running and is written to and read from in turns, with a time
 * limit for each answer.
 *
 * No function waits longer than the limit, whatever the command does, nor on once the call is asked to stop
 * (base/stop.h): OCT_ESTOPPED. The command leads a process group of its own, and
 * is ended together with that group. The calling process must ignore SIGPIPE. Messages begin with the command. */
#ifndef OCT_EVAL_KEPT_COMMAND_H
#define OCT_EVAL_KEPT_COMMAND_H

#include "base/status.h"

typedef struct oct_kept_command oct_kept_command;

/* Starts sh -c line. shown: the command in messages; borrowed as long as it runs. seconds: the time limit. OCT_EIO,
 * OCT_ENOMEM. */
oct_status oct_kept_start(const char *line, const char *shown, double seconds, oct_kept_command **k, oct_err *err);
/* Begins a turn: the time limit counts from now. */
void oct_kept_turn(oct_kept_command *k);
/* Writes n bytes. As long as the command does not read them, its output is kept. OCT_EMALFORMED: that output is too
 * long. OCT_EIO: the time is up. It is no failure if the command has stopped reading, because it may have written the
 * reason. */
oct_status oct_kept_write(oct_kept_command *k, const void *p, size_t n, oct_err *err);
/* Reads a line of at most size - 1 bytes, without the line feed at its end. OCT_EMALFORMED: the line is longer.
 * OCT_EIO: the command has ended, or the time is up. */
oct_status oct_kept_line(oct_kept_command *k, char *dst, size_t size, oct_err *err);
/* Reads n bytes. OCT_EIO: as above. */
oct_status oct_kept_read(oct_kept_command *k, void *p, size_t n, oct_err *err);
/* Closes the input of the command. patient: it gets a few seconds to end by itself. Then everything that still runs is
 * ended. k may be NULL. */
void oct_kept_stop(oct_kept_command *k, bool patient);

#endif
