/* Rounding on second moments: pairs stay within their bound, and lose little by it. Noise is computed here from the
 * inputs alone. */
#include "unit.h"

#include "quant/rounding/ldlq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LATENT = 5, MOST = 128 };

static uint32_t seed = 5;

static float uniform(void) /* -1..1 */
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1;
}

/* Inputs of few sources with noise. */
static void fill_inputs(float *x, int depth, int rows)
{
    float mix[LATENT];
    float *z = calloc((size_t)(LATENT * rows), sizeof *z);
    for (int i = 0; i < LATENT * rows; i++)
        z[i] = uniform();
    for (int k = 0; k < depth; k++) {
        for (int l = 0; l < LATENT; l++)
            mix[l] = uniform();
        for (int r = 0; r < rows; r++) {
            x[k * rows + r] = 0.5f * uniform();
            for (int l = 0; l < LATENT; l++)
                x[k * rows + r] += mix[l] * z[l * rows + r];
        }
    }
    free(z);
}

/* H with a hundredth of its mean diagonal. */
static double *moments(const float *x, int depth, int rows)
{
    double *h = calloc((size_t)(depth * depth), sizeof *h), trace = 0;
    for (int i = 0; i < depth; i++) {
        for (int j = 0; j < depth; j++)
            for (int r = 0; r < rows; r++)
                h[i * depth + j] += (double)x[i * rows + r] * (double)x[j * rows + r];
        trace += h[i * depth + i];
    }
    for (int i = 0; i < depth; i++)
        h[i * depth + i] += 0.01 * trace / depth;
    return h;
}

/* (w - q)' H (w - q) of output o. */
static double noise_of(const double *h, const float *w, const int8_t *q, double scale, int depth, int outs, int o)
{
    double *e = calloc((size_t)depth, sizeof *e), sum = 0;
    for (int i = 0; i < depth; i++)
        e[i] = (double)w[i * outs + o] - q[i * outs + o] * scale;
    for (int i = 0; i < depth; i++)
        for (int j = 0; j < depth; j++)
            sum += e[i] * h[i * depth + j] * e[j];
    free(e);
    return sum;
}

static bool allowed(int a, int b)
{
    const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? a : 0) + (b < 0 ? b : 0);
    return positive <= MOST && negative >= -MOST;
}

/* Least noise of all weights that a pair may have. */
static double least_noise(const double *h, const float *w, double scale)
{
    double least = INFINITY;
    for (int a = -127; a <= 127; a++)
        for (int b = -127; b <= 127; b++) {
            const double e[2] = { (double)w[0] - a * scale, (double)w[1] - b * scale };
            const double n = e[0] * e[0] * h[0] + 2 * e[0] * e[1] * h[1] + e[1] * e[1] * h[3];
            least = allowed(a, b) && n < least ? n : least;
        }
    return least;
}

/* One pair: as good as the best of all that are allowed, but for what rounding one weight after the other leaves. */
TEST(a_pair_gives_way_where_it_costs_least)
{
    enum { ROWS = 40 };
    float x[2 * ROWS];
    int bound = 0;
    oct_ldlq *k = oct_ldlq_create(2, 1, ROWS);
    for (int t = 0; t < 120; t++) {
        const float scale = 1.0f / 127;
        double noise, step;
        bool seen;
        fill_inputs(x, 2, ROWS);
        double *h = moments(x, 2, ROWS);
        float *w = oct_ldlq_weights(k);
        w[0] = uniform();
        w[1] = uniform();
        oct_ldlq_inputs(k, x);
        assert_int_equal(oct_ldlq_begin(k, (const int64_t[]){ 1, 0 }, &seen), OCT_OK);
        assert_true(seen);
        assert_int_equal(oct_ldlq_round(k, &scale, 127, MOST, &noise), OCT_OK);
        const int8_t *q = oct_ldlq_qvals(k);
        assert_true(allowed(q[0], q[1]));
        assert_float_equal(noise, noise_of(h, w, q, (double)scale, 2, 1, 0), 1e-3 * noise + 1e-9);
        step = (double)scale * (double)scale * (h[0] > h[3] ? h[0] : h[3]);
        assert_true(noise <= 1.05 * least_noise(h, w, (double)scale) + step);
        bound += w[0] * w[1] > 0 && fabsf(w[0] + w[1]) > 129 * scale;
        free(h);
    }
    assert_true(bound > 20);
    oct_ldlq_destroy(k);
}

