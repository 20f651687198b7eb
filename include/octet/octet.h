/* octet.h -- Octet as a library: post-training quantization of ONNX models, and running them.
 *
 *     octet *o = octet_open();
 *     octet_result *r;
 *     octet_convert_options x;
 *     octet_convert_init(&x, sizeof x);
 *     x.model = "model.onnx";
 *     x.samples.data = (octet_texts){ (const char *const[]){ "samples.npz" }, 1 };
 *     if (octet_convert_model(o, &x, &r) != OCTET_OK)
 *         fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
 *     octet_result_free(r);
 *     octet_close(o);
 *
 * The functions that calibrate, convert and evaluate take structures whose members are named after the options of the
 * commands. The manuals qcalib(1), qconvert(1) and qeval(1) describe these, and functions and commands write the same
 * bytes. The functions that run a model take arrays.
 *
 * Compile and link with `pkg-config --cflags --libs octet`. The header is C11 and includes only standard headers.
 *
 * Ownership: what a function returns as `const` belongs to the object that was its argument. It is valid until the next
 * call with that object, or until the object is released. Unless a function says otherwise, it uses its arguments
 * during the call only. Texts that the library makes are valid UTF-8; in errors and messages a byte of a name that is
 * not is shown as \xff. Names of inputs, outputs and metadata are the bytes of the file.
 *
 * Wrong arguments: a NULL, a number of threads or a rank that no call allows, and the like are answered by OCTET_USAGE
 * or the status that a function names. What cannot be seen must be right: pointers that are not NULL, sizes of memory,
 * and that an object is not released yet.
 *
 * Threads: only one thread at a time may use an `octet` or an `octet_model`; a call with one that another call is using
 * returns OCTET_USAGE. Different threads may use different objects. Within a process, calls that calibrate, convert and
 * evaluate wait for each other. Results do not depend on the number of threads. A thread may
 * have as little as OCTET_STACK_MIN bytes of stack: if less than 512 kB are left, a call starts a thread that does the
 * work.
 *
 * Callbacks are called one at a time, while the caller waits, from the caller's thread or one that the library has
 * started. They may call octet_stop, and use other objects, but neither calibrate, convert nor evaluate: that returns
 * OCTET_USAGE. They must not wait for a thread that does.
 *
 * Processes: a child made by fork may use the objects of its parent, on the calling thread alone. What a call of
 * another thread was using when the process was forked stays in use in the child: OCTET_USAGE. A child that is forked
 * in a callback must not return from it.
 *
 * The locale of the process changes nothing: numbers are read and written with a point. The library installs no signal
 * handlers and prints nothing. Do not truncate a model file while it is in use: the file is mapped, and the process
 * would get SIGBUS. */
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OCTET_API __attribute__((visibility("default")))
#else
#define OCTET_API
#endif

/* The version of the library that is running, such as "0.2.0". It may be newer than this header. */
OCTET_API const char *octet_version(void);

/* The result of a call. The numbers are the exit codes of the commands. */
typedef enum octet_status {
    OCTET_OK = 0,
    OCTET_GOAL = 1,        /* the work is done, but a goal or gate is not met: there is a result */
    OCTET_USAGE = 2,       /* an argument is wrong, or arguments contradict each other */
    OCTET_IO = 3,          /* cannot read or write */
    OCTET_MALFORMED = 4,   /* an input violates its format */
    OCTET_UNSUPPORTED = 5, /* a valid input that this version cannot process */
    OCTET_NUMERIC = 6,     /* NaN, overflow, an empty range */
    OCTET_NOMEM = 7,       /* out of memory, or of threads */
    OCTET_STOPPED = 8,     /* octet_stop was called */
    OCTET_INTERNAL = 70    /* a bug in the library */
} octet_status;

/* The least stack that a calling thread needs; musl gives a thread 128 kB. */
enum { OCTET_STACK_MIN = 64 * 1024 };

/* ---- a context: it holds the callbacks and the last error ---- */

typedef struct octet octet;

