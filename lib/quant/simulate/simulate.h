/* lib/quant/simulate/simulate.h -- runs the float model with a part of a job's rounding, to measure how much each part
 * costs at the outputs.
 *
 * A plan of the float model shows the values that the job quantizes to a tap. The tap rounds them in place. So a single
 * plan can measure any choice of values, without rewriting the graph or packing weights again. Results differ from
 * those of integer kernels only in the last digits. Inputs of dynamic products are rounded as the runtime does it, with
 * parameters of the value itself. What is no float node between roundings has its own form in the graph and counts as
 * the weights of its node: recurrent layers on integers, which requantize their state, bodies of control flow, rows of
 * tables, stored weights and 16-bit floats.
 *
 * Results are deterministic: sums are formed sample by sample, no matter which thread ran the sample. */
#ifndef OCT_QUANT_SIMULATE_H
#define OCT_QUANT_SIMULATE_H

#include "quant/convert/convert.h"
#include "quant/job/placed.h"

typedef struct oct_sim oct_sim;

/* The ways in which a value is rounded: with its parameters; with those for readers of each other type; by dynamic
 * products, when they run. One of a value is identified by a number. */
enum { OCT_SIM_OWN, OCT_SIM_AT_RUN = 1 + OCT_READ_TYPES, OCT_SIM_WAYS };
static inline int oct_sim_rounding(const oct_qjob *j, int value, size_t way)
{
    return (int)(way * j->n_values) + value;
}
static inline int oct_sim_value(const oct_qjob *j, int rounding)
{
    return (int)((size_t)rounding % j->n_values);
}
static inline size_t oct_sim_way(const oct_qjob *j, int rounding)
{
    return (size_t)rounding / j->n_values;
}

/* What is rounded. value[n_values]: indexed by the values of the job's graph, where the root decides for all values
 * that share parameters, and the value itself for dynamic products. NULL: all values. */
typedef enum oct_sim_weights { OCT_SIM_FLOAT_WEIGHTS, OCT_SIM_ROUNDED_WEIGHTS, OCT_SIM_SOME_WEIGHTS } oct_sim_weights;
typedef struct oct_sim_mask {
    const bool *value;
    bool no_values; /* only weights */
    oct_sim_weights weights;
    const bool *layer; /* [n_nodes], with OCT_SIM_SOME_WEIGHTS: the nodes whose weights and bias are rounded */
} oct_sim_mask;

/* The errors of the outputs compared with the float model. */
typedef struct oct_sim_loss {
    double noise; /* noise relative to the signal, summed over the outputs; the noise of independent parts adds up */
    double sqnr;  /* the smallest SQNR of an output, in dB */
} oct_sim_loss;

/* How many samples a measurement takes: as many as need `macs` multiply-accumulates, within bounds. Small models get
 * more samples, because samples cost little there and each says less. The number is even, since two cores take as long
 * for one sample as for two. `least` is halved if it would take more than three times `macs`. */
typedef struct oct_sim_size {
    int64_t macs, least, most;
} oct_sim_size;
#define OCT_SIM_FEW_RUNS \
    ((oct_sim_size){ 3000000000, 8, 32 }) /* for measurements that make few runs: all samples that are kept */
#define OCT_SIM_JUDGES \
    ((oct_sim_size){ 1200000000, 4, 32 }) /* to decide whether a change stays that was chosen on other samples */
#define OCT_SIM_MANY_RUNS ((oct_sim_size){ 1200000000, 2, 16 }) /* for measurements that make about a hundred runs */

/* The simulation of a conversion on `size` samples of half 0 or 1 of the samples that it calibrates with (of all of
 * them if they must not be divided). There are fewer samples if their inputs and outputs would take more than about 64
 * MB. When samples are first needed, they are read and run in float. They are kept together with the outputs of the
 * float model, until the graph changes (oct_conversion_reopen) or the conversion has decided; *sim may be used until
 * then. Each use settles the conversion and takes its current decisions, if changes are announced
 * (oct_conversion_changed, oct_conversion_edited). OCT_EUNSUPPORTED: the model cannot be run. */
oct_status oct_conversion_sim(oct_conversion *c, oct_sim_size size, int half, oct_sim **sim, oct_err *err);

oct_status oct_sim_measure(oct_sim *s, const oct_sim_mask *m, oct_sim_loss *loss, oct_err *err);

/* The tap that shows a value of the job's graph, where it has parameters; OCT_NO_TAP: it is not shown. It is the same
 * until decisions change. */
size_t oct_sim_tap(const oct_sim *s, int value);
/* Runs the float model on the samples, and shows values of the job's graph (value[n_values]), among others, by
 * their taps, on any thread. The run of a sample ends at the last of these values. It starts where
 * the previous run ended, unless that is after the first of these values. So asking for values one after the other, in
 * the order of the graph, costs a single run. */
oct_status oct_sim_show(oct_sim *s, const bool *value,
                        void (*show)(void *arg, size_t sample, size_t tap, const oct_operand *t), void *arg,
                        oct_err *err);

/* What is known of a value on which errors are measured. */
typedef struct oct_sim_end {
    bool rows; /* its rows are in an order that values chose */
    int axis;  /* a Softmax or LogSoftmax compares its elements along this axis; -1: none does */
} oct_sim_end;

/* The graph that such a plan runs: a copy of the job's graph in which integer operators read float values through
 * values of their own. rounds[node]: whether the weights and bias of the node are rounded; NULL: all are. constants:
 * the same for constants of other operators. tap[n_values * OCT_SIM_WAYS], allocated in arena: by rounding, the name of
 * the value that is rounded; NULL: none. Its outputs are the values on which errors are measured: the outputs of the
 * job's graph, or real numbers before them. (*end)[n_output], allocated in arena: what is known of them. */
oct_status oct_sim_graph(const oct_qjob *j, const bool *rounds, bool constants, oct_arena *arena, oct_graph **g,
                         const char **tap, oct_sim_end **end, oct_err *err);
/* Whether the job rounds the weights of a node, or gives it an own form. */
bool oct_sim_rounds(const oct_qjob *j, int node);
/* Whether the job rounds something at a node that the simulation does not: everything that is decided should be
 * simulated. */
bool oct_sim_leaves_out(const oct_qjob *j, int node);
/* Rounds the values of t, float32 in its own layout, in place. */
void oct_sim_round(const oct_qjob *j, int rounding, const oct_operand *t);
/* Rounds x f32[n] in the same way into y, which may be x. */
void oct_sim_round_to(const oct_qjob *j, int rounding, const float *x, size_t n, float *y);

#endif
