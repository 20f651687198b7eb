/* lib/quant/simulate/sensitivity.h -- how much noise at the model's outputs each quantized value, and the quantized
 * weights of each layer, cause alone.
 *
 * This is measured (simulate.h). An estimate from the error of the value itself finds only half of the worst ones.
 * Groups of neighbouring sites are measured together first, and are divided only if they matter: the noise of
 * independent parts adds up. */
#ifndef OCT_QUANT_SENSITIVITY_H
#define OCT_QUANT_SENSITIVITY_H

#include "quant/simulate/memo.h"

/* A site: a value, or the weights of a layer, that is rounded. */
typedef struct oct_site {
    struct oct_qjob *body; /* the job of the body that holds the layer; NULL: it is in the job's own graph */
    int value; /* a value of the job's graph, the root of those that share parameters, or one that dynamic products
                  round; -1: the site is weights */
    int node;  /* the node whose weights and bias are rounded, or that has its own form (simulate.h); -1: the site is a
                  value */
    oct_scheme scheme; /* of the node, when it was measured */
    double noise; /* noise at the outputs when it alone is rounded, as in oct_sim_loss; in bodies, what goes when it
                     is not (body_sites.h); 0: too small to be measured separately */
} oct_site;

typedef struct oct_sensitivity {
    oct_site *site; /* the worst first */
    size_t n;
    oct_sim_loss all, values,
        weights;    /* the loss with everything rounded, with the values alone, and with the weights alone */
    double least;   /* sites below this share of the noise of their kind are not measured separately */
    bool of_layers; /* weights were measured too */
    size_t samples;
    const double *known; /* the noise of groups of values, for a later search (sensitivity.c) */
} oct_sensitivity;

/* Measures all sites. Those that cause less than `least` (a share) of the noise of their kind are not measured
 * separately. weights: measure the weights of layers too. Measurements in the memo (may be NULL) are not repeated.
 * Allocated in arena. */
oct_status oct_sensitivity_measure(oct_sim *s, oct_qjob *j, double least, bool weights, oct_memo *memo,
                                   oct_arena *arena, oct_sensitivity *out, oct_err *err);

/* Adds the layers in bodies to what was measured so, with room for them in out->site. */
oct_status oct_sensitivity_add_bodies(oct_sim *s, oct_qjob *j, double least, oct_arena *arena, oct_sensitivity *out,
                                      oct_err *err);

/* Measures the weights of each layer in layer[n_nodes] alone; values are not measured. out->weights has the loss of all
 * layers together. Allocated in arena. */
oct_status oct_sensitivity_of_weights(oct_sim *s, oct_qjob *j, const bool *layer, oct_arena *arena,
                                      oct_sensitivity *out, oct_err *err);

/* Measures values and recurrent layers on integers alone, and the layers in bodies, and only those that cause at least
 * `share` of the noise of everything rounded, or of what remains without the values that cause more. This takes far
 * fewer measurements. For large models only the groups with the most noise are divided, and out->least says what was
 * not measured separately. before: a search with the same decisions and samples, whose measurements are not repeated;
 * NULL: there was none. Allocated in arena. */
oct_status oct_sensitivity_find_worst(oct_sim *s, oct_qjob *j, double share, const oct_sensitivity *before,
                                      oct_arena *arena, oct_sensitivity *out, oct_err *err);

/* Whether a node computes or reads one of the values that share their parameters with root, or rounds root when it
 * runs. If all such nodes are float, these values are not rounded. */
bool oct_site_touches(const oct_qjob *j, int node, int root);
/* The job that a site is of. */
static inline const oct_qjob *oct_site_job(const oct_qjob *j, const oct_site *s)
{
    return s->body ? s->body : j;
}
/* Whether a site matters and is still rounded as it was: a value or a node may have become float since it was measured.
 */
bool oct_site_counts(const oct_qjob *j, const oct_site *s);
/* The noise of everything that is still rounded, if errors are independent. */
double oct_sensitivity_left(const oct_qjob *j, const oct_sensitivity *s);

#endif
