/* lib/observers/qparams.h -- from a real interval to scale and zero point. */
#ifndef OCT_OBSERVERS_QPARAMS_H
#define OCT_OBSERVERS_QPARAMS_H

#include "base/dtype.h"

/* A real interval that the quantized integers covers, lo <= 0 <= hi, so that zero is exactly representable. */
typedef struct oct_range {
    float lo, hi;
} oct_range;

/* The integers of a quantized tensor. */
typedef struct oct_qrange {
    int32_t qmin, qmax;
    bool symmetric; /* scale from the larger magnitude, zero point in the middle: 0, or 128 of u8 */
} oct_qrange;

/* s8, u8, s16, u16, s4, u4, s2, u2. Symmetric signed ranges are -127..127 and alike; the others are full.
 * OCT_EUNSUPPORTED for other types. */
oct_status oct_qrange_of(oct_dtype t, bool symmetric, oct_qrange *g, oct_err *err);

typedef struct oct_qparams {
    float scale;
    int32_t zero;
} oct_qparams;

/* As ONNX Runtime's quantize_static does: scale = f32((hi - lo) / (qmax - qmin)) computed in double,
 * zero = round_half_even(qmin - lo / scale) with the scale in double; a range below FLT_MIN wide per step gives scale 1
 * and zero point 0 (clamped to the range). A symmetric range's zero point is its middle whatever the range. The range is first widened to
 * include 0. */
oct_qparams oct_qparams_from_range(oct_range r, oct_qrange g);

#endif
