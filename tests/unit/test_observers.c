/* lib/observers: statistics against direct computation, merging, range selection. */
#include "unit.h"

#include "base/mem.h"
#include "observers/chan.h"
#include "observers/observer.h"
#include "observers/view.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double uniform(void)
{
    return (double)(rnd() >> 11) / 9007199254740992.0;
}

/* A bell: the sum of twelve uniform values. */
static float bell(void)
{
    double s = -6;
    for (int i = 0; i < 12; i++)
        s += uniform();
    return (float)s;
}

/* Values of many magnitudes, with zeros and repeated ones. */
static float wild(void)
{
    switch (rnd() % 8) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return 6.0f;
    case 3: return (float)ldexp(uniform() - 0.5, (int)(rnd() % 250) - 126);
    case 4: return (float)ldexp(uniform(), -140);
    default: return bell() * 3;
    }
}

static void fill(float *x, size_t n, float (*f)(void))
{
    for (size_t i = 0; i < n; i++)
        x[i] = f();
}

static void shuffle(float *x, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = rnd() % i;
        float t = x[i - 1];
        x[i - 1] = x[j];
        x[j] = t;
    }
}

TEST(sums_are_exact)
{
    oct_xsum a = { 0 };
    oct_xsum_add(&a, 0x1p127);
    oct_xsum_add(&a, 0x1p-149);
    oct_xsum_add(&a, -0x1p127);
    assert_true(oct_xsum_value(&a) == 0x1p-149);
    oct_xsum_add(&a, -0x1p-148);
    assert_true(oct_xsum_value(&a) == -0x1p-149);
    oct_xsum b = { 0 };
    for (int i = 0; i < 100000; i++)
        oct_xsum_add(&b, 0.1f);
    assert_true(oct_xsum_value(&b) == (double)0.1f * 100000); /* 24 + 17 bits: exact in double */
    oct_xsum c = { 0 };
    oct_xsum_add(&c, 9007199254740992.0);
    oct_xsum_add(&c, 1);
    assert_true(oct_xsum_value(&c) == 9007199254740992.0); /* tie to even */
    oct_xsum_add(&c, 0x1p-300);
    assert_true(oct_xsum_value(&c) == 9007199254740994.0); /* just above the tie */
}

TEST(sums_read_back)
{
    oct_xsum a = { 0 };
    for (int i = 0; i < 2000; i++) {
        double x = wild();
        oct_xsum_add(&a, rnd() & 1 ? x : x * x);
        oct_buf t = OCT_BUF_INIT;
        oct_xsum_text(&a, &t);
        oct_xsum b;
        assert_true(oct_xsum_parse(&b, t.data, t.len));
        assert_memory_equal(&a, &b, sizeof a);
        oct_buf_free(&t);
    }
    oct_xsum b;
    const char *bad[] = {
        "", "-", "p", "1", "1p", "1p-", "g1p0", "1p1", "1p-324", "1p99999", "1p4 ", "1p380", "--1p0"
    };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_false(oct_xsum_parse(&b, bad[i], strlen(bad[i])));
}

/* Every bin's count, counted directly. */
static void check_bins(const oct_stats *s, const float *x, size_t n)
{
    size_t at = 0;
    uint64_t sum = 0;
    oct_bin b;
    double last = -INFINITY;
    while (oct_stats_next(s, &at, &b)) {
        uint64_t c = 0;
        for (size_t i = 0; i < n; i++) /* bins hold the edge nearer to zero */
            c += b.lo == b.hi ? x[i] == 0
                 : b.lo < 0   ? x[i] > b.lo && x[i] <= b.hi && x[i] != 0
                              : x[i] >= b.lo && x[i] < b.hi && x[i] != 0;
        assert_int_equal(c, b.count);
        assert_true(b.lo >= last && b.hi >= b.lo);
        last = b.hi;
        double w = b.hi - b.lo;
        int e;
        assert_true(w == 0 || frexp(w, &e) == 0.5); /* a power of two */
        assert_true(w == 0 || fmod(b.lo, w) == 0);  /* quantized through zero */
        sum += c;
    }
    assert_int_equal(sum, oct_stats_finite(s));
}

