#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void quote(oct_buf *b, const char *s)
{
    oct_buf_puts(b, "\"");
    const char *const all = s;
    for (size_t n; *s; s += n) {
        const uint32_t c = oct_utf8_char(s, 4, &n);
        if (oct_text_is_command(all, s))
            oct_buf_printf(b, "\\u%04x", (unsigned)c);
        else if (c == '"' || c == '\\')
            oct_buf_printf(b, "\\%c", (int)c);
        else if (c == '\n')
            oct_buf_puts(b, "\\n");
        else if (c == OCT_BAD_CHAR && n == 1)
            oct_buf_printf(b, "\\\\x%02x", (unsigned char)*s);
        else if (!oct_char_unsafe(c))
            oct_buf_add(b, s, n);
        else if (c < 0x10000)
            oct_buf_printf(b, "\\u%04x", (unsigned)c);
        else
            oct_buf_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)), (unsigned)(0xdc00 + (c & 0x3ff)));
    }
    oct_buf_puts(b, "\"");
}

static void item(oct_json *j, const char *key)
{
    if (j->depth == 0)
        return;
    int level = j->depth - 1;
    assert((key != NULL) == (j->kind[level] == '{'));
    oct_buf_puts(j->out, j->any[level] ? ",\n" : "\n");
    j->any[level] = true;
    for (int i = 0; i < j->depth; i++)
        oct_buf_puts(j->out, "  ");
    if (key) {
        quote(j->out, key);
        oct_buf_puts(j->out, ": ");
    }
}

void oct_json_open(oct_json *j, const char *key, char kind)
{
    assert(j->depth < (int)sizeof j->kind);
    item(j, key);
    oct_buf_add(j->out, &kind, 1);
    j->kind[j->depth] = kind;
    j->any[j->depth++] = false;
}

void oct_json_close(oct_json *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->any[j->depth]) {
        oct_buf_puts(j->out, "\n");
        for (int i = 0; i < j->depth; i++)
            oct_buf_puts(j->out, "  ");
    }
    oct_buf_puts(j->out, j->kind[j->depth] == '{' ? "}" : "]");
    if (j->depth == 0)
        oct_buf_puts(j->out, "\n");
}

void oct_json_str(oct_json *j, const char *key, const char *value)
{
    item(j, key);
    if (value)
        quote(j->out, value);
    else
        oct_buf_puts(j->out, "null");
}

void oct_json_int(oct_json *j, const char *key, int64_t value)
{
    item(j, key);
    oct_buf_printf(j->out, "%lld", (long long)value);
}

void oct_json_num(oct_json *j, const char *key, double value)
{
    char text[32];
    item(j, key);
    oct_buf_puts(j->out, isfinite(value) ? oct_f64_text(text, value) : "null");
}

void oct_json_bool(oct_json *j, const char *key, bool value)
{
    item(j, key);
    oct_buf_puts(j->out, value ? "true" : "false");
}

void oct_json_null(oct_json *j, const char *key)
{
    item(j, key);
    oct_buf_puts(j->out, "null");
}

void oct_json_rows(oct_json *j, const char *key, const void *row, size_t n, size_t size,
                   void (*put)(oct_json *j, const void *row))
{
    oct_json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        oct_json_open(j, NULL, '{');
        put(j, (const char *)row + i * size);
        oct_json_close(j);
    }
    oct_json_close(j);
}

void oct_json_texts(oct_json *j, const char *key, const char *const *text, size_t n)
{
    oct_json_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        oct_json_str(j, NULL, text[i]);
    oct_json_close(j);
}
