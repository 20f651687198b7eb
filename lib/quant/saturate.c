/* The proof that 16-bit pair sums cannot overflow. */
#include "quant/job.h"

#include <string.h>

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

/* One output channel with n_in inputs of `taps` positions: element (c, t) at base[c * taps + t]. */
static bool channel_safe(const int8_t *base, int64_t n_in, int64_t taps)
{
    pairs a = { .safe = true }, b = { .safe = true };
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < n_in; c++)
            feed(&a, base[c * taps + t]);
    for (int64_t i = 0; i < n_in * taps; i++)
        feed(&b, base[i]);
    feed(&a, 0);
    feed(&b, 0);
    return a.safe && b.safe;
}

static bool matrix_safe(const oct_tensor *w, int axis)
{
    int64_t rows = w->dims[0], cols = w->dims[1], n = w->dims[axis], k = axis ? rows : cols;
    const int8_t *codes = w->data;
    for (int64_t j = 0; j < n; j++) {
        pairs p = { .safe = true };
        for (int64_t i = 0; i < k; i++)
            feed(&p, axis ? codes[i * cols + j] : codes[j * cols + i]);
        feed(&p, 0);
        if (!p.safe)
            return false;
    }
    return true;
}

bool oct_pairs_safe(const oct_node *n, const oct_tensor *w, int axis)
{
    if (w->rank == 2)
        return matrix_safe(w, axis);
    int64_t group = oct_node_int(n, "group", 1), taps = 1;
    /* ONNX Runtime's depthwise kernel widens before it adds. It is for groups of one input and one output; with more outputs the taps
     * of a channel are multiplied as a matrix, in pairs. */
    if (strcmp(n->op, "Conv") == 0 && w->dims[1] == 1 && group > 1 && w->dims[0] == group)
        return true;
    for (int i = 2; i < w->rank; i++)
        taps *= w->dims[i];
    for (int64_t o = 0; o < w->dims[0]; o++)
        if (!channel_safe((const int8_t *)w->data + o * w->dims[1] * taps, w->dims[1], taps))
            return false;
    return true;
}
