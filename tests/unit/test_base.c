/* lib/base: sizes, arena, text, half floats, files. */
#define _GNU_SOURCE
#include "unit.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/io.h"
#include "base/json.h"
#include "base/little_endian.h"
#include "base/mem.h"
#include "eval/pairs/name_map.h"
#include "base/pool.h"
#include "base/sections.h"
#include "base/sha256.h"
#include "base/spill.h"
#include "base/utf8.h"
#include "base/words.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ten thousand names keep their first number, and no other name has one. */
TEST(names_have_numbers)
{
    enum { MANY = 10000 };
    oct_arena *a = oct_arena_create();
    oct_name_map m;
    assert_non_null(a);
    assert_int_equal(oct_name_map_init(&m, MANY, a, NULL), OCT_OK);
    assert_true(oct_name_map_find(&m, "v0") == SIZE_MAX);
    for (size_t i = 0; i < MANY; i++)
        oct_name_map_add(&m, oct_arena_printf(a, "v%zu", i), i);
    for (size_t i = 0; i < MANY; i++)
        oct_name_map_add(&m, oct_arena_printf(a, "v%zu", i), i + 1);
    assert_int_equal(m.n, MANY);
    for (size_t i = 0; i < MANY; i++)
        if (oct_name_map_find(&m, oct_arena_printf(a, "v%zu", i)) != i)
            fail_msg("'v%zu' has number %zu, %zu is expected", i, oct_name_map_find(&m, oct_arena_printf(a, "v%zu", i)),
                     i);
    assert_true(oct_name_map_find(&m, "v10000") == SIZE_MAX && oct_name_map_find(&m, "") == SIZE_MAX);
    oct_arena_destroy(a);
}

TEST(words_know_their_place)
{
    static const char *const known[] = { "static", "float" };
    oct_err err = OCT_ERR_INIT;
    oct_words w = { .label = "f", .next = " # a comment\n\n  one two # rest\r\n\tlast" };
    assert_true(oct_words_line(&w) && oct_words_done(&w));
    assert_true(oct_words_line(&w) && oct_words_done(&w));
    assert_true(oct_words_line(&w) && !oct_words_done(&w));
    assert_ptr_equal(w.at, w.line + 2);
    w.at += strlen("one two");
    assert_true(oct_words_done(&w));
    assert_true(oct_words_line(&w) && !oct_words_done(&w));
    assert_int_equal(oct_words_fault(&w, w.at, &err, "%s!", "no"), OCT_EMALFORMED);
    assert_string_equal(err.text, "f:4:2: no!");
    err = (oct_err)OCT_ERR_INIT;
    oct_words_unknown(&w, w.at, "scheme", "statik", known, 2, &err);
    assert_string_equal(err.text, "f:4:2: there is no scheme 'statik'");
    assert_string_equal(err.hint, "did you mean 'static'?");
    err = (oct_err)OCT_ERR_INIT;
    oct_words_unknown(&w, w.at, "scheme", "elephant", known, 2, &err);
    assert_string_equal(err.hint, "one of static, float");
    assert_false(oct_words_line(&w));
}

typedef struct words_rule {
    bool last;
    int count;
    int64_t large;
    double share;
    const char *name;
} words_rule;

static oct_status read_rule_name(oct_words *w, void *self, oct_err *err)
{
    return oct_words_rest(w, "the name", &((words_rule *)self)->name, err);
}

static const oct_words_key rule_keys[] = {
    { "name", .read = read_rule_name, .required = true },
    { "order", OCT_WORDS_CHOICE(words_rule, last, "order", "first", "last") },
    { "share", OCT_WORDS_NUMBER(words_rule, share, 0, 1), .again = true },
    { "count", OCT_WORDS_WHOLE(words_rule, count, -1, 9) },
    { "large", OCT_WORDS_WHOLE(words_rule, large, 0, 1e15) },
    { "remark" },
};

static oct_status read_rule(const char *text, words_rule *r, oct_arena *a, oct_err *err)
{
    oct_words w = { .label = "f", .next = text, .arena = a };
    *err = (oct_err)OCT_ERR_INIT;
    return oct_words_read(&w, &(oct_words_format){ .key = rule_keys, .n = OCT_COUNT(rule_keys) }, r, err);
}

/* A table of keys reads values of every kind, and says what is wrong with a text, and where. */
TEST(words_read_by_tables)
{
    static const char *const wrong[][2] = {
        { "name x\nordr last", "f:2:1: there is no key 'ordr'" },
        { "name x\norder lst", "f:2:7: there is no order 'lst'" },
        { "name x\norder", "f:2:6: the order is missing" },
        { "name x\norder last one", "f:2:12: the end of the line is expected" },
        { "name x\norder last\norder last", "f:3:1: 'order' stands in two lines" },
        { "share 1.5", "f:1:7: '1.5' is no number from 0 to 1" },
        { "share inf", "f:1:7: 'inf' is no number from 0 to 1" },
        { "share 0x1", "f:1:7: '0x1' is no number from 0 to 1" },
        { "share # none", "f:1:7: a number from 0 to 1 is missing" },
        { "count 1.5", "f:1:7: '1.5' is no whole number from -1 to 9" },
        { "count 10", "f:1:7: '10' is no whole number from -1 to 9" },
        { "name  ", "f:1:7: the name is missing" },
        { "count 1", "f: the line 'name' is missing" },
    };
    oct_arena *a = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    words_rule r = { 0 };
    assert_non_null(a);
    assert_int_equal(read_rule("\xef\xbb\xbfname  a b \r\norder\tlast # which\nshare 1\nshare .25\ncount -1\n"
                               "large 1e15\nremark anything # at all\n",
                               &r, a, &err),
                     OCT_OK);
    assert_string_equal(r.name, "a b");
    assert_true(r.last && r.count == -1 && r.large == 1000000000000000 && r.share == 0.25);
    for (size_t i = 0; i < OCT_COUNT(wrong); i++) {
        assert_int_equal(read_rule(wrong[i][0], &r, a, &err), OCT_EMALFORMED);
        assert_string_equal(err.text, wrong[i][1]);
    }
    read_rule("name x\norder lst", &r, a, &err);
    assert_string_equal(err.hint, "did you mean 'last'?");
    oct_arena_destroy(a);
}

