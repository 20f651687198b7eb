/* The commands as functions of the library. They call the tools with listeners in place of a terminal. */
#define _POSIX_C_SOURCE 200809L
#include "octet_int.h"

#include "base/fork.h"
#include "base/stop.h"
#include "common/common.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- callbacks ---- */

static _Thread_local bool inside; /* this thread is in a callback */

bool octet_in_callback(void)
{
    return inside;
}

octet_visit octet_visit_begin(octet *o)
{
    pthread_mutex_lock(&o->speaking);
    const octet_visit v = { uselocale(o->locale), inside };
    inside = true;
    return v;
}

void octet_visit_end(octet *o, octet_visit v)
{
    inside = v.inside;
    uselocale(v.locale);
    pthread_mutex_unlock(&o->speaking);
}

void octet_say(void *arg, bool warning, const char *text)
{
    octet *o = arg;
    char line[2000] = "";
    if (!o->message)
        return;
    octet_clean(line, sizeof line, text);
    const octet_visit v = octet_visit_begin(o);
    o->message(o->message_arg, warning, line);
    octet_visit_end(o, v);
}

void octet_tell_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    octet *o = arg;
    if (!o->progress)
        return;
    const octet_visit v = octet_visit_begin(o);
    o->progress(o->progress_arg, what ? what : "working", done, total);
    octet_visit_end(o, v);
}

/* ---- SIGPIPE ---- */

/* Blocks SIGPIPE, so that a command that has ended does not end the process: writing to its pipe then gives an error.
 * Threads that are created meanwhile inherit the blocked signals. */
typedef struct pipes {
    sigset_t before;
    bool pending;
} pipes;

static bool pipe_pending(void)
{
    sigset_t now;
    return sigpending(&now) == 0 && sigismember(&now, SIGPIPE) == 1;
}

static void block_pipes(pipes *p)
{
    sigset_t one;
    p->pending = pipe_pending();
    sigemptyset(&one);
    sigaddset(&one, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &one, &p->before);
}

static void restore_pipes(const pipes *p)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGPIPE);
    if (!p->pending && pipe_pending()) /* the signal is ours */
        sigtimedwait(&one, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
}

/* ---- turns ---- */

/* The tools have state of their own, so that one command runs at a time. */
static struct {
    bool taken;
    unsigned forks; /* oct_forks() when it was */
} turn;

static bool try_turn(bool *lost)
{
    oct_lock(OCT_LOCK_TURN);
    const bool mine = !turn.taken;
    *lost = turn.taken && turn.forks != oct_forks();
    if (mine) {
        turn.taken = true;
        turn.forks = oct_forks();
    }
    oct_unlock(OCT_LOCK_TURN);
    return mine;
}

static oct_status take_turn(bool in_callback, oct_err *err)
{
    bool lost;
    if (in_callback)
        return oct_fail(err, OCT_EUSAGE, "a callback of a command cannot run a command");
    while (!try_turn(&lost)) {
        if (lost) {
            oct_fail(
                err, OCT_EUSAGE,
                "this process was forked while a thread of its parent ran a command, whose state cannot be used here");
            oct_hint(err, "start a new program in the child, or fork before");
            return OCT_EUSAGE;
        }
        OCT_TRY(oct_stop_check(err));
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return OCT_OK;
}

static void end_turn(void)
{
    oct_lock(OCT_LOCK_TURN);
    turn.taken = false;
    oct_unlock(OCT_LOCK_TURN);
}

oct_status octet_alone(octet *o, bool in_callback, octet_work_fn work, void *arg, oct_err *err)
{
    pipes p;
    OCT_TRY(take_turn(in_callback, err));
    block_pipes(&p);
    const oct_status s = work(o, arg, err);
    restore_pipes(&p);
    end_turn();
    return s;
}

/* ---- a run of a tool ---- */

typedef struct command {
    const char *name;
    int (*tool)(int argc, char **argv, const oct_cli_host *host);
    const char *const *arguments;
    bool in_callback; /* the caller is: another thread may do the work, as in that of a pool, whose stack is small */
    FILE *out;
} command;

/* The strings are borrowed. */
static char **line_of(const command *c, int *argc)
{
    size_t n = 0;
    while (c->arguments[n])
        n++;
    char **argv = n < INT32_MAX ? oct_calloc(n + 2, sizeof *argv) : NULL;
    if (!argv)
        return NULL;
    argv[(*argc)++] = (char *)c->name;
    for (size_t i = 0; i < n; i++)
        argv[(*argc)++] = (char *)c->arguments[i];
    return argv;
}

static oct_status run_tool(octet *o, void *arg, oct_err *err)
{
    const command *c = arg;
    const oct_cli_host host = { octet_say, octet_tell_progress, o, c->out, &o->report, err };
    int argc = 0;
    char **argv = line_of(c, &argc);
    if (!argv)
        return oct_nomem(err);
    const oct_status s = (oct_status)c->tool(argc, argv, &host);
    oct_free(argv);
    return s;
}

static oct_status run_command(octet *o, void *arg, oct_err *err)
{
    command *c = arg;
    size_t size;
    oct_buf_free(&o->report);
    free(o->text);
    o->text = NULL;
    if (!c->arguments)
        return oct_fail(err, OCT_EUSAGE, "the list of arguments is NULL");
    if (!(c->out = open_memstream(&o->text, &size)))
        return oct_nomem(err);
    const oct_status s = octet_alone(o, c->in_callback, run_tool, c, err);
    if (fclose(c->out) != 0 && s == OCT_OK)
        return oct_nomem(err);
    return s;
}

octet_status octet_calibrate(octet *o, const char *const *arguments)
{
    return octet_do(o, run_command, &(command){ "qcalib", qcalib_main, arguments, inside });
}

octet_status octet_convert(octet *o, const char *const *arguments)
{
    return octet_do(o, run_command, &(command){ "qconvert", qconvert_main, arguments, inside });
}

octet_status octet_evaluate(octet *o, const char *const *arguments)
{
    return octet_do(o, run_command, &(command){ "qeval", qeval_main, arguments, inside });
}
