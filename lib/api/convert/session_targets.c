/* One model for several targets: a conversion for each, and a report that compares them, of schema octet-targets-1. */
#include "api/convert_targets.h"

#include "api/answer.h"
#include "api/convert/session_int.h"
#include "base/io.h"
#include "onnx/model.h"

#include <string.h>

typedef struct comparison {
    const octet_convert_options *x;
    const oct_session_host *h;
    oct_arena *arena;
    octet_texts targets;
    oct_model *m;        /* read once: each target takes a copy */
    const char **output; /* [targets.n]: the file of each */
    const char *now;     /* the target at work */
    oct_buf measure;     /* what was measured */
    oct_buf untested;    /* targets that nobody tried on a device */
    oct_buf missed;      /* targets for which a goal was missed, and how */
    bool quiet;          /* nothing is written: all in memory */
} comparison;

/* The name of a target without the folder and the ending of its file. */
static const char *name_of(comparison *c, const char *target)
{
    const octet_convert_options x = { .target = target };
    const char *name = oct_session_target(&x);
    if (!oct_target_is_file(name))
        return name;
    const char *base = oct_path_base(name), *dot = strrchr(base, '.');
    return oct_arena_strndup(c->arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

/* The file for a target: x->output with its name in place of each TARGET, else one beside the model. */
static const char *output_of(comparison *c, const char *name)
{
    const char *pattern = c->x->output, *path = c->x->model, *at;
    if (!pattern)
        return oct_arena_printf(c->arena, "%.*s.%s.onnx", (int)oct_model_stem(path), path, name);
    oct_buf b = OCT_BUF_INIT;
    for (; (at = strstr(pattern, OCT_TARGET_WORD)); pattern = at + strlen(OCT_TARGET_WORD)) {
        oct_buf_add(&b, pattern, (size_t)(at - pattern));
        oct_buf_puts(&b, name);
    }
    oct_buf_puts(&b, pattern);
    const char *text = b.failed ? NULL : oct_arena_strdup(c->arena, oct_buf_str(&b));
    oct_buf_free(&b);
    return text;
}

static oct_status check(const comparison *c, oct_err *err)
{
    const octet_convert_options *x = c->x;
    const struct {
        const char *option;
        bool given;
    } of_one[] = { { "html", x->html != NULL },
                   { "dump-policy", x->dump_policy != NULL },
                   { "sensitivity-file", x->sensitivity_file != NULL } };
    if (!c->targets.n)
        return oct_fail(err, OCT_EUSAGE, "there is no target to convert for");
    if (!x->model)
        return oct_fail(err, OCT_EUSAGE, "there is no model: its name is NULL");
    for (size_t i = 0; i < OCT_COUNT(of_one); i++)
        if (of_one[i].given)
            return oct_fail(err, OCT_EUSAGE, "--%s is about one model, and --target names %zu", of_one[i].option,
                            c->targets.n);
    if (!x->output || strstr(x->output, OCT_TARGET_WORD) || x->dry_run || x->in_memory)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--output %s would be the file of %zu targets", x->output, c->targets.n);
    oct_hint(err, "write " OCT_TARGET_WORD " in place of the target's name: -o model." OCT_TARGET_WORD ".onnx");
    return OCT_EUSAGE;
}

static oct_status name_all(comparison *c, oct_err *err)
{
    const size_t n = c->targets.n;
    if (!(c->output = oct_arena_calloc(c->arena, n, sizeof *c->output)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(c, c->targets.v[i]);
        if (!name || !(c->output[i] = output_of(c, name)))
            return oct_nomem(err);
        for (size_t k = 0; k < i; k++)
            if (strcmp(name, name_of(c, c->targets.v[k])) == 0)
                return oct_fail(err, OCT_EUSAGE, "--target names %s twice", name);
    }
    return OCT_OK;
}

/* ---- one target ---- */

/* Notes are alike for all targets, and are said for the first; warnings name the target. */
static void say_note(void *arg, int level, const char *text)
{
    const comparison *c = arg;
    if (level == OCT_NOTE_WARNING)
        oct_say(c->h->voice, level, "%s: %s", c->now, text);
    else if (c->now == c->targets.v[0])
        oct_say(c->h->voice, level, "%s", text);
}

static void say_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    const oct_voice v = ((comparison *)arg)->h->voice;
    if (v.progress)
        v.progress(v.arg, what, done, total);
}

/* All targets get what one reading of the file gave, whatever happens to it meanwhile. */
static oct_status load(void *arg, const char *path, oct_model **m, oct_err *err)
{
    comparison *c = arg;
    if (!c->m)
        OCT_TRY(oct_load(c->h->voice, path, c->x->model_data, c->x->model_size, &c->m, err));
    return oct_model_copy(c->m, m, err);
}

static void put_row(comparison *c, const oct_session *s, oct_json *j)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "output", c->quiet ? NULL : s->output);
    oct_report_target(j, s);
    oct_json_close(j);
    if (!c->measure.len)
        oct_session_measure(s, &c->measure);
    if (oct_target_rules_of(s->target)->proof == OCT_PROOF_NONE)
        oct_buf_printf(&c->untested, "%s%s", c->untested.len ? ", " : "", oct_target_name(s->target));
}