/* Makes a context, to be released with octet_close. Returns NULL when out of memory. */
OCTET_API octet *octet_open(void);
OCTET_API void octet_close(octet *o); /* o may be NULL. While a call is using o, as in a callback, nothing happens */

/* Asks the call that is using o to end soon: before the next step of a model, layer, sample or file it returns
 * OCTET_STOPPED. No file is left half written; a file that was complete before stays. Without such a call, and for
 * NULL, nothing happens. May be called from any thread, from callbacks and from signal handlers, as long as o is not
 * released. A wait for a command that the options start (runner, metric_command, pipe:) ends as soon: the command and
 * what it has started get SIGTERM, and SIGKILL a second later. */
OCTET_API void octet_stop(octet *o);

/* The error of the last call: one line that names the file, the node and the reason. "" if the call succeeded, or if o
 * is NULL. */
OCTET_API const char *octet_error(const octet *o);
/* A remedy for that error, or "". */
OCTET_API const char *octet_hint(const octet *o);

/* Sets a function that reports the progress of long work: what is being done, such as "calibrating", and that `done` of
 * `total` steps are complete. total is 0 if it is not known. The function is called often. fn may be NULL. */
typedef void (*octet_progress_fn)(void *arg, const char *what, int64_t done, int64_t total);
OCTET_API void octet_on_progress(octet *o, octet_progress_fn fn, void *arg);

/* Sets a function that gets each note and warning that a program would print on standard error, as one line without a
 * newline. fn may be NULL. */
typedef void (*octet_message_fn)(void *arg, int is_warning, const char *text);
OCTET_API void octet_on_message(octet *o, octet_message_fn fn, void *arg);

/* Restricts the instruction sets of the whole process to a level and those that it includes, such as "avx2"; "scalar":
 * plain C; "native": all that the processor has. It takes effect for what models prepare from then on. Results do not
 * depend on it. Errors: OCTET_USAGE for an unknown name, OCTET_UNSUPPORTED for a level that the processor lacks. */
OCTET_API octet_status octet_use_isa(octet *o, const char *name);

/* ---- calibrations, conversions and evaluations ---- */

/* All names of files in options are names, whatever they begin with. Only samples may be a command, "pipe:CMD": put
 * "./" before names of samples from elsewhere. Standard input, output and error are refused (OCTET_USAGE), as "-" and
 * as /dev/stdout and the like. No file is left half written. */

/* A list of texts. */
typedef struct octet_texts {
    const char *const *v; /* [n] */
    size_t n;
} octet_texts;

struct octet_array;
/* Gives sample i of the caller's own, 0 <= i < count: sets type, rank, dims and data of inputs[k] for each of the n
 * inputs of the model, whose names are set. An array is one sample as the input takes it, with the dimension of the
 * batch (which then is 1) or without; its data stay valid until the next call or the end of the conversion. Samples are
 * asked for several times, mostly in order, and must be the same each time. Called one at a time, from any thread.
 * Other than 0: there is no such sample, and the conversion ends with OCTET_IO. */
typedef int (*octet_sample_fn)(void *arg, int64_t i, struct octet_array *inputs, size_t n);

/* Samples: from files, or the caller's own. */
typedef struct octet_samples {
    octet_texts data;    /* folders, files, patterns and commands, as --data */
    octet_sample_fn get; /* in place of data; NULL: none */
    void *get_arg;
    int64_t count;          /* how many samples get has */
    octet_texts preprocess; /* steps, as --preprocess */
    int64_t samples;        /* use this many, spread over all; 0: all */
    int64_t seed;           /* of another choice; below 0: the usual one */
    bool first;             /* use the first ones instead */
    bool skip_bad;          /* leave out broken samples instead of stopping */
    octet_texts states;     /* "OUT=IN" */
    const char *labels;     /* a file, or NULL */
    int64_t generate;       /* tokens that a decoder generates after each sample, as --generate; 0: none */
} octet_samples;

