/* lib/eval's intervals: how often they hold the truth, by exact enumeration (proportions) and by simulation (means);
 * and values computed elsewhere. */
#include "eval/metrics/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define NEAR(a, b, tol) assert_true(fabs((a) - (b)) <= (tol))

/* ---- proportions ---- */

static oct_interval of_counts(int n, int up, int down)
{
    oct_paired p = { .n = (uint64_t)n, .up = (uint64_t)up, .down = (uint64_t)down, .sum = up - down };
    return oct_paired_proportion(&p);
}

TEST(proportions_by_hand)
{
    /* The likelihood maximized numerically for each hypothesis, in 40 digits, by a script of its own. */
    static const struct {
        int n, up, down;
        double lo, hi;
    } known[] = {
        { 100, 3, 10, -0.151020292381, 0.001914511750 },
        { 100, 0, 8, -0.151217892302, -0.038144016551 },
        { 400, 0, 0, -0.010001348474, 0.010001348474 },
        { 400, 1, 0, -0.007525143901, 0.014441285834 },
        { 150, 0, 3, -0.058104252912, 0.006753491172 },
        { 2000, 40, 17, 0.004196243305, 0.019476679353 },
        { 1000, 120, 180, -0.093966798431, -0.026109622610 },
        { 100, 55, 45, -0.096089464604, 0.288653540931 },
        { 20, 20, 0, 0.669424375939, 1 },
        { 100000, 40000, 50000, -0.105844410033, -0.094148337693 },
    };
    for (size_t i = 0; i < OCT_COUNT(known); i++) {
        oct_interval d = of_counts(known[i].n, known[i].up, known[i].down);
        NEAR(d.mean, (known[i].up - known[i].down) / (double)known[i].n, 1e-15);
        NEAR(d.lo, known[i].lo, 1e-11);
        NEAR(d.hi, known[i].hi, 1e-11);
    }
    /* Airway hyper-responsiveness (Bentur 2009), published with Tango's interval of -0.517 to -0.026: ours is a little
     * wider. */
    oct_interval d = of_counts(21, 1, 7);
    assert_true(d.lo < -0.517 && d.lo > -0.525 && d.hi > -0.026 && d.hi < -0.02);
    assert_true(isnan(of_counts(0, 0, 0).lo));
}

TEST(a_bound_passes_the_estimate)
{
    for (int n = 1; n <= 40; n++)
        for (int up = 0; up <= n; up++)
            for (int down = 0; up + down <= n; down++) {
                oct_interval d = of_counts(n, up, down), r = of_counts(n, down, up);
                assert_true(d.lo >= -1 && d.hi <= 1 && d.lo == -r.hi && d.hi == -r.lo);
                assert_true((d.lo < d.mean || down == n) && (d.hi > d.mean || up == n));
            }
}

/* The intervals of one n, each made once: rates that follow each other share most of them. */
enum { COUNTS = 520 };
static oct_interval made[COUNTS][COUNTS];
static bool is_made[COUNTS][COUNTS];
static int made_for;

static oct_interval of_counts_once(int n, int up, int down)
{
    if (made_for != n) {
        memset(is_made, 0, sizeof is_made);
        made_for = n;
    }
    if (!is_made[up][down]) {
        made[up][down] = of_counts(n, up, down);
        is_made[up][down] = true;
    }
    return made[up][down];
}

/* ln k! */
static double log_factorial[2001];

static void make_factorials(void)
{
    for (int k = 1; k <= 2000; k++)
        log_factorial[k] = log_factorial[k - 1] + log(k);
}

static double times_log(int k, double p)
{
    return k ? k * log(p) : 0;
}

/* What lies beyond these has a probability below 1e-4, and counts as not held. */
static int first_count(int n, double p)
{
    double at = n * p - 4.5 * sqrt(n * p) - 4;
    return at > 0 ? (int)at : 0;
}

static int last_count(int n, double p)
{
    double at = n * p + 4.5 * sqrt(n * p) + 9;
    return p == 0 ? 0 : at < n ? (int)at : n;
}

/* How often the interval of n samples holds the true difference: the probabilities of the counts, summed. */
static double coverage(int n, double p_up, double p_down)
{
    double held = 0;
    for (int up = first_count(n, p_up); up <= last_count(n, p_up); up++)
        for (int down = first_count(n, p_down); down <= last_count(n, p_down) && up + down <= n; down++) {
            const int same = n - up - down;
            oct_interval d = of_counts_once(n, up, down);
            if (d.lo <= p_up - p_down && p_up - p_down <= d.hi)
                held += exp(log_factorial[n] - log_factorial[up] - log_factorial[down] - log_factorial[same] +
                            times_log(up, p_up) + times_log(down, p_down) + times_log(same, 1 - p_up - p_down));
        }
    return held;
}

