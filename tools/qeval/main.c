/* qeval: compares a float model with quantized ones: accuracy, errors, latency, memory and size. */
#include "qeval/qeval.h"

#include "api/choices.h"
#include "api/folder/folder_plan.h"
#include "base/io.h"
#include "cli/textfmt.h"

#include <string.h>

/* What exists as long as the run. */
typedef struct session {
    const qeval_args *a;
    oct_cli *cli;
    oct_evaluation *of; /* the models and the samples */
} session;

/* ---- writing ---- */

static oct_status print_reports(session *s, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    oct_progress_clear(&s->cli->progress);
    if (!report)
        return oct_nomem(err);
    if (!s->cli->quiet || (f == s->cli->out && !s->cli->json))
        OCT_TRY(qeval_print(report, oct_evaluation_shows_layers(s->of), s->a->x.profile, s->cli->verbose, f, err));
    OCT_TRY(tool_write_report(s->cli->json, oct_json_text, report, err));
    OCT_TRY(tool_write_report(s->a->x.html, oct_report_html, report, err));
    OCT_TRY(tool_write_report(s->a->markdown, oct_report_markdown, report, err));
    return tool_write_report(s->a->junit, oct_report_junit, report, err);
}

/* Makes the report, and prints it in every form that is asked for. */
static oct_status write_reports(session *s, oct_err *err)
{
    oct_document *report = oct_document_create();
    oct_status st = report ? oct_evaluation_report(s->of, report, err) : oct_nomem(err);
    if (st == OCT_OK)
        st = print_reports(s, oct_document_root(report), err);
    oct_document_destroy(report);
    return st;
}

/* ---- evaluating, writing a part, joining parts ---- */

static oct_status compare(session *s, oct_err *err)
{
    OCT_TRY(oct_evaluation_run(s->of, err));
    OCT_TRY(write_reports(s, err));
    return oct_evaluation_gates(s->of, err);
}

static bool looks_inside(const qeval_args *a)
{
    return a->dump.n || a->print_plan;
}

static oct_status look_inside(session *s, oct_err *err)
{
    oct_buf steps = OCT_BUF_INIT;
    oct_status st = oct_evaluation_look_inside(s->of, tool_texts(s->a->dump), s->a->print_plan ? &steps : NULL, err);
    if (st == OCT_OK && s->a->print_plan)
        st = oct_write_text("-", &steps, err);
    oct_buf_free(&steps);
    return st;
}

static oct_status write_checked(const session *s, const oct_case_reports *r, oct_err *err)
{
    if (s->cli->json)
        OCT_TRY(oct_write_text(s->cli->json, &r->json, err));
    return s->a->junit ? oct_write_text(s->a->junit, &r->junit, err) : OCT_OK;
}

static oct_status check_case(session *s, oct_err *err)
{
    oct_case_reports r = { OCT_BUF_INIT, OCT_BUF_INIT, OCT_BUF_INIT };
    const oct_status same = oct_evaluation_check(s->of, s->a->rtol, s->a->atol, &r, err);
    oct_status st = same;
    if (same == OCT_OK || same == OCT_EGOAL) {
        st = write_checked(s, &r, same == OCT_OK ? err : NULL);
        st = st == OCT_OK ? same : st;
    }
    if (st == OCT_OK && !s->cli->quiet)
        oct_print(oct_cli_result(s->cli), "%s\n", oct_buf_str(&r.text));
    oct_buf_free(&r.json);
    oct_buf_free(&r.junit);
    oct_buf_free(&r.text);
    return st;
}

/* ---- options ---- */

/* 1, 0 or -1: whether a flag is given, its negation, or neither. */
static int flag_of(const oct_cli *cli, const char *option, bool set)
{
    return set ? 1 : oct_cli_given(cli, option) ? 0 : -1;
}

static octet_evaluate_options evaluate_options(const oct_cli *cli, const qeval_args *a)
{
    octet_evaluate_options x = a->x;
    x.quantized = tool_texts(a->others);
    x.samples = tool_samples(cli, &a->data);
    x.shard = a->data.shard_i;
    x.shards = a->data.shard_n;
    x.metrics = tool_texts(a->metrics);
    x.max_drop = tool_texts(a->max_drop);
    x.layers = flag_of(cli, "layers", a->layers);
    x.latency = flag_of(cli, "latency", a->latency);
    x.threads = (int)cli->threads;
    return x;
}

