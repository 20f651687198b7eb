/* lib/targets/target.h -- deployment targets: what a runtime computes on integers, and what must be avoided there.
 *
 * A target is a text file; those of share/targets are built in. docs/formats.md has the format:
 *
 *     name      onnxruntime-vnni
 *     summary   ONNX Runtime on CPUs with AVX-512 VNNI or AVX-VNNI, and on ARM
 *     inherits  onnxruntime-x86
 *     pair-sums exact
 *     op Resize static if mode=nearest,absent else the target interpolates in float
 *
 *   oct_target *t;
 *   OCT_TRY(oct_target_open("octet", &t, err));
 *   const char *why;
 *   if (!oct_target_runs(t, g, node, OCT_TARGET_STATIC, &why))
 *       ...                                 // why: "the target runs this operator in float"
 *
 * oct_target_close(t); */
#ifndef OCT_TARGETS_TARGET_H
#define OCT_TARGETS_TARGET_H

#include "graph/graph.h"

/* The forms in which a target can run a quantized operator, as bits. */
typedef enum oct_target_form {
    OCT_TARGET_STATIC = 1,      /* on integers, with scales that the model contains */
    OCT_TARGET_DYNAMIC = 2,     /* on integers, with scales of activations that are computed at run time */
    OCT_TARGET_WEIGHT_ONLY = 4, /* on float activations, with weights in blocks */
    OCT_TARGET_ROUNDED = 8,     /* in any way, between DequantizeLinear and QuantizeLinear */
    OCT_TARGET_RESIDUAL =
        16 /* an addition, fused into the product that computes one of its inputs; the other input is quantized */
} oct_target_form;

/* How the target adds products of u8 activations and s8 weights on some of its CPUs: exactly, or two of them in 16
 * bits, where they saturate. The two are neighbours along k = (ky, kx, ic), or, in a convolution without groups,
 * neighbouring channels of the same tap; the last of an odd number of channels is then added without a partner. */
typedef enum oct_pair_sums { OCT_SUMS_EXACT, OCT_SUMS_ALONG_K, OCT_SUMS_IN_TAPS, OCT_PAIR_SUMS } oct_pair_sums;
typedef enum oct_target_bfloat16 { OCT_BFLOAT16_NO, OCT_BFLOAT16_YES, OCT_BFLOAT16_NEVER } oct_target_bfloat16;
/* How it is known what the target computes: its runtime runs here; from documents and source code alone; lib/twins
 * computes the same, and was compared with the runtime. */
typedef enum oct_target_proof { OCT_PROOF_RUN, OCT_PROOF_NONE, OCT_PROOF_TWIN } oct_target_proof;
/* What is said of a target, by name, without a proof. */
#define OCT_RULES_ONLY "the target %s has rules only: they come from documents and source code, untested on the device"
typedef enum oct_target_biases { OCT_BIASES_INT32, OCT_BIASES_FLOAT, OCT_BIASES_INT8 } oct_target_biases;

/* What a target file says with one word for the whole target. target_words.inc has the words and what they mean. */
typedef struct oct_target_rules {
#define OCT_TARGET_CHOICE(word, type, member, what, sentence, ...) type member;
#include "targets/target_words.inc"
} oct_target_rules;

/* The same for an operator. */
typedef struct oct_target_op_rules {
#define OCT_TARGET_ALONE(word, member, sentence) bool member;
#define OCT_TARGET_PROPERTY(word, member, sentence) bool member;
#include "targets/target_words.inc"
} oct_target_op_rules;

typedef struct oct_target oct_target;

/* The name of the i-th built-in target and its summary in one line (may be NULL), the default target first; NULL after
 * the last. */
const char *oct_target_builtin(size_t i, const char **summary);

/* The name of the built-in target that has this name, or is also called so ("jetson": "tensorrt"); NULL: none is. */
const char *oct_target_called(const char *word);
/* The i-th of these other names of all built-in targets, in dst; false: there are no more. */
bool oct_target_alias(size_t i, char *dst, size_t size);
/* Whether a user's word for a target is the path of a file: it contains a '/'. */
bool oct_target_is_file(const char *word);
/* Opens a built-in target, or (oct_target_is_file) the one in a file. OCT_EUSAGE: there is none with that name.
 * OCT_EMALFORMED with file, line, column and a remedy. Errors of reading. Release it with oct_target_close. */
oct_status oct_target_open(const char *word, oct_target **t, oct_err *err);
/* Parses the text of a target. label: its name in messages. */
oct_status oct_target_parse(const char *text, const char *label, oct_target **t, oct_err *err);
void oct_target_close(oct_target *t); /* NULL allowed */

const char *oct_target_name(const oct_target *t);
/* What it says of itself; it exists as long as the target. */
const oct_target_rules *oct_target_rules_of(const oct_target *t);

/* Whether the target runs a node of g in a form. If not, *why (may be NULL) is the reason, as one clause, which exists
 * as long as the target. The answer depends on the operator and its attributes; for the dynamic form of products also
 * on their weights, which must be constant. */
bool oct_target_runs(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why);
/* The same for a node that a file has quantized in this form. The target may run more of these than conversions
 * make. */