/* Texts in quotes, whole numbers of 64 bits, and float32. */
TEST(words_have_kinds)
{
    static const char *const bad[] = { "a", "\"a", "\"\\z\"", "\"\\x00\"", "\"\\x4\"", "\"\\" };
    oct_arena *a = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    oct_words w = { .label = "f",
                    .next = "\"a \\\"\\\\\\x41#\" 18446744073709551615 1e-3 18446744073709551616\nrest",
                    .arena = a };
    char *text;
    uint64_t n;
    float v;
    assert_non_null(a);
    assert_true(oct_words_line(&w));
    assert_int_equal(oct_words_quoted(&w, &text, &err), OCT_OK);
    assert_string_equal(text, "a \"\\A#");
    assert_int_equal(oct_words_count(&w, UINT64_MAX, &n, &err), OCT_OK);
    assert_true(n == UINT64_MAX);
    assert_int_equal(oct_words_f32(&w, &v, &err), OCT_OK);
    assert_true(v == 1e-3f);
    assert_int_equal(oct_words_count(&w, UINT64_MAX, &n, &err), OCT_EMALFORMED);
    assert_int_equal(oct_words_count(&w, 5, &n, &err), OCT_EMALFORMED);
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_words b = { .label = "f", .next = bad[i], .arena = a };
        assert_true(oct_words_line(&b));
        assert_int_equal(oct_words_quoted(&b, &text, &err), OCT_EMALFORMED);
    }
    oct_words cut = { .label = "f", .next = "one\0two", .limit = NULL };
    cut.limit = cut.next + 7; /* a text with a size may hold a NUL */
    assert_true(oct_words_line(&cut));
    assert_false(oct_word_is(oct_words_take(&cut), "one"));
    assert_false(oct_words_line(&cut));
    oct_arena_destroy(a);
}

/* A file of two sections, byte by byte; FNV-1a is computed here anew. */
TEST(sections_are_these_bytes)
{
    static const oct_sections_form form = { "octet-test", 7, "a test", "make it again" },
                                   next = { "octet-test", 8, "", "" };
    static const char want[] =
        "octet-test 7\n\1\0\0\0\3\0\0\0\0\0\0\0abc\377\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0";
    enum { N = sizeof want - 1 };
    char path[] = "/tmp/octet_test_XXXXXX";
    oct_err err = OCT_ERR_INIT;
    oct_sections_out out;
    oct_buf b = OCT_BUF_INIT, none = OCT_BUF_INIT;
    oct_map m;
    close(mkstemp(path));
    assert_int_equal(oct_sections_create(&out, &form, path, &err), OCT_OK);
    oct_buf_puts(&b, "abc");
    assert_int_equal(oct_sections_add(&out, 1, &b, &err), OCT_OK);
    assert_int_equal(oct_sections_add(&out, 511, &none, &err), OCT_OK);
    none.failed = true;
    assert_int_equal(oct_sections_add(&out, 2, &none, &err), OCT_ENOMEM);
    assert_int_equal(oct_sections_commit(&out, &err), OCT_OK);
    assert_int_equal(oct_map_open(&m, path, &err), OCT_OK);
    assert_int_equal(m.size, N + 8);
    assert_memory_equal(m.data, want, N);
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < N; i++)
        h = (h ^ m.data[i]) * 1099511628211u;
    assert_int_equal(oct_le_u64(m.data + N), h);

    oct_bytes all, one;
    uint32_t tag;
    assert_int_equal(oct_sections_open(&form, m.data, m.size, path, &all, &err), OCT_OK);
    assert_true(oct_section_next(&all, &tag, &one) && tag == 1 && one.n == 3 && memcmp(one.p, "abc", 3) == 0);
    assert_true(oct_section_next(&all, &tag, &one) && tag == 511 && one.n == 0);
    assert_true(!oct_section_next(&all, &tag, &one) && !all.bad);
    assert_int_equal(oct_sections_open(&next, m.data, m.size, path, &all, &err), OCT_EUNSUPPORTED);
    for (size_t n = 0; n < m.size; n++)
        assert_int_equal(oct_sections_open(&form, m.data, n, path, &all, &err), OCT_EMALFORMED);
    uint8_t *bad = test_malloc(m.size);
    for (size_t i = 0; i < m.size * 8; i++) {
        memcpy(bad, m.data, m.size);
        bad[i / 8] ^= (uint8_t)(1 << i % 8);
        const oct_status s = oct_sections_open(&form, bad, m.size, path, &all, &err);
        assert_int_equal(s, i / 8 == 11 || i / 8 == 12 ? OCT_EUNSUPPORTED : OCT_EMALFORMED);
    }
    test_free(bad);
    oct_map_close(&m);
    oct_buf_free(&b);
    unlink(path);
}

TEST(texts_of_bytes_end_in_themselves)
{
    oct_buf b = OCT_BUF_INIT;
    oct_buf_add_text(&b, NULL);
    oct_buf_add_text(&b, "");
    oct_buf_add_text(&b, "ab");
    assert_memory_equal(b.data, "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0ab\0", 28);
    oct_bytes r = { (const uint8_t *)b.data, b.len, false };
    assert_null(oct_bytes_text(&r));
    assert_string_equal(oct_bytes_text(&r), "");
    assert_string_equal(oct_bytes_text(&r), "ab");
    assert_true(!r.n && !r.bad);
    for (size_t i = 25; i < 28; i++) { /* NUL within, or none at the end */
        char bad[28];
        memcpy(bad, b.data, sizeof bad);
        bad[i] = bad[i] ? 0 : 'c';
        oct_bytes s = { (const uint8_t *)bad + 17, 11, false };
        assert_null(oct_bytes_text(&s));
        assert_true(s.bad);
    }
    oct_buf_free(&b);
}