static void must_cover(int n, double p_up, double p_down, double got)
{
    if (got < 0.93)
        fail_msg("n = %d, %.3f %% against %.3f %%: %.4f", n, 100 * p_up, 100 * p_down, got);
}

TEST(proportions_cover)
{
    static const int sizes[] = { 100, 150, 200, 400, 1000, 2000 };
    static const double rates[] = { 0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2 };
    double sum = 0, least = 1;
    int cases = 0;
    make_factorials();
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        for (size_t a = 0; a < OCT_COUNT(rates); a++)
            for (size_t b = a; b < OCT_COUNT(rates); b++, cases++) {
                double got = coverage(sizes[i], rates[b], rates[a]);
                must_cover(sizes[i], rates[b], rates[a], got);
                sum += got;
                least = got < least ? got : least;
            }
    print_message("# %d cases: %.4f at least, %.4f on average\n", cases, least, sum / cases);
    assert_true(sum / cases >= 0.95);
}

/* Rates between those, where few or none go the other way: the hardest, as a single count carries much. */
TEST(small_rates_cover)
{
    static const int sizes[] = { 100, 121, 139, 175, 250, 400, 640, 1000, 1440, 2000 };
    double least = 1;
    make_factorials();
    for (size_t i = 0; i < OCT_COUNT(sizes); i++)
        for (double expected = 0.1; expected < 20; expected *= 1.03)
            for (double other = 0; other < 2; other += 0.7) {
                double got = coverage(sizes[i], expected / sizes[i], other / sizes[i]);
                must_cover(sizes[i], expected / sizes[i], other / sizes[i], got);
                least = got < least ? got : least;
            }
    print_message("# small rates: %.4f at least\n", least);
}

/* ---- means ---- */

TEST(normal_distribution)
{
    /* mpmath, 25 digits */
    static const double known[][2] = { { -5, 2.86651571879193912e-7 }, { -1.5, 0.066807201268858066 },
                                       { 0.3, 0.617911422188952633 },  { 1, 0.841344746068542949 },
                                       { 1.9599639845400545, 0.975 },  { 4, 0.99996832875816688 } };
    for (size_t i = 0; i < OCT_COUNT(known); i++) {
        NEAR(oct_normal_cdf(known[i][0]), known[i][1], 1e-15);
        NEAR(oct_normal_quantile(known[i][1]), known[i][0], 1e-9);
    }
    assert_true(oct_normal_cdf(0) == 0.5 && oct_normal_cdf(-100) == 0 && oct_normal_cdf(INFINITY) == 1 &&
                isnan(oct_normal_cdf(NAN)));
}

static double skewed(int i)
{
    double x = (double)(i * 37 % 101) / 101;
    return x * x * x * x;
}

/* n differences of skewed(); backward: in the other order. */
static oct_interval of_skewed(int n, bool backward)
{
    oct_paired p = { 0 };
    for (int i = 0; i < n; i++)
        oct_paired_add(&p, 5, 5 + skewed(backward ? n - 1 - i : i));
    return oct_paired_mean(&p);
}

TEST(means_by_hand)
{
    /* BCa by numpy with other random numbers and 400000 resamples (n = 500: 200000); 3000: ABC by numpy. tolerance: of
     * what 10000 resamples leave to chance. */
    static const struct {
        int n;
        double lo, hi, tolerance;
    } known[] = {
        { 10, 0.03867425, 0.44342864, 0.012 },
        { 100, 0.14811365, 0.25371401, 0.0016 },
        { 500, 0.17327531, 0.21940177, 0.0008 },
        { 3000, 0.18597260036038263, 0.20467999039913967, 1e-11 },
    };
    for (size_t i = 0; i < OCT_COUNT(known); i++) {
        oct_interval d = of_skewed(known[i].n, false), r = of_skewed(known[i].n, true);
        NEAR(d.lo, known[i].lo, known[i].tolerance);
        NEAR(d.hi, known[i].hi, known[i].tolerance);
        NEAR(d.lo, r.lo, 1e-14);
        NEAR(d.hi, r.hi, 1e-14);
    }
    /* Where one method follows the other the interval does not jump. */
    oct_interval a = of_skewed(OCT_PAIRED_KEPT, false), b = of_skewed(OCT_PAIRED_KEPT + 1, false);
    NEAR(a.lo, b.lo, 0.03 * (a.hi - a.lo));
    NEAR(a.hi, b.hi, 0.03 * (a.hi - a.lo));
}

