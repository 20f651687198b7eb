/* How the elements of an operand lie in memory. */
#include "ops/op.h"

void oct_operand_strides(const oct_operand *t, int64_t s[OCT_MAX_RANK])
{
    int64_t step = 1;
    bool last = t->layout == OCT_LAYOUT_CHANNELS_LAST && t->rank >= 3;
    if (last) {
        s[1] = 1;
        step = t->pitch ? t->pitch : t->dims[1];
    }
    for (int i = t->rank - 1; i >= 0; i--) {
        if (last && i == 1)
            continue;
        s[i] = step;
        step *= t->dims[i];
    }
}
