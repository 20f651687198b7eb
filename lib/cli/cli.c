/* lib/cli: messages, the end of a run, and queries about the command line. */
#include "cli/cli.h"

#include "base/io.h"
#include "cli/cli_int.h"
#include "cli/textfmt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* What is printed after the progress line is gone. */
static void say(oct_cli *cli, const char *fmt, ...) OCT_PRINTF(2, 3);
static void say(oct_cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    oct_progress_clear(&cli->progress);
    oct_vprint(cli->err ? cli->err : stderr, fmt, ap);
    va_end(ap);
}

/* "qcalib: warning: ", the tool's name and the word in a style. */
static void say_head(oct_cli *cli, const char *word, oct_style style)
{
    FILE *f = cli->err ? cli->err : stderr;
    oct_progress_clear(&cli->progress);
    oct_term_style(f, style);
    oct_print(f, "%s: %s", cli->name, word);
    oct_term_style(f, OCT_STYLE_NONE);
}

/* at: the column that a head has reached. On a terminal the line wraps at spaces. */
static void say_text(oct_cli *cli, int at, const char *text)
{
    enum { INDENT = 2, LEAST = 40 };
    FILE *f = cli->err ? cli->err : stderr;
    const int width = oct_term_width(f);
    oct_buf clean = OCT_BUF_INIT, lines = OCT_BUF_INIT;
    if (width >= LEAST) {
        oct_text_clean(&clean, text, oct_term_ascii(f));
        oct_text_wrap(&lines, oct_buf_str(&clean), at, INDENT, width);
    }
    if (width < LEAST || clean.failed || lines.failed) {
        say(cli, "%s\n", text);
    } else {
        oct_progress_clear(&cli->progress);
        fputs(oct_buf_str(&lines), f);
        fputc('\n', f);
    }
    oct_buf_free(&clean);
    oct_buf_free(&lines);
}

static void vsay(oct_cli *cli, int at, const char *fmt, va_list ap)
{
    char text[1600];
    vsnprintf(text, sizeof text, fmt, ap);
    say_text(cli, at, text);
}

void oct_cli_note(oct_cli *cli, int level, const char *fmt, ...)
{
    if (cli->quiet || cli->verbose < level)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsay(cli, 0, fmt, ap);
    va_end(ap);
}

void oct_cli_warn(oct_cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_head(cli, "warning: ", OCT_STYLE_WARNING);
    vsay(cli, (int)strlen(cli->name) + 2 + (int)strlen("warning: "), fmt, ap);
    va_end(ap);
}

void oct_cli_fault(oct_cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_head(cli, "", OCT_STYLE_ERROR);
    vsay(cli, (int)strlen(cli->name) + 2, fmt, ap);
    va_end(ap);
}

FILE *oct_cli_result(oct_cli *cli)
{
    oct_place p;
    oct_progress_clear(&cli->progress);
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (l->o.kind == OCT_CLI_OUT && l->times > 0 && oct_place_find(&p, *(const char **)l->o.var, NULL) == OCT_OK &&
            p.fd == 1)
            return cli->err;
    }
    return cli->output_taken ? cli->err : cli->out;
}

void oct_cli_pattern_hint(const oct_cli *cli, const char *option, const char *path, oct_err *err)
{
    const char *base = oct_path_base(path), *dot = strrchr(base, '.');
    const bool folder = oct_path_is_dir(path) || (*path && !*base);
    if (!folder && !(dot && cli->is_data && cli->is_data(path)))
        return;
    if (folder)
        oct_hint(err, "samples are given with --%s, which may be repeated: --%s '%s'", option, option, path);
    else
        oct_hint(err, "samples are given with --%s, a pattern in quotes, so that it arrives whole: --%s '%.*s*%s'",
                 option, option, (int)(base - path), path, dot);
}

static void say_error(oct_cli *cli, oct_status s, const oct_err *err)
{
    const char *text = err && err->status != OCT_OK && err->text[0] ? err->text : oct_status_name(s);
    say_head(cli, "", OCT_STYLE_ERROR);
    say_text(cli, (int)strlen(cli->name) + 2, text);
    if (err && err->status != OCT_OK && err->hint[0]) {
        say(cli, "  hint: ");
        say_text(cli, (int)strlen("  hint: "), err->hint);
    } else if (s == OCT_EUSAGE) {
        say(cli, "  hint: '%s%s%s --help' shows the options\n", cli->name, cli->command ? " " : "",
            cli->command ? cli->command->name : "");
    } else if (s == OCT_EINTERNAL) {
        say(cli, "  hint: this is a fault of the program, not of your input; please report it with the command\n");
    }
}

static bool is_broken_pipe(FILE *out)
{
    struct pollfd p = { .fd = fileno(out) };
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* Whether everything that was printed has been written. The reason of an earlier failure is unknown, so another write
 * is made to get it. */
static oct_status check_printed(FILE *out, oct_err *err)
{
    const bool bad = ferror(out) != 0;
    errno = 0;
    if (fflush(out) == 0 && !bad)
        return OCT_OK;
    if (!errno && fputc('\n', out) != EOF)
        fflush(out);
    return oct_fail(err, OCT_EIO, "standard output: cannot write: %s", strerror(errno ? errno : EIO));
}

/* The reader of the pipe has closed it ("| head"): this is not an error, although not everything was written. */
static bool reader_left(FILE *out, oct_status s, const oct_err *err)
{
    const char *reason = strerror(EPIPE);
    const size_t n = err ? strlen(err->text) : 0, m = strlen(reason);
    return s == OCT_EIO && err && n >= m && strcmp(err->text + n - m, reason) == 0 && is_broken_pipe(out);
}

int oct_cli_finish(oct_cli *cli, oct_status s, oct_err *err)
{
    FILE *out = cli->out ? cli->out : stdout;
    oct_progress_clear(&cli->progress);
    oct_err unwritten = OCT_ERR_INIT;
    if (check_printed(out, &unwritten) != OCT_OK && s == OCT_OK) {
        s = unwritten.status;
        if (err)
            *err = unwritten;
    }
    if (s != OCT_OK && !reader_left(out, s, err))
        say_error(cli, s, err);
    oct_arena_destroy(cli->arena);
    cli->arena = NULL;
    cli->live = NULL;
    cli->n_live = 0;
    return (int)s;
}
