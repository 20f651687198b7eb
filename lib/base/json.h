/* lib/base/json.h -- writing JSON into a buffer: commas, quoting and numbers are taken care of.
 *
 *   oct_json j = OCT_JSON_INIT(&buf);
 *   oct_json_open(&j, NULL, '{');
 *   oct_json_str(&j, "name", "conv1");
 *   oct_json_close(&j);
 *
 * Texts are written as valid UTF-8: a byte that is none becomes the four characters \xff. Controls and characters that
 * cannot be seen are escaped (base/utf8.h), which changes nothing for the reader.
 *
 * key is NULL inside arrays. NaN and infinities are written as null, which is all JSON has for them. */
#ifndef OCT_BASE_JSON_H
#define OCT_BASE_JSON_H

#include "base/buf.h"
#include "base/document.h"

typedef struct oct_json {
    oct_buf *out;
    oct_document *to; /* in place of text; NULL: out gets text */
    int depth;
    char kind[64]; /* '{' or '[' per level */
    bool any[64];  /* whether the level already has a member */
} oct_json;

#define OCT_JSON_INIT(buf) { .out = (buf) }

/* Opens the outermost level with its schema (share/schema/SCHEMA.json) and the version of this program. */
void oct_report_open(oct_json *j, const char *schema);
void oct_json_open(oct_json *j, const char *key, char kind); /* '{' or '[' */
void oct_json_close(oct_json *j);
void oct_json_str(oct_json *j, const char *key, const char *value); /* NULL value: null */
void oct_json_int(oct_json *j, const char *key, int64_t value);
void oct_json_num(oct_json *j, const char *key, double value);
void oct_json_bool(oct_json *j, const char *key, bool value);
void oct_json_null(oct_json *j, const char *key);

/* A list of objects: for each of the n rows, `size` bytes apart, put writes the fields. */
void oct_json_rows(oct_json *j, const char *key, const void *row, size_t n, size_t size,
                   void (*put)(oct_json *j, const void *row));
/* Appends a value of a document as text. */
void oct_json_text(const oct_item *x, oct_buf *out);
/* A copy of a value of a document, with all that stands in it. */
void oct_json_item(oct_json *j, const char *key, const oct_item *x);
/* A list of texts. */
void oct_json_texts(oct_json *j, const char *key, const char *const *text, size_t n);

#endif
