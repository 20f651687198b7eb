/* lib/observers/view.h -- prepares a tensor's statistics for choosing a range. It has cumulative moments over the
 * histogram, so that the cost of a range takes a few look-ups. Mask-like values are left out. Private to
 * lib/observers. */
#ifndef OCT_OBSERVERS_VIEW_H
#define OCT_OBSERVERS_VIEW_H

#include "observers/observer.h"

/* Moments of magnitudes: count, sum, sum of squares. */
typedef struct oct_moments {
    double n, s1, s2;
} oct_moments;

/* The values of one sign, as magnitudes. Those equal to the peak are treated as a point (a clamp, a constant tensor).
 * The others are assumed to be distributed evenly over their bins. */
typedef struct oct_side {
    double peak;       /* largest magnitude; 0: no value of this sign */
    double peak_count; /* how many values equal it; 0 if excluded masks hide the exact peak */
    oct_moments *sum;  /* [bins + 1] moments of all bins before */
    uint32_t first;    /* index of this side's first bin in stats->bins */
    oct_moments all;   /* of all values of the side, except the point */
} oct_side;

struct oct_view {
    const oct_stats *stats;
    double count; /* how many values count: finite, not mask-like, and zeros */
    uint64_t excluded;
    double bound;     /* magnitudes that count are below this */
    oct_side side[2]; /* positive, negative */
};

/* There must be a finite value. Borrows s. */
oct_status oct_view_init(oct_view *v, const oct_stats *s, oct_err *err);
void oct_view_free(oct_view *v);

/* The moments of the side's magnitudes below x, without the point at the peak. */
oct_moments oct_view_below(const oct_view *v, int side, double x);
/* The full range of the values that count. */
oct_range oct_view_range(const oct_view *v);
float oct_view_f32(double x); /* nearest float32, at most FLT_MAX in magnitude */
/* The sum of squared quantization errors over all values: exact, except for the distribution inside bins. O(quantized
 * values). */
double oct_view_error(const oct_view *v, oct_qparams q, oct_qrange g);

/* The natural logarithm of x > 0, with an error of at most 2 ulp. It uses only +, -, * and /, so that it is the same on
 * every machine. */
double oct_log(double x);

#endif
