#include "base/utf8.h"

#include <string.h>

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

typedef struct span {
    uint32_t lo, hi;
} span;

bool oct_char_unsafe(uint32_t c)
{
    static const span unsafe[] = {
        { 0, 0x1f },        { 0x7f, 0x9f },     { 0xad, 0xad },       { 0x61c, 0x61c },   { 0x180e, 0x180e },
        { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0xd800, 0xdfff }, { 0xfdd0, 0xfdef },
        { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
    };
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        if (c >= unsafe[i].lo && c <= unsafe[i].hi)
            return true;
    return (c & 0xfffe) == 0xfffe || c > 0x10ffff;
}

/* "\x1b": a letter and that many digits. */
static void put_escape(char *dst, char letter, int digits, uint32_t c)
{
    *dst++ = '\\';
    *dst++ = letter;
    while (digits-- > 0)
        *dst++ = "0123456789abcdef"[c >> 4 * digits & 15];
    *dst = 0;
}

size_t oct_char_clean(char dst[12], const char *s, bool ascii)
{
    size_t n;
    const uint32_t c = oct_utf8_char(s, 4, &n);
    const bool broken = c == OCT_BAD_CHAR && n == 1;
    if (broken || oct_char_unsafe(c) || (ascii && c > 0x7e)) {
        if (broken || c < 0x80)
            put_escape(dst, 'x', 2, (unsigned char)*s);
        else
            put_escape(dst, c < 0x10000 ? 'u' : 'U', c < 0x10000 ? 4 : 8, c);
        return n;
    }
    memcpy(dst, s, n);
    dst[n] = 0;
    return n;
}

/* A runner of GitHub takes "::" at the beginning of a line, and "##[" anywhere in it, for a command. Lines may be
 * broken at any space. */
bool oct_text_is_command(const char *all, const char *s)
{
    const bool first = s == all || s[-1] == ' ' || (s[-1] >= '\t' && s[-1] <= '\r');
    return (first && s[0] == ':' && s[1] == ':' && s[2] && s[2] != ' ') || (s[0] == '#' && s[1] == '#' && s[2] == '[');
}

size_t oct_text_clean_at(char dst[12], const char *all, size_t at, bool ascii)
{
    const char *s = all + at;
    if (!oct_text_is_command(all, s))
        return oct_char_clean(dst, s, ascii);
    put_escape(dst, 'x', 2, (unsigned char)*s);
    return 1;
}

void oct_text_clean(oct_buf *b, const char *s, bool ascii)
{
    char one[12];
    for (size_t at = 0; s[at];) {
        at += oct_text_clean_at(one, s, at, ascii);
        oct_buf_puts(b, one);
    }
}