static oct_status run_session(comparison *c, oct_session *s, oct_json *j, oct_err *err)
{
    oct_err missed = OCT_ERR_INIT;
    if (c->now != c->targets.v[0] && oct_target_rules_of(s->target)->proof == OCT_PROOF_NONE)
        oct_say(c->h->voice, 1, OCT_RULES_ONLY, oct_target_name(s->target));
    OCT_TRY(oct_session_decide(s, err));
    OCT_TRY(oct_session_fits(s, err));
    OCT_TRY(oct_session_make(s, err));
    put_row(c, s, j);
    if (oct_session_goal(s, &missed) != OCT_OK)
        oct_buf_printf(&c->missed, "%s%s: %s", c->missed.len ? "; " : "", c->now, missed.text);
    return OCT_OK;
}

static oct_status run(comparison *c, size_t i, oct_json *j, oct_err *err)
{
    octet_convert_options x = *c->x;
    oct_session_host h = *c->h;
    oct_session *s;
    x.target = c->targets.v[i];
    x.output = c->output[i];
    x.in_memory = c->quiet;
    x.dry_run = false;
    h.voice = (oct_voice){ say_note, say_progress, c, load };
    h.command = NULL;
    oct_status st = oct_session_open(&x, &h, &s, err);
    if (st == OCT_OK)
        st = run_session(c, s, j, err);
    oct_session_close(s);
    return st;
}

static oct_status run_all(comparison *c, oct_json *j, oct_err *err)
{
    oct_json_open(j, "targets", '[');
    for (size_t i = 0; i < c->targets.n; i++) {
        c->now = c->targets.v[i];
        const oct_status st = run(c, i, j, err);
        OCT_TRY_WITHIN(st, err, "--target %s", c->now);
    }
    oct_json_close(j);
    return OCT_OK;
}

/* ---- the report ---- */

static void put_command(const comparison *c, oct_buf *b)
{
    octet_convert_options x = *c->x;
    oct_buf list = OCT_BUF_INIT;
    for (size_t i = 0; i < c->targets.n; i++)
        oct_buf_printf(&list, "%s%s", i ? "," : "", c->targets.v[i]);
    x.target = oct_buf_str(&list);
    oct_session_command(&x, false, b);
    if (x.output) {
        oct_buf_puts(b, " -o ");
        oct_quote(b, x.output);
    }
    b->failed |= list.failed;
    oct_buf_free(&list);
}

/* What to do: write the files, or see what one is made of. */
static void put_answer(const void *of, oct_json *j)
{
    const comparison *c = of;
    oct_buf text = OCT_BUF_INIT, command = OCT_BUF_INIT;
    const octet_convert_options *x = c->x;
    const bool files = !x->model_data && !x->samples.get && strcmp(x->model, "-") != 0;
    oct_json_open(j, "answer", '[');
    if (c->untested.len) {
        oct_buf_printf(&text, "Untested on a device: %s. What they run is known from their documents.",
                       oct_buf_str(&c->untested));
        oct_answer_item(j, "targets", &text, &command);
    }
    if (c->measure.len) {
        oct_buf_printf(&text, "Measured: %s.", oct_buf_str(&c->measure));
        oct_answer_item(j, "accuracy", &text, &command);
    }
    if (files && x->dry_run) {
        oct_buf_puts(&text, "To write the files:");
        put_command(c, &command);
        oct_answer_item(j, "next", &text, &command);
    } else if (files) {
        oct_buf_puts(&text, "What a target makes of each layer:");
        oct_buf_puts(&command, "qconvert lint ");
        oct_quote(&command, c->quiet ? x->model : c->output[0]);
        oct_buf_puts(&command, " --target ");
        oct_quote(&command, c->targets.v[0]);
        oct_buf_puts(&command, " -v");
        oct_answer_item(j, "next", &text, &command);
    }
    oct_json_close(j);
    oct_buf_free(&text);
    oct_buf_free(&command);
}

static oct_status compare(comparison *c, oct_document *to, oct_err *err)
{
    oct_json j = { .to = to };
    OCT_TRY(check(c, err));
    OCT_TRY(name_all(c, err));
    oct_report_open(&j, "octet-targets-1");
    oct_json_str(&j, "model", c->x->model);
    OCT_TRY(run_all(c, &j, err));
    if (c->measure.len)
        oct_json_str(&j, "measured", oct_buf_str(&c->measure));
    put_answer(c, &j);
    oct_answer_next(&j, put_answer, c);
    oct_json_close(&j);
    if (c->missed.len)
        return oct_fail(err, OCT_EGOAL, "%s", oct_buf_str(&c->missed));
    return c->measure.failed || c->missed.failed || c->untested.failed ? oct_nomem(err) : OCT_OK;
}

oct_status oct_targets_convert(const octet_convert_options *x, octet_texts targets, const oct_session_host *h,
                               oct_document *to, oct_err *err)
{
    comparison c = {
        .x = x, .h = h, .targets = targets, .arena = oct_arena_create(), .quiet = x->dry_run || x->in_memory
    };
    const oct_status s = c.arena ? compare(&c, to, err) : oct_nomem(err);
    oct_model_free(c.m);
    oct_buf_free(&c.measure);
    oct_buf_free(&c.untested);
    oct_buf_free(&c.missed);
    oct_arena_destroy(c.arena);
    return s;
}
