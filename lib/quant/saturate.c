/* The proof that 16-bit pair sums cannot overflow. */
#include "quant/job.h"

/* Pairs along one output channel, reset at its start. */
typedef struct pairs {
    int held; /* first weight of the pair, or none */
    bool open;
    bool safe;
} pairs;

static void feed(pairs *p, int w)
{
    if (!p->open) {
        p->held = w;
        p->open = true;
        return;
    }
    int pos = (p->held > 0 ? p->held : 0) + (w > 0 ? w : 0), neg = (p->held < 0 ? -p->held : 0) + (w < 0 ? -w : 0);
    p->safe &= pos <= 128 && neg <= 128;
    p->open = false;
}

/* One output channel, whose first weight is at base. */
static bool channel_safe(const oct_weight_layout *l, const int8_t *base)
{
    const int64_t ins = l->ins / l->groups;
    pairs a = { .safe = true }, b = { .safe = true };
    for (int64_t t = 0; t < l->taps; t++)
        for (int64_t c = 0; c < ins; c++)
            feed(&a, base[c * l->in_step + t]);
    for (int64_t c = 0; c < ins; c++)
        for (int64_t t = 0; t < l->taps; t++)
            feed(&b, base[c * l->in_step + t]);
    feed(&a, 0);
    feed(&b, 0);
    return a.safe && b.safe;
}

bool oct_pairs_safe(const oct_weight_layout *l, const int8_t *codes)
{
    /* ONNX Runtime's depthwise kernel widens before it adds. It is for groups of one input and one output; with more outputs the taps
     * of a channel are multiplied as a matrix, in pairs. */
    if (oct_is_depthwise(l) && l->outs == l->groups)
        return true;
    for (int64_t g = 0; g < l->matrices * l->groups; g++)
        for (int64_t o = 0; o < l->outs / l->groups; o++)
            if (!channel_safe(l, codes + g * l->group_step + o * l->out_step))
                return false;
    return true;
}
