#include "ops/text/text.h"

#include <string.h>

size_t oct_text_put(char dst[4], uint32_t c)
{
    if (c < 0x80) {
        dst[0] = (char)c;
        return 1;
    }
    size_t k = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = k; i-- > 1; c >>= 6)
        dst[i] = (char)(0x80 | (c & 0x3F));
    dst[0] = (char)((0xF00u >> k & 0xFF) | c);
    return k;
}

/* Ranges of letters: a capital is `step` below its small one; step 1: they take turns, the first being a capital. */
static const struct letters {
    uint32_t first, last; /* capitals; with step 1 of both */
    uint32_t step;
} alphabets[] = {
    { 'A', 'Z', 32 },      { 0xC0, 0xD6, 32 },    { 0xD8, 0xDE, 32 },   { 0x100, 0x12F, 1 },  { 0x132, 0x137, 1 },
    { 0x139, 0x148, 1 },   { 0x14A, 0x177, 1 },   { 0x179, 0x17E, 1 },  { 0x386, 0x386, 38 }, { 0x388, 0x38A, 37 },
    { 0x38C, 0x38C, 64 },  { 0x38E, 0x38F, 63 },  { 0x391, 0x3A1, 32 }, { 0x3A3, 0x3AB, 32 }, { 0x400, 0x40F, 80 },
    { 0x410, 0x42F, 32 },  { 0x460, 0x481, 1 },   { 0x48A, 0x4BF, 1 },  { 0x4D0, 0x52F, 1 },  { 0x531, 0x556, 48 },
    { 0x1E00, 0x1E95, 1 }, { 0x1EA0, 0x1EFF, 1 },
};

uint32_t oct_text_lower(uint32_t c)
{
    if (c == 0x178)
        return 0xFF;
    for (size_t i = 0; i < OCT_COUNT(alphabets); i++) {
        const struct letters *l = &alphabets[i];
        if (c >= l->first && c <= l->last)
            return l->step > 1 ? c + l->step : c + ((c - l->first) % 2 == 0);
    }
    return c;
}

uint32_t oct_text_upper(uint32_t c)
{
    if (c == 0xFF)
        return 0x178;
    if (c == 0x3C2) /* sigma at the end of a word */
        return 0x3A3;
    for (size_t i = 0; i < OCT_COUNT(alphabets); i++) {
        const struct letters *l = &alphabets[i];
        uint32_t shift = l->step > 1 ? l->step : 0;
        if (c >= l->first + shift && c <= l->last + shift)
            return shift ? c - shift : c - (c - l->first) % 2;
    }
    return c;
}

bool oct_text_cased(oct_arena *a, oct_str s, bool upper, oct_str *out)
{
    /* No letter of these alphabets takes more bytes in the other case than twice its own. */
    char *to = oct_arena_alloc(a, 2 * s.n + 4);
    size_t n = 0, len;
    if (!to)
        return false;
    for (size_t i = 0; i < s.n; i += len) {
        uint32_t c = oct_utf8_char(s.s + i, s.n - i, &len);
        if (c == OCT_BAD_CHAR) {
            memcpy(to + n, s.s + i, len);
            n += len;
        } else {
            n += oct_text_put(to + n, upper ? oct_text_upper(c) : oct_text_lower(c));
        }
    }
    *out = (oct_str){ to, n };
    return true;
}

bool oct_text_same(oct_str a, oct_str b)
{
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}
