/* lib/kernels/dw/qdw_columns.h -- depthwise convolutions of 3x3 taps by image columns: packed weights. Internal.
 *
 * Channels are taken 16 at a time, in units of two runs of 8 (the halves that unpacking two registers of bytes gives).
 * A column is three input rows at one kx; its bytes stand in quads (r0, r1, r2, r1), one quad a channel. */
#ifndef OCT_KERNELS_QDW_COLUMNS_H
#define OCT_KERNELS_QDW_COLUMNS_H

#include "kernels/dw/dw_int.h"

/* Bytes of a packed unit. Narrow: s8[kx][2][8] quads (w0, a, w2, w1 - a), for exact kernels (w0, w1, w2, 0). Wide:
 * s16[kx][2][8] pairs (w0, w2), then s16[2][2][8] pairs of the middle row: (w1 of kx 0, of kx 1), (0, w1 of kx 2). */
enum { OCT_QDW_UNIT = 320, OCT_QDW_MIDDLE = 192 };

/* Of exact kernels narrow units are packed as blocks, too, of 64 channels, the last of 32 where there are as many left:
 * s8[kx][4][4][4] quads, of register i the channels 4 * i.. of each 16; 32 channels twice. */
enum { OCT_QDW_BLOCK = 64, OCT_QDW_BLOCK_BYTES = 3 * 4 * OCT_QDW_BLOCK };

static inline size_t oct_qdw_blocks(size_t c)
{
    return (c + OCT_QDW_BLOCK / 2) / OCT_QDW_BLOCK;
}

/* Channels at..at+7 and at+gap..at+gap+7. */
typedef struct oct_qdw_unit {
    size_t at, gap;
} oct_qdw_unit;

/* Units of c >= 16 channels: pairs that share 32 channels, then up to two of 16, the last of which ends with the
 * channels and may repeat some. */
static inline size_t oct_qdw_units(size_t c)
{
    return c / 32 * 2 + (c % 32 + 15) / 16;
}

static inline oct_qdw_unit oct_qdw_unit_at(size_t c, size_t u)
{
    if (u < c / 32 * 2)
        return (oct_qdw_unit){ u / 2 * 32 + u % 2 * 8, 16 };
    return (oct_qdw_unit){ u * 16 + 16 <= c ? u * 16 : c - 16, 8 };
}

/* Packed: a byte a unit, 1 where it is wide, then the units, then blocks. */
static inline size_t oct_qdw_columns_flags(size_t c)
{
    return oct_round_up(oct_qdw_units(c), 64);
}

/* Bytes of flags and units. */
static inline size_t oct_qdw_columns_units(size_t c)
{
    return oct_qdw_columns_flags(c) + oct_qdw_units(c) * OCT_QDW_UNIT;
}

static inline size_t oct_qdw_columns_size(size_t c)
{
    return oct_qdw_columns_units(c) + oct_qdw_blocks(c) * OCT_QDW_BLOCK_BYTES;
}

/* w: 9 taps of c >= 16 channels; exact: as the kernel's record says; packed: oct_qdw_columns_size(c) bytes, 64-byte
 * aligned. */
void oct_qdw_columns_pack(const oct_dw_weights *w, size_t c, bool exact, void *packed);

#endif
