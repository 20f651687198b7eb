/* Proves that sums of pairs cannot exceed 16 bits.
 *
 * Kernels that add in pairs differ in which weights they pair. ONNX Runtime packs convolutions as matrices with rows
 * (ky, kx, ic), both if they are computed as matrices and, four channels at a time, directly: MlasGemmPackB after
 * QLinearConv's ReorderFilter, and MlasConvSymPackW. oneDNN, which OpenVINO uses, does so for groups whose channels do
 * not fill its blocks. Its direct kernels take four channels of one tap, filled up with zeros: jit_avx2 and
 * jit_avx512_core x8s8s32x. For AVX2 this was seen in OpenVINO 2026.4, by models with two weights that are not 0;
 * AVX-512 without VNNI was not tried. */
#include "quant/weights/saturate.h"

static bool pair_safe(int a, int b)
{
    const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? -a : 0) + (b < 0 ? -b : 0);
    return positive <= OCT_PAIR_MOST && negative <= OCT_PAIR_MOST;
}

/* Depthwise kernels convert to 32 bits before they add. They are used for groups of one input and one output. With more
 * outputs, the taps of a channel are multiplied as a matrix, in pairs. */
bool oct_adds_pairs(oct_pair_sums sums, const oct_weight_layout *l)
{
    return sums != OCT_SUMS_EXACT && !(oct_is_depthwise(l) && l->outs == l->groups);
}

int64_t oct_pair_of(oct_pair_sums sums, const oct_weight_layout *l, int64_t k)
{
    const int64_t ins = l->ins / l->groups, ic = k / l->taps, tap = k % l->taps;
    if (sums == OCT_SUMS_IN_TAPS && l->groups == 1)
        return (ic ^ 1) < ins ? (ic ^ 1) * l->taps + tap : -1;
    const int64_t other = (tap * ins + ic) ^ 1;
    return other < ins * l->taps ? other % ins * l->taps + other / ins : -1;
}

bool oct_pairs_safe(oct_pair_sums sums, const oct_weight_layout *l, const int8_t *qvals)
{
    const int64_t depth = oct_adds_pairs(sums, l) ? l->ins / l->groups * l->taps : 0;
    for (int64_t k = 0; k < depth; k++) {
        const int64_t other = oct_pair_of(sums, l, k);
        if (other >= 0 && other < k)
            continue;
        for (int64_t g = 0; g < l->matrices * l->groups; g++)
            for (int64_t o = 0; o < l->outs / l->groups; o++)
                if (!pair_safe(qvals[oct_weight_at(l, g, o, k)], other >= 0 ? qvals[oct_weight_at(l, g, o, other)] : 0))
                    return false;
    }
    return true;
}
