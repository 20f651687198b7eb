/* lib/base/utf8.h -- decodes UTF-8, and escapes characters that must not be printed. */
#ifndef OCT_BASE_UTF8_H
#define OCT_BASE_UTF8_H

#include "base/buf.h"

enum { OCT_BAD_CHAR = 0xFFFD };

/* Decodes the character at s, which has n > 0 bytes; nothing after a NUL is read. *len: how many bytes the character
 * takes. Bytes that are not valid UTF-8 (surrogates and overlong forms included) are OCT_BAD_CHAR, one byte at a time.
 */
uint32_t oct_utf8_char(const char *s, size_t n, size_t *len);

/* Whether text for people and reports must not contain the character itself: C0 and C1 controls, line separators,
 * characters that change the direction of writing, invisible ones, and noncharacters (which XML forbids). */
bool oct_char_unsafe(uint32_t c);

/* Writes the character at the NUL-terminated s (not empty) into dst in a form that is safe to print; returns how many
 * bytes of s it took. Names come from files, and must not move the cursor: an unsafe character is shown as "\x1b",
 * "\u2028" or "\U000e0001", and with ascii so is everything beyond 0x7e; a byte that is not UTF-8 as "\xff". Signal
 * handlers may call it. */
size_t oct_char_clean(char dst[12], const char *s, bool ascii);
/* The same for the character at offset `at` of a text. Text that a GitHub runner would interpret as a command is shown
 * as "\x3a:" or "\x23#[". */
size_t oct_text_clean_at(char dst[12], const char *all, size_t at, bool ascii);
/* Whether the text at s, inside the text `all`, would be interpreted as such a command. Formats with escapes of their
 * own use these instead, so that parsers get the original text. */
bool oct_text_is_command(const char *all, const char *s);
/* Appends s, each character as above: the result is valid UTF-8 in one line. */
void oct_text_clean(oct_buf *b, const char *s, bool ascii);

#endif
