/* lib/runtime/plan.h -- a model compiled for given input shapes, and its execution.
 *
 * Making a plan: the graph is cloned with the concrete input shapes, folded and fused; its quantized form is read
 * (forms/forms.h), unless its values carry quantization already; every node becomes a step, on integers where it runs
 * on quantized values; layouts are chosen (channels-last inside, reorders at the borders); weights are packed;
 * intermediate tensors are placed in one arena by lifetime. A run then allocates nothing.
 *
 * Models with control flow, sequences, strings, or shapes that depend on data are run in stages: each part is planned
 * as soon as the shapes that it depends on are known, and its plan is kept for later runs with these shapes; the nodes
 * in between run one by one and allocate their results. Results do not depend on the number of threads, the instruction
 * set or, but for models that quantize dynamically (oct_op_shares_scales), the batch. */
#ifndef OCT_RUNTIME_PLAN_H
#define OCT_RUNTIME_PLAN_H

#include "base/pool.h"
#include "ops/op.h"

typedef struct oct_plan oct_plan;

/* What is known of a graph input: a tensor of known shape, or something else. */
typedef struct oct_plan_input {
    bool tensor;
    oct_dtype dtype; /* OCT_UNDEFINED: as declared */
    int rank;
    int64_t dims[OCT_MAX_RANK];
    bool varies; /* dims apply to the first run only; others of the same rank may follow */
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
    bool fast_pack;  /* only a few runs follow: less time is spent on arranging weights */
    bool bf16; /* MatMul, Gemm, Conv and ConvTranspose on float32 round their operands to bf16 and multiply them as such
                  (kernels/bgemm) */
    int64_t max_trips; /* maximum number of iterations of one Loop; 0: OCT_MAX_TRIPS */
} oct_plan_opts;

/* A Loop with more iterations ends with OCT_EUNSUPPORTED, since it might never end. */
#define OCT_MAX_TRIPS ((int64_t)1 << 24)

/* g is borrowed and must outlive the plan; it is not changed. in[i] is for its input i; NULL: all as declared, which
 * may not suffice to plan before the first run. OCT_EUNSUPPORTED names the first node without a runnable operator;
 * OCT_EMALFORMED a shape that does not fit. Faults that depend on unknown shapes are reported by the run. */
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
/* To be called between two calls of advance, or from the tap, if that has not changed the value. False: the model runs
 * in stages, or out of memory. */
bool oct_plan_save(const oct_plan *p, oct_plan_state *s);
/* To be called after oct_plan_begin with the inputs of the saved run, on that plan or on another one with the same
 * graph, options and input shapes. The tap is shown the values of the last step again, and the run continues after it.
 */
oct_status oct_plan_restore(oct_plan *p, const oct_plan_state *s, oct_err *err);
void oct_plan_state_free(oct_plan_state *s);

size_t oct_plan_n_outputs(const oct_plan *p);
const char *oct_plan_output_name(const oct_plan *p, size_t i);
/* Output i: plain layout, data valid after a run; so is its shape in a model that is run in stages. An output that is
 * not a tensor has type OCT_UNDEFINED. */
const oct_operand *oct_plan_output(const oct_plan *p, size_t i);
/* Whether the types and shapes of all outputs are known before a run. */
bool oct_plan_knows_outputs(const oct_plan *p);
/* Lets the next runs write output i to `data`, aligned to 64 bytes, with room for what oct_plan_output says; NULL: into
 * the plan's own memory again. Returns false where that cannot be, because other values share its memory, where a
 * copy is faster, or the model is run in stages: then the output is where oct_plan_output says. A run with such outputs
 * cannot be saved. */
bool oct_plan_set_output(oct_plan *p, size_t i, void *data);
/* The same with data, which may be sequences or empty optionals: one for each input, borrowed for the call. *out is a
 * reference to the datum of output i; its bytes may be borrowed from the plan until the next run. */
oct_status oct_plan_run_data(oct_plan *p, oct_datum *const *inputs, oct_err *err);
oct_status oct_plan_output_datum(const oct_plan *p, size_t i, oct_datum **out, oct_err *err);

/* Called in order of execution, with the index in oct_plan_opts.taps of the value shown, and t as it lies in memory
 * (layout, q when quantized); a failure stops the run. The tap may change the values of t, which is what the steps
 * behind it then read; not those of a graph input, which are the caller's. */
typedef oct_status (*oct_tap_fn)(void *arg, size_t tap, const oct_operand *t, oct_err *err);
void oct_plan_set_tap(oct_plan *p, oct_tap_fn fn, void *arg);

/* Profiling: while it is on, the seconds of each step are added up. Turning it on resets them. */
void oct_plan_profile(oct_plan *p, bool on);
typedef struct oct_step_info {
    const char *name, *op; /* of the node; "" and "Reorder" for steps the plan added */
    const char *scheme;    /* "int8", "weight-only", "fp16", "bf16" or "float" */
    const char *value;     /* name of the first node that it computes, in the model or added by passes; "": none */
    const char *algorithm, *kernel; /* the algorithm, and the record of the multiplying kernel (oct_step); "": none */
    double seconds;
    bool weighted;               /* a layer with weights (oct_step_has_weights) */
    int bits;                    /* of a weight that is stored in blocks; 0: none is */
    uint64_t calls, macs, bytes; /* multiply-accumulates and bytes read and written per call */
    uint64_t constants, made;    /* of these, bytes of constants and of results */
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

/* The type of a tensor's numbers: "int8" (quantized), "fp16", "bf16" or "float". */
const char *oct_operand_scheme(const oct_operand *t);

/* Copies an operand to plain layout as f32 (dequantized when it has q; other numeric types converted). dst holds
 * t->count values. OCT_EUNSUPPORTED for types without numbers. */
oct_status oct_operand_to_f32(const oct_operand *t, float *dst, oct_err *err);
/* The inverse: stores t->count values in plain order into t with its layout, quantized if it has q. OCT_EUNSUPPORTED
 * where it has scales by channel, or is neither quantized nor of floats. */
oct_status oct_operand_from_f32(const oct_operand *t, const float *src, oct_err *err);

#endif
