/* The checkpoints of qcalib --resume. The file has: a first line that identifies it, with a hash of everything that
 * follows; lines that say which run it belongs to; the position of reading; messages about broken samples; and what was
 * gathered, as a calibration table. */
#include "api/checkpoint.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "octet-checkpoint 1 "
#define MAX_FILE ((size_t)600 << 20)
enum { BAD_TEXTS = 100 }; /* as many as a source keeps */

static const double FIRST = 0.2, SHARE = 0.1, COSTS = 50, LONGEST = 60;

oct_status oct_checkpoint_open(oct_checkpoint *p, oct_voice voice, const char *table, oct_err *err)
{
    *p = (oct_checkpoint){ .voice = voice, .run = OCT_BUF_INIT, .begin = oct_now() };
    p->last = p->begin;
    const size_t n = strlen(table);
    if (!(p->path = oct_alloc(n + sizeof ".checkpoint")))
        return oct_nomem(err);
    memcpy(p->path, table, n);
    memcpy(p->path + n, ".checkpoint", sizeof ".checkpoint");
    return OCT_OK;
}

void oct_checkpoint_bind(oct_checkpoint *p, const char *name, const char *value)
{
    oct_buf_printf(&p->run, "%s ", name);
    oct_text_clean(&p->run, value, false);
    oct_buf_puts(&p->run, "\n");
}

void oct_checkpoint_bind_hash(oct_checkpoint *p, const char *name, uint64_t value)
{
    oct_buf_printf(&p->run, "%s %016llx\n", name, (unsigned long long)value);
}

/* ---- reading ---- */

/* Finds the next line from *at, without its end. False: the text has ended. */
static bool next_line(const char **at, const char *end, const char **line, size_t *n)
{
    const char *nl = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!nl)
        return false;
    *line = *at;
    *n = (size_t)(nl - *at);
    *at = nl + 1;
    return true;
}

static oct_status other_run(const oct_checkpoint *p, const char *was, size_t n_was, const char *is, size_t n_is,
                            oct_err *err)
{
    size_t name = 0;
    while (name < n_is && is[name] != ' ')
        name++;
    const size_t from = name < n_is ? name + 1 : n_is;
    const bool same_name = n_was >= from && memcmp(was, is, from) == 0;
    oct_fail(err, OCT_EUSAGE, "%s: is of another run: %.*s was '%.*s' and is '%.*s'", p->path, (int)name, is,
             same_name ? (int)(n_was - from) : 0, same_name ? was + from : "", (int)(n_is - from), is + from);
    oct_hint(err, "repeat the command that was killed, or remove the checkpoint to start over");
    return OCT_EUSAGE;
}

/* Compares this run with the killed one, line by line. */
static oct_status check_run(const oct_checkpoint *p, const char **at, const char *end, oct_err *err)
{
    const char *mine = oct_buf_str(&p->run), *stop = mine + p->run.len, *is, *was;
    size_t n_is, n_was;
    while (next_line(&mine, stop, &is, &n_is)) {
        if (!next_line(at, end, &was, &n_was))
            n_was = 0, was = "";
        if (n_is != n_was || memcmp(is, was, n_is) != 0)
            return other_run(p, was, n_was, is, n_is, err);
    }
    return OCT_OK;
}

static oct_status damaged(const oct_checkpoint *p, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: this is not a checkpoint, or it is damaged", p->path);
    oct_hint(err, "remove it to start over");
    return OCT_EMALFORMED;
}

static bool read_mark(const char *line, size_t n, oct_source_mark *m)
{
    char text[120], *at = text;
    long long v[3];
    if (n >= sizeof text || n < 6 || memcmp(line, "place ", 6) != 0)
        return false;
    memcpy(text, line, n);
    text[n] = 0;
    at += 6;
    errno = 0;
    for (int i = 0; i < 3; i++)
        v[i] = strtoll(at, &at, 10);
    m->names = strtoull(at, &at, 16);
    m->place = v[0];
    m->names_from = v[1];
    m->bad = v[2];
    return *at == 0 && !errno && m->place > 0 && m->names_from >= 0 && m->names_from <= m->place && m->bad >= 0 &&
           m->bad <= m->place;
}

/* Reads what follows the lines of the run. */
static oct_status take(const oct_checkpoint *p, const char *at, const char *end, oct_source *src, oct_calib *c,
                       oct_err *err)
{
    oct_source_mark m = { 0 };
    const char *bad[BAD_TEXTS], *line;
    size_t n, n_bad = 0;
    if (!next_line(&at, end, &line, &n) || !read_mark(line, n, &m))
        return damaged(p, err);
    const size_t most = m.bad < BAD_TEXTS ? (size_t)m.bad : BAD_TEXTS;
    for (; n_bad < most; n_bad++) {
        if (!next_line(&at, end, &line, &n))
            return damaged(p, err);
        ((char *)(uintptr_t)line)[n] = 0; /* the line is in the text that was read, which may be changed */
        bad[n_bad] = line;
    }
    oct_calib *sum = NULL;
    OCT_TRY(oct_calib_parse(at, (size_t)(end - at), p->path, &sum, err));
    m.given = (int64_t)sum->samples;
    oct_status s = sum->samples <= (uint64_t)m.place ? oct_calib_add_statistics(c, sum, err) : damaged(p, err);
    if (s == OCT_OK)
        s = oct_source_go_on(src, &m, bad, n_bad, err);
    oct_calib_destroy(sum);
    return s;
}

