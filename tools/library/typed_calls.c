/* Conversions, calibrations and evaluations from typed options to a result. */
#include "model_int.h"

#include "api/calibration.h"
#include "api/convert_targets.h"
#include "api/evaluation.h"
#include "api/folder/folder.h"
#include "api/inspect.h"
#include "api/report_forms.h"
#include "api/session.h"
#include "base/io.h"
#include "data/data.h"

#include <string.h>
#include <unistd.h>

struct octet_result {
    oct_document *report;
    oct_buf json, model; /* model: its bytes; empty: they were not asked for, or nothing was made */
};

/* A call with options of one kind or the other. */
typedef struct typed {
    const void *options;
    const char
        *name; /* of a node to explain, of the float model of one to verify, of a file of measurements, of a recipe */
    octet_texts targets; /* of a conversion for several */
    octet_result *result, **to;
    bool in_callback; /* the caller is */
    octet *o;
    const octet_samples *samples;
    octet_convert_options convert; /* the options with all members that are known here */
    octet_calibrate_options calibrate;
    octet_evaluate_options evaluate;
    oct_session *s;
    oct_evaluation *e;
    oct_given_samples given; /* for samples->get */
} typed;

/* ---- options ---- */

/* The options as this version knows them: what an older caller does not know is as usual. x: the usual ones, of `known`
 * bytes; the first member is the size. */
static oct_status take_options(const void *given, void *x, size_t known, oct_err *err)
{
    size_t size = 0;
    if (given)
        memcpy(&size, given, sizeof size);
    if (size < sizeof size || size % sizeof(void *)) /* no pointer is there in part */
        return oct_fail(err, OCT_EUSAGE, "the options were not set by octet_convert_init or the like");
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i])
            return oct_fail(err, OCT_EUSAGE, "an option is set that this version of the library does not have");
    memcpy(x, given, size < known ? size : known);
    return OCT_OK;
}

static oct_status check_texts(const octet_texts *list, size_t n, oct_err *err)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < list[k].n; i++)
            if (!list[k].v || !list[k].v[i])
                return oct_fail(err, OCT_EUSAGE, "a list of %zu texts has one that is NULL", list[k].n);
    return OCT_OK;
}

/* The streams are the process's own, also where a link leads to them. */
static oct_status check_stream(const char *path, oct_err *err)
{
    oct_place p;
    if (!path)
        return OCT_OK;
    if (!*path)
        return oct_fail(err, OCT_EUSAGE, "the name of a file is empty");
    int fd = strcmp(path, "-") == 0 ? 0 : oct_path_fd(path);
    if (fd < 0 && oct_place_find(&p, path, NULL) == OCT_OK)
        fd = p.fd;
    if (fd >= 0 && fd <= 2)
        return oct_fail(err, OCT_EUSAGE, "'%s': the library reads and writes files, not the streams of its process",
                        path);
    return OCT_OK;
}

/* What would have no effect is a mistake. */
static oct_status check_samples(const octet_samples *d, oct_err *err)
{
    const bool how = d->preprocess.n || d->samples || d->skip_bad || d->states.n || d->labels || d->generate;
    if (how && !oct_samples_any(d))
        return oct_fail(err, OCT_EUSAGE, "options about samples are given, and no samples");
    if ((d->first || d->seed >= 0) && !d->samples)
        return oct_fail(err, OCT_EUSAGE, "which samples to use is told, and not how many");
    return d->first && d->seed >= 0
               ? oct_fail(err, OCT_EUSAGE, "the first samples are asked for, and others by a seed: give one of the two")
               : OCT_OK;
}

static oct_status check_files(const char *const *path, size_t n, const octet_samples *d, const void *data, size_t size,
                              oct_err *err)
{
    const octet_texts lists[] = { d->data, d->preprocess, d->states };
    OCT_TRY(check_texts(lists, OCT_COUNT(lists), err));
    for (size_t i = data ? 1 : 0; i < n; i++) /* the first is the model's, or what it is called */
        OCT_TRY(check_stream(path[i], err));
    for (size_t i = 0; i < d->data.n; i++)
        OCT_TRY(check_stream(d->data.v[i], err));
    OCT_TRY(check_stream(d->labels, err));
    OCT_TRY(check_samples(d, err));
    return data || !size ? OCT_OK : oct_fail(err, OCT_EUSAGE, "%zu bytes of a model are given, which are NULL", size);
}

