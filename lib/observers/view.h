/* lib/observers/view.h -- a tensor's statistics prepared for range selection: running moments over the
 * histogram, so that the cost of a range is a few look-ups. Mask-like values are left out. Inside the layer. */
#ifndef OCT_OBSERVERS_VIEW_H
#define OCT_OBSERVERS_VIEW_H

#include "observers/observer.h"

/* Moments of magnitudes: count, sum, sum of squares. */
typedef struct oct_moments {
    double n, s1, s2;
} oct_moments;

/* Values of one sign, as magnitudes. Those equal to the peak stand apart as a point (a clamp, a constant
 * tensor), the others are spread evenly over their bin. */
typedef struct oct_side {
    double peak;       /* largest magnitude; 0: no value of this sign */
    double peak_count; /* how many equal it; 0 when masks above hide the exact peak */
    oct_moments *sum;  /* [bins + 1] moments of all bins before */
    uint32_t first;    /* index of this side's first bin in stats->bins */
    oct_moments all;   /* of the side, without the point */
} oct_side;

struct oct_view {
    const oct_stats *stats;
    double count; /* values that count: finite, not mask-like; zeros included */
    uint64_t excluded;
    double bound; /* magnitudes below this */
    oct_side side[2]; /* positive, negative */
};

/* Needs a finite value. Borrows s. */
oct_status oct_view_init(oct_view *v, const oct_stats *s, oct_err *err);
void oct_view_free(oct_view *v);

/* Moments of the side's magnitudes below x, without the point at the peak. */
oct_moments oct_view_below(const oct_view *v, int side, double x);
/* The full range of the values that count. */
oct_range oct_view_range(const oct_view *v);
float oct_view_f32(double x); /* nearest float32, at most FLT_MAX in magnitude */
/* Sum over all values of the squared quantization error: exact but for the spread inside bins.
 * O(quantized values). */
double oct_view_error(const oct_view *v, oct_qparams q, oct_qrange g);

/* Natural logarithm of x > 0 within 2 ulp, from +, -, *, / alone, so the same on every machine. */
double oct_log(double x);

#endif
