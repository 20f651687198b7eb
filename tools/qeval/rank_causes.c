/* Measures the cost of quantizing each value and each layer of a model, whichever tool made the model. */
#include "qeval.h"

#include "cli/textfmt.h"
#include "api/session.h"
#include "common/print_causes.h"
#include "eval/run/scaled.h"

#include <string.h>

typedef struct session {
    const qeval_args *a;
    oct_cli *cli;
    oct_model *model, *quantized;
    oct_target *target; /* the target has no influence here, but a job needs one */
    oct_source *src;
    oct_conversion c;
    oct_adopted found;
} session;

static oct_status load(session *s, oct_err *err)
{
    const char *path = s->a->others.v[0];
    OCT_TRY(tool_load(s->cli, s->a->model, &s->model, err));
    OCT_TRY(tool_load(s->cli, path, &s->quantized, err));
    if (!oct_model_meta(s->quantized, OCT_SCALED_KEY))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED,
             "%s: channels were multiplied by factors when it was made, so its scales are not the float model's", path);
    oct_hint(err, "qconvert --sensitivity measures it when it makes the model");
    return OCT_EUNSUPPORTED;
}

static oct_status measure(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    const oct_convert_opts o = { .name = a->model,
                                 .whole = a->data.skip_bad,
                                 .sensitivity = true,
                                 .sensitivity_file = a->sensitivity_file,
                                 .job = { .threads = (int)s->cli->threads },
                                 .listener = { .progress = tool_say_progress, .note = tool_say_note, .arg = s->cli } };
    OCT_TRY(oct_conversion_open(&s->c, &o, err));
    OCT_TRY(oct_target_open("octet", &s->target, err));
    s->c.o.job.target = s->target;
    oct_conversion_take(&s->c, s->model);
    oct_samples samples = { .of = tool_samples(s->cli, &a->data) };
    OCT_TRY(oct_samples_open(s->model->graph, &samples, 0, &s->src, err));
    oct_samples_say_chosen(tool_voice(s->cli), s->src);
    OCT_TRY(oct_conversion_adopt(&s->c, s->src, s->quantized->graph, &s->found, err));
    oct_samples_say_bad(tool_voice(s->cli), s->src);
    return OCT_OK;
}

static void print_found(const session *s, FILE *f)
{
    const oct_adopted *n = &s->found;
    oct_print(f, "float %s\n", s->a->model);
    oct_print(f, "quant %s\n", s->a->others.v[0]);
    oct_print(f, "%zu quantized values and %zu layers with quantized weights are measured\n", n->values, n->layers);
    if (n->other_values + n->other_layers)
        oct_print(
            f,
            "%zu values and %zu layers are not: the float model has none of their names, or their scales are found when the model runs\n",
            n->other_values, n->other_layers);
}

static void print_culprits(const oct_culprits *k, FILE *f)
{
    char text[OCT_CULPRITS_TEXT];
    if (k->names)
        oct_print(f, "%zu node%s cause%s most of the loss: %s; %s\n", k->n, k->n == 1 ? "" : "s", k->n == 1 ? "s" : "",
                  k->names, oct_culprits_text(text, k));
}

static void put_report(const session *s, oct_document *to)
{
    oct_json j = { .to = to };
    oct_report_open(&j, "octet-sensitivity-1");
    oct_json_str(&j, "float", s->a->model);
    oct_json_str(&j, "quant", s->a->others.v[0]);
    oct_json_int(&j, "values", (int64_t)s->found.values);
    oct_json_int(&j, "layers", (int64_t)s->found.layers);
    oct_json_int(&j, "values_without_counterpart", (int64_t)s->found.other_values);
    oct_json_int(&j, "layers_without_counterpart", (int64_t)s->found.other_layers);
    oct_report_causes(&j, &s->c.causes);
    oct_json_close(&j);
}

static oct_status report(const session *s, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    oct_document *d = oct_document_create();
    if (d)
        put_report(s, d);
    const oct_item *root = oct_document_root(d);
    oct_status st = root ? OCT_OK : oct_nomem(err);
    oct_progress_clear(&s->cli->progress);
    if (st == OCT_OK && (!s->cli->quiet || f == s->cli->out)) {
        print_found(s, f);
        st = tool_print_causes(oct_item_at(root, "sensitivity"), s->cli->verbose, f, err);
        print_culprits(&s->c.culprits, f);
    }
    if (st == OCT_OK)
        st = tool_write_report(s->cli->json, oct_json_text, root, err);
    oct_document_destroy(d);
    return st;
}

static oct_status run(session *s, oct_err *err)
{
    oct_status st = load(s, err);
    if (st == OCT_OK)
        st = measure(s, err);
    if (st == OCT_OK)
        st = report(s, err);
    oct_conversion_close(&s->c);
    oct_source_close(s->src);
    oct_target_close(s->target);
    oct_model_free(s->model);
    oct_model_free(s->quantized);
    return st;
}

oct_status qeval_sensitivity(const qeval_args *a, oct_cli *cli, oct_err *err)
{
    session s = { .a = a, .cli = cli };
    if (a->others.n != 1)
        return oct_fail(err, OCT_EUSAGE,
                        "--sensitivity takes a float model and one that was quantized from it, and %zu are given",
                        1 + a->others.n);
    return run(&s, err);
}