/* The digests are Python's hashlib's; lengths around the ends of blocks, taken in parts of many sizes. */
TEST(digests_are_sha256)
{
    static const struct {
        size_t n;
        const char *digest;
    } known[] = { { 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
                  { 1, "084fed08b978af4d7d196a7446a86b58009e636b611db16211b65a9aadff29c5" },
                  { 55, "e7313d333c272e639f790978283f9eb392e843d0f29b7016828bb1daa4aac70b" },
                  { 56, "4324d65f3c103567f5589c710bc08f8523f929a9272e3af36fc968e52abc6c27" },
                  { 63, "81c80242132f230c3bd41b3e63bbcff16107339549214a99614ff26664625055" },
                  { 64, "39e3d7b6b5d075d37d053ad89b24b41bef4f3c29760c84447cab3f3be1882241" },
                  { 65, "aacca6ff74fdbb296d165a45cecfa04e5127bc008770fbbdd48006f2d2fae95e" },
                  { 119, "9ce7368e4daf32341631b492e80359dc9f594b48453cd0dd5bf0b19279cc177e" },
                  { 120, "7836b787757e95e58b3ca5aec90b1b004e8deba1e50e9675af9cabf1a13a04b5" },
                  { 1000, "1e9bc38cbf860b9ec31918b065f9b52476c549a782e0e7990bed8ce3868d2371" } };
    unsigned char bytes[1000], digest[OCT_SHA256_BYTES];
    char text[OCT_SHA256_TEXT];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + 3);
    for (size_t k = 0; k < OCT_COUNT(known); k++)
        for (size_t part = 1; part < 200; part += 13) {
            oct_sha256 s;
            oct_sha256_begin(&s);
            for (size_t at = 0; at < known[k].n; at += part)
                oct_sha256_add(&s, bytes + at, known[k].n - at < part ? known[k].n - at : part);
            oct_sha256_end(&s, digest);
            assert_string_equal(oct_sha256_text(digest, text), known[k].digest);
        }
}

/* The first byte is the lowest, and no sign spreads from a byte above 127. */
TEST(numbers_have_their_bytes)
{
    static const uint8_t le[] = { 0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88 };
    const uint64_t v = UINT64_C(0x8897a6b5c4d3e2f1);
    oct_buf b = OCT_BUF_INIT;
    assert_int_equal(oct_le_u16(le), 0xe2f1);
    assert_int_equal(oct_le_u32(le), 0xc4d3e2f1);
    assert_true(oct_le_u64(le) == v);
    for (size_t n = 0; n <= 8; n++) {
        oct_buf_cut(&b, 0);
        oct_buf_add_le(&b, v, n);
        assert_int_equal(b.len, n);
        assert_memory_equal(oct_buf_str(&b), le, n);
    }
    oct_buf_free(&b);
}

TEST(sizes_overflow)
{
    size_t n;
    assert_false(oct_mul_size(SIZE_MAX, 2, &n));
    assert_true(oct_mul_size(3, 7, &n) && n == 21);
    int64_t c;
    assert_false(oct_count((int64_t[]){ 1 << 30, 1 << 30, 1 << 30 }, 3, &c));
    assert_false(oct_count((int64_t[]){ 2, -1 }, 2, &c));
    assert_true(oct_count((int64_t[]){ 2, 0, 5 }, 3, &c) && c == 0);
    assert_null(oct_calloc(SIZE_MAX / 2, 4));
}

TEST(arena_aligns_and_keeps)
{
    oct_arena *a = oct_arena_create();
    char *first = oct_arena_strdup(a, "kept");
    for (int i = 1; i < 2000; i++) {
        uint8_t *p = oct_arena_aligned(a, (size_t)i * 7, 64);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, i, (size_t)i * 7);
    }
    assert_string_equal(first, "kept");
    oct_arena_destroy(a);
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif

/* Memory of this process in KB, by a line of its status; -1: the system does not say, or the thread sanitizer's shadow
 * memory is counted too. */
