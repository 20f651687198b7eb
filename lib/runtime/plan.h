/* lib/runtime/plan.h -- a model compiled for given input shapes, and its execution.
 *
 * Making a plan: the graph is cloned with the concrete input shapes, folded and fused; what it spells of quantization
 * is read (forms/forms.h), unless its values carry it already; every node becomes a step, one of integers where it runs
 * on quantized values; layouts are chosen (channels-last inside, reorders at the borders); weights are packed;
 * intermediate tensors are placed in one arena by lifetime. A run then allocates nothing.
 *
 * Models with control flow, sequences, strings, or shapes that depend on data are run in stages: what can be planned
 * is, as soon as the shapes it depends on are known, and kept for the next time that these shapes come; the nodes in
 * between run by themselves and allocate their results. Results do not depend on the number of threads, the instruction
 * set or, but for models that quantize dynamically (oct_op_shares_scales), the batch. */
#ifndef OCT_RUNTIME_PLAN_H
#define OCT_RUNTIME_PLAN_H

#include "base/pool.h"
#include "ops/op.h"

typedef struct oct_plan oct_plan;

/* What is given for a graph input: a tensor of known shape, or something else. */
typedef struct oct_plan_input {
    bool tensor;
    oct_dtype dtype; /* OCT_UNDEFINED: as declared */
    int rank;
    int64_t dims[OCT_MAX_RANK];
    bool varies; /* dims are those of the first run alone: others may follow, of the same rank */
} oct_plan_input;

typedef struct oct_plan_opts {
    oct_pool *pool; /* runs use it; NULL: the caller's thread alone. Outlives the plan. */
    /* Values (names of the model given) to be shown to the tap after they are computed, which they are though nothing
     * reads them. A tapped value is not fused away, unless its operator became an integer one: then the quantized
     * output is shown in its place. What a DequantizeLinear makes is shown as reals. Computed shapes (integers that
     * follow from the inputs' shapes) still fold, and are not shown. Where several branches have a value of the name,
     * each is shown. A name that stands here twice counts at its last place. */
    const char *const *taps;
    size_t n_taps;
    bool no_integer; /* run QuantizeLinear and DequantizeLinear as they are, the rest in float */
    bool no_passes;  /* skip the fusion passes (the graph has been through them) */
    bool fast_pack;  /* few runs follow: less time is spent on arranging weights for them */
    bool bf16; /* MatMul, Gemm, Conv and ConvTranspose on float32 round their operands to bf16 and multiply them as such
                  (kernels/bgemm) */
    int64_t max_trips; /* most iterations of one Loop; 0: OCT_MAX_TRIPS */
} oct_plan_opts;

/* A Loop that makes more iterations than this ends with OCT_EUNSUPPORTED: it would not end at all. */
#define OCT_MAX_TRIPS ((int64_t)1 << 24)

/* g is borrowed and must outlive the plan; it is not changed. in[i] is for its input i; NULL: all as declared, which
 * may be too little to plan before the first run. OCT_EUNSUPPORTED names the first node without a runnable operator;
 * OCT_EMALFORMED a shape that does not fit. What is found only when shapes are known is told by the run. */
oct_status oct_plan_create(const oct_graph *g, const oct_plan_input *in, const oct_plan_opts *opts, oct_plan **plan,
                           oct_err *err);
void oct_plan_destroy(oct_plan *p);

/* Runs on inputs[i], C order, of the type and shape of graph input i; borrowed for the call. Results stay valid until
 * the next run. */
oct_status oct_plan_run(oct_plan *p, const void *const *inputs, oct_err *err);
#define OCT_NO_TAP SIZE_MAX
/* A run in parts: begin takes the inputs, borrowed until it has ended, and advance runs until tap
 * `until` has been shown (OCT_NO_TAP: to the end). Between parts what was shown may be changed in place.
 * OCT_EUNSUPPORTED for models that run in stages. */
