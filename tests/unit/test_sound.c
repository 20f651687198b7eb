/* lib/data, recordings: every form of WAV against what Python's wave module and NumPy say of the same files
 * (testdata/sound, made by tests/generate/make_sound_fixtures.py), windows, and files that are broken. */
#include "unit.h"

#include "base/mem.h"
#include "data/data.h"
#include "data/data_config.h"
#include "data/sound/resample.h"
#include "source_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state)
{
    const char *root = getenv("OCT_SOURCE");
    if (root && chdir(root) != 0)
        return 1;
    return 0;
}

TEST_GROUP(set_up, NULL);

#define DATA "testdata/sound/"

static const int64_t time2[2] = { -1, -1 }, time3[3] = { -1, 1, -1 }, behind3[3] = { -1, -1, 1 },
                     free3[3] = { -1, -1, -1 };
static const oct_input_desc wave2 = { "x", OCT_F32, 2, time2 };

static oct_source *open_sound(const char *spec, const char *steps, const oct_input_desc *in, int64_t shard_n)
{
    oct_source *s = NULL;
    oct_err err = OCT_ERR_INIT;
    const oct_source_options o = { .specs = &spec,
                                   .n_specs = 1,
                                   .preprocess = &steps,
                                   .n_preprocess = steps != NULL,
                                   .inputs = in,
                                   .n_inputs = 1,
                                   .shard_n = shard_n };
    if (oct_source_open(&o, &s, &err) != OCT_OK)
        fail_msg("%s: %s", spec, err.text);
    return s;
}

/* Real numbers of any float type from an .npy: channel k of [n][channels], or their mean for -1. */
static oct_array load(const char *name, int k)
{
    char path[128];
    oct_array a, out;
    oct_err err = OCT_ERR_INIT;
    snprintf(path, sizeof path, DATA "%s", name);
    if (oct_npy_load(path, &a, &err) != OCT_OK)
        fail_msg("%s", err.text);
    const int64_t n = a.dims[0], c = a.rank > 1 ? a.dims[1] : 1;
    assert_int_equal(oct_array_create(&out, OCT_F64, 1, &n, NULL), OCT_OK);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < c; j++)
            if (k < 0 || j == k)
                sum += a.dtype == OCT_F32 ? (double)((float *)a.data)[i * c + j] : ((double *)a.data)[i * c + j];
        ((double *)out.data)[i] = k < 0 ? sum / (double)c : sum;
    }
    oct_array_free(&a);
    return out;
}

/* A recording as a whole. */
static void equals(const char *wav, const char *steps, const char *npy, int channel, double slack)
{
    char path[128];
    snprintf(path, sizeof path, DATA "%s", wav);
    oct_array want = load(npy, channel);
    oct_source *s = open_sound(path, steps, &wave2, 0);
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    if (oct_source_next(s, 1, &b, &err) != OCT_OK)
        fail_msg("%s: %s", wav, err.text);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.tensors[0].rank, 2);
    assert_int_equal(b.tensors[0].dims[1], want.dims[0]);
    for (int64_t i = 0; i < want.dims[0]; i++) {
        const double have = (double)((float *)b.tensors[0].data)[i], ref = ((double *)want.data)[i];
        if (!(fabs(have - (double)(float)ref) <= slack))
            fail_msg("%s (%s) at %d: %.9g, expected %.9g", wav, steps, (int)i, have, ref);
    }
    oct_batch_free(&b);
    oct_source_close(s);
    oct_array_free(&want);
}

TEST(forms)
{
    static const char *const names[] = { "stereo8", "stereo16", "stereo24", "stereo32", "real32", "real64", "bits20" };
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        char wav[32], npy[32];
        snprintf(wav, sizeof wav, "%s.wav", names[i]);
        snprintf(npy, sizeof npy, "%s.npy", names[i]);
        equals(wav, NULL, npy, -1, 0);
        equals(wav, "channel=mean", npy, -1, 0);
        equals(wav, "channel=0", npy, 0, 0);
        equals(wav, "channel=1:rate=8000", npy, 1, 0);
    }
    equals("piped.wav", NULL, "piped.npy", -1, 0);
}

