/* tests/check/main.c -- runs the kernel checks, all or the named ones, and reports in TAP; --bench times real layers
 * instead, --plan foretells what more threads bring, --bits prints bits.inc. OCT_ISA narrows the instruction sets;
 * where the CPU lacks it, checks are skipped (with OCT_MUST_RUN set, failed). */
#include "check.h"
#include "peak.h"

#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 128 };

/* Under the address sanitizer reads of the guards are caught too. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FENCE(p) __asan_poison_memory_region((p), GUARD)
#define UNFENCE(p) __asan_unpoison_memory_region((p), GUARD)
#else
#define FENCE(p) ((void)(p))
#define UNFENCE(p) ((void)(p))
#endif

uint32_t oct_check_random(oct_check *t)
{
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->seed >> 33) ^ (uint32_t)(t->seed >> 13);
}

size_t oct_check_below(oct_check *t, size_t n)
{
    return oct_check_random(t) % n;
}

void *oct_check_buffer(oct_check *t, size_t size)
{
    uint8_t *p = oct_alloc(size + 2 * GUARD);
    if (!p || t->bufs == OCT_COUNT(t->buf)) {
        fprintf(stderr, "check: out of memory\n");
        exit(7);
    }
    memset(p, 0xa5, size + 2 * GUARD);
    FENCE(p);
    FENCE(p + GUARD + size);
    t->buf[t->bufs].p = p;
    t->buf[t->bufs++].size = size;
    return p + GUARD;
}

void oct_check_release(oct_check *t)
{
    for (size_t b = 0; b < t->bufs; b++) {
        const uint8_t *p = t->buf[b].p;
        UNFENCE(p);
        UNFENCE(p + GUARD + t->buf[b].size);
        for (size_t i = 0; i < GUARD; i++)
            if (p[i] != 0xa5 || p[GUARD + t->buf[b].size + i] != 0xa5) {
                printf("# FAIL buffer %zu of %zu bytes: guard overwritten\n", b, t->buf[b].size);
                t->failed++;
                break;
            }
        oct_free(t->buf[b].p);
    }
    t->bufs = 0;
}

void oct_fill_f32(oct_check *t, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)oct_check_random(t) * 0x1p-31f;
}

void oct_fill_f32_wild(oct_check *t, float *x, size_t n)
{
    static const float odd[] = { 0.0f, -0.0f, 1e30f, -3e38f, 1e-40f, -1e-30f, 1.0f };
    oct_fill_f32(t, x, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t r = oct_check_random(t);
        if (r % 7 == 0)
            x[i] = odd[r / 7 % OCT_COUNT(odd)];
        else if (r % 997 == 1)
            x[i] = r & 1024 ? __builtin_inff() : -__builtin_inff();
        else if (r % 997 == 2)
            x[i] = r & 1024 ? __builtin_nanf("0x1234") : -__builtin_nanf("7");
    }
}

void oct_fill_bytes(oct_check *t, void *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)x)[i] = (uint8_t)oct_check_random(t);
}

void oct_fill_extremes(oct_check *t, void *x, size_t n)
{
    static const uint8_t ends[] = { 0, 255, 127, 128 };
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)x)[i] = ends[oct_check_below(t, 4)];
}

static void say(const char *fmt, va_list ap)
{
    printf("# FAIL ");
    vprintf(fmt, ap);
}

bool oct_check_wrong(oct_check *t, bool wrong, const char *fmt, ...)
{
    va_list ap;
    t->cases++;
    if (!wrong)
        return false;
    t->failed++;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    printf("\n");
    return true;
}

void oct_check_same(oct_check *t, const void *want, const void *got, size_t size, size_t elem, const char *fmt, ...)
{
    t->cases++;
    const uint8_t *w = want, *g = got;
    if (size == 0 || memcmp(w, g, size) == 0)
        return;
    size_t at = 0, bad = 0;
    for (size_t i = 0; i + elem <= size; i += elem)
        if (memcmp(w + i, g + i, elem) != 0 && bad++ == 0)
            at = i;
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap);
    va_end(ap);
    uint64_t a = 0, b = 0;
    memcpy(&a, w + at, elem);
    memcpy(&b, g + at, elem);
    printf(": %zu of %zu differ, first at %zu: want %08" PRIx64 ", got %08" PRIx64 "\n", bad, size / elem, at / elem, a,
           b);
    if (++t->failed > 40)
        exit(1);
}

static double time_for(void (*fn)(void *), void *arg, double least)
{
    size_t calls = 0;
    const double start = oct_peak_seconds();
    double took;
    do {
        fn(arg);
        calls++;
    } while ((took = oct_peak_seconds() - start) < least);
    return took / (double)calls;
}

double oct_check_time_once(void (*fn)(void *), void *arg)
{
    return time_for(fn, arg, 0.0005);
}

double oct_check_time(void (*fn)(void *), void *arg)
{
    double best = 1e9;
    fn(arg);
    for (int round = 0; round < 25; round++) {
        const double s = time_for(fn, arg, 0.002);
        best = s < best ? s : best;
    }
    return best;
}

static const struct {
    const char *name;
    void (*fn)(oct_check *);
} checks[] = {
    { "sgemm", check_sgemm },  { "bgemm", check_bgemm },   { "qgemm", check_qgemm }, { "qout", check_qout },
    { "depthwise", check_dw }, { "sconv", check_sconv },   { "qconv", check_qconv }, { "nbits", check_nbits },
    { "elem", check_elem },    { "count", check_count },   { "math", check_math },   { "values", check_values },
    { "items", check_items },  { "choice", check_choice },
};

/* Marks the named checks, or all; false when a name is unknown. */
static bool choose(char *const *names, int n, bool chosen[OCT_COUNT(checks)])
{
    memset(chosen, n == 0, OCT_COUNT(checks));
    for (int i = 0; i < n; i++) {
        size_t c = 0;
        while (c < OCT_COUNT(checks) && strcmp(names[i], checks[c].name) != 0)
            c++;
        if (c == OCT_COUNT(checks))
            return false;
        chosen[c] = true;
    }
    return true;
}

