/* lib/kernels/tiles.h -- AMX's tiles: eight registers of up to 16 rows of up to 64 bytes, and products of two added to
 * a third. Instructions name registers, so numbers of tiles are constants.
 *
 *   oct_tiles_begin(), oct_tiles_end()      this thread's tiles are 16 rows of 64 bytes; are no more. What has begun
 * ends before its thread does anything else oct_tiles_begin_shape(shape)            this thread's tiles are of other
 * shapes, below oct_tile_zero(t) oct_tile_load(t, p, stride)             row i is the bytes at p + i * stride; a stride
 * of 0 is the same row 16 times oct_tile_store(t, p, stride) oct_tile_dot_us(c, a, b), _ss           c[m][n] += sum of
 * a[m][k] * b[k / 4][n][k % 4], k < 64, in int32, wrapping: a of u8 or s8, b of s8 oct_tile_dot_bf16(c, a, b) the same
 * of bf16, k < 32, pairs instead of quads: c[m][n] = c[m][n] + (even + odd), each a chain of fma over its k from 0;
 * denormal numbers are zero before and after each operation (docs/arithmetic.md) OCT_TILES_SETTLE() what was written
 * before is in memory, where tiles find it, and what they stored will be read there: compilers' intrinsics do not say
 * so
 *
 * A build with OCT_SIMDE has them in C, for any machine; with OCT_TILES_NATIVE they are the CPU's. */
#ifndef OCT_KERNELS_TILES_H
#define OCT_KERNELS_TILES_H

#include "kernels/tiles_shape.h"

#if defined(OCT_SIMDE)
#include "kernels/tiles_portable.h"
#define oct_tiles_begin() oct_portable_tiles(&oct_tiles_whole)
#define oct_tiles_begin_shape(shape) oct_portable_tiles(shape)
#define oct_tiles_end() oct_portable_tiles(NULL)
#define oct_tile_zero oct_portable_zero
#define oct_tile_load oct_portable_load
#define oct_tile_store oct_portable_store
#define oct_tile_dot_us oct_portable_dot_us
#define oct_tile_dot_ss oct_portable_dot_ss
#define oct_tile_dot_bf16 oct_portable_dot_bf16
#define OCT_TILES_SETTLE() ((void)0)
#elif defined(__AMX_TILE__) || defined(__AMXTILE__) /* clang before 15 has the second */
#include <immintrin.h>
#define OCT_TILES_NATIVE
#define OCT_TILES_SETTLE() __asm__ volatile("" : : : "memory")
#define oct_tiles_begin() _tile_loadconfig(&oct_tiles_whole)
/* gcc's intrinsic names but the first 8 bytes of the shape: the others are written because their address is given away
 * before. */
#define oct_tiles_begin_shape(shape)                    \
    do {                                                \
        __asm__ volatile("" : : "r"(shape) : "memory"); \
        _tile_loadconfig(shape);                        \
    } while (0)
#define oct_tiles_end() _tile_release()
#define oct_tile_zero(t) _tile_zero(t)
#define oct_tile_load(t, p, stride) _tile_loadd(t, p, stride)
#define oct_tile_store(t, p, stride) _tile_stored(t, p, stride)
#define oct_tile_dot_us(c, a, b) _tile_dpbusd(c, a, b)
#define oct_tile_dot_ss(c, a, b) _tile_dpbssd(c, a, b)
#define oct_tile_dot_bf16(c, a, b) _tile_dpbf16ps(c, a, b)
#endif

#endif