/* The sums run in another order in NumPy: half a unit of the last place of values up to one. */
TEST(other_rates)
{
    equals("mono16.wav", "rate=16000", "mono16.16000.npy", 0, 0x1p-24);
    equals("mono16.wav", "rate=44100", "mono16.44100.npy", 0, 0x1p-24);
    equals("mono16.wav", "rate=8000", "mono16.8000.npy", 0, 0x1p-24);
    source_fails(DATA "mono16.wav", "rate=1048573", &wave2, 1, OCT_EUNSUPPORTED, "filter would be too long");
}

/* Writes a WAV of n bytes that claims this many samples a second, and gives its path. */
static const char *claiming(uint32_t rate, uint32_t n)
{
    static char path[64];
    uint8_t head[44] = "RIFF....WAVEfmt \x10\0\0\0\1\0\1\0........\1\0\10\0data";
    const uint32_t at[][2] = { { 4, 36 + n }, { 24, rate }, { 28, rate }, { 40, n } };
    for (size_t i = 0; i < OCT_COUNT(at); i++)
        for (int k = 0; k < 4; k++)
            head[at[i][0] + (uint32_t)k] = (uint8_t)(at[i][1] >> 8 * k);
    snprintf(path, sizeof path, "/tmp/octet-claims-%d.wav", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, sizeof head, f), sizeof head);
    for (uint32_t i = 0; i < n; i++)
        fputc(128, f);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* What a header claims decides neither memory nor time: at most 64 samples come from one, and a filter is computed only
 * where it is applied. */
TEST(claimed_rates)
{
    oct_resampler r;
    size_t computed = 0;
    source_fails(claiming(1, 1000), "rate=16000", &wave2, 1, OCT_EUNSUPPORTED, "more than 64 for each");
    oct_source *s = open_sound(claiming(250, 1000), "rate=16000", &wave2, 0);
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_int_equal(b.tensors[0].dims[1], 64 * 1000);
    oct_batch_free(&b);
    oct_source_close(s);
    unlink(claiming(1, 1));

    double x[1000] = { 0 };
    assert_int_equal(oct_resampler_init(&r, 44101, 16000, NULL), OCT_OK);
    assert_true(2 * r.reach + 2 <= (int64_t)OCT_COUNT(x));
    for (int64_t n = 0; n < 3; n++)
        oct_resample_one(&r, n, x);
    for (int64_t p = 0; p < r.up; p++)
        computed += r.known[p];
    if (computed != 3)
        fail_msg("three samples computed %zu of %lld phases, 3 are needed", computed, (long long)r.up);
    oct_resampler_free(&r);
}

/* Window k of the recording at a rate, by the rule in sound.h. */
static void check_windows(const char *steps, const oct_array *all, int64_t lead, int64_t frame, int64_t hop,
                          int64_t expected)
{
    oct_source *s = open_sound(DATA "mono16.wav", steps, &(oct_input_desc){ "x", OCT_F32, 3, time3 }, 0);
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_count(s), expected);
    int64_t k = 0;
    for (; oct_source_next(s, 4, &b, NULL) == OCT_OK && b.n;)
        for (size_t row = 0; row < b.n; row++, k++) {
            assert_int_equal(b.tensors[0].dims[1], 1);
            assert_int_equal(b.tensors[0].dims[2], frame);
            assert_int_equal(b.indices[row], k);
            for (int64_t i = 0; i < frame; i++) {
                const int64_t at = k * hop - lead + i;
                const double ref = at < 0 || at >= all->dims[0] ? 0 : ((double *)all->data)[at];
                const double have = (double)((float *)b.tensors[0].data)[(int64_t)row * frame + i];
                if (!(fabs(have - ref) <= 0x1p-24))
                    fail_msg("%s: window %d at %d: %.9g, expected %.9g", steps, (int)k, (int)i, have, ref);
            }
        }
    assert_int_equal(k, expected);
    oct_batch_free(&b);
    oct_source_close(s);
}

