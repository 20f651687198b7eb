/* lib/observers/stats_scan.h -- passes over float32 arrays, four at a time on any machine. Inside the layer. */
#ifndef OCT_OBSERVERS_STATS_SCAN_H
#define OCT_OBSERVERS_STATS_SCAN_H

#include "base/status.h"

/* Smallest and largest of n >= 1 values without NaN; never -0. */
void oct_scan_extent(const float *x, size_t n, float *min, float *max);
uint64_t oct_scan_count(const float *x, size_t n, float v); /* values that equal v */
bool oct_scan_subnormal(const float *x, size_t n);          /* whether one is subnormal (zero is not) */

#endif
