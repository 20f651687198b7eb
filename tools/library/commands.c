/* The commands as functions of the library. They call the tools with listeners in place of a terminal. */
#define _POSIX_C_SOURCE 200809L
#include "octet_int.h"

#include "common/common.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *octet_version(void)
{
    return OCT_VERSION;
}

octet *octet_open(void)
{
    return oct_calloc(1, sizeof(octet));
}

static void forget_last(octet *o)
{
    oct_buf_free(&o->report);
    free(o->text);
    o->text = NULL;
    o->err = (oct_err)OCT_ERR_INIT;
}

void octet_close(octet *o)
{
    if (!o)
        return;
    forget_last(o);
    oct_free(o);
}

octet_status octet_end(octet *o, oct_status s, const oct_err *err)
{
    o->err = s == OCT_OK ? (oct_err)OCT_ERR_INIT : *err;
    if (s != OCT_OK && !o->err.text[0])
        oct_fail(&o->err, s, "%s", oct_status_name(s));
    return (octet_status)s;
}

const char *octet_error(const octet *o)
{
    return o->err.text;
}

const char *octet_hint(const octet *o)
{
    return o->err.hint;
}

const char *octet_report(const octet *o)
{
    return o->report.len ? oct_buf_str(&o->report) : "";
}

const char *octet_text(const octet *o)
{
    return o->text ? o->text : "";
}

void octet_on_progress(octet *o, octet_progress_fn fn, void *arg)
{
    o->progress = fn;
    o->progress_arg = arg;
}

void octet_on_message(octet *o, octet_message_fn fn, void *arg)
{
    o->message = fn;
    o->message_arg = arg;
}

/* ---- a run of a tool ---- */

static void say(void *arg, bool warning, const char *text)
{
    const octet *o = arg;
    if (o->message)
        o->message(o->message_arg, warning, text);
}

static void progress(void *arg, const char *what, int64_t done, int64_t total)
{
    const octet *o = arg;
    if (o->progress)
        o->progress(o->progress_arg, what ? what : "working", done, total);
}

/* Blocks SIGPIPE, so that a command that has ended does not end the process: writing to its pipe then gives an error. Threads that are created meanwhile
 * inherit the blocked signals. */
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

typedef int (*tool_fn)(int argc, char **argv, const oct_cli_host *host);

static bool asks(const char *const *arguments, const char *option)
{
    const size_t n = strlen(option);
    for (; *arguments; arguments++)
        if (strncmp(*arguments, option, n) == 0 && (!(*arguments)[n] || (*arguments)[n] == '='))
            return true;
    return false;
}

/* Whether a run with --json would be refused, because there is no report: for pages of help and lists. */
static bool has_report(const char *const *arguments)
{
    static const char *const none[] = { "--json", "--outputs", "--help", "--help-all", "--version", "--completion", "--print-policy", "--list-passes",
                                        "--list-targets", "--list-methods" };
    for (size_t i = 0; i < OCT_COUNT(none); i++)
        if (asks(arguments, none[i]))
            return false;
    return true;
}

static oct_status refuse_streams(const char *const *arguments, oct_err *err)
{
    for (const char *const *a = arguments; *a; a++) {
        const char *value = strchr(*a, '=');
        if (strcmp(*a, "-") != 0 && !(**a == '-' && value && strcmp(value, "=-") == 0))
            continue;
        oct_fail(err, OCT_EUSAGE, "'%s': the library reads and writes files, not the streams of its process", *a);
        oct_hint(err, "give the file's name; octet_report has the report as JSON");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

/* Makes the command line. Its strings are borrowed. */
static char **line_of(const char *name, const char *const *arguments, int *argc)
{
    size_t n = 0;
    while (arguments[n])
        n++;
    char **argv = oct_calloc(n + 3, sizeof *argv);
    if (!argv)
        return NULL;
    argv[(*argc)++] = (char *)name;
    for (size_t i = 0; i < n; i++)
        argv[(*argc)++] = (char *)arguments[i];
    if (has_report(arguments))
        argv[(*argc)++] = (char *)"--json=-";
    return argv;
}

static octet_status run(octet *o, const char *name, tool_fn tool, const char *const *arguments)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    oct_err err = OCT_ERR_INIT;
    size_t size;
    int argc = 0;
    forget_last(o);
    oct_status s = refuse_streams(arguments, &err);
    if (s != OCT_OK)
        return octet_end(o, s, &err);
    char **argv = line_of(name, arguments, &argc);
    FILE *out = argv ? open_memstream(&o->text, &size) : NULL;
    if (!out) {
        oct_free(argv);
        return octet_end(o, oct_nomem(&err), &err);
    }
    const oct_cli_host host = { say, progress, o, out, &o->report, &err };
    pipes p;
    pthread_mutex_lock(&turn);
    block_pipes(&p);
    s = (oct_status)tool(argc, argv, &host);
    restore_pipes(&p);
    pthread_mutex_unlock(&turn);
    if (fclose(out) != 0 && s == OCT_OK)
        s = oct_nomem(&err);
    oct_free(argv);
    return octet_end(o, s, &err);
}

octet_status octet_calibrate(octet *o, const char *const *arguments)
{
    return run(o, "qcalib", qcalib_main, arguments);
}

octet_status octet_convert(octet *o, const char *const *arguments)
{
    return run(o, "qconvert", qconvert_main, arguments);
}

octet_status octet_evaluate(octet *o, const char *const *arguments)
{
    return run(o, "qeval", qeval_main, arguments);
}
