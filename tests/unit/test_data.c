/* lib/data: every kind of data against values that numpy and Pillow read from the same files (testdata/data, made by
 * tests/generate/make_data_fixtures.py), and every file cut at every length. */
#define _GNU_SOURCE
#include "folder.h"
#include "sanitized.h"
#include "unit.h"

#include "base/io.h"
#include "base/mem.h"
#include "data/data.h"
#include "data/data_config.h"
#include "data/pictures/image.h"
#include "data/source/sample_sum.h"
#include "data/readers/stream.h"
#include "source_case.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST_GROUP(folder_make, folder_remove);

/* Allocations and threads that fail, where no sanitizer has functions of its own for them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#elif defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) && !__has_feature(memory_sanitizer)
#define OWN_LIBC
#endif
#elif defined(__GLIBC__)
#define OWN_LIBC
#endif
#ifdef OWN_LIBC
static size_t malloc_fails_at;
static bool no_threads;

static bool fails_now(void)
{
    if (malloc_fails_at == 0 || --malloc_fails_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *__libc_malloc(size_t n);
void *malloc(size_t n)
{
    return fails_now() ? NULL : __libc_malloc(n);
}

void *__libc_calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(n, size);
}

void *__libc_realloc(void *p, size_t n);
void *realloc(void *p, size_t n)
{
    return fails_now() ? NULL : __libc_realloc(p, n);
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *f = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real, &f, sizeof f);
    return no_threads ? EAGAIN : real(t, attr, fn, arg);
}
#endif

static const char *at(const char *name)
{
    static char path[8][512];
    static int round;
    const char *root = getenv("OCT_SOURCE");
    char *p = path[round++ & 7];
    snprintf(p, sizeof path[0], "%s/testdata/data/%s", root ? root : "../..", name);
    return p;
}

static oct_array expect(const char *name)
{
    oct_array a;
    oct_err err = OCT_ERR_INIT;
    if (oct_npy_load(at(name), &a, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return a;
}

/* One input [?, dims...]. */
static const oct_input_desc *input(oct_dtype type, int rank, const int64_t *dims)
{
    static oct_input_desc in;
    in = (oct_input_desc){ "x", type, rank, dims };
    return &in;
}

static oct_source *open_with(const char *spec, const char *steps, const oct_input_desc *in, size_t n,
                             oct_source_options more)
{
    oct_source *s;
    oct_err err = OCT_ERR_INIT;
    more.specs = &spec;
    more.n_specs = 1;
    more.preprocess = &steps;
    more.n_preprocess = steps ? 1 : 0;
    more.inputs = in;
    more.n_inputs = n;
    if (oct_source_open(&more, &s, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return s;
}

static oct_source *open_one(const char *spec, const char *steps, const oct_input_desc *in)
{
    return open_with(spec, steps, in, 1, (oct_source_options){ 0 });
}

static const int64_t rows32[3] = { -1, 3, 2 }, nchw[4] = { -1, 3, -1, -1 }, gray_nchw[4] = { -1, 1, -1, -1 };

/* Where steps put a picture, against numbers worked out by hand. */
TEST(placing)
{
    static const struct {
        const char *steps;
        int w, h;
        oct_placing want;
    } cases[] = {
        { "resize=416x416", 832, 208, { 0.5, 2, 0, 0 } },
        { "resize=256:crop=224", 512, 1024, { 0.5, 0.5, -16, -144 } },
        { "letterbox=640x640", 1280, 720, { 0.5, 0.5, 0, 140 } },
        { "letterbox=100x100", 50, 33, { 2, 2, 0, 17 } },
        { "precrop=0.5:resize=100x100", 400, 200, { 0.5, 1, -50, -50 } },
        { "mean=1", 7, 9, { 1, 1, 0, 0 } },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const char *const name = "x";
        oct_steps s = { 0 };
        oct_err err = OCT_ERR_INIT;
        if (oct_steps_parse(cases[i].steps, &name, 1, &s, &err) != OCT_OK)
            fail_msg("%s", err.text);
        const oct_placing p = oct_placing_of(&s, cases[i].w, cases[i].h), *want = &cases[i].want;
        assert_true(p.sx == want->sx && p.sy == want->sy && p.tx == want->tx && p.ty == want->ty);
    }
}

/* The digests are of a Python script that follows formats.md. */
TEST(digest_of_samples)
{
    static const char both[] = "f049ce0fbbb7004def5218fd783929994a7f57be96ec464fb751869a7d5ea3f1",
                      none[] = "d5fe696dc1aa5c0a800bf800ce8fc6e26ab622c7dd7de4b9fd0c304fe4036256";
    float x[] = { 1, 2 }, y[] = { 3, 4 };
    const oct_array one = { .dtype = OCT_F32, .rank = 2, .dims = { 1, 2 }, .data = x, .bytes = sizeof x },
                    two = { .dtype = OCT_F32, .rank = 2, .dims = { 1, 2 }, .data = y, .bytes = sizeof y };
    unsigned char digest[OCT_SHA256_BYTES];
    char text[OCT_SHA256_TEXT];
    for (int order = 0; order < 2; order++) {
        oct_sample_sum s = { 0 };
        oct_sample_sum_digest(&s, digest);
        assert_string_equal(oct_sha256_text(digest, text), none);
        for (int pass = 0; pass < 2; pass++) {
            assert_int_equal(oct_sample_sum_add(&s, order ? 70 : 0, order ? &two : &one, 1, NULL), OCT_OK);
            assert_int_equal(oct_sample_sum_add(&s, order ? 0 : 70, order ? &one : &two, 1, NULL), OCT_OK);
            oct_sample_sum_digest(&s, digest);
            assert_string_equal(oct_sha256_text(digest, text), both);
        }
        oct_sample_sum_free(&s);
    }
    oct_sample_sum other = { 0 }; /* the same arrays, each at the other's place */
    assert_int_equal(oct_sample_sum_add(&other, 0, &two, 1, NULL), OCT_OK);
    assert_int_equal(oct_sample_sum_add(&other, 70, &one, 1, NULL), OCT_OK);
    oct_sample_sum_digest(&other, digest);
    assert_string_not_equal(oct_sha256_text(digest, text), both);
    oct_sample_sum_free(&other);
}

TEST(npy_types_become_float)
{
    static const char *const names[] = { "f2", "f4", "f8", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8" };
    for (size_t k = 0; k < OCT_COUNT(names); k++) {
        char file[16];
        snprintf(file, sizeof file, "x_%s.npy", names[k]);
        oct_source *s = open_one(at(file), NULL, input(OCT_F32, 3, rows32));
        oct_batch b = OCT_BATCH_INIT;
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_source_count(s), 4);
        assert_int_equal(oct_source_next(s, 3, &b, &err), OCT_OK);
        assert_int_equal(b.n, 3);
        assert_int_equal(b.tensors[0].dims[0], 3);
        for (int i = 0; i < 18; i++)
            assert_true(((float *)b.tensors[0].data)[i] == (float)i);
        assert_int_equal(oct_source_next(s, 3, &b, &err), OCT_OK);
        assert_int_equal(b.n, 1);
        assert_int_equal(b.indices[0], 3);
        assert_non_null(strstr(b.names[0], ".npy[3]"));
        assert_true(((float *)b.tensors[0].data)[5] == 23.0f);
        assert_int_equal(oct_source_next(s, 3, &b, &err), OCT_OK);
        assert_int_equal(b.n, 0);
        oct_batch_free(&b);
        oct_source_close(s);
    }
}

TEST(npy_forms)
{
    static const char *const same[] = { "x_f4.npy", "fortran.npy", "v2.npy" };
    for (size_t k = 0; k < OCT_COUNT(same); k++) {
        oct_source *s = open_one(at(same[k]), "mean=1:std=2", input(OCT_F32, 3, rows32));
        oct_batch b = OCT_BATCH_INIT;
        assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
        assert_int_equal(b.n, 4);
        for (int i = 0; i < 24; i++)
            assert_true(((float *)b.tensors[0].data)[i] == ((float)i - 1.0f) / 2.0f);
        oct_batch_free(&b);
        oct_source_close(s);
        oct_array a = expect(same[k]);
        for (int i = 0; i < 24; i++)
            assert_true(((float *)a.data)[i] == (float)i);
        oct_array_free(&a);
    }
    source_fails(at("big.npy"), NULL, input(OCT_F32, 3, rows32), 1, OCT_EUNSUPPORTED, "big-endian");
    source_fails(at("nan.npy"), NULL, input(OCT_F32, 3, rows32), 1, OCT_ENUMERIC,
                 "nan.npy[2]: NaN for input 'x' at index 2");
    source_fails(at("x_f4.npy"), NULL, input(OCT_S64, 3, rows32), 1, OCT_EUNSUPPORTED, "float32");
    source_fails(at("x_f4.npy"), NULL, input(OCT_F32, 3, (int64_t[]){ -1, 3, 5 }), 1, OCT_EMALFORMED, "[1,3,2]");
    source_fails(at("x_f4.npy"), NULL, input(OCT_F32, 1, (int64_t[]){ -1 }), 1, OCT_EMALFORMED, "[4,3,2]");
    source_fails(at("absent.npy"), NULL, input(OCT_F32, 3, rows32), 1, OCT_EIO, "absent.npy");
    source_fails(at("x_f4.npy"), "men=3", input(OCT_F32, 3, rows32), 1, OCT_EUSAGE, "did you mean 'mean'");
    source_fails(at("x_f4.npy"), "resize=8", input(OCT_F32, 3, rows32), 1, OCT_EMALFORMED, "pictures");
}

TEST(shards_and_limits)
{
    int64_t given = 0;
    for (int part = -1; part < 3; part++) {
        oct_source_options o = { .shard_i = part < 0 ? 0 : part, .shard_n = part < 0 ? 0 : 3 };
        oct_source *s = open_with(at("x_i4.npy"), NULL, input(OCT_S64, 3, rows32), 1, o);
        oct_batch b = OCT_BATCH_INIT;
        int64_t n = 0, count = oct_source_count(s);
        while (oct_source_next(s, 1, &b, NULL) == OCT_OK && b.n) {
            assert_int_equal(b.indices[0], part < 0 ? n : part + 3 * n);
            assert_int_equal(b.places[0], b.indices[0]);
            assert_int_equal(((int64_t *)b.tensors[0].data)[0], 6 * b.indices[0]);
            n++;
        }
        assert_int_equal(n, count);
        if (part < 0) {
            assert_int_equal(oct_source_reset(s, NULL), OCT_OK);
            assert_int_equal(oct_source_next(s, 9, &b, NULL), OCT_OK);
            assert_int_equal(b.n, 4);
        } else {
            given += n;
        }
        oct_batch_free(&b);
        oct_source_close(s);
    }
    assert_int_equal(given, 4);
    oct_source *s = open_with(at("x_i4.npy"), NULL, input(OCT_S64, 3, rows32), 1,
                              (oct_source_options){ .samples = 3, .first = true, .shard_i = 0, .shard_n = 2 });
    assert_int_equal(oct_source_count(s), 2);
    oct_source_close(s);
}

TEST(fixed_batch_is_padded)
{
    oct_source *s = open_one(at("x_f4.npy"), NULL, input(OCT_F32, 3, (int64_t[]){ 3, 3, 2 }));
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_fixed_batch(s), 3);
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 3);
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.tensors[0].dims[0], 3);
    assert_int_equal(b.tensors[0].bytes, 72);
    for (int i = 0; i < 18; i++)
        assert_true(((float *)b.tensors[0].data)[i] == (float)(18 + i % 6));
    oct_batch_free(&b);
    oct_source_close(s);
}