/* What a calibration is to do, as qcalib(1). octet_calibrate_init sets all members. Borrowed for the call. */
typedef struct octet_calibrate_options {
    size_t size;            /* of this structure, as the caller knows it: set by octet_calibrate_init */
    const char *model;      /* the file of a float ONNX model, with data also what the model is called */
    const void *model_data; /* its bytes, in place of the file */
    size_t model_size;
    octet_samples samples;
    int64_t shard, shards; /* use part shard, counted from 0, of that many parts of the samples; 0, 0: all */
    const char *output;    /* the table to write; its name may end in .gz */
    bool resume;           /* keep a checkpoint beside it, and go on from one that is there */
    int threads;           /* at most 1024; 0: one for each processor */
} octet_calibrate_options;

/* Sets what a calibration does unless it is told otherwise. size: sizeof *options. */
OCTET_API void octet_calibrate_init(octet_calibrate_options *options, size_t size);

/* What a conversion is to do. octet_convert_init sets all members, and those that are not changed afterwards leave the
 * choice to the library. Members are named after the options of qconvert(1), which has the details and the names that
 * texts may be; a text that is no such name is OCTET_USAGE. NULL: not given. All is borrowed for the call. */
typedef struct octet_convert_options {
    size_t size; /* of this structure, as the caller knows it: set by octet_convert_init */

    const char *model;      /* the file of a float ONNX model, with data also what the model is called */
    const void *model_data; /* its bytes, in place of the file */
    size_t model_size;
    const char *output; /* the file to write; NULL: a name beside the model's, or none where model_data is given */
    bool in_memory;     /* write no model: octet_result_model has its bytes */
    bool dry_run;       /* make no model: the report says what one would be */
    octet_samples samples;
    const char *calib; /* the file of a calibration table, in place of samples */

    const char *policy; /* a file of rules */
    octet_texts rules;  /* single rules behind those of the file, as --set */
    const char *target, *scheme, *format, *observer, *effort;
    int bits, block_size, accuracy_level; /* of weights in blocks; 0, 0, below 0: the usual ones */
    bool symmetric;
    octet_texts disabled_passes, methods, no_methods;
    double budget;                 /* percent of the multiply-accumulates; below 0: the usual share */
    bool recover, bias_correction; /* true */
    const char *target_size;       /* "12MB", "25%" */
    double target_bits;            /* 0: no limit */

    octet_texts max_drop; /* "0.5%", "top1=0.01" */
    double min_sqnr;      /* dB; NaN: not asked for */
    const char *min_agreement, *metric, *decode, *truth;
    const char *metric_command; /* as --metric-cmd */
    bool less_is_better;
    double metric_timeout; /* seconds; 0: an hour */
    int64_t trials;        /* below 0: the usual number */
    double time_limit;     /* seconds; 0: none */
    bool strict;

    bool sensitivity;
    const char *sensitivity_file;
    octet_texts input_types, output_types; /* "NAME=u8" */
    const char *input_layout;
    bool keep_io_types; /* true */
    const char *dump_policy;
    const char *html; /* a page for a browser */
    int threads;      /* at most 1024; 0: one for each processor */
    const char *twin; /* the runtime whose arithmetic results are judged with, as --as */
} octet_convert_options;

/* Sets what a conversion does unless it is told otherwise. size: sizeof *options. */
OCTET_API void octet_convert_init(octet_convert_options *options, size_t size);

/* What an evaluation is to do, with members as the options of qeval(1). octet_evaluate_init sets all members. Borrowed
 * for the call. */
