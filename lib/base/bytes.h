/* lib/base/bytes.h -- numbers and texts in the bytes of files that Octet writes for itself (sections.h): little-endian,
 * appended to a buffer, and checked as they are read. */
#ifndef OCT_BASE_BYTES_H
#define OCT_BASE_BYTES_H

#include "base/little_endian.h"

#include <string.h>

static inline void oct_buf_add_u64(oct_buf *b, uint64_t v)
{
    oct_buf_add_le(b, v, 8);
}

static inline void oct_buf_add_u32(oct_buf *b, uint32_t v)
{
    oct_buf_add_le(b, v, 4);
}

static inline void oct_buf_add_f64(oct_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    oct_buf_add_u64(b, bits);
}

static inline void oct_buf_add_f32(oct_buf *b, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    oct_buf_add_u32(b, bits);
}

/* Its size with the NUL at its end, and the bytes. NULL and "" are different. */
static inline void oct_buf_add_text(oct_buf *b, const char *s)
{
    const size_t n = s ? strlen(s) + 1 : 0;
    oct_buf_add_u64(b, n);
    oct_buf_add(b, s ? s : "", n);
}

/* The remaining bytes of some data, which are borrowed. Reading beyond their end gives 0 and sets `bad`, which is
 * checked once at the end. */
typedef struct oct_bytes {
    const uint8_t *p;
    size_t n;
    bool bad;
} oct_bytes;

/* A condition that valid data meet. */
static inline void oct_bytes_need(oct_bytes *r, bool so)
{
    if (!so)
        r->bad = true;
}

/* The next n bytes; NULL: there are fewer. */
static inline const uint8_t *oct_bytes_take(oct_bytes *r, uint64_t n)
{
    if (r->bad || n > r->n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->n -= (size_t)n;
    return p;
}

static inline uint64_t oct_bytes_u64(oct_bytes *r)
{
    const uint8_t *p = oct_bytes_take(r, 8);
    return p ? oct_le_u64(p) : 0;
}

static inline uint32_t oct_bytes_u32(oct_bytes *r)
{
    const uint8_t *p = oct_bytes_take(r, 4);
    return p ? oct_le_u32(p) : 0;
}

static inline double oct_bytes_f64(oct_bytes *r)
{
    const uint64_t bits = oct_bytes_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline float oct_bytes_f32(oct_bytes *r)
{
    const uint32_t bits = oct_bytes_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A count of things of at least `least` bytes each. If there is no room for so many, 0, and `bad` is set. */
static inline size_t oct_bytes_count(oct_bytes *r, size_t least)
{
    const uint64_t n = oct_bytes_u64(r);
    oct_bytes_need(r, n <= r->n / least);
    return r->bad ? 0 : (size_t)n;
}

/* The next n bytes, to be read separately. */
static inline oct_bytes oct_bytes_part(oct_bytes *r, uint64_t n)
{
    const uint8_t *p = oct_bytes_take(r, n);
    return (oct_bytes){ p, p ? (size_t)n : 0, p == NULL };
}

/* A text, borrowed from the data; NULL: it is NULL, or the data are bad. */
static inline const char *oct_bytes_text(oct_bytes *r)
{
    const uint64_t n = oct_bytes_u64(r);
    const char *s = n ? (const char *)oct_bytes_take(r, n) : NULL;
    oct_bytes_need(r, !s || memchr(s, 0, (size_t)n) == s + n - 1);
    return r->bad ? NULL : s;
}

#endif