static long memory_of(const char *line_with_number)
{
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    return -1;
#endif
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, line_with_number, strlen(line_with_number)) == 0)
            kb = strtol(line + strlen(line_with_number), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

enum { LARGE = 3 << 20, N_LARGE = 40 };

/* most: the bytes that may be resident before they are read again; 0: all. */
static void fill_and_check(oct_arena *a, long most)
{
    uint8_t *p[N_LARGE];
    const long before = memory_of("VmRSS:");
    char *small = oct_arena_strdup(a, "kept");
    for (int i = 0; i < N_LARGE; i++) {
        p[i] = oct_arena_aligned(a, LARGE + (size_t)i, 64);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(p[i], i, LARGE + (size_t)i);
        oct_spill_forget(p[i], LARGE + (size_t)i);
    }
    const long grown = memory_of("VmRSS:") - before;
    if (before >= 0 && most > 0)
        assert_true(grown < most / 1024);
    for (int i = 0; i < N_LARGE; i++)
        for (size_t k = 0; k < LARGE + (size_t)i; k += 1021)
            assert_int_equal(p[i][k], i);
    assert_string_equal(small, "kept");
}

TEST(large_blocks_leave_memory)
{
    const long before = memory_of("RssAnon:");
    oct_arena *a = oct_arena_create();
    oct_spill_open("./x", 2 * LARGE);
    fill_and_check(a, 4 * LARGE); /* of 120 MB, and two blocks stay */
    const long grown = memory_of("RssAnon:") - before;
    if (before >= 0)
        assert_true(grown < 4 * LARGE / 1024); /* of which 120 MB were written */
    oct_spill_end();
    oct_arena_destroy(a);
    oct_spill_close();
}

TEST(large_blocks_without_a_file_stay)
{
    oct_arena *a = oct_arena_create();
    oct_spill_open("no/such/folder/x", 0);
    fill_and_check(a, 0);
    oct_arena_destroy(a);
    oct_spill_close();
}

/* glibc's blocks alone, and not where a sanitizer looks after them. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static bool blocks_wait(void)
{
    return true;
}
#else
static bool blocks_wait(void)
{
    return false;
}
#endif

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void *touched(size_t size, int byte)
{
    void *p = oct_alloc(size);
    assert_non_null(p);
    memset(p, byte, size);
    return p;
}

TEST(large_blocks_are_used_again)
{
    const size_t size = 3 << 20;
    oct_free(touched(size, 1));
    const long before = faults();
    for (int i = 0; i < 50; i++)
        oct_free(touched(size - (size_t)i * 1024, i));
    if (blocks_wait())
        assert_true(faults() - before < (long)(size / 4096));
    unsigned char *a = touched(size, 2), *b = touched(size, 3);
    for (size_t i = 0; i < size; i++)
        assert_true(a[i] == 2 && b[i] == 3);
    oct_free(a);
    oct_free(b);
}

TEST(waiting_blocks_do_not_add_to_the_peak)
{
    const size_t most = 48 << 20, start = resident_bytes();
    if (!blocks_wait() || start == 0)
        return;
    oct_free(touched(most, 1));
    for (size_t parts = 2; parts <= 16; parts *= 2) {
        void *p[16];
        for (size_t i = 0; i < parts; i++)
            p[i] = touched(most / parts, 2);
        assert_true(resident_bytes() < start + most + (4 << 20));
        for (size_t i = 0; i < parts; i++)
            oct_free(p[i]);
    }
}

TEST(failing_allocation_is_reported)
{
    oct_alloc_fail_at(1);
    assert_null(oct_arena_create());
    oct_buf b = OCT_BUF_INIT;
    oct_alloc_fail_at(1);
    oct_buf_puts(&b, "x");
    assert_true(b.failed);
    assert_string_equal(oct_buf_str(&b), "");
    oct_buf_free(&b);
    oct_alloc_fail_at(0);
}

TEST(half_floats_round_trip)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = oct_f16_to_f32((uint16_t)h);
        if (!isnan(f))
            assert_int_equal(oct_f32_to_f16(f), h);
    }
    /* Ties to even, and the border to infinity (IEEE 754 binary16: 65504 is the largest). */
    assert_int_equal(oct_f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(oct_f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(oct_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(oct_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(oct_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(oct_f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(oct_f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
}

/* Every pair of neighbours: what lies between goes to the nearer one, the middle to the even one; zero's neighbours are
 * denormals. */
TEST(half_floats_are_nearest)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float a = oct_f16_to_f32((uint16_t)h), b = oct_f16_to_f32((uint16_t)(h + 1)), middle = (a + b) / 2;
        const int e = (int)(h >> 10);
        assert_float_equal(a, e ? ldexpf(1024.0f + (float)(h & 1023), e - 25) : ldexpf((float)h, -24), 0);
        assert_int_equal(oct_f32_to_f16(middle), h + (h & 1));
        assert_int_equal(oct_f32_to_f16(nextafterf(middle, 0.0f)), h);
        assert_int_equal(oct_f32_to_f16(-nextafterf(middle, 1e9f)), 0x8000 | (h + 1));
    }
    assert_true(isinf(oct_f16_to_f32(0x7c00)) && isinf(oct_f16_to_f32(0xfc00)));
    for (uint32_t h = 0x7c01; h < 0x8000; h++) {
        const float f = oct_f16_to_f32((uint16_t)h);
        assert_true(isnan(f));
        assert_int_equal(oct_f32_to_f16(f), h | 0x200); /* quiet */
    }
}

TEST(float_text_is_shortest)
{
    char t[32];
    assert_string_equal(oct_f32_text(t, 0.1f), "0.1");
    assert_string_equal(oct_f32_text(t, 1.0f / 3), "0.33333334");
    assert_string_equal(oct_f32_text(t, 40), "40");
    assert_string_equal(oct_f32_text(t, -0.0f), "-0");
    assert_string_equal(oct_f32_text(t, 1e7f), "1e+07");
    assert_string_equal(oct_f64_text(t, 2e9), "2000000000");
    assert_string_equal(oct_f64_text(t, 0.1), "0.1");
}

TEST(json_escapes_and_nests)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "a\"b", "x\n\x01");
    oct_json_open(&j, "l", '[');
    oct_json_num(&j, NULL, INFINITY);
    oct_json_int(&j, NULL, -3);
    oct_json_close(&j);
    oct_json_close(&j);
    assert_string_equal(oct_buf_str(&b), "{\n  \"a\\\"b\": \"x\\n\\u0001\",\n  \"l\": [\n    null,\n    -3\n  ]\n}\n");
    oct_buf_free(&b);
}

static void put_number(oct_json *j, const void *row)
{
    oct_json_int(j, "n", *(const int *)row);
}

TEST(json_lists)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_json_open(&j, NULL, '{');
    oct_json_rows(&j, "r", (const int[]){ 3, 5, 8 }, 3, sizeof(int), put_number);
    oct_json_rows(&j, "none", NULL, 0, sizeof(int), put_number);
    oct_json_texts(&j, "t", (const char *const[]){ "a", NULL }, 2);
    oct_json_close(&j);
    assert_string_equal(
        oct_buf_str(&b),
        "{\n  \"r\": [\n    {\n      \"n\": 3\n    },\n    {\n      \"n\": 5\n    },\n    {\n      \"n\": 8\n    }\n  ],\n"
        "  \"none\": [],\n  \"t\": [\n    \"a\",\n    null\n  ]\n}\n");
    oct_buf_free(&b);
}

/* The same calls, into text and into a document. */
static void put_sample(oct_json *j)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "name", "x");
    oct_json_str(j, "none", NULL);
    oct_json_num(j, "lost", -INFINITY);
    oct_json_bool(j, "no", false);
    oct_json_open(j, "empty", '[');
    oct_json_close(j);
    oct_json_open(j, "list", '[');
    for (int i = 0; i < 100; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_open(j, "of", '{');
        oct_json_int(j, "n", 3 * i);
        oct_json_close(j);
        oct_json_num(j, "half", i / 2.0);
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_json_bool(j, "yes", true);
    oct_json_close(j);
}

TEST(documents)
{
    oct_buf text = OCT_BUF_INIT, again = OCT_BUF_INIT;
    oct_document *d = oct_document_create();
    oct_json j = OCT_JSON_INIT(&text), to = { .to = d };
    assert_null(oct_document_root(d));
    put_sample(&j);
    put_sample(&to);
    const oct_item *root = oct_document_root(d), *list = oct_item_at(root, "list");
    oct_json_text(root, &again);
    assert_string_equal(oct_buf_str(&again), oct_buf_str(&text));
    assert_string_equal(oct_item_text(root, "name"), "x");
    assert_null(oct_item_text(root, "none"));
    assert_non_null(oct_item_at(root, "none"));
    assert_null(oct_item_at(root, "nam"));
    assert_null(oct_item_at(root, "name.of"));
    assert_true(isinf(oct_item_number(root, "lost")));
    assert_true(isnan(oct_item_number(root, "name")));
    assert_true(oct_item_true(root, "yes"));
    assert_false(oct_item_true(root, "no"));
    assert_int_equal(oct_item_count(list, ""), 100);
    assert_int_equal(oct_item_whole(root, "list.99.of.n"), 297);
    assert_true(oct_item_number(root, "list.7.half") == 3.5);
    assert_null(oct_item_of(list, 100));
    assert_null(oct_item_next(oct_item_at(root, "empty"), NULL));
    static const char *const none[] = { "none", "no", "empty", "absent", "list.0.of.n", "list.0.half" };
    for (size_t i = 0; i < OCT_COUNT(none); i++)
        assert_false(oct_item_is_any(oct_item_at(root, none[i])));
    assert_true(oct_item_is_any(oct_item_at(root, "list.0.of")));
    assert_true(oct_item_is_any(oct_item_at(root, "lost")));
    int64_t n = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(list, x)); n++)
        assert_int_equal(oct_item_whole(x, "of.n"), 3 * n);
    assert_int_equal(n, 100);
    oct_buf_free(&text);
    oct_buf_free(&again);
    oct_document_destroy(d);
}

