/* lib/observers: the calibration table as text: reading back, shards, editing by hand, damage. */
#include "sanitized.h"
#include "unit.h"

#include "base/io.h"
#include "base/mem.h"
#include "observers/calib.h"
#include "observers/exercise.h"
#include "observers/observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t seed = 362436069;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static float value(int kind)
{
    double v = 0;
    for (int i = 0; i < 6; i++)
        v += (double)(rnd() >> 40) / 16777216.0 - 0.5;
    return (float)(kind == 0 ? v : kind == 1 ? (v > 0 ? v : 0) : v * v * v * 40);
}

#define SAMPLES 12
#define LEN 256
static const char *const names[3] = { "conv1 \"quoted\"\\ \n", "relu1", "block/add:0" };
static float data[3][SAMPLES][LEN];

static void make_data(void)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SAMPLES; i++)
            for (int k = 0; k < LEN; k++)
                data[t][i][k] = value(t);
    data[2][3][7] = -10000;
    data[2][5][9] = (float)(1.0 / 0.0);
}

static int set_up(void **state)
{
    make_data();
    return 0;
}

TEST_GROUP(set_up, NULL);

/* A table of the samples i with i % n == part. */
static oct_calib *make(uint32_t part, uint32_t n)
{
    oct_calib *c = oct_calib_create();
    assert_int_equal(oct_calib_set_model(c, "m.onnx", 0x0123456789abcdefu, NULL), OCT_OK);
    assert_int_equal(oct_calib_set_preprocess(c, "imagenet", NULL), OCT_OK);
    assert_int_equal(oct_calib_add_shard(c, "images", part, n, NULL), OCT_OK);
    for (int t = 0; t < 3; t++) {
        oct_calib_tensor *x;
        assert_int_equal(oct_calib_add(c, names[t], &x, NULL), OCT_OK);
        if (t < 2)
            assert_int_equal(oct_chan_init(&x->chan, 4, NULL), OCT_OK);
        for (uint32_t i = part; i < SAMPLES; i += n) {
            assert_int_equal(oct_stats_update(&x->stats, data[t][i], LEN, NULL), OCT_OK);
            if (t < 2)
                assert_int_equal(oct_chan_update(&x->chan, data[t][i], 1, 1, LEN / 4, NULL), OCT_OK);
        }
    }
    for (uint32_t i = part; i < SAMPLES; i += n)
        c->samples++;
    return c;
}

static char *text_of(const oct_calib *c)
{
    oct_buf b = OCT_BUF_INIT;
    oct_calib_text(c, &b);
    assert_false(b.failed);
    char *s = strdup(oct_buf_str(&b));
    oct_buf_free(&b);
    return s;
}

