/* lib/base/utf8.h -- characters of UTF-8. */
#ifndef OCT_BASE_UTF8_H
#define OCT_BASE_UTF8_H

#include "base/status.h"

enum { OCT_BAD_CHAR = 0xFFFD };

/* The character at s (n > 0 bytes, of which none behind a NUL is read); *len: its bytes. What is no UTF-8 (surrogates and longer forms than
 * needed are none) is OCT_BAD_CHAR, a byte at a time. */
uint32_t oct_utf8_char(const char *s, size_t n, size_t *len);

#endif
