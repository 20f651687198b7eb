/* lib/observers/qparams.c -- computes scale and zero point from an interval. */
#include "observers/qparams.h"

#include <float.h>
#include <math.h>

oct_status oct_qrange_of(oct_dtype t, bool symmetric, oct_qrange *g, oct_err *err)
{
    int bits = oct_dtype_bits(t);
    switch (t) {
    case OCT_U2:
    case OCT_U4:
    case OCT_U8:
    case OCT_U16: *g = (oct_qrange){ 0, (1 << bits) - 1, symmetric }; return OCT_OK;
    case OCT_S2:
    case OCT_S4:
    case OCT_S8:
    case OCT_S16: *g = (oct_qrange){ -(1 << (bits - 1)) + symmetric, (1 << (bits - 1)) - 1, symmetric }; return OCT_OK;
    default: return oct_fail(err, OCT_EUNSUPPORTED, "no quantized integers of type %s", oct_dtype_name(t));
    }
}

oct_qparams oct_qparams_from_range(oct_range r, oct_qrange g)
{
    double lo = r.lo < 0 ? r.lo : 0, hi = r.hi > 0 ? r.hi : 0;
    if (g.symmetric) {
        hi = hi > -lo ? hi : -lo;
        lo = -hi;
    }
    double scale = (hi - lo) / ((double)g.qmax - g.qmin);
    if (g.symmetric)
        return (oct_qparams){ scale >= FLT_MIN ? (float)scale : 1.0f, (g.qmin + g.qmax + 1) / 2 };
    if (!(scale >= FLT_MIN)) {
        int32_t zero = g.qmin > 0 ? g.qmin : g.qmax < 0 ? g.qmax : 0;
        return (oct_qparams){ 1.0f, zero };
    }
    double zero = rint(g.qmin - lo / scale);
    zero = zero < g.qmin ? g.qmin : zero > g.qmax ? g.qmax : zero;
    return (oct_qparams){ (float)scale, (int32_t)zero };
}
