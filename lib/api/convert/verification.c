#define _XOPEN_SOURCE 700
/* Makes a model again from what its record names, and compares the bytes. */
#include "api/convert/verification_int.h"
#include "api/inspect.h"

#include "base/io.h"
#include "base/scratch.h"
#include "data/source/synthetic.h"
#include "onnx/differ.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the record ---- */

static oct_status no_record(const oct_verification *v, oct_err *err)
{
    const char *version = oct_model_meta(v->m, "octet.version");
    if (!version)
        return oct_fail(
            err, OCT_EUNSUPPORTED,
            "%s: it has no record: qconvert did not write it, nothing in it became smaller, or its metadata were removed",
            v->x->model);
    if (strcmp(version, OCT_VERSION) != 0) {
        oct_fail(err, OCT_EUNSUPPORTED,
                 "%s: it was made by version %.60s, and this is %s: other versions may write other bytes", v->x->model,
                 version, OCT_VERSION);
        oct_hint(err, "verify it with version %.60s", version);
        return OCT_EUNSUPPORTED;
    }
    return oct_fail(err, OCT_EUNSUPPORTED,
                    "%s: its record is incomplete: octet.command or " OCT_RECORD_KEY " is missing", v->x->model);
}

static oct_status read_record(oct_verification *v, oct_err *err)
{
    const char *version = oct_model_meta(v->m, "octet.version"), *record = oct_model_meta(v->m, OCT_RECORD_KEY),
               *trials = oct_model_meta(v->m, "octet.trials");
    v->command = oct_model_meta(v->m, "octet.command");
    if (!version || strcmp(version, OCT_VERSION) != 0 || !v->command || !record)
        return no_record(v, err);
    OCT_TRY_WITHIN(oct_record_read(record, &v->record, err), err, "%s", v->x->model);
    OCT_TRY(oct_session_read_command(&v->made, v->x->model, v->command, &v->record, v->arena, err));
    if (trials && strstr(trials, "until the time limit"))
        return oct_fail(
            err, OCT_EUNSUPPORTED,
            "%s: a time limit ended its trials, so its bytes depend on the machine and cannot be made again",
            v->x->model);
    return OCT_OK;
}

/* ---- the given files ---- */

/* Checks that each needed file was given, and no other. */
static oct_status match_option(const oct_verification *v, const char *option, bool made, bool given, oct_err *err)
{
    if (made == given)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE,
             made ? "%s: --%s is missing: the model was made with it"
                  : "%s: --%s is given, but the model was made without it",
             v->x->model, option);
    oct_hint(err, "its command was: %.300s", v->command);
    return OCT_EUSAGE;
}

static oct_status match_options(const oct_verification *v, oct_err *err)
{
    const octet_convert_options *a = v->x, *r = &v->made;
    const octet_texts data = r->samples.data;
    const bool made = data.n == 1 && strcmp(data.v[0], OCT_SYNTHETIC) == 0;
    OCT_TRY(match_option(v, "data", data.n > 0 && !made, a->samples.data.n > 0, err));
    OCT_TRY(match_option(v, "calib", r->calib, a->calib, err));
    OCT_TRY(match_option(v, "policy", r->policy, a->policy, err));
    OCT_TRY(match_option(v, "target", oct_session_target_file(r), a->target, err));
    OCT_TRY(match_option(v, "labels", r->samples.labels, a->samples.labels, err));
    OCT_TRY(match_option(v, "truth", r->truth, a->truth, err));
    OCT_TRY(match_option(v, "decode", oct_rule_file(r->decode), oct_rule_file(a->decode), err));
    OCT_TRY(match_option(v, "metric-cmd", r->metric_command, a->metric_command, err));
    if (a->metric_command && !oct_command_is_like(a->metric_command, r->metric_command))
        return oct_fail(err, OCT_EUSAGE, "%s: --metric-cmd was '%.200s'", a->model, r->metric_command);
    return OCT_OK;
}

/* Puts the present files into the recorded options. */
static void put_files(oct_verification *v)
{
    const octet_convert_options *a = v->x;
    octet_convert_options *x = &v->again;
    *x = v->made;
    x->model = v->source;
    if (a->samples.data.n)
        x->samples.data = a->samples.data;
    x->calib = a->calib;
    x->policy = a->policy;
    x->samples.labels = a->samples.labels;
    x->truth = a->truth;
    x->metric_command = a->metric_command;
    x->metric_timeout = a->metric_timeout;
    x->time_limit = 0; /* the time limit did not end the recorded conversion early */
    x->threads = a->threads;
    if (oct_session_target_file(x))
        x->target = a->target;
    if (oct_rule_file(x->decode))
        x->decode = a->decode;
}

