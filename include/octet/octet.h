/* octet.h -- Octet as a library: post-training quantization of ONNX models, and running them.
 *
 *     octet *o = octet_open();
 *     const char *convert[] = { "model.onnx", "--data=samples.npz", "--output=model.int8.onnx", NULL };
 *     if (octet_convert(o, convert) != OCTET_OK)
 *         fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
 *     octet_close(o);
 *
 * Calibrating, converting and evaluating take the arguments of the commands: qcalib(1), qconvert(1) and qeval(1) say what they mean, and the
 * results are the same bytes. Running a model takes arrays.
 *
 * Link with `pkg-config --cflags --libs octet`. All of it is C11 without dependencies of its own headers.
 *
 * Ownership: what a function returns as `const` belongs to the object that it was asked of, and lasts until that object's next call or its
 * release. Everything given is borrowed for the call alone. Texts are UTF-8.
 *
 * Threads: an `octet` and an `octet_model` may be used by one thread at a time, different ones by different threads. octet_calibrate,
 * octet_convert and octet_evaluate of one process take turns. Results do not depend on the number of threads.
 *
 * The library installs no signal handlers and prints nothing. A model file must not be cut short while it is in use: it is mapped, so that
 * the process would get SIGBUS. */
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H

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

/* "0.1.0": of the library that runs, which may be newer than this header. */
OCTET_API const char *octet_version(void);

/* What became of a call. The numbers are the exit codes of the commands. */
typedef enum octet_status {
    OCTET_OK = 0,
    OCTET_GOAL = 1,        /* all was done, and a goal or gate is not met: octet_report has the results */
    OCTET_USAGE = 2,       /* arguments that are unknown or contradict each other */
    OCTET_IO = 3,          /* cannot read or write */
    OCTET_MALFORMED = 4,   /* an input breaks its format */
    OCTET_UNSUPPORTED = 5, /* a valid input that this version cannot process */
    OCTET_NUMERIC = 6,     /* NaN, overflow, an empty range */
    OCTET_NOMEM = 7,       /* out of memory */
    OCTET_INTERNAL = 70    /* a fault of the library */
} octet_status;

/* ---- a place for work: its listeners, its last error, its last report ---- */

typedef struct octet octet;

/* NULL when out of memory. */
OCTET_API octet *octet_open(void);
OCTET_API void octet_close(octet *o); /* NULL allowed */

/* What went wrong in the last call that did not return OCTET_OK, in one line that names file, node and reason; "" when nothing did. */
OCTET_API const char *octet_error(const octet *o);
/* What to do about it, or "". */
OCTET_API const char *octet_hint(const octet *o);

/* Tells how far long work is: `what` it does ("calibrating"), `done` of `total` steps; total 0: not known. Called from the thread that made
 * the call, often. fn NULL: nobody is told. */
typedef void (*octet_progress_fn)(void *arg, const char *what, int64_t done, int64_t total);
OCTET_API void octet_on_progress(octet *o, octet_progress_fn fn, void *arg);

/* Tells each note and warning that the command would print on standard error, one line without its end. */
typedef void (*octet_message_fn)(void *arg, int is_warning, const char *text);
OCTET_API void octet_on_message(octet *o, octet_message_fn fn, void *arg);

/* ---- the commands ---- */

/* arguments: those of the command line behind the command's name, ended by NULL: { "model.onnx", "--data=x.npz", NULL }. Files that are
 * written have names; "-" is not taken. --json is added by itself, where it is not given and the command has it.
 * Errors: OCTET_GOAL and above as the manuals say. Nothing is half written. */
OCTET_API octet_status octet_calibrate(octet *o, const char *const *arguments); /* qcalib(1), with merge, show, diff, import, export */
OCTET_API octet_status octet_convert(octet *o, const char *const *arguments);   /* qconvert(1), with lint, explain */
OCTET_API octet_status octet_evaluate(octet *o, const char *const *arguments);  /* qeval(1) */

/* The JSON document that the last of them made, also where it returned OCTET_GOAL; "" when it made none. */
OCTET_API const char *octet_report(const octet *o);
/* What the last of them would have printed for people. */
OCTET_API const char *octet_text(const octet *o);

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

/* A dense tensor in C order (the last dimension is next to each other), of real values as the model has them: those of a quantized input
 * of type uint8 are its codes. */
typedef struct octet_array {
    const char *name; /* of an input; NULL: the inputs in their order. Of outputs: the output's */
    octet_type type;
    int rank;         /* 0 (one number) to OCTET_MAX_RANK */
    int64_t dims[OCTET_MAX_RANK];
    const void *data; /* product of dims elements, of any alignment */
} octet_array;

/* What a model takes and gives: of dims those that are free are -1; rank -1: not known. */
typedef struct octet_port {
    const char *name;
    octet_type type;  /* or another number of ONNX's, which cannot be run */
    int rank;
    int64_t dims[OCTET_MAX_RANK];
} octet_port;

typedef struct octet_model octet_model;

/* Loads a model from a file with its external data. threads: that run it, 0 one per processor. *m is to be released with octet_model_free;
 * it needs o no more. OCTET_IO, OCTET_MALFORMED, OCTET_UNSUPPORTED (also for operators that are not known), OCTET_NOMEM. */
OCTET_API octet_status octet_model_load(octet *o, const char *path, int threads, octet_model **m);
/* The same from `size` bytes, which are borrowed until octet_model_free; external data is looked for in the current folder. */
OCTET_API octet_status octet_model_load_memory(octet *o, const void *data, size_t size, int threads, octet_model **m);
OCTET_API void octet_model_free(octet_model *m); /* NULL allowed */

/* Inputs that must be given, and outputs; NULL beyond the last. */
OCTET_API const octet_port *octet_model_input(const octet_model *m, size_t i);
OCTET_API const octet_port *octet_model_output(const octet_model *m, size_t i);
/* An entry of the model's metadata, or NULL. */
OCTET_API const char *octet_model_metadata(const octet_model *m, const char *key);

/* Runs the model on n_in arrays. *out: n_out arrays in the order of the outputs, which belong to m until its next run. Shapes may differ from
 * run to run where dimensions are free. Element types that differ from the input's are converted where no value changes.
 * OCTET_MALFORMED: an input is missing or has another shape; OCTET_UNSUPPORTED: a type; OCTET_NUMERIC, OCTET_NOMEM. */
OCTET_API octet_status octet_model_run(octet *o, octet_model *m, const octet_array *in, size_t n_in, const octet_array **out, size_t *n_out);

#ifdef __cplusplus
}
#endif

#endif
