/* Pass: folds Mul, Div, Add and Sub by per-channel constants after a convolution or product into its weights and
 * bias. */
#include "passes/fuse.h"

#include <math.h>
#include <string.h>

typedef struct affine {
    float *scale, *shift;
} affine;

/* The effect of tail on its input x as x * scale + shift; false: it is something else. */
static bool affine_of(oct_graph *g, const oct_layer *l, int tail, int slot, affine *a)
{
    const oct_node *n = &g->node[tail];
    *a = (affine){ NULL, NULL };
    if (n->domain[0] || n->n_in != 2 || n->n_out != 1)
        return false;
    int other = n->in[1 - slot], rank = g->value[n->in[slot]].shape.rank;
    bool mul = strcmp(n->op, "Mul") == 0, div = strcmp(n->op, "Div") == 0 && slot == 0;
    bool add = strcmp(n->op, "Add") == 0, sub = strcmp(n->op, "Sub") == 0 && slot == 0;
    float *v;
    if (other < 0 || rank < 0 || !(mul || div || add || sub) || !oct_channel_const(g, other, l, rank, &v))
        return false;
    for (int64_t i = 0; i < l->channels; i++) {
        v[i] = div ? 1.0f / v[i] : sub ? -v[i] : v[i];
        if (!isfinite(v[i]))
            return false;
    }
    *(mul || div ? &a->scale : &a->shift) = v;
    return true;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i], slot;
        oct_layer l;
        affine a;
        if (!oct_layer_of(g, id, &l))
            continue;
        int tail;
        while ((tail = oct_sole_reader(g, g->node[id].out[0], &slot)) >= 0 && affine_of(g, &l, tail, slot, &a)) {
            /* A MatMul has no bias. The pass that turns it into a Gemm handles the shift. */
            if (a.shift ? strcmp(g->node[id].op, "MatMul") == 0 : !oct_layer_scalable(g, &l, tail))
                break;
            oct_pass_note(log, self, g->node[tail].op, g->node[tail].name);
            OCT_TRY(oct_layer_affine(g, &l, a.scale, a.shift, err));
            OCT_TRY(oct_layer_absorb(g, id, tail, err));
        }
        /* Absorbed nodes followed this one, so its position has not changed. */
        while (i < g->n_order && g->order[i] != id)
            i--;
    }
    return OCT_OK;
}

const oct_pass oct_pass_affine = { "affine", "fold Mul, Div, Add and Sub by constants into Conv, Gemm and MatMul",
                                   run };
