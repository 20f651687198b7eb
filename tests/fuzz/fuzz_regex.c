/* Fuzz target: a regular expression and, behind the first newline, a text to match it with. */
#include "ops/text/regex.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size && size <= LONGEST ? memchr(data, '\n', size) : NULL;
    oct_err err = OCT_ERR_INIT;
    oct_regex *re;
    oct_arena *a = end ? oct_arena_create() : NULL;
    if (!a)
        return 0;
    const size_t n = (size_t)(end - data);
    const char *text = (const char *)end + 1;
    if (oct_regex_compile(a, (const char *)data, n, &re, &err) == OCT_OK) {
        const bool first = oct_regex_full_match(re, text, size - n - 1);
        if (oct_regex_full_match(re, text, size - n - 1) != first) /* nothing of one match is left for the next */
            abort();
    }
    oct_arena_destroy(a);
    return 0;
}