typedef struct octet_evaluate_options {
    size_t size;           /* of this structure, as the caller knows it: set by octet_evaluate_init */
    const char *model;     /* the file of the float ONNX model, to which the others are compared */
    octet_texts quantized; /* files of quantized models */
    octet_samples samples;
    int64_t shard, shards; /* use part shard, counted from 0, of that many parts of the samples; 0, 0: all */
    octet_texts metrics;   /* none: those that apply */
    const char *decode, *truth;
    const char *metric_command; /* as --metric-cmd */
    bool less_is_better;
    double metric_timeout; /* seconds; 0: an hour */
    octet_texts max_drop;  /* gates; NULL: not asked for */
    const char *min_agreement, *min_sqnr, *min_speedup, *max_latency, *max_size, *max_memory;
    const char *gates, *baseline;    /* files: a list of gates, an earlier report */
    int64_t batch, runs;             /* 0: the usual ones */
    const char *compute;             /* "bf16" */
    const char *runner, *runner_for; /* a command that runs models, and which ones: "all", "quant" */
    double runner_timeout;           /* seconds; 0: two minutes */
    int layers, latency;             /* 1: at length; 0: not at all; below 0: briefly, unless the other is asked for */
    bool per_class, sweep, profile;
    const char *html;             /* a page for a browser */
    int threads;                  /* at most 1024; 0: one for each processor */
    const char *markdown, *junit; /* files for the report as tables, and for its gates as test cases */
    const char *twin;             /* the runtime whose arithmetic quantized models are computed with, as --as */
} octet_evaluate_options;

/* Sets what an evaluation does unless it is told otherwise. size: sizeof *options. */
OCTET_API void octet_evaluate_init(octet_evaluate_options *options, size_t size);

/* What a call has done. It belongs to the caller and may outlive the octet. */
typedef struct octet_result octet_result;

/* Converts a model. *result is set also where a goal or a size was not reached (OCTET_GOAL), and NULL after other
 * failures; release it with octet_result_free. Writes the same files as qconvert, and
 * records in the model the command that does the same; the caller's samples are called "samples" there.
 * Errors: OCTET_USAGE, OCTET_IO, OCTET_MALFORMED, OCTET_UNSUPPORTED, OCTET_NUMERIC, OCTET_NOMEM, OCTET_STOPPED. */
OCTET_API octet_status octet_convert_model(octet *o, const octet_convert_options *options, octet_result **result);
/* Converts a model for each of several targets, as `qconvert --target a,b,c`. options: those of a conversion without a
 * target; in the name of the output TARGET stands for that of the target ("m.TARGET.onnx"). With dry_run or in_memory
 * all is made and measured, but nothing is written. The report is of schema octet-targets-1. Errors: those of
 * octet_convert_model; with OCTET_GOAL, where a goal was missed for a target, there is a result. */
OCTET_API octet_status octet_convert_targets(octet *o, const octet_convert_options *options, octet_texts targets,
                                             octet_result **result);
/* Writes a calibration table, as qcalib does, with the same errors as octet_convert_model but for
 * OCTET_GOAL. The report is that of the table, of schema octet-calibration-1. */
OCTET_API octet_status octet_calibrate_model(octet *o, const octet_calibrate_options *options, octet_result **result);
/* Compares models, as qeval does, with the same errors as octet_convert_model; OCTET_GOAL: a gate was
 * missed. The report is of schema octet-eval-1. */
OCTET_API octet_status octet_evaluate_model(octet *o, const octet_evaluate_options *options, octet_result **result);
/* Measures the error at the outputs that quantizing each value and each layer of a model alone causes, as qeval
 * --sensitivity does, whichever tool made the model. options: the float model, the quantized one, samples without
 * labels, and threads; nothing that judges a comparison or writes it. file: what is measured is kept there, and not
 * measured again; NULL: nowhere. The report is of schema octet-sensitivity-1. Errors: those of octet_convert_model but
 * OCTET_GOAL. */
OCTET_API octet_status octet_measure_sensitivity(octet *o, const octet_evaluate_options *options, const char *file,
                                                 octet_result **result);
/* Says how the target runs each node of a model, and what goes wrong there; of a float model, what a conversion would
 * make of it. options: those of a conversion, with no names of files to write. Nothing is written. The report is of
 * schema octet-lint-2. Errors: those of octet_convert_model but OCTET_GOAL. */
OCTET_API octet_status octet_lint_model(octet *o, const octet_convert_options *options, octet_result **result);
/* Says all that is known of the node of that name, or that computes the value of that name, in a conversion with these
 * options. As octet_lint_model; the report is of schema octet-explain-1. */
OCTET_API octet_status octet_explain_node(octet *o, const octet_convert_options *options, const char *node,
                                          octet_result **result);