TEST(windows)
{
    oct_array plain = load("mono16.npy", 0), made = load("mono16.16000.npy", 0);
    assert_int_equal(plain.dims[0], 701);
    check_windows("frame=100", &plain, 0, 100, 100, 8);
    check_windows("frame=100:hop=50", &plain, 0, 100, 50, 14); /* 650 .. 749 holds the last sample */
    check_windows("frame=701:hop=9", &plain, 0, 701, 9, 1);
    check_windows("frame=700:hop=9", &plain, 0, 700, 9, 2);
    check_windows("frame=1000", &plain, 0, 1000, 1000, 1);
    check_windows("lead=30:frame=100:hop=70", &plain, 30, 100, 70, 11);
    check_windows("frame=10:hop=100", &plain, 0, 10, 100, 8);
    check_windows("rate=16000:frame=100:lead=7:hop=33", &made, 7, 100, 33, 1 + (made.dims[0] + 7 - 100 + 32) / 33);
    oct_array_free(&plain);
    oct_array_free(&made);
}

TEST(shapes_and_parts)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_source *s =
        open_sound(DATA "mono16.wav", "frame=100:mean=1:std=0.5", &(oct_input_desc){ "x", OCT_F32, 3, behind3 }, 3);
    assert_int_equal(oct_source_count(s), 3);
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.indices[1], 3);
    assert_string_equal(b.names[2], DATA "mono16.wav[6]");
    assert_int_equal(b.tensors[0].dims[1], 100);
    assert_int_equal(b.tensors[0].dims[2], 1);
    oct_array plain = load("mono16.npy", 0);
    assert_true(((float *)b.tensors[0].data)[205] == ((float)((double *)plain.data)[605] - 1.0f) / 0.5f);
    oct_array_free(&plain);
    oct_batch_free(&b);
    oct_source_close(s);
    s = open_sound(DATA "mono16.wav", "lead=5", &(oct_input_desc){ "x", OCT_F32, 1, &time2[0] }, 0);
    assert_int_equal(oct_source_next(s, 8, &b, NULL), OCT_OK);
    assert_int_equal(b.tensors[0].rank, 1);
    assert_int_equal(b.tensors[0].dims[0], 706);
    oct_batch_free(&b);
    oct_source_close(s);
}

/* Members of an archive have windows, too, whether each is read or passed over. */
TEST(archives)
{
#ifdef OCT_HAVE_ARCHIVE
    for (int64_t part = 0; part < 2; part++) {
        oct_source *s = open_sound(DATA "shard.tar", "frame=100", &wave2, part ? 2 : 0);
        oct_batch b = OCT_BATCH_INIT;
        oct_err err = OCT_ERR_INIT;
        int64_t n = 0;
        while (oct_source_next(s, 1, &b, &err) == OCT_OK && b.n) {
            const int64_t at = part ? 2 * n : n;
            assert_int_equal(b.indices[0], at);
            assert_int_equal(b.labels[0], at < 8 ? 5 : 6);
            assert_string_equal(b.names[0], at == 0  ? DATA "shard.tar:r0[0]"
                                            : at < 8 ? b.names[0]
                                                     : DATA "shard.tar:r1");
            n++;
        }
        assert_string_equal(err.text, "");
        assert_int_equal(n, part ? 5 : 9);
        oct_batch_free(&b);
        oct_source_close(s);
    }
    /* One that is left within a recording. */
    oct_source *s = open_sound(DATA "shard.tar", "frame=100", &wave2, 0);
    oct_batch b = OCT_BATCH_INIT;
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_int_equal(b.n, 1);
    oct_batch_free(&b);
    oct_source_close(s);
#endif
}

