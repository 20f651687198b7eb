#include "base/json.h"

#include "base/document_int.h"
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

static void text_item(oct_json *j, const char *key)
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

static void put_text(oct_json *j, const oct_item *x)
{
    char number[32];
    text_item(j, x->key);
    if (x->kind == OCT_ITEM_TEXT)
        quote(j->out, x->of.text);
    else if (x->kind == OCT_ITEM_WHOLE)
        oct_buf_printf(j->out, "%lld", (long long)x->of.whole);
    else if (x->kind == OCT_ITEM_NUMBER && isfinite(x->of.number))
        oct_buf_puts(j->out, oct_f64_text(number, x->of.number));
    else
        oct_buf_puts(j->out, x->kind == OCT_ITEM_TRUE ? "true" : x->kind == OCT_ITEM_FALSE ? "false" : "null");
}

static void put_item(oct_json *j, oct_item x)
{
    if (j->to)
        oct_document_add(j->to, x);
    else
        put_text(j, &x);
}

void oct_json_open(oct_json *j, const char *key, char kind)
{
    assert(j->depth < (int)sizeof j->kind);
    if (j->to) {
        oct_document_open(j->to, key, kind);
    } else {
        text_item(j, key);
        oct_buf_add(j->out, &kind, 1);
    }
    j->kind[j->depth] = kind;
    j->any[j->depth++] = false;
}

void oct_json_close(oct_json *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->to) {
        oct_document_close(j->to);
        return;
    }
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
    put_item(j, (oct_item){ .key = key, .kind = value ? OCT_ITEM_TEXT : OCT_ITEM_NULL, .of.text = value });
}

void oct_json_int(oct_json *j, const char *key, int64_t value)
{
    put_item(j, (oct_item){ .key = key, .kind = OCT_ITEM_WHOLE, .of.whole = value });
}

void oct_json_num(oct_json *j, const char *key, double value)
{
    put_item(j, (oct_item){ .key = key, .kind = OCT_ITEM_NUMBER, .of.number = value });
}

void oct_json_bool(oct_json *j, const char *key, bool value)
{
    put_item(j, (oct_item){ .key = key, .kind = value ? OCT_ITEM_TRUE : OCT_ITEM_FALSE });
}

void oct_json_null(oct_json *j, const char *key)
{
    put_item(j, (oct_item){ .key = key, .kind = OCT_ITEM_NULL });
}

/* The values of a list or an object are those behind it, up to its span. */
void oct_json_item(oct_json *j, const char *key, const oct_item *x)
{
    if (x->kind != OCT_ITEM_LIST && x->kind != OCT_ITEM_OBJECT) {
        oct_item own = *x;
        own.key = key;
        put_item(j, own);
        return;
    }
    oct_json_open(j, key, x->kind == OCT_ITEM_OBJECT ? '{' : '[');
    for (const oct_item *in = NULL; (in = oct_item_next(x, in));)
        oct_json_item(j, in->key, in);
    oct_json_close(j);
}

void oct_json_text(const oct_item *x, oct_buf *out)
{
    oct_json j = OCT_JSON_INIT(out);
    oct_json_item(&j, NULL, x);
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

void oct_report_open(oct_json *j, const char *schema)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "schema", schema);
    oct_json_str(j, "version", OCT_VERSION);
}
