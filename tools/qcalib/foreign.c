/* qcalib import and export: ranges in the formats of other tools. */
#include "qcalib/qcalib.h"

#include "encodings/encodings.h"
#include "quant/quant.h"

static void say_others(oct_cli *cli, const oct_encodings_match *m)
{
    char text[400];
    oct_encodings_say_others(m, text, sizeof text);
    oct_cli_note(cli, 0, "%s", text);
}

static oct_status import_to(oct_cli *cli, const foreign_args *a, oct_model *m, oct_err *err)
{
    oct_calib *c = NULL;
    oct_encodings_match match;
    OCT_TRY(oct_check_model_output(a->output, m, err));
    OCT_TRY(oct_check_model_output(cli->json, m, err));
    OCT_TRY(oct_encodings_load(a->file, m->graph, &c, &match, err));
    oct_status s = OCT_OK;
    if (!match.form) {
        s = oct_fail(err, OCT_EUSAGE, "%s: this is already a calibration table", a->file);
        oct_hint(err, "qconvert can read it directly: --calib %s", a->file);
    }
    if (s == OCT_OK)
        s = oct_calib_set_model(c, oct_path_base(a->model), oct_model_hash(m), err);
    if (s == OCT_OK)
        s = oct_calib_save(c, a->output, err);
    if (s == OCT_OK)
        s = qcalib_json(cli->json, c, err);
    if (s == OCT_OK) {
        oct_cli_note(cli, 0, "%s: %zu tensors pinned (%s)", a->output, c->n_tensors,
                     oct_encoding_form_summary(match.form));
        if (match.weights)
            oct_cli_note(cli, 0, "%zu entries of weights are not taken", match.weights);
        if (match.others)
            say_others(cli, &match);
    }
    oct_calib_destroy(c);
    return s;
}

oct_status qcalib_import(oct_cli *cli, const foreign_args *a, oct_err *err)
{
    const char *in[] = { a->file, a->model };
    oct_model *m = NULL;
    OCT_TRY(oct_check_output(a->output, in, OCT_COUNT(in), err));
    OCT_TRY(oct_check_output(cli->json, in, OCT_COUNT(in), err));
    OCT_TRY(tool_load(cli, a->model, &m, err));
    const oct_status s = import_to(cli, a, m, err);
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
static oct_status layers_of(oct_cli *cli, const foreign_args *a, const oct_calib *c, oct_model **m, oct_err *err)
{
    oct_policy *policy = NULL;
    oct_target *target = NULL;
    oct_qjob *job = NULL;
    OCT_TRY(tool_load(cli, a->model, m, err));
    OCT_TRY(oct_check_model_output(a->output, *m, err));
    if (oct_model_hash(*m) != c->model_hash)
        return oct_fail(err, OCT_EUSAGE, "%s: the table is of another model, '%s'", a->table, c->model);
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

static oct_status export_to(oct_cli *cli, const foreign_args *a, const oct_encoding_form *f, const oct_calib *c,
                            oct_err *err)
{
    oct_observer_spec observer = oct_observer_default();
    oct_model *m = NULL;
    oct_buf text = OCT_BUF_INIT;
    size_t n = 0;
    if (a->observer)
        OCT_TRY(oct_observer_parse(a->observer, &observer, err));
    oct_status s = a->model ? layers_of(cli, a, c, &m, err) : OCT_OK;
    if (s == OCT_OK && (s = oct_encodings_text(f, c, observer, m ? m->graph : NULL, &text, &n, err)) != OCT_OK)
        oct_within(err, "%s", a->table);
    if (s == OCT_OK)
        s = tool_write_text(a->output, &text, err);
    if (s == OCT_OK)
        s = qcalib_json(cli->json, c, err);
    if (s == OCT_OK)
        oct_cli_note(cli, 0, "%s: %zu ranges (%s)", a->output, n, oct_encoding_form_summary(f));
    oct_buf_free(&text);
    oct_model_free(m);
    return s;
}

oct_status qcalib_export(oct_cli *cli, const foreign_args *a, oct_err *err)
{
    const char *in[] = { a->table, a->model };
    const oct_encoding_form *f = oct_encoding_form_find(a->format);
    oct_calib *c = NULL;
    if (!f)
        return unknown_form(a->format, err);
    if (oct_encoding_form_needs_model(f) && !a->model)
        return oct_fail(err, OCT_EUSAGE, "--format %s needs --model, for the names of layers and the scales of weights",
                        a->format);
    OCT_TRY(oct_check_output(a->output, in, OCT_COUNT(in), err));
    OCT_TRY(oct_check_output(cli->json, in, OCT_COUNT(in), err));
    OCT_TRY(oct_calib_load(a->table, &c, err));
    oct_samples_warn_incomplete(tool_voice(cli), a->table, c);
    const oct_status s = export_to(cli, a, f, c, err);
    oct_calib_destroy(c);
    return s;
}