TEST(npz_feeds_several_inputs)
{
    static const char *const files[] = { "stored.npz", "deflated.npz", "zip64.npz", "fortran.npz",
                                         "fortran_deflated.npz" };
    static const int64_t one[3] = { 1, 3, 2 }, st[3] = { 2, 1, 3 };
    const oct_input_desc in[3] = { { "x", OCT_F32, 3, one }, { "state", OCT_F32, 3, st }, { "sr", OCT_S64, 0, NULL } };
    oct_array states = expect("state.npy");
    for (size_t k = 0; k < OCT_COUNT(files); k++) {
        oct_source *s = open_with(at(files[k]), NULL, in, 3, (oct_source_options){ .shard_i = 1, .shard_n = 2 });
        oct_batch b = OCT_BATCH_INIT;
        for (int i = 1; i < 4; i += 2) {
            oct_err err = OCT_ERR_INIT;
            if (oct_source_next(s, 8, &b, &err) != OCT_OK)
                fail_msg("%s", err.text);
            assert_int_equal(b.n, 1); /* state has no batch dimension */
            for (int j = 0; j < 6; j++)
                assert_true(((float *)b.tensors[0].data)[j] == (float)(6 * i + j));
            assert_int_equal(b.tensors[1].dims[0], 2);
            assert_memory_equal(b.tensors[1].data, (float *)states.data + (ptrdiff_t)6 * i, 6 * sizeof(float));
            assert_int_equal(b.tensors[2].rank, 0);
            assert_int_equal(*(int64_t *)b.tensors[2].data, 16000);
        }
        assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
        assert_int_equal(b.n, 0);
        assert_int_equal(oct_source_reset(s, NULL), OCT_OK);
        assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
        assert_true(((float *)b.tensors[0].data)[0] == 6.0f);
        oct_batch_free(&b);
        oct_source_close(s);
    }
    oct_array_free(&states);
    source_fails(at("stored.npz"), NULL, &(oct_input_desc){ "y", OCT_F32, 3, one }, 1, OCT_EMALFORMED,
                 "no array for input 'y'");
}

/* Sample i is i, and its state 100 + i. */
static oct_status give(void *arg, int64_t i, const oct_input_desc *inputs, size_t n, oct_array *array, oct_err *err)
{
    static float value[2];
    assert_int_equal(n, 2);
    for (size_t k = 0; k < n; k++) {
        value[k] = (float)i + (strcmp(inputs[k].name, "state") == 0 ? 100 : 0);
        array[k] = (oct_array){ OCT_F32, 2, { 1, 1 }, &value[k], sizeof value[k], false };
    }
    return OCT_OK;
}

static char *name_given(void *arg, int64_t i)
{
    char *name = oct_alloc(16);
    snprintf(name, 16, "text+%d", (int)i);
    return name;
}

enum { GROUPS = 6 };
static const int64_t group_end[GROUPS] = { 1, 4, 9, 10, 14, 18 };

/* Adds the samples of a pick to `seen`, by their groups, and checks that groups are whole, begin where they should, and
 * are as many as the source says. Returns how many there were. */
static int64_t take_groups(oct_source *s, const oct_pick *pick, int seen[GROUPS])
{
    oct_batch b = OCT_BATCH_INIT;
    int64_t n = 0, last = -1;
    assert_int_equal(oct_source_pick(s, pick, NULL), OCT_OK);
    const int64_t want = oct_source_count(s);
    for (;; n++) {
        char name[16];
        assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
        if (!b.n)
            break;
        const int at = (int)b.indices[0];
        int group = 0;
        while (at >= group_end[group])
            group++;
        const bool begins = at == (group ? group_end[group - 1] : 0);
        assert_int_equal(b.n, 1);
        assert_true(begins || at == last + 1 || pick->most);
        assert_true(begins || at != last + 1 || b.follows);
        assert_true(!begins || !b.follows);
        assert_true(*(float *)b.tensors[0].data == (float)at && *(float *)b.tensors[1].data == (float)(100 + at));
        snprintf(name, sizeof name, "text+%d", at);
        assert_string_equal(b.names[0], name);
        seen[group]++;
        last = at;
    }
    assert_int_equal(n, want);
    oct_batch_free(&b);
    return n;
}

/* The number of groups that were seen; each as a whole. */
static int whole_groups(const int seen[GROUPS])
{
    int n = 0;
    for (int i = 0; i < GROUPS; i++) {
        assert_true(seen[i] == 0 || seen[i] == group_end[i] - (i ? group_end[i - 1] : 0));
        n += seen[i] > 0;
    }
    return n;
}