static oct_calib *parse(const char *text)
{
    oct_calib *c = NULL;
    oct_err err = OCT_ERR_INIT;
    if (oct_calib_parse(text, strlen(text), "t", &c, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return c;
}

TEST(reads_back)
{
    oct_calib *c = make(0, 1);
    char *a = text_of(c);
    oct_calib *d = parse(a);
    char *b = text_of(d);
    assert_string_equal(a, b);
    for (int t = 0; t < 3; t++) {
        oct_calib_tensor *x = oct_calib_find(c, names[t]), *y = oct_calib_find(d, names[t]);
        assert_non_null(y);
        assert_true(oct_stats_equal(&x->stats, &y->stats));
        assert_memory_equal(x->chan.c, y->chan.c, x->chan.channels * sizeof *x->chan.c);
    }
    oct_calib_change *diff;
    size_t n;
    assert_int_equal(oct_calib_diff(c, d, &diff, &n, NULL), OCT_OK);
    assert_int_equal(n, 0);
    oct_free(diff);
    oct_calib_destroy(c);
    oct_calib_destroy(d);
    free(a);
    free(b);
}

TEST(shards_merge_to_one_run)
{
    oct_calib *one = make(0, 1);
    char *want = text_of(one);
    for (uint32_t n = 2; n <= 5; n++)
        for (uint32_t first = 0; first < n; first++) {
            oct_calib *all = make(first, n);
            for (uint32_t k = 1; k < n; k++) {
                oct_calib *part = make((first + k * (n - 1)) % n, n);
                char *text = text_of(part);
                oct_calib *read = parse(text);
                oct_err err = OCT_ERR_INIT;
                assert_int_equal(oct_calib_merge(all, read, &err), OCT_OK);
                assert_int_equal(oct_calib_merge(all, read, &err), OCT_EUSAGE); /* twice */
                oct_calib_destroy(part);
                oct_calib_destroy(read);
                free(text);
            }
            char *got = text_of(all);
            assert_string_equal(want, got);
            free(got);
            oct_calib_destroy(all);
        }
    free(want);
    oct_calib_destroy(one);
}

/* want: "" for none. shards: index, count and the set's letter of each, ending in count 0. */
static void lacks(const char *want, const uint32_t shards[][3])
{
    oct_calib *c = oct_calib_create();
    oct_buf b = OCT_BUF_INIT;
    for (size_t i = 0; shards[i][1]; i++)
        assert_int_equal(oct_calib_add_shard(c, (char[2]){ (char)shards[i][2] }, shards[i][0], shards[i][1], NULL),
                         OCT_OK);
    assert_int_equal(oct_calib_missing(c, &b), *want != 0);
    assert_string_equal(oct_buf_str(&b), want);
    char *text = text_of(c);
    assert_int_equal(strstr(text, "\n# incomplete, lacks ") != NULL, *want != 0);
    oct_calib *d = parse(text); /* the mark is a comment; what it says stands in the shards */
    oct_buf_free(&b);
    assert_int_equal(oct_calib_missing(d, &b), *want != 0);
    assert_string_equal(oct_buf_str(&b), want);
    oct_buf_free(&b);
    free(text);
    oct_calib_destroy(d);
    oct_calib_destroy(c);
}

TEST(missing_shards_are_named)
{
    lacks("", (const uint32_t[][3]){ { 0, 0 } });
    lacks("", (const uint32_t[][3]){ { 0, 1, 'a' }, { 0, 1, 'b' }, { 0, 0 } });
    lacks("shard 1/2 of 'a'", (const uint32_t[][3]){ { 0, 2, 'a' }, { 0, 0 } });
    lacks("shards 0/7, 1/7, 3/7, 5/7, 6/7 of 'a'", (const uint32_t[][3]){ { 4, 7, 'a' }, { 2, 7, 'a' }, { 0, 0 } });
    lacks("shards 0/9 to 5/9, 7/9, 8/9 of 'a'; shard 0/2 of 'c'",
          (const uint32_t[][3]){ { 1, 2, 'c' }, { 0, 1, 'b' }, { 6, 9, 'a' }, { 0, 0 } });
    lacks("shards 1/4294967295 to 4294967294/4294967295 of 'a'",
          (const uint32_t[][3]){ { 0, UINT32_MAX, 'a' }, { 0, 0 } });
    uint32_t odd[40][3] = { { 0 } };
    for (uint32_t i = 0; i < 39; i++)
        odd[i][0] = 2 * i + 1, odd[i][1] = 100, odd[i][2] = 'a';
    lacks(
        "shards 0/100, 2/100, 4/100, 6/100, 8/100, 10/100, 12/100, 14/100, 16/100, 18/100, 20/100, 22/100, ... of 'a'",
        (const uint32_t(*)[3])odd);
}

/* Parts that threads gathered, into a table that has the model alone: what it says is that of one run. */
TEST(statistics_add_up)
{
    oct_calib *one = make(0, 1), *sum = oct_calib_create(), *part[2] = { make(0, 2), make(1, 2) };
    assert_int_equal(oct_calib_set_model(sum, "m.onnx", 0x0123456789abcdefu, NULL), OCT_OK);
    assert_int_equal(oct_calib_set_preprocess(sum, "imagenet", NULL), OCT_OK);
    assert_int_equal(oct_calib_add_shard(sum, "images", 0, 1, NULL), OCT_OK);
    part[1]->model_hash++;
    for (int i = 0; i < 2; i++)
        assert_int_equal(oct_calib_add_statistics(sum, part[i], NULL), OCT_OK);
    char *want = text_of(one), *got = text_of(sum);
    assert_string_equal(got, want);
    /* Channels of another number are no part of the moments. */
    oct_calib_tensor *t = oct_calib_find(part[0], names[0]);
    oct_chan_free(&t->chan);
    assert_int_equal(oct_chan_init(&t->chan, 2, NULL), OCT_OK);
    assert_int_equal(oct_calib_add_statistics(sum, part[0], NULL), OCT_OK);
    assert_int_equal(oct_calib_find(sum, names[0])->chan.channels, 4);
    assert_int_equal(sum->samples, SAMPLES + SAMPLES / 2);
    free(want);
    free(got);
    oct_calib_destroy(one);
    oct_calib_destroy(sum);
    oct_calib_destroy(part[0]);
    oct_calib_destroy(part[1]);
}

TEST(different_tables_do_not_merge)
{
    oct_calib *a = make(0, 3), *b = make(1, 3);
    char *before = text_of(a);
    oct_calib_tensor *t;
    oct_err err = OCT_ERR_INIT;
    b->model_hash++;
    assert_int_equal(oct_calib_merge(a, b, &err), OCT_EUSAGE);
    b->model_hash--;
    oct_calib_set_preprocess(b, "unit", NULL);
    assert_int_equal(oct_calib_merge(a, b, &err), OCT_EUSAGE);
    oct_calib_set_preprocess(b, "imagenet", NULL);
    assert_int_equal(oct_calib_add(b, "more", &t, NULL), OCT_OK);
    assert_int_equal(oct_calib_merge(a, b, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.text, "more"));
    oct_calib *c = make(0, 2);
    assert_int_equal(oct_calib_merge(a, c, &err), OCT_EUSAGE); /* may overlap */
    char *after = text_of(a);
    assert_string_equal(before, after);
    free(before);
    free(after);
    oct_calib_destroy(a);
    oct_calib_destroy(b);
    oct_calib_destroy(c);
}

TEST(files)
{
    oct_calib *c = make(0, 1);
    char *want = text_of(c), dir[] = "/tmp/octcalibXXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    const char *const ends[] = { "a.calib", "a.calib.gz" };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, ends[i]);
        assert_int_equal(oct_calib_save(c, path, NULL), OCT_OK);
        oct_map m;
        assert_int_equal(oct_map_open(&m, path, NULL), OCT_OK);
        assert_true(i ? m.data[0] == 0x1f && m.size < strlen(want)
                      : m.size == strlen(want) && memcmp(m.data, want, m.size) == 0);
        for (size_t k = 0; i && k < m.size; k++) { /* every truncation of the compressed form */
            oct_calib *cut = NULL;
            assert_int_not_equal(oct_calib_parse(m.data, k, "t", &cut, NULL), OCT_OK);
        }
        oct_map_close(&m);
        oct_calib *d;
        assert_int_equal(oct_calib_load(path, &d, NULL), OCT_OK);
        char *got = text_of(d);
        assert_string_equal(want, got);
        free(got);
        oct_calib_destroy(d);
        unlink(path);
    }
    oct_calib *none;
    assert_int_equal(oct_calib_load(path, &none, NULL), OCT_EIO);
    rmdir(dir);
    free(want);
    oct_calib_destroy(c);
}

TEST(edited_by_hand)
{
    oct_calib *c = make(0, 1);
    char *a = text_of(c);
    char *edit = malloc(strlen(a) + 100), *at = strstr(a, "tensor \"relu1\"");
    char *eol = strchr(at, '\n');
    sprintf(edit, "%.*s# %.*s  pin 0 2.5 # by hand%s", (int)(at - a), a, (int)(eol - at), at, eol);
    oct_calib *d = parse(edit);
    oct_calib_tensor *t = oct_calib_find(d, "relu1");
    assert_true(t->off && t->pinned && t->pin.lo == 0 && t->pin.hi == 2.5f);
    oct_calib_change *diff;
    size_t n;
    assert_int_equal(oct_calib_diff(c, d, &diff, &n, NULL), OCT_OK);
    assert_true(n == 1 && strcmp(diff[0].name, "relu1") == 0 && diff[0].change >= 0);
    oct_free(diff);
    char *b = text_of(d);
    oct_calib *e = parse(b);
    char *again = text_of(e);
    assert_string_equal(b, again);
    assert_non_null(strstr(b, "#tensor \"relu1\""));
    free(b);
    free(again);
    oct_calib_destroy(d);
    oct_calib_destroy(e);
    free(edit);
    free(a);
    oct_calib_destroy(c);
}

TEST(all_lines_commented_out)
{
    oct_calib *d = parse("octet-calibration 1\nmodel \"m\" 0000000000000000\n\n# a remark about tensors\n"
                         "#tensor \"x\" n 2 zeros 0 inf 0 0 min 1 1 max 2 1 avg 1 1p0 2p0\n# + 1 1\n# + 0 1\nend\n");
    assert_true(oct_calib_find(d, "x")->off && oct_calib_find(d, "x")->stats.n == 0);
    oct_calib_destroy(d);
}

#define NO_VALUES " n 0 zeros 0 inf 0 0 min 0 0 max 0 0 avg 0 0p0 0p0"

/* Ranges that another tool has found: without statistics, and with its parameters. */
TEST(pinned_without_values)
{
    oct_calib *c = parse("octet-calibration 1\nmodel \"m\" 0000000000000000\ntensor \"x\"" NO_VALUES
                         " pin -1.25 6 as u8 0.03125 40\n"
                         "tensor \"y\"" NO_VALUES " pin 0 0\ntensor \"z\"" NO_VALUES
                         " pin -1 1 as u16 3.0517578e-05 32768 # theirs\nend\n");
    const oct_calib_tensor *x = oct_calib_find(c, "x"), *y = oct_calib_find(c, "y"), *z = oct_calib_find(c, "z");
    assert_true(x->pinned && x->pin.lo == -1.25f && x->pin.hi == 6 && x->exact.bits == 8 &&
                x->exact.scale == 0.03125f && x->exact.zero == 40);
    assert_true(y->pinned && y->exact.bits == 0 && z->exact.bits == 16 && z->exact.zero == 32768);
    char *a = text_of(c);
    oct_calib *d = parse(a);
    char *b = text_of(d);
    assert_string_equal(a, b);
    assert_int_equal(oct_calib_merge(c, d, NULL), OCT_OK);
    oct_calib_find(d, "x")->exact.zero = 41;
    assert_int_equal(oct_calib_merge(c, d, NULL), OCT_EUSAGE);
    oct_calib_change *diff;
    size_t n;
    assert_int_equal(oct_calib_diff(c, d, &diff, &n, NULL), OCT_OK);
    assert_true(n == 1 && strcmp(diff[0].name, "x") == 0);
    oct_free(diff);
    free(a);
    free(b);
    oct_calib_destroy(c);
    oct_calib_destroy(d);
}

#define HEAD "octet-calibration 1\nmodel \"m\" 0000000000000000\n"
#define STATS "n 2 zeros 0 inf 0 0 min 1 1 max 2 1 avg 1 1p0 2p0"

TEST(errors_name_the_place)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "empty" },
        { "hello\n", "t:1:1:" },
        { "octet-calibration 2\n", "version 2" },
        { "octet-calibration 1\nend\n", "'model'" },
        { HEAD, "'end'" },
        { HEAD "model \"m\" 0000000000000000\nend\n", "t:3:1:" },
        { HEAD "samples -1\nend\n", "t:3:9:" },
        { HEAD "shard \"s\" 4/4\nend\n", "t:3:11:" },
        { HEAD "shard \"s\" 0/2\nshard \"s\" 0/2\nend\n", "t:4:11:" },
        { HEAD " + 0 1\nend\n", "t:3:2:" },
        { HEAD "tensor \"x\nend\n", "closing quote" },
        { HEAD "tensor \"x\\q\" " STATS "\nend\n", "escape" },
        { HEAD "tensor \"x\" " STATS " pin 1 2\n + 1 1\n + 0 1\nend\n", "include 0" },
        { HEAD "tensor \"x\" " STATS " pin 0 1 u8\n + 1 1\n + 0 1\nend\n", "'as TYPE SCALE ZERO' or the end" },
        { HEAD "tensor \"x\" " STATS " pin 0 1 as s8 1 0\n + 1 1\n + 0 1\nend\n", "there is no type 's8'" },
        { HEAD "tensor \"x\" " STATS " pin 0 1 as u8 0 0\n + 1 1\n + 0 1\nend\n", "t:3:76:" },
        { HEAD "tensor \"x\" " STATS " pin 0 1 as u8 1 256\n + 1 1\n + 0 1\nend\n", "up to 255" },
        { HEAD "tensor \"x\" " STATS " pin 0 1 as u16 1e-39 0\n + 1 1\n + 0 1\nend\n", "denormal" },
        { HEAD "tensor \"x\" " STATS " pin 0\n + 1 1\n + 0 1\nend\n", "t:3:67:" },
        { HEAD "tensor \"x\" " STATS "\n + 0 1\n + 1 1\nend\n", "largest exponent" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 2\nend\n", "sum of" },
        { HEAD "tensor \"x\" " STATS "\n + 1 01\n + 0 1\nend\n", "do not fit" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 .B01\nend\n", "do not fit" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 .---v1\nend\n", "2048 bins" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 ~\nend\n", "bad digit" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 1\n + -3\nend\n", "without values" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 1\n channels 4000000000\nend\n", "do not fit into the file" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 1\n channels 1\nend\n", "0 of 1 channels" },
        { HEAD "tensor \"x\" n 2 zeros 0 inf 0 0 min nan 1 max 2 1 avg 1 1p0 2p0\nend\n", "finite" },
        { HEAD "tensor \"x\" n 99999999999999999999\nend\n", "whole number" },
        { HEAD "end\nsamples 3\n", "behind" },
        { HEAD "end\n#tensor \"x\" " STATS "\n", "behind" },
        { HEAD "tensr \"x\"\nend\n", "t:3:1: there is no key 'tensr'" },
        { HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 1\n chn 0\nend\n", "t:6:2: there is no key 'chn'" },
        { HEAD "samples 1\nsamples 1\nend\n", "t:4:1: 'samples' stands in two lines" },
        { HEAD "samples 1 2\nend\n", "t:3:11: the end of the line" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_calib *c = NULL;
        oct_err err = OCT_ERR_INIT;
        oct_status st = oct_calib_parse(cases[i].text, strlen(cases[i].text), "t", &c, &err);
        if (st != OCT_EMALFORMED && st != OCT_EUNSUPPORTED)
            fail_msg("case %zu is accepted", i);
        assert_null(c);
        if (!strstr(err.text, cases[i].want))
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].want);
    }
    oct_calib_destroy(parse(HEAD "tensor \"x\" " STATS "\n + 1 1\n + 0 1\nend\n"));
}

