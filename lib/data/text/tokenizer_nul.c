/* lib/data/text/tokenizer_nul.c -- U+0000 in the words of a tokenizer. The JSON reader takes none in the names of an
 * object's members, which a vocab is made of. So the character is written as another one that no text has, and a digit;
 * where a file has that other character, it is written as itself and another digit. */
#include "data/text/tokenizer_int.h"

#include <string.h>
#include <strings.h>

#define MARK "\xef\xb7\x90" /* U+FDD0, a noncharacter */
enum { MARK_BYTES = 3, ESCAPE_BYTES = 6 };

/* How many bytes at t are one of the two characters, and the digit for it; 0: none. */
static size_t marked_at(const char *t, size_t n, char *digit)
{
    if (n >= MARK_BYTES && memcmp(t, MARK, MARK_BYTES) == 0) {
        *digit = '1';
        return MARK_BYTES;
    }
    if (n < ESCAPE_BYTES || t[0] != '\\' || t[1] != 'u')
        return 0;
    *digit = memcmp(t + 2, "0000", 4) == 0 ? '0' : strncasecmp(t + 2, "fdd0", 4) == 0 ? '1' : 0;
    return *digit ? ESCAPE_BYTES : 0;
}

/* Bytes at t that are read together: an escape of JSON is two, so that a backslash behind a backslash begins none. */
static size_t step_at(const char *t, size_t n)
{
    return t[0] == '\\' && n > 1 ? 2 : 1;
}

oct_status oct_nul_mark(const char *json, size_t n, oct_buf *to, oct_err *err)
{
    size_t from = 0, len;
    char digit;
    for (size_t i = 0; i < n; i += len) {
        if ((len = marked_at(json + i, n - i, &digit)) == 0) {
            len = step_at(json + i, n - i);
            continue;
        }
        oct_buf_add(to, json + from, i - from);
        oct_buf_puts(to, MARK);
        oct_buf_add(to, &digit, 1);
        from = i + len;
    }
    if (from)
        oct_buf_add(to, json + from, n - from);
    return to->failed ? oct_nomem(err) : OCT_OK;
}

const char *oct_nul_plain(const char *text, size_t *n, oct_arena *a)
{
    const char *at = strstr(text, MARK);
    *n = strlen(text);
    if (!at)
        return text;
    char *to = oct_arena_strndup(a, text, *n);
    *n = 0;
    for (size_t i = 0; to && text[i];) {
        const bool marked = strncmp(text + i, MARK, MARK_BYTES) == 0;
        if (marked && text[i + MARK_BYTES] == '0') {
            to[(*n)++] = 0;
        } else {
            const size_t len = marked ? MARK_BYTES : 1;
            memcpy(to + *n, text + i, len);
            *n += len;
        }
        i += marked ? MARK_BYTES + 1 : 1;
    }
    return to;
}

bool oct_nul_within(oct_tree *t)
{
    const char *name = oct_tree_text(t);
    oct_tree *member;
    bool any = name && strstr(name, MARK);
    for (void *at = NULL; !any && oct_tree_is_object(t) && oct_tree_next(t, &at, &name, &member);)
        any = strstr(name, MARK) || oct_nul_within(member);
    for (size_t i = 0; !any && oct_tree_is_list(t) && i < oct_tree_count(t); i++)
        any = oct_nul_within(oct_tree_at(t, i));
    return any;
}
