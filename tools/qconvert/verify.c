/* qconvert verify MODEL: makes the model again from what its record names, and compares the bytes. */
#define _XOPEN_SOURCE 700
#include "qconvert/verify.h"

#include "base/guard.h"
#include "base/io.h"
#include "cli/textfmt.h"
#include "data/source/synthetic.h"
#include "onnx/differ.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the record ---- */

static oct_status no_record(const verification *v, oct_err *err)
{
    const char *version = oct_model_meta(v->m, "octet.version");
    if (!version)
        return oct_fail(
            err, OCT_EUNSUPPORTED,
            "%s: it has no record: qconvert did not write it, nothing in it became smaller, or its metadata were removed",
            v->a->x.model);
    if (strcmp(version, OCT_VERSION) != 0) {
        oct_fail(err, OCT_EUNSUPPORTED,
                 "%s: it was made by version %.60s, and this is %s: other versions may write other bytes",
                 v->a->x.model, version, OCT_VERSION);
        oct_hint(err, "verify it with version %.60s", version);
        return OCT_EUNSUPPORTED;
    }
    return oct_fail(err, OCT_EUNSUPPORTED,
                    "%s: its record is incomplete: octet.command or " OCT_RECORD_KEY " is missing", v->a->x.model);
}

static oct_status read_record(verification *v, oct_err *err)
{
    const char *version = oct_model_meta(v->m, "octet.version"), *record = oct_model_meta(v->m, OCT_RECORD_KEY),
               *trials = oct_model_meta(v->m, "octet.trials");
    v->command = oct_model_meta(v->m, "octet.command");
    if (!version || strcmp(version, OCT_VERSION) != 0 || !v->command || !record)
        return no_record(v, err);
    OCT_TRY_WITHIN(oct_record_read(record, &v->record, err), err, "%s", v->a->x.model);
    OCT_TRY(recorded_read(&v->made, v->a->x.model, v->command, &v->record, v->arena, err));
    if (trials && strstr(trials, "until the time limit"))
        return oct_fail(
            err, OCT_EUNSUPPORTED,
            "%s: a time limit ended its trials, so its bytes depend on the machine and cannot be made again",
            v->a->x.model);
    return OCT_OK;
}

/* ---- the given files ---- */

/* Checks that each needed file was given, and no other. */
static oct_status match_option(const verification *v, const char *option, bool made, bool given, oct_err *err)
{
    if (made == given)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE,
             made ? "%s: --%s is missing: the model was made with it"
                  : "%s: --%s is given, but the model was made without it",
             v->a->x.model, option);
    oct_hint(err, "its command was: %.300s", v->command);
    return OCT_EUSAGE;
}

static oct_status match_options(const verification *v, oct_err *err)
{
    const octet_convert_options *a = &v->a->x, *r = &v->made.x;
    const octet_texts data = r->samples.data;
    const bool made = data.n == 1 && strcmp(data.v[0], OCT_SYNTHETIC) == 0;
    OCT_TRY(match_option(v, "data", data.n > 0 && !made, v->a->data.specs.n > 0, err));
    OCT_TRY(match_option(v, "calib", r->calib, a->calib, err));
    OCT_TRY(match_option(v, "policy", r->policy, a->policy, err));
    OCT_TRY(match_option(v, "target", oct_session_target_file(r), oct_cli_given(v->cli, "target"), err));
    OCT_TRY(match_option(v, "labels", r->samples.labels, v->a->data.labels, err));
    OCT_TRY(match_option(v, "truth", r->truth, a->truth, err));
    OCT_TRY(match_option(v, "decode", oct_rule_file(r->decode), oct_rule_file(a->decode), err));
    OCT_TRY(match_option(v, "metric-cmd", r->metric_command, a->metric_command, err));
    if (a->metric_command && !oct_command_is_like(a->metric_command, r->metric_command))
        return oct_fail(err, OCT_EUSAGE, "%s: --metric-cmd was '%.200s'", a->model, r->metric_command);
    return OCT_OK;
}

/* Puts the present files into the recorded options. */
static void put_files(verification *v)
{
    const octet_convert_options *a = &v->a->x;
    octet_convert_options *x = &v->again;
    *x = v->made.x;
    x->model = v->a->source;
    if (v->a->data.specs.n)
        x->samples.data = tool_texts(v->a->data.specs);
    x->calib = a->calib;
    x->policy = a->policy;
    x->samples.labels = v->a->data.labels;
    x->truth = a->truth;
    x->metric_command = a->metric_command;
    x->metric_timeout = a->metric_timeout;
    x->time_limit = 0; /* the time limit did not end the recorded conversion early */
    x->threads = (int)v->cli->threads;
    if (oct_session_target_file(x))
        x->target = a->target;
    if (oct_rule_file(x->decode))
        x->decode = a->decode;
}

