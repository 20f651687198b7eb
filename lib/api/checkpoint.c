/* The checkpoints of qcalib --resume: lines that say which run it is; the position of reading, and messages about
 * broken samples; and what was gathered, as a calibration table. */
#include "api/checkpoint.h"

#include "base/sections.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <unistd.h>

enum { RUN = 1, PLACE, TABLE }; /* the sections, each once and in this order */
enum { BAD_TEXTS = 100 };       /* as many as a source keeps */

static const oct_sections_form form = { "octet-checkpoint", 2, "a checkpoint", "remove it to start over" };

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

/* Compares this run with the killed one, whose lines are [at, end). */
static oct_status check_run(const oct_checkpoint *p, const char *at, const char *end, oct_err *err)
{
    const char *mine = oct_buf_str(&p->run), *stop = mine + p->run.len, *is, *was;
    size_t n_is, n_was;
    while (next_line(&mine, stop, &is, &n_is)) {
        if (!next_line(&at, end, &was, &n_was))
            n_was = 0, was = "";
        if (n_is != n_was || memcmp(is, was, n_is) != 0)
            return other_run(p, was, n_was, is, n_is, err);
    }
    return OCT_OK;
}

/* What a section holds is not of a checkpoint, though its checksum is right. */
static oct_status damaged(const oct_checkpoint *p, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: what it holds is not of a checkpoint", p->path);
    oct_hint(err, "%s", form.again);
    return OCT_EMALFORMED;
}

/* Reads the position of reading, and messages about broken samples, which are borrowed. */
static bool read_place(oct_bytes *r, oct_source_mark *m, const char *bad[BAD_TEXTS], size_t *n_bad)
{
    m->place = (int64_t)oct_bytes_u64(r);
    m->names_from = (int64_t)oct_bytes_u64(r);
    m->bad = (int64_t)oct_bytes_u64(r);
    m->names = oct_bytes_u64(r);
    const size_t n = oct_bytes_count(r, 8);
    oct_bytes_need(r, m->place > 0 && m->names_from >= 0 && m->names_from <= m->place && m->bad >= 0 &&
                          m->bad <= m->place && n <= BAD_TEXTS && n <= (size_t)m->bad);
    for (*n_bad = 0; *n_bad < n && !r->bad; (*n_bad)++)
        oct_bytes_need(r, (bad[*n_bad] = oct_bytes_text(r)) != NULL);
    return !r->bad && !r->n;
}

/* Reads what follows the section of the run. */
static oct_status take(const oct_checkpoint *p, oct_bytes *all, oct_source *src, oct_calib *c, oct_err *err)
{
    oct_source_mark m = { 0 };
    const char *bad[BAD_TEXTS];
    oct_bytes place, table;
    uint32_t tag;
    size_t n_bad;
    if (!oct_section_next(all, &tag, &place) || tag != PLACE || !read_place(&place, &m, bad, &n_bad) ||
        !oct_section_next(all, &tag, &table) || tag != TABLE || all->n)
        return damaged(p, err);
    oct_calib *sum = NULL;
    OCT_TRY(oct_calib_parse(table.p, table.n, p->path, &sum, err));
    m.given = (int64_t)sum->samples;
    oct_status s = sum->samples <= (uint64_t)m.place ? oct_calib_add_statistics(c, sum, err) : damaged(p, err);
    if (s == OCT_OK)
        s = oct_source_go_on(src, &m, bad, n_bad, err);
    oct_calib_destroy(sum);
    return s;
}

static oct_status take_file(const oct_checkpoint *p, const oct_map *file, oct_source *src, oct_calib *c, oct_err *err)
{
    oct_bytes all, run;
    uint32_t tag;
    OCT_TRY(oct_sections_open(&form, file->data, file->size, p->path, &all, err));
    if (!oct_section_next(&all, &tag, &run) || tag != RUN)
        return damaged(p, err);
    OCT_TRY(check_run(p, (const char *)run.p, (const char *)run.p + run.n, err));
    OCT_TRY(take(p, &all, src, c, err));
    oct_say(p->voice, 0, "going on after %llu samples (%s)", (unsigned long long)c->samples, p->path);
    return OCT_OK;
}

oct_status oct_checkpoint_take(oct_checkpoint *p, oct_source *src, oct_calib *c, oct_err *err)
{
    oct_path_kind kind;
    oct_map file;
    if (p->run.failed)
        return oct_nomem(err);
    OCT_TRY(oct_path_look(p->path, &kind, err));
    if (kind == OCT_PATH_NONE)
        return OCT_OK;
    OCT_TRY(oct_map_open(&file, p->path, err));
    const oct_status s = take_file(p, &file, src, c, err);
    oct_map_close(&file);
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

static void put_place(oct_buf *b, const oct_source *src)
{
    const oct_source_mark m = oct_source_where(src);
    size_t n = 0;
    while (n < BAD_TEXTS && oct_source_bad_text(src, n))
        n++;
    oct_buf_add_u64(b, (uint64_t)m.place);
    oct_buf_add_u64(b, (uint64_t)m.names_from);
    oct_buf_add_u64(b, (uint64_t)m.bad);
    oct_buf_add_u64(b, m.names);
    oct_buf_add_u64(b, n);
    for (size_t i = 0; i < n; i++)
        oct_buf_add_text(b, oct_source_bad_text(src, i));
}

static oct_status write_file(const oct_checkpoint *p, const oct_calib *so_far, const oct_source *src, oct_err *err)
{
    oct_buf place = OCT_BUF_INIT, table = OCT_BUF_INIT;
    oct_sections_out out;
    put_place(&place, src);
    oct_calib_text(so_far, &table);
    oct_status s = oct_sections_create(&out, &form, p->path, err);
    if (s == OCT_OK) {
        s = oct_sections_add(&out, RUN, &p->run, err);
        s = s == OCT_OK ? oct_sections_add(&out, PLACE, &place, err) : s;
        s = s == OCT_OK ? oct_sections_add(&out, TABLE, &table, err) : s;
        s = s == OCT_OK ? oct_sections_commit(&out, err) : s;
        oct_out_abort(&out.out);
    }
    oct_buf_free(&place);
    oct_buf_free(&table);
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
