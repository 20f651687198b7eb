/* lib/kernels/nbits/nbits_s8_16_dotprod.c -- panels of 16 columns, 4 rows, sdot. */
#include "kernels/neon.h"

#define MR 4
#define NAME oct_nbits_s8_16__dotprod
#define DOT vdotq_s32

#include "kernels/nbits/nbits_neon_bytes.inc"
