/* lib/observers/xsum.c -- exact sums in fixed point. */
#include "observers/xsum.h"

#include <math.h>
#include <string.h>

/* Adds the 128-bit value (hi, lo) << (64 * at), sign-extended and with carry, up to the limb from which on none
 * changes. */
static void add_at(oct_xsum *s, int at, uint64_t lo, uint64_t hi, bool negative)
{
    const uint64_t fill = negative ? UINT64_MAX : 0;
    unsigned carry = 0;
    for (int i = at; i < OCT_XSUM_LIMBS; i++) {
        if (i > at + 1 && carry == negative)
            return; /* nothing is added, or -1 and a carry */
        uint64_t v = i == at ? lo : i == at + 1 ? hi : fill;
        uint64_t t = s->limb[i] + v;
        unsigned c = t < v;
        t += carry;
        c |= t < carry;
        s->limb[i] = t;
        carry = c;
    }
}

void oct_xsum_add(oct_xsum *s, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52 & 2047);
    uint64_t m = bits & ((1ull << 52) - 1);
    if (e == 0) /* zero: subnormal doubles are not multiples of 2^-320 */
        return;
    m |= 1ull << 52;
    int at = e - 1075 - OCT_XSUM_EXP; /* position of m's lowest bit */
    if (at < 0) {
        m >>= -at; /* exact, because only zero bits are lost */
        at = 0;
    }
    int word = at / 64, shift = at % 64;
    uint64_t lo = m << shift, hi = shift ? m >> (64 - shift) : 0;
    bool negative = bits >> 63;
    if (negative) {
        lo = ~lo + 1;
        hi = ~hi + (lo == 0);
    }
    add_at(s, word, lo, hi, negative);
}

void oct_xsum_merge(oct_xsum *s, const oct_xsum *o)
{
    unsigned carry = 0;
    for (int i = 0; i < OCT_XSUM_LIMBS; i++) {
        uint64_t t = s->limb[i] + o->limb[i];
        unsigned c = t < o->limb[i];
        t += carry;
        c |= t < carry;
        s->limb[i] = t;
        carry = c;
    }
}

/* The magnitude of s. Returns whether s is negative. */
static bool magnitude(const oct_xsum *s, uint64_t m[OCT_XSUM_LIMBS])
{
    bool negative = s->limb[OCT_XSUM_LIMBS - 1] >> 63;
    unsigned carry = 1;
    for (int i = 0; i < OCT_XSUM_LIMBS; i++) {
        m[i] = negative ? ~s->limb[i] + carry : s->limb[i];
        carry = carry && m[i] == 0;
    }
    return negative;
}

/* The 64 bits of m from bit `at` on. Bits below 0 are zero. */
static uint64_t bits_at(const uint64_t m[OCT_XSUM_LIMBS], int at)
{
    if (at < 0)
        return m[0] << -at;
    int w = at / 64, s = at % 64;
    uint64_t lo = m[w] >> s;
    return s && w + 1 < OCT_XSUM_LIMBS ? lo | m[w + 1] << (64 - s) : lo;
}

double oct_xsum_value(const oct_xsum *s)
{
    uint64_t m[OCT_XSUM_LIMBS];
    bool negative = magnitude(s, m);
    int top = OCT_XSUM_LIMBS - 1;
    while (top >= 0 && m[top] == 0)
        top--;
    if (top < 0)
        return 0;
    int high = top * 64 + 63 - __builtin_clzll(m[top]); /* the leading bit */
    int low = high - 63;
    uint64_t v = bits_at(m, low);
    bool sticky = false;
    for (int i = 0; i * 64 < low; i++)
        sticky |= (low - i * 64 >= 64 ? m[i] : m[i] & ((1ull << (low - i * 64)) - 1)) != 0;
    /* The lowest of the 64 bits represents all bits that were cut off, so that the conversion rounds as if it had
     * them. */
    double d = ldexp((double)(v | sticky), low + OCT_XSUM_EXP);
    return negative ? -d : d;
}

void oct_xsum_text(const oct_xsum *s, oct_buf *out)
{
    uint64_t m[OCT_XSUM_LIMBS];
    bool negative = magnitude(s, m);
    int high = -1, low = -1;
    for (int i = 0; i < OCT_XSUM_LIMBS * 16; i++)
        if (m[i / 16] >> (4 * (i % 16)) & 15) {
            high = i;
            if (low < 0)
                low = i;
        }
    if (high < 0) {
        oct_buf_puts(out, "0p0");
        return;
    }
    if (negative)
        oct_buf_add(out, "-", 1);
    for (int i = high; i >= low; i--)
        oct_buf_add(out, &"0123456789abcdef"[m[i / 16] >> (4 * (i % 16)) & 15], 1);
    oct_buf_printf(out, "p%d", 4 * low + OCT_XSUM_EXP);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool oct_xsum_parse(oct_xsum *s, const char *p, size_t n)
{
    size_t i = 0, digits;
    bool negative = n && p[0] == '-';
    i += negative;
    size_t first = i;
    while (i < n && hex_digit(p[i]) >= 0)
        i++;
    digits = i - first;
    if (digits == 0 || digits > OCT_XSUM_LIMBS * 16 || i >= n || p[i++] != 'p')
        return false;
    bool down = i < n && p[i] == '-';
    i += down;
    int e = 0;
    size_t from = i;
    for (; i < n && p[i] >= '0' && p[i] <= '9' && i - from < 4; i++)
        e = e * 10 + (p[i] - '0');
    if (i != n || i == from)
        return false;
    memset(s, 0, sizeof *s);
    if (digits == 1 && p[first] == '0')
        return true;
    int at = (down ? -e : e) - OCT_XSUM_EXP;
    if (at < 0 || at % 4 != 0 || (size_t)at / 4 + digits > OCT_XSUM_LIMBS * 16 - 1)
        return false;
    for (size_t d = 0; d < digits; d++) {
        size_t pos = (size_t)at / 4 + digits - 1 - d;
        s->limb[pos / 16] |= (uint64_t)hex_digit(p[first + d]) << (4 * (pos % 16));
    }
    if (negative) {
        unsigned carry = 1;
        for (int k = 0; k < OCT_XSUM_LIMBS; k++) {
            s->limb[k] = ~s->limb[k] + carry;
            carry = carry && s->limb[k] == 0;
        }
    }
    return true;
}