/* ---- states ---- */

typedef struct visits {
    int64_t n, fresh;
} visits;

/* A counter: the state of a sample is its place in the recording. */
static oct_status count_on(void *arg, oct_array *arrays, bool follows, oct_err *err)
{
    visits *v = arg;
    v->fresh = follows ? v->fresh + 1 : 0;
    *(float *)arrays[1].data = (float)v->fresh;
    v->n++;
    return OCT_OK;
}

TEST(states_follow)
{
    static const int64_t one[2] = { 1, 1 };
    const oct_input_desc in[3] = { { "x", OCT_F32, 2, time2 }, { "s", OCT_F32, 2, one }, { "rate", OCT_S64, 0, NULL } };
    const char *specs[] = { DATA "mono16.wav", DATA "piped.wav" }, *steps[] = { "frame=100", "rate/value=16000" },
               *names[] = { "s" };
    for (int part = 0; part < 2; part++) {
        oct_source_options o = { .specs = specs,
                                 .n_specs = 2,
                                 .preprocess = steps,
                                 .n_preprocess = 2,
                                 .inputs = in,
                                 .n_inputs = 3,
                                 .states = names,
                                 .n_states = 1,
                                 .shard_i = 1,
                                 .shard_n = part ? 3 : 0 };
        oct_source *s;
        visits v = { 0 };
        oct_err err = OCT_ERR_INIT;
        oct_batch b = OCT_BATCH_INIT;
        if (oct_source_open(&o, &s, &err) != OCT_OK)
            fail_msg("%s", err.text);
        if (part)
            oct_source_set_visit(s, count_on, NULL, &v);
        int64_t n = 0;
        for (; oct_source_next(s, 4, &b, &err) == OCT_OK && b.n; n++) {
            const int64_t at = part ? 1 + 3 * n : n; /* eight windows, and one of the other recording */
            assert_int_equal(b.n, 1);
            assert_int_equal(b.indices[0], at);
            assert_true(b.follows == (at != 0 && at != 8));
            assert_true(*(float *)b.tensors[1].data == (part && at < 8 ? (float)at : 0.0f));
            assert_int_equal(*(int64_t *)b.tensors[2].data, 16000);
        }
        assert_int_equal(n, part ? 3 : 9);
        assert_int_equal(v.n, part ? 9 : 0);
        oct_batch_free(&b);
        oct_source_close(s);
    }
}

TEST(texts)
{
    oct_steps st = { 0 };
    oct_buf t = OCT_BUF_INIT;
    assert_int_equal(oct_steps_parse("frame=512:lead=64:rate=16000:channel=0:hop=160", NULL, 1, &st, NULL), OCT_OK);
    oct_steps_text(&st, "", &t);
    assert_string_equal(oct_buf_str(&t), "channel=0:rate=16000:lead=64:frame=512:hop=160");
    oct_buf_free(&t);
    oct_steps_words(&st, false, &t);
    assert_string_equal(
        oct_buf_str(&t),
        "channel 0, 16000 samples a second, 64 zeros in front, windows of 512 every 160 (zeros behind the end), values as they are");
    oct_buf_free(&t);
    static const char *const bad[] = { "rate=0", "rate=16000x", "frame=0",      "hop=-1",
                                       "lead=",  "channel=256", "channel=left", "frame=999999999" };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_int_equal(oct_steps_parse(bad[i], NULL, 1, &st, NULL), OCT_EUSAGE);
}