/* A document for which memory ran out is none. */
TEST(documents_without_memory)
{
    for (size_t n = 1; n < 4; n++) {
        oct_document *d = oct_document_create();
        oct_json j = { .to = d };
        oct_alloc_fail_at(n);
        for (int i = 0; i < 3000; i++) { /* more than a block of an arena */
            if (i == 0)
                oct_json_open(&j, NULL, '[');
            oct_json_str(&j, NULL, "a text that takes some room in the arena of its document");
        }
        oct_json_close(&j);
        oct_alloc_fail_at(0);
        assert_null(oct_document_root(d));
        oct_document_destroy(d);
    }
}

TEST(json_is_utf8)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_json_open(&j, NULL, '[');
    oct_json_str(&j, NULL, "\xff\xc3 \u2028\xc2\x85\x7f\U000e0041 gr\u00f6\u00dfe \ufffd");
    oct_json_str(&j, NULL, "::a ::b ##[c :: ##");
    oct_json_close(&j);
    assert_string_equal(oct_buf_str(&b),
                        "[\n  \"\\\\xff\\\\xc3 \\u2028\\u0085\\u007f\\udb40\\udc41 gr\u00f6\u00dfe \ufffd\",\n"
                        "  \"\\u003a:a \\u003a:b \\u0023#[c :: ##\"\n]\n");
    oct_buf_free(&b);
}

static void cleaned(const char *text, bool ascii, const char *want)
{
    oct_buf b = OCT_BUF_INIT;
    oct_text_clean(&b, text, ascii);
    assert_string_equal(oct_buf_str(&b), want);
    oct_buf_free(&b);
}

TEST(texts_are_cleaned)
{
    cleaned("::set-output name=a::b", false, "\\x3a:set-output name=a::b"); /* commands of a workflow */
    cleaned("a ::b ##[error]c a::b :: x", false, "a \\x3a:b \\x23#[error]c a::b :: x");
    cleaned("\033[31m\r\n\t\x7f", false, "\\x1b[31m\\x0d\\x0a\\x09\\x7f");
    cleaned("\xc2\x9b"
            "31m\xc2\x85",
            false, "\\u009b31m\\u0085");
    cleaned("a\u202eb\u2066c\u2028d\ufeffe\u200bf\u061c", false, "a\\u202eb\\u2066c\\u2028d\\ufeffe\\u200bf\\u061c");
    cleaned("\x9b"
            "31m \xc3( \xed\xa0\x80 \xe2\x80",
            false, "\\x9b31m \\xc3( \\xed\\xa0\\x80 \\xe2\\x80");
    cleaned("\U000e0001\ufffe", false, "\\U000e0001\\ufffe");
    cleaned("gr\u00f6\u00dfe \u5c64 \ufffd", false, "gr\u00f6\u00dfe \u5c64 \ufffd");
    cleaned("gr\u00f6\u00dfe \U0001f600", true, "gr\\u00f6\\u00dfe \\U0001f600");
    /* no commands of a workflow, where a line could begin; other colons stay */
    cleaned("::set-output name=a::b", false, "\\x3a:set-output name=a::b");
    cleaned("layer ::add-mask::x", false, "layer \\x3a:add-mask::x");
    cleaned("a::b: c", false, "a::b: c");
    cleaned("x##[error]y", false, "x\\x23#[error]y");
}

TEST(output_appears_only_on_commit)
{
    char dir[] = "/tmp/oct_base_XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/f", dir);
    oct_err err = OCT_ERR_INIT;
    oct_out o;
    assert_int_equal(oct_out_open(&o, path, &err), OCT_OK);
    oct_out_write(&o, "abcdef", 6);
    assert_false(oct_path_exists(path));
    oct_out_abort(&o);
    assert_int_equal(oct_out_open(&o, path, &err), OCT_OK);
    oct_out_write(&o, "abXYef", 6);
    assert_int_equal(oct_out_commit(&o, &err), OCT_OK);
    char *data;
    size_t n;
    assert_int_equal(oct_read_all(path, 100, &data, &n, &err), OCT_OK);
    assert_string_equal(data, "abXYef");
    oct_free(data);
    assert_int_equal(oct_read_all(path, 3, &data, &n, &err), OCT_EMALFORMED);
    oct_map m;
    assert_int_equal(oct_map_open(&m, path, &err), OCT_OK);
    assert_int_equal(m.size, 6);
    oct_map_close(&m);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left */
    assert_int_equal(oct_map_open(&m, path, &err), OCT_EIO);
}

/* Nothing waits for the other end of a FIFO; a descriptor's name is as good as the descriptor. */
TEST(only_files_are_opened)
{
    char dir[] = "/tmp/oct_base_XXXXXX", fifo[64], name[64], got[8];
    int fd, ends[2];
    size_t n;
    char *data;
    oct_err err = OCT_ERR_INIT;
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (int stream = 0; stream < 2; stream++) {
        assert_int_equal(oct_file_open(fifo, stream, &fd, &err), OCT_EIO);
        assert_non_null(strstr(err.text, "is a FIFO"));
        assert_int_equal(oct_file_open(dir, stream, &fd, &err), OCT_EIO);
        assert_non_null(strstr(err.text, "is a folder"));
    }
    assert_int_equal(oct_file_open("/dev/null", false, &fd, &err), OCT_EIO);
    assert_int_equal(oct_file_open("/dev/null", true, &fd, &err), OCT_OK);
    assert_int_equal(oct_file_read(fd, got, sizeof got), 0);
    close(fd);
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(oct_path_fd(name), ends[0]);
    assert_int_equal(oct_path_fd("/dev/fd/"), -1);
    assert_int_equal(oct_path_fd("/dev/fd/1x"), -1);
    assert_int_equal(oct_path_fd("/dev/stdout"), 1);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    assert_int_equal(oct_file_open(name, false, &fd, &err), OCT_EIO);
    assert_int_equal(oct_read_all(name, 100, &data, &n, &err), OCT_OK);
    assert_string_equal(data, "abc");
    oct_free(data);
    close(ends[0]);
    unlink(fifo);
    rmdir(dir);
}

