#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Whether the byte continues a character of UTF-8. */
static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Removes the beginning of a character at the end of a text that was cut there. */
static void drop_cut_character(char *text)
{
    const size_t n = strlen(text);
    size_t tail = 0; /* bytes behind the last first byte */
    while (tail < n && tail < 3 && continues(text[n - 1 - tail]))
        tail++;
    if (tail == n)
        return;
    const unsigned char first = (unsigned char)text[n - 1 - tail];
    const size_t needs = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    if (tail < needs)
        text[n - 1 - tail] = 0;
}

/* vsnprintf that truncates between characters, so that the text stays valid UTF-8. */
static void print_whole(char *text, size_t size, const char *fmt, va_list ap)
{
    if (vsnprintf(text, size, fmt, ap) >= (int)size)
        drop_cut_character(text);
}

void oct_print_whole(char *dst, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_whole(dst, size, fmt, ap);
    va_end(ap);
}

oct_status oct_fail(oct_err *err, oct_status s, const char *fmt, ...)
{
    if (!err)
        return s;
    va_list ap;
    va_start(ap, fmt);
    err->status = s;
    err->hint[0] = 0;
    print_whole(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return s;
}

oct_status oct_nomem(oct_err *err)
{
    return oct_fail(err, OCT_ENOMEM, "out of memory");
}

void oct_within(oct_err *err, const char *fmt, ...)
{
    if (!err || err->status == OCT_OK || err->status == OCT_ESTOPPED) /* it is nobody's fault where a run was stopped */
        return;
    char head[sizeof err->text], all[2 * sizeof err->text + 4];
    va_list ap;
    va_start(ap, fmt);
    print_whole(head, sizeof head, fmt, ap);
    va_end(ap);
    if (snprintf(all, sizeof all, "%s: %s", head, err->text) >= (int)sizeof err->text) {
        all[sizeof err->text - 1] = 0;
        drop_cut_character(all);
    }
    memcpy(err->text, all, sizeof err->text);
}

void oct_hint(oct_err *err, const char *fmt, ...)
{
    if (!err || err->hint[0])
        return;
    va_list ap;
    va_start(ap, fmt);
    print_whole(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
}

const char *oct_status_name(oct_status s)
{
    switch (s) {
    case OCT_OK: return "done";
    case OCT_EGOAL: return "goal not met";
    case OCT_EUSAGE: return "usage";
    case OCT_EIO: return "cannot read or write";
    case OCT_EMALFORMED: return "malformed input";
    case OCT_EUNSUPPORTED: return "unsupported";
    case OCT_ENUMERIC: return "numeric";
    case OCT_ENOMEM: return "out of memory";
    case OCT_ESTOPPED: return "stopped";
    case OCT_EINTERNAL: return "internal error";
    }
    return "unknown status";
}