TEST(cut_short)
{
    SKIP_WITH_ONE_THREAD();
    oct_calib *c = make(1, 6);
    char *a = text_of(c);
    size_t n = strlen(a);
    for (size_t k = 0; k + 1 < n; k++) { /* without the last newline it is complete */
        char *exact = malloc(k + 1);     /* so that a read beyond the end shows */
        memcpy(exact, a, k);
        oct_calib *d = NULL;
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_calib_parse(exact, k, "t", &d, &err), OCT_EMALFORMED);
        assert_true(err.text[0]);
        free(exact);
    }
    free(a);
    oct_calib_destroy(c);
}

/* Changed bytes give an error or a table whose ranges can be chosen and that reads back. */
TEST(mutated)
{
    SKIP_WITH_ONE_THREAD();
    oct_calib *c = make(0, 4);
    char *a = text_of(c);
    size_t n = strlen(a);
    for (int i = 0; i < 3000; i++) {
        char *m = malloc(n);
        memcpy(m, a, n);
        for (uint64_t k = 0; k <= rnd() % 3; k++)
            m[rnd() % n] = rnd() % 3 ? "0123456789.-+pZ \n\"\\#"[rnd() % 20] : (char)rnd();
        oct_calib *d = NULL;
        if (oct_calib_parse(m, n, "t", &d, NULL) == OCT_OK) {
            char *text = text_of(d);
            oct_calib_destroy(parse(text));
            free(text);
            for (size_t t = 0; t < d->n_tensors && i % 16 == 0; t++) {
                oct_selection s;
                oct_status st =
                    oct_observe(&d->tensors[t]->stats, oct_observer_default(), (oct_qrange){ 0, 255, false }, &s, NULL);
                assert_true(st != OCT_OK || (s.range.lo <= 0 && s.range.hi >= 0));
            }
            oct_calib_destroy(d);
        }
        free(m);
    }
    free(a);
    oct_calib_destroy(c);
}

