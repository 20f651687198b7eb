/* lib/quant/place/place_int.h -- the parts of placement, in the order in which place.c calls them. */
#ifndef OCT_QUANT_PLACE_INT_H
#define OCT_QUANT_PLACE_INT_H

#include "quant/job/placed.h"
#include "quant/place/place.h"

static inline bool oct_is_const(const oct_qjob *j, int value)
{
    return value >= 0 && j->g->value[value].constant;
}

/* Whether a target takes this type of activations together with weights of some type. */
static inline bool oct_takes_activations(const oct_target *t, oct_dtype activations)
{
    return oct_target_takes(t, activations, OCT_U8) || oct_target_takes(t, activations, OCT_S8);
}

/* counts.c: whether the results of a node become integers, once that is known of the nodes behind it; and the reason
 * for which these are not rounded. */
oct_counting oct_find_counting(const oct_qjob *j, int id);
extern const char oct_becomes_integers[];

/* float_or_int.c: gives each node its scheme, and marks clamps that a quantizer performs. */
void oct_place_schemes(oct_qjob *j);
/* Whether both matrices of a recurrent layer are constants of float32. */
bool oct_recurrent_matrices(const oct_qjob *j, int node);
/* A clamp that was to be performed by a quantizer stays a node, as its result is read as float. */
void oct_place_clamp_back(oct_qjob *j, int clamp);
/* Whether an integer node reads the value as data, possibly through a clamp that is removed. by_product: only a product
 * that reads it directly counts. */
bool oct_is_read_as_integers(const oct_qjob *j, int value, bool by_product);

/* shared_params.c: joins values that have the same parameters, and collects at the root what they ask for. */
void oct_place_shared_params(oct_qjob *j);

#endif