TEST(given_groups_stay_together)
{
    static const int64_t dims[2] = { -1, 1 };
    const oct_input_desc in[2] = { { "x", OCT_F32, 2, dims }, { "state", OCT_F32, 2, dims } };
    const char *const states[] = { "state" };
    const oct_given_samples from = {
        .get = give, .count = 18, .whole = true, .ends = group_end, .n_groups = GROUPS, .name = name_given
    };
    for (int64_t asked = 0; asked < 8; asked++)
        for (int first = 0; first < 2; first++) {
            const oct_source_options o = { .inputs = in,
                                           .n_inputs = 2,
                                           .given = &from,
                                           .hold = true,
                                           .samples = asked,
                                           .first = first,
                                           .states = states,
                                           .n_states = 1 };
            oct_source *s;
            assert_int_equal(oct_source_open(&o, &s, NULL), OCT_OK);
            const int groups = asked && asked < 5 ? (int)asked : 5;
            int seen[GROUPS] = { 0 }, halves[GROUPS] = { 0 };
            const int64_t chosen = take_groups(s, &(oct_pick){ 0 }, seen);
            const oct_source_choice c = oct_source_chosen(s);
            assert_int_equal(whole_groups(seen), groups);
            assert_true(c.chosen == chosen && c.total == 18 && c.aside == 18 - chosen);
            assert_true(asked == 0 ? c.asked == 0 : asked <= 5 ? c.asked == chosen : c.asked >= 18);
            for (int i = 0; i < groups && first; i++)
                assert_true(seen[i] > 0);
            assert_int_equal(take_groups(s, &(oct_pick){ .aside = true }, seen), 18 - chosen);
            assert_int_equal(whole_groups(seen), GROUPS);
            const int64_t half = take_groups(s, &(oct_pick){ .n = 2, .i = 0, .mixed = true }, halves);
            const int one = whole_groups(halves);
            assert_true(one == groups / 2 || one == (groups + 1) / 2);
            assert_int_equal(take_groups(s, &(oct_pick){ .n = 2, .i = 1, .mixed = true }, halves), chosen - half);
            assert_int_equal(whole_groups(halves), groups);
            int few[GROUPS] = { 0 };
            const int64_t most = take_groups(s, &(oct_pick){ .n = 2, .i = 0, .mixed = true, .most = 2 }, few);
            assert_int_equal(most, half < 2 ? half : 2);
            oct_source_close(s);
        }
}

/* An .npy holds one array: inputs that nothing reads are no others, unless all are so. They hold zeros, even if samples
 * have arrays of their names. */
TEST(unread_inputs_are_zeros)
{
    static const int64_t mask[2] = { -1, 5 }, one[3] = { 1, 3, 2 }, st[3] = { 2, 1, 3 };
    const oct_input_desc in[3] = { { "training", OCT_BOOL, 0, NULL, true },
                                   { "x", OCT_F32, 3, rows32, false },
                                   { "mask", OCT_F32, 2, mask, true } };
    oct_batch b = OCT_BATCH_INIT;
    oct_source *s = open_with(at("x_f4.npy"), "mean=1", in, 3, (oct_source_options){ 0 });
    assert_int_equal(oct_source_next(s, 2, &b, NULL), OCT_OK);
    assert_true(b.n == 2 && b.tensors[0].rank == 0 && *(const uint8_t *)b.tensors[0].data == 0);
    assert_true(b.tensors[1].dims[0] == 2 && b.tensors[2].rank == 2 && b.tensors[2].dims[0] == 2 &&
                b.tensors[2].dims[1] == 5);
    for (int i = 0; i < 10; i++)
        assert_true(((const float *)b.tensors[2].data)[i] == 0);
    assert_string_equal(oct_source_preprocess(s), "x/mean=1");
    assert_non_null(strstr(oct_source_preprocess_words(s), "input 'mask': zeros, as nothing reads it"));
    oct_source_close(s);
    const oct_input_desc alone = { "x", OCT_F32, 3, rows32, true };
    s = open_with(at("x_f4.npy"), NULL, &alone, 1, (oct_source_options){ 0 });
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_true(((const float *)b.tensors[0].data)[1] != 0);
    oct_source_close(s);
    const oct_input_desc stored[3] = { { "x", OCT_F32, 3, one, false },
                                       { "state", OCT_F32, 3, st, true },
                                       { "sr", OCT_S64, 0, NULL, true } };
    s = open_with(at("stored.npz"), NULL, stored, 3, (oct_source_options){ 0 });
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_true(((const float *)b.tensors[0].data)[4] != 0 && *(const int64_t *)b.tensors[2].data == 0);
    oct_batch_free(&b);
    oct_source_close(s);
}

#ifdef __GNUC__
#define MAYBE_UNUSED __attribute__((unused)) /* a build without pictures leaves some tests empty */
#else
#define MAYBE_UNUSED
#endif

/* The picture as the source gives it, against an array of height, width, channels. */
MAYBE_UNUSED static void same_picture(const char *spec, const char *steps, const char *want, float slack)
{
    oct_array w = expect(want);
    const int64_t c = w.rank == 2 ? 1 : w.dims[2];
    oct_source *s = open_one(at(spec), steps, input(OCT_F32, 4, c == 1 ? gray_nchw : nchw));
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    if (oct_source_next(s, 1, &b, &err) != OCT_OK)
        fail_msg("%s: %s", spec, err.text);
    const oct_array *t = &b.tensors[0];
    assert_int_equal(t->dims[1], c);
    assert_int_equal(t->dims[2], w.dims[0]);
    assert_int_equal(t->dims[3], w.dims[1]);
    for (int64_t y = 0; y < w.dims[0]; y++)
        for (int64_t x = 0; x < w.dims[1]; x++)
            for (int64_t k = 0; k < c; k++) {
                float have = ((float *)t->data)[(k * w.dims[0] + y) * w.dims[1] + x];
                int64_t i = (y * w.dims[1] + x) * c + k;
                float ref = w.dtype == OCT_F32 ? ((float *)w.data)[i] : (float)((uint8_t *)w.data)[i];
                if (!(fabsf(have - ref) <= slack))
                    fail_msg("%s (%s) at %d,%d,%d: %g, expected %g", spec, steps, (int)x, (int)y, (int)k, (double)have,
                             (double)ref);
            }
    oct_batch_free(&b);
    oct_source_close(s);
    oct_array_free(&w);
}

TEST(pictures_equal_pillow)
{
#ifdef OCT_HAVE_PNG
    static const char *const filters[] = { "bilinear", "bicubic", "nearest" };
    static const char *const sizes[] = { "16x11", "37x12", "50x61", "9x40", "34x20", "50x20" };
    same_picture("rgb.png", NULL, "rgb.npy", 0);
    same_picture("rgba.png", NULL, "rgb.npy", 0);
    same_picture("palette.png", NULL, "palette.npy", 0);
    same_picture("transparent.png", NULL, "palette.npy", 0);
    same_picture("gray.png", NULL, "rgb.gray.npy", 0);
    same_picture("rgb.png", "order=gray", "rgb.gray.npy", 0);
    same_picture("rgb.png", "resize=12:crop=7x9", "rgb.short12.crop7x9.npy", 0);
    same_picture("tall.png", "resize=12:crop=9x7", "tall.short12.crop9x7.npy", 0);
    for (int tall = 0; tall < 2; tall++) {
        const char *from = tall ? "tall.png" : "rgb.png";
        same_picture(from, "precrop=0.875:resize=14x15", tall ? "tall.precrop.14x15.npy" : "rgb.precrop.14x15.npy", 0);
        same_picture(from, "precrop=20x10", tall ? "tall.precrop20x10.npy" : "rgb.precrop20x10.npy", 0);
        same_picture(from, "letterbox=30x40:pad=9", tall ? "tall.letterbox.30x40.npy" : "rgb.letterbox.30x40.npy", 0);
    }
    for (size_t f = 0; f < OCT_COUNT(filters); f++)
        for (size_t k = 0; k < OCT_COUNT(sizes); k++) {
            char steps[64], want[64];
            snprintf(steps, sizeof steps, "interp=%s:resize=%s", filters[f], sizes[k]);
            snprintf(want, sizeof want, "rgb.%s.%s.npy", filters[f], sizes[k]);
            same_picture("rgb.png", steps, want, 0);
        }
#endif
#ifdef OCT_HAVE_JPEG
    same_picture("rgb.jpg", NULL, "rgb.jpg.npy", 1);
    same_picture("gray.jpg", NULL, "gray.jpg.npy", 1);
    same_picture("progressive.jpg", NULL, "progressive.jpg.npy", 1);
    same_picture("cmyk.jpg", NULL, "cmyk.jpg.npy", 1);
#endif
#ifdef OCT_HAVE_WEBP
    same_picture("rgb.webp", NULL, "rgb.webp.npy", 0);
    same_picture("lossless.webp", NULL, "rgb.npy", 0);
    same_picture("rgba.webp", NULL, "rgb.npy", 0);
#endif
    same_picture("rgb.bmp", NULL, "rgb.npy", 0);
    same_picture("palette.bmp", NULL, "palette.npy", 0);
    same_picture("gray.bmp", "order=gray", "rgb.gray.npy", 0);
    static const char *const bitmaps[] = { "555", "565", "down", "nibbles", "bits", "core" };
    for (size_t i = 0; i < OCT_COUNT(bitmaps); i++) {
        char file[32], want[32];
        snprintf(file, sizeof file, "%s.bmp", bitmaps[i]);
        snprintf(want, sizeof want, "%s.bmp.npy", bitmaps[i]);
        same_picture(file, NULL, want, 0);
    }
    same_picture("rgb_f32.npy", "order=gray", "rgb_f32.gray.npy", 2e-3f);
    oct_array w = expect("f32.bilinear.16x11.npy");
    oct_source *s = open_one(at("f32.npy"), "resize=16x11", input(OCT_F32, 4, gray_nchw));
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    for (int i = 0; i < 16 * 11; i++)
        assert_true(fabsf(((float *)b.tensors[0].data)[i] - ((float *)w.data)[i]) < 1e-4f);
    oct_batch_free(&b);
    oct_source_close(s);
    oct_array_free(&w);
}

