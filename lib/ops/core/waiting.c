/* lib/ops/core/waiting.c -- reads numbers that wait, and writes them out. */
#include "ops/core/waiting.h"

#include "kernels/half.h"

bool oct_has_floats(const oct_tensor *t)
{
    return t->data || t->narrow;
}

const float *oct_floats_load(const oct_tensor *t, int64_t offset, int64_t stride, int64_t n, oct_chunk *buf)
{
    return t->data ? oct_elem_load(OCT_F32, t->data, offset, stride, n, buf)
                   : oct_elem_load(t->narrow_type, t->narrow, offset, stride, n, buf);
}

oct_status oct_floats_make(oct_arena *a, const oct_tensor *t, oct_err *err)
{
    oct_tensor *made, *own = (oct_tensor *)(uintptr_t)t; /* all who have the constant see its numbers */
    if (t->data || !t->narrow)
        return OCT_OK;
    OCT_TRY(oct_tensor_new(a, OCT_F32, t->rank, t->dims, &made, err));
    oct_widen(NULL, t->narrow_type, t->narrow, (size_t)t->count, (float *)(uintptr_t)made->data);
    own->data = made->data;
    own->narrow = NULL;
    return OCT_OK;
}
