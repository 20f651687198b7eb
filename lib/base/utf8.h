/* lib/base/utf8.h -- characters of UTF-8, and how those are shown that must not be printed as they are. */
#ifndef OCT_BASE_UTF8_H
#define OCT_BASE_UTF8_H

#include "base/buf.h"

enum { OCT_BAD_CHAR = 0xFFFD };

/* The character at s (n > 0 bytes, of which none behind a NUL is read); *len: its bytes. What is no UTF-8 (surrogates and longer forms than
 * needed are none) is OCT_BAD_CHAR, a byte at a time. */
uint32_t oct_utf8_char(const char *s, size_t n, size_t *len);

/* Whether text for people and reports must not hold the character itself: controls of both sets, line separators, what turns
 * the direction of writing around, what cannot be seen, and what is no character (XML forbids it). */
bool oct_char_unsafe(uint32_t c);

/* The character at the NUL-terminated s (not empty), safe to print, in dst; its bytes in s. Names come from files, and must not
 * move the cursor: an unsafe character is shown as "\x1b", "\u2028" or "\U000e0001", and so is everything beyond 0x7e with
 * ascii; a byte that is no UTF-8 as "\xff". Handlers of signals may call it. */
size_t oct_char_clean(char dst[12], const char *s, bool ascii);
/* Appends s, character by character as above: valid UTF-8 in one line. */
void oct_text_clean(oct_buf *b, const char *s, bool ascii);

#endif
