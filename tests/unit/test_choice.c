/* Which samples are chosen: places spread over all, and what sources give of them. */
#include "folder.h"
#include "unit.h"

#include "data/source/choice.h"
#include "data/data.h"
#include "data/data_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_GROUP(folder_make, folder_remove);

/* ---- places ---- */

/* One of each stratum; the strata's bounds are computed here from their definition. */
TEST(each_stratum_gives_one)
{
    static const int64_t totals[] = { 1, 2, 3, 7, 64, 100, 2317, 10007 };
    for (size_t k = 0; k < 2 * sizeof totals / sizeof totals[0]; k++)
        for (int64_t total = totals[k / 2], n = 1; n <= total; n += 1 + n / 7) {
            const int64_t strata = n > total / 2 ? total - n : n;
            int64_t chosen = 0, at = 0;
            for (int64_t i = 0; i < total; i++)
                chosen += oct_spread_has(total, n, i, k % 2 * 77);
            assert_int_equal(chosen, n);
            for (int64_t s = 0; s < strata; s++) {
                const int64_t end = at + total / strata + (s < total % strata);
                int64_t odd = 0;
                for (; at < end; at++)
                    odd += oct_spread_has(total, n, at, k % 2 * 77) == (strata == n);
                assert_int_equal(odd, 1);
            }
        }
    assert_true(oct_spread_has(5, 0, 4, 0) && oct_spread_has(5, 9, 4, 0));
    assert_true(oct_spread_has(INT64_MAX, INT64_MAX - 1, 0, 0) || oct_spread_has(INT64_MAX, INT64_MAX - 1, 1, 0));
}

/* The next place is the one that a search finds. */
TEST(the_next_place_is_found)
{
    static const int64_t totals[] = { 1, 2, 3, 7, 64, 100, 2317 };
    for (size_t k = 0; k < 2 * sizeof totals / sizeof totals[0]; k++)
        for (int64_t total = totals[k / 2], n = 0; n <= total + 1; n += 1 + n / 7)
            for (int64_t at = total, next = total; at >= 0; at--) {
                next = at < total && oct_spread_has(total, n, at, k % 2 * 77) ? at : next;
                assert_int_equal(oct_spread_next(total, n, at, k % 2 * 77), next);
            }
    assert_in_range(oct_spread_next(INT64_MAX, 3, INT64_MAX / 2, 0), INT64_MAX / 2, INT64_MAX);
}

/* Two choices of a tenth have a tenth of themselves in common, and not all. */
TEST(seeds_choose_others)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        int both = 0, again = 0;
        for (int64_t i = 0; i < 10000; i++) {
            both += oct_spread_has(10000, 1000, i, 0) && oct_spread_has(10000, 1000, i, seed);
            again += oct_spread_has(10000, 1000, i, seed) && oct_spread_has(10000, 1000, i, seed + 1);
        }
        assert_in_range(both, 60, 150);
        assert_in_range(again, 60, 150);
    }
    assert_true(oct_seeded_hash(9, 0) == oct_place_hash(9) && oct_seeded_hash(9, 1) != oct_place_hash(9));
}

/* Data that repeats with the width of a stratum is met at all of its phases. */
TEST(periods_do_not_alias)
{
    enum { TOTAL = 8000, N = 800, PERIOD = TOTAL / N };
    int seen[PERIOD] = { 0 };
    for (int64_t i = 0; i < TOTAL; i++)
        if (oct_spread_has(TOTAL, N, i, 0))
            seen[i % PERIOD]++;
    for (int i = 0; i < PERIOD; i++)
        assert_in_range(seen[i], N / PERIOD / 2, 2 * N / PERIOD);
}

TEST(a_fifth_stays_aside)
{
    assert_int_equal(oct_choice_count(100, 0, false), 100);
    assert_int_equal(oct_choice_count(100, 0, true), 80);
    assert_int_equal(oct_choice_count(100, 98, true), 80);
    assert_int_equal(oct_choice_count(100, 64, true), 64);
    assert_int_equal(oct_choice_count(4, 0, true), 4);
    assert_int_equal(oct_choice_count(4, 9, false), 4);
    assert_int_equal(oct_choice_count(0, 9, true), 0);
}

