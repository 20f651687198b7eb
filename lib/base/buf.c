#define _GNU_SOURCE
#include "base/buf.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(oct_buf *b, size_t more)
{
    size_t need;
    if (b->failed || !oct_add_size(b->len, more, &need) || !oct_add_size(need, 1, &need)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap)
        return true;
    size_t cap = b->cap * 2 > need ? b->cap * 2 : need < 256 ? 256 : need;
    char *p = oct_realloc(b->data, b->len, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

void oct_buf_add(oct_buf *b, const void *p, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = 0;
}

void oct_buf_puts(oct_buf *b, const char *s)
{
    oct_buf_add(b, s, strlen(s));
}

void oct_buf_printf(oct_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        b->failed = true;
    else if (reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void oct_buf_cut(oct_buf *b, size_t n)
{
    b->len = n;
    if (b->data)
        b->data[n] = 0;
}

void oct_buf_free(oct_buf *b)
{
    oct_free(b->data);
    *b = (oct_buf)OCT_BUF_INIT;
}

const char *oct_buf_str(const oct_buf *b)
{
    return b->data && !b->failed ? b->data : "";
}

/* Whole numbers have their digits, since %g writes 40 as 4e+01. */
static bool is_whole(double f, double most)
{
    return fabs(f) < most && f == trunc(f);
}

const char *oct_f32_text(char dst[32], float f)
{
    if (is_whole((double)f, 1e7)) {
        snprintf(dst, 32, "%.0f", (double)f);
        return dst;
    }
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(dst, 32, "%.*g", digits, (double)f);
        if (strtof(dst, NULL) == f || isnan(f))
            break;
    }
    return dst;
}

const char *oct_f64_text(char dst[32], double f)
{
    if (is_whole(f, 1e15)) {
        snprintf(dst, 32, "%.0f", f);
        return dst;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(dst, 32, "%.*g", digits, f);
        if (strtod(dst, NULL) == f || isnan(f))
            break;
    }
    return dst;
}

int oct_edit_distance(const char *a, const char *b)
{
    enum { MAX = 63 };
    size_t na = strnlen(a, MAX), nb = strnlen(b, MAX);
    int row[MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int diag = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int sub = diag + (a[i - 1] != b[j - 1]), del = row[j] + 1, ins = row[j - 1] + 1;
            diag = row[j];
            row[j] = sub < del ? (sub < ins ? sub : ins) : (del < ins ? del : ins);
        }
    }
    return row[nb];
}

void oct_nearest_try(oct_nearest *n, const char *name)
{
    const int d = oct_edit_distance(n->word, name);
    size_t at = n->n;
    if (d > n->most)
        return;
    for (size_t i = 0; i < n->n; i++)
        if (strcmp(n->name[i], name) == 0)
            return;
    while (at > 0 && n->distance[at - 1] > d)
        at--;
    if (at == OCT_NEAREST)
        return;
    n->n += n->n < OCT_NEAREST;
    for (size_t i = n->n - 1; i > at; i--) {
        n->name[i] = n->name[i - 1];
        n->distance[i] = n->distance[i - 1];
    }
    n->name[at] = name;
    n->distance[at] = d;
}

void oct_nearest_hint(const oct_nearest *n, size_t most, const char *more, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    const size_t count = n->n < most ? n->n : most;
    for (size_t i = 0; i < count; i++)
        oct_buf_printf(&b, "%s'%.100s'", i == 0 ? "did you mean " : i + 1 < count ? ", " : " or ", n->name[i]);
    oct_buf_puts(&b, count ? "?" : "");
    oct_buf_printf(&b, "%s%s", count && more ? " " : "", more ? more : "");
    if (b.len)
        oct_hint(err, "%s", oct_buf_str(&b));
    oct_buf_free(&b);
}
