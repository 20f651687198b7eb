#include "base/utf8.h"

uint32_t oct_utf8_char(const char *s, size_t n, size_t *len)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = (const unsigned char *)s;
    size_t k = p[0] < 0x80 ? 1 : (p[0] & 0xE0) == 0xC0 ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : (p[0] & 0xF8) == 0xF0 ? 4 : 0;
    *len = 1;
    if (k == 0 || k > n)
        return OCT_BAD_CHAR;
    if (k == 1)
        return p[0];
    uint32_t c = p[0] & (0x7Fu >> k);
    for (size_t i = 1; i < k; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return OCT_BAD_CHAR;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < least[k] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return OCT_BAD_CHAR;
    *len = k;
    return c;
}