typedef struct case_of {
    int depth, outs, rows;
} case_of;

/* Sums over the outputs: noise of weights rounded without a bound, within it at steps chosen by what is expected, and
 * that expectation. */
static void round_both(const case_of *c, double noise[3], bool at_own_steps)
{
    const int d = c->depth, outs = c->outs;
    float *x = calloc((size_t)(d * c->rows), sizeof *x), *scale = calloc((size_t)outs, sizeof *scale);
    enum { FACTORS = 9 };
    float factor[FACTORS];
    double *cost = calloc((size_t)(FACTORS * outs), sizeof *cost), *least = calloc((size_t)outs, sizeof *least);
    float *best = calloc((size_t)outs, sizeof *best);
    int64_t *pair = calloc((size_t)d, sizeof *pair);
    oct_ldlq *k = oct_ldlq_create((size_t)d, (size_t)outs, (size_t)c->rows);
    bool seen;
    fill_inputs(x, d, c->rows);
    double *h = moments(x, d, c->rows);
    float *w = oct_ldlq_weights(k);
    for (int i = 0; i < d * outs; i++) {
        w[i] = 0;
        for (int t = 0; t < 8; t++)
            w[i] += uniform() / 8; /* nearly normal, as weights are */
        scale[i % outs] = fmaxf(scale[i % outs], fabsf(w[i]) / 127);
    }
    for (int i = 0; i < d; i++)
        pair[i] = d - 1 - i == i ? -1 : d - 1 - i;
    noise[0] = noise[1] = noise[2] = 0;
    oct_ldlq_inputs(k, x);
    assert_int_equal(oct_ldlq_begin(k, NULL, &seen), OCT_OK);
    assert_int_equal(oct_ldlq_round(k, scale, 127, 0, cost), OCT_OK);
    for (int o = 0; o < outs; o++)
        noise[0] += noise_of(h, w, oct_ldlq_qvals(k), (double)scale[o], d, outs, o);
    assert_int_equal(oct_ldlq_begin(k, pair, &seen), OCT_OK);
    for (int f = 0; f < FACTORS; f++)
        factor[f] = 1 + (float)f / 8;
    oct_ldlq_expect(k, scale, FACTORS, factor, MOST, cost);
    for (int f = 0; f < (at_own_steps ? 1 : FACTORS); f++)
        for (int o = 0; o < outs; o++)
            if (f == 0 || cost[f * outs + o] < least[o]) {
                least[o] = cost[f * outs + o];
                best[o] = factor[f];
            }
    for (int o = 0; o < outs; o++) {
        scale[o] *= best[o];
        noise[2] += least[o];
    }
    assert_int_equal(oct_ldlq_round(k, scale, 127, MOST, cost), OCT_OK);
    const int8_t *q = oct_ldlq_qvals(k);
    for (int o = 0; o < outs; o++) {
        const double n = noise_of(h, w, q, (double)scale[o], d, outs, o);
        assert_float_equal(cost[o], n, 2e-3 * n);
        noise[1] += n;
        for (int i = 0; i < d; i++)
            assert_true(allowed(q[i * outs + o], pair[i] < 0 ? 0 : q[pair[i] * outs + o]) && q[i * outs + o] >= -127);
    }
    oct_ldlq_destroy(k);
    free(x);
    free(scale);
    free(cost);
    free(least);
    free(best);
    free(pair);
    free(h);
}

/* Of odd and even depth, within a block of the work and over several: some 3 dB more than unbound, and about what was
 * expected; at steps that are not widened the bound costs far more. */
