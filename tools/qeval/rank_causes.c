/* Measures the cost of quantizing each value and each layer of a model, whichever tool made the model. */
#include "qeval.h"

#include "cli/textfmt.h"
#include "common/print_causes.h"
#include "eval/parts/part.h"
#include "eval/run/scaled.h"
#include "quant/simulate/memo.h"

#include <string.h>

typedef struct session {
    const qeval_args *a;
    oct_cli *cli;
    oct_model *model, *quantized;
    oct_target *target; /* the target has no influence here, but a job needs one */
    oct_source *src;
    oct_conversion c;
    oct_adopted found;
    const uint64_t *hash; /* hashes of both models when the parts were made; NULL: there are no parts */
    oct_memo *parts;      /* the measurements of the parts */
} session;

/* Checks that the parts were made from these models. */
static oct_status check_hashes(const session *s, oct_err *err)
{
    if (s->hash && oct_model_hash(s->model) != s->hash[0])
        return qeval_changed(s->a->model, err);
    return s->hash && oct_model_hash(s->quantized) != s->hash[1] ? qeval_changed(s->a->others.v[0], err) : OCT_OK;
}

static oct_status load(session *s, oct_err *err)
{
    const char *path = s->a->others.v[0];
    OCT_TRY(tool_load(s->cli, s->a->model, &s->model, err));
    OCT_TRY(tool_load(s->cli, path, &s->quantized, err));
    OCT_TRY(check_hashes(s, err));
    if (!oct_model_meta(s->quantized, OCT_SCALED_KEY))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED,
             "%s: channels were multiplied by factors when it was made, so its scales are not the float model's", path);
    oct_hint(err, "qconvert --sensitivity measures it when it makes the model");
    return OCT_EUNSUPPORTED;
}

/* 'merge' reads the samples again, and must not start commands. */
static oct_status check_source(const session *s, oct_err *err)
{
    bool once = oct_source_is_once(s->src);
    for (size_t i = 0; i < s->a->data.specs.n; i++)
        once |= strcmp(s->a->data.specs.v[i], "-") == 0 || strncmp(s->a->data.specs.v[i], "pipe:", 5) == 0;
    if (!once)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE,
             "--sensitivity in parts needs samples in files: 'qeval merge' reads them again, and starts no command");
    oct_hint(err, "write them to files, as with 'qcalib pack'");
    return OCT_EUSAGE;
}

static oct_status measure(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    const oct_convert_opts o = { .name = a->model,
                                 .whole = a->data.skip_bad,
                                 .sensitivity = !a->part,
                                 .sensitivity_file = a->sensitivity_file,
                                 .sensitivity_parts = s->parts,
                                 .job = { .threads = (int)s->cli->threads },
                                 .listener = { .progress = tool_say_progress, .note = tool_say_note, .arg = s->cli } };
    OCT_TRY(oct_conversion_open(&s->c, &o, err));
    OCT_TRY(oct_target_open("octet", &s->target, err));
    s->c.o.job.target = s->target;
    oct_conversion_take(&s->c, s->model);
    tool_data d = a->data;
    d.shard_n = 0; /* the measurements are divided into parts, and each uses the same samples */
    OCT_TRY(tool_open_data(s->model->graph, &d, 0, &s->src, err));
    if (a->part)
        OCT_TRY(check_source(s, err));
    tool_say_samples(s->cli, s->src);
    OCT_TRY(oct_conversion_adopt(&s->c, s->src, s->quantized->graph, &s->found, err));
    tool_say_bad(s->cli, s->src);
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

static oct_status write_json(const session *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    if (!s->cli->json)
        return OCT_OK;
    tool_json_open(&j, "octet-sensitivity-1");
    oct_json_str(&j, "float", s->a->model);
    oct_json_str(&j, "quant", s->a->others.v[0]);
    oct_json_int(&j, "values", (int64_t)s->found.values);
    oct_json_int(&j, "layers", (int64_t)s->found.layers);
    oct_json_int(&j, "values_without_counterpart", (int64_t)s->found.other_values);
    oct_json_int(&j, "layers_without_counterpart", (int64_t)s->found.other_layers);
    tool_json_causes(&j, &s->c.causes);
    return tool_write_json(s->cli->json, &j, err);
}

static oct_status report(const session *s, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    oct_progress_clear(&s->cli->progress);
    if (!s->cli->quiet || f == s->cli->out) {
        print_found(s, f);
        OCT_TRY(tool_print_causes(&s->c.causes, s->cli->verbose, f, err));
        print_culprits(&s->c.culprits, f);
    }
    return write_json(s, err);
}

/* ---- in parts ---- */

static oct_status write_part(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    const uint32_t part = (uint32_t)a->data.shard_i, parts = (uint32_t)a->data.shard_n;
    oct_model *const loaded[] = { s->model, s->quantized };
    oct_buf asked = OCT_BUF_INIT, rest = OCT_BUF_INIT;
    oct_part_out p;
    size_t n = 0;
    oct_status st = qeval_put_asked_sensitivity(a, loaded, &asked, err);
    if (st == OCT_OK)
        st = oct_conversion_sensitivity_part(&s->c, part, parts, &rest, &n, err);
    if (st == OCT_OK)
        st = oct_part_create(&p, &oct_part_of_sensitivity, a->part, oct_buf_str(&asked), part, parts, err);
    if (st == OCT_OK)
        st = oct_part_commit(&p, &rest, err);
    oct_buf_free(&asked);
    oct_buf_free(&rest);
    if (st == OCT_OK)
        oct_cli_note(s->cli, 0, "%s: part %u/%u, %zu measurements", a->part, part, parts, n);
    return st;
}

/* ---- the commands ---- */

static oct_status run(session *s, oct_err *err)
{
    oct_status st = load(s, err);
    if (st == OCT_OK)
        st = measure(s, err);
    if (st == OCT_OK)
        st = s->a->part ? write_part(s, err) : report(s, err);
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

/* Refuses options that merging accepts only for parts of evaluations. */
static oct_status check_options(const oct_cli *cli, oct_err *err)
{
    static const char *const no[] = { "latency",  "runs",        "profile",     "max-drop", "min-agreement",
                                      "min-sqnr", "min-speedup", "max-latency", "max-size", "max-memory",
                                      "gates",    "baseline",    "html",        "junit",    "markdown" };
    for (size_t i = 0; i < OCT_COUNT(no); i++)
        if (oct_cli_given(cli, no[i])) {
            oct_fail(err, OCT_EUSAGE, "the parts are of --sensitivity: there is nothing for --%s", no[i]);
            oct_hint(err, "--json writes what was measured");
            return OCT_EUSAGE;
        }
    return OCT_OK;
}

oct_status qeval_join_sensitivity(qeval_args *a, const oct_parts *parts, oct_cli *cli, oct_err *err)
{
    session s = { .a = a, .cli = cli };
    qeval_joining q = { 0 };
    OCT_TRY(check_options(cli, err));
    oct_arena *arena = oct_arena_create();
    oct_status st = arena ? qeval_take_asked_sensitivity(&parts->v[0], arena, a, &q, err) : oct_nomem(err);
    s.hash = q.hash;
    if (st == OCT_OK)
        st = tool_check_output(cli->json, (const char *const[]){ a->model, a->others.v[0] }, 2, err);
    if (st == OCT_OK)
        st = tool_check_output(cli->json, a->data.specs.v, a->data.specs.n, err);
    if (st == OCT_OK)
        st = oct_memo_join(parts, arena, &s.parts, err);
    if (st == OCT_OK)
        st = run(&s, err);
    oct_arena_destroy(arena);
    return st;
}