TEST(bins_hold_what_was_fed)
{
    enum { N = 3000 };
    float x[N];
    fill(x, N, wild);
    x[17] = INFINITY;
    x[18] = -INFINITY;
    x[19] = FLT_MAX;
    x[20] = -FLT_MAX;
    oct_stats s;
    oct_stats_init(&s);
    assert_int_equal(oct_stats_update(&s, x, N, NULL), OCT_OK);
    assert_int_equal(s.n, N);
    assert_true(s.inf[0] == 1 && s.inf[1] == 1 && s.min == -FLT_MAX && s.max == FLT_MAX);
    assert_true(s.min_count == 1 && s.max_count == 1);
    check_bins(&s, x, N);
    oct_stats_free(&s);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

TEST(resolution)
{
    enum { N = 200000 };
    float *x = oct_alloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        x[i] = (float)(uniform() * 4.1);
    x[0] = -FLT_MAX; /* a mask does not coarsen it */
    oct_stats s;
    oct_stats_init(&s);
    assert_int_equal(oct_stats_update(&s, x, N, NULL), OCT_OK);
    size_t at = 0;
    oct_bin b;
    while (oct_stats_next(&s, &at, &b))
        assert_true(b.lo < 0 || b.hi - b.lo <= 4.1 / 255 / 8);
    assert_true(s.n_bins < 2 * 8176 + 8 * 64);
    oct_stats_free(&s);
    oct_free(x);
}

/* Any order, any split into batches and shards: the same state. */
TEST(order_free)
{
    enum { N = 4000, SAMPLE = 50 };
    float x[N];
    for (int round = 0; round < 20; round++) {
        fill(x, N, round % 2 ? wild : bell);
        if (round % 3 == 0)
            x[rnd() % N] = -10000;
        if (round % 5 == 0)
            x[rnd() % N] = INFINITY;
        oct_stats a, b, c;
        oct_stats_init(&a);
        oct_stats_init(&b);
        oct_stats_init(&c);
        assert_int_equal(oct_stats_update_batch(&a, x, N / SAMPLE, SAMPLE, NULL), OCT_OK);
        size_t order[N / SAMPLE];
        for (size_t i = 0; i < N / SAMPLE; i++)
            order[i] = i;
        for (size_t i = N / SAMPLE; i > 1; i--) {
            size_t j = rnd() % i, t = order[i - 1];
            order[i - 1] = order[j];
            order[j] = t;
        }
        for (size_t i = 0; i < N / SAMPLE; i++) {
            float *p = x + order[i] * SAMPLE;
            shuffle(p, SAMPLE);
            assert_int_equal(oct_stats_update(rnd() & 1 ? &b : &c, p, SAMPLE, NULL), OCT_OK);
        }
        oct_stats d;
        oct_stats_init(&d);
        assert_int_equal(oct_stats_merge(&d, &c, NULL), OCT_OK);
        assert_int_equal(oct_stats_merge(&d, &b, NULL), OCT_OK);
        assert_int_equal(oct_stats_merge(&b, &c, NULL), OCT_OK);
        assert_true(oct_stats_equal(&a, &b));
        assert_true(oct_stats_equal(&a, &d));
        oct_stats_free(&a);
        oct_stats_free(&b);
        oct_stats_free(&c);
        oct_stats_free(&d);
    }
}

/* Doubled until counts need more than 32 bits, and counted on. */
TEST(counts_beyond_32_bits)
{
    enum { N = 1000, DOUBLED = 40 };
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 4 == 0 ? 0.0f : i % 4 == 1 ? -3.0f : 1.5f;
    oct_stats s;
    oct_stats_init(&s);
    assert_int_equal(oct_stats_update(&s, x, N, NULL), OCT_OK);
    for (int i = 0; i < DOUBLED; i++) {
        oct_stats twice;
        oct_stats_init(&twice);
        assert_int_equal(oct_stats_merge(&twice, &s, NULL), OCT_OK);
        assert_int_equal(oct_stats_merge(&twice, &s, NULL), OCT_OK);
        oct_stats_free(&s);
        s = twice;
    }
    assert_int_equal(oct_stats_update(&s, x, N, NULL), OCT_OK);
    const uint64_t quarters = (uint64_t)N / 4 * (((uint64_t)1 << DOUBLED) + 1),
                   counts[3] = { quarters, quarters, 2 * quarters };
    const double value[3] = { -3, 0, 1.5 };
    size_t at = 0;
    oct_bin b;
    for (int i = 0; i < 3; i++) {
        assert_true(oct_stats_next(&s, &at, &b));
        assert_true(b.count == counts[i]);
        assert_true(b.lo <= value[i] && value[i] <= b.hi);
    }
    assert_false(oct_stats_next(&s, &at, &b));
    assert_true(s.min_count == quarters && s.max_count == 2 * quarters && s.n == 4 * quarters);
    oct_stats_free(&s);
}

TEST(nan_changes_nothing)
{
    float x[100];
    fill(x, 100, bell);
    oct_stats s, before;
    oct_stats_init(&s);
    oct_stats_init(&before);
    oct_stats_update(&s, x, 100, NULL);
    oct_stats_update(&before, x, 100, NULL);
    x[3] = INFINITY;
    x[41] = NAN;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_stats_update(&s, x, 100, &err), OCT_ENUMERIC);
    assert_non_null(strstr(err.text, "41"));
    assert_true(oct_stats_equal(&s, &before));
    x[41] = 1e-30f; /* a new octave, and no memory for it */
    oct_alloc_fail_at(1);
    assert_int_equal(oct_stats_update(&s, x, 100, &err), OCT_ENOMEM);
    oct_alloc_fail_at(0);
    assert_true(oct_stats_equal(&s, &before));
    oct_stats_free(&s);
    oct_stats_free(&before);
}

