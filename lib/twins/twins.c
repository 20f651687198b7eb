#include "twins/twins.h"

#include "base/buf.h"

#include <string.h>

extern const oct_twin oct_twin_litert, oct_twin_litert_reference, oct_twin_tflm, oct_twin_cmsis_nn, oct_twin_tosa;

static const oct_twin *const twins[] = { &oct_twin_litert, &oct_twin_litert_reference, &oct_twin_tflm,
                                         &oct_twin_cmsis_nn, &oct_twin_tosa };

const oct_twin *oct_twin_at(size_t i)
{
    return i < OCT_COUNT(twins) ? twins[i] : NULL;
}

oct_status oct_twin_find(const char *name, const oct_twin **t, oct_err *err)
{
    oct_nearest near = { .word = name, .most = 8 };
    for (size_t i = 0; i < OCT_COUNT(twins); i++) {
        if (strcmp(twins[i]->name, name) == 0) {
            *t = twins[i];
            return OCT_OK;
        }
        oct_nearest_try(&near, twins[i]->name);
    }
    oct_fail(err, OCT_EUSAGE, "there is no twin '%s'", name);
    oct_nearest_hint(&near, OCT_NEAREST, "there are litert, litert-reference, tflm, cmsis-nn and tosa", err);
    return OCT_EUSAGE;
}
