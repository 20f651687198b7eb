/* lib/observers/xsum.h -- exact sums of float32 values and of their squares. A sum is a fixed-point number of 704 bits,
 * so that additions are exact and their order does not matter. */
#ifndef OCT_OBSERVERS_XSUM_H
#define OCT_OBSERVERS_XSUM_H

#include "base/buf.h"

#define OCT_XSUM_LIMBS 11
#define OCT_XSUM_EXP (-320) /* weight of the lowest bit: 2^-320 */

/* Two's complement, lowest limb first. All zero is the empty sum. There is room for 2^64 squares of float32. */
typedef struct oct_xsum {
    uint64_t limb[OCT_XSUM_LIMBS];
} oct_xsum;

/* Adds a finite double. It must be a multiple of 2^-320 and below 2^320 in magnitude, which holds for
 * every float32, every product of two, and every exact partial sum of them. */
void oct_xsum_add(oct_xsum *s, double x);
void oct_xsum_merge(oct_xsum *s, const oct_xsum *o);
/* The nearest double (ties to even). */
double oct_xsum_value(const oct_xsum *s);
/* Appends "-1a2bp-24": a hexadecimal integer without trailing zero digits times a power of two. */
void oct_xsum_text(const oct_xsum *s, oct_buf *out);
/* Parses p[0..n), which must have that form. false: it does not, or the number does not fit. */
bool oct_xsum_parse(oct_xsum *s, const char *p, size_t n);

#endif