static oct_selection observe(const float *x, size_t n, const char *spec, oct_qrange g)
{
    oct_stats s;
    oct_stats_init(&s);
    assert_int_equal(oct_stats_update(&s, x, n, NULL), OCT_OK);
    oct_observer_spec o;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_observer_parse(spec, &o, &err), OCT_OK);
    oct_selection sel;
    assert_int_equal(oct_observe(&s, o, g, &sel, &err), OCT_OK);
    assert_true(sel.range.lo <= 0 && sel.range.hi >= 0);
    oct_stats_free(&s);
    return sel;
}

static double direct_mse(const float *x, size_t n, oct_qparams q, oct_qrange g)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double c = rint((double)x[i] / q.scale) + q.zero;
        c = c < g.qmin ? g.qmin : c > g.qmax ? g.qmax : c;
        double e = (c - q.zero) * q.scale - x[i];
        sum += e * e;
    }
    return sum / (double)n;
}

static const oct_qrange U8 = { 0, 255, false }, S8 = { -127, 127, true };

TEST(mean_error_is_that_of_the_values)
{
    enum { N = 100000 };
    float *x = oct_alloc(N * sizeof *x);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < N; i++) {
            float v = bell();
            x[i] = kind == 0 ? v : kind == 1 ? (v > 0 ? v : 0) : kind == 2 ? fminf(fmaxf(v * 4, 0), 6) : v * v * v;
        }
        const char *specs[] = { "minmax", "hist-percentile=99.9", "hist-entropy", "hist-mse" };
        for (size_t k = 0; k < OCT_COUNT(specs); k++)
            for (int sym = 0; sym < 2; sym++) {
                oct_qrange g = sym ? S8 : U8;
                oct_selection s = observe(x, N, specs[k], g);
                double d = direct_mse(x, N, s.q, g);
                assert_true(fabs(s.mse - d) <= 0.02 * d);
            }
    }
    oct_free(x);
}

