/* lib/quant/sensitivity.h -- what quantizing each value and each layer's weights alone costs at the model's outputs.
 *
 * Measured (simulate.h), not estimated from a value's own error, which finds half of the worst. Groups of neighbours are measured together
 * first, and divided only where they matter: noise of parts that are independent adds up. */
#ifndef OCT_QUANT_SENSITIVITY_H
#define OCT_QUANT_SENSITIVITY_H

#include "quant/memo.h"

/* One thing that is rounded. */
typedef struct oct_site {
    int value;    /* of the job's graph, the root of those that share parameters; -1: weights */
    int node;     /* whose weights and bias they are; -1: a value */
    double noise; /* at the outputs when it alone is rounded, as oct_sim_loss has it; 0: too little to be told apart */
} oct_site;

typedef struct oct_sensitivity {
    oct_site *site; /* the worst first */
    size_t n;
    oct_sim_loss all, values, weights; /* everything rounded; values alone; weights alone */
    double least;   /* share of the noise of a kind below which sites are not told apart */
    bool of_layers; /* weights were measured, too */
    size_t samples;
} oct_sensitivity;

/* Sites that cause less than `least` (a share) of the noise of their kind are not told apart. weights: those of layers are wanted too.
 * What the memo (may be NULL) has is not measured again. Allocated in arena. */
oct_status oct_sensitivity_measure(oct_sim *s, oct_qjob *j, double least, bool weights, oct_memo *memo, oct_arena *arena,
                                   oct_sensitivity *out, oct_err *err);

/* The part-th of so many parts of these measurements, into the memo: groups of sites, dealt out by what they are expected to take. Those of all parts are what
 * a measurement of the whole asks for, and some more where a group that is divided at once turns out to cause little. */
oct_status oct_sensitivity_measure_part(oct_sim *s, oct_qjob *j, double least, uint32_t part, uint32_t parts, oct_memo *memo, oct_arena *arena, oct_err *err);

/* Weights alone, of the layers that layer[n_nodes] has, each by itself. out->weights is of all layers; values are not measured. Allocated in arena. */
oct_status oct_sensitivity_of_weights(oct_sim *s, oct_qjob *j, const bool *layer, oct_arena *arena, oct_sensitivity *out, oct_err *err);

/* Values alone, and of these only what causes `share` or more of the noise of all that is rounded, or of what is left of it without those that
 * cause more. Many fewer measurements; of large models only the groups with the most noise are divided, and out->least says what was not
 * told apart. Allocated in arena. */
oct_status oct_sensitivity_find_worst(oct_sim *s, oct_qjob *j, double share, oct_arena *arena, oct_sensitivity *out, oct_err *err);

/* Whether a node makes or reads one of the values that share the parameters of root: where it and all others that do are float, these are not
 * rounded. */
bool oct_site_touches(const oct_qjob *j, int node, int root);
/* Whether a site matters, and is still rounded: decisions may have left a value float since it was measured. */
bool oct_site_counts(const oct_qjob *j, const oct_site *s);
/* The noise of all that is still rounded, where errors are independent. */
double oct_sensitivity_left(const oct_qjob *j, const oct_sensitivity *s);

#endif