/* INTER_LINEAR by its definition in real numbers: within one level of the fixed point. */
TEST(linear_is_unwidened)
{
    oct_array p = expect("rgb.npy");
    oct_image im;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_image_create(&im, 37, 29, 3, false, &err), OCT_OK);
    memcpy(im.data, p.data, p.bytes);
    assert_int_equal(oct_image_resize(&im, 16, 50, OCT_INTERP_LINEAR, &err), OCT_OK);
    for (int y = 0; y < 50; y++)
        for (int x = 0; x < 16; x++) {
            double fx = fmin(fmax((x + 0.5) * 37 / 16 - 0.5, 0), 36), fy = fmin(fmax((y + 0.5) * 29 / 50 - 0.5, 0), 28);
            int x0 = (int)fx, y0 = (int)fy, x1 = x0 < 36 ? x0 + 1 : x0, y1 = y0 < 28 ? y0 + 1 : y0;
            fx -= x0;
            fy -= y0;
            const uint8_t *q = p.data;
            double v = (q[(y0 * 37 + x0) * 3] * (1 - fx) + q[(y0 * 37 + x1) * 3] * fx) * (1 - fy) +
                       (q[(y1 * 37 + x0) * 3] * (1 - fx) + q[(y1 * 37 + x1) * 3] * fx) * fy;
            assert_true(fabs(v - ((uint8_t *)im.data)[(y * 16 + x) * 3]) <= 1.0);
        }
    oct_image_free(&im);
    oct_array_free(&p);
}

TEST(steps_apply_in_order)
{
#ifdef OCT_HAVE_PNG
    oct_array w = expect("rgb.npy");
    const uint8_t *p = w.data;
    oct_source *s = open_one(at("rgb.png"), "imagenet:resize=none:crop=20x10:order=bgr", input(OCT_F32, 4, nchw));
    assert_string_equal(oct_source_preprocess(s),
                        "crop=20x10:order=bgr:mean=123.675,116.28,103.53:std=58.395,57.12,57.375");
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_int_equal(b.tensors[0].dims[1], 3);
    static const float mean[3] = { 123.675f, 116.28f, 103.53f }, std[3] = { 58.395f, 57.12f, 57.375f };
    for (int k = 0; k < 3; k++) /* (37-20)/2 is 8, (29-10)/2 is 9 */
        for (int y = 0; y < 10; y++)
            for (int x = 0; x < 20; x++) {
                float have = ((float *)b.tensors[0].data)[(k * 10 + y) * 20 + x];
                assert_true(have == ((float)p[((y + 9) * 37 + x + 8) * 3 + 2 - k] - mean[k]) / std[k]);
            }
    oct_batch_free(&b);
    oct_source_close(s);
    s = open_one(at("rgb.png"), NULL,
                 input(OCT_U8, 4, (int64_t[]){ -1, -1, -1, 3 })); /* the 3 channels at the end say NHWC */
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_memory_equal(b.tensors[0].data, w.data, w.bytes);
    oct_batch_free(&b);
    oct_source_close(s);
    s = open_one(at("rgb.npy"), "unit:order=bgr", input(OCT_F32, 4, (int64_t[]){ -1, 3, 29, 37 })); /* an HWC array */
    oct_err err = OCT_ERR_INIT;
    if (oct_source_next(s, 1, &b, &err) != OCT_OK)
        fail_msg("%s", err.text);
    assert_true(((float *)b.tensors[0].data)[5] == (float)p[5 * 3 + 2] / 255.0f);
    oct_batch_free(&b);
    oct_source_close(s);
    oct_array_free(&w);
    source_fails(at("rgb.png"), NULL, input(OCT_F32, 4, (int64_t[]){ -1, 3, 24, 24 }), 1, OCT_EMALFORMED, "crop=24x24");
    source_fails(at("rgb.png"), "crop=64", input(OCT_F32, 4, nchw), 1, OCT_EMALFORMED, "resize=64");
    source_fails(at("rgb.png"), "precrop=64", input(OCT_F32, 4, nchw), 1, OCT_EMALFORMED, "smaller than precrop=64x64");
    source_fails(at("rgb.png"), "mean=1,2", input(OCT_F32, 4, nchw), 1, OCT_EUSAGE, "2 numbers");
    source_fails(at("rgb.png"), "unit", input(OCT_U8, 4, nchw), 1, OCT_EUSAGE, "uint8");
    source_fails(at("rgb.png"), NULL, input(OCT_F32, 4, gray_nchw), 1, OCT_EMALFORMED, "order=gray");
#endif
}

static void counts(void *arg)
{
    ++*(int *)arg;
}

/* An open source reads its samples again in another form, and can be turned back. */
TEST(steps_are_exchanged)
{
    oct_steps steps = { .has_order = true, .order = OCT_ORDER_BGR, .n_mean = 1, .mean = { 3 } };
    int ended = 0, ended_too = 0;
    unsigned char first[OCT_SHA256_BYTES], digest[OCT_SHA256_BYTES];
    oct_source *s = open_one(at("rgb.npy"), "mean=0:std=255", input(OCT_F32, 4, (int64_t[]){ -1, 3, 29, 37 }));
    oct_batch b = OCT_BATCH_INIT;
    oct_array w = expect("rgb.npy");
    const uint8_t *p = w.data;
    oct_source_set_visit(s, NULL, counts, &ended);
    assert_int_equal(oct_source_sum(s, NULL), OCT_OK);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
        const float have = ((float *)b.tensors[0].data)[5];
        assert_true(have == (turn == 1 ? (float)p[5 * 3 + 2] - 3 : (float)p[5 * 3] / 255.0f));
        assert_string_equal(oct_source_preprocess(s), turn == 1 ? "order=bgr:mean=3" : "mean=0:std=255");
        assert_int_equal(oct_source_digest(s, turn ? digest : first), 1); /* of the last form alone */
        assert_true(!turn || (memcmp(first, digest, sizeof first) == 0) == (turn == 2));
        assert_int_equal(oct_source_exchange_steps(s, &steps, NULL), OCT_OK);
    }
    assert_int_equal(ended, 0);
    oct_source_set_visit(s, NULL, counts, &ended_too);
    assert_true(ended == 1 && ended_too == 0);
    oct_batch_free(&b);
    oct_source_close(s);
    assert_true(ended == 1 && ended_too == 1);
    oct_array_free(&w);
}

TEST(texts_of_steps)
{
    const char *names[2] = { "a", "b/c:0" };
    oct_steps st[2] = { { 0 } }, again[1] = { { 0 } };
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_steps_parse("a/resize=8:b/c:0/mean=1.5,2,3:std=0.1:caffe:crop=7x9", names, 2, st, &err),
                     OCT_OK);
    oct_buf b = OCT_BUF_INIT;
    oct_steps_text(&st[0], "", &b);
    assert_string_equal(oct_buf_str(&b), "resize=256:interp=bilinear:crop=7x9:order=bgr:mean=104,117,123:std=0.1");
    assert_int_equal(oct_steps_parse(oct_buf_str(&b), NULL, 1, again, &err), OCT_OK);
    assert_memory_equal(&again[0], &st[0], sizeof again[0]);
    b.len = 0;
    memset(again, 0, sizeof again);
    memset(st, 0, sizeof st);
    assert_int_equal(oct_steps_parse("resize=5:precrop=1.:letterbox=8x9", NULL, 1, st, &err), OCT_OK);
    oct_steps_text(&st[0], "", &b);
    assert_string_equal(oct_buf_str(&b), "precrop=1.0:letterbox=8x9:interp=bilinear:pad=114");
    assert_int_equal(oct_steps_parse(oct_buf_str(&b), NULL, 1, again, &err), OCT_OK);
    assert_true(again->precrop == 1 && again->letter_w == 8 && again->letter_h == 9 && again->pad == 114 &&
                !again->resize_short);
    oct_buf_free(&b);
    memset(st, 0, sizeof st);
    static const char *const wrong[] = { "resize",        "resize=0",       "resize=99999", "resize=3x",
                                         "mean=",         "mean=1,2,3,4,5", "mean=nan",     "std=0",
                                         "std=-1",        "crop=a",         "order=rbg",    "layout=chw",
                                         "c/mean=3",      "imagnet",        "interp=1",     "precrop=0",
                                         "precrop=1.5",   "precrop=.",      "precrop=0.5.", "precrop=inf.",
                                         "letterbox=0.5", "pad=256",        "pad=-1",       "pad=" };
    for (size_t i = 0; i < OCT_COUNT(wrong); i++)
        if (oct_steps_parse(wrong[i], names, 2, st, &err) != OCT_EUSAGE)
            fail_msg("accepted: %s", wrong[i]);
    static const char *const presets[] = { "imagenet", "imagenet-tf", "caffe", "unit" };
    for (size_t i = 0; i < OCT_COUNT(presets); i++)
        assert_int_equal(oct_steps_parse(presets[i], names, 2, st, &err), OCT_OK);
}