/* No range of a fine two-dimensional search is more than 1 % better. */
TEST(mse_finds_the_least)
{
    enum { N = 20000 };
    float *x = oct_alloc(N * sizeof *x);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < N; i++) {
            float v = bell();
            x[i] = kind == 0   ? v
                   : kind == 1 ? v * v * v
                   : kind == 2 ? (v > 0 ? v * v * v * v : v / 10)
                               : fminf(fmaxf(v, 0), 1);
        }
        oct_selection s = observe(x, N, "hist-mse", U8), full = observe(x, N, "minmax", U8);
        double best = INFINITY;
        for (int i = 1; i <= 40; i++)
            for (int j = 0; j <= 40; j++) {
                oct_range r = { full.range.lo * j / 40, full.range.hi * i / 40 };
                double d = direct_mse(x, N, oct_qparams_from_range(r, U8), U8);
                best = d < best ? d : best;
            }
        assert_true(direct_mse(x, N, s.q, U8) <= best * 1.01);
        assert_true(s.mse <= full.mse);
    }
    oct_free(x);
}

TEST(clamps_are_kept)
{
    enum { N = 20000 };
    float *x = oct_alloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        x[i] = fminf(fmaxf(bell() * 5, 0), 6);
    oct_selection s = observe(x, N, "hist-mse", U8);
    assert_true(s.range.hi == 6 && s.range.lo == 0 && s.clipped == 0);
    for (size_t i = 0; i < N; i++)
        x[i] = 0.75f;
    s = observe(x, N, "hist-mse", U8);
    assert_true(s.range.hi == 0.75f && s.mse < 1e-14);
    s = observe(x, N, "hist-entropy", U8);
    assert_true(s.range.hi == 0.75f);
    memset(x, 0, N * sizeof *x);
    s = observe(x, N, "hist-mse", U8);
    assert_true(s.range.lo == 0 && s.range.hi == 0 && s.q.scale == 1 && s.mse == 0);
    oct_free(x);
}

TEST(percentiles)
{
    enum { N = 100000 };
    float *x = oct_alloc(N * sizeof *x);
    fill(x, N, bell);
    oct_selection s = observe(x, N, "hist-percentile=99.9", U8);
    oct_selection t = observe(x, N, "hist-percentile=100", U8);
    qsort(x, N, sizeof *x, by_value);
    assert_true(fabs(s.range.hi - x[N - 1 - N / 1000]) < 0.01);
    assert_true(fabs(s.range.lo - x[N / 1000]) < 0.01);
    assert_true(t.range.lo == x[0] && t.range.hi == x[N - 1]);
    oct_free(x);
}

/* Bins that hist-entropy looks at, of each sign; the divergence of the values, clipped to the lowest to[1] and to[0] of
 * them, from what 256 levels leave of them, by its definition. */
enum { SIDE = 2048, LEVELS = 256 };

typedef struct sides {
    double width, count[2][SIDE];
    int bins[2];
} sides;

static void count_sides(const float *x, size_t n, sides *l)
{
    double top = 0;
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < n; i++)
        top = fmax(top, fabs((double)x[i]));
    l->width = top / SIDE;
    for (size_t i = 0; i < n; i++) {
        int sign = x[i] < 0, bin = (int)(fabs((double)x[i]) / l->width);
        bin = bin < SIDE ? bin : SIDE - 1;
        if (x[i] != 0) {
            l->count[sign][bin]++;
            l->bins[sign] = bin + 1 > l->bins[sign] ? bin + 1 : l->bins[sign];
        }
    }
}

static double direct_divergence(const sides *l, const int to[2])
{
    static double p[2 * SIDE], inside[2 * SIDE];
    const int n = to[0] + to[1];
    double all = 0, kept = 0, d = 0;
    for (int i = 0; i < n; i++)
        p[i] = inside[i] = i < to[1] ? l->count[1][to[1] - 1 - i] : l->count[0][i - to[1]];
    for (int i = to[0]; i < SIDE && to[0] > 0; i++)
        p[n - 1] += l->count[0][i];
    for (int i = to[1]; i < SIDE && to[1] > 0; i++)
        p[0] += l->count[1][i];
    for (int i = 0; i < n; i++) {
        all += p[i];
        kept += inside[i];
    }
    for (int k = 0; k < LEVELS; k++) {
        const int from = (int)((int64_t)k * n / LEVELS), end = (int)((int64_t)(k + 1) * n / LEVELS);
        double sum = 0, filled = 0;
        for (int i = from; i < end; i++) {
            sum += inside[i];
            filled += p[i] > 0;
        }
        for (int i = from; i < end; i++)
            d += p[i] > 0 ? p[i] / all * log(p[i] / all / (sum / filled / kept)) : 0;
    }
    return d;
}

