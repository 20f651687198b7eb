/* The proof that 16-bit pair sums cannot overflow. */
#include "quant/job.h"

static bool pair_safe(int a, int b)
{
    const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? -a : 0) + (b < 0 ? -b : 0);
    return positive <= 128 && negative <= 128;
}

/* Pairs of the n * m weights of one output channel, in the order of n and then of m. */
static bool order_safe(const int8_t *base, int64_t n, int64_t n_step, int64_t m, int64_t m_step)
{
    int held = 0;
    bool open = false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) {
            const int w = base[i * n_step + k * m_step];
            if (open && !pair_safe(held, w))
                return false;
            held = w;
            open = !open;
        }
    return !open || pair_safe(held, 0);
}

bool oct_pairs_safe(const oct_weight_layout *l, const int8_t *qvals)
{
    /* ONNX Runtime's depthwise kernel widens before it adds. It is for groups of one input and one output; with more outputs the taps
     * of a channel are multiplied as a matrix, in pairs. */
    if (oct_is_depthwise(l) && l->outs == l->groups)
        return true;
    const int64_t ins = l->ins / l->groups;
    for (int64_t g = 0; g < l->matrices * l->groups; g++)
        for (int64_t o = 0; o < l->outs / l->groups; o++) {
            const int8_t *base = qvals + g * l->group_step + o * l->out_step;
            if (!order_safe(base, l->taps, 1, ins, l->in_step) || !order_safe(base, ins, l->in_step, l->taps, 1))
                return false;
        }
    return true;
}
