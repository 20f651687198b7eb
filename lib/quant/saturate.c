/* Proves that sums of pairs cannot exceed 16 bits. */
#include "quant/job.h"

static bool pair_safe(int a, int b)
{
    const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? -a : 0) + (b < 0 ? -b : 0);
    return positive <= OCT_PAIR_MOST && negative <= OCT_PAIR_MOST;
}

bool oct_adds_pairs(const oct_weight_layout *l)
{
    /* ONNX Runtime's depthwise kernel converts to 32 bits before it adds. It is used for groups of one input and one output. With more outputs, the taps of
     * a channel are multiplied as a matrix, in pairs. */
    return !(oct_is_depthwise(l) && l->outs == l->groups);
}

/* Convolutions are packed as matrices with rows (ky, kx, ic), both if they are computed as matrices and, four channels at a time, directly: MlasGemmPackB
 * after QLinearConv's ReorderFilter, and MlasConvSymPackW. */
int64_t oct_pair_of(const oct_weight_layout *l, int64_t k)
{
    const int64_t ins = l->ins / l->groups, other = (k % l->taps * ins + k / l->taps) ^ 1;
    return other < ins * l->taps ? other % ins * l->taps + other / ins : -1;
}

bool oct_pairs_safe(const oct_weight_layout *l, const int8_t *qvals)
{
    const int64_t depth = oct_adds_pairs(l) ? l->ins / l->groups * l->taps : 0;
    for (int64_t k = 0; k < depth; k++) {
        const int64_t other = oct_pair_of(l, k);
        if (other >= 0 && other < k)
            continue;
        for (int64_t g = 0; g < l->matrices * l->groups; g++)
            for (int64_t o = 0; o < l->outs / l->groups; o++)
                if (!pair_safe(qvals[oct_weight_at(l, g, o, k)], other >= 0 ? qvals[oct_weight_at(l, g, o, other)] : 0))
                    return false;
    }
    return true;
}