static void run_check(oct_check *t, size_t i, int number)
{
    const size_t cases = t->cases, failed = t->failed;
    t->seed = 20240229 + i; /* whatever ran before, on any machine */
    checks[i].fn(t);
    printf("%sok %d - %s %s, %zu cases\n", t->failed > failed ? "not " : "", number, oct_isa_name(oct_isa_active()),
           checks[i].name, t->cases - cases);
    fflush(stdout);
}

static int run_checks(oct_check *t, char *const *names, int n)
{
    bool chosen[OCT_COUNT(checks)];
    if (!choose(names, n, chosen)) {
        printf(
            "Bail out! usage: check_kernels [--bench [FILE...] | --order FILE... | --costs FILE... | --times FILE... | --measured TIMES FILE... | --plan FILE... | --bits | CHECK...]\n");
        return 2;
    }
    int count = 0, number = 0;
    for (size_t i = 0; i < OCT_COUNT(checks); i++)
        count += chosen[i];
    printf("1..%d\n", count);
    for (size_t i = 0; i < OCT_COUNT(checks); i++)
        if (chosen[i])
            run_check(t, i, ++number);
    return t->failed != 0;
}

int main(int argc, char **argv)
{
    oct_check t = { .seed = 20240229 };
    const char *isa = getenv("OCT_ISA");
    oct_err err = OCT_ERR_INIT;
    const oct_status s = isa ? oct_isa_limit(isa, &err) : OCT_OK;
    if (s != OCT_OK) {
        const bool skip = s == OCT_EUNSUPPORTED && !getenv("OCT_MUST_RUN");
        printf(skip ? "1..0 # SKIP %s\n" : "Bail out! %s\n", err.text);
        return !skip;
    }
    t.pool = oct_pool_create(2);
    int status = 0;
    if (argc >= 2 && strcmp(argv[1], "--bench") == 0) {
        status = !bench_products(&t, argv + 2, argc - 2);
        if (argc == 2) {
            bench_nbits(&t);
            bench_rows(&t);
        }
    } else if (argc >= 3 && strcmp(argv[1], "--plan") == 0) {
        status = !bench_plan(argv + 2, argc - 2);
    } else if (argc >= 3 && strcmp(argv[1], "--order") == 0) {
        status = !bench_order(&t, argv + 2, argc - 2);
    } else if (argc >= 3 && strcmp(argv[1], "--costs") == 0) {
        status = !bench_costs(&t, argv + 2, argc - 2);
    } else if (argc >= 3 && strcmp(argv[1], "--times") == 0) {
        status = !bench_times(&t, argv + 2, argc - 2);
    } else if (argc >= 4 && strcmp(argv[1], "--measured") == 0) {
        status = !check_measured(argv[2], argv + 3, argc - 3);
    } else if (argc == 2 && strcmp(argv[1], "--bits") == 0) {
        print_bits(&t);
    } else {
        status = run_checks(&t, argv + 1, argc - 1);
    }
    oct_pool_destroy(t.pool);
    return status;
}
