#define _XOPEN_SOURCE 700
/* From decisions to a model on disk, and whether it meets the goals. */
#include "api/convert/session_int.h"

#include "base/number_text.h"
#include "base/utf8.h"
#include "eval/report/report.h"

#include <string.h>
#include <unistd.h>

/* model.int8.onnx -> model.int8.best.onnx: the name for a model that missed its goal. NULL: memory ran out. */
static char *best_name(const oct_session *s)
{
    const char *end = oct_session_writes_tflite(&s->x) ? ".tflite" : ".onnx";
    const size_t of_end = strlen(end);
    size_t n = strlen(s->output);
    if (n > of_end && strcmp(s->output + n - of_end, end) == 0)
        n -= of_end;
    return oct_arena_printf(s->c.arena, "%.*s.best%s", (int)n, s->output, end);
}

/* Whether it is a file of external data as oct_model_save names it after its model. */
static bool is_data_of(const char *path, const char *model)
{
    const char *base = oct_path_base(path), *name = oct_path_base(model);
    const size_t n = strlen(name);
    return strncmp(base, name, n) == 0 && base[n] == '.' && strspn(base + n + 1, "0123456789abcdef") == 16 &&
           strcmp(base + n + 17, ".data") == 0;
}

/* Removes the model that an earlier run has written beside the output because it missed its goal, if it is one of
 * ours. */
static void remove_best(const oct_session *s)
{
    const char *path = best_name(s);
    oct_model *m = NULL;
    if (!path || oct_path_is_stream(s->output) || !oct_path_exists(path) || oct_same_file(path, s->x.model) ||
        oct_model_load(path, &m, NULL) != OCT_OK)
        return;
    if (oct_model_meta(m, "octet.version")) {
        for (size_t i = 1; i < m->n_maps; i++)
            if (is_data_of(m->maps[i].path, path))
                unlink(m->maps[i].path);
        if (unlink(path) == 0)
            oct_say(s->h.voice, 0, "%s, of a run that missed its goal, was removed", path);
    }
    oct_model_free(m);
}

/* Writes the decisions as a policy table. A conversion with that table makes the same decisions. */
static oct_status dump_policy(const oct_session *s, const char *command, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_buf_puts(&b, "# octet policy 1 -- the decisions of: ");
    oct_text_clean(&b, command, false);
    oct_buf_puts(&b, "\n");
    oct_conversion_put_policy(&s->c, &b);
    oct_status st = oct_write_text(s->x.dump_policy, &b, err);
    oct_buf_free(&b);
    return st;
}

/* Whether a goal was missed, or with --strict more is lost than necessary. */
static bool is_refused(const oct_session *s)
{
    return s->c.missed || (s->x.strict && (s->c.lossy || s->c.unjudged));
}

static oct_status write_model(oct_session *s, const char *path, oct_err *err)
{
    return oct_session_writes_tflite(&s->x) ? oct_session_tflite_write(s, path, err)
                                            : oct_conversion_write(&s->c, path, err);
}

/* Judges before writing, so that a model that misses its goal is written to another name. */
static oct_status save(oct_session *s, oct_err *err)
{
    OCT_TRY(oct_conversion_judge(&s->c, s->output, err));
    if (s->x.in_memory)
        return write_model(s, s->to, err);
    if (is_refused(s) && !(s->output = best_name(s)))
        return oct_nomem(err);
    OCT_TRY(write_model(s, s->output, err));
    if ((s->n_goals || s->x.strict) && !is_refused(s))
        remove_best(s);
    return OCT_OK;
}

oct_status oct_session_make(oct_session *s, oct_err *err)
{
    const char *command = oct_buf_str(&s->made_by);
    if (s->x.dump_policy)
        OCT_TRY(dump_policy(s, command, err));
    OCT_TRY(oct_conversion_make(&s->c, s->output, command, !s->x.dry_run, err));
    return s->x.dry_run ? OCT_OK : save(s, err);
}

/* A missed goal is reported last, and determines the exit code. */
oct_status oct_session_goal(const oct_session *s, oct_err *err)
{
    if (!is_refused(s))
        return OCT_OK;
    if (!s->c.missed) {
        oct_fail(err, OCT_EGOAL, "--strict: %s",
                 s->c.unjudged ? s->c.unjudged : "more is lost than a warning lets pass");
        if (!s->x.in_memory)
            oct_hint(err, "the model is in %s; the path given to -o was not touched", s->output);
        return OCT_EGOAL;
    }
    char text[OCT_GATE_TEXT];
    oct_buf b = OCT_BUF_INIT, samples = OCT_BUF_INIT;
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_goals; i++) {
        const oct_eval_score x = oct_conversion_goal_score(&s->c, i);
        if (!oct_eval_judge(&x, &s->goals[i].limit).missed)
            continue;
        oct_buf_printf(&b, "%s%s", b.len ? "; " : "", oct_goal_text(text, &s->goals[i], &x));
        n = x.n;
    }
    oct_session_samples(s, n, &samples);
    oct_fail(err, OCT_EGOAL, "%s; judged%s", oct_buf_str(&b), oct_buf_str(&samples));
    oct_buf_free(&b);
    oct_buf_free(&samples);
    if (!s->x.in_memory)
        oct_hint(err, "the best model that was found is in %s; the path given to -o was not touched", s->output);
    return OCT_EGOAL;
}

oct_status oct_session_read(const oct_session *s, oct_buf *model, oct_err *err)
{
    char block[1 << 16];
    ssize_t n = 0;
    if (s->memory < 0)
        return OCT_OK;
    if (lseek(s->memory, 0, SEEK_SET) != 0)
        return oct_fail_errno(err, "the model in memory");
    while ((n = oct_file_read(s->memory, block, sizeof block)) > 0)
        oct_buf_add(model, block, (size_t)n);
    return n < 0 ? oct_fail_errno(err, "the model in memory") : model->failed ? oct_nomem(err) : OCT_OK;
}

/* Fails if no choice of schemes has the requested size: then nothing is written. */
oct_status oct_session_fits(const oct_session *s, oct_err *err)
{
    const oct_size_choice *x = &s->c.size;
    char least[32];
    if (!x->missed)
        return OCT_OK;
    oct_fail(
        err, OCT_EGOAL,
        "the file cannot be so small: %llu bytes are allowed, and the fewest that were found are %llu (%s, %.1f %% of the float file)",
        (unsigned long long)x->limit, (unsigned long long)x->least, oct_fmt_bytes(least, x->least),
        100 * (double)x->least / (double)s->c.size_before);
    oct_hint(
        err,
        "allow that size, or remove rules that keep layers as they are; only products of matrices have forms of 4 bits; nothing was written");
    return OCT_EGOAL;
}