oct_status oct_plan_begin(oct_plan *p, const void *const *inputs, oct_err *err);
oct_status oct_plan_advance(oct_plan *p, size_t until, bool *shown, oct_err *err);
/* Whether a step of such a run shows a tap. */
bool oct_plan_shows(const oct_plan *p, size_t tap);
/* Where a run in parts has come to: a copy of what the steps to come read. Begins zeroed. */
typedef struct oct_plan_state {
    uint8_t *data;
    size_t at, bytes, cap;
} oct_plan_state;
/* Between parts, or while the tap is shown a value that it has not changed. False: the model runs in stages, or there
 * is no memory. */
bool oct_plan_save(const oct_plan *p, oct_plan_state *s);
/* After oct_plan_begin with the inputs of the run that was saved, on that plan or another one of the same graph,
 * options and input shapes: the tap is shown the values of the last step once more, and the run goes on behind it. */
oct_status oct_plan_restore(oct_plan *p, const oct_plan_state *s, oct_err *err);
void oct_plan_state_free(oct_plan_state *s);

size_t oct_plan_n_outputs(const oct_plan *p);
const char *oct_plan_output_name(const oct_plan *p, size_t i);
/* Output i: plain layout, data valid after a run; so is its shape in a model that is run in stages. An output that is
 * no tensor has type OCT_UNDEFINED. */
const oct_operand *oct_plan_output(const oct_plan *p, size_t i);
/* The same with data that may be sequences or empty optionals: one for each input, borrowed for the call. *out is a
 * reference to the datum of output i; what that borrows from the plan lasts until the next run. */
oct_status oct_plan_run_data(oct_plan *p, oct_datum *const *inputs, oct_err *err);
oct_status oct_plan_output_datum(const oct_plan *p, size_t i, oct_datum **out, oct_err *err);

/* Called in order of execution, with the index in oct_plan_opts.taps of the value shown, and t as it lies in memory
 * (layout, q when quantized); a failure stops the run. The tap may change the values of t, which is what the steps
 * behind it then read; not those of a graph input, which are the caller's. */
typedef oct_status (*oct_tap_fn)(void *arg, size_t tap, const oct_operand *t, oct_err *err);
void oct_plan_set_tap(oct_plan *p, oct_tap_fn fn, void *arg);

/* Profiling: seconds are gathered per step while on; turning it on starts anew. */
void oct_plan_profile(oct_plan *p, bool on);
typedef struct oct_step_info {
    const char *name, *op; /* of the node; "" and "Reorder" for steps the plan added */
    const char *scheme;    /* "int8", "weight-only", "fp16", "bf16" or "float" */
    const char *value; /* the first that it computes, of the model that the plan was made of or made by passes over it;
                          "" for none */
    const char *algorithm, *kernel; /* which of several algorithms, and the record of the kernel that multiplies, as
                                       oct_step has them: constant texts, "" for none */
    double seconds;
    bool weighted;               /* a layer with weights (oct_step_has_weights) */
    uint64_t calls, macs, bytes; /* multiply-accumulates and bytes read and written per call */
    uint64_t constants, made;    /* bytes of constants and of results among them */
} oct_step_info;
size_t oct_plan_n_steps(const oct_plan *p);
oct_step_info oct_plan_step(const oct_plan *p, size_t i);

typedef struct oct_plan_memory {
    size_t arena;   /* bytes for intermediate tensors           */
    size_t live;    /* largest sum of tensors alive at one step */
    size_t weights; /* packed weights and other prepared state  */
    size_t scratch;
} oct_plan_memory;
oct_plan_memory oct_plan_memory_of(const oct_plan *p);

/* What a tensor's numbers are, in a word: "int8" (quantized), "fp16", "bf16" or "float". */
const char *oct_operand_scheme(const oct_operand *t);

/* Copies an operand to plain layout as f32 (dequantized when it has q; other numeric types converted). dst holds
 * t->count values. OCT_EUNSUPPORTED for types without numbers. */
oct_status oct_operand_to_f32(const oct_operand *t, float *dst, oct_err *err);
/* The way back: t->count values in plain order are put into t as it lies, quantized when it has q. OCT_EUNSUPPORTED
 * where it has scales by channel, or is neither quantized nor of floats. */
oct_status oct_operand_from_f32(const oct_operand *t, const float *src, oct_err *err);

#endif
