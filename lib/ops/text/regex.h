/* lib/ops/text/regex.h -- regular expressions in the syntax of RE2, matched in time linear in text and pattern: a set
 * of states is moved along the text, nothing is tried twice. Characters are those of UTF-8; \d, \w, \s and [[:names:]]
 * are ASCII's. Not read: back references and look-around (RE2 has none either), \p{..}, \Q..\E. */
#ifndef OCT_OPS_REGEX_H
#define OCT_OPS_REGEX_H

#include "base/mem.h"

typedef struct oct_regex oct_regex;

/* OCT_EMALFORMED for what is no expression, OCT_EUNSUPPORTED for what is not read or grows too large; the message says
 * where. */
oct_status oct_regex_compile(oct_arena *a, const char *pattern, size_t n, oct_regex **re, oct_err *err);
/* Whether the whole text matches. Uses memory of re: one caller at a time. */
bool oct_regex_full_match(oct_regex *re, const char *s, size_t n);

#endif
