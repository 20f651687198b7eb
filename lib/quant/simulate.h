/* lib/quant/simulate.h -- the float model with a part of a job's rounding put in: what each part costs at the outputs.
 *
 * A float plan shows the values that the job quantizes, and the tap leaves in them what rounding leaves. So one plan measures any choice of
 * values, without rewriting and without packing weights anew. Results differ from those of integers in last places only. Rounded are
 * the values and weights of the outermost graph that have quantization parameters; the bodies of control flow, recurrent layers and weights
 * in blocks stay as they are.
 *
 * Deterministic: sums are formed sample by sample, whichever thread ran it. */
#ifndef OCT_QUANT_SIMULATE_H
#define OCT_QUANT_SIMULATE_H

#include "quant/convert.h"
#include "quant/job.h"

typedef struct oct_sim oct_sim;

/* What is rounded. value[n_values]: by the values of the job's graph; those that share parameters are asked for at their root.
 * NULL: all of them. */
typedef enum oct_sim_weights { OCT_SIM_FLOAT_WEIGHTS, OCT_SIM_ROUNDED_WEIGHTS, OCT_SIM_SOME_WEIGHTS } oct_sim_weights;
typedef struct oct_sim_mask {
    const bool *value;
    bool no_values; /* weights alone */
    oct_sim_weights weights;
    const bool *layer; /* [n_nodes], of OCT_SIM_SOME_WEIGHTS: nodes whose weights and bias are rounded */
} oct_sim_mask;

/* Errors of the outputs against the float model. */
typedef struct oct_sim_loss {
    double noise; /* of the signal, summed over the outputs: noise of parts that are independent adds up */
    double sqnr;  /* dB, the smallest over the outputs */
} oct_sim_loss;

/* How many samples a measurement takes: as many as take so many multiply-accumulates, within bounds (even ones), and are kept. More for small
 * models, where they cost little and each tells less; an even number, as two cores take as long for one sample as for two. `least` is halved where
 * it would take more than three times `macs`. */
typedef struct oct_sim_size {
    int64_t macs, least, most;
} oct_sim_size;
#define OCT_SIM_FEW_RUNS ((oct_sim_size){ 3000000000, 8, 32 })   /* for what runs each a few times: all that are kept */
#define OCT_SIM_JUDGES ((oct_sim_size){ 1200000000, 4, 32 })     /* for what says whether a change stays that others chose */
#define OCT_SIM_MANY_RUNS ((oct_sim_size){ 1200000000, 2, 16 })  /* for what runs each a hundred times */

/* The simulation of a conversion on `size` samples of half 0 or 1 of those it calibrates with (of all where samples are not to be divided),
 * fewer where inputs and outputs of so many take more than some 64 MB. At first need samples are read and run in float; they stay, with
 * what the float model makes of them, until the graph changes (oct_conversion_reopen) or the conversion has decided, and so long *sim may be
 * used. Each use settles the conversion and follows its decisions, where changes are told (oct_conversion_changed, oct_conversion_edited).
 * OCT_EUNSUPPORTED where the model does not run. */
oct_status oct_conversion_sim(oct_conversion *c, oct_sim_size size, int half, oct_sim **sim, oct_err *err);

oct_status oct_sim_measure(oct_sim *s, const oct_sim_mask *m, oct_sim_loss *loss, oct_err *err);

/* The name under which a value of the job's graph is shown, NULL: it is not. Borrowed until decisions change. */
const char *oct_sim_shown(const oct_sim *s, int value);
/* Runs the float model on the samples and shows values of the job's graph (value[n_values]) under the names of the simulation's taps, and
 * others, on any thread. The run of a sample ends with the last of them and begins where the one before ended, if that is not behind the
 * first; so asking for some values after the other, in the order of the graph, costs one run. */
oct_status oct_sim_show(oct_sim *s, const bool *value, void (*show)(void *arg, size_t sample, const char *name, const oct_operand *t), void *arg,
                        oct_err *err);

/* The graph that such a plan runs: a copy of the job's, where what integer operators read of a real value is a value of its own.
 * rounds[node]: whether the weights and bias of the node are rounded, NULL: all; constants of other operators go with `constants`.
 * tap[v], allocated in arena: the name of the value that is to be rounded in place of v, NULL: none. */
oct_status oct_sim_graph(oct_qjob *j, const bool *rounds, bool constants, oct_arena *arena, oct_graph **g, const char **tap, oct_err *err);
/* Whether the weights of a node can be rounded there: the job rounds them, by channels or all of them. */
bool oct_sim_rounds(const oct_qjob *j, int node);
/* Puts the values of t, float32 as they lie, on the quantization parameters of value v, in place. */
void oct_sim_round(const oct_qjob *j, int v, const oct_operand *t);
/* Puts x f32[n] on them, into y, which may be x. */
void oct_sim_round_to(const oct_qjob *j, int v, const float *x, size_t n, float *y);

#endif