static oct_status match_part(const verification *v, oct_record_part p, const char *path, const oct_record_entry *is,
                             oct_err *err)
{
    const oct_record_entry *was = &v->record.part[p];
    if (was->there == is->there && strcmp(was->sha256, is->sha256) == 0 && was->n == is->n)
        return OCT_OK;
    if (was->there && is->there && strcmp(was->sha256, "-") == 0)
        return OCT_OK; /* the comparison of bytes will tell */
    oct_fail(err, OCT_EUSAGE, "%s: this is not the %s that %s was made from", path, oct_record_words(p), v->a->x.model);
    oct_hint(err, "its %s%.64s, the record has %s%.64s", is->there ? "SHA-256 is " : "SHA-256 is that of ",
             is->there ? is->sha256 : "nothing", was->there ? "" : "none", was->there ? was->sha256 : "");
    return OCT_EUSAGE;
}

/* Lists the present path of each input; NULL: there is none. */
static void list_paths(const convert_args *a, const char *path[OCT_RECORD_PARTS])
{
    const char *const of[OCT_RECORD_PARTS] = { [OCT_RECORD_SOURCE] = a->source,
                                               [OCT_RECORD_SOURCE_DATA] = a->source,
                                               [OCT_RECORD_TABLE] = a->x.calib,
                                               [OCT_RECORD_POLICY] = a->x.policy,
                                               [OCT_RECORD_TARGET] = a->x.target,
                                               [OCT_RECORD_LABELS] = a->data.labels,
                                               [OCT_RECORD_TRUTH] = a->x.truth,
                                               [OCT_RECORD_RULE] = oct_rule_file(a->x.decode),
                                               [OCT_RECORD_SAMPLES] = a->data.specs.n ? a->data.specs.v[0] : NULL };
    memcpy(path, of, sizeof of);
}

/* Compares the digests of all inputs except samples, before any work. */
static oct_status match_parts(const verification *v, oct_err *err)
{
    const convert_args *a = v->a;
    const char *path[OCT_RECORD_PARTS];
    list_paths(a, path);
    oct_record r = { 0 };
    oct_record_model(&r, v->s.m);
    oct_record_file(&r, OCT_RECORD_TABLE, a->x.calib);
    oct_record_file(&r, OCT_RECORD_POLICY, a->x.policy);
    oct_record_file(&r, OCT_RECORD_TARGET, oct_session_target_file(&v->again));
    oct_record_file(&r, OCT_RECORD_LABELS, a->data.labels);
    oct_record_file(&r, OCT_RECORD_TRUTH, a->x.truth);
    oct_record_file(&r, OCT_RECORD_RULE, path[OCT_RECORD_RULE]);
    for (int p = 0; p < OCT_RECORD_SAMPLES; p++)
        OCT_TRY(match_part(v, (oct_record_part)p, path[p] ? path[p] : a->x.model, &r.part[p], err));
    return OCT_OK;
}

/* ---- making it again ---- */

/* Names the draft. It has the model's name, because external data are named after it, and it replaces nothing. With
 * external data, which are larger than 2 GB, it is made in the model's folder: the folder of temporary files may be too
 * small. */
static oct_status name_draft(verification *v, oct_err *err)
{
    const char *name = oct_path_base(v->a->x.model);
    if (v->m->n_maps > (v->m->from_file ? 1u : 0u)) {
        v->again.output = v->a->x.model;
        return OCT_OK;
    }
    OCT_TRY(oct_scratch_create(strcmp(name, "-") == 0 ? "model.onnx" : name, "the model that is made again",
                               &v->scratch, err));
    v->again.output = oct_scratch_path(v->scratch);
    return OCT_OK;
}

/* Notes and warnings are not repeated. */
static oct_status make_again(verification *v, oct_err *err)
{
    oct_session *s = &v->s;
    const oct_session_host host = { .voice = { .progress = tool_say_progress, .arg = v->cli, .load = tool_load },
                                    .recorded = v->command };
    OCT_TRY(oct_session_open(s, &v->again, &host, err));
    OCT_TRY(match_parts(v, err));
    OCT_TRY(oct_session_decide(s, err));
    if (v->record.part[OCT_RECORD_SAMPLES].there || s->c.read.there)
        OCT_TRY(match_part(v, OCT_RECORD_SAMPLES, v->a->data.specs.n ? v->a->data.specs.v[0] : v->a->x.model,
                           &s->c.read, err));
    OCT_TRY(oct_conversion_make(&s->c, s->output, v->command, false, err));
    return oct_conversion_draft(&s->c, s->output, &v->draft, err);
}