static void say_missed(void *cli, const char *model, const char *text)
{
    oct_cli_fault(cli, "%s: %s", model, text);
}

static oct_status evaluate(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    return a->check          ? check_case(s, err)
           : a->outputs      ? oct_evaluation_outputs(s->of, a->outputs, err)
           : looks_inside(a) ? look_inside(s, err)
           : a->part         ? oct_evaluation_part(s->of, a->part, err)
                             : compare(s, err);
}

/* Whether a folder holds models, and no samples. */
static bool fits_recipe(const char *folder)
{
    oct_folder f;
    const bool fits = oct_folder_open(&f, folder, NULL, NULL) == OCT_OK;
    oct_folder_close(&f);
    return fits;
}

/* Folders: two are compared, or the variants in one. No model is named where parts are joined. */
static bool is_of_folders(const void *args)
{
    const qeval_args *a = args;
    return a->audit ||
           (a->x.model && oct_path_is_dir(a->x.model) && (a->recipe || a->others.n || fits_recipe(a->x.model)));
}

/* What is done instead of comparing, with one model or a pair. */
static oct_status check_folders(const qeval_args *a, oct_err *err)
{
    const struct {
        const char *name;
        bool given;
    } none[] = { { "outputs", a->outputs },
                 { "dump", a->dump.n },
                 { "print-plan", a->print_plan },
                 { "sensitivity", a->sensitivity || a->sensitivity_file },
                 { "check", a->check } };
    for (size_t i = 0; i < OCT_COUNT(none); i++)
        if (none[i].given)
            return oct_fail(err, OCT_EUSAGE, "--%s is for models, and %s is a folder", none[i].name, a->x.model);
    return OCT_OK;
}

static oct_status run(qeval_args *a, oct_cli *cli, oct_err *err)
{
    OCT_TRY(tool_read_shard(&a->data, err));
    const char *const written[] = { a->part, a->outputs, a->x.html, a->junit, a->markdown, cli->json };
    const octet_evaluate_options x = evaluate_options(cli, a);
    if (is_of_folders(a)) {
        OCT_TRY(check_folders(a, err));
        return qeval_folder(&x, a->recipe, cli, err);
    }
    oct_buf command = OCT_BUF_INIT;
    tool_command_line(&command, cli, a->argc, a->argv);
    const oct_evaluation_host h = { .voice = tool_voice(cli),
                                    .missed = say_missed,
                                    .command = oct_buf_str(&command),
                                    .other = a->check || a->outputs,
                                    .alone = a->outputs,
                                    .written = written,
                                    .n_written = OCT_COUNT(written),
                                    .parts = tool_texts(a->parts) };
    session s = { .a = a, .cli = cli };
    oct_status st = command.failed ? oct_nomem(err) : OCT_OK;
    if (st == OCT_OK && (a->sensitivity || a->sensitivity_file)) {
        st = qeval_sensitivity(&x, a->sensitivity_file, &h, cli, err);
    } else if (st == OCT_OK) {
        st = oct_evaluation_open(&x, &h, &s.of, err);
        if (st == OCT_OK)
            st = evaluate(&s, err);
        oct_evaluation_close(s.of);
    }
    oct_buf_free(&command);
    return st;
}

static const char *compute_name(size_t i, const char **summary)
{
    *summary = i == 0 ? "products of bfloat16, as AMX computes them; sums, biases and all else are float32" : NULL;
    return i == 0 ? "bf16" : NULL;
}

