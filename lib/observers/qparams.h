/* lib/observers/qparams.h -- computes scale and zero point from an interval. */
#ifndef OCT_OBSERVERS_QPARAMS_H
#define OCT_OBSERVERS_QPARAMS_H

#include "base/dtype.h"

/* The interval of real numbers that the quantized values cover. lo <= 0 <= hi, so that zero is represented exactly. */
typedef struct oct_range {
    float lo, hi;
} oct_range;

/* The quantized values of a type. */
typedef struct oct_qrange {
    int32_t qmin, qmax;
    bool symmetric; /* the scale follows from the larger magnitude, and the zero point is in the middle: 0, or 128 for
                       u8 */
} oct_qrange;

/* For s8, u8, s16, u16, s4, u4, s2 and u2. A symmetric signed range is -127..127 for s8, and correspondingly for other
 * types; all others are full ranges. OCT_EUNSUPPORTED: another type. */
oct_status oct_qrange_of(oct_dtype t, bool symmetric, oct_qrange *g, oct_err *err);

typedef struct oct_qparams {
    float scale;
    int32_t zero;
} oct_qparams;

/* Computes them as ONNX Runtime's quantize_static does: scale = f32((hi - lo) / (qmax - qmin)), computed in double;
 * zero = round_half_even(qmin - lo / scale), with the scale in double. If the scale would be below FLT_MIN, the scale
 * is 1 and the zero point is 0 (clamped to the range). The zero point of a symmetric range is always the middle. First,
 * the range is extended to include 0. */
oct_qparams oct_qparams_from_range(oct_range r, oct_qrange g);

#endif
