/* lib/quant/rounding/learned.h, against losses summed up here. */
#include <stdlib.h>
#include "unit.h"

#include "net.h"
#include "quant/rounding/learned.h"

enum { DEPTH = 12, OUTS = 5, TRAIN = 80, LIMIT = 7 };

typedef struct layer {
    float x[DEPTH * TRAIN], w[OUTS * DEPTH], bias[OUTS], scale[OUTS];
    int8_t q[OUTS * DEPTH]; /* to the nearest value */
    oct_learned l;
} layer;

/* Inputs that go together, so that rounding each weight by itself is not the best. */
static void make(layer *k, float lo, float hi)
{
    net_fill(k->x, DEPTH * TRAIN, 61);
    net_fill(k->w, OUTS * DEPTH, 62);
    net_fill(k->bias, OUTS, 63);
    for (int i = 1; i < DEPTH; i++)
        for (int r = 0; r < TRAIN; r++)
            k->x[i * TRAIN + r] = 0.9f * k->x[r] + 0.3f * k->x[i * TRAIN + r];
    for (int o = 0; o < OUTS; o++)
        k->scale[o] = 1.2f / LIMIT;
    for (int e = 0; e < OUTS * DEPTH; e++)
        k->q[e] = (int8_t)rintf(k->w[e] / k->scale[e / DEPTH]);
    k->l = (oct_learned){ .depth = DEPTH,
                          .outs = OUTS,
                          .rows = TRAIN,
                          .x = k->x,
                          .w = k->w,
                          .bias = k->bias,
                          .scale = k->scale,
                          .lo = lo,
                          .hi = hi,
                          .limit = LIMIT };
}

static double clamp(double y, const oct_learned *l)
{
    return fmin(fmax(y, (double)l->lo), (double)l->hi);
}

/* Of output o on rows from..to. */
static double loss(const layer *k, const int8_t *q, int o, int from, int to)
{
    double sum = 0;
    for (int r = from; r < to; r++) {
        double want = (double)k->bias[o], got = want;
        for (int i = 0; i < DEPTH; i++) {
            want += (double)k->w[o * DEPTH + i] * (double)k->x[i * TRAIN + r];
            got += q[o * DEPTH + i] * (double)k->scale[o] * (double)k->x[i * TRAIN + r];
        }
        sum += pow(clamp(got, &k->l) - clamp(want, &k->l), 2);
    }
    return sum;
}

/* Without a clamp no step of one weight lowers the error any more. */
TEST(no_step_is_left)
{
    layer k;
    make(&k, -INFINITY, INFINITY);
    int8_t q[OUTS * DEPTH];
    memcpy(q, k.q, sizeof q);
    GOOD(oct_learn_rounding(&k.l, q));
    double before = 0, after = 0;
    for (int o = 0; o < OUTS; o++) {
        const double least = loss(&k, q, o, 0, TRAIN);
        before += loss(&k, k.q, o, 0, TRAIN);
        after += least;
        for (int i = 0; i < DEPTH; i++)
            for (int d = -1; d <= 1; d += 2) {
                int8_t *at = &q[o * DEPTH + i];
                assert_true(abs(*at) <= LIMIT);
                *at = (int8_t)(*at + d);
                assert_true(abs(*at) > LIMIT || loss(&k, q, o, 0, TRAIN) >= least * (1 - 1e-4));
                *at = (int8_t)(*at - d);
            }
    }
    assert_true(after < 0.5 * before);
}

/* What counts is behind the clamp: there the result is better than one that does not know of it. */
TEST(clamps_count)
{
    layer k;
    make(&k, -0.2f, 0.2f);
    int8_t with[OUTS * DEPTH], without[OUTS * DEPTH];
    memcpy(with, k.q, sizeof with);
    memcpy(without, k.q, sizeof without);
    GOOD(oct_learn_rounding(&k.l, with));
    oct_learned open = k.l;
    open.lo = -INFINITY;
    open.hi = INFINITY;
    GOOD(oct_learn_rounding(&open, without));
    double start = 0, known = 0, unknown = 0;
    for (int o = 0; o < OUTS; o++) {
        start += loss(&k, k.q, o, 0, TRAIN);
        known += loss(&k, with, o, 0, TRAIN);
        unknown += loss(&k, without, o, 0, TRAIN);
        assert_true(loss(&k, with, o, 0, TRAIN) <= loss(&k, k.q, o, 0, TRAIN));
    }
    assert_true(known < 0.5 * start && known < 0.9 * unknown);
}

/* Rows that judge and are of another kind: an output that loses on them keeps what it had. */
TEST(other_rows_judge)
{
    layer k;
    make(&k, -INFINITY, INFINITY);
    enum { HELD = 20 };
    for (int r = TRAIN - HELD; r < TRAIN; r++)
        k.x[TRAIN + r] = 0.2f * k.x[TRAIN + r]; /* goes together with the others no more */
    int8_t q[OUTS * DEPTH], all[OUTS * DEPTH];
    memcpy(q, k.q, sizeof q);
    memcpy(all, k.q, sizeof all);
    k.l.held = HELD;
    GOOD(oct_learn_rounding(&k.l, q));
    int kept = 0, changed = 0;
    for (int o = 0; o < OUTS; o++) {
        const bool same = memcmp(&q[o * DEPTH], &k.q[o * DEPTH], DEPTH) == 0;
        kept += same;
        changed += !same;
        assert_true(same || (loss(&k, q, o, 0, TRAIN - HELD) < loss(&k, k.q, o, 0, TRAIN - HELD) &&
                             loss(&k, q, o, TRAIN - HELD, TRAIN) < loss(&k, k.q, o, TRAIN - HELD, TRAIN)));
    }
    assert_true(kept > 0 && changed > 0);
}

/* Pairs of neighbours that are safe stay so, and steps are taken even so. */
TEST(pairs_stay_safe)
{
    enum { MOST = 6 };
    int64_t pair[DEPTH];
    layer k;
    make(&k, -INFINITY, INFINITY);
    for (int i = 0; i < DEPTH; i++)
        pair[i] = i ^ 1;
    for (int e = 0; e < OUTS * DEPTH; e++)
        k.q[e] = (int8_t)(k.q[e] > MOST / 2 ? MOST / 2 : k.q[e] < -MOST / 2 ? -MOST / 2 : k.q[e]);
    int8_t q[OUTS * DEPTH], free[OUTS * DEPTH];
    memcpy(q, k.q, sizeof q);
    memcpy(free, k.q, sizeof free);
    GOOD(oct_learn_rounding(&k.l, free));
    k.l.pair = pair;
    k.l.most = MOST;
    GOOD(oct_learn_rounding(&k.l, q));
    int broken = 0;
    for (int e = 0; e < OUTS * DEPTH; e += 2) {
        assert_true(q[e] * q[e + 1] < 0 || abs(q[e] + q[e + 1]) <= MOST);
        broken += free[e] * free[e + 1] > 0 && abs(free[e] + free[e + 1]) > MOST;
    }
    for (int o = 0; o < OUTS; o++)
        assert_true(loss(&k, q, o, 0, TRAIN) < loss(&k, k.q, o, 0, TRAIN));
    assert_true(broken > 0);
}