static oct_status check_convert(const octet_convert_options *x, oct_err *err)
{
    const octet_texts lists[] = { x->rules,    x->disabled_passes, x->methods,     x->no_methods,
                                  x->max_drop, x->input_types,     x->output_types };
    const char *const paths[] = { x->model,
                                  x->output,
                                  x->calib,
                                  x->policy,
                                  x->truth,
                                  x->dump_policy,
                                  x->sensitivity_file,
                                  oct_session_target_file(x),
                                  oct_rule_file(x->decode),
                                  x->html };
    OCT_TRY(check_texts(lists, OCT_COUNT(lists), err));
    return check_files(paths, OCT_COUNT(paths), &x->samples, x->model_data, x->model_size, err);
}

/* ---- what the caller is asked and told ---- */

static void note(void *arg, int level, const char *text)
{
    if (level <= 0)
        octet_say(arg, level == OCT_NOTE_WARNING, text);
}

static void leftover(void *arg, const char *path)
{
    oct_say((oct_voice){ .note = note, .arg = arg }, OCT_NOTE_WARNING,
            "%s was left by a run that was killed; it can be removed", path);
}

static oct_status get_sample(void *arg, int64_t i, const oct_input_desc *inputs, size_t n, oct_array *array,
                             oct_err *err)
{
    const typed *c = arg;
    octet_array *given = oct_calloc(n + 1, sizeof *given);
    if (!given)
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++)
        given[k].name = inputs[k].name;
    const octet_visit v = octet_visit_begin(c->o);
    const int failed = c->samples->get(c->samples->get_arg, i, given, n);
    octet_visit_end(c->o, v);
    oct_status s = failed ? oct_fail(err, OCT_EIO, "the function that gives samples returned %d", failed) : OCT_OK;
    for (size_t k = 0; k < n && s == OCT_OK; k++)
        s = octet_take_array(&given[k], "input", inputs[k].name, &array[k], err);
    oct_free(given);
    return s;
}

/* ---- the conversion ---- */

/* The report as text, too. */
static oct_status keep_report(octet_result *r, oct_err *err)
{
    const oct_item *root = oct_document_root(r->report);
    if (root)
        oct_json_text(root, &r->json);
    return root && !r->json.failed ? OCT_OK : oct_nomem(err);
}

/* The same of a call that ends with s, whose error stays. */
static oct_status keep_report_of(octet_result *r, oct_status s, oct_err *err)
{
    const oct_status kept = keep_report(r, s == OCT_OK ? err : NULL);
    return kept == OCT_OK ? s : kept;
}

/* A missed goal has a report, too. */
static oct_status decide_and_make(typed *c, oct_err *err)
{
    oct_session *s = c->s;
    OCT_TRY(oct_session_decide(s, err));
    const oct_status fits = oct_session_fits(s, err);
    if (fits == OCT_OK) {
        OCT_TRY(oct_session_make(s, err));
        OCT_TRY(oct_session_read(s, &c->result->model, err));
        OCT_TRY(oct_session_page(s, err));
    } else if (fits != OCT_EGOAL) {
        return fits;
    }
    oct_session_report(s, c->result->report);
    OCT_TRY(keep_report(c->result, fits == OCT_OK ? err : NULL));
    return fits == OCT_OK ? oct_session_goal(s, err) : fits;
}

static oct_session_host host_of(octet *o, typed *c)
{
    return (oct_session_host){ .voice = { note, octet_tell_progress, o }, .given = &c->given };
}

static oct_status convert(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    oct_status s = oct_session_open(&c->convert, &host, &c->s, err);
    if (s == OCT_OK)
        s = decide_and_make(c, err);
    oct_session_close(c->s);
    return s;
}

static oct_status convert_all(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    const oct_status s = oct_folder_convert(&c->convert, c->name, &host, c->result->report, err);
    return s == OCT_OK || s == OCT_EGOAL ? keep_report_of(c->result, s, err) : s;
}

static oct_status convert_each(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    const oct_status s = oct_targets_convert(&c->convert, c->targets, &host, c->result->report, err);
    return s == OCT_OK || s == OCT_EGOAL ? keep_report_of(c->result, s, err) : s;
}

/* ---- what is said without a conversion ---- */

static oct_status lint(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    OCT_TRY(oct_session_lint(&c->convert, &host, c->result->report, err));
    return keep_report(c->result, err);
}