/* Of all ranges that it may choose, none diverges less by more than what the coarse bins of small values cost. */
TEST(entropy_finds_the_least)
{
    enum { N = 100000 };
    float *x = oct_alloc(N * sizeof *x);
    sides *l = oct_alloc(sizeof *l);
    for (int kind = 0; kind < 9; kind++) {
        for (size_t i = 0; i < N; i++) {
            const float v = bell();
            x[i] = kind % 3 == 0 ? v : kind % 3 == 1 ? fmaxf(v, 0) : v * v * v;
        }
        for (int i = 0; i < 20 && kind % 3 == 0; i++)
            x[i] = (float)(20 + i);
        count_sides(x, N, l);
        double best = INFINITY;
        for (int at = 32; at <= SIDE; at += 32) {
            const int to[2] = { at < l->bins[0] ? at : l->bins[0], at < l->bins[1] ? at : l->bins[1] };
            best = to[0] + to[1] < LEVELS && at < SIDE ? best : fmin(best, direct_divergence(l, to));
        }
        const oct_selection s = observe(x, N, "hist-entropy", U8);
        const int to[2] = { (int)ceil(s.range.hi / l->width - 0.01), (int)ceil(-s.range.lo / l->width - 0.01) };
        assert_true(direct_divergence(l, to) <= best * 1.01 + 1e-5);
        if (kind % 3 == 2) /* heavy tails: the whole range is much worse, so the case tells something */
            assert_true(direct_divergence(l, l->bins) > best * 1.1);
    }
    oct_free(l);
    oct_free(x);
}

TEST(averages)
{
    float x[3][4] = { { -1, 0, 2, 1 }, { -3, 0.5f, 4, 1 }, { 0.25f, 0.5f, 6, 1 } };
    oct_stats s;
    oct_stats_init(&s);
    assert_int_equal(oct_stats_update_batch(&s, &x[0][0], 3, 4, NULL), OCT_OK);
    oct_observer_spec o;
    assert_int_equal(oct_observer_parse("avg-minmax", &o, NULL), OCT_OK);
    oct_selection sel;
    assert_int_equal(oct_observe(&s, o, U8, &sel, NULL), OCT_OK);
    assert_true(sel.range.lo == -1.25f && sel.range.hi == 4);
    oct_stats_free(&s);
}

TEST(masks_are_left_out)
{
    const float masks[] = { -10000, -65504, -1e9f, -FLT_MAX, -INFINITY };
    for (size_t m = 0; m < OCT_COUNT(masks); m++) {
        float x[1000];
        fill(x, 1000, bell);
        for (int i = 0; i < 500; i++)
            x[i * 2] = masks[m];
        for (size_t k = 0; k < oct_observer_count(); k++) {
            oct_selection s = observe(x, 1000, oct_observer_at(k)->name, U8);
            assert_true(s.range.lo > -8 && s.range.lo < -1);
            assert_int_equal(s.excluded, 500);
        }
    }
    float wide[4] = { 0.5f, 3000, 60000, -20 }; /* large but positive: not a mask */
    oct_selection s = observe(wide, 4, "minmax", U8);
    assert_true(s.range.hi == 60000 && s.excluded == 0);
    s = observe(wide, 4, "minmax=2", U8);
    assert_true(s.range.lo == -40 && s.range.hi == 120000);
    float only[2] = { 0, -10000 }; /* the mask itself */
    s = observe(only, 2, "minmax", U8);
    assert_true(s.range.lo == -10000 && s.excluded == 0);
}

