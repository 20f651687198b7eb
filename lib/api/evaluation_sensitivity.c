/* What quantizing each value and each layer of a model costs, whichever tool made it: of schema "octet-sensitivity-1".
 */
#include "api/evaluation_int.h"

#include "api/convert/session_int.h"
#include "eval/run/scaled.h"

typedef struct measurement {
    const octet_evaluate_options *x;
    const oct_evaluation_host *h;
    oct_model *model, *quantized;
    oct_target *target; /* the target has no influence here, but a job needs one */
    oct_source *src;
    oct_conversion c;
    oct_adopted found;
} measurement;

static oct_status load(measurement *s, oct_err *err)
{
    const char *path = s->x->quantized.v[0];
    OCT_TRY(oct_load(s->h->voice, s->x->model, NULL, 0, &s->model, err));
    OCT_TRY(oct_load(s->h->voice, path, NULL, 0, &s->quantized, err));
    if (!oct_model_meta(s->quantized, OCT_SCALED_KEY))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED,
             "%s: channels were multiplied by factors when it was made, so its scales are not the float model's", path);
    oct_hint(err, "qconvert --sensitivity measures it when it makes the model");
    return OCT_EUNSUPPORTED;
}

static oct_status measure(measurement *s, const char *file, oct_err *err)
{
    const octet_evaluate_options *x = s->x;
    const oct_voice v = s->h->voice;
    const oct_convert_opts o = { .name = x->model,
                                 .whole = x->samples.skip_bad,
                                 .sensitivity = true,
                                 .sensitivity_file = file,
                                 .job = { .threads = x->threads },
                                 .listener = { .progress = v.progress, .note = v.note, .arg = v.arg } };
    oct_samples samples = { .of = x->samples, .given = s->h->given, .model = x->model };
    OCT_TRY(oct_conversion_open(&s->c, &o, err));
    OCT_TRY(oct_target_open("octet", &s->target, err));
    s->c.o.job.target = s->target;
    oct_conversion_take(&s->c, s->model);
    OCT_TRY(oct_samples_open(s->model->graph, &samples, 0, &s->src, err));
    oct_samples_say_beside(v, &samples);
    oct_samples_say_chosen(v, s->src);
    OCT_TRY(oct_conversion_adopt(&s->c, s->src, s->quantized->graph, &s->found, err));
    oct_samples_say_taken(v, s->src);
    return OCT_OK;
}

/* The few nodes that cause most of the loss. */
static void put_culprits(oct_json *j, const oct_culprits *k)
{
    char text[OCT_CULPRITS_TEXT];
    oct_buf b = OCT_BUF_INIT;
    if (!k->names)
        return;
    oct_buf_printf(&b, "%zu node%s cause%s most of the loss: %s; %s", k->n, k->n == 1 ? "" : "s", k->n == 1 ? "s" : "",
                   k->names, oct_culprits_text(text, k));
    oct_json_str(j, "text", oct_buf_str(&b));
    oct_buf_free(&b);
}

static void put_report(const measurement *s, oct_document *to)
{
    oct_json j = { .to = to };
    oct_report_open(&j, "octet-sensitivity-1");
    oct_json_str(&j, "float", s->x->model);
    oct_json_str(&j, "quant", s->x->quantized.v[0]);
    oct_json_int(&j, "values", (int64_t)s->found.values);
    oct_json_int(&j, "layers", (int64_t)s->found.layers);
    oct_json_int(&j, "values_without_counterpart", (int64_t)s->found.other_values);
    oct_json_int(&j, "layers_without_counterpart", (int64_t)s->found.other_layers);
    oct_report_causes(&j, &s->c.causes);
    put_culprits(&j, &s->c.culprits);
    oct_json_close(&j);
}

/* Whether nothing is asked for that belongs to a comparison. */
static bool measures_alone(const octet_evaluate_options *x)
{
    const char *const comparing[] = { x->samples.labels, x->decode,   x->truth,    x->metric_command,
                                      x->min_agreement,  x->min_sqnr, x->gates,    x->min_speedup,
                                      x->max_latency,    x->max_size, x->baseline, x->max_memory,
                                      x->compute,        x->runner,   x->html,     x->markdown,
                                      x->junit };
    bool alone = !x->metrics.n && !x->max_drop.n && !x->shards && !x->per_class && !x->sweep && !x->profile;
    for (size_t i = 0; i < OCT_COUNT(comparing); i++)
        alone &= !comparing[i];
    return alone;
}

oct_status oct_evaluation_sensitivity(const octet_evaluate_options *x, const char *file, const oct_evaluation_host *h,
                                      oct_document *to, oct_err *err)
{
    measurement s = { .x = x, .h = h };
    if (!measures_alone(x))
        return oct_fail(err, OCT_EUSAGE, "sensitivity is measured without labels, metrics, gates and pages");
    OCT_TRY(oct_evaluation_check_outputs(x, h, file, err));
    if (x->quantized.n != 1)
        return oct_fail(err, OCT_EUSAGE,
                        "--sensitivity takes a float model and one that was quantized from it, and %zu are given",
                        1 + x->quantized.n);
    oct_status st = load(&s, err);
    if (st == OCT_OK)
        st = measure(&s, file, err);
    if (st == OCT_OK)
        put_report(&s, to);
    oct_conversion_close(&s.c);
    oct_source_close(s.src);
    oct_target_close(s.target);
    oct_model_free(s.model);
    oct_model_free(s.quantized);
    return st;
}
