/* Calls of which one runs at a time, and the caller's functions that they call. */
#define _POSIX_C_SOURCE 200809L
#include "octet_int.h"

#include "base/fork.h"
#include "base/stop.h"

#include <pthread.h>
#include <signal.h>
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

/* Calls claim outputs and tell of leftovers for the process, so that one runs at a time. */
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
        return oct_fail(err, OCT_EUSAGE, "a callback of a call cannot make another one");
    while (!try_turn(&lost)) {
        if (lost) {
            oct_fail(
                err, OCT_EUSAGE,
                "this process was forked while a thread of its parent was in a call, whose state cannot be used here");
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