static oct_status explain(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    OCT_TRY(oct_session_explain(&c->convert, &host, c->name, c->result->report, err));
    return keep_report(c->result, err);
}

/* Another model was made: then there is a report, too. */
static oct_status verify(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_session_host host = host_of(o, c);
    const oct_status s = oct_session_verify(&c->convert, &host, c->name, NULL, c->result->report, NULL, err);
    return s == OCT_OK || s == OCT_EGOAL ? keep_report_of(c->result, s, err) : s;
}

/* ---- a calibration ---- */

static oct_status report_table(void *arg, const oct_calib *table, const oct_item *answer, oct_err *err)
{
    octet_result *r = ((typed *)arg)->result;
    oct_calibration_report(table, answer, r->report);
    return keep_report(r, err);
}

static oct_status calibrate(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_calibration_host host = {
        .voice = { note, octet_tell_progress, o }, .made = report_table, .arg = c, .given = &c->given
    };
    return oct_calibration_run(&c->calibrate, &host, err);
}

/* ---- an evaluation ---- */

static oct_status write_form(const typed *c, const char *path, void (*print)(const oct_item *report, oct_buf *b),
                             oct_err *err)
{
    oct_buf text = OCT_BUF_INIT;
    if (!path)
        return OCT_OK;
    print(oct_document_root(c->result->report), &text);
    const oct_status s = oct_write_text(path, &text, err);
    oct_buf_free(&text);
    return s;
}

static oct_status write_forms(const typed *c, oct_err *err)
{
    OCT_TRY(write_form(c, c->evaluate.html, oct_report_html, err));
    OCT_TRY(write_form(c, c->evaluate.markdown, oct_report_markdown, err));
    return write_form(c, c->evaluate.junit, oct_report_junit, err);
}

/* No output is an input, or another output. */
static oct_status check_forms(const octet_evaluate_options *x, oct_err *err)
{
    const char *const out[] = { x->html, x->markdown, x->junit };
    const char *const in[] = { x->model, x->samples.labels, x->truth, oct_rule_file(x->decode), x->gates, x->baseline };
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(oct_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(oct_check_output(out[i], x->quantized.v, x->quantized.n, err));
        OCT_TRY(oct_check_output(out[i], x->samples.data.v, x->samples.data.n, err));
        for (size_t k = 0; k < i; k++)
            if (out[i] && out[k] && oct_same_output(out[i], out[k]))
                return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out[i]);
    }
    return OCT_OK;
}

static void missed(void *arg, const char *model, const char *text)
{
    oct_say((oct_voice){ .note = note, .arg = arg }, OCT_NOTE_WARNING, "%s: %s", model, text);
}

static oct_status compare(typed *c, oct_err *err)
{
    OCT_TRY(oct_evaluation_run(c->e, err));
    OCT_TRY(oct_evaluation_report(c->e, c->result->report, err));
    OCT_TRY(keep_report(c->result, err));
    OCT_TRY(write_forms(c, err));
    return oct_evaluation_gates(c->e, err);
}

static oct_evaluation_host evaluation_host(octet *o, typed *c)
{
    return (oct_evaluation_host){ .voice = { note, octet_tell_progress, o }, .missed = missed, .given = &c->given };
}

static oct_status measure(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_evaluation_host host = evaluation_host(o, c);
    OCT_TRY(oct_evaluation_sensitivity(&c->evaluate, c->name, &host, c->result->report, err));
    return keep_report(c->result, err);
}

static oct_status evaluate(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const octet_evaluate_options *x = &c->evaluate;
    const oct_evaluation_host host = evaluation_host(o, c);
    OCT_TRY(check_forms(x, err));
    OCT_TRY(oct_evaluation_open(x, &host, &c->e, err));
    const oct_status s = compare(c, err);
    oct_evaluation_close(c->e);
    return s;
}

/* Variants that cannot be used have a report, too. */
static oct_status audit(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    const oct_evaluation_host host = evaluation_host(o, c);
    const oct_status s = oct_folder_audit(&c->evaluate, c->name, &host, c->result->report, err);
    return s == OCT_OK || s == OCT_EGOAL ? keep_report_of(c->result, s, err) : s;
}

/* ---- a call ---- */

typedef struct turn {
    typed *c;
    octet_work_fn work;
} turn;

