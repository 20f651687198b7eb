#include "twins/twin_broadcast.h"

oct_status oct_twin_repeat(const oct_twin_call *c, const oct_twin_tensor *operand, const int64_t **from, oct_err *err)
{
    const oct_tfl_tensor *x = operand->t, *y = c->out[0]->t;
    int64_t stride[OCT_MAX_RANK] = { 0 }, at[OCT_MAX_RANK] = { 0 }, step = 1, *list;
    for (int k = 0; k < OCT_MAX_RANK; k++) { /* from behind */
        const int64_t n = oct_twin_dim(x, k), most = oct_twin_dim(y, k);
        if (n != most && n != 1)
            return oct_twin_unfit(c, "its operands do not fit its result", err);
        stride[k] = n == 1 ? 0 : step;
        step *= n;
    }
    if (!(list = oct_twin_scratch(c, (size_t)c->out[0]->count, sizeof *list)))
        return oct_nomem(err);
    for (int64_t i = 0, place = 0; i < c->out[0]->count; i++) {
        list[i] = place;
        for (int k = 0; k < y->rank; k++) {
            place += stride[k];
            if (++at[k] < oct_twin_dim(y, k))
                break;
            place -= stride[k] * at[k];
            at[k] = 0;
        }
    }
    *from = list;
    return OCT_OK;
}
