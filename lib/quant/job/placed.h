/* lib/quant/job/placed.h -- what was decided for nodes and values, to whoever works with it. */
#ifndef OCT_QUANT_PLACED_H
#define OCT_QUANT_PLACED_H

#include "quant/job/scope.h"

/* ---- nodes ---- */

/* Whether the results of a node become integers, up to the preceding product (counts.c). */
typedef enum oct_counting {
    OCT_COUNTS_NOT,
    OCT_COUNTS_NARROW, /* of 8 or 16 bits, such as pixels, or booleans */
    OCT_COUNTS_WIDE    /* counts, positions, shapes */
} oct_counting;

oct_scheme oct_scheme_of(const oct_qjob *j, int node);
/* The rule that chose the scheme, or the reason against another one. */
const char *oct_why_of(const oct_qjob *j, int node);
/* What the policy asks for, as far as the target and the constraints let it. */
const oct_policy_row *oct_row_of(const oct_qjob *j, int node);
/* Whether it is a clamp that is removed, because the quantizer of the integer node before it clamps as well. */
bool oct_is_absorbed(const oct_qjob *j, int node);
oct_counting oct_counting_of(const oct_qjob *j, int node);
/* Whether a node computes on integers with parameters that are known before it runs. Nodes added after the job was made
 * do not. */
bool oct_is_static(const oct_qjob *j, int node);
/* The same for matrix products and convolutions. */
bool oct_is_product(const oct_qjob *j, int node);
/* Whether it computes on integers whose parameters are found when it runs; a recurrent layer requantizes its state,
 * too. */
bool oct_is_dynamic(const oct_qjob *j, int node);
bool oct_is_dynamic_product(const oct_qjob *j, int node);
bool oct_is_dynamic_recurrent(const oct_qjob *j, int node);
/* Whether it computes in float, on weights that are stored in 8 bits. */
bool oct_is_stored(const oct_qjob *j, int node);
/* Whether a node reads quantized values although it computes in float (place_around.c). */
bool oct_rounds_inputs(const oct_qjob *j, int node);
/* Whether a node reads an input as integers, or after a quantizer. If it runs on integers, these inputs are its
 * activations. */
bool oct_reads_quantized(const oct_qjob *j, int node, int slot);
/* The clamp that belongs to a layer on integers, as the target takes it: no quantizer stands between the two. -1: there
 * is none. */
int oct_clamp_of(const oct_qjob *j, int node);
/* Whether the outputs of a node pass a quantizer: the node runs on integers, or stands between quantizers. */
bool oct_makes_quantized(const oct_qjob *j, int node);
/* How many of the first inputs of an integer node are activations. */
int oct_data_inputs(const oct_qjob *j, int node);
/* The node that computes a value, where a clamp that is removed is passed over; or -1. */
int oct_maker_node(const oct_qjob *j, int value);
/* The value that the quantizer after output 0 of a node applies to: that output, or the output of the clamp that the
 * quantizer performs; or -1. */
int oct_quantized_output(const oct_qjob *j, int node);
/* The parameters of a node's quantized input, as it reads it: those of the value, or those of its conversion to another
 * type; NULL: there are none. */
const oct_quant *oct_read_as(const oct_qjob *j, int node, int slot);
/* The type of activations that a policy row asks for. */
oct_dtype oct_asked_activations(const oct_qjob *j, const oct_policy_row *row);

/* Sets the scheme of a node; the decision whether it computes in float is float_or_int.c's. */
void oct_set_scheme(oct_qjob *j, int node, oct_scheme scheme, const char *why);

/* ---- values ---- */

/* The root of the values that share their parameters with this one. */
int oct_params_root(const oct_qjob *j, int value);
/* The root of those that share them because their elements are moved, and not joined by a Concat. */
int oct_moved_root(const oct_qjob *j, int value);
bool oct_is_wanted(const oct_qjob *j, int value); /* a quantizer is placed on it */
/* Whether a dynamic product rounds it when it runs. */
bool oct_is_rounded_at_run(const oct_qjob *j, int value);
/* Whether the job asks for statistics of a value. */
bool oct_is_observed(const oct_qjob *j, int value);
/* Asks for statistics of a value, whose range decides whether it fits 16-bit floats. */
void oct_want_range(oct_qjob *j, int value);
/* The dimension that holds the channels, for moments of each; -1: the last; 0: no moments. */
int oct_moments_axis(const oct_qjob *j, int value);
/* Whether an integer node computes one of the values that share parameters with this one. */
bool oct_is_made(const oct_qjob *j, int value);
/* The policy row that decides for all of these; or NULL. */
const oct_policy_row *oct_params_row(const oct_qjob *j, int value);
/* The bounds of the clamp that their quantizers perform; infinite if there is none. */
oct_range oct_clamp_bounds(const oct_qjob *j, int value);
/* The decided parameters; NULL: there are none, or not yet. */
const oct_quant *oct_quant_of(const oct_qjob *j, int value);
void oct_set_quant(oct_qjob *j, int value, const oct_quant *q);
/* Those for readers that compute on the k-th of OCT_READ_TYPES types; NULL: there is no such reader. */
enum { OCT_READ_TYPES = 4 };
const oct_quant *oct_quant_as(const oct_qjob *j, int value, size_t k);
const char *oct_observer_of(const oct_qjob *j, int value); /* of the decided parameters */
/* The reason why parameters of the table were not used as they are; NULL: they were, or the table has none. */
const char *oct_misfit_of(const oct_qjob *j, int value);
double oct_value_sqnr(const oct_qjob *j, int value); /* expected SQNR of rounding and clipping in dB */
/* Gives q, in which n is set, n scales of 0 for the caller to fill in, and n zero points. Their memory lasts as long as
 * the values that carry q. */
oct_status oct_new_scales(oct_qjob *j, oct_quant *q, int32_t zero, float **scale, oct_err *err);

#endif