/* Reads all; checks names' ends and labels. */
MAYBE_UNUSED static void gives(const char *spec, const char *labels, size_t n, const char *const *names,
                               const int64_t *want)
{
    oct_source *s = open_with(spec, "order=gray:resize=4x4", input(OCT_F32, 4, gray_nchw), 1,
                              (oct_source_options){ .labels = labels });
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    if (oct_source_next(s, 16, &b, &err) != OCT_OK)
        fail_msg("%s", err.text);
    assert_int_equal(b.n, n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(b.names[i]), tail = strlen(names[i]);
        assert_true(len > tail);
        assert_string_equal(b.names[i] + len - tail, names[i]);
        assert_int_equal(b.labels[i], want[i]);
    }
    oct_batch_free(&b);
    oct_source_close(s);
}

TEST(folders_lists_and_shards)
{
#if defined(OCT_HAVE_PNG) && defined(OCT_HAVE_JPEG)
    static const char *const listed[] = { "/rgb.png", "/rgb.jpg", "/gray.png" };
    gives(at("list.csv"), NULL, 3, listed, (int64_t[]){ 3, 5, -1 });
    static const char *const classes[] = { "cat/rgb.png", "dog/gray.png", "dog/rgb.jpg" };
    gives(at("classes"), NULL, 3, classes, (int64_t[]){ 0, 1, 1 });
    gives(at("classes"), at("list.csv"), 3, classes, (int64_t[]){ 3, -1, 5 }); /* by file name */
    write_file(folder_path("y.csv"), "label\n7\n8\n9\n", 12);
    gives(at("classes"), folder_path("y.csv"), 3, classes, (int64_t[]){ 7, 8, 9 });
    source_fails(at("list.csv"), NULL, input(OCT_S64, 2, rows32), 1, OCT_EMALFORMED, "cannot feed");
#ifdef OCT_HAVE_ARCHIVE
    static const char *const shard[] = { "tar:d/000", "tar:d/001", "tar:d/002" };
    gives(at("shard-000.tar"), NULL, 3, shard, (int64_t[]){ 3, 4, 5 });
    gives(at("shard-{000..000}.tar"), NULL, 3, shard, (int64_t[]){ 3, 4, 5 });
    gives(at("shard-*.tar"), NULL, 3, shard, (int64_t[]){ 3, 4, 5 });
    source_fails(at("shard-{000..001}.tar"), NULL, input(OCT_F32, 4, nchw), 1, OCT_EIO, "shard-001.tar");
    char pipe[600];
    snprintf(pipe, sizeof pipe, "pipe:gzip -c '%s'", at("shard-000.tar"));
    static const char *const piped[] = { ":d/000", ":d/001", ":d/002" };
    gives(pipe, NULL, 3, piped, (int64_t[]){ 3, 4, 5 });
    source_fails("pipe:exit 9", NULL, input(OCT_F32, 4, nchw), 1, OCT_EIO, "pipe:exit 9: the command failed (exit 9)");
    source_fails("pipe:exit 0", NULL, input(OCT_F32, 4, nchw), 1, OCT_EIO, "the command delivered nothing");
#endif
#endif
    source_fails(at("case/test_data_set_0/output_0.txt"), NULL, input(OCT_F32, 4, nchw), 1, OCT_EIO, "output_0.txt");
    mkdir(folder_path("empty"), 0700);
    source_fails(folder_path("empty"), NULL, input(OCT_F32, 4, nchw), 1, OCT_EMALFORMED, "no samples");
}

TEST(test_cases)
{
    oct_source *s = open_one(at("case"), NULL, input(OCT_F32, 3, rows32));
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_count(s), 3);
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 3);
    for (int i = 0; i < 18; i++)
        assert_true(((float *)b.tensors[0].data)[i] == (float)(i / 6 * 10 + i % 6));
    oct_batch_free(&b);
    oct_source_close(s);
}

TEST(bad_samples_are_counted)
{
#ifdef OCT_HAVE_PNG
    char line[600];
    snprintf(line, sizeof line, "file,label\n%s,1\nbad.png,2\n%s,3\n", at("rgb.png"), at("rgb.png"));
    write_file(folder_path("bad.png"), "\x89PNG\r\n\x1a\nrest", 12);
    write_file(folder_path("bad.csv"), line, strlen(line));
    source_fails(folder_path("bad.csv"), NULL, input(OCT_F32, 4, nchw), 1, OCT_EMALFORMED, "bad.png: broken PNG");
    oct_source *s =
        open_with(folder_path("bad.csv"), NULL, input(OCT_F32, 4, nchw), 1, (oct_source_options){ .skip_bad = true });
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.labels[1], 3);
    assert_int_equal(oct_source_bad_count(s), 1);
    assert_non_null(strstr(oct_source_bad_text(s, 0), "bad.png"));
    assert_null(oct_source_bad_text(s, 1));
    oct_batch_free(&b);
    oct_source_close(s);
    /* What stands before the broken one is delivered first. */
    s = open_one(folder_path("bad.csv"), NULL, input(OCT_F32, 4, nchw));
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 1);
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_EMALFORMED);
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_EMALFORMED);
    oct_batch_free(&b);
    oct_source_close(s);
#endif
}

TEST(npz_is_written)
{
    const char *names[3] = { "even", "ragged", "one" };
    oct_npz_writer *w;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_npz_writer_open(folder_path("out.npz"), names, 3, &w, &err), OCT_OK);
    float even[6], rag[6];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 6; i++) {
            even[i] = (float)(4 * k + i);
            rag[i] = (float)(100 * k + i);
        }
        int64_t cols = k == 1 ? 3 : 2, one = k;
        oct_array c[3] = { { OCT_F32, 2, { 3, 2 }, even, 24, false },
                           { OCT_F32, 2, { 2, cols }, rag, 8 * (size_t)cols, false },
                           { OCT_S64, 1, { 1 }, &one, 8, false } };
        assert_int_equal(oct_npz_writer_add(w, c, 2, &err), OCT_OK);
    }
    assert_int_equal(oct_npz_writer_commit(w, &err), OCT_OK);
    const oct_input_desc in[5] = { { "even", OCT_F32, 2, (int64_t[]){ -1, 2 } } };
    oct_source *s = open_with(folder_path("out.npz"), NULL, in, 1, (oct_source_options){ 0 });
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 9, &b, &err), OCT_OK);
    assert_int_equal(b.n, 6);
    for (int i = 0; i < 12; i++)
        assert_true(((float *)b.tensors[0].data)[i] == (float)i);
    oct_source_close(s);
    const oct_input_desc rin[1] = { { "ragged/000001", OCT_F32, 2, (int64_t[]){ -1, 3 } } };
    s = open_with(folder_path("out.npz"), NULL, rin, 1, (oct_source_options){ 0 });
    assert_int_equal(oct_source_next(s, 9, &b, &err), OCT_OK);
    assert_int_equal(b.n, 2);
    assert_true(((float *)b.tensors[0].data)[5] == 105.0f);
    oct_batch_free(&b);
    oct_source_close(s);
    assert_int_equal(oct_npz_writer_open(folder_path("gone.npz"), names, 3, &w, &err), OCT_OK);
    oct_npz_writer_abort(w);
    assert_false(oct_path_exists(folder_path("gone.npz")));
}

/* Writes an array; whatever allocation is the one that fails, the error is that. */
static oct_status write_one(oct_err *err)
{
    const char *name = "x";
    oct_npz_writer *w;
    float v[2] = { 1, 2 };
    OCT_TRY(oct_npz_writer_open(folder_path("short.npz"), &name, 1, &w, err));
    const oct_array a = { OCT_F32, 2, { 1, 2 }, v, sizeof v, false };
    oct_status s = oct_npz_writer_add(w, &a, 1, err);
    if (s == OCT_OK)
        return oct_npz_writer_commit(w, err);
    oct_npz_writer_abort(w);
    return s;
}

TEST(npz_without_memory)
{
    oct_status s = OCT_ENOMEM;
    size_t n = 0;
    while (s == OCT_ENOMEM) {
        oct_err err = OCT_ERR_INIT;
        oct_alloc_fail_at(++n);
        s = write_one(&err);
        oct_alloc_fail_at(0);
    }
    assert_int_equal(s, OCT_OK);
    assert_true(n > 5);
}

