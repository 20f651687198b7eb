/* lib/ops/text/text.h -- characters of strings: UTF-8, and upper and lower case of the alphabets that have simple ones
 * (Latin, Greek, Cyrillic, Armenian), the same on every machine whatever its locale. */
#ifndef OCT_OPS_TEXT_H
#define OCT_OPS_TEXT_H

#include "base/utf8.h"
#include "graph/graph.h"

/* Writes a character, at most 4 bytes; returns how many. */
size_t oct_text_put(char dst[4], uint32_t c);
uint32_t oct_text_lower(uint32_t c);
uint32_t oct_text_upper(uint32_t c);
/* s in lower or upper case, in the arena; bytes that are no UTF-8 stay. false: out of memory. */
bool oct_text_cased(oct_arena *a, oct_str s, bool upper, oct_str *out);
bool oct_text_same(oct_str a, oct_str b);

#endif