TEST(means_of_odd_values)
{
    oct_paired p = { 0 };
    for (int i = 0; i < 50; i++)
        oct_paired_add(&p, 1, 1.1);
    oct_interval d = oct_paired_mean(&p);
    assert_true(d.lo == d.mean && d.hi == d.mean);
    oct_paired_add(&p, 1, INFINITY); /* a broken output has an infinite error */
    d = oct_paired_mean(&p);
    assert_true(isinf(d.mean) && isnan(d.lo) && isnan(d.hi));
    oct_paired_add(&p, INFINITY, INFINITY);
    d = oct_paired_mean(&p);
    assert_true(isnan(d.mean) && isnan(d.lo) && isnan(d.hi));
    /* One sample that counts for all: bounds stay finite and ordered. */
    for (int n = 2; n < 40; n++) {
        p = (oct_paired){ 0 };
        for (int i = 0; i < n; i++)
            oct_paired_add(&p, 0, i == n / 2 ? 1e6 : 0);
        d = oct_paired_mean(&p);
        assert_true(isfinite(d.lo) && isfinite(d.hi) && d.lo <= d.mean && d.mean <= d.hi && d.lo < d.hi);
    }
}

static uint64_t state_of_draws;

static double uniform(void)
{
    state_of_draws ^= state_of_draws << 13;
    state_of_draws ^= state_of_draws >> 7;
    state_of_draws ^= state_of_draws << 17;
    return ((double)(state_of_draws >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Distributions with mean 0. */
static double evenly(void)
{
    return uniform() - 0.5;
}

static double exponential(void)
{
    return -log(uniform()) - 1;
}

static double student5(void)
{
    double squares = 0, z = normal();
    for (int i = 0; i < 5; i++) {
        double y = normal();
        squares += y * y;
    }
    return z / sqrt(squares / 5);
}

static double now_and_then(void)
{
    return uniform() < 0.05 ? 19 : -1;
}

static double simulated(double (*draw)(void), int n, int rounds)
{
    int held = 0;
    state_of_draws = 88172645463325252u;
    for (int k = 0; k < rounds; k++) {
        oct_paired p = { 0 };
        for (int i = 0; i < n; i++)
            oct_paired_add(&p, 0, draw());
        oct_interval d = oct_paired_mean(&p);
        held += oct_interval_holds(&d, 0);
    }
    return (double)held / rounds;
}

TEST(means_cover)
{
    static const struct {
        const char *name;
        double (*draw)(void);
    } kinds[] = { { "normal", normal },
                  { "uniform", evenly },
                  { "exponential", exponential },
                  { "t5", student5 },
                  { "1 in 20", now_and_then } };
    static const struct {
        int n, rounds;
    } sizes[] = { { 100, 300 }, { 1500, 700 } };
    for (size_t k = 0; k < OCT_COUNT(kinds); k++)
        for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
            double got = simulated(kinds[k].draw, sizes[i].n, sizes[i].rounds);
            if (got < 0.92)
                fail_msg("%s, n = %d: %.3f", kinds[k].name, sizes[i].n, got);
        }
}

/* ---- what an interval says ---- */

TEST(verdicts)
{
    oct_interval d = of_counts(400, 1, 0);
    assert_true(oct_interval_holds(&d, 0) && oct_interval_holds(&d, d.mean) && oct_interval_holds(&d, 0.01));
    assert_false(oct_interval_holds(&d, 0.02));
    d = (oct_interval){ 0.01, NAN, NAN };
    assert_false(oct_interval_holds(&d, 0.01));
    assert_int_equal(oct_interval_samples(&d, 400, 0.02), 0);
    /* Half as wide with four times as many: 0.01 +- 0.02 at 100 tells from 0 with 400, from -0.005 with 177.8. */
    d = (oct_interval){ 0.01, -0.01, 0.03 };
    assert_int_equal(oct_interval_samples(&d, 100, 0), 400);
    assert_int_equal(oct_interval_samples(&d, 100, -0.005), 180);
    assert_int_equal(oct_interval_samples(&d, 1234, 0), 5000);
    assert_int_equal(oct_interval_samples(&d, 100, 0.01), 0);
    /* Where no sample differs the interval is narrower in proportion; not where gains and losses cancel out. */
    d = of_counts(60, 0, 0);
    for (double limit = 0.01; limit > 1e-4; limit /= 3) {
        const uint64_t n = oct_interval_samples(&d, 60, limit);
        assert_true(fabs(of_counts((int)n, 0, 0).hi / limit - 1) < 0.1);
    }
    for (int k = 1; k <= 10; k++) {
        d = of_counts(60, k, k);
        const uint64_t n = oct_interval_samples(&d, 60, 0.01);
        const double hi = of_counts((int)n, (int)n * k / 60, (int)n * k / 60).hi;
        assert_true(hi > 0.005 && hi < 0.0105); /* enough, and of few that differ up to three times as many */
    }
    d = (oct_interval){ 0.01, -0.01, 0.03 };
    /* 100 (0.02 / 0.0007)^2 = 81632.7; 100 (0.02 / 0.0006)^2 = 111111, which nobody collects. */
    assert_int_equal(oct_interval_samples(&d, 100, 0.0107), 82000);
    assert_int_equal(oct_interval_samples(&d, 100, 0.0106), 0);
}