/* An .npz in folder `name` of the test: arrays of floats whose values count from `first`. */
static void write_npz(const char *name, size_t n, const char *const *names, oct_array *arrays, float first)
{
    static float values[64];
    oct_npz_writer *w;
    oct_err err = OCT_ERR_INIT;
    for (size_t i = 0; i < OCT_COUNT(values); i++)
        values[i] = first + (float)i;
    for (size_t i = 0; i < n; i++) {
        arrays[i].data = values;
        oct_array_bytes(OCT_F32, oct_array_count(&arrays[i]), &arrays[i].bytes);
    }
    assert_int_equal(oct_npz_writer_open(folder_path(name), names, n, &w, &err), OCT_OK);
    assert_int_equal(oct_npz_writer_add(w, arrays, -1, &err), OCT_OK);
    assert_int_equal(oct_npz_writer_commit(w, &err), OCT_OK);
}

TEST(folder_of_npz)
{
    const char *const names[2] = { "x", "edges" };
    const oct_input_desc rows = { "x", OCT_F32, 2, (int64_t[]){ -1, 2 } };
    assert_int_equal(mkdir(folder_path("rows"), 0700), 0);
    write_npz("rows/b.npz", 1, names, &(oct_array){ OCT_F32, 2, { 1, 2 }, NULL, 0, false }, 50);
    write_npz("rows/a.npz", 1, names, &(oct_array){ OCT_F32, 2, { 2, 2 }, NULL, 0, false }, 10);
    oct_source *s = open_with(folder_path("rows"), NULL, &rows, 1, (oct_source_options){ 0 });
    oct_batch b = OCT_BATCH_INIT;
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(oct_source_next(s, 9, &b, NULL), OCT_OK);
        assert_int_equal(b.n, 3);
        static const float want[] = { 10, 11, 12, 13, 50, 51 };
        assert_memory_equal(b.tensors[0].data, want, sizeof want);
        assert_int_equal(oct_source_reset(s, NULL), OCT_OK);
    }
    oct_source_close(s);

    /* Arrays that do not agree in a number of samples, but fit their inputs: what one run is fed with. */
    const oct_input_desc in[2] = { { "x", OCT_F32, 2, (int64_t[]){ -1, 2 } },
                                   { "edges", OCT_F32, 2, (int64_t[]){ 2, -1 } } };
    assert_int_equal(mkdir(folder_path("feeds"), 0700), 0);
    for (int64_t i = 0; i < 3; i++)
        write_npz(i == 0   ? "feeds/0.npz"
                  : i == 1 ? "feeds/1.npz"
                           : "feeds/2.npz",
                  2, names,
                  (oct_array[]){ { OCT_F32, 2, { 3 + i, 2 }, NULL, 0, false },
                                 { OCT_F32, 2, { 2, 4 - i }, NULL, 0, false } },
                  (float)i);
    s = open_with(folder_path("feeds"), NULL, in, 2, (oct_source_options){ 0 });
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(oct_source_next(s, 9, &b, NULL), OCT_OK);
        assert_int_equal(b.n, 1);
        assert_int_equal(b.tensors[0].dims[0], 3 + i);
        assert_int_equal(b.tensors[1].dims[1], 4 - i);
        assert_true(((float *)b.tensors[1].data)[1] == (float)(i + 1));
    }
    assert_int_equal(oct_source_next(s, 9, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 0);
    oct_batch_free(&b);
    oct_source_close(s);

    write_npz("rows/c.npz", 1, names, &(oct_array){ OCT_F32, 2, { 1, 3 }, NULL, 0, false }, 0);
    source_fails(folder_path("rows"), NULL, &rows, 1, OCT_EMALFORMED, "c.npz");
}

/* The deflated arrays of one file do not have the checksum that it says: the samples of the next one are read. */
TEST(folder_of_npz_with_a_broken_one)
{
    static const int64_t one[3] = { 1, 3, 2 }, st[3] = { 2, 1, 3 };
    const oct_input_desc in[3] = { { "x", OCT_F32, 3, one }, { "state", OCT_F32, 3, st }, { "sr", OCT_S64, 0, NULL } };
    oct_map file;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_map_open(&file, at("deflated.npz"), &err), OCT_OK);
    assert_int_equal(mkdir(folder_path("half"), 0700), 0);
    write_file(folder_path("half/b.npz"), file.data, file.size);
    uint8_t *broken = malloc(file.size);
    assert_non_null(broken);
    memcpy(broken, file.data, file.size);
    for (size_t i = 0; i + 20 < file.size; i++) /* the checksums of the directory at the end */
        if (memcmp(broken + i, "PK\1\2", 4) == 0)
            broken[i + 16] ^= 1;
    write_file(folder_path("half/a.npz"), broken, file.size);
    free(broken);
    oct_map_close(&file);
    oct_source *s = open_with(folder_path("half"), NULL, in, 3, (oct_source_options){ .skip_bad = true });
    oct_batch b = OCT_BATCH_INIT;
    int seen = 0;
    while (oct_source_next(s, 1, &b, &err) == OCT_OK && b.n) {
        const bool whole = strstr(b.names[0], "b.npz") != NULL;
        assert_true(whole || strstr(b.names[0], "a.npz"));
        if (whole)
            assert_true(((float *)b.tensors[0].data)[4] == (float)(6 * seen++ + 4));
    }
    assert_int_equal(seen, 4);
    assert_int_equal(oct_source_bad_count(s), 1);
    assert_non_null(strstr(oct_source_bad_text(s, 0), "a.npz"));
    oct_batch_free(&b);
    oct_source_close(s);
    source_fails(folder_path("half"), NULL, in, 3, OCT_EMALFORMED, "a.npz");
}

/* A file whose directory cannot be read is one broken sample; one that does not suit the model stops the run. */
TEST(folder_of_npz_with_a_damaged_one)
{
    static const int64_t one[3] = { 1, 3, 2 }, st[3] = { 2, 1, 3 };
    const oct_input_desc in[3] = { { "x", OCT_F32, 3, one }, { "state", OCT_F32, 3, st }, { "sr", OCT_S64, 0, NULL } };
    oct_map file;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_map_open(&file, at("deflated.npz"), &err), OCT_OK);
    assert_int_equal(mkdir(folder_path("damaged"), 0700), 0);
    write_file(folder_path("damaged/b.npz"), file.data, file.size);
    write_file(folder_path("damaged/a.npz"), file.data, file.size / 2);
    write_file(folder_path("damaged/c.npz"), "no archive at all", 17);
    oct_map_close(&file);
    source_fails(folder_path("damaged"), NULL, in, 3, OCT_EMALFORMED, "a.npz");
    oct_source *s = open_with(folder_path("damaged"), NULL, in, 3, (oct_source_options){ .skip_bad = true });
    oct_batch b = OCT_BATCH_INIT;
    int seen = 0;
    while (oct_source_next(s, 1, &b, &err) == OCT_OK && b.n) {
        assert_non_null(strstr(b.names[0], "b.npz"));
        assert_true(((float *)b.tensors[0].data)[4] == (float)(6 * seen++ + 4));
    }
    assert_int_equal(seen, 4);
    assert_int_equal(oct_source_bad_count(s), 2);
    assert_non_null(strstr(oct_source_bad_text(s, 0), "a.npz"));
    assert_non_null(strstr(oct_source_bad_text(s, 1), "c.npz"));
    oct_batch_free(&b);
    oct_source_close(s);
    const oct_input_desc other[3] = { { "z", OCT_F32, 3, one }, in[1], in[2] };
    const char *spec = folder_path("damaged");
    const oct_source_options o = { .specs = &spec, .n_specs = 1, .inputs = other, .n_inputs = 3, .skip_bad = true };
    assert_int_equal(oct_source_open(&o, &s, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "no array for input 'z'"));
}

static void read_quietly(const char *path, const oct_input_desc *in, size_t n)
{
    oct_source *s;
    oct_err err = OCT_ERR_INIT;
    oct_batch b = OCT_BATCH_INIT;
    oct_source_options o = { .specs = &path, .n_specs = 1, .inputs = in, .n_inputs = n, .threads = 1 };
    oct_status st = oct_source_open(&o, &s, &err);
    if (st == OCT_OK) {
        for (int i = 0; i < 100 && (st = oct_source_next(s, 4, &b, &err)) == OCT_OK && b.n; i++) {
        }
        oct_source_close(s);
    }
    if (st != OCT_OK)
        assert_true(err.text[0] != 0);
    assert_int_not_equal(st, OCT_EINTERNAL);
    oct_batch_free(&b);
}