/* What the steps make of mono16.wav, [rows][columns], against an .npy of it or of its transpose. */
static void features_equal(const char *steps, const oct_input_desc *in, const char *npy, bool transposed)
{
    char path[128];
    oct_array want;
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    snprintf(path, sizeof path, DATA "%s", npy);
    assert_int_equal(oct_npy_load(path, &want, &err), OCT_OK);
    oct_source *s = open_sound(DATA "mono16.wav", steps, in, 0);
    if (oct_source_next(s, 1, &b, &err) != OCT_OK)
        fail_msg("%s: %s", steps, err.text);
    const oct_array *have = &b.tensors[0];
    const int64_t rows = want.dims[0], n = want.dims[1];
    assert_int_equal(have->rank, in->rank);
    assert_int_equal(have->dims[have->rank - 2], transposed ? n : rows);
    assert_int_equal(have->dims[have->rank - 1], transposed ? rows : n);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++) {
            const double got = (double)((float *)have->data)[transposed ? k * rows + i : i * n + k],
                         ref = ((double *)want.data)[i * n + k];
            if (!(fabs(got - ref) <= 1e-5))
                fail_msg("%s at %d, %d: %.9g, expected %.9g", steps, (int)i, (int)k, got, ref);
        }
    oct_batch_free(&b);
    oct_source_close(s);
    oct_array_free(&want);
}

TEST(features)
{
    static const int64_t last[3] = { -1, -1, 10 }, first4[4] = { -1, 1, 5, -1 };
    features_equal("rate=16000:log-mel=10", &(oct_input_desc){ "x", OCT_F32, 3, free3 }, "mono16.log-mel.npy", false);
    features_equal("rate=16000:log-mel=10", &(oct_input_desc){ "x", OCT_F32, 3, last }, "mono16.log-mel.npy", true);
    const char *fbank = "rate=16000:fbank=10:snip-edges=no:high-freq=-400:normalize-samples=yes";
    features_equal(fbank, &(oct_input_desc){ "x", OCT_F32, 3, free3 }, "mono16.fbank.npy", false);
    features_equal(fbank, &(oct_input_desc){ "x", OCT_F32, 2, last + 1 }, "mono16.fbank.npy", false);
    features_equal("rate=22050:mfcc=5:num-mel-bins=15:frame-length=20:frame-shift=4",
                   &(oct_input_desc){ "x", OCT_F32, 4, first4 }, "mono16.mfcc.npy", true);
}

TEST(feature_texts)
{
    oct_steps st = { 0 };
    oct_err err = OCT_ERR_INIT;
    oct_buf t = OCT_BUF_INIT;
    const char *all = "rate=8000:mfcc=12:num-mel-bins=20:frame-length=32:frame-shift=16:high-freq=-300:snip-edges=no:"
                      "use-energy=no:normalize-samples=yes";
    assert_int_equal(oct_steps_parse(all, NULL, 1, &st, NULL), OCT_OK);
    assert_int_equal(oct_steps_check(&st, NULL), OCT_OK);
    oct_steps_text(&st, "", &t);
    assert_string_equal(oct_buf_str(&t), all);
    oct_buf_free(&t);
    oct_steps_words(&st, false, &t);
    assert_string_equal(
        oct_buf_str(&t),
        "8000 samples a second, 12 cepstra of 20 mel filters (Kaldi's definition, frames of 32 ms every "
        "16, mirrored at the ends, to half the rate less 300 Hz, samples from -1 to 1), values as they are");
    oct_buf_free(&t);
    static const char *const bad[] = { "log-mel=0",      "fbank=513",     "mfcc=x",        "frame-length=1001",
                                       "frame-shift=0",  "snip-edges=on", "high-freq=--4", "use-energy=",
                                       "num-mel-bins=0", "fbank=",        "high-freq=1e3", "normalize-samples=1" };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_int_equal(oct_steps_parse(bad[i], NULL, 1, &st, NULL), OCT_EUSAGE);
    static const char *const apart[][2] = {
        { "log-mel=80:rate=8000", "is for 16000 samples a second" },
        { "log-mel=80:frame-shift=5", "are for fbank= and mfcc=" },
        { "snip-edges=no", "are for fbank= and mfcc=" },
        { "fbank=80:num-mel-bins=3", "has its own number" },
        { "mfcc=24", "more than num-mel-bins=23" },
        { "fbank=8:rate=70:high-freq=30", "too short" },
        { "fbank=8:high-freq=-7980", "not between 20 Hz and half of rate=16000" },
        { "fbank=8:high-freq=8001", "not between" },
    };
    for (size_t i = 0; i < OCT_COUNT(apart); i++) {
        st = (oct_steps){ 0 };
        assert_int_equal(oct_steps_parse(apart[i][0], NULL, 1, &st, NULL), OCT_OK);
        assert_int_equal(oct_steps_check(&st, &err), OCT_EUSAGE);
        if (!strstr(err.text, apart[i][1]))
            fail_msg("%s: '%s', expected '%s'", apart[i][0], err.text, apart[i][1]);
    }
}