/* Work beside which no other call runs. */
static oct_status take_turn(octet *o, void *arg, oct_err *err)
{
    const turn *t = arg;
    oct_out_on_leftover(leftover, o);
    const oct_status s = t->work(o, t->c, err);
    oct_out_on_leftover(NULL, NULL);
    oct_out_unclaim();
    return s;
}

static oct_status call(octet *o, typed *c, octet_work_fn work, oct_err *err)
{
    octet_result *r = c->result = oct_calloc(1, sizeof *r);
    if (!r || !(r->report = oct_document_create())) {
        octet_result_free(r);
        return oct_nomem(err);
    }
    c->o = o;
    c->given = (oct_given_samples){ get_sample, c, c->samples->count };
    const oct_status s = octet_alone(o, c->in_callback, take_turn, &(turn){ c, work }, err);
    if (s == OCT_OK || s == OCT_EGOAL)
        *c->to = r;
    else
        octet_result_free(r);
    return s;
}

static oct_status no_place(oct_err *err)
{
    return oct_fail(err, OCT_EUSAGE, "there is no place for the result: it is NULL");
}

static oct_status take_conversion(typed *c, oct_err *err)
{
    octet_convert_options *x = &c->convert;
    octet_convert_init(x, sizeof *x);
    if (!c->to)
        return no_place(err);
    OCT_TRY(take_options(c->options, x, sizeof *x, err));
    OCT_TRY(check_convert(x, err));
    c->samples = &x->samples;
    return OCT_OK;
}

static oct_status convert_model(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    octet_convert_options *x = &c->convert;
    OCT_TRY(take_conversion(c, err));
    x->in_memory |= x->model_data && !x->output && !x->dry_run;
    return call(o, c, convert, err);
}

static oct_status convert_folder(octet *o, void *arg, oct_err *err)
{
    OCT_TRY(take_conversion(arg, err));
    return call(o, arg, convert_all, err);
}

static oct_status convert_targets(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    OCT_TRY(take_conversion(c, err));
    OCT_TRY(check_texts(&c->targets, 1, err));
    if (c->convert.target)
        return oct_fail(err, OCT_EUSAGE, "options name the target %s beside the list of targets", c->convert.target);
    return call(o, c, convert_each, err);
}

/* The options of a conversion, for a call that makes no model. */
static oct_status inspect(octet *o, typed *c, octet_work_fn work, oct_err *err)
{
    octet_convert_options *x = &c->convert;
    OCT_TRY(take_conversion(c, err));
    if (x->output || x->html || x->dump_policy || x->sensitivity_file)
        return oct_fail(err, OCT_EUSAGE, "this call writes no files, and is given the name of one to write");
    x->in_memory = false;
    return call(o, c, work, err);
}

static oct_status lint_model(octet *o, void *arg, oct_err *err)
{
    return inspect(o, arg, lint, err);
}

static oct_status explain_model(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    return c->name ? inspect(o, c, explain, err) : oct_fail(err, OCT_EUSAGE, "the name of the node is NULL");
}

static oct_status verify_model(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    if (!c->name)
        return oct_fail(err, OCT_EUSAGE, "the name of the float model is NULL");
    OCT_TRY(check_stream(c->name, err));
    return inspect(o, c, verify, err);
}

static oct_status calibrate_model(octet *o, void *arg, oct_err *err)
{
    typed *c = arg;
    octet_calibrate_options *x = &c->calibrate;
    octet_calibrate_init(x, sizeof *x);
    if (!c->to)
        return no_place(err);
    OCT_TRY(take_options(c->options, x, sizeof *x, err));
    OCT_TRY(
        check_files((const char *const[]){ x->model, x->output }, 2, &x->samples, x->model_data, x->model_size, err));
    c->samples = &x->samples;
    return call(o, c, calibrate, err);
}

/* The options of an evaluation. */
static oct_status compared(octet *o, typed *c, octet_work_fn work, oct_err *err)
{
    octet_evaluate_options *x = &c->evaluate;
    octet_evaluate_init(x, sizeof *x);
    if (!c->to)
        return no_place(err);
    OCT_TRY(take_options(c->options, x, sizeof *x, err));
    const octet_texts lists[] = { x->quantized, x->metrics, x->max_drop };
    const char *const paths[] = { x->model, x->truth,    x->gates, x->baseline,
                                  x->html,  x->markdown, x->junit, oct_rule_file(x->decode),
                                  c->name };
    OCT_TRY(check_texts(lists, OCT_COUNT(lists), err));
    for (size_t i = 0; i < x->quantized.n; i++)
        OCT_TRY(check_stream(x->quantized.v[i], err));
    OCT_TRY(check_files(paths, OCT_COUNT(paths), &x->samples, NULL, 0, err));
    c->samples = &x->samples;
    return call(o, c, work, err);
}

