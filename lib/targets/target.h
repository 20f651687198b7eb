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
 *   oct_target_close(t);
 */
#ifndef OCT_TARGETS_TARGET_H
#define OCT_TARGETS_TARGET_H

#include "graph/graph.h"

/* The forms in which a target can run a quantized operator. */
typedef enum oct_target_form {
    OCT_TARGET_STATIC = 1,     /* on integers whose scales the model has */
    OCT_TARGET_DYNAMIC = 2,    /* on integers; the scale of the activation is found when it runs */
    OCT_TARGET_WEIGHT_ONLY = 4, /* on float activations, with weights in blocks */
    OCT_TARGET_ROUNDED = 8,    /* between DequantizeLinear and QuantizeLinear, whatever it computes on */
    OCT_TARGET_RESIDUAL = 16   /* a sum, computed with the product that makes one input; the other one is quantized */
} oct_target_form;

typedef struct oct_target oct_target;

/* The i-th built-in target's name and one-line summary (may be NULL), the default first; NULL beyond the last. */
const char *oct_target_builtin(size_t i, const char **summary);

/* Whether a user's word for a target is that of a file: it has a '/' in it. */
bool oct_target_is_file(const char *word);
/* A built-in target, or (oct_target_is_file) that of a user's file. OCT_EUSAGE: there is none of that name. OCT_EMALFORMED with file,
 * line, column and a remedy. Errors of reading. Release with oct_target_close. */
oct_status oct_target_open(const char *word, oct_target **t, oct_err *err);
/* The target that a text describes; label names the text in messages. */
oct_status oct_target_parse(const char *text, const char *label, oct_target **t, oct_err *err);
void oct_target_close(oct_target *t); /* NULL allowed */

const char *oct_target_name(const oct_target *t);

/* Whether the target runs a node of g in a form. Where it does not, *why (may be NULL) is the reason, a clause for reports that lasts as
 * long as the target. Asked of the operator, its attributes, and for the dynamic form of products their weights, which must be constant. */
bool oct_target_runs(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why);
/* The same of a node that a file has quantized in this form: the target may run more of these than it has conversions place. */
bool oct_target_keeps(const oct_target *t, const oct_graph *g, int node, oct_target_form form, const char **why);
/* Whether it runs nodes of an operator type in a form, if only under a condition. */
bool oct_target_lists(const oct_target *t, const char *op, oct_target_form form);

/* Whether an operator runs on integers only with a quantizer behind its output; clamped: behind a Relu or Clip that alone reads it, and that one
 * node alone reads. */
bool oct_target_needs_output(const oct_target *t, const char *op, bool clamped);
/* Whether an operator's weights may have a scale per output channel. */
bool oct_target_per_channel(const oct_target *t, const char *op);
/* Whether an operator's weights are u8 where the target takes such beside its activations. */
bool oct_target_wants_u8(const oct_target *t, const char *op);
/* Whether an operator's inputs share their parameters, and whether its output has those of input 0. */
bool oct_target_shares_inputs(const oct_target *t, const char *op);
bool oct_target_keeps_scale(const oct_target *t, const char *op);
/* Whether the result of an operator has given parameters where it is of a type. */
bool oct_target_scale_of(const oct_target *t, const char *op, oct_dtype type, float *scale, int32_t *zero);
/* Whether operators with weights take this pair of types: activations OCT_U8, OCT_S8, OCT_U16 or OCT_S16, weights OCT_U8 or OCT_S8. */
bool oct_target_takes(const oct_target *t, oct_dtype activations, oct_dtype weights);
/* Whether sums of two products of u8 activations and s8 weights saturate at 16 bits on some of its CPUs. */
bool oct_target_saturates(const oct_target *t);
/* Why the target cannot be given a node of g that computes on 16-bit floats, though the operator takes them: a trap that its file names. NULL: it
 * can. */
const char *oct_target_trap(const oct_target *t, const oct_graph *g, int node);
/* Why the target does not load the graph g of a file as it stands, because of this node: a trap that its file names. NULL: it is none. */
const char *oct_target_refuses(const oct_target *t, const oct_graph *g, int node);
/* Why it does not load a node of g whose weights are stored in 8 bits, and made real as the model is loaded, in a model that quantizes activations: a trap
 * that its file names. NULL: it does. */
const char *oct_target_no_stored(const oct_target *t, const oct_graph *g, int node);
/* The i-th trap that a file may name (traps.inc); NULL beyond the last. */
const char *oct_target_trap_name(size_t i);
/* Whether it has bfloat16 kernels. */
bool oct_target_bfloat16(const oct_target *t);
/* Whether all activations have the zero point 0 (of u8 and u16: the middle), also behind a Relu. */
bool oct_target_symmetric(const oct_target *t);
/* Whether biases of layers on integers are float32, not int32. */
bool oct_target_float_bias(const oct_target *t);
/* Whether scales of activations and weights are powers of two. */
bool oct_target_powers_of_two(const oct_target *t);
/* Whether all inputs of a model must have fixed dimensions. */
bool oct_target_static_shapes(const oct_target *t);
/* Whether it has operators of ONNX's own domain alone, none of com.microsoft. */
bool oct_target_onnx_alone(const oct_target *t);
/* Whether operators are quantized wherever they have a form, and not only between others on integers. */
bool oct_target_everywhere(const oct_target *t);
/* Whether each reader of a value has a QuantizeLinear (and so a DequantizeLinear), or a DequantizeLinear, of its own. */
bool oct_target_own_quantizers(const oct_target *t);
bool oct_target_own_dequantizers(const oct_target *t);
/* Whether nobody has run what is made for it on its device: its rules were read in documents. */
bool oct_target_untested(const oct_target *t);
/* The built-in target of the machine that this runs on. */
const char *oct_target_here(void);

/* ---- costs (costs.c): what operators take, by tables that bench/ measured once; the same on every machine ----
 *
 * A table is of one class of CPUs and one thread. A target names those of the CPUs that it stands for, or has lines of its own; docs/formats.md has the
 * format. What a table has no line for is unknown. */

enum { OCT_COST_TABLES = 4 }; /* of one target, at most */

/* How a node runs; on integers of given scales with activations of 8 or of 16 bits; with weights in blocks of 4 or 8 bits, also where the runtime quantizes the other factor by the same blocks (accuracy_level 4). */
typedef enum oct_cost_how {
    OCT_COST_FLOAT, OCT_COST_STATIC, OCT_COST_STATIC16, OCT_COST_DYNAMIC, OCT_COST_BLOCKS4, OCT_COST_BLOCKS8, OCT_COST_BLOCKS4_BYTES, OCT_COST_BLOCKS8_BYTES,
    OCT_COST_HOWS
} oct_cost_how;

/* What becomes of a value between nodes. */
typedef enum oct_cost_border { OCT_COST_QUANTIZE, OCT_COST_DEQUANTIZE } oct_cost_border;

/* How many tables a target has. */
size_t oct_target_n_costs(const oct_target *t);
/* The name of the i-th, as "onnxruntime-avx2"; lasts as long as the target. */
const char *oct_target_costs_name(const oct_target *t, size_t i);

/* Nanoseconds that node of g takes by the i-th table, whose quantizers do not count; NaN: its kind has no line there, or its shapes are not known. A
 * product of the dynamic form is counted with what quantizes its input. */
double oct_target_cost(const oct_target *t, size_t i, const oct_graph *g, int node, oct_cost_how how);
/* Nanoseconds of a border on a value of g; 0 where nothing is known of it. */
double oct_target_border_cost(const oct_target *t, size_t i, const oct_graph *g, int value, oct_cost_border border);

#endif