/* ---- sources ---- */

enum { MOST = 200 };

/* An .npy of float32 [n,1] that counts from `from`, or of [1] where n is 0. Returns its bytes. */
static size_t put_npy(char *dst, int n, int from)
{
    memset(dst, ' ', 128);
    memcpy(dst, "\x93NUMPY\x01\x00\x76\x00", 10);
    char shape[24], head[80];
    snprintf(shape, sizeof shape, n ? "(%d, 1)" : "(1,)", n);
    int len = snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    memcpy(dst + 10, head, (size_t)len);
    dst[127] = '\n';
    for (int i = 0; i < (n ? n : 1); i++)
        memcpy(dst + 128 + 4 * i, &(float){ (float)(from + i) }, 4);
    return 128 + 4 * (size_t)(n ? n : 1);
}

static char *npy_of(int n)
{
    static char bytes[128 + 4 * MOST];
    char *path = folder_path("x.npy");
    write_file(path, bytes, put_npy(bytes, n, 0));
    return path;
}

/* An archive of n members NNN.npy. */
static char *tar_of(int n)
{
    char *path = folder_path("x.tar");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i <= n; i++) {
        char block[1024] = { 0 };
        unsigned sum = 0;
        if (i < n) {
            const size_t bytes = put_npy(block + 512, 0, i);
            snprintf(block, 100, "%03d.npy", i);
            memcpy(block + 100, "0000644\0000000000\0000000000", 24);
            snprintf(block + 124, 12, "%011o", (unsigned)bytes);
            memcpy(block + 136, "00000000000\0        0", 21);
            memcpy(block + 257, "ustar\00000", 8);
            for (int k = 0; k < 512; k++)
                sum += (unsigned char)block[k];
            snprintf(block + 148, 8, "%06o", sum);
        }
        fwrite(block, 1, sizeof block, f);
    }
    fclose(f);
    return path;
}