/* Makes a model that Octet has written again, and compares all bytes. options: the model, and the files that it was
 * made from (samples, calib, policy, target, labels and the like); source: the file of the float model. OCTET_GOAL:
 * another model was made. As octet_lint_model; the report is of schema octet-verify-1. */
OCTET_API octet_status octet_verify_model(octet *o, const octet_convert_options *options, const char *source,
                                          octet_result **result);
/* Converts a folder of models by a recipe (NULL: by what it holds), as `qconvert FOLDER -o NEW`. options: those of a
 * conversion, where model is the folder and output the new one, which must not exist; samples "NAME=SPEC" are for the
 * model of that name. The folder appears complete, or not at all. The report is of schema octet-folder-1. Errors: those
 * of octet_convert_model; with OCTET_GOAL there is a result, and nothing was written. */
OCTET_API octet_status octet_convert_folder(octet *o, const octet_convert_options *options, const char *recipe,
                                            octet_result **result);
/* Judges variants of the models of a folder, which options call the model: those of the folder that is the only one in
 * quantized, or without one those beside the models, as `qeval audit FOLDER`. The report is of schema octet-audit-1.
 * Errors: those of octet_evaluate_model; OCTET_GOAL: a variant cannot be used, and there is a result. */
OCTET_API octet_status octet_evaluate_folder(octet *o, const octet_evaluate_options *options, const char *recipe,
                                             octet_result **result);
OCTET_API void octet_result_free(octet_result *r); /* r may be NULL */

/* The report, as JSON. */
OCTET_API const char *octet_result_json(const octet_result *r);
/* The bytes of the model where they were asked for (in_memory), else NULL. A model of more than 2 GB has no bytes
 * without a file: OCTET_UNSUPPORTED. */
OCTET_API const void *octet_result_model(const octet_result *r, size_t *size);
/* A value of the report by its path, as "size_bytes.after", "layers.0.name", "warnings.2" or "text": a text, a number
 * (true is 1; NaN where the report has null), and how many values a list has. What is not there is NULL, NaN and 0. The
 * schema says what there is, and units. */
OCTET_API const char *octet_result_text(const octet_result *r, const char *path);
OCTET_API double octet_result_number(const octet_result *r, const char *path);
OCTET_API size_t octet_result_count(const octet_result *r, const char *path);

/* ---- running a model ---- */

/* Types of elements; the numbers are those of ONNX's TensorProto.DataType. */
typedef enum octet_type {
    OCTET_FLOAT32 = 1,
    OCTET_UINT8 = 2,
    OCTET_INT8 = 3,
    OCTET_UINT16 = 4,
    OCTET_INT16 = 5,
    OCTET_INT32 = 6,
    OCTET_INT64 = 7,
    OCTET_BOOL = 9,
    OCTET_FLOAT16 = 10,
    OCTET_FLOAT64 = 11,
    OCTET_UINT32 = 12,
    OCTET_UINT64 = 13,
    OCTET_BFLOAT16 = 16
} octet_type;

enum { OCTET_MAX_RANK = 8 };

/* A dense tensor in C order (elements along the last dimension are adjacent). The elements are what the model's input
 * or output holds: for a quantized input of type uint8, the quantized values. */
typedef struct octet_array {
    const char *name; /* the name of the input or output. NULL for an input: then its position among the arrays is that
                         of the model's input */
    octet_type type;
    int rank; /* 0 (one number) to OCTET_MAX_RANK */
    int64_t dims[OCTET_MAX_RANK];
    const void *data; /* as many elements as the product of dims; any alignment */
} octet_array;

/* An input or output of a model. A dimension that is not fixed is -1; a rank that is not known is -1. */
typedef struct octet_port {
    const char *name;
    octet_type type; /* may also be another type number of ONNX; octet_model_run does not accept arrays of such types */
    int rank;
    int64_t dims[OCTET_MAX_RANK];
} octet_port;

typedef struct octet_model octet_model;