TEST(names_are_read)
{
    oct_observer_spec o;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_observer_parse("hist-msee", &o, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.hint, "hist-mse"));
    assert_int_equal(oct_observer_parse("hist-percentile=12", &o, &err), OCT_EUSAGE);
    assert_int_equal(oct_observer_parse("hist-percentile=nan", &o, &err), OCT_EUSAGE);
    assert_int_equal(oct_observer_parse("avg-minmax=3", &o, &err), OCT_EUSAGE);
    assert_int_equal(oct_observer_parse("minmax=0.5", &o, &err), OCT_EUSAGE);
    assert_int_equal(oct_observer_parse("hist-percentile", &o, &err), OCT_OK);
    assert_true(o.param == 99.99);
    assert_string_equal(oct_observer_default().observer->name, "hist-mse");
    for (size_t i = 0; i < oct_observer_count(); i++)
        assert_non_null(strstr(oct_observer_names(), oct_observer_at(i)->name));
}

TEST(affine_parameters)
{
    oct_qrange g;
    assert_int_equal(oct_qrange_of(OCT_U8, false, &g, NULL), OCT_OK);
    oct_qparams q = oct_qparams_from_range((oct_range){ -1, 3 }, g);
    assert_true(q.scale == (float)(4.0 / 255) && q.zero == 64); /* 63.75 */
    q = oct_qparams_from_range((oct_range){ 0, 6 }, g);
    assert_true(q.scale == (float)(6.0 / 255) && q.zero == 0);
    q = oct_qparams_from_range((oct_range){ -1, 1 }, g);
    assert_int_equal(q.zero, 128); /* 127.5, half to even */
    assert_int_equal(oct_qrange_of(OCT_S8, true, &g, NULL), OCT_OK);
    q = oct_qparams_from_range((oct_range){ -2, 1 }, g);
    assert_true(g.qmin == -127 && q.scale == (float)(4.0 / 254) && q.zero == 0);
    q = oct_qparams_from_range((oct_range){ 0, 1e-40f }, g);
    assert_true(q.scale == 1 && q.zero == 0);
    assert_int_equal(oct_qrange_of(OCT_S8, false, &g, NULL), OCT_OK);
    q = oct_qparams_from_range((oct_range){ 0, 255 }, g);
    assert_true(q.scale == 1 && q.zero == -128);
    assert_true(((float)g.qmin - (float)q.zero) * q.scale == 0 && ((float)g.qmax - (float)q.zero) * q.scale == 255);
    assert_int_equal(oct_qrange_of(OCT_F32, false, &g, NULL), OCT_EUNSUPPORTED);
}

TEST(channels)
{
    enum { O = 300, C = 11, I = 40, N = O * C * I };
    float *x = oct_alloc(N * sizeof *x), *y = oct_alloc(N * sizeof *y);
    fill(x, N, wild);
    for (size_t o = 0; o < O; o++)
        for (size_t c = 0; c < C; c++)
            for (size_t i = 0; i < I; i++)
                y[(o * I + i) * C + c] = x[(o * C + c) * I + i];
    oct_chan_stats a, b, d;
    assert_int_equal(oct_chan_init(&a, C, NULL), OCT_OK);
    assert_int_equal(oct_chan_init(&b, C, NULL), OCT_OK);
    assert_int_equal(oct_chan_init(&d, C, NULL), OCT_OK);
    assert_int_equal(oct_chan_update(&a, x, O, 1, I, NULL), OCT_OK);
    assert_int_equal(oct_chan_update(&b, y, O * I / 3, 1, 1, NULL), OCT_OK);
    assert_int_equal(oct_chan_update(&d, y + O * I / 3 * C, O * I - O * I / 3, 1, 1, NULL), OCT_OK);
    assert_int_equal(oct_chan_merge(&b, &d, NULL), OCT_OK);
    assert_memory_equal(a.c, b.c, C * sizeof *a.c);
    for (size_t c = 0; c < C; c++) {
        oct_xsum s = { 0 };
        for (size_t i = 0; i < O * I; i++)
            oct_xsum_add(&s, y[i * C + c]);
        assert_memory_equal(&a.c[c].sum, &s, sizeof s);
        assert_int_equal(a.c[c].n, O * I);
    }
    oct_chan_stats every, third; /* every third row */
    assert_int_equal(oct_chan_init(&every, C, NULL), OCT_OK);
    assert_int_equal(oct_chan_init(&third, C, NULL), OCT_OK);
    assert_int_equal(oct_chan_update(&every, y, 1000, 3, 1, NULL), OCT_OK);
    for (size_t i = 0; i < 1000; i += 3)
        assert_int_equal(oct_chan_update(&third, y + i * C, 1, 1, 1, NULL), OCT_OK);
    assert_memory_equal(every.c, third.c, C * sizeof *every.c);
    oct_chan_free(&every);
    oct_chan_free(&third);
    x[77] = NAN;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_chan_update(&b, x, O, 1, I, &err), OCT_ENUMERIC);
    assert_non_null(strstr(err.text, "77"));
    oct_chan_free(&a);
    oct_chan_free(&b);
    oct_chan_free(&d);
    oct_free(x);
    oct_free(y);
}

