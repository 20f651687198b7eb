/* Ranges in the formats of other tools, read as a table and written from one. */
#include "api/calibration_tables.h"

#include "api/samples_int.h"
#include "encodings/encodings.h"
#include "onnx/model.h"
#include "quant/quant.h"

static void say_others(oct_voice v, const oct_encodings_match *m)
{
    char text[400];
    oct_encodings_say_others(m, text, sizeof text);
    oct_say(v, 0, "%s", text);
}

static oct_status import_to(const char *file, const char *model, const char *output, oct_model *m,
                            const oct_calibration_host *h, oct_err *err)
{
    oct_calib *c = NULL;
    oct_encodings_match match;
    OCT_TRY(oct_check_model_output(output, m, err));
    OCT_TRY(oct_check_model_output(h->written, m, err));
    OCT_TRY(oct_encodings_load(file, m->graph, &c, &match, err));
    oct_status s = OCT_OK;
    if (!match.form) {
        s = oct_fail(err, OCT_EUSAGE, "%s: this is already a calibration table", file);
        oct_hint(err, "qconvert can read it directly: --calib %s", file);
    }
    if (s == OCT_OK)
        s = oct_calib_set_model(c, oct_path_base(model), oct_model_hash(m), err);
    if (s == OCT_OK)
        s = oct_calib_save(c, output, err);
    if (s == OCT_OK)
        s = h->made(h->arg, c, NULL, err);
    if (s == OCT_OK) {
        oct_say(h->voice, 0, "%s: %zu tensors pinned (%s)", output, c->n_tensors,
                oct_encoding_form_summary(match.form));
        if (match.weights)
            oct_say(h->voice, 0, "%zu entries of weights are not taken", match.weights);
        if (match.others)
            say_others(h->voice, &match);
    }
    oct_calib_destroy(c);
    return s;
}

oct_status oct_table_import(const char *file, const char *model, const char *output, const oct_calibration_host *h,
                            oct_err *err)
{
    const char *in[] = { file, model };
    oct_model *m = NULL;
    OCT_TRY(oct_check_output(output, in, OCT_COUNT(in), err));
    OCT_TRY(oct_check_output(h->written, in, OCT_COUNT(in), err));
    OCT_TRY(oct_load(h->voice, model, NULL, 0, &m, err));
    const oct_status s = import_to(file, model, output, m, h, err);
    oct_model_free(m);
    return s;
}

static oct_status unknown_form(const char *name, oct_err *err)
{
    oct_nearest near = { .word = name, .most = 3 };
    for (size_t i = 0; i < oct_encoding_form_count(); i++)
        oct_nearest_try(&near, oct_encoding_form_name(oct_encoding_form_at(i)));
    oct_fail(err, OCT_EUSAGE, "unknown format '%s'; there are %s", name, oct_encoding_form_names());
    oct_nearest_hint(&near, 1, NULL, err);
    return OCT_EUSAGE;
}

/* Prepares the model's layers as conversions do: with nodes fused into them. */
static oct_status layers_of(oct_voice v, const oct_table_export_options *x, const oct_calib *c, oct_model **m,
                            oct_err *err)
{
    oct_policy *policy = NULL;
    oct_target *target = NULL;
    oct_qjob *job = NULL;
    OCT_TRY(oct_load(v, x->model, NULL, 0, m, err));
    OCT_TRY(oct_check_model_output(x->output, *m, err));
    if (oct_model_hash(*m) != c->model_hash)
        return oct_fail(err, OCT_EUSAGE, "%s: the table is of another model, '%s'", x->table, c->model);
    oct_status s = oct_policy_create(NULL, &policy, err);
    if (s == OCT_OK)
        s = oct_target_open("octet", &target, err);
    const oct_qjob_opts o = { .policy = policy, .target = target, .have_data = true };
    if (s == OCT_OK)
        s = oct_qjob_create((*m)->graph, &o, &job, err);
    oct_qjob_destroy(job);
    oct_target_close(target);
    oct_policy_destroy(policy);
    return s;
}

static oct_status export_to(const oct_table_export_options *x, const oct_encoding_form *f, const oct_calib *c,
                            const oct_calibration_host *h, oct_buf *text, size_t *n, oct_err *err)
{
    oct_observer_spec observer = oct_observer_default();
    oct_model *m = NULL;
    if (x->observer)
        OCT_TRY(oct_observer_parse(x->observer, &observer, err));
    oct_status s = x->model ? layers_of(h->voice, x, c, &m, err) : OCT_OK;
    if (s == OCT_OK && (s = oct_encodings_text(f, c, observer, m ? m->graph : NULL, text, n, err)) != OCT_OK)
        oct_within(err, "%s", x->table);
    if (s == OCT_OK)
        s = h->made(h->arg, c, NULL, err);
    oct_model_free(m);
    return s;
}

oct_status oct_table_export(const oct_table_export_options *x, const oct_calibration_host *h, oct_buf *text, size_t *n,
                            const char **form, oct_err *err)
{
    const char *in[] = { x->table, x->model };
    const oct_encoding_form *f = oct_encoding_form_find(x->format);
    oct_calib *c = NULL;
    if (!f)
        return unknown_form(x->format, err);
    if (oct_encoding_form_needs_model(f) && !x->model)
        return oct_fail(err, OCT_EUSAGE, "--format %s needs --model, for the names of layers and the scales of weights",
                        x->format);
    *form = oct_encoding_form_summary(f);
    OCT_TRY(oct_check_output(x->output, in, OCT_COUNT(in), err));
    OCT_TRY(oct_check_output(h->written, in, OCT_COUNT(in), err));
    OCT_TRY(oct_calib_load(x->table, &c, err));
    oct_samples_warn_incomplete(h->voice, x->table, c);
    const oct_status s = export_to(x, f, c, h, text, n, err);
    oct_calib_destroy(c);
    return s;
}