/* Pages that were forgotten read as before; ranges outside of the map are left alone. */
TEST(forgotten_pages_come_back)
{
    enum { BYTES = 100000 };
    char path[] = "/tmp/octet_test_XXXXXX";
    static uint8_t want[BYTES], other[BYTES];
    oct_map m;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < BYTES; i++)
        want[i] = other[i] = (uint8_t)(i * 7 >> 3);
    assert_int_equal(write(fd, want, BYTES), BYTES);
    close(fd);
    assert_int_equal(oct_map_open(&m, path, NULL), OCT_OK);
    assert_memory_equal(m.data, want, BYTES);
    oct_map_forget(m.data + 5000, 90000);
    assert_memory_equal(m.data, want, BYTES);
    oct_map_forget(m.data, BYTES);
    oct_map_forget(m.data + BYTES - 1, 2);
    oct_map_forget(other, BYTES);
    assert_memory_equal(m.data, want, BYTES);
    assert_memory_equal(other, want, BYTES);
    oct_map_close(&m);
    unlink(path);
}

TEST(full_disk_is_an_error)
{
    if (!oct_path_exists("/dev/full")) {
        print_message("# a full disk: not tried without /dev/full\n");
        return;
    }
    oct_err err = OCT_ERR_INIT;
    oct_out o;
    assert_int_equal(oct_out_open(&o, "/dev/full", &err), OCT_OK);
    oct_out_write(&o, "x", 1);
    assert_int_equal(oct_out_commit(&o, &err), OCT_EIO);
    assert_non_null(strstr(err.text, "/dev/full"));
}

static void add_range(void *arg, size_t begin, size_t end, size_t thread)
{
    uint8_t *seen = arg;
    for (size_t i = begin; i < end; i++)
        seen[i]++;
}

TEST(pool_covers_each_item_once)
{
    for (int threads = 1; threads <= 4; threads++) {
        oct_pool *p = oct_pool_create(threads);
        uint8_t seen[1000] = { 0 };
        oct_pool_for(p, 1000, 7, add_range, seen);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(seen[i], 1);
        oct_pool_destroy(p);
    }
}

typedef struct stall {
    atomic_int others; /* items taken by other threads than the one that waits for them */
    atomic_bool waits;
} stall;

/* The first item to begin ends when all others are done: its thread's other items must go to whoever is free. */
static void wait_for_others(void *arg, size_t begin, size_t end, size_t thread)
{
    stall *s = arg;
    if (atomic_exchange(&s->waits, true)) {
        atomic_fetch_add(&s->others, (int)(end - begin));
        return;
    }
    for (const double until = oct_now() + 20; atomic_load(&s->others) < 63 && oct_now() < until;)
        sched_yield();
}

TEST(pool_takes_over_from_a_slow_thread)
{
    oct_pool *p = oct_pool_create(3);
    stall s = { 0 };
    oct_pool_for(p, 64, 1, wait_for_others, &s);
    assert_int_equal(atomic_load(&s.others), 63);
    oct_pool_destroy(p);
}

typedef struct crossing {
    oct_pool *pool;
    uint8_t seen[64];
    atomic_bool done; /* the other call is */
} crossing;

static void *call_beside(void *arg)
{
    crossing *c = arg;
    oct_pool_for(c->pool, 64, 1, add_range, c->seen);
    atomic_store(&c->done, true);
    return NULL;
}

/* Starts a thread that calls the same pool, and ends when that call has. */
static void wait_for_call(void *arg, size_t begin, size_t end, size_t thread)
{
    crossing *c = arg;
    pthread_t t;
    if (begin)
        return;
    assert_int_equal(pthread_create(&t, NULL, call_beside, c), 0);
    for (const double until = oct_now() + 20; !atomic_load(&c->done) && oct_now() < until;)
        sched_yield();
    const bool waited = !atomic_load(&c->done);
    if (waited) /* it is waiting for this call to end */
        pthread_detach(t);
    else
        pthread_join(t, NULL);
    atomic_store(&c->done, !waited);
}

/* A call that finds the threads at work for another one does not wait for them. */
TEST(pool_keeps_no_other_caller_waiting)
{
    crossing c = { .pool = oct_pool_create(2) };
    oct_pool_for(c.pool, 2, 1, wait_for_call, &c);
    assert_true(atomic_load(&c.done));
    for (int i = 0; i < 64; i++)
        assert_int_equal(c.seen[i], 1);
    oct_pool_destroy(c.pool);
}

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%zu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- lanes on threads of another program ---- */

typedef struct lane_thread {
    pthread_t thread;
    void (*work)(void *arg, size_t i);
    void *arg;
    size_t i;
} lane_thread;

static void *run_lane_thread(void *arg)
{
    const lane_thread *t = arg;
    t->work(t->arg, t->i);
    return NULL;
}

static int divided; /* calls that came to these two functions */