static oct_status match_part(const oct_verification *v, oct_record_part p, const char *path, const oct_record_entry *is,
                             oct_err *err)
{
    const oct_record_entry *was = &v->record.part[p];
    if (was->there == is->there && strcmp(was->sha256, is->sha256) == 0 && was->n == is->n)
        return OCT_OK;
    if (was->there && is->there && strcmp(was->sha256, "-") == 0)
        return OCT_OK; /* the comparison of bytes will tell */
    oct_fail(err, OCT_EUSAGE, "%s: this is not the %s that %s was made from", path, oct_record_words(p), v->x->model);
    oct_hint(err, "its %s%.64s, the record has %s%.64s", is->there ? "SHA-256 is " : "SHA-256 is that of ",
             is->there ? is->sha256 : "nothing", was->there ? "" : "none", was->there ? was->sha256 : "");
    return OCT_EUSAGE;
}

/* Lists the present path of each input; NULL: there is none. */
static void list_paths(const oct_verification *v, const char *path[OCT_RECORD_PARTS])
{
    const octet_convert_options *x = v->x;
    const char *const of[OCT_RECORD_PARTS] = { [OCT_RECORD_SOURCE] = v->source,
                                               [OCT_RECORD_SOURCE_DATA] = v->source,
                                               [OCT_RECORD_TABLE] = x->calib,
                                               [OCT_RECORD_POLICY] = x->policy,
                                               [OCT_RECORD_TARGET] = x->target,
                                               [OCT_RECORD_LABELS] = x->samples.labels,
                                               [OCT_RECORD_TRUTH] = x->truth,
                                               [OCT_RECORD_RULE] = oct_rule_file(x->decode),
                                               [OCT_RECORD_SAMPLES] = x->samples.data.n ? x->samples.data.v[0] : NULL };
    memcpy(path, of, sizeof of);
}

/* Compares the digests of all inputs except samples, before any work. */
static oct_status match_parts(const oct_verification *v, oct_err *err)
{
    const octet_convert_options *a = v->x;
    const char *path[OCT_RECORD_PARTS];
    list_paths(v, path);
    oct_record r = { 0 };
    oct_record_model(&r, v->s->m);
    oct_record_file(&r, OCT_RECORD_TABLE, a->calib);
    oct_record_file(&r, OCT_RECORD_POLICY, a->policy);
    oct_record_file(&r, OCT_RECORD_TARGET, oct_session_target_file(&v->again));
    oct_record_file(&r, OCT_RECORD_LABELS, a->samples.labels);
    oct_record_file(&r, OCT_RECORD_TRUTH, a->truth);
    oct_record_file(&r, OCT_RECORD_RULE, path[OCT_RECORD_RULE]);
    for (int p = 0; p < OCT_RECORD_SAMPLES; p++)
        OCT_TRY(match_part(v, (oct_record_part)p, path[p] ? path[p] : a->model, &r.part[p], err));
    return OCT_OK;
}

/* ---- making it again ---- */

/* Names the draft. It has the model's name, because external data are named after it, and it replaces nothing. With
 * external data, which are larger than 2 GB, it is made in the model's folder: the folder of temporary files may be too
 * small. */
static oct_status name_draft(oct_verification *v, oct_err *err)
{
    const char *name = oct_path_base(v->x->model);
    if (v->m->n_maps > (v->m->from_file ? 1u : 0u)) {
        v->again.output = v->x->model;
        return OCT_OK;
    }
    OCT_TRY(oct_scratch_create(strcmp(name, "-") == 0 ? "model.onnx" : name, "the model that is made again",
                               &v->scratch, err));
    v->again.output = oct_scratch_path(v->scratch);
    return OCT_OK;
}

/* Notes and warnings are not repeated. */
static oct_status make_again(oct_verification *v, oct_err *err)
{
    const oct_voice said = v->h->voice;
    const oct_session_host host = { .voice = { .progress = said.progress, .arg = said.arg, .load = said.load },
                                    .recorded = v->command,
                                    .spill = v->h->spill };
    OCT_TRY(oct_session_open(&v->again, &host, &v->s, err));
    oct_session *s = v->s;
    OCT_TRY(match_parts(v, err));
    OCT_TRY(oct_session_decide(s, err));
    if (v->record.part[OCT_RECORD_SAMPLES].there || s->c.read.there)
        OCT_TRY(match_part(v, OCT_RECORD_SAMPLES, v->x->samples.data.n ? v->x->samples.data.v[0] : v->x->model,
                           &s->c.read, err));
    OCT_TRY(oct_conversion_make(&s->c, s->output, v->command, false, err));
    return oct_conversion_draft(&s->c, s->output, &v->draft, err);
}

static oct_status compare(const oct_verification *v, oct_err *err)
{
    oct_model *again;
    oct_buf where = OCT_BUF_INIT;
    OCT_TRY(oct_model_draft_load(v->draft, &again, err));
    if (!again)
        return oct_fail(err, OCT_EUSAGE, "%s: the model that was made again cannot be read back", v->x->model);
    oct_status st = OCT_OK;
    if (oct_model_differs(v->m, again, &where)) {
        st = where.failed ? oct_nomem(err)
                          : oct_fail(err, OCT_EGOAL, "%s: it is not what its record says. First difference: %.700s",
                                     v->x->model, oct_buf_str(&where));
        if (st == OCT_EGOAL)
            oct_hint(err, "the model or its record was changed after it was written");
    }
    oct_buf_free(&where);
    oct_model_free(again);
    return st;
}