static oct_status compare(const verification *v, oct_err *err)
{
    oct_model *again;
    oct_buf where = OCT_BUF_INIT;
    OCT_TRY(oct_model_draft_load(v->draft, &again, err));
    if (!again)
        return oct_fail(err, OCT_EUSAGE, "%s: the model that was made again cannot be read back", v->a->x.model);
    oct_status st = OCT_OK;
    if (oct_model_differs(v->m, again, &where)) {
        st = where.failed ? oct_nomem(err)
                          : oct_fail(err, OCT_EGOAL, "%s: it is not what its record says. First difference: %.700s",
                                     v->a->x.model, oct_buf_str(&where));
        if (st == OCT_EGOAL)
            oct_hint(err, "the model or its record was changed after it was written");
    }
    oct_buf_free(&where);
    oct_model_free(again);
    return st;
}

/* ---- the report ---- */

static void put_part(const verification *v, FILE *f, oct_record_part p, const char *path)
{
    const oct_record_entry *e = &v->record.part[p];
    if (!e->there)
        return;
    oct_print(f, "  %s %s, ", oct_record_words(p), path ? oct_path_base(path) : "");
    if (p == OCT_RECORD_SAMPLES)
        oct_print(f, "%llu, ", (unsigned long long)e->n);
    oct_print(f, strcmp(e->sha256, "-") == 0 ? "read once, so its hash is not known\n" : "sha256 %s\n", e->sha256);
}

static void print(const verification *v, FILE *f)
{
    const convert_args *a = v->a;
    oct_print(f, "verified: %s is, to its last byte (%llu), what octet %s makes of:\n", a->x.model,
              (unsigned long long)oct_model_bytes(v->m), OCT_VERSION);
    const char *path[OCT_RECORD_PARTS];
    list_paths(a, path);
    for (int p = 0; p < OCT_RECORD_PARTS; p++)
        put_part(v, f, (oct_record_part)p, path[p]);
    oct_print(f, "  command %s\n", v->command);
}

static void put_json_part(oct_json *j, const oct_record *r, oct_record_part p)
{
    const oct_record_entry *e = &r->part[p];
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "what", oct_record_name(p));
    oct_json_str(j, "sha256", strcmp(e->sha256, "-") == 0 ? NULL : e->sha256);
    if (p == OCT_RECORD_SAMPLES)
        oct_json_int(j, "samples", (int64_t)e->n);
    oct_json_close(j);
}

static oct_status write_json(const verification *v, bool same, const oct_err *why, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_report_open(&j, "octet-verify-1");
    oct_json_str(&j, "model", v->a->x.model);
    oct_json_bool(&j, "verified", same);
    oct_json_str(&j, "difference", same ? NULL : why->text);
    oct_json_int(&j, "bytes", (int64_t)oct_model_bytes(v->m));
    oct_json_str(&j, "command", v->command);
    oct_json_open(&j, "inputs", '[');
    for (int p = 0; p < OCT_RECORD_PARTS; p++)
        if (v->record.part[p].there)
            put_json_part(&j, &v->record, (oct_record_part)p);
    oct_json_close(&j);
    return tool_write_json(v->cli->json, &j, err);
}

/* ---- the whole verification ---- */

static oct_status check_outputs(const verification *v, oct_err *err)
{
    const convert_args *a = v->a;
    const char *const in[] = { a->x.model,
                               a->source,
                               a->x.calib,
                               a->x.policy,
                               a->data.labels,
                               a->x.truth,
                               oct_rule_file(a->x.decode),
                               a->evaluation },
                      *const out[] = { v->cli->json, a->statement };
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(oct_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(oct_check_output(out[i], a->data.specs.v, a->data.specs.n, err));
        OCT_TRY(oct_check_model_output(out[i], v->m, err));
    }
    return OCT_OK;
}

static oct_status verify(verification *v, oct_err *err)
{
    OCT_TRY(tool_load(v->cli, v->a->x.model, &v->m, err));
    OCT_TRY(check_outputs(v, err));
    OCT_TRY(read_record(v, err));
    OCT_TRY(match_options(v, err));
    put_files(v);
    OCT_TRY(name_draft(v, err));
    OCT_TRY(make_again(v, err));
    const oct_status same = compare(v, err);
    if ((same == OCT_OK || same == OCT_EGOAL) && v->cli->json)
        OCT_TRY(write_json(v, same == OCT_OK, err, same == OCT_OK ? err : NULL));
    OCT_TRY(same);
    OCT_TRY(statement_write(v, err));
    if (!v->cli->quiet)
        print(v, oct_cli_result(v->cli));
    return OCT_OK;
}

oct_status qconvert_verify(oct_cli *cli, const convert_args *a, oct_err *err)
{
    verification v = { .cli = cli, .a = a, .s.memory = -1 };
    if (!(v.arena = oct_arena_create()))
        return oct_nomem(err);
    const oct_status st = verify(&v, err);
    oct_model_draft_abort(v.draft);
    oct_session_close(&v.s);
    oct_scratch_remove(v.scratch);
    oct_model_free(v.m);
    oct_arena_destroy(v.made.cli.arena);
    oct_arena_destroy(v.arena);
    return st;
}
