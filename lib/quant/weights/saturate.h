/* lib/quant/weights/saturate.h -- sums of neighbouring products that must fit 16 bits. */
#ifndef OCT_QUANT_SATURATE_H
#define OCT_QUANT_SATURATE_H

#include "ops/traits.h"
#include "targets/target.h"

/* Whether the sum of two neighbouring u8 x s8 products along k fits 16 bits for all values of the
 * activations. It does if in each pair the positive weights sum to at most OCT_PAIR_MOST, and the negative ones to no
 * less than its negative (255 * 128 < 2^15). sums says which weights form pairs; OCT_SUMS_EXACT: none do. qvals: all
 * matrices, in ONNX's layout. */
enum { OCT_PAIR_MOST = 128 };
bool oct_pairs_safe(oct_pair_sums sums, const oct_weight_layout *l, const int8_t *qvals);
/* Whether a layer with this layout adds pairs in 16 bits. */
bool oct_adds_pairs(oct_pair_sums sums, const oct_weight_layout *l);
/* The weight that is paired with weight k of an output channel; -1: none. Both are counted within the group: ic * taps
 * + tap. */
int64_t oct_pair_of(oct_pair_sums sums, const oct_weight_layout *l, int64_t k);

#endif