/* Loads a model from a file, ONNX with its external data or .tflite; all calls take both. threads: how many
 * threads run it, at most 1024; 0 means one for each processor. Release *m with octet_model_free; it may outlive o. On
 * failure *m is NULL. Errors: OCTET_USAGE, OCTET_IO, OCTET_MALFORMED, OCTET_UNSUPPORTED (also for an unknown operator),
 * OCTET_NOMEM. */
OCTET_API octet_status octet_model_load(octet *o, const char *path, int threads, octet_model **m);
/* The same from `size` bytes at `data`, of any alignment, which must stay valid until octet_model_free. External data
 * are looked for in the current folder. */
OCTET_API octet_status octet_model_load_memory(octet *o, const void *data, size_t size, int threads, octet_model **m);
OCTET_API void octet_model_free(octet_model *m); /* m may be NULL. While a run is using m, nothing happens */

/* The i-th of the inputs that must be given, and the i-th output. NULL after the last, and if m is NULL. */
OCTET_API const octet_port *octet_model_input(const octet_model *m, size_t i);
OCTET_API const octet_port *octet_model_output(const octet_model *m, size_t i);
/* The entry of the model's metadata with that key, or NULL. */
OCTET_API const char *octet_model_metadata(const octet_model *m, const char *key);

/* Runs the model on n_in arrays. *out is set to n_out arrays in the order of the outputs, which belong to m and are
 * valid until its next run. They stay valid when the arrays of `in` are released. Dimensions that the model does not
 * fix may change from run to run. An array of another element type is converted: integers to any type that holds each
 * value exactly, and floats to floats, rounded to the nearest. A value that does not fit, as 2^24+1 and 1e300 do not
 * fit float32, is OCTET_NUMERIC; floats for an input of integers are OCTET_UNSUPPORTED. Errors: OCTET_USAGE,
 * OCTET_MALFORMED (an input is missing or has the wrong shape), OCTET_UNSUPPORTED (the type of an array),
 * OCTET_NUMERIC, OCTET_NOMEM. */
OCTET_API octet_status octet_model_run(octet *o, octet_model *m, const octet_array *in, size_t n_in,
                                       const octet_array **out, size_t *n_out);

/* Says where an output of a run is wanted: `output` has its name, type and shape, and no data. Returns memory for its
 * elements, or NULL if nobody wants them. It is written without a copy where it is aligned to 64 bytes, and the shape
 * is known before the run. It must not overlap the inputs. */
typedef void *(*octet_place_fn)(void *context, size_t i, const octet_array *output);
/* Runs the model like octet_model_run, and leaves the outputs in memory of the caller's: `place` is called once for
 * each, in order and in this thread, before or after the work. After a failure the contents are undefined. Errors:
 * those of octet_model_run. */
OCTET_API octet_status octet_model_run_into(octet *o, octet_model *m, const octet_array *in, size_t n_in,
                                            octet_place_fn place, void *context);

/* Prepares m for runs on arrays of the types and shapes in `in`, whose data may be NULL: it takes memory, and arranges
 * weights for the processor. Otherwise the first such run does that. What does not depend on the values of a run fails
 * here already. Errors: those of octet_model_run. */
OCTET_API octet_status octet_model_prepare(octet *o, octet_model *m, const octet_array *in, size_t n_in);

/* Measures the steps of m's runs from now on; on 0: no more. What was measured before is dropped. Errors: OCTET_USAGE.
 */
OCTET_API octet_status octet_model_profile(octet *o, octet_model *m, int on);
/* What the runs of m spent in a step. Texts belong to m; those that do not apply are "". */
typedef struct octet_step {
    const char *name, *op; /* of the node; "" and "Reorder": the library added it */
    const char *scheme;    /* "int8", "float" and the like: what it computes with */
    const char *algorithm, *kernel;
    double seconds;       /* of all its calls */
    uint64_t calls, macs; /* macs: multiply-accumulates of a call */
} octet_step;
/* Sets *step to the i-th step of the plans that m keeps, one plan after the other in order of execution. Returns 0
 * behind the last, and if m or step is NULL. No run may be using m. */
OCTET_API int octet_model_step(const octet_model *m, size_t i, octet_step *step);

