/* Read before each file by scripts/development/analyze: what analyzers cannot see from the declarations of
 * base/status.h alone, that a failure never gives OCT_OK. */
#include "base/status.h"

static inline oct_status analyze_status(oct_status s)
{
    return s;
}

#define oct_fail(err, status, ...) ((void)oct_fail(err, status, __VA_ARGS__), analyze_status(status))
#define oct_nomem(err) ((void)oct_nomem(err), analyze_status(OCT_ENOMEM))