static void on_own_threads(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg)
{
    lane_thread t[8];
    assert_true(n <= 8);
    *(int *)context += 1;
    for (size_t i = 0; i < n; i++) {
        t[i] = (lane_thread){ .work = work, .arg = arg, .i = i };
        assert_int_equal(pthread_create(&t[i].thread, NULL, run_lane_thread, &t[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(t[i].thread, NULL);
}

static void on_the_caller(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg)
{
    *(int *)context += 1;
    for (size_t i = n; i-- > 0;)
        work(arg, i);
}

TEST(pool_on_threads_of_others)
{
    for (int lanes = 1; lanes <= 5; lanes++) {
        oct_pool *p = oct_pool_create_on(lanes, on_own_threads);
        uint8_t seen[1000] = { 0 };
        divided = 0;
        oct_pool_set_context(p, &divided);
        assert_int_equal(oct_pool_threads(p), lanes);
        assert_int_equal(oct_pool_useful(p), lanes);
        for (int k = 0; k < 40; k++)
            oct_pool_for(p, 1000, 7, add_range, seen);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(seen[i], 40);
        assert_int_equal(divided, lanes == 1 ? 0 : 40); /* somebody joins each time */
        oct_pool_destroy(p);
    }
}

/* Where nobody joins, as in a program with one thread, most calls are not divided any more. */
TEST(pool_stops_asking_when_nobody_joins)
{
    oct_pool *p = oct_pool_create_on(4, on_the_caller);
    divided = 0;
    oct_pool_set_context(p, &divided);
    for (int k = 1; k <= 2; k++) {
        uint8_t seen[1000] = { 0 };
        for (int i = 0; i < 250; i++)
            oct_pool_for(p, 1000, 7, add_range, seen);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(seen[i], 250);
        assert_int_equal(divided, k == 1 ? 16 : 17); /* it asks once more after a while */
        assert_int_equal(oct_pool_useful(p), 1);
    }
    assert_int_equal(oct_pool_threads(p), 4);
    uint8_t seen[7] = { 0 };
    int calls = 0;
    for (; oct_pool_useful(p) == 1 && calls < 1000; calls++)
        oct_pool_for(p, 7, 7, add_range, seen); /* work cut for one thread, which makes it ask again as well */
    assert_in_range(calls, 1, 256);
    assert_int_equal(oct_pool_useful(p), 4);
    oct_pool_for(p, 7, 7, add_range, seen);
    assert_int_equal(divided, 17); /* until there is something to divide */
    oct_pool_for(p, 7, 1, add_range, seen);
    assert_int_equal(divided, 18);
    oct_pool_destroy(p);
}

/* Where there is no room for the threads' stacks there is no pool; it does not wait for them. */
static oct_status odd_ones_fail(void *arg, size_t item, size_t thread, oct_err *err)
{
    ((char *)arg)[item]++;
    return item % 2 && item > 4 ? oct_fail(err, item > 6 ? OCT_EIO : OCT_ENUMERIC, "item %zu", item) : OCT_OK;
}

/* Which of several failures is told does not depend on the threads. */
TEST(pool_tells_the_first_failure)
{
    for (int threads = 1; threads <= 4; threads++) {
        oct_pool *p = oct_pool_create(threads);
        char tried[100] = { 0 };
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_pool_try(p, 100, odd_ones_fail, tried, &err), OCT_ENUMERIC);
        assert_string_equal(err.text, "item 5");
        for (int i = 0; i < 100; i++)
            assert_int_equal(tried[i], 1);
        assert_int_equal(oct_pool_try(p, 100, odd_ones_fail, tried, NULL), OCT_ENUMERIC);
        assert_int_equal(oct_pool_try(p, 5, odd_ones_fail, tried, &err), OCT_OK);
        oct_pool_destroy(p);
    }
}

TEST(pool_without_threads_is_none)
{
    struct rlimit was, little;
    const size_t now = address_space();
    if (now == 0 || now > (size_t)1 << 40) { /* sanitizers take terabytes, and do not bear a limit */
        print_message("# a pool without threads: not tried where the address space cannot be limited\n");
        return;
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    little = was;
    little.rlim_cur = now + (8 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    oct_pool *p = oct_pool_create(1000);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    assert_null(p);
}

TEST(errors_gather_context)
{
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_fail(&err, OCT_EMALFORMED, "input '%s'", "w"), OCT_EMALFORMED);
    oct_within(&err, "node '%s'", "conv1");
    assert_string_equal(err.text, "node 'conv1': input 'w'");
    assert_int_equal(oct_edit_distance("hist-msee", "hist-mse"), 1);
    oct_nearest n = { .word = "relu", .most = 2 };
    for (const char *const *p = (const char *const[]){ "PRelu", "elu", "Relu", "Sin", "elu", "rely", NULL }; *p; p++)
        oct_nearest_try(&n, *p);
    assert_int_equal(n.n, 3);
    assert_string_equal(n.name[0], "elu"); /* one letter away, as Relu and rely, but tried first; PRelu is two away */
    assert_string_equal(n.name[1], "Relu");
    assert_string_equal(n.name[2], "rely");
    oct_nearest_hint(&n, OCT_NEAREST, NULL, &err);
    assert_string_equal(err.hint, "did you mean 'elu', 'Relu' or 'rely'?");
    oct_fail(&err, OCT_EUSAGE, "unknown");
    oct_nearest_hint(&n, 1, "--list shows all", &err);
    assert_string_equal(err.hint, "did you mean 'elu'? --list shows all");
    oct_fail(&err, OCT_EUSAGE, "unknown");
    oct_nearest_hint(&(oct_nearest){ .word = "x" }, 1, "--list shows all", &err);
    assert_string_equal(err.hint, "--list shows all");
}

/* The bytes of s behind the last whole character. */
static size_t torn(const char *s)
{
    size_t n;
    for (; *s; s += n)
        if (oct_utf8_char(s, strlen(s), &n) == OCT_BAD_CHAR)
            return strlen(s);
    return 0;
}

/* Texts that do not fit end between characters, wherever the limit falls. */
TEST(errors_are_cut_between_characters)
{
    static const char *const letters[] = { "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
    char long_name[1200];
    for (size_t k = 0; k < OCT_COUNT(letters); k++)
        for (int shift = 0; shift < 4; shift++) {
            oct_err err = OCT_ERR_INIT;
            long_name[0] = 0;
            while (strlen(long_name) + 5 < sizeof long_name)
                strcat(long_name, letters[k]);
            oct_fail(&err, OCT_EMALFORMED, "%.*s%s", shift, "abc", long_name);
            oct_hint(&err, "%.*s%s", shift, "abc", long_name);
            assert_int_equal(torn(err.text), 0);
            assert_int_equal(torn(err.hint), 0);
            assert_true(strlen(err.text) + 4 >= sizeof err.text); /* no more is lost than the character */
            oct_within(&err, "%.*s", shift + 1, "abcd");
            assert_int_equal(torn(err.text), 0);
            assert_true(strlen(err.text) + 4 >= sizeof err.text);
            oct_within(&err, "%s", long_name);
            assert_int_equal(torn(err.text), 0);
        }
    oct_err bytes = OCT_ERR_INIT;
    memset(long_name, '\xbf', sizeof long_name - 1); /* no character at all: the bytes stay as they are */
    long_name[sizeof long_name - 1] = 0;
    oct_fail(&bytes, OCT_EIO, "%s", long_name);
    assert_int_equal(strlen(bytes.text), sizeof bytes.text - 1);
}

typedef struct converted {
    oct_dtype from, to;
    double value; /* of a float; else the bits of `whole` are the value */
    int64_t whole;
    oct_status status;
} converted;

/* What a type holds is computed by hand: its digits, and its largest number. */
TEST(conversions_change_no_value)
{
    static const converted cases[] = {
        { OCT_S64, OCT_F32, 0, (1 << 24), OCT_OK },
        { OCT_S64, OCT_F32, 0, (1 << 24) + 1, OCT_ENUMERIC },
        { OCT_S64, OCT_F32, 0, -(1 << 24) - 1, OCT_ENUMERIC },
        { OCT_S64, OCT_F32, 0, (1 << 24) + 2, OCT_OK },
        { OCT_S64, OCT_F32, 0, INT64_MIN, OCT_OK },
        { OCT_S64, OCT_F32, 0, INT64_MAX, OCT_ENUMERIC },
        { OCT_U64, OCT_F64, 0, -1, OCT_ENUMERIC },  /* 2^64 - 1 */
        { OCT_U64, OCT_F64, 0, INT64_MIN, OCT_OK }, /* 2^63 */
        { OCT_S64, OCT_F64, 0, (INT64_C(1) << 53) + 1, OCT_ENUMERIC },
        { OCT_S32, OCT_F16, 0, 2049, OCT_ENUMERIC },
        { OCT_S32, OCT_F16, 0, 65504, OCT_OK },
        { OCT_S32, OCT_F16, 0, 65536, OCT_ENUMERIC },
        { OCT_S32, OCT_BF16, 0, 257, OCT_ENUMERIC },
        { OCT_U8, OCT_BF16, 0, 255, OCT_OK },
        { OCT_F64, OCT_F32, 1e300, 0, OCT_ENUMERIC },
        { OCT_F64, OCT_F32, -1e300, 0, OCT_ENUMERIC },
        { OCT_F64, OCT_F32, 3.4028234e38, 0, OCT_OK },
        { OCT_F64, OCT_F32, 3.4028236e38, 0, OCT_ENUMERIC },
        { OCT_F64, OCT_F32, 0.1, 0, OCT_OK }, /* rounded */
        { OCT_F64, OCT_F32, INFINITY, 0, OCT_OK },
        { OCT_F64, OCT_F32, NAN, 0, OCT_OK },
        { OCT_F64, OCT_F16, 65519.5, 0, OCT_OK }, /* nearer to 65504 than to the next, which there is not */
        { OCT_F64, OCT_F16, 65520, 0, OCT_ENUMERIC },
        { OCT_F64, OCT_BF16, 3.4e38, 0, OCT_ENUMERIC },
        { OCT_F64, OCT_S32, 1, 0, OCT_EUNSUPPORTED },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const converted *c = &cases[i];
        uint64_t to = 0;
        oct_err err = OCT_ERR_INIT;
        const void *from = c->from == OCT_F64 ? (const void *)&c->value : (const void *)&c->whole;
        const oct_status s = oct_array_convert(c->from, from, c->to, &to, 1, &err);
        if (s != c->status)
            fail_msg("case %zu, %g or %lld from %s to %s: status %d, wanted %d (%s)", i, c->value, (long long)c->whole,
                     oct_dtype_name(c->from), oct_dtype_name(c->to), s, c->status, err.text);
    }
}

static oct_status fails_within(oct_err *err)
{
    OCT_TRY_WITHIN(OCT_OK, err, "not reached");
    OCT_TRY_WITHIN(oct_fail(err, OCT_ENUMERIC, "no number"), err, "row %d", 3);
    return OCT_OK;
}

TEST(failures_are_forwarded)
{
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(fails_within(&err), OCT_ENUMERIC);
    assert_string_equal(err.text, "row 3: no number");
    assert_int_equal(fails_within(NULL), OCT_ENUMERIC); /* though there is no record that could hold it */
}

static void say_path(void *arg, const char *path)
{
    snprintf(arg, 200, "%s", path);
}

static void write_word(const char *path, const char *word)
{
    oct_out o;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_out_open(&o, path, &err), OCT_OK);
    oct_out_write(&o, word, strlen(word));
    assert_int_equal(oct_out_commit(&o, &err), OCT_OK);
}

static void expect_word(const char *path, const char *word)
{
    char *data;
    size_t n;
    assert_int_equal(oct_read_all(path, 100, &data, &n, NULL), OCT_OK);
    assert_string_equal(data, word);
    oct_free(data);
}

/* Sealed, an output can be read, and what is in its place is still the old file; a link stays one, and so do the
 * rights. */
/* At the end: a claim outlasts its file, whose number another may get. */
TEST(output_takes_its_place_last)
{
    char dir[] = "/tmp/oct_base_XXXXXX", file[64], link[64], part[64], left[64], said[200] = "";
    oct_err err = OCT_ERR_INIT;
    oct_out o, p;
    oct_map m;
    struct stat st;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    snprintf(part, sizeof part, "%s/part", dir);
    snprintf(left, sizeof left, "%s/.x.octet-abc012", dir);
    write_word(file, "old");
    assert_int_equal(chmod(file, 0640), 0);
    assert_int_equal(symlink("file", link), 0);
    write_word(left, "");
    oct_out_on_leftover(say_path, said);
    assert_int_equal(oct_out_open(&o, link, &err), OCT_OK);
    oct_out_on_leftover(NULL, NULL);
    assert_string_equal(said, left);
    oct_out_write(&o, "new", 3);
    assert_int_equal(oct_out_seal(&o, &err), OCT_OK);
    assert_int_equal(oct_out_map(&o, &m, &err), OCT_OK);
    assert_int_equal(m.size, 3);
    assert_memory_equal(m.data, "new", 3);
    oct_map_close(&m);
    expect_word(file, "old");
    assert_int_equal(oct_out_commit(&o, &err), OCT_OK);
    expect_word(file, "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    for (int round = 0; round < 2;
         round++) { /* the second cannot be put where a folder is by then: the first goes, if it was not there */
        assert_int_equal(oct_out_open(&p, part, &err), OCT_OK);
        assert_int_equal(oct_out_open(&o, file, &err), OCT_OK);
        unlink(file);
        assert_int_equal(mkdir(file, 0700), 0);
        assert_int_equal(oct_out_commit_both(&p, &o, &err), OCT_EIO);
        rmdir(file);
        assert_int_equal(oct_path_exists(part), round);
        write_word(part, "there");
    }
    assert_true(oct_same_output(file, link));
    assert_true(oct_same_output("-", "/dev/fd/1"));
    assert_false(oct_same_output(file, part));
    oct_out_claim(part);
    assert_int_equal(oct_map_open(&m, part, &err), OCT_EUSAGE);
    unlink(left);
    unlink(link);
    unlink(part);
    assert_int_equal(rmdir(dir), 0);
}
