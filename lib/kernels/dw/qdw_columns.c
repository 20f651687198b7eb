/* lib/kernels/dw/qdw_columns.c -- packs 3x3 depthwise weights, each unit of channels in the fastest exact form. */
#include "kernels/dw/qdw_columns.h"

#include <string.h>

/* The part of w that fits a byte beside `other` in a pair: positive weights of a pair add up to 128 at most, negative
 * ones to -128, so that 255 times either fits 16 bits. */
static int beside(int w, int other)
{
    if (w >= 0) {
        const int room = other > 1 ? 128 - other : 127;
        return w < room ? w : room;
    }
    const int room = other < 0 ? -128 - other : -128;
    return w > room ? w : room;
}

static bool is_byte(int w)
{
    return w >= -128 && w <= 127;
}

/* Narrow quad of a column's weights: the middle one is shared between both pairs where these are added in 16 bits.
 * False when they have no room for it. */
static bool quad(bool exact, int w0, int w1, int w2, int8_t to[4])
{
    if (!is_byte(w0) || !is_byte(w2) || (exact && !is_byte(w1)))
        return false;
    const int first = exact ? w1 : beside(w1, w0), second = w1 - first;
    to[0] = (int8_t)w0, to[1] = (int8_t)first, to[2] = (int8_t)w2, to[3] = (int8_t)second;
    return exact || beside(second, w2) == second;
}

/* Channel of a unit in lane i of register k. */
static size_t channel(oct_qdw_unit u, size_t k, size_t i)
{
    return u.at + i / 4 * u.gap + k * 4 + i % 4;
}

static bool pack_narrow(const oct_dw_weights *w, oct_qdw_unit u, bool exact, int8_t *to)
{
    for (size_t kx = 0; kx < 3; kx++)
        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; i < 8; i++, to += 4) {
                const size_t c = channel(u, k, i);
                if (!quad(exact, oct_dw_weight(w, c, kx), oct_dw_weight(w, c, kx + 3), oct_dw_weight(w, c, kx + 6), to))
                    return false;
            }
    return true;
}

static void pack_wide(const oct_dw_weights *w, oct_qdw_unit u, int16_t *to)
{
    int16_t *middle = to + OCT_QDW_MIDDLE / sizeof *to;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < 8; i++) {
            const size_t c = channel(u, k, i), at = (k * 8 + i) * 2;
            for (size_t kx = 0; kx < 3; kx++) {
                to[kx * 32 + at] = (int16_t)oct_dw_weight(w, c, kx);
                to[kx * 32 + at + 1] = (int16_t)oct_dw_weight(w, c, kx + 6);
            }
            middle[at] = (int16_t)oct_dw_weight(w, c, 3);
            middle[at + 1] = (int16_t)oct_dw_weight(w, c, 4);
            middle[32 + at] = 0;
            middle[32 + at + 1] = (int16_t)oct_dw_weight(w, c, 5);
        }
}

/* Channels from `from` on; blocks with weights that are no bytes are not read. */
static void pack_block(const oct_dw_weights *w, size_t from, size_t channels, int8_t *to)
{
    for (size_t kx = 0; kx < 3; kx++)
        for (size_t i = 0; i < OCT_QDW_BLOCK; i++, to += 4) {
            const size_t c = from + (i % 16 / 4 * 16 + i / 16 * 4 + i % 4) % channels;
            quad(true, oct_dw_weight(w, c, kx), oct_dw_weight(w, c, kx + 3), oct_dw_weight(w, c, kx + 6), to);
        }
}

void oct_qdw_columns_pack(const oct_dw_weights *w, size_t c, bool exact, void *packed)
{
    uint8_t *wide = packed, *to = wide + oct_qdw_columns_flags(c);
    memset(packed, 0, oct_qdw_columns_size(c));
    for (size_t i = 0; i < oct_qdw_units(c); i++, to += OCT_QDW_UNIT) {
        const oct_qdw_unit u = oct_qdw_unit_at(c, i);
        wide[i] = !pack_narrow(w, u, exact, (int8_t *)to);
        if (wide[i])
            pack_wide(w, u, (int16_t *)(void *)to);
    }
    for (size_t at = 0; exact && at < oct_qdw_blocks(c) * OCT_QDW_BLOCK; at += OCT_QDW_BLOCK, to += OCT_QDW_BLOCK_BYTES)
        pack_block(w, at, c - at < OCT_QDW_BLOCK ? OCT_QDW_BLOCK / 2 : OCT_QDW_BLOCK, (int8_t *)to);
}