TEST(feature_faults)
{
    const oct_input_desc mel = { "x", OCT_F32, 3, (int64_t[]){ -1, 80, 3000 } },
                         endless = { "x", OCT_F32, 3, (int64_t[]){ -1, 80, INT64_MAX / 4 } };
    source_fails(DATA "mono16.wav", "log-mel=80", &mel, 1, OCT_EMALFORMED, "add rate=16000");
    source_fails(DATA "mono16.wav", "fbank=80", &mel, 1, OCT_EMALFORMED,
                 "has 22050 samples a second, and features are computed at");
    source_fails(DATA "mono16.wav", "rate=16000:log-mel=128", &mel, 1, OCT_EMALFORMED, "is a dimension of the input");
    source_fails(DATA "mono16.wav", "rate=16000:log-mel=80", &endless, 1, OCT_EMALFORMED, "");
    source_fails(DATA "mono16.wav", "rate=16000:fbank=80:frame-length=50", &(oct_input_desc){ "x", OCT_F32, 3, free3 },
                 1, OCT_EMALFORMED, "509 samples at 16000 a second are too few for a frame");
    source_fails(DATA "mono16.wav", "rate=16000:fbank=80", &(oct_input_desc){ "x", OCT_F32, 1, time2 }, 1,
                 OCT_EMALFORMED, "need an input of 2 to");
    source_fails("testdata/data/x_f4.npy", "log-mel=80", &(oct_input_desc){ "x", OCT_F32, 3, (int64_t[]){ -1, 3, 2 } },
                 1, OCT_EMALFORMED, "are for recordings");
}

TEST(faults)
{
    source_fails(DATA "alaw.wav", NULL, &wave2, 1, OCT_EUNSUPPORTED, "alaw.wav: its samples are A-law");
    source_fails(DATA "short.wav", "frame=10", &wave2, 1, OCT_EMALFORMED,
                 "short.wav: cut short: 100 bytes of samples, the header says 120");
    source_fails(DATA "none.wav", NULL, &wave2, 1, OCT_EMALFORMED, "none.wav: holds no samples");
    source_fails(DATA "mono16.wav", "channel=1", &wave2, 1, OCT_EMALFORMED,
                 "has 1 channel, and channel=1 is asked for");
    source_fails(DATA "mono16.wav", "hop=3", &wave2, 1, OCT_EUSAGE, "hop=3 without frame=");
    source_fails(DATA "mono16.wav", NULL, &(oct_input_desc){ "x", OCT_F32, 2, (int64_t[]){ 1, 512 } }, 1,
                 OCT_EMALFORMED, "frame=512 in --preprocess");
    source_fails(DATA "mono16.wav", "resize=8", &wave2, 1, OCT_EMALFORMED, "are for pictures");
    source_fails("testdata/data/x_f4.npy", "rate=8000", &(oct_input_desc){ "x", OCT_F32, 3, (int64_t[]){ -1, 3, 2 } },
                 1, OCT_EMALFORMED, "are for recordings");
}