TEST(no_memory)
{
    SKIP_WITH_ONE_THREAD();
    oct_calib *c = make(0, 3), *o = make(1, 3);
    char *a = text_of(c);
    bool done = false;
    for (size_t k = 1; !done; k++) {
        oct_calib *d = NULL;
        oct_alloc_fail_at(k);
        oct_status st = oct_calib_parse(a, strlen(a), "t", &d, NULL);
        if (st == OCT_OK)
            st = oct_calib_merge(d, o, NULL);
        oct_alloc_fail_at(0);
        assert_true(st == OCT_OK || st == OCT_ENOMEM);
        done = st == OCT_OK;
        oct_calib_destroy(d);
    }
    free(a);
    oct_calib_destroy(c);
    oct_calib_destroy(o);
}

/* A tensor of eight channels with two values a sample: channel k gets k + 1, and the last `moving` ones another value
 * in every sample. */
static oct_calib *of_channels(int samples, int moving)
{
    oct_calib *c = oct_calib_create();
    oct_calib_tensor *x;
    assert_int_equal(OCT_OK, oct_calib_add(c, "x", &x, NULL));
    assert_int_equal(OCT_OK, oct_chan_init(&x->chan, 8, NULL));
    for (int i = 0; i < samples; i++) {
        float v[16];
        for (int k = 0; k < 16; k++)
            v[k] = (float)(k / 2 + 1) + (k / 2 >= 8 - moving && k % 2 ? (float)(i + 1) : 0);
        assert_int_equal(OCT_OK, oct_stats_update(&x->stats, v, 16, NULL));
        assert_int_equal(OCT_OK, oct_chan_update(&x->chan, v, 1, 1, 2, NULL));
    }
    return c;
}