static oct_source *open_it(const char *spec, oct_source_options o)
{
    static const int64_t dims[2] = { -1, 1 };
    const oct_input_desc in = { "x", OCT_F32, 2, dims };
    oct_source *s = NULL;
    oct_err err = OCT_ERR_INIT;
    o.specs = &spec;
    o.n_specs = 1;
    o.inputs = &in;
    o.n_inputs = 1;
    if (oct_source_open(&o, &s, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return s;
}

/* Marks the samples of a pass; their values are their places. Returns how many. */
static int64_t take_all(oct_source *s, bool mark[MOST])
{
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    int64_t n = 0, last = -1;
    memset(mark, 0, MOST * sizeof *mark);
    while (oct_source_next(s, 3, &b, &err) == OCT_OK && b.n)
        for (size_t i = 0; i < b.n; i++, n++) {
            assert_true(b.indices[i] > last && b.indices[i] < MOST);
            last = b.indices[i];
            assert_true(((float *)b.tensors[0].data)[i] == (float)last);
            mark[last] = true;
        }
    assert_string_equal(err.text, "");
    oct_batch_free(&b);
    return n;
}

/* The places that a program in another language finds for 7 of 100. */
static const int seven[] = { 10, 20, 34, 53, 64, 82, 96 };

TEST(chosen_are_spread)
{
    for (int kind = 0; kind < 2; kind++) {
#ifndef OCT_HAVE_ARCHIVE
        if (kind)
            continue;
#endif
        const char *spec = kind ? tar_of(100) : npy_of(100);
        bool mark[MOST], part[MOST];
        int64_t sum = 0;
        oct_source *s = open_it(spec, (oct_source_options){ .samples = 7 });
        assert_int_equal(oct_source_count(s), 7);
        assert_int_equal(oct_source_chosen(s).total, 100);
        assert_int_equal(take_all(s, mark), 7);
        for (size_t i = 0; i < sizeof seven / sizeof seven[0]; i++)
            assert_true(mark[seven[i]]);
        oct_source_close(s);
        for (int i = 0; i < 3; i++) { /* the parts of the chosen, and no other */
            s = open_it(spec, (oct_source_options){ .samples = 7, .shard_i = i, .shard_n = 3 });
            const int64_t count = oct_source_count(s);
            assert_int_equal(count, i == 0 ? 3 : 2);
            assert_int_equal(take_all(s, part), count);
            for (int k = 0; k < MOST; k++)
                if (part[k]) {
                    assert_true(mark[k]); /* and no other part's */
                    mark[k] = false;
                }
            sum += count;
            oct_source_close(s);
        }
        assert_int_equal(sum, 7);
    }
}

TEST(first_are_the_first)
{
    bool mark[MOST];
    oct_source *s = open_it(npy_of(100), (oct_source_options){ .samples = 7, .first = true });
    assert_int_equal(take_all(s, mark), 7);
    for (int i = 0; i < 7; i++)
        assert_true(mark[i]);
    oct_source_close(s);
}

/* What is picked aside is what was not chosen; "most" of it is spread over it. */
TEST(the_others_are_aside)
{
    static const struct {
        int total;
        int64_t asked, chosen;
        bool first;
    } cases[] = { { 100, 7, 7, false }, { 100, 0, 80, false }, { 101, 99, 81, false },
                  { 100, 7, 7, true },  { 4, 0, 4, false },    { 4, 1, 1, false } };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        bool mark[MOST], aside[MOST], few[MOST];
        const int64_t left = cases[c].total - cases[c].chosen;
        oct_source *s =
            open_it(npy_of(cases[c].total),
                    (oct_source_options){ .samples = cases[c].asked, .first = cases[c].first, .hold = true });
        assert_int_equal(oct_source_chosen(s).aside, left);
        assert_int_equal(take_all(s, mark), cases[c].chosen);
        assert_int_equal(oct_source_pick(s, &(oct_pick){ .aside = true }, NULL), OCT_OK);
        assert_int_equal(take_all(s, aside), left);
        for (int i = 0; i < cases[c].total; i++)
            assert_true(mark[i] != aside[i]);
        assert_int_equal(oct_source_pick(s, &(oct_pick){ .aside = true, .most = 10 }, NULL), OCT_OK);
        assert_int_equal(oct_source_count(s), left < 10 ? left : 10);
        assert_int_equal(take_all(s, few), left < 10 ? left : 10);
        int late = 0;
        for (int i = 0; i < cases[c].total; i++) {
            assert_true(!few[i] || aside[i]);
            late += few[i] && i >= cases[c].total / 2;
        }
        if (left > 19)
            assert_in_range(late, 4, 6);
        oct_source_close(s);
    }
}

/* Parts divide the samples, whichever way: one of each n that follow each other, spread where few of them are asked
 * for. */
TEST(parts_divide)
{
    enum { TOTAL = 101, N = 2 };
    for (int mixed = 0; mixed < 2; mixed++) {
        bool part[N][MOST], few[MOST];
        int even = 0;
        oct_source *s = open_it(npy_of(TOTAL), (oct_source_options){ .samples = 0 });
        for (int i = 0; i < N; i++) {
            assert_int_equal(oct_source_pick(s, &(oct_pick){ .i = i, .n = N, .mixed = mixed }, NULL), OCT_OK);
            assert_int_equal(take_all(s, part[i]), oct_source_count(s));
        }
        for (int k = 0; k < TOTAL; k++) {
            assert_true(part[0][k] != part[1][k]);
            assert_true(k % 2 == 0 || part[0][k] != part[0][k - 1]);
            assert_true(mixed || part[0][k] == (k % 2 == 0));
            even += part[0][k] && k % 2 == 0;
        }
        assert_true(!mixed || (even > 15 && even < 36)); /* of 51 by a fair coin: 4 deviations */
        assert_int_equal(oct_source_pick(s, &(oct_pick){ .i = 1, .n = N, .mixed = mixed, .most = 10 }, NULL), OCT_OK);
        assert_int_equal(oct_source_count(s), 10);
        assert_int_equal(take_all(s, few), 10);
        int late = 0;
        for (int k = 0; k < TOTAL; k++) {
            assert_true(!few[k] || part[1][k]);
            late += few[k] && k >= TOTAL / 2;
        }
        assert_in_range(late, 4, 6);
        oct_source_close(s);
    }
}

#ifdef OCT_HAVE_ARCHIVE
/* A stream as a command gives it. */
static const char *stream_of(int n)
{
    static char spec[160];
    snprintf(spec, sizeof spec, "pipe:cat '%s'", tar_of(n));
    return spec;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The places with the n smallest hashes, found by sorting all. */
static void smallest(int total, int n, bool mark[MOST])
{
    uint64_t v[MOST];
    for (int i = 0; i < total; i++)
        v[i] = oct_place_hash((uint64_t)i);
    qsort(v, (size_t)total, sizeof *v, by_value);
    memset(mark, 0, MOST * sizeof *mark);
    for (int i = 0; i < total; i++)
        mark[i] = n > 0 && oct_place_hash((uint64_t)i) <= v[n - 1];
}

/* Chosen are the smallest hashes, and those aside the next ones; they can be read again and again, and in parts. */
TEST(streams_by_hash)
{
    bool want[MOST], more[MOST], mark[MOST], part[MOST];
    oct_source *s = open_it(stream_of(150), (oct_source_options){ .samples = 20, .hold = true });
    const oct_source_choice c = oct_source_chosen(s);
    assert_int_equal(c.how, OCT_CHOICE_STREAM);
    assert_int_equal(c.total, 150);
    assert_int_equal(c.chosen, 20);
    assert_int_equal(c.aside, 64);
    smallest(150, 20, want);
    smallest(150, 84, more);
    assert_int_equal(oct_source_count(s), 20);
    assert_int_equal(take_all(s, mark), 20);
    assert_memory_equal(mark, want, sizeof want);
    assert_int_equal(oct_source_pick(s, &(oct_pick){ .aside = true }, NULL), OCT_OK);
    assert_int_equal(take_all(s, mark), 64);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(mark[i], more[i] && !want[i]);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(oct_source_pick(s, &(oct_pick){ .i = i, .n = 3 }, NULL), OCT_OK);
        sum += take_all(s, part);
        for (int k = 0; k < MOST; k++)
            assert_true(!part[k] || want[k]);
    }
    assert_int_equal(sum, 20);
    oct_source_close(s);
}

/* A stream shorter than what is asked for is used whole, but for a fifth. */
TEST(short_streams)
{
    bool mark[MOST];
    oct_source *s = open_it(stream_of(30), (oct_source_options){ .samples = 40 });
    assert_int_equal(take_all(s, mark), 30);
    oct_source_close(s);
    s = open_it(stream_of(30), (oct_source_options){ .samples = 40, .hold = true });
    assert_int_equal(take_all(s, mark), 24);
    oct_source_close(s);
}

/* Fewer are chosen where not so many fit, of the whole stream still; one always does. */
TEST(streams_within_bounds)
{
    bool want[MOST], mark[MOST];
    oct_source *s = open_it(stream_of(150), (oct_source_options){ .samples = 100, .store_bytes = 16384 });
    const oct_source_choice c = oct_source_chosen(s);
    assert_true(c.stored <= 16384 && c.chosen > 10 && c.chosen < 100);
    smallest(150, (int)c.chosen, want);
    assert_int_equal(take_all(s, mark), c.chosen);
    assert_memory_equal(mark, want, sizeof want);
    oct_source_close(s);
    s = open_it(stream_of(150), (oct_source_options){ .samples = 100, .store_bytes = 1 });
    assert_int_equal(take_all(s, mark), 1);
    oct_source_close(s);
}

/* Without a number to choose, what can be read again is counted by reading it, so that some stay aside. */
TEST(whole_streams_leave_a_fifth)
{
    bool mark[MOST];
    oct_source *s = open_it(stream_of(150), (oct_source_options){ .hold = true });
    assert_int_equal(take_all(s, mark), 120);
    assert_int_equal(oct_source_pick(s, &(oct_pick){ .aside = true }, NULL), OCT_OK);
    assert_int_equal(take_all(s, mark), 30);
    oct_source_close(s);
}
#endif
