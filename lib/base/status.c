#include "base/status.h"

#include <stdio.h>
#include <string.h>

oct_status oct_fail(oct_err *err, oct_status s, const char *fmt, ...)
{
    if (!err)
        return s;
    va_list ap;
    va_start(ap, fmt);
    err->status = s;
    err->hint[0] = 0;
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return s;
}

oct_status oct_nomem(oct_err *err)
{
    return oct_fail(err, OCT_ENOMEM, "out of memory");
}

void oct_within(oct_err *err, const char *fmt, ...)
{
    if (!err || err->status == OCT_OK)
        return;
    char head[sizeof err->text], all[2 * sizeof err->text + 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    snprintf(all, sizeof all, "%s: %s", head, err->text);
    all[sizeof err->text - 1] = 0;
    memcpy(err->text, all, sizeof err->text);
}

void oct_hint(oct_err *err, const char *fmt, ...)
{
    if (!err || err->hint[0])
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof err->hint, fmt, ap);
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
    case OCT_EINTERNAL: return "internal error";
    }
    return "unknown status";
}