TEST(bound_weights_lose_little)
{
    static const case_of cases[] = { { 21, 40, 200 }, { 64, 30, 200 }, { 65, 30, 200 }, { 200, 20, 400 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double n[3], own[3];
        round_both(&cases[i], n, false);
        round_both(&cases[i], own, true);
        assert_true(n[1] < 2.2 * n[0]);
        assert_true(n[2] < 1.5 * n[1] && n[1] < 1.5 * n[2]);
        assert_true(own[1] / own[0] > 20 * n[1] / n[0]);
    }
}

/* Inputs that were never other than 0: weights are the nearest that are allowed. */
TEST(unseen_inputs_round_to_the_nearest)
{
    enum { DEPTH = 6, ROWS = 8 };
    static const float zero[DEPTH * ROWS], w[DEPTH] = { 0.3f, -0.7f, 1, 0.9f, -1, 0.4f };
    const float scale = 1.0f / 127;
    oct_ldlq *k = oct_ldlq_create(DEPTH, 1, ROWS);
    double noise;
    bool seen;
    memcpy(oct_ldlq_weights(k), w, sizeof w);
    oct_ldlq_inputs(k, zero);
    assert_int_equal(oct_ldlq_begin(k, (const int64_t[]){ 1, 0, 3, 2, 5, 4 }, &seen), OCT_OK);
    assert_false(seen);
    assert_int_equal(oct_ldlq_round(k, &scale, 127, MOST, &noise), OCT_OK);
    const int8_t *q = oct_ldlq_qvals(k);
    for (int i = 0; i < DEPTH; i++)
        if (i != 2 && i != 3)
            assert_int_equal(q[i], (int)rintf(w[i] * 127));
    assert_int_equal(q[2] + q[3], MOST);
    assert_in_range(q[2] - q[3], 12, 14); /* 127 and 114.3 both give way by half of what is too much */
    oct_ldlq_destroy(k);
}

/* ---- blocks ---- */

enum { DEPTH = 70, OUTS = 9, BROWS = 400, BLOCK = 32, BLOCKS = 3, TOP = 15 };

/* Scales and zero points between the ends of each block. */
static void fill_blocks(const float *w, float *scale, int32_t *zero)
{
    for (int o = 0; o < OUTS; o++)
        for (int b = 0; b < BLOCKS; b++) {
            float lo = 0, hi = 0;
            for (int i = b * BLOCK; i < (b + 1) * BLOCK && i < DEPTH; i++) {
                lo = fminf(lo, w[i * OUTS + o]);
                hi = fmaxf(hi, w[i * OUTS + o]);
            }
            scale[o * BLOCKS + b] = (hi - lo) / TOP;
            zero[o * BLOCKS + b] = (int32_t)rintf(-lo / scale[o * BLOCKS + b]);
        }
}

static double block_noise(const double *h, const float *w, const uint8_t *q, const float *scale, const int32_t *zero,
                          int o)
{
    double e[DEPTH], sum = 0;
    for (int i = 0; i < DEPTH; i++) {
        const int b = o * BLOCKS + i / BLOCK;
        e[i] = (double)w[i * OUTS + o] - (q[i * OUTS + o] - zero[b]) * (double)scale[b];
    }
    for (int i = 0; i < DEPTH; i++)
        for (int j = 0; j < DEPTH; j++)
            sum += e[i] * h[i * DEPTH + j] * e[j];
    return sum;
}

TEST(blocks_lose_less_than_to_the_nearest)
{
    static float x[DEPTH * BROWS], scale[OUTS * BLOCKS];
    static int32_t zero[OUTS * BLOCKS];
    static uint8_t near[DEPTH * OUTS];
    double noise[OUTS], all[2] = { 0 };
    bool seen;
    oct_ldlq *k = oct_ldlq_create(DEPTH, OUTS, BROWS);
    float *w = oct_ldlq_weights(k);
    fill_inputs(x, DEPTH, BROWS);
    double *h = moments(x, DEPTH, BROWS);
    for (int i = 0; i < DEPTH * OUTS; i++)
        w[i] = uniform();
    fill_blocks(w, scale, zero);
    for (int i = 0; i < DEPTH * OUTS; i++) {
        const int b = i % OUTS * BLOCKS + i / OUTS / BLOCK;
        near[i] = (uint8_t)fmaxf(0, fminf(TOP, rintf(w[i] / scale[b]) + (float)zero[b]));
    }
    oct_ldlq_inputs(k, x);
    assert_int_equal(oct_ldlq_begin(k, NULL, &seen), OCT_OK);
    const oct_ldlq_blocks blocks = { scale, zero, BLOCK, BLOCKS, TOP, 8 };
    assert_int_equal(oct_ldlq_round_blocks(k, &blocks, noise), OCT_OK);
    const uint8_t *q = (const uint8_t *)oct_ldlq_qvals(k);
    for (int i = 0; i < DEPTH * OUTS; i++)
        assert_true(q[i] <= TOP);
    for (int o = 0; o < OUTS; o++) {
        const double n = block_noise(h, w, q, scale, zero, o);
        assert_float_equal(noise[o], n, 2e-3 * n);
        all[0] += block_noise(h, w, near, scale, zero, o);
        all[1] += n;
    }
    assert_true(all[1] < 0.5 * all[0]);
    free(h);
    oct_ldlq_destroy(k);
}

/* What the weights make of the inputs, less what `real` makes of the other ones; the damping's share with it. */
static double distance(const float *w, const float *real, const float *x, const float *other, double damp, int o)
{
    double sum = 0;
    for (int r = 0; r < BROWS; r++) {
        double y = 0;
        for (int i = 0; i < DEPTH; i++)
            y += (double)w[i * OUTS + o] * (double)x[i * BROWS + r] -
                 (double)real[i * OUTS + o] * (double)other[i * BROWS + r];
        sum += y * y;
    }
    for (int i = 0; i < DEPTH; i++)
        sum += damp * ((double)w[i * OUTS + o] - (double)real[i * OUTS + o]) *
               ((double)w[i * OUTS + o] - (double)real[i * OUTS + o]);
    return sum;
}

/* No other weights near by come nearer, and the old ones do not. */
TEST(weights_aim_at_what_float_inputs_give)
{
    static float x[DEPTH * BROWS], other[DEPTH * BROWS], real[DEPTH * OUTS], moved[DEPTH * OUTS];
    bool seen;
    double trace = 0;
    oct_ldlq *k = oct_ldlq_create(DEPTH, OUTS, BROWS);
    float *w = oct_ldlq_weights(k);
    fill_inputs(other, DEPTH, BROWS);
    for (int i = 0; i < DEPTH * BROWS; i++) {
        x[i] = 0.8f * other[i] + 0.2f * uniform() + 0.1f * other[(i + BROWS) % (DEPTH * BROWS)];
        trace += (double)x[i] * (double)x[i];
    }
    for (int i = 0; i < DEPTH * OUTS; i++)
        w[i] = real[i] = uniform();
    oct_ldlq_inputs(k, x);
    assert_int_equal(oct_ldlq_begin(k, NULL, &seen), OCT_OK);
    assert_int_equal(oct_ldlq_aim(k, x, other), OCT_OK);
    for (int o = 0; o < OUTS; o++) {
        const double damp = 0.01 * trace / DEPTH, least = distance(w, real, x, other, damp, o);
        assert_true(least < 0.7 * distance(real, real, x, other, damp, o));
        for (int i = 0; i < DEPTH; i += 9)
            for (int sign = -1; sign < 2; sign += 2) {
                memcpy(moved, w, sizeof moved);
                moved[i * OUTS + o] += 0.02f * (float)sign;
                assert_true(distance(moved, real, x, other, damp, o) > least);
            }
    }
    oct_ldlq_destroy(k);
}