/* ---- the report ---- */

/* What is written of another name than the file has now: it is not proved. */
static void put_other_name(oct_buf *b, const char *recorded, const char *path)
{
    const char *now = path ? oct_path_base(path) : "";
    if (*recorded && *now && strcmp(oct_path_base(recorded), now) != 0)
        oct_buf_printf(b, " (the record calls it %s)", oct_path_base(recorded));
}

static void put_part(oct_json *j, const oct_verification *v, oct_record_part p, const char *path)
{
    const oct_record_entry *e = &v->record.part[p];
    const bool known = strcmp(e->sha256, "-") != 0;
    oct_buf text = OCT_BUF_INIT;
    oct_buf_printf(&text, "%s %s", oct_record_words(p), path ? oct_path_base(path) : "");
    put_other_name(&text, oct_verification_name(v, p), path);
    oct_buf_puts(&text, ", ");
    if (p == OCT_RECORD_SAMPLES)
        oct_buf_printf(&text, "%llu, ", (unsigned long long)e->n);
    oct_buf_printf(&text, known ? "sha256 %s" : "read once, so its hash is not known", e->sha256);
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "what", oct_record_name(p));
    oct_json_str(j, "name", oct_verification_name(v, p));
    oct_json_str(j, "sha256", known ? e->sha256 : NULL);
    if (p == OCT_RECORD_SAMPLES)
        oct_json_int(j, "samples", (int64_t)e->n);
    oct_json_str(j, "text", oct_buf_str(&text));
    oct_json_close(j);
    oct_buf_free(&text);
}

/* difference: NULL: there is none. */
static void put_report(const oct_verification *v, const char *difference, oct_document *to)
{
    const char *path[OCT_RECORD_PARTS];
    oct_json j = { .to = to };
    list_paths(v, path);
    oct_report_open(&j, "octet-verify-1");
    oct_json_str(&j, "model", v->x->model);
    oct_json_bool(&j, "verified", !difference);
    oct_json_str(&j, "difference", difference);
    oct_json_int(&j, "bytes", (int64_t)oct_model_bytes(v->m));
    oct_json_str(&j, "command", v->command);
    oct_json_open(&j, "inputs", '[');
    for (int p = 0; p < OCT_RECORD_PARTS; p++)
        if (v->record.part[p].there)
            put_part(&j, v, (oct_record_part)p, path[p]);
    oct_json_close(&j);
    oct_json_close(&j);
}

/* ---- the whole verification ---- */

static oct_status check_outputs(const oct_verification *v, const char *evaluation, oct_err *err)
{
    const octet_convert_options *x = v->x;
    const char *const in[] = {
        x->model, v->source, x->calib, x->policy, x->samples.labels, x->truth, oct_rule_file(x->decode), evaluation
    };
    for (size_t i = 0; i < v->h->n_written; i++) {
        const char *out = v->h->written[i];
        OCT_TRY(oct_check_output(out, in, OCT_COUNT(in), err));
        OCT_TRY(oct_check_output(out, x->samples.data.v, x->samples.data.n, err));
        OCT_TRY(oct_check_model_output(out, v->m, err));
    }
    return OCT_OK;
}

static oct_status verify(oct_verification *v, const char *evaluation, oct_document *to, oct_document *statement,
                         oct_err *err)
{
    if (!(v->arena = oct_arena_create_on_heap())) /* it outlives the session */
        return oct_nomem(err);
    OCT_TRY(oct_load(v->h->voice, v->x->model, v->x->model_data, v->x->model_size, &v->m, err));
    OCT_TRY(check_outputs(v, evaluation, err));
    OCT_TRY(read_record(v, err));
    OCT_TRY(match_options(v, err));
    put_files(v);
    OCT_TRY(name_draft(v, err));
    OCT_TRY(make_again(v, err));
    const oct_status same = compare(v, err);
    if (same == OCT_OK || same == OCT_EGOAL)
        put_report(v, same == OCT_OK ? NULL : err->text, to);
    OCT_TRY(same);
    return statement ? oct_verification_state(v, evaluation, statement, err) : OCT_OK;
}

oct_status oct_session_verify(const octet_convert_options *x, const oct_session_host *h, const char *source,
                              const char *evaluation, oct_document *to, oct_document *statement, oct_err *err)
{
    oct_verification v = { .x = x, .source = source, .h = h };
    const oct_status s = verify(&v, evaluation, to, statement, err);
    oct_model_draft_abort(v.draft);
    oct_session_close(v.s);
    oct_scratch_remove(v.scratch);
    oct_model_free(v.m);
    oct_arena_destroy(v.arena);
    return s;
}
