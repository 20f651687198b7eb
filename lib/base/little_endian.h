/* lib/base/little_endian.h -- little-endian numbers in the bytes of files, whatever the order of the machine. The
 * caller has checked that the bytes are there. */
#ifndef OCT_BASE_LITTLE_ENDIAN_H
#define OCT_BASE_LITTLE_ENDIAN_H

#include "base/buf.h"

#include <assert.h>
#include <stdint.h>

static inline uint32_t oct_le_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t oct_le_u32(const uint8_t *p)
{
    return oct_le_u16(p) | oct_le_u16(p + 2) << 16;
}

static inline uint64_t oct_le_u64(const uint8_t *p)
{
    return oct_le_u32(p) | (uint64_t)oct_le_u32(p + 4) << 32;
}

/* Writes the lower n bytes of v to p; n: at most 8. */
static inline void oct_le_put(uint8_t *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Appends the lower n bytes of v; n: at most 8. */
static inline void oct_buf_add_le(oct_buf *b, uint64_t v, size_t n)
{
    uint8_t le[8];
    assert(n <= sizeof le);
    oct_le_put(le, v, sizeof le);
    oct_buf_add(b, le, n);
}

#endif
