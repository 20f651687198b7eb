/* qconvert: quantizes an ONNX model. */
#include "qconvert/qconvert.h"

#include "api/choices.h"
#include "api/convert_targets.h"
#include "api/folder/folder_recipe.h"
#include "base/io.h"
#include "cli/text_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *format_name(size_t i, const char **summary)
{
    static const char *const names[] = { "qdq", "qoperator", OCT_FORMAT_TFLITE }, *const texts[] = {
        "QuantizeLinear and DequantizeLinear around operators", "QLinear operators",
        "a .tflite file, for LiteRT and what reads its files"
    };
    *summary = i < OCT_COUNT(names) ? texts[i] : NULL;
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

static const char *effort_name(size_t i, const char **summary)
{
    static const char *const names[] = { "default", "high" };
    return i < 2 ? names[i] : NULL;
}

static const char *bits_name(size_t i, const char **summary)
{
    static const char *const names[] = { "4", "8" };
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

static const char *block_name(size_t i, const char **summary)
{
    static const char *const names[] = { "16", "32", "64", "128", "256" };
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

static const char *level_name(size_t i, const char **summary)
{
    static const char *const names[] = { "0", "4" }, *const summaries[] = {
        "activations stay float32", "runtimes may quantize them to 8 bits by block"
    };
    if (i >= OCT_COUNT(names))
        return NULL;
    *summary = summaries[i];
    return names[i];
}

static const char *graph_step_name(size_t i, const char **summary)
{
    static const char *const names[] = { "read", "prepared", "scaled", "decided", "written" }, *const summaries[] = {
        "as the file has it", "with shapes, and fused by the passes", "with channels scaled by methods",
        "with the quantization of its values", "as it is written"
    };
    if (i >= OCT_COUNT(names))
        return NULL;
    *summary = summaries[i];
    return names[i];
}

static const char *layout_name(size_t i, const char **summary)
{
    static const char *const names[] = { "keep", "nhwc" }, *const summaries[] = {
        "the float model's", "channels last, as cameras give them"
    };
    if (i >= OCT_COUNT(names))
        return NULL;
    *summary = summaries[i];
    return names[i];
}

/* Prints the table and destroys it. */
static oct_status print_list(oct_cli *cli, oct_table *t, oct_err *err)
{
    oct_status s = oct_table_print(t, oct_cli_result(cli), err);
    oct_table_destroy(t);
    return s;
}

/* The built-in targets, and "auto". */
static const char *target_name(size_t i, const char **summary)
{
    size_t n = 0;
    while (n < i && oct_target_builtin(n, NULL))
        n++;
    const char *name = oct_target_builtin(n, summary);
    if (!name && n == i) {
        if (summary)
            *summary = "that of this machine; the record of the conversion names it";
        name = "auto";
    }
    return name;
}

static bool is_word(const char *typed, const char *word)
{
    for (; *word && (*typed == '_' ? '-' : tolower((unsigned char)*typed)) == *word; word++)
        typed++;
    return !*word && !*typed;
}

/* Words of the field for what an option calls otherwise: devices and runtimes for a target, names of methods and forms
 * for a scheme. Of option "": for options themselves. */
static const char *meant(const char *option, const char *word, const char **hint)
{
    static const char int16[] =
        "--target litert-int16, or for single layers --set 'name:LAYER=static s8/channel u16/tensor'";
    static const char no_rules[] =
        "no target has its rules; 'generic' is what reads QuantizeLinear and DequantizeLinear, as ONNX has them";
    static const struct {
        const char *option, *word, *hint;
    } words[] = {
        { "scheme", "int8", "that is what is done without --scheme, where it costs little; 'static' insists on it" },
        { "scheme", "int4", "weights of 4 bits are --scheme weight-only" },
        { "scheme", "w4a16", "weights of 4 bits are --scheme weight-only" },
        { "scheme", "w8a16", "weights of 8 bits are --scheme weight-only --bits 8, or --scheme stored" },
        { "scheme", "w8a8", "that is --scheme static, with samples (--data)" },
        { "scheme", "gptq",
          "weights of 4 bits are --scheme weight-only; with samples (--data) they are rounded as in GPTQ" },
        { "scheme", "awq",
          "weights of 4 bits are --scheme weight-only; with samples (--data) channels are scaled as in AWQ" },
        { "scheme", "q4", "weights of 4 bits are --scheme weight-only" },
        { "scheme", "nf4", "weights of 4 bits are --scheme weight-only" },
        { "scheme", "hqq", "weights of 4 bits are --scheme weight-only" },
        { "scheme", "q8", "weights of 8 bits are --scheme weight-only --bits 8, or --scheme stored" },
        { "scheme", "int16", int16 },
        { "scheme", "a16w8", int16 },
        { "scheme", "ptq", "that is what is done without --scheme; give samples with --data" },
        { "scheme", "mixed", "layers are mixed as a goal needs it: --max-drop 1%, or --target-size 25%" },
        { "scheme", "smoothquant", "it is a method, used where it gains; --list-methods says which there are" },
        { "scheme", "fp8", "8 bits are integers here; 16-bit floats are --scheme fp16" },
        { "scheme", "float16", "that is --scheme fp16" },
        { "scheme", "bfloat16", "that is --scheme bf16" },
        { "target", "gpu", "an NVIDIA GPU is --target tensorrt, one of Intel --target openvino-gpu" },
        { "target", "npu",
          "Qualcomm's is --target qnn, Intel's openvino-npu, AMD's vitisai, ST's st-neuralart, Arm's Ethos-U litert" },
        { "target", "phone",
          "by what runs it there: qnn, nnapi, xnnpack, litert, onnxruntime-arm64, or coreml of Apple" },
        { "target", "mobile",
          "by what runs it there: qnn, nnapi, xnnpack, litert, onnxruntime-arm64, or coreml of Apple" },
        { "target", "pixel", "by what runs it there: litert, onnxruntime-arm64, xnnpack or nnapi" },
        { "target", "tpu", "Google's Edge TPU is --target coral" },
        { "target", "rknn", no_rules },
        { "target", "rockchip", no_rules },
        { "target", "hailo", no_rules },
        { "target", "directml", no_rules },
        { "target", "windows", no_rules },
        { "target", "tvm", no_rules },
        { "target", "ncnn", no_rules },
        { "target", "mnn", no_rules },
        { "target", "wasm", no_rules },
        { "target", "web", no_rules },
        { "target", "webgpu", no_rules },
        { "target", "browser", no_rules },
        { "target", "cuda", "what runs 8 bits on an NVIDIA GPU is --target tensorrt" },
        { "scheme", "qat", "training is not done here; what a trained model has quantized stays as it is" },
        /* options of other tools */
        { "", "opset", "the opset is raised where the result needs it, and else stays" },
        { "", "opset-version", "the opset is raised where the result needs it, and else stays" },
        { "", "per-channel", "weights have a scale for each channel wherever the target takes that" },
        { "", "reduce-range", "layers are made safe from saturation one by one, for targets that need it (--target)" },
        { "", "calibration-method", "ranges are chosen by what is measured to lose least; --observer insists on one" },
        { "", "calibrate-method", "ranges are chosen by what is measured to lose least; --observer insists on one" },
        { "", "quant-format", "QDQ is written; --format writes other forms" },
        { "", "op-types-to-quantize", "a rule says what stays float: --set 'op:Conv=float'" },
        { "", "nodes-to-exclude", "a rule says what stays float: --set 'name:NODE=float'" },
        { "", "exclude", "a rule says what stays float: --set 'name:NODE=float'" },
        { "", "device", "where the model will run is --target" },
        { "", "dataset", "samples are given with --data" },
        { "", "images", "samples are given with --data" },
        { "", "input", "the model is named without an option: qconvert MODEL" },
        { "", "model", "the model is named without an option: qconvert MODEL" },
        { "", "int8", "that is what is done without an option, where it costs little" },
        { "", "int4", "weights of 4 bits are --scheme weight-only" },
        { "", "fp16", "that is --scheme fp16" },
        { "", "half", "that is --scheme fp16" },
        { "", "mean", "--preprocess mean=R,G,B:std=R,G,B" },
        { "", "imgsz", "--preprocess letterbox=640x640:std=255, as for YOLO" },
    };
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strcmp(option, words[i].option) == 0 && is_word(word, words[i].word))
            *hint = words[i].hint;
    return strcmp(option, "target") == 0 ? oct_target_called(word) : NULL;
}

/* Other words that are meant, for what is mistyped. */
static bool also(const char *option, size_t i, char dst[OCT_CLI_WORD])
{
    return strcmp(option, "target") == 0 && oct_target_alias(i, dst, OCT_CLI_WORD);
}

/* Prints names and their summaries, as a table with a heading for each. */
static oct_status list(oct_cli *cli, const char *what, const char *meaning, oct_cli_names_fn names, oct_err *err)
{
    const char *name, *summary;
    oct_table *t = oct_table_of("ll", (const char *[]){ what, meaning });
    for (size_t i = 0; (name = names(i, &summary)); i++)
        oct_table_texts(t, (const char *[]){ name, summary });
    return print_list(cli, t, err);
}

static oct_status list_targets(oct_cli *cli, oct_err *err)
{
    const char *name, *summary;
    oct_table *t = oct_table_of("lll", (const char *[]){ "target", "what it is", "proof" });
    for (size_t i = 0; (name = oct_target_builtin(i, &summary)); i++) {
        const char *proof;
        const oct_status s = oct_choice_target_proof(name, &proof, err);
        if (s != OCT_OK) {
            oct_table_destroy(t);
            return s;
        }
        oct_table_texts(t, (const char *[]){ name, summary, proof });
    }
    return print_list(cli, t, err);
}

/* With -v also where each stands among the steps, and what it needs. */
static oct_status list_methods(oct_cli *cli, oct_err *err)
{
    oct_choice_method m;
    oct_table *t = cli->verbose
                       ? oct_table_of("lllll", (const char *[]){ "method", "used", "step", "needs", "what it does" })
                       : oct_table_of("lll", (const char *[]){ "method", "used", "what it does" });
    for (size_t i = 0; oct_choice_method_at(i, &m); i++) {
        const char *used = m.by_default ? "yes" : m.high ? "--effort high" : "if asked for";
        if (cli->verbose)
            oct_table_texts(t, (const char *[]){ m.name, used, m.step, m.needs, m.summary });
        else
            oct_table_texts(t, (const char *[]){ m.name, used, m.summary });
    }
    return print_list(cli, t, err);
}

static oct_status dispatch(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const char *command = cli->command ? cli->command->name : "";
    if (*command)
        return strcmp(command, "lint") == 0     ? qconvert_lint(cli, a, err)
               : strcmp(command, "verify") == 0 ? qconvert_verify(cli, a, err)
                                                : qconvert_explain(cli, a, err);
    if (a->print_policy) {
        oct_buf b = OCT_BUF_INIT;
        oct_buf_puts(&b, oct_policy_builtin());
        oct_status s = oct_write_text("-", &b, err);
        oct_buf_free(&b);
        return s;
    }
    if (a->list_passes)
        return list(cli, "pass", "what it does", oct_choice_pass, err);
    if (a->list_targets)
        return list_targets(cli, err);
    if (a->list_recipes)
        return list(cli, "recipe", "what it is for", oct_folder_recipe_builtin, err);
    if (a->list_methods)
        return list_methods(cli, err);
    const bool folder = a->recipe || oct_path_is_dir(a->x.model);
    if (a->targets.n > 1 && (folder || a->print_graph))
        return oct_fail(err, OCT_EUSAGE, "%s is about one target, and --target names %zu",
                        folder ? "the conversion of a folder" : "--print-graph", a->targets.n);
    return folder             ? qconvert_folder(cli, a, err)
           : a->targets.n > 1 ? qconvert_targets(cli, a, err)
                              : qconvert_run(cli, a, err);
}

/* Options that change what is written. a: convert_args *. */
#define SAMPLES(a)                                                 \
    TOOL_OPT_DATA(&(a)->data), OPT_FILE(0, "calib", &(a)->x.calib, \
                                        "calibration table of qcalib, instead of samples; or ranges of another tool")
#define CHOICES(a, target)                                                                                                      \
    OPT_GROUP("What becomes of each layer"),                                                                                    \
        OPT_FILE(0, "policy", &(a)->x.policy, "policy table; its rules come after the built-in ones"),                          \
        OPT_MULTI(0, "set", &(a)->rules, "MATCH=COLUMNS",                                                                       \
                  "one rule of a policy table, after those of --policy: 'op:MatMul=dynamic'"),                                  \
        target,                                                                                                                 \
        OPT_ENUM(0, "scheme", &(a)->x.scheme, oct_choice_scheme, "one scheme, except where the policy says float"),             \
        OPT_ENUM(0, "bits", &(a)->bits, bits_name,                                                                              \
                 "bits of weights in blocks (weight-only); without it 4, and 8 for the head of a token model"),                 \
        OPT_ENUM(                                                                                                               \
            0, "block-size", &(a)->block_size, block_name,                                                                      \
            "weights of a column that share a scale (weight-only); without it 32, or for 8 bits what gives the smallest file"), \
        OPT_ENUM(0, "accuracy-level", &(a)->accuracy_level, level_name,                                                         \
                 "accuracy_level of MatMulNBits (weight-only)"),                                                                \
        OPT_FLAG(0, "symmetric", &(a)->x.symmetric, "blocks have no zero points of their own (weight-only)"),                   \
        OPT_STR(0, "observer", &(a)->x.observer, "NAME", observers_help()),                                                     \
        OPT_MULTI(0, "disable-pass", &(a)->disabled, "NAME", "leave out a graph pass"),                                         \
        OPT_ENUM(0, "effort", &(a)->x.effort, effort_name, "whether to use methods that take much more time"),                  \
        OPT_MULTI(0, "method", &(a)->methods, "NAME", "use a method that wins accuracy back"),                                  \
        OPT_MULTI(0, "no-method", &(a)->no_methods, "NAME", "leave out a method"),                                              \
        OPT_FLOAT(0, "budget", &(a)->x.budget, 0, 100,                                                                          \
                  "percent of the multiply-accumulates that mixed precision may leave float [default: 3]"),                     \
        OPT_FLAG(0, "recover", &(a)->x.recover, "use methods that measure on samples (with --data)"),                           \
        OPT_FLAG(0, "bias-correction", &(a)->x.bias_correction, "use methods that work on biases")
#define TARGETS(a, text) OPT_ENUMS_OR_FILES(0, "target", &(a)->targets, target_name, text)
#define TARGET(a) OPT_ENUM_OR_FILE(0, "target", &(a)->x.target, target_name, "where the model will run")
#define RULES OPT_CONFLICT("data", "calib"), OPT_NEEDS("preprocess samples skip-bad generate", "data")
#define SIZES(a)                                                                                                          \
    OPT_GROUP("File size"),                                                                                               \
        OPT_STR(                                                                                                          \
            0, "target-size", &(a)->x.target_size, "SIZE",                                                                \
            "choose schemes so that the file has at most this size, with the least loss: 12MB, or 25% of the float one"), \
        OPT_FLOAT(0, "target-bits", &(a)->x.target_bits, 0.5, 32,                                                         \
                  "choose schemes so that a weight takes X bits on average, scales included")
#define GOALS(a)                                                                                                                             \
    OPT_GROUP("Goal"),                                                                                                                       \
        OPT_MULTI(                                                                                                                           \
            0, "max-drop", &(a)->max_drop, "[M=]D",                                                                                          \
            "how much worse the metric may be: M, else the one that counts; 0.01 in its own units, 0.5% is 0.005, 0.5r% relative to float"), \
        OPT_FLOAT_OF(0, "min-sqnr", &(a)->x.min_sqnr, "DB", -100, 300,                                                                       \
                     "signal to quantization noise of the worst output"),                                                                    \
        OPT_STR(0, "min-agreement", &(a)->x.min_agreement, "SHARE",                                                                          \
                "share of samples on which the largest output is the float model's: 99%, 0.99"),                                             \
        OPT_ENUM(                                                                                                                            \
            0, "metric", &(a)->x.metric, oct_metric_names,                                                                                   \
            "metric to compute: the one that counts [default: the first that --max-drop names, or that applies]"),                           \
        TOOL_OPT_JUDGING(&(a)->x),                                                                                                           \
        OPT_STR(0, "metric-cmd", &(a)->x.metric_command, "CMD",                                                                              \
                "a command that prints a metric of the outputs in the .npz it is given; it is the one that counts"),                         \
        OPT_FLAG(0, "less-is-better", &(a)->x.less_is_better, "smaller numbers of --metric-cmd are better"),                                 \
        TOOL_OPT_METRIC_TIMEOUT(&(a)->x.metric_timeout),                                                                                     \
        OPT_STR(                                                                                                                             \
            0, "as", &(a)->x.twin, "NAME",                                                                                                   \
            "compute quantized models to the bit as litert, litert-reference, tflm, cmsis-nn or tosa, to judge them"),                       \
        OPT_INT(0, "trials", &(a)->x.trials, 0, 1000,                                                                                        \
                "try up to N times to reach a missed goal, by leaving layers float"),                                                        \
        OPT_FLOAT(0, "time-limit", &(a)->x.time_limit, 0, 1e9,                                                                               \
                  "begin no trial X seconds after the start; then the result depends on the machine")
#define FORMS(a)                                                                                                                          \
    OPT_ENUM(                                                                                                                             \
        0, "format", &(a)->x.format, format_name,                                                                                         \
        "form of what is written: of integer operators; weights in blocks are MatMulNBits unless qdq is asked for"),                      \
        OPT_MULTI(                                                                                                                        \
            0, "input-type", &(a)->input_types, "[NAME=]TYPE",                                                                            \
            "make the model's inputs (or one) u8, s8 or fp16; for pixels, mean, std and order of --preprocess become part of the model"), \
        OPT_MULTI(0, "output-type", &(a)->output_types, "[NAME=]TYPE", "make its outputs (or one) u8, s8 or fp16"),                       \
        OPT_ENUM(0, "input-layout", &(a)->x.input_layout, layout_name,                                                                    \
                 "order of the axes of pictures, for the inputs that --input-type changes"),                                              \
        OPT_FLAG(0, "keep-io-types", &(a)->x.keep_io_types,                                                                               \
                 "with fp16 and bf16, inputs and outputs of the model stay float32")

static const char *observers_help(void)
{
    static char text[200];
    snprintf(text, sizeof text, "how ranges are chosen (for every tensor): %s", oct_observer_names());
    return text;
}

/* The values of options that are not given. */
static convert_args defaults(int argc, char **argv)
{
    convert_args a = { .accuracy_level = "0", .argc = argc, .argv = argv };
    octet_convert_init(&a.x, sizeof a.x);
    a.x.target = oct_target_builtin(0, NULL);
    a.x.scheme = "auto";
    a.x.format = "qdq";
    a.x.effort = "default";
    return a;
}

int qconvert_main(int argc, char **argv)
{
    convert_args a = defaults(argc, argv);
    const oct_cli_opt run[] = {
        OPT_POSITIONAL("MODEL", &a.x.model, "float ONNX model, or a folder with one or several"),
        SAMPLES(&a),
        CHOICES(&a, TARGETS(&a, "where the model will run; of several each gets a file (-o model." OCT_TARGET_WORD
                                ".onnx), and a table compares them [default: onnxruntime-x86]")),
        SIZES(&a),
        GOALS(&a),
        TOOL_OPT_LABELS(&a.data),
        OPT_FLAG(0, "strict", &a.x.strict,
                 "exit 1, and write OUT.best.onnx instead, when a warning says that the model has lost much"),
        OPT_GROUP("What costs accuracy"),
        OPT_FLAG(0, "sensitivity", &a.x.sensitivity,
                 "measure the error at the outputs that quantizing each value and each layer alone causes"),
        OPT_STR(0, "sensitivity-file", &a.x.sensitivity_file, "FILE",
                "keep what --sensitivity measures in FILE; measurements that it has are not repeated"),
        OPT_GROUP("Output"),
        OPT_OUT(
            'o', "output", &a.x.output,
            "file to write; OUT.tflite is a file of LiteRT; without it MODEL.int8.onnx (.int4.onnx, .fp16.onnx) beside the input; of a folder, a new folder"),
        OPT_ENUM_OR_FILE(0, "recipe", &a.recipe, tool_recipe_name,
                         "what becomes of the files of a folder [default: by what it holds]"),
        FORMS(&a),
        OPT_FLAG(0, "dry-run", &a.x.dry_run, "print the decision for every node and why; write nothing"),
        OPT_GROUP("Looking inside"),
        OPT_ENUM(0, "print-graph", &a.print_graph, graph_step_name,
                 "print the graph as it is behind a step of the conversion, and write nothing"),
        OPT_FLAG(0, "dot", &a.dot, "print it for Graphviz"),
        OPT_OUT(0, "dump-policy", &a.x.dump_policy, "write the decisions as a policy table"),
        OPT_OUT(0, "html", &a.x.html,
                "write a page for the browser: verdict, errors and ranges by layer, what stayed float and why"),
        OPT_ACTION(0, "print-policy", &a.print_policy, "print the built-in policy table"),
        OPT_ACTION(0, "list-passes", &a.list_passes, "print the graph passes"),
        OPT_ACTION(0, "list-targets", &a.list_targets, "print the built-in targets"),
        OPT_ACTION(0, "list-methods", &a.list_methods, "print the methods that win accuracy back"),
        OPT_ACTION(0, "list-recipes", &a.list_recipes, "print the built-in recipes for folders"),
        RULES,
        OPT_NEEDS("dot", "print-graph"),
        OPT_CONFLICT("print-graph", "max-drop min-sqnr min-agreement strict html json"),
        OPT_NEEDS(
            "max-drop min-sqnr min-agreement metric decode truth metric-cmd as sensitivity sensitivity-file labels strict",
            "data"),
        OPT_NEEDS("less-is-better metric-timeout", "metric-cmd"),
        OPT_NEEDS("input-layout", "input-type"),
        OPT_CONFLICT("metric-cmd", "metric"),
        OPT_CONFLICT("labels", "generate"),
        OPT_CONFLICT("dry-run", "min-sqnr min-agreement max-drop strict"),
        OPT_CONFLICT("target-size", "target-bits"),
        OPT_CONFLICT("target-size target-bits", "scheme bits block-size"),
        OPT_CONFLICT("print-policy list-passes list-targets list-methods list-recipes", "json html"),
        OPT_CONFLICT("recipe", "html calib dump-policy print-graph"),
        OPT_COMMON,
        OPT_USUAL("data preprocess target scheme max-drop labels output dry-run html json"),
        OPT_END,
    };
    const oct_cli_opt lint[] = {
        OPT_POSITIONAL("MODEL", &a.x.model, "ONNX model"),
        OPT_FILE(0, "calib", &a.x.calib,
                 "calibration table of qcalib, instead of samples; the ranges of tensors are taken from it"),
        OPT_MULTI(0, "data", &a.data.specs, "SPEC",
                  "samples: with them a float model is converted, and the table says what it loses, and its size"),
        OPT_MULTI('p', "preprocess", &a.data.preprocess, "STEPS", "steps, such as imagenet or resize=256:crop=224"),
        TOOL_OPT_LABELS(&a.data),
        OPT_NEEDS("preprocess", "data"),
        OPT_NEEDS("labels", "data"),
        OPT_CONFLICT("data", "calib"),
        CHOICES(&a, TARGETS(&a, "where the model will run; of several a table compares what they make of it")),
        OPT_GROUP("Gates"),
        OPT_FLAG(0, "strict", &a.lint_strict,
                 "exit 1, unless the target loads the model, runs every quantized layer on integers, and adds exactly"),
        OPT_STR(0, "min-integer", &a.min_integer, "SHARE",
                "exit 1 if a smaller share of the multiply-accumulates runs on integers: 95%, 0.95"),
        OPT_GROUP("Reports"),
        OPT_OUT(0, "sarif", &a.sarif, "write the findings as SARIF 2.1.0, for services that show them beside a change"),
        OPT_COMMON,
        OPT_USUAL("calib data policy target scheme strict min-integer sarif json verbose"),
        OPT_END
    };
    const oct_cli_opt explain[] = {
        OPT_POSITIONAL("MODEL", &a.x.model, "ONNX model"),
        OPT_POSITIONAL("NODE", &a.node, "name of a node, or of one of its outputs"),
        SAMPLES(&a),
        CHOICES(&a, TARGET(&a)),
        RULES,
        OPT_COMMON,
        OPT_USUAL("data preprocess calib policy target scheme json"),
        OPT_END,
    };
    const oct_cli_opt verify[] = {
        OPT_POSITIONAL("MODEL", &a.x.model, "model that qconvert wrote"),
        OPT_GROUP("Sources"),
        OPT_FILE(0, "source", &a.source, "the float ONNX model"),
        OPT_REQUIRED("source"),
        OPT_MULTI(0, "data", &a.data.specs, "SPEC", "samples: those that the model was made with, if any"),
        OPT_FILE(0, "calib", &a.x.calib,
                 "calibration table of qcalib, instead of samples; the one that the model was made with"),
        OPT_FILE(0, "policy", &a.x.policy, "policy table; the one that the model was made with"),
        OPT_ENUM_OR_FILE(0, "target", &a.x.target, target_name,
                         "where the model will run: the file of the target, if it is none of the built-in ones"),
        TOOL_OPT_LABELS(&a.data),
        TOOL_OPT_JUDGING(&a.x),
        OPT_STR(
            0, "metric-cmd", &a.x.metric_command, "CMD",
            "a command that prints a metric of the outputs in the .npz it is given; it is never taken from the model"),
        TOOL_OPT_METRIC_TIMEOUT(&a.x.metric_timeout),
        OPT_GROUP("Reports"),
        OPT_OUT(0, "statement", &a.statement, "write what was verified as an in-toto statement"),
        OPT_FILE(0, "evaluation", &a.evaluation,
                 "report of qeval (--json) on this model, whose metrics go into the statement"),
        OPT_NEEDS("evaluation", "statement"),
        OPT_CONFLICT("data", "calib"),
        OPT_COMMON,
        OPT_USUAL("source data calib policy target labels statement json quiet"),
        OPT_END,
    };
    const oct_cli_command commands[] = {
        { "lint", "say what a target runs on integers, and why not all", lint,
          "  qconvert lint m.int8.onnx --target onnxruntime-x86 --strict\n" },
        { "explain", "print all that is known of one node", explain,
          "  qconvert explain m.onnx /head/conv --calib m.calib\n" },
        { "verify", "make a model again, and compare all bytes", verify,
          "  qconvert verify m.int8.onnx --source m.onnx --data photos/\n" },
    };
    oct_err err = OCT_ERR_INIT;
    oct_cli cli = {
        .name = "qconvert",
        .summary = "Quantizes a float ONNX model to 8 bits, or converts it to 16-bit floats.",
        .opts = run,
        .commands = commands,
        .n_commands = OCT_COUNT(commands),
        .examples = "  qconvert mobilenet.onnx --data photos/ --preprocess imagenet\n"
                    "  qconvert mobilenet.onnx --calib mobilenet.calib -o out.onnx\n"
                    "  qconvert decoder.onnx --scheme weight-only --block-size 64\n",
    };
    tool_init(&cli);
    cli.meant = meant;
    cli.also = also;
    oct_status s = oct_cli_parse(&cli, argc, argv, &err);
    a.x.dry_run |= a.print_graph != NULL;
    if (s == OCT_OK && !cli.done)
        s = tool_start(&cli, &err);
    if (s == OCT_OK && !cli.done)
        s = dispatch(&cli, &a, &err);
    return tool_finish(&cli, s, &err);
}