static oct_status evaluate_model(octet *o, void *arg, oct_err *err)
{
    return compared(o, arg, evaluate, err);
}

static oct_status measure_sensitivity(octet *o, void *arg, oct_err *err)
{
    return compared(o, arg, measure, err);
}

static oct_status evaluate_folder(octet *o, void *arg, oct_err *err)
{
    return compared(o, arg, audit, err);
}

/* targets: NULL but for a call about several. */
static octet_status call_for(octet *o, const void *options, const char *name, const octet_texts *targets,
                             octet_result **result, octet_work_fn work)
{
    if (result)
        *result = NULL;
    typed *c = oct_calloc(1, sizeof *c); /* too large for small stacks */
    if (!c)
        return OCTET_NOMEM;
    *c = (typed){ .options = options, .name = name, .to = result, .in_callback = octet_in_callback() };
    if (targets)
        c->targets = *targets;
    const octet_status s = octet_do(o, work, c);
    oct_free(c);
    return s;
}

static octet_status call_typed(octet *o, const void *options, const char *name, octet_result **result,
                               octet_work_fn work)
{
    return call_for(o, options, name, NULL, result, work);
}

octet_status octet_convert_model(octet *o, const octet_convert_options *options, octet_result **result)
{
    return call_typed(o, options, NULL, result, convert_model);
}

octet_status octet_convert_targets(octet *o, const octet_convert_options *options, octet_texts targets,
                                   octet_result **result)
{
    return call_for(o, options, NULL, &targets, result, convert_targets);
}

octet_status octet_calibrate_model(octet *o, const octet_calibrate_options *options, octet_result **result)
{
    return call_typed(o, options, NULL, result, calibrate_model);
}

octet_status octet_evaluate_model(octet *o, const octet_evaluate_options *options, octet_result **result)
{
    return call_typed(o, options, NULL, result, evaluate_model);
}

octet_status octet_measure_sensitivity(octet *o, const octet_evaluate_options *options, const char *file,
                                       octet_result **result)
{
    return call_typed(o, options, file, result, measure_sensitivity);
}

octet_status octet_lint_model(octet *o, const octet_convert_options *options, octet_result **result)
{
    return call_typed(o, options, NULL, result, lint_model);
}

octet_status octet_explain_node(octet *o, const octet_convert_options *options, const char *node, octet_result **result)
{
    return call_typed(o, options, node, result, explain_model);
}

octet_status octet_verify_model(octet *o, const octet_convert_options *options, const char *source,
                                octet_result **result)
{
    return call_typed(o, options, source, result, verify_model);
}

octet_status octet_convert_folder(octet *o, const octet_convert_options *options, const char *recipe,
                                  octet_result **result)
{
    return call_typed(o, options, recipe, result, convert_folder);
}

octet_status octet_evaluate_folder(octet *o, const octet_evaluate_options *options, const char *recipe,
                                   octet_result **result)
{
    return call_typed(o, options, recipe, result, evaluate_folder);
}

/* ---- the result ---- */

void octet_result_free(octet_result *r)
{
    if (!r)
        return;
    oct_document_destroy(r->report);
    oct_buf_free(&r->json);
    oct_buf_free(&r->model);
    oct_free(r);
}

static const oct_item *root_of(const octet_result *r)
{
    return r ? oct_document_root(r->report) : NULL;
}

const char *octet_result_json(const octet_result *r)
{
    return r ? oct_buf_str(&r->json) : "";
}

const void *octet_result_model(const octet_result *r, size_t *size)
{
    const size_t n = r ? r->model.len : 0;
    if (size)
        *size = n;
    return n ? oct_buf_str(&r->model) : NULL;
}

const char *octet_result_text(const octet_result *r, const char *path)
{
    return path ? oct_item_text(root_of(r), path) : NULL;
}

double octet_result_number(const octet_result *r, const char *path)
{
    return oct_item_number(path ? root_of(r) : NULL, path ? path : "");
}

size_t octet_result_count(const octet_result *r, const char *path)
{
    return path ? oct_item_count(root_of(r), path) : 0;
}
