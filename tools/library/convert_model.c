/* A conversion from typed options to a result. */
#include "model_int.h"

#include "api/session.h"
#include "base/io.h"

#include <string.h>
#include <unistd.h>

struct octet_result {
    oct_document *report;
    oct_buf json, model; /* model: its bytes; empty: they were not asked for, or nothing was made */
};

typedef struct conversion {
    const octet_convert_options *options;
    octet_result *result, **to;
    bool in_callback; /* the caller is */
    octet *o;
    octet_convert_options x; /* the options with all members that are known here */
    oct_session s;
} conversion;

/* ---- options ---- */

/* The options as this version knows them: what an older caller does not know is as usual. */
static oct_status take_options(conversion *c, oct_err *err)
{
    const octet_convert_options *given = c->options;
    octet_convert_init(&c->x, sizeof c->x);
    if (!given || given->size < sizeof given->size)
        return oct_fail(err, OCT_EUSAGE, "the options were not set by octet_convert_init");
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof c->x; i < given->size; i++)
        if (bytes[i])
            return oct_fail(err, OCT_EUSAGE, "an option is set that this version of the library does not have");
    memcpy(&c->x, given, given->size < sizeof c->x ? given->size : sizeof c->x);
    c->x.size = sizeof c->x;
    return OCT_OK;
}

static oct_status check_texts(const octet_convert_options *x, oct_err *err)
{
    const octet_texts lists[] = { x->samples.data, x->samples.preprocess, x->samples.states,
                                  x->rules,        x->disabled_passes,    x->methods,
                                  x->no_methods,   x->max_drop,           x->input_types,
                                  x->output_types };
    for (size_t k = 0; k < OCT_COUNT(lists); k++)
        for (size_t i = 0; i < lists[k].n; i++)
            if (!lists[k].v || !lists[k].v[i])
                return oct_fail(err, OCT_EUSAGE, "a list of %zu texts has one that is NULL", lists[k].n);
    if (x->model_size && !x->model_data)
        return oct_fail(err, OCT_EUSAGE, "%zu bytes at NULL", x->model_size);
    return OCT_OK;
}

/* The streams are the process's own. */
static oct_status check_stream(const char *path, oct_err *err)
{
    const int fd = path ? oct_path_fd(path) : -1;
    if (path && (strcmp(path, "-") == 0 || (fd >= 0 && fd <= 2)))
        return oct_fail(err, OCT_EUSAGE, "'%s': the library reads and writes files, not the streams of its process",
                        path);
    return OCT_OK;
}

static oct_status check_streams(const octet_convert_options *x, oct_err *err)
{
    const char *const paths[] = { x->model_data ? NULL : x->model,
                                  x->output,
                                  x->calib,
                                  x->policy,
                                  x->truth,
                                  x->samples.labels,
                                  x->dump_policy,
                                  x->sensitivity_file,
                                  oct_session_target_file(x),
                                  oct_rule_file(x->decode) };
    for (size_t i = 0; i < OCT_COUNT(paths); i++)
        OCT_TRY(check_stream(paths[i], err));
    for (size_t i = 0; i < x->samples.data.n; i++)
        OCT_TRY(check_stream(x->samples.data.v[i], err));
    return OCT_OK;
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
    const conversion *c = arg;
    octet_array *given = oct_calloc(n + 1, sizeof *given);
    if (!given)
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++)
        given[k].name = inputs[k].name;
    const octet_visit v = octet_visit_begin(c->o);
    const int failed = c->x.samples.get(c->x.samples.get_arg, i, given, n);
    octet_visit_end(c->o, v);
    oct_status s = failed ? oct_fail(err, OCT_EIO, "the function that gives samples returned %d", failed) : OCT_OK;
    for (size_t k = 0; k < n && s == OCT_OK; k++)
        s = octet_take_array(&given[k], "input", inputs[k].name, &array[k], err);
    oct_free(given);
    return s;
}

/* ---- the conversion ---- */

static oct_status read_model(const conversion *c, oct_err *err)
{
    char block[1 << 16];
    ssize_t n = 0;
    if (c->s.memory < 0)
        return OCT_OK;
    if (lseek(c->s.memory, 0, SEEK_SET) != 0)
        return oct_fail_errno(err, "the model in memory");
    while ((n = oct_file_read(c->s.memory, block, sizeof block)) > 0)
        oct_buf_add(&c->result->model, block, (size_t)n);
    return n < 0 ? oct_fail_errno(err, "the model in memory") : c->result->model.failed ? oct_nomem(err) : OCT_OK;
}

static oct_status make_report(const conversion *c, oct_err *err)
{
    octet_result *r = c->result;
    oct_session_report(&c->s, r->report);
    const oct_item *root = oct_document_root(r->report);
    if (root)
        oct_json_text(root, &r->json);
    return root && !r->json.failed ? OCT_OK : oct_nomem(err);
}

/* A missed goal has a report, too. */
static oct_status decide_and_make(conversion *c, oct_err *err)
{
    oct_session *s = &c->s;
    OCT_TRY(oct_session_decide(s, err));
    const oct_status fits = oct_session_fits(s, err);
    if (fits == OCT_OK) {
        OCT_TRY(oct_session_make(s, err));
        OCT_TRY(read_model(c, err));
    } else if (fits != OCT_EGOAL) {
        return fits;
    }
    OCT_TRY(make_report(c, fits == OCT_OK ? err : NULL));
    return fits == OCT_OK ? oct_session_goal(s, err) : fits;
}

static oct_status convert(octet *o, void *arg, oct_err *err)
{
    conversion *c = arg;
    const oct_session_host host = { .voice = { note, octet_tell_progress, o },
                                    .given = { get_sample, c, c->x.samples.count } };
    oct_out_on_leftover(leftover, o);
    oct_status s = oct_session_open(&c->s, &c->x, &host, err);
    if (s == OCT_OK)
        s = decide_and_make(c, err);
    oct_session_close(&c->s);
    oct_out_on_leftover(NULL, NULL);
    oct_out_unclaim();
    return s;
}

static oct_status convert_model(octet *o, void *arg, oct_err *err)
{
    conversion *c = arg;
    if (!c->to)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the result: it is NULL");
    OCT_TRY(take_options(c, err));
    OCT_TRY(check_texts(&c->x, err));
    OCT_TRY(check_streams(&c->x, err));
    c->x.in_memory |= c->x.model_data && !c->x.output && !c->x.dry_run;
    if (!(c->result = oct_calloc(1, sizeof *c->result)) || !(c->result->report = oct_document_create())) {
        octet_result_free(c->result);
        return oct_nomem(err);
    }
    c->o = o;
    const oct_status s = octet_alone(o, c->in_callback, convert, c, err);
    if (s == OCT_OK || s == OCT_EGOAL)
        *c->to = c->result;
    else
        octet_result_free(c->result);
    return s;
}

octet_status octet_convert_model(octet *o, const octet_convert_options *options, octet_result **result)
{
    if (result)
        *result = NULL;
    conversion *c = oct_calloc(1, sizeof *c); /* too large for small stacks */
    if (!c)
        return OCTET_NOMEM;
    *c = (conversion){ .options = options, .to = result, .in_callback = octet_in_callback() };
    const octet_status s = octet_do(o, convert_model, c);
    oct_free(c);
    return s;
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