/* Every length of small files, then single bytes changed. */
TEST(cut_and_changed_files)
{
    SKIP_WITH_ONE_THREAD();
    static const struct {
        const char *file, *as;
        int inputs;
    } files[] = {
        { "v2.npy", "t.npy", 1 },      { "fortran.npy", "t.npy", 1 },
        { "stored.npz", "t.npz", 3 },  { "deflated.npz", "t.npz", 3 },
        { "zip64.npz", "t.npz", 3 },   { "palette.png", "t.png", 0 },
        { "rgb.jpg", "t.jpg", 0 },     { "progressive.jpg", "t.jpg", 0 },
        { "list.csv", "t.csv", 0 },    { "case/test_data_set_2/input_0.pb", "t.pb", 1 },
        { "rgb.webp", "t.webp", 0 },   { "lossless.webp", "t.webp", 0 },
        { "palette.bmp", "t.bmp", 0 }, { "565.bmp", "t.bmp", 0 },
        { "core.bmp", "t.bmp", 0 },    { "shard-000.tar", "t.tar", 0 },
    };
    static const int64_t one[3] = { 1, 3, 2 }, st[3] = { 2, 1, 3 };
    const oct_input_desc many[3] = { { "x", OCT_F32, 3, one },
                                     { "state", OCT_F32, 3, st },
                                     { "sr", OCT_S64, 0, NULL } };
    for (size_t k = 0; k < OCT_COUNT(files); k++) {
        char *data;
        size_t size;
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_read_all(at(files[k].file), 1 << 20, &data, &size, &err), OCT_OK);
        const char *path = folder_path(files[k].as);
        const oct_input_desc *in = files[k].inputs ? many : input(OCT_F32, 4, nchw);
        const size_t n = files[k].inputs ? (size_t)files[k].inputs : 1, step = size > 1500 ? size / 400 + 1 : 1;
        for (size_t len = 0; len < size; len += step) {
            write_file(path, data, len);
            read_quietly(path, in, n);
        }
        for (size_t i = 0; i < size; i += step) {
            char was = data[i];
            data[i] = (char)(i % 3 == 0 ? 0xff : i % 3 == 1 ? 0 : was ^ 0x10);
            write_file(path, data, size);
            read_quietly(path, in, n);
            data[i] = was;
        }
        oct_free(data);
        unlink(path);
    }
}

static oct_status decode_changed(const char *file, size_t at_byte, const void *bytes, size_t n, oct_err *err)
{
    char *p;
    size_t size;
    oct_image im = { 0 };
    assert_int_equal(oct_read_all(at(file), 1 << 20, &p, &size, err), OCT_OK);
    assert_true(at_byte + n <= size);
    memcpy(p + at_byte, bytes, n);
    const oct_status st = oct_image_decode((uint8_t *)p, size, &im, err);
    oct_image_free(&im);
    oct_free(p);
    return st;
}

/* Headers of BMP that say more than the file holds, or what nobody can mean. */
TEST(bmp_that_claims_too_much)
{
    static const struct {
        const char *file;
        size_t at, n;
        const char *bytes;
        oct_status want;
        const char *said;
    } all[] = {
        { "rgb.bmp", 18, 8, "\x00\x40\x00\x00\x00\x30\x00\x00", OCT_EMALFORMED, "cannot hold 16384 x 12288" },
        { "rgb.bmp", 18, 8, "\xff\xff\xff\x7f\x00\x00\x00\x80", OCT_EUNSUPPORTED, "larger than supported" },
        { "rgb.bmp", 18, 4, "\x00\x00\x00\x00", OCT_EMALFORMED, "no pixels" },
        { "rgb.bmp", 18, 4, "\xff\xff\xff\xff", OCT_EMALFORMED, "no pixels" },
        { "rgb.bmp", 10, 4, "\xff\xff\xff\xff", OCT_EMALFORMED, "cannot hold" },
        { "rgb.bmp", 10, 4, "\x20\x00\x00\x00", OCT_EMALFORMED, "cannot hold" },
        { "rgb.bmp", 14, 4, "\xff\xff\xff\xff", OCT_EMALFORMED, "header" },
        { "rgb.bmp", 30, 4, "\x01\x00\x00\x00", OCT_EUNSUPPORTED, "run lengths" },
        { "palette.bmp", 46, 4, "\xff\xff\xff\xff", OCT_EMALFORMED, "palette" },
        { "palette.bmp", 46, 4, "\x02\x00\x00\x00", OCT_EMALFORMED, "not in the palette" },
        { "565.bmp", 54, 4, "\x00\x00\x00\x00", OCT_EMALFORMED, "mask" },
        { "565.bmp", 54, 4, "\x05\x00\x00\x00", OCT_EMALFORMED, "mask" },
    };
    for (size_t i = 0; i < OCT_COUNT(all); i++) {
        oct_err err = OCT_ERR_INIT;
        const oct_status st = decode_changed(all[i].file, all[i].at, all[i].bytes, all[i].n, &err);
        if (st != all[i].want || !strstr(err.text, all[i].said))
            fail_msg("%zu: status %d, %s", i, st, err.text);
    }
}

TEST(webp_that_claims_too_much)
{
#ifdef OCT_HAVE_WEBP
    oct_err err = OCT_ERR_INIT;
    /* 16383 x 16383, behind the signature of the lossless form, and in the header of a key frame */
    assert_int_equal(decode_changed("lossless.webp", 21, "\xfe\xff\xff\x0f", 4, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "larger than supported"));
    assert_int_equal(decode_changed("rgb.webp", 26, "\xff\x3f\xff\x3f", 4, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "larger than supported"));
    assert_int_equal(decode_changed("film.webp", 0, "R", 1, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "animation"));
#endif
}

TEST(failing_memory)
{
    SKIP_WITH_ONE_THREAD();
    static const char *const files[] = { "x_f4.npy", "deflated.npz", "case", "classes", "list.csv", "shard-000.tar" };
#if defined(OCT_HAVE_PNG) && defined(OCT_HAVE_JPEG) && defined(OCT_HAVE_ARCHIVE)
    const size_t n_files = OCT_COUNT(files);
#else
    const size_t n_files = 3; /* those without pictures */
#endif
    for (size_t k = 0; k < n_files; k++)
        for (int skip = 0; skip < 2; skip++) {
            const bool arrays = k < 3;
            int64_t whole = 0;
            for (size_t n = 0, all = 1; n <= all; n++) { /* at first none fails */
                const char *spec = at(files[k]), *steps = arrays ? "mean=1" : "order=gray:resize=4x4";
                oct_source_options o = { .specs = &spec,
                                         .n_specs = 1,
                                         .preprocess = &steps,
                                         .n_preprocess = 1,
                                         .threads = 1,
                                         .skip_bad = skip,
                                         .inputs = input(OCT_F32, arrays ? 3 : 4, arrays ? rows32 : gray_nchw),
                                         .n_inputs = 1 };
                oct_source *s = NULL;
                oct_err err = OCT_ERR_INIT;
                oct_batch b = OCT_BATCH_INIT;
                oct_alloc_fail_at(n);
                oct_status st = oct_source_open(&o, &s, &err);
                while (st == OCT_OK && (st = oct_source_next(s, 2, &b, &err)) == OCT_OK && b.n) {
                }
                whole = n ? whole : oct_source_given(s);
                /* Neither is memory's want a broken sample, nor does it make a sample be left out. */
                if (s && st == OCT_OK && (oct_source_given(s) != whole || oct_source_bad_count(s)))
                    fail_msg("%s, allocation %zu: %lld samples, not %lld", files[k], n, (long long)oct_source_given(s),
                             (long long)whole);
                oct_source_close(s);
                const size_t made = oct_alloc_fail_at(0);
                all = n ? all : made;
                if (st != OCT_OK && st != OCT_ENOMEM)
                    fail_msg("%s, allocation %zu: status %d, %s", files[k], n, st, err.text);
                oct_batch_free(&b);
            }
        }
}

/* Headers that claim far more than their bytes can hold are wrong, and no memory is asked for it: a limit on memory
 * would else end the run as if there were too little of it. */
TEST(claims_beyond_the_bytes)
{
#ifdef OCT_HAVE_PNG
    static const uint8_t wide[] = { 0x89, 'P', 'N', 'G', 13,  10,   26,   10,   0,    0,   0,    13,
                                    'I',  'H', 'D', 'R', 0,   0,    0x30, 0,    0,    0,   0x30, 0,
                                    8,    2,   0,   0,   0,   0x34, 0xe0, 0x05, 0x0b, 0,   0,    0,
                                    1,    'I', 'D', 'A', 'T', 0,    0x28, 0x38, 0x7d, 0xe8 };
    oct_image im;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_image_decode(wide, sizeof wide, &im, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "cannot hold 12288 x 12288"));