/* Makes another model of what m has loaded, for another thread: the two may run at the same time, and have inputs and
 * outputs of their own. They share the weights, also those that were arranged for the processor, and the threads. While
 * several of them run at once, the threads help one of them, and the others run on their callers' threads. Results do
 * not depend on it. m may be running meanwhile. Release *shared with octet_model_free; either may outlive the other. On
 * failure *shared is NULL. Errors: OCTET_USAGE, OCTET_NOMEM. */
OCTET_API octet_status octet_model_share(octet *o, const octet_model *m, octet_model **shared);

/* Calls work(arg, i) once for each i < n, on any threads and in any order, and returns when all have ended. `context`
 * is that of octet_model_parallel. */
typedef void (*octet_parallel_fn)(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg);
/* Lets the runs of m divide their work into at most `lanes` (1 to 1024) parts, which fn runs on threads of the program
 * that uses the library, in place of the library's own. To be called before the first run, and again before a run that
 * needs another context. Another function, or another number of lanes, drops what m has prepared for runs. Results do
 * not depend on any of it. Models that share with m are not affected. Errors: OCTET_USAGE, OCTET_NOMEM. */
OCTET_API octet_status octet_model_parallel(octet *o, octet_model *m, int lanes, octet_parallel_fn fn, void *context);

/* ---- a graph that another program holds ---- */

/* Loads a model from `size` bytes at `data`, a serialized ModelProto, whose large constants lie elsewhere: the graph
 * input that has the name of one of the n_constants arrays in `constants` becomes a constant with the array's elements.
 * It is no input of the model any more. The type and the shape of an array must be those that the input declares,
 * where it declares them. All types of ONNX are allowed but strings; elements of 4 (2) bits are packed, two (four) to a
 * byte, the first in the lowest bits. Constants are not copied, unless their elements are not aligned to their size:
 * the data of the arrays, and `data`, must stay valid and unchanged until this model and all that share it are
 * released. The array `constants` itself and the names are used during the call only.
 *
 * All else is as for octet_model_load_memory. Other errors: OCTET_USAGE for an array without a name; OCTET_MALFORMED if
 * the graph has no such input (it may be a constant already), or its declaration contradicts, or there is no data;
 * OCTET_UNSUPPORTED for another type or rank. */
OCTET_API octet_status octet_model_load_graph(octet *o, const void *data, size_t size, const octet_array *constants,
                                              size_t n_constants, int threads, octet_model **m);

/* What is worth computing by this library. */
typedef enum octet_claim_what {
    OCTET_CLAIM_INTEGERS = 0, /* parts whose work on integers pays for copies at their borders */
    OCTET_CLAIM_FLOAT = 1,    /* parts whose work pays, in float as well */
    OCTET_CLAIM_ALL = 2       /* all that it can compute, whether it pays or not */
} octet_claim_what;

/* What becomes of a node of such a graph. */
typedef struct octet_claim {
    int part;           /* the number of the part that the node belongs to, from 0; -1: it belongs to none */
    const char *reason; /* why it belongs to none, as one clause; "" otherwise */
} octet_claim;

/* Finds the parts of a graph that are worth computing by this library in place of another runtime that holds the graph.
 * Parts are as large as pays, and convex: no path leaves a part and returns into it, so each may be replaced by a
 * single node. The graph is given as for octet_model_load_graph, with types of values declared; operators that are
 * unknown here are kept out of the parts. Dimensions that are open count as 128, and as 1 if they are the first of an
 * input. *claims has an entry for each node of the top-level graph, in the order of the message, and belongs to o until
 * its next call of this function; nodes in nested graphs share the fate of the node that holds them. Errors: those of
 * octet_model_load_graph, and OCTET_USAGE for another `what`. */
OCTET_API octet_status octet_graph_parts(octet *o, const void *data, size_t size, const octet_array *constants,
                                         size_t n_constants, octet_claim_what what, const octet_claim **claims,
                                         size_t *n_claims);

#ifdef __cplusplus
}
#endif

#endif
