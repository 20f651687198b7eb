/* tests/check/check.h -- kernels against their references: random data, guarded buffers, counting.
 *
 * Buffers come from the context and live until the next case; each ends at guard bytes that
 * oct_check_guards() looks at. Everything is seeded, so a failure repeats. */
#ifndef OCT_TESTS_CHECK_H
#define OCT_TESTS_CHECK_H

#include "base/mem.h"
#include "base/pool.h"
#include "kernels/cpu.h"

struct oct_conv_geom;

typedef struct oct_check {
    uint64_t seed;
    size_t cases, failed;
    oct_pool *pool; /* two threads */
    struct {
        uint8_t *p;
        size_t size;
    } buf[64];
    size_t bufs;
} oct_check;

uint32_t oct_check_random(oct_check *t);
size_t oct_check_below(oct_check *t, size_t n);
void *oct_check_buffer(oct_check *t, size_t size); /* 64-byte aligned, filled with 0xa5 */
void oct_check_release(oct_check *t);              /* looks at the guards, then frees all buffers */

void oct_fill_f32(oct_check *t, float *x, size_t n);      /* in -1..1 */
void oct_fill_f32_wild(oct_check *t, float *x, size_t n); /* with zeros of both signs, huge, inf, NaN */
void oct_fill_bytes(oct_check *t, void *x, size_t n);
void oct_fill_extremes(oct_check *t, void *x, size_t n); /* bytes 0, 255, 127, 128 */

/* Counts a case; on a difference prints where, and the text. Compares bytes. */
void oct_check_same(oct_check *t, const void *want, const void *got, size_t size, size_t elem, const char *fmt, ...)
    OCT_PRINTF(6, 7);
/* Counts a case; when it is wrong, prints the text. Returns `wrong`. */
bool oct_check_wrong(oct_check *t, bool wrong, const char *fmt, ...) OCT_PRINTF(3, 4);

/* Names of the records of all families, of floats or of bytes, that may run at the level in use; returns how many. */
enum { OCT_CHECK_RECORDS = 32 };
size_t oct_check_records(bool bytes, const char *names[OCT_CHECK_RECORDS]);
/* The shapes of the table of check_choice.c; false: there is no i-th. */
bool oct_check_shape(size_t i, struct oct_conv_geom *g);
/* Plans take one of them by chance, or choose by cost, until oct_choice_want(NULL, NULL). */
void oct_check_want_any(oct_check *t, bool bytes);

/* Calls fn(arg) often enough to time it; returns seconds of this thread's CPU a call (best of some). */
double oct_check_time(void (*fn)(void *), void *arg);
/* The same, once: of 0.5 ms at least. */
double oct_check_time_once(void (*fn)(void *), void *arg);

void check_sgemm(oct_check *t);
void check_bgemm(oct_check *t);
void check_qgemm(oct_check *t);
void check_qout(oct_check *t);
void check_dw(oct_check *t);
void check_choice(oct_check *t);
void check_sconv(oct_check *t);
void check_qconv(oct_check *t);
void check_nbits(oct_check *t);
void check_elem(oct_check *t);
void check_count(oct_check *t);
void check_math(oct_check *t);
void check_values(oct_check *t);
void check_items(oct_check *t);
/* Times the shapes of n files of bench/shapes; n 0: a selection. false when a file cannot be used. */
bool bench_products(oct_check *t, char **files, int n);
/* What the cost model of work items expects of more threads, for the 8-bit products of n files. */
bool bench_plan(char **files, int n);
/* Measures every record that may compute the layers of n files, and lists where the one chosen takes 10 % longer than
 * the fastest; false when there is one. */
bool bench_order(oct_check *t, char **files, int n);
/* Measures the same and prints what fits it best, the lines of kernels/costs.inc for this CPU; false when a file cannot
 * be read. */
bool bench_costs(oct_check *t, char **files, int n);
/* Measures the same and prints each time, a file of bench/shapes/measured. */
bool bench_times(oct_check *t, char **files, int n);
/* Whether no layer of n files takes a kernel, on the class of CPUs that times_file is named for, that took 10 % longer
 * there than the fastest by that file. */
bool check_measured(const char *times_file, char **files, int n);
void bench_rows(oct_check *t);
void bench_nbits(oct_check *t);
void print_bits(oct_check *t);

#endif