static const char *runner_for_name(size_t i, const char **summary)
{
    static const char *const names[] = { "all", "quant" }, *const summaries[] = {
        "every model", "the quantized models; the float one runs here"
    };
    *summary = i < OCT_COUNT(names) ? summaries[i] : NULL;
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

/* Options that evaluating and merging have in common. a: qeval_args *. */
#define QEVAL_OPT_GATES(a)                                                                                                         \
    OPT_GROUP("Gates: exit 1 when a quantized model does not meet one"),                                                           \
        OPT_MULTI(                                                                                                                 \
            0, "max-drop", &(a)->max_drop, "[M=]D",                                                                                \
            "how much worse the metric may be: M, else the first; 0.01 in its own units, 0.5% is 0.005, 0.5r% relative to float"), \
        OPT_STR(0, "min-agreement", &(a)->x.min_agreement, "SHARE",                                                                \
                "share of samples on which the largest output is the float model's: 99%, 0.99"),                                   \
        OPT_STR(0, "min-sqnr", &(a)->x.min_sqnr, "DB", "signal to quantization noise of the worst output"),                        \
        OPT_STR(0, "min-speedup", &(a)->x.min_speedup, "R", "at least R times as fast as the float model"),                        \
        OPT_STR(0, "max-latency", &(a)->x.max_latency, "MS", "median time for one sample, in milliseconds"),                       \
        OPT_STR(0, "max-size", &(a)->x.max_size, "SIZE",                                                                           \
                "size of the file: 12MB, 800kB, bytes, or 25% of the float model's"),                                              \
        OPT_STR(0, "max-memory", &(a)->x.max_memory, "SIZE",                                                                       \
                "memory for weights and intermediate tensors of one sample, written like --max-size"),                             \
        OPT_FILE(0, "gates", &(a)->x.gates, "a file with such gates, one a line: max-drop top1 0.5%"),                             \
        OPT_FILE(                                                                                                                  \
            0, "baseline", &(a)->x.baseline,                                                                                       \
            "an earlier --json report: nothing may be worse by more than noise explains, and sizes by more than 1 %")
#define QEVAL_OPT_RECIPE(a)                                       \
    OPT_ENUM_OR_FILE(0, "recipe", &(a)->recipe, tool_recipe_name, \
                     "what becomes of the files of a folder [default: by what it holds]")
#define QEVAL_OPT_REPORTS(a)                                          \
    OPT_OUT(0, "html", &(a)->x.html, "write a page for the browser"), \
        OPT_OUT(0, "junit", &(a)->junit, "write JUnit XML, for CI"),  \
        OPT_OUT(0, "markdown", &(a)->markdown, "write short tables in Markdown; for the summary of a CI job")

/* How results are judged: nothing but a comparison does it. */
#define QEVAL_METRICS "max-drop metric metric-cmd decode truth per-class"

int qeval_main(int argc, char **argv)
{
    qeval_args a = { .rtol = 1e-3, .atol = 1e-5, .x.runner_timeout = 120, .argc = argc, .argv = argv };
    const oct_cli_opt opts[] = {
        OPT_POSITIONAL("FLOAT", &a.x.model, "the float ONNX model, or a folder with such"),
        OPT_POSITIONALS("QUANT", &a.others, 0, "quantized models of any tool, or a folder of them"),
        TOOL_OPT_DATA(&a.data),
        TOOL_OPT_LABELS(&a.data),
        OPT_INT(
            0, "batch", &a.x.batch, 1, 4096,
            "samples at a time; results depend on it only if the model quantizes dynamically, or mixes the samples of a batch [default: 1]"),
        OPT_ENUM(
            0, "compute", &a.x.compute, compute_name,
            "also run the float model in this type, and compare it like a quantized one; with --outputs, in place of float32"),
        OPT_STR(0, "shard", &a.data.shard, "I/N",
                "use only part I of N, counted from 0, of the samples; auto and auto/N ask the job's environment"),
        OPT_OUT('o', "output", &a.part, "file to write: the part, for 'qeval merge'"),
        OPT_GROUP("Comparison"),
        QEVAL_OPT_RECIPE(&a),
        OPT_ENUMS(0, "metric", &a.metrics, oct_metric_names,
                  "metric to compute: one or several [default: those that apply]"),
        TOOL_OPT_JUDGING(&a.x),
        OPT_FLAG(0, "per-class", &a.x.per_class, "report each class, and which classes are confused"),
        OPT_STR(0, "metric-cmd", &a.x.metric_command, "CMD",
                "a command that prints a metric of the outputs in the .npz it is given; it comes first"),
        OPT_FLAG(0, "less-is-better", &a.x.less_is_better, "smaller numbers of --metric-cmd are better"),
        TOOL_OPT_METRIC_TIMEOUT(&a.x.metric_timeout),
        OPT_FLAG(0, "layers", &a.layers, "compare all layers over all samples"),
        OPT_FLAG(0, "latency", &a.latency, "time the models longer, in turn on one sample"),
        OPT_INT(0, "runs", &a.x.runs, 1, 1000, "time at least N runs of each model"),
        OPT_FLAG(0, "sweep", &a.x.sweep,
                 "time the models with 1, 2, 4 ... threads up to --threads, and 1, 4 and 16 samples at a time, too"),
        OPT_FLAG(
            0, "profile", &a.x.profile,
            "print time, throughput and bytes of each layer, float beside quantized, and of each step, with its algorithm and its kernel"),
        OPT_GROUP("Another runtime"),
        OPT_STR(0, "runner", &a.x.runner, "CMD", "a command that runs the models in another runtime: docs/runner.md"),
        OPT_ENUM(0, "runner-for", &a.x.runner_for, runner_for_name, "which models the command runs [default: all]"),
        OPT_FLOAT(0, "runner-timeout", &a.x.runner_timeout, 0.01, 86400, "seconds for each answer [default: 120]"),
        OPT_STR(0, "as", &a.x.twin, "NAME",
                "compute quantized models to the bit as litert, litert-reference, tflm, cmsis-nn or tosa does"),
        QEVAL_OPT_GATES(&a),
        OPT_GROUP("Instead of comparing"),
        OPT_OUT(0, "outputs", &a.outputs, "write the outputs of the model for all samples into an .npz"),
        OPT_MULTI(
            0, "dump", &a.dump, "NODE=FILE",
            "write what a node (or a value of that name) computes for the first sample as .npy; with a pattern (conv*) FILE is a FOLDER/"),
        OPT_FLAG(0, "print-plan", &a.print_plan,
                 "print the steps that run for the first sample, with kernels and memory"),
        OPT_FLAG(0, "sensitivity", &a.sensitivity,
                 "measure the error at the outputs that quantizing each value and each layer alone causes"),
        OPT_STR(0, "sensitivity-file", &a.sensitivity_file, "FILE",
                "keep what --sensitivity measures in FILE; measurements that it has are not repeated"),
        OPT_FLAG(0, "check", &a.check,
                 "run an ONNX test case (--data DIR/test_data_set_0) and compare with its outputs"),
        OPT_FLOAT(0, "rtol", &a.rtol, 0, 1, "relative tolerance of --check"),
        OPT_FLOAT(0, "atol", &a.atol, 0, 1e9, "absolute tolerance of --check"),
        OPT_GROUP("Reports"),
        QEVAL_OPT_REPORTS(&a),
        OPT_REQUIRED_UNLESS("data", is_of_folders, &a),
        OPT_CONFLICT("sweep", "check runner outputs sensitivity sensitivity-file"),
        OPT_CONFLICT("baseline", "check outputs sensitivity sensitivity-file"),
        OPT_CONFLICT("check", "outputs html markdown " QEVAL_METRICS " labels compute"),
        OPT_CONFLICT("outputs", "html junit markdown json " QEVAL_METRICS),
        OPT_CONFLICT("sensitivity sensitivity-file",
                     "check outputs html junit markdown " QEVAL_METRICS " labels compute layers latency profile"),
        OPT_CONFLICT("dump print-plan",
                     "outputs check sensitivity sensitivity-file shard sweep html junit json markdown max-drop metric "
                     "metric-cmd baseline gates layers latency profile"),
        OPT_CONFLICT("runner", "compute layers profile check sensitivity sensitivity-file"),
        OPT_CONFLICT("as", "runner compute profile latency sweep check sensitivity sensitivity-file"),
        OPT_CONFLICT("shard",
                     "check outputs html junit markdown json baseline latency sweep profile runner metric-cmd state "
                     "generate sensitivity sensitivity-file"),
        OPT_CONFLICT("labels", "generate"),
        OPT_NEEDS(
            "preprocess samples skip-bad generate labels metric metric-cmd decode truth max-drop min-agreement min-sqnr "
            "min-speedup max-latency max-size max-memory gates runner",
            "data"),
        OPT_NEEDS("less-is-better metric-timeout", "metric-cmd"),
        OPT_NEEDS("rtol atol", "check"),
        OPT_NEEDS("runner-for runner-timeout", "runner"),
        OPT_NEEDS("shard", "output"),
        OPT_NEEDS("output", "shard"),
        OPT_USUAL("data preprocess samples labels metric max-drop layers latency html json"),
        OPT_COMMON,
        OPT_END,
    };
    const oct_cli_opt merge[] = {
        OPT_POSITIONALS("PART", &a.parts, 1, "files of all parts, in any order"),
        OPT_FLAG(0, "latency", &a.latency, "time the models longer, in turn on one sample"),
        OPT_INT(0, "runs", &a.x.runs, 1, 1000, "time at least N runs of each model"),
        OPT_FLAG(
            0, "profile", &a.x.profile,
            "print time, throughput and bytes of each layer, float beside quantized, and of each step, with its algorithm and its kernel"),
        QEVAL_OPT_GATES(&a),
        OPT_GROUP("Reports"),
        QEVAL_OPT_REPORTS(&a),
        OPT_USUAL("latency max-drop gates baseline html junit markdown json quiet"),
        OPT_COMMON,
        OPT_END,
    };
    const oct_cli_opt audit[] = {
        OPT_POSITIONAL("FOLDER", &a.x.model, "folder of models with variants, as others have published it"),
        TOOL_OPT_DATA(&a.data),
        TOOL_OPT_LABELS(&a.data),
        OPT_GROUP("Comparison"),
        QEVAL_OPT_RECIPE(&a),
        OPT_ENUMS(0, "metric", &a.metrics, oct_metric_names,
                  "metric to compute: one or several [default: those that apply]"),
        TOOL_OPT_JUDGING(&a.x),
        OPT_GROUP("Gates: exit 1 when a quantized model does not meet one"),
        OPT_MULTI(
            0, "max-drop", &a.max_drop, "[M=]D",
            "how much worse the metric may be: M, else the first; 0.01 in its own units, 0.5% is 0.005, 0.5r% relative to float"),
        OPT_STR(0, "min-agreement", &a.x.min_agreement, "SHARE",
                "share of samples on which the largest output is the float model's: 99%, 0.99"),
        OPT_STR(0, "min-sqnr", &a.x.min_sqnr, "DB", "signal to quantization noise of the worst output"),
        OPT_NEEDS("preprocess samples skip-bad generate labels metric decode truth max-drop min-agreement min-sqnr",
                  "data"),
        OPT_CONFLICT("labels", "generate"),
        OPT_COMMON,
        OPT_USUAL("data preprocess samples recipe metric max-drop json threads quiet"),
        OPT_END,
    };
    const oct_cli_command commands[] = {
        { "audit", "judge the variants of models that a folder holds", audit,
          "  qeval audit downloaded/ --data texts.jsonl\n" },
        { "merge", "report on all parts", merge, "  qeval merge a.part b.part --max-drop 0.5% --json report.json\n" },
    };
    oct_err err = OCT_ERR_INIT;
    oct_cli cli = {
        .name = "qeval",
        .summary =
            "Compares a float ONNX model with quantized ones on the same samples: accuracy, error, latency, memory, size. "
            "Of one model alone it reports these.",
        .opts = opts,
        .commands = commands,
        .n_commands = OCT_COUNT(commands),
        .examples = "  qeval model.onnx model.int8.onnx --data eval.csv --preprocess imagenet\n"
                    "  qeval m.onnx m.int8.onnx --data 'eval/*.npy' --labels y.npy --max-drop 0.5%\n"
                    "  qeval model.onnx --data x.npy --outputs y.npz\n"
                    "  qeval model.onnx theirs.onnx --data x.npy --sensitivity\n",
    };
    tool_init(&cli);
    oct_status s = oct_cli_parse(&cli, argc, argv, &err);
    if (s == OCT_OK && !cli.done)
        s = tool_start(&cli, &err);
    a.audit = cli.command && strcmp(cli.command->name, "audit") == 0;
    if (s == OCT_OK && !cli.done)
        s = run(&a, &cli, &err);
    return tool_finish(&cli, s, &err);
}
