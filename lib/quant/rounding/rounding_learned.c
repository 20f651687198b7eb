/* Learned rounding of a layer, group by group, starting from its current weights. */
#include "quant/rounding/rounding_int.h"

#include "base/stop.h"
#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/rounding/learned.h"
#include "quant/weights/saturate.h"

/* A group of a layer, by output. */
typedef struct lgroup {
    oct_learned l;
    float *w, *scale;
    int8_t *q;     /* [outs][depth] */
    int64_t *pair; /* [depth] */
} lgroup;

static void close_learning(lgroup *k)
{
    oct_free(k->w);
    oct_free(k->scale);
    oct_free(k->q);
    oct_free(k->pair);
}

/* Prepares learning. Safe pairs stay safe. The last quarter of the positions, which come from separate samples, judges
 * each output. */
static bool open_learning(lgroup *k, const rounder *r, const rlayer *x)
{
    const oct_qjob *j = r->j;
    const size_t n = (size_t)(x->outs * x->depth);
    const oct_range clamp = oct_clamp_bounds(j, oct_quantized_output(j, x->node));
    const qweights *had = j->constants[x->node].weights[0];
    const bool safe = x->bound && oct_pairs_safe(x->sums, &x->l, had->qvals->data);
    *k = (lgroup){ .w = oct_calloc(n, sizeof *k->w),
                   .scale = oct_calloc((size_t)x->outs, sizeof *k->scale),
                   .q = oct_calloc(n, 1),
                   .pair = oct_calloc((size_t)x->depth, sizeof *k->pair) };
    for (int64_t i = 0; k->pair && i < x->depth; i++)
        k->pair[i] = safe ? oct_pair_of(x->sums, &x->l, i) : -1;
    k->l = (oct_learned){ .depth = (size_t)x->depth,
                          .outs = (size_t)x->outs,
                          .rows = (size_t)x->rows,
                          .held = (size_t)x->rows / 4,
                          .w = k->w,
                          .scale = k->scale,
                          .lo = clamp.lo,
                          .hi = clamp.hi,
                          .limit = x->limit,
                          .pair = k->pair,
                          .most = OCT_PAIR_MOST };
    return k->w && k->scale && k->q && k->pair;
}

static void take_learning(lgroup *k, const rounder *r, const rlayer *x, int64_t group)
{
    const qweights *had = r->j->constants[x->node].weights[0];
    const float *weights = oct_layer_weights(r->j->g, x->node)->data;
    const oct_tensor *bias = oct_layer_bias(r->j->g, x->node);
    for (int64_t o = 0; o < x->outs; o++) {
        k->scale[o] = had->quant.scale[had->quant.n > 1 ? group * x->outs + o : 0];
        for (int64_t i = 0; i < x->depth; i++) {
            const int64_t e = oct_weight_at(&x->l, group, o, i);
            k->w[o * x->depth + i] = weights[e];
            k->q[o * x->depth + i] = ((const int8_t *)had->qvals->data)[e];
        }
    }
    k->l.x = x->x + group * x->depth * x->rows;
    k->l.bias =
        bias && bias->dtype == OCT_F32 && bias->count == x->l.outs ? (const float *)bias->data + group * x->outs : NULL;
}

oct_status oct_rounder_learn(const rounder *r, rlayer *x)
{
    lgroup k;
    oct_status s = open_learning(&k, r, x) ? OCT_OK : OCT_ENOMEM;
    for (int64_t g = 0; g < x->l.groups && s == OCT_OK; g++) {
        take_learning(&k, r, x, g);
        s = oct_stop_check(NULL);
        if (s == OCT_OK)
            s = oct_learn_rounding(&k.l, k.q);
        for (int64_t o = 0; o < x->outs; o++)
            for (int64_t i = 0; i < x->depth; i++)
                x->to.qvals[oct_weight_at(&x->l, g, o, i)] = k.q[o * x->depth + i];
    }
    close_learning(&k);
    return s;
}
