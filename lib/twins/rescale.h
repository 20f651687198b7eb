/* lib/twins/rescale.h -- from sums of products to int8: the ways in which runtimes multiply by a real number. */
#ifndef OCT_TWINS_RESCALE_H
#define OCT_TWINS_RESCALE_H

#include <stdint.h>

/* A real number >= 0 to multiply by, as a runtime keeps it. */
typedef struct oct_rescale {
    double real;
    int32_t multiplier; /* in [2^30, 2^31), or 0 */
    int shift;          /* to the left if positive */
} oct_rescale;

typedef struct oct_rescaling {
    /* Of in * weights / out. */
    oct_rescale (*of)(float in, float weights, float out);
    /* x times it, plus zero, in [lo, hi]. */
    int32_t (*to)(const oct_rescale *r, int32_t x, int32_t zero, int32_t lo, int32_t hi);
    /* A bound of an activation as an integer. */
    int32_t (*bound)(float bound, float scale, int32_t zero);
    /* A sum of 48 bits times it, saturated to 32; NULL: no operator needs it. */
    int32_t (*sum)(const oct_rescale *r, int64_t x);
} oct_rescaling;

extern const oct_rescaling oct_rescaling_float;           /* XNNPACK: in float, rounded half to even */
extern const oct_rescaling oct_rescaling_single;          /* a multiplier of 31 bits, rounded once, half up */
extern const oct_rescaling oct_rescaling_double_in_float; /* oct_rescaling_double, of a factor computed in float */
extern const oct_rescaling oct_rescaling_tosa;            /* a multiplier of 31 bits, rounded twice in one sum */
extern const oct_rescaling oct_rescaling_tosa_in_float;   /* the same, of a factor computed in float */
extern const oct_rescaling oct_rescaling_exact;           /* sums of 48 bits in float64, rounded once */
extern const oct_rescaling oct_rescaling_double; /* the same rounded twice: the product's high half, and the shift */

/* A sum within 48 bits: beyond them runtimes are not defined. */
int64_t oct_sum_bounded(int64_t x);

/* A multiplier of 31 bits. */
oct_rescale oct_rescale_fixed(double real);
int32_t oct_rescale_twice(const oct_rescale *r, int32_t x);
int32_t oct_rescale_once(const oct_rescale *r, int32_t x);

/* The high half of 2ab, rounded half away from zero, saturated; x / 2^n, rounded half away from zero; and the same of
 * 16 bits. */
int32_t oct_high_product(int32_t a, int32_t b);
int32_t oct_divide_power(int32_t x, int n);
int32_t oct_shift_left(int32_t x, int n); /* wraps */

static inline int32_t oct_twin_clamp(int64_t x, int64_t lo, int64_t hi)
{
    return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

#endif