TEST(logarithm)
{
    for (int i = 0; i < 100000; i++) {
        double x = ldexp(0.5 + uniform(), (int)(rnd() % 600) - 300);
        assert_true(fabs(oct_log(x) - log(x)) <= 4e-16 * fabs(log(x)) + 4e-16);
    }
    assert_true(oct_log(1) == 0);
}

/* How many of the sorted values are below v, or not above it. */
static size_t rank_of(const float *x, size_t n, double v, bool equal)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (x[mid] < v || (equal && x[mid] == v))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* As check_bins, for many values: sorts them. Subnormal ones share no bin with zero. */
static void check_bins_sorted(const oct_stats *s, float *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
    size_t at = 0;
    uint64_t sum = 0, zeros = rank_of(x, n, 0, true) - rank_of(x, n, 0, false);
    oct_bin b;
    while (oct_stats_next(s, &at, &b)) {
        const bool neg = b.lo < 0; /* bins hold the edge nearer to zero, and no zeros */
        uint64_t c = rank_of(x, n, b.hi, neg) - rank_of(x, n, b.lo, neg);
        c = b.lo == b.hi ? zeros : b.lo == 0 || b.hi == 0 ? c - zeros : c;
        assert_int_equal(c, b.count);
        sum += c;
    }
    assert_int_equal(sum, n);
}

/* Many values of few octaves go another way than the first ones and strange ones; they land in the same bins. */
TEST(bins_of_long_tensors)
{
    enum { N = 30000, PARTS = 3 };
    float *x = oct_alloc(PARTS * N * sizeof *x), *sorted = oct_alloc(PARTS * N * sizeof *x);
    for (int kind = 0; kind < 7; kind++) {
        for (size_t i = 0; i < PARTS * N; i++) {
            float v = bell();
            v = kind == 1 && v < 0 ? 0 : kind == 2 && v < 0 ? v / 64 : v;
            x[i] = kind == 5   ? rintf(v * 16)
                   : kind == 6 ? ldexpf(v, -117)
                   : v > 6     ? 6
                               : v; /* few octaves; such that scales would overflow */
        }
        x[N + 5] = kind == 5 ? 0.3f : x[N + 5];   /* behind a gap */
        x[N + 7] = kind == 3 ? 1e-30f : x[N + 7]; /* new octaves below and above */
        x[2 * N + 9] = kind == 4 ? -77 : x[2 * N + 9];
        x[2 * N + 11] = kind == 4 ? 1e-41f : x[2 * N + 11];
        oct_stats s, one;
        oct_stats_init(&s);
        oct_stats_init(&one);
        for (size_t p = 0; p < PARTS; p++) {
            assert_int_equal(oct_stats_update(&s, x + p * N, N, NULL), OCT_OK);
            memcpy(sorted, x, (p + 1) * N * sizeof *x);
            check_bins_sorted(&s, sorted, (p + 1) * N);
        }
        for (size_t i = 0; i < PARTS; i++)
            assert_int_equal(oct_stats_update(&one, x + (PARTS - 1 - i) * N, N, NULL), OCT_OK);
        assert_true(oct_stats_equal(&s, &one));
        oct_stats_free(&s);
        oct_stats_free(&one);
    }
    oct_free(x);
    oct_free(sorted);
}