oct_status oct_checkpoint_take(oct_checkpoint *p, oct_source *src, oct_calib *c, oct_err *err)
{
    oct_path_kind kind;
    char *text, hash[40];
    size_t size;
    if (p->run.failed)
        return oct_nomem(err);
    OCT_TRY(oct_path_look(p->path, &kind, err));
    if (kind == OCT_PATH_NONE)
        return OCT_OK;
    OCT_TRY(oct_read_all(p->path, MAX_FILE, &text, &size, err));
    const char *at = text, *line, *end = text + size;
    size_t n;
    oct_status s = OCT_OK;
    if (!next_line(&at, end, &line, &n) || n != sizeof MAGIC - 1 + 16 || memcmp(line, MAGIC, sizeof MAGIC - 1) != 0)
        s = damaged(p, err);
    if (s == OCT_OK) {
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)oct_hash(OCT_HASH_INIT, at, (size_t)(end - at)));
        s = memcmp(hash, line + sizeof MAGIC - 1, 16) == 0 ? check_run(p, &at, end, err) : damaged(p, err);
    }
    if (s == OCT_OK)
        s = take(p, at, end, src, c, err);
    if (s == OCT_OK)
        oct_say(p->voice, 0, "going on after %llu samples (%s)", (unsigned long long)c->samples, p->path);
    oct_free(text);
    return s;
}

/* ---- writing ---- */

bool oct_checkpoint_due(void *arg)
{
    oct_checkpoint *p = arg;
    const double now = oct_now(), passed = now - p->begin;
    double wait = passed * SHARE < LONGEST ? passed * SHARE : LONGEST;
    wait = wait < FIRST ? FIRST : wait;
    wait = wait < COSTS * p->cost ? COSTS * p->cost : wait;
    if (now - p->last < wait)
        return false;
    p->asked = now;
    return true;
}

static void put_bad(oct_buf *b, const oct_source *src)
{
    const char *text;
    for (size_t i = 0; i < BAD_TEXTS && (text = oct_source_bad_text(src, i)); i++) {
        oct_text_clean(b, text, false);
        oct_buf_puts(b, "\n");
    }
}

static oct_status write_file(const oct_checkpoint *p, const oct_calib *so_far, const oct_source *src, oct_err *err)
{
    const oct_source_mark m = oct_source_where(src);
    oct_buf b = OCT_BUF_INIT;
    oct_out out;
    char head[sizeof MAGIC + 20];
    oct_buf_add(&b, oct_buf_str(&p->run), p->run.len);
    oct_buf_printf(&b, "place %lld %lld %lld %016llx\n", (long long)m.place, (long long)m.names_from, (long long)m.bad,
                   (unsigned long long)m.names);
    put_bad(&b, src);
    oct_calib_text(so_far, &b);
    oct_status s = b.failed ? oct_nomem(err) : oct_out_open(&out, p->path, err);
    if (s == OCT_OK) {
        snprintf(head, sizeof head, MAGIC "%016llx\n",
                 (unsigned long long)oct_hash(OCT_HASH_INIT, oct_buf_str(&b), b.len));
        oct_out_write(&out, head, strlen(head));
        oct_out_write(&out, oct_buf_str(&b), b.len);
        s = oct_out_commit(&out, err);
    }
    oct_buf_free(&b);
    return s;
}

void oct_checkpoint_keep(void *arg, const oct_calib *so_far, const oct_source *src)
{
    oct_checkpoint *p = arg;
    oct_err err = OCT_ERR_INIT;
    if (so_far->samples == 0)
        return;
    if (write_file(p, so_far, src, &err) != OCT_OK && !p->failed) {
        p->failed = true;
        oct_say(p->voice, OCT_NOTE_WARNING, "no checkpoint: %s", err.text);
    }
    p->last = oct_now();
    p->cost = p->last - p->asked;
    oct_say(p->voice, 2, "checkpoint after %llu samples, %.1f ms", (unsigned long long)so_far->samples, p->cost * 1e3);
}

void oct_checkpoint_done(oct_checkpoint *p)
{
    if (p->path)
        unlink(p->path);
}

void oct_checkpoint_close(oct_checkpoint *p)
{
    oct_free(p->path);
    oct_buf_free(&p->run);
}
