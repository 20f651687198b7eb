/* bench/peak.h -- what one core can do at most: mixes of instructions on registers alone, and loads.
 *
 * A mix is what the inner loop of a product kernel computes with, without its loads: multiply, add, and widen where the
 * instruction needs it. The best of several repeats counts. Used by bench/peaks and by the kernel check's --bench. */
#ifndef OCT_BENCH_PEAK_H
#define OCT_BENCH_PEAK_H

#include "kernels/cpu.h"

/* What a kernel is compared with. */
typedef enum oct_peak_kind {
    OCT_PEAK_FLOAT, /* f32 fused multiply-add                                                              */
    OCT_PEAK_WIDE,  /* exact products of bytes for all operands: widened to 16 bits, or a dot instruction  */
    OCT_PEAK_BYTES, /* the fastest exact mix for weights that allow it: sums in 16 bits, or as OCT_PEAK_WIDE */
    OCT_PEAK_BF16,  /* products of bf16, summed in float32                                                 */
    OCT_PEAK_OTHER, /* for comparison only: saturates, or is exact for small operands only                  */
} oct_peak_kind;

typedef struct oct_peak {
    const char *name; /* instructions of one step */
    oct_peak_kind kind;
    oct_isa isa;   /* what it needs */
    unsigned macs; /* multiply-accumulates of one pass */
    void (*pass)(long n);
} oct_peak;

/* All mixes of this architecture; 0 where there are none. */
const oct_peak *oct_peaks(size_t *n);
/* Multiply-accumulates a second, about 0.2 s of measuring. p->isa must be within oct_isa_detect(). */
double oct_peak_measure(const oct_peak *p);
/* The fastest mix of a kind (OCT_PEAK_BYTES: also of OCT_PEAK_WIDE) within an instruction set, measured once a call; 0
 * where there is none. */
double oct_peak_of(oct_peak_kind kind, oct_isa have);

/* CPU time of this thread in seconds: what others do on a busy processor does not count. */
double oct_peak_seconds(void);

/* Bytes a second that loads bring from a block of this size, read again and again; 0 without memory. The size is
 * rounded up to 1 KB. */
double oct_peak_load(size_t bytes);
/* Cycles a second, by a chain of dependent additions; 0 where it is not known how. */
double oct_peak_clock(void);

#endif