static void told(const oct_calib *c, const char *want)
{
    const oct_exercise x = oct_calib_exercise(c);
    oct_buf b = OCT_BUF_INIT;
    oct_exercise_tell(&x, &b);
    assert_int_equal(b.len > 0, want != NULL);
    if (want)
        assert_non_null(strstr(oct_buf_str(&b), want));
    oct_buf_free(&b);
}

TEST(samples_that_exercise_little)
{
    static const struct {
        int samples, moving;
        const char *want;
    } cases[] = {
        { 4, 8, NULL },
        { 4, 4, NULL },
        { 4, 3, "(5 of 8 in 'x')" },
        { 4, 0, "1 of 1 ranges are the same in every sample" },
        { 1, 8, NULL }, /* of one sample nothing can move */
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_calib *c = of_channels(cases[i].samples, cases[i].moving);
        told(c, cases[i].want);
        oct_calib_destroy(c);
    }
    /* A clamp that every sample reaches, each in other numbers, is no range that stays because nothing moves. */
    oct_calib *c = oct_calib_create();
    oct_calib_tensor *x;
    assert_int_equal(OCT_OK, oct_calib_add(c, "clamped", &x, NULL));
    for (size_t i = 1; i <= 4; i++)
        assert_int_equal(OCT_OK, oct_stats_update(&x->stats, (const float[]){ 0, 6, 6, 6, 6, 1 }, 1 + i, NULL));
    told(c, NULL);
    oct_calib_destroy(c);
}