bool oct_target_keeps(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why);
/* Whether it runs an operator type in a form at all, possibly under a condition. */
bool oct_target_lists(const oct_target *t, const char *op, oct_target_form form);

/* What the target says of an operator type; nothing of one without a line. */
const oct_target_op_rules *oct_target_op_rules_of(const oct_target *t, const char *op);
/* Whether an operator runs on integers only with a quantizer after its output. clamped: its output is read only by a
 * Relu or Clip, and that only by one node. */
bool oct_target_needs_output(const oct_target *t, const char *op, bool clamped);
/* Whether the target prescribes parameters for the output of an operator in this type. */
bool oct_target_scale_of(const oct_target *t, const char *op, oct_dtype type, float *scale, int32_t *zero);
/* Whether operators with weights support this pair of types: activations OCT_U8, OCT_S8, OCT_U16 or OCT_S16, and
 * weights OCT_U8 or OCT_S8. */
bool oct_target_takes(const oct_target *t, oct_dtype activations, oct_dtype weights);
/* The reason why an operator does not multiply two activations of 8 bits of these types on integers; NULL: it does. */
const char *oct_target_no_factors(const oct_target *t, const char *op, oct_dtype x, oct_dtype y);
/* The same of one of them because of its parameters. */
const char *oct_target_no_factor(const oct_target *t, const oct_quant *q);
/* Whether sums of two products saturate at 16 bits on some of its CPUs. */
bool oct_target_saturates(const oct_target *t);
/* The reason why a node of g must not compute in 16-bit floats in the target, although the operator supports them: a
 * trap that the target file names. NULL: it may. */
const char *oct_target_trap(const oct_target *t, const oct_graph *g, int node);
/* The reason why the target does not load the graph g of a file because of this node, or computes it wrongly: a trap
 * that the target file names. integer: the target runs the node on integers (stand.h). NULL: there is none. */
const char *oct_target_refuses(const oct_target *t, const oct_graph *g, int node, bool integer);
/* The reason why the target has no operator of this node's domain and type, as far as its file and the schemas of
 * operators tell; NULL: it has one. */
const char *oct_target_lacks(const oct_target *t, const oct_graph *g, int node);
/* The reason why a node of the float graph g must not run on integers with given ranges, although the target has it: a
 * trap that the target file names. NULL: it may. */
const char *oct_target_no_static(const oct_target *t, const oct_graph *g, int node);
/* The reason why the target does not load a node of g with weights stored in 8 bits, in a model that quantizes
 * activations: a trap that the target file names. NULL: it loads it. */
const char *oct_target_no_stored(const oct_target *t, const oct_graph *g, int node);
/* The i-th trap that a file can name (traps.inc); NULL after the last. */
const char *oct_target_trap_name(size_t i);
/* The built-in target of the machine that this runs on. */
const char *oct_target_here(void);

/* ---- costs (costs.c): what operators take, by tables that bench/ measured once; the same on every machine ----
 *
 * A table is of one class of CPUs and one thread. A target names those of the CPUs that it stands for, or has lines of
 * its own; docs/formats.md has the format. What a table has no line for is unknown. */

enum { OCT_COST_TABLES = 4 }; /* of one target, at most */

/* How a node runs: in float; on integers of given scales, with activations of 8 or of 16 bits; with dynamic scales; or
 * with weights in blocks of 4 or 8 bits. BYTES: the runtime then quantizes the other factor by the same blocks
 * (accuracy_level 4). */
typedef enum oct_cost_how {
    OCT_COST_FLOAT,
    OCT_COST_STATIC,
    OCT_COST_STATIC16,
    OCT_COST_DYNAMIC,
    OCT_COST_BLOCKS4,
    OCT_COST_BLOCKS8,
    OCT_COST_BLOCKS4_BYTES,
    OCT_COST_BLOCKS8_BYTES,
    OCT_COST_HOWS
} oct_cost_how;

/* What becomes of a value between nodes. */
typedef enum oct_cost_border { OCT_COST_QUANTIZE, OCT_COST_DEQUANTIZE } oct_cost_border;

/* How many tables a target has. */
size_t oct_target_n_costs(const oct_target *t);
/* The name of the i-th table, such as "onnxruntime-avx2"; it exists as long as the target. */
const char *oct_target_costs_name(const oct_target *t, size_t i);
/* The same for people: "ONNX Runtime", NULL where the table does not say it; and "AVX2", or the name. */
const char *oct_target_costs_runtime(const oct_target *t, size_t i);
const char *oct_target_costs_cpus(const oct_target *t, size_t i);

/* Nanoseconds that a node of g takes according to the i-th table, without quantizers around it. NaN: the table has no
 * line for its kind, or shapes are not known. For a product in the dynamic form, quantizing its input is included. */
double oct_target_cost(const oct_target *t, size_t i, const oct_graph *g, int node, oct_cost_how how);
/* Nanoseconds of a conversion on a value of g; 0 if nothing is known about it. */
double oct_target_border_cost(const oct_target *t, size_t i, const oct_graph *g, int value, oct_cost_border border);

#endif