#endif
    /* An .npz whose member says that it is 1 TB. */
    static const uint8_t head[30] = { 'P', 'K', 3, 4, 20, 0, 0, 0, 8 }, body[16] = { 0 };
    uint8_t zip[256] = { 0 }, *d = zip + 30 + 5 + 16;
    memcpy(zip, head, sizeof head);
    zip[26] = 5;
    memcpy(zip + 30, "x.npy", 5);
    memcpy(zip + 35, body, sizeof body);
    memcpy(d, "PK\1\2", 4);
    d[10] = 8; /* deflated */
    d[20] = sizeof body;
    memset(d + 24, 0xff, 4);
    d[28] = 5;
    d[30] = 12; /* zip64: size 2^40 */
    memcpy(d + 46, "x.npy", 5);
    d[51] = 1;
    d[53] = 8;
    d[55 + 5] = 1;
    uint8_t *e = d + 46 + 5 + 12;
    memcpy(e, "PK\5\6", 4);
    e[8] = e[10] = 1;
    e[12] = (uint8_t)(e - d);
    e[16] = (uint8_t)(d - zip);
    write_file(folder_path("t.npz"), zip, (size_t)(e - zip) + 22);
    source_fails(folder_path("t.npz"), NULL, input(OCT_F32, 3, rows32), 1, OCT_EMALFORMED,
                 "16 bytes cannot hold array 'x' of 1099511627776");
    unlink(folder_path("t.npz"));
}

/* With more files than stay open one is closed as soon as its samples are read, while others may still decode them. */
TEST(closed_files_are_not_read)
{
    enum { FILES = 20, SIDE = 1500 };
    static const char head[] =
        "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 1500, 1500), }";
    char name[16], spec[96], text[128];
    memset(text, ' ', sizeof text);
    memcpy(text, head, sizeof head - 1);
    text[127] = '\n';
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%02d.npy", i);
        write_file(folder_path(name), text, sizeof text);
        assert_int_equal(truncate(folder_path(name), (off_t)sizeof text + 12 * SIDE * SIDE), 0); /* takes no room */
    }
    snprintf(spec, sizeof spec, "%s", folder_path("many*.npy"));
    oct_source *s = open_one(spec, "mean=0", input(OCT_F32, 4, nchw));
    oct_batch b = OCT_BATCH_INIT;
    int n = 0;
    while (oct_source_next(s, 1, &b, NULL) == OCT_OK && b.n)
        n++;
    assert_int_equal(n, FILES);
    oct_batch_free(&b);
    oct_source_close(s);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%02d.npy", i);
        unlink(folder_path(name));
    }
}

/* The next bytes are those at `at` of a file whose 4-byte words count up. */
static void reads_words(oct_stream *s, size_t at, size_t n)
{
    assert_int_equal(oct_stream_read(s), n);
    for (size_t i = 0; i < n; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, s->block + i, sizeof word);
        assert_int_equal(word, (at + i) / sizeof word);
    }
}

/* Who passes over large members reads little but their headers; who reads on gets whole blocks. */
TEST(little_is_read_behind_a_long_skip)
{
    enum { SIZE = 1 << 20, FAR = 100000 };
    static uint32_t words[SIZE / sizeof(uint32_t)];
    for (uint32_t i = 0; i < OCT_COUNT(words); i++)
        words[i] = i;
    write_file(folder_path("words"), words, SIZE);
    oct_stream s;
    size_t at = 0;
    assert_int_equal(oct_stream_open(&s, OCT_FROM_FILE, folder_path("words"), NULL), OCT_OK);
    reads_words(&s, at, OCT_STREAM_BLOCK);
    at += OCT_STREAM_BLOCK;
    assert_int_equal(oct_stream_skip(&s, FAR), FAR);
    at += FAR;
    reads_words(&s, at, OCT_STREAM_PEEK);
    at += OCT_STREAM_PEEK;
    reads_words(&s, at, OCT_STREAM_BLOCK);
    at += OCT_STREAM_BLOCK;
    assert_int_equal(oct_stream_skip(&s, 512), 512); /* a short way is read faster than passed over */
    at += 512;
    reads_words(&s, at, OCT_STREAM_BLOCK);
    at += OCT_STREAM_BLOCK;
    assert_int_equal(oct_stream_skip(&s, SIZE), SIZE - at);
    assert_int_equal(oct_stream_read(&s), 0);
    oct_stream_close(&s);
}

#ifdef OWN_LIBC
/* A picture whose header says far more than its bytes can hold is refused before there is memory for it. */
TEST(jpeg_that_claims_too_much)
{
#ifdef OCT_HAVE_JPEG
    char *p;
    size_t size;
    oct_image im = { 0 };
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_read_all(at("rgb.jpg"), 1 << 20, &p, &size, &err), OCT_OK);
    uint8_t *sof = memmem(p, size, "\xff\xc0", 2);
    assert_non_null(sof);
    memcpy(sof + 5, "\x30\x00\x40\x00", 4); /* 12288 lines of 16384 */
    assert_int_equal(oct_image_decode((uint8_t *)p, size, &im, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "cannot hold 16384 x 12288"));
    oct_free(p);
#endif
}

/* What libjpeg allocates does not go through oct_alloc. */
TEST(failing_memory_of_libjpeg)
{
#ifdef OCT_HAVE_JPEG
    static const char *const files[] = { "rgb.jpg", "progressive.jpg", "cmyk.jpg" };
    for (size_t k = 0; k < OCT_COUNT(files); k++) {
        char *p;
        size_t size, failed = 0;
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_read_all(at(files[k]), 1 << 20, &p, &size, &err), OCT_OK);
        oct_status st = OCT_ENOMEM;
        for (size_t n = 1; st == OCT_ENOMEM; n++, failed++) {
            oct_image im = { 0 };
            malloc_fails_at = n;
            st = oct_image_decode((uint8_t *)p, size, &im, &err);
            malloc_fails_at = 0;
            oct_image_free(&im);
        }
        if (st != OCT_OK)
            fail_msg("%s, allocation %zu: status %d, %s", files[k], failed, st, err.text);
        assert_true(failed > 0);
        oct_free(p);
    }
#endif
}

/* Of the lossless form libwebp 1.2 uses a table that it did not get. */
TEST(failing_memory_of_libwebp)
{
#ifdef OCT_HAVE_WEBP
    char *p;
    size_t size, failed = 0;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_read_all(at("rgb.webp"), 1 << 20, &p, &size, &err), OCT_OK);
    oct_status st = OCT_ENOMEM;
    for (size_t n = 1; st == OCT_ENOMEM; n++, failed++) {
        oct_image im = { 0 };
        malloc_fails_at = n;
        st = oct_image_decode((uint8_t *)p, size, &im, &err);
        malloc_fails_at = 0;
        oct_image_free(&im);
    }
    if (st != OCT_OK)
        fail_msg("allocation %zu: status %d, %s", failed, st, err.text);
    assert_true(failed > 1);
    oct_free(p);
#endif
}

/* libarchive ends the process where it has no other way to tell. (Where it uses a pointer that it did not get, nothing
 * can be done.) */
TEST(failing_memory_of_libarchive)
{
#if defined(OCT_HAVE_ARCHIVE) && defined(OCT_HAVE_PNG)
    int ended[256] = { 0 };
    for (size_t n = 1; n < 60; n++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            oct_err err = OCT_ERR_INIT;
            oct_batch b = OCT_BATCH_INIT;
            close(2);
            oct_io_guard("test");
            oct_source *s = open_with(at("shard-000.tar"), NULL, input(OCT_F32, 4, nchw), 1,
                                      (oct_source_options){ .skip_bad = true, .threads = 1 });
            malloc_fails_at = n;
            oct_status st;
            while ((st = oct_source_next(s, 2, &b, &err)) == OCT_OK && b.n) {
            }
            _exit(st == OCT_OK && oct_source_given(s) != 3 ? 99 : (int)st);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            ended[WEXITSTATUS(status)]++;
        if (WIFEXITED(status) && WEXITSTATUS(status) != OCT_OK && WEXITSTATUS(status) != OCT_ENOMEM)
            fail_msg("allocation %zu: exit %d", n, WEXITSTATUS(status));
    }
    assert_true(ended[OCT_ENOMEM] > 3);
#endif
}

TEST(threads_that_cannot_start)
{
    oct_source *s = open_one(at("x_f4.npy"), NULL, input(OCT_F32, 3, rows32));
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    no_threads = true;
    assert_int_equal(oct_source_next(s, 3, &b, &err), OCT_ENOMEM);
    no_threads = false;
    assert_non_null(strstr(err.text, "thread"));
    oct_batch_free(&b);
    oct_source_close(s);
}
#endif
