/* lib/eval/parts/part_bytes.h -- numbers and texts of a part's file (part.h): little-endian, checked as they are read.
 * For those who write and read parts. */
#ifndef OCT_EVAL_PART_BYTES_H
#define OCT_EVAL_PART_BYTES_H

#include "base/little_endian.h"
#include "base/mem.h"
#include "eval/parts/part.h"

#include <string.h>

#define EV_PART_MAGIC "octet-eval-part 1\n" /* the first line of the file */

static inline void ev_put_u64(oct_buf *b, uint64_t v)
{
    oct_buf_add_le(b, v, 8);
}

static inline void ev_put_u32(oct_buf *b, uint32_t v)
{
    oct_buf_add_le(b, v, 4);
}

static inline void ev_put_f64(oct_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    ev_put_u64(b, bits);
}

static inline void ev_put_f32(oct_buf *b, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    ev_put_u32(b, bits);
}

/* NULL and "" are different. */
static inline void ev_put_text(oct_buf *b, const char *s)
{
    ev_put_u64(b, s ? strlen(s) + 1 : 0);
    if (s)
        oct_buf_add(b, s, strlen(s));
}

/* The remaining bytes of some data. Reading beyond their end gives 0 and sets `bad`, which is checked once at the
 * end. */
struct ev_bytes {
    const uint8_t *p;
    size_t n;
    bool bad;
};

/* A condition that valid data meet. */
static inline void ev_need(ev_bytes *r, bool so)
{
    if (!so)
        r->bad = true;
}

/* The next n bytes; NULL: there are fewer. */
static inline const uint8_t *ev_take(ev_bytes *r, size_t n)
{
    if (r->bad || n > r->n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->n -= n;
    return p;
}

static inline uint64_t ev_take_u64(ev_bytes *r)
{
    const uint8_t *p = ev_take(r, 8);
    return p ? oct_le_u64(p) : 0;
}

static inline uint32_t ev_take_u32(ev_bytes *r)
{
    const uint8_t *p = ev_take(r, 4);
    return p ? oct_le_u32(p) : 0;
}

static inline double ev_take_f64(ev_bytes *r)
{
    const uint64_t bits = ev_take_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline float ev_take_f32(ev_bytes *r)
{
    const uint32_t bits = ev_take_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A count of things of at least `least` bytes each. If there is no room for so many, 0, and `bad` is set. */
static inline size_t ev_take_count(ev_bytes *r, size_t least)
{
    const uint64_t n = ev_take_u64(r);
    if (least && n > r->n / least)
        r->bad = true;
    return r->bad ? 0 : (size_t)n;
}

/* The next n bytes, to be read separately. */
static inline ev_bytes ev_take_bytes(ev_bytes *r, uint64_t n)
{
    if (n > r->n)
        r->bad = true;
    const uint8_t *p = r->bad ? NULL : ev_take(r, (size_t)n);
    return (ev_bytes){ p, p ? (size_t)n : 0, p == NULL };
}

/* A string in arena; or NULL: the string is NULL, the data are bad, or (*memory) memory ran out. */
static inline const char *ev_take_text(ev_bytes *r, oct_arena *a, bool *memory)
{
    const size_t n = ev_take_count(r, 1);
    if (!n)
        return NULL;
    const uint8_t *p = ev_take(r, n - 1);
    if (p && memchr(p, 0, n - 1))
        r->bad = true;
    char *s = p && !r->bad ? oct_arena_strndup(a, (const char *)p, n - 1) : NULL;
    *memory |= !s && !r->bad;
    return s;
}

#endif
