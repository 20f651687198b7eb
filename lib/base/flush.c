/* lib/base/flush.c -- denormal numbers as zero. */
#include "base/flush.h"

#if defined(__SSE2__)
#include <xmmintrin.h>

bool oct_flush_denormals(bool on)
{
    enum { RESULTS = 0x8000, OPERANDS = 0x0040 }; /* FTZ and DAZ of MXCSR */
    _mm_setcsr((_mm_getcsr() & ~(unsigned)(RESULTS | OPERANDS)) | (on ? RESULTS | OPERANDS : 0));
    return true;
}

#else

bool oct_flush_denormals(bool on)
{
    return false;
}

#endif
