/* lib/data/sound/sound.c -- recordings to windows of reals. */
#include "data/sound/sound.h"
#include "data/sound/features.h"
#include "data/sound/wav.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>

struct oct_sound {
    oct_map map;
    oct_array bytes; /* instead of a file */
    oct_wav wav;
    const oct_input_desc *in;
    const oct_steps *steps;
    oct_resampler *filter; /* NULL: the rate stays */
    int64_t n;             /* samples at the wanted rate */
};

static void close_sound(oct_sound *s)
{
    if (!s)
        return;
    oct_map_close(&s->map);
    oct_array_free(&s->bytes);
    oct_free(s);
}

static oct_status set_rate(oct_sound *s, oct_resampler *filter, oct_err *err)
{
    s->n = s->wav.n;
    if (!s->steps->rate || s->steps->rate == s->wav.rate)
        return OCT_OK;
    if (filter->from != s->wav.rate || filter->to != s->steps->rate) {
        oct_resampler_free(filter);
        OCT_TRY(oct_resampler_init(filter, s->wav.rate, s->steps->rate, err));
    }
    s->filter = filter;
    s->n = oct_resampled_count(filter, s->wav.n);
    return s->n >= 0 ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "too many samples");
}

static oct_status look(oct_sound *s, const void *p, size_t n, oct_resampler *filter, oct_err *err)
{
    OCT_TRY(oct_wav_parse(p, n, &s->wav, err));
    if (s->wav.n == 0)
        return oct_fail(err, OCT_EMALFORMED, "holds no samples");
    if (s->steps->channel > s->wav.channels)
        return oct_fail(err, OCT_EMALFORMED, "has %d channel%s, and channel=%d is asked for (the first is 0)",
                        s->wav.channels, s->wav.channels == 1 ? "" : "s", s->steps->channel - 1);
    if (s->steps->features && !s->steps->rate && s->wav.rate != OCT_FEATURES_RATE) {
        oct_fail(err, OCT_EMALFORMED, "has %d samples a second, and features are computed at %d", s->wav.rate,
                 OCT_FEATURES_RATE);
        oct_hint(err, "add rate=%d to --preprocess, which resamples%s", OCT_FEATURES_RATE,
                 s->steps->features == OCT_FEATURES_LOG_MEL ? "" : ", or the rate that the model was trained with");
        return OCT_EMALFORMED;
    }
    return set_rate(s, filter, err);
}

static oct_status finish(oct_status st, oct_sound *s, const char *name, oct_sound **out, oct_err *err)
{
    if (st != OCT_OK) {
        oct_within(err, "%s", name);
        close_sound(s);
        return st;
    }
    *out = s;
    return OCT_OK;
}

static oct_status open_sound(const char *path, const oct_input_desc *in, const oct_steps *steps, oct_resampler *filter,
                             oct_sound **out, oct_err *err)
{
    oct_sound *s = oct_calloc(1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    s->in = in;
    s->steps = steps;
    oct_status st = oct_map_open(&s->map, path, err);
    if (st != OCT_OK) {
        close_sound(s);
        return st;
    }
    return finish(look(s, s->map.data, s->map.size, filter, err), s, path, out, err);
}

/* Opens the file, or takes over bytes (a member of an archive), which are empty afterwards, also on failure. *filter,
 * zeroed at first, keeps the last filter for recordings of the same rate; filter, in and s must outlive the recording.
 * name is for messages. OCT_EMALFORMED also if there are no samples or not the asked channel. */
static oct_status take_sound(oct_array *bytes, const char *name, const oct_input_desc *in, const oct_steps *steps,
                             oct_resampler *filter, oct_sound **out, oct_err *err)
{
    oct_sound *s = oct_calloc(1, sizeof *s);
    if (!s) {
        oct_array_free(bytes);
        return oct_nomem(err);
    }
    s->in = in;
    s->steps = steps;
    s->bytes = *bytes;
    *bytes = (oct_array){ 0 };
    return finish(look(s, s->bytes.data, s->bytes.bytes, filter, err), s, name, out, err);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t windows_of(const oct_sound *s)
{
    const int64_t frame = s->steps->frame, hop = s->steps->hop ? s->steps->hop : frame, lead = s->steps->lead;
    if (!frame)
        return 1;
    const int64_t end = s->n > INT64_MAX - lead ? INT64_MAX : s->n + lead;
    const int64_t reached = end <= frame ? 1 : 1 + ceil_div(end - frame, hop), begun = ceil_div(end, hop);
    return reached < begun ? reached : begun; /* where windows leave gaps the last sample may lie in one */
}

/* The outputs first .. first + n - 1, all within the recording, from the inputs that they read. */
static oct_status resample(const oct_sound *s, int64_t first, int64_t n, float *out, oct_err *err)
{
    oct_resampler *r = s->filter;
    const int64_t from = oct_resample_at(r, first) - r->reach, to = oct_resample_at(r, first + n - 1) + r->reach + 2;
    size_t bytes;
    double *x = oct_mul_size((size_t)(to - from), sizeof *x, &bytes) ? oct_alloc(bytes) : NULL;
    if (!x)
        return oct_nomem(err);
    oct_wav_read(&s->wav, s->steps->channel - 1, from, to - from, x);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)oct_resample_one(r, first + i, x + (oct_resample_at(r, first + i) - r->reach - from));
    oct_free(x);
    return OCT_OK;
}

static oct_status copy(const oct_sound *s, int64_t first, int64_t n, float *out)
{
    enum { AT_ONCE = 1024 };
    double x[AT_ONCE];
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t some = n - at < AT_ONCE ? n - at : AT_ONCE;
        oct_wav_read(&s->wav, s->steps->channel - 1, first + at, some, x);
        for (int64_t i = 0; i < some; i++)
            out[at + i] = (float)x[i];
    }
    return OCT_OK;
}

/* The samples from `begin` on, [time] of them, of which the first `most` are read and the others are zeros. */
static oct_status read_window(const oct_sound *s, int64_t begin, int64_t time, int64_t most, float *out, oct_err *err)
{
    const int64_t end = begin + (most < time ? most : time);
    const int64_t first = begin < 0 ? 0 : begin, last = end < s->n ? end : s->n;
    for (int64_t i = 0; i < time; i++)
        if (begin + i < first || begin + i >= last)
            out[i] = 0;
    if (last <= first)
        return OCT_OK;
    return s->filter ? resample(s, first, last - first, out + (first - begin), err)
                     : copy(s, first, last - first, out + (first - begin));
}

static void set_shape(const oct_input_desc *in, int64_t time, oct_array *a)
{
    const bool behind = in->rank >= 3 && in->dims[in->rank - 1] == 1 && in->dims[in->rank - 2] != 1;
    a->rank = in->rank > 2 ? in->rank - 1 : 1;
    for (int i = 0; i < a->rank; i++)
        a->dims[i] = 1;
    a->dims[a->rank - 1 - behind] = time;
}

static oct_status samples_window(const oct_sound *s, int64_t begin, int64_t time, oct_part *part, oct_err *err)
{
    oct_array shape = { .rank = 0 };
    set_shape(s->in, time, &shape);
    OCT_TRY(oct_array_create(&part->array, OCT_F32, shape.rank, shape.dims, err));
    part->kind = s->in->rank == 1 ? OCT_PART_WHOLE : OCT_PART_ROW;
    return read_window(s, begin, time, time, part->array.data, err);
}

/* ---- features ---- */

/* The dimensions of an input that are time and features. */
typedef struct plane {
    int time, feature;
    int64_t frames; /* that the model fixes; -1: as many as the recording has */
} plane;

/* The last two dimensions, before one of size 1. Features are the one that has their number; where both or neither
 * does, Whisper's come first and Kaldi's last. */
static plane plane_of(const oct_input_desc *in, const oct_steps *s)
{
    const int last =
        in->rank >= 4 && in->dims[in->rank - 1] == 1 && in->dims[in->rank - 2] != 1 ? in->rank - 2 : in->rank - 1;
    const bool behind = in->dims[last] == s->n_features, front = in->dims[last - 1] == s->n_features;
    const bool first = behind == front ? s->features == OCT_FEATURES_LOG_MEL : front;
    const int time = first ? last : last - 1;
    return (plane){ .time = time, .feature = first ? last - 1 : last, .frames = in->dims[time] };
}

/* [frames][n] to [n][frames]. */
static void transpose(const float *x, int64_t frames, int64_t n, float *y)
{
    for (int64_t t = 0; t < frames; t++)
        for (int64_t k = 0; k < n; k++)
            y[k * frames + t] = x[t * n + k];
}

static oct_status create_floats(int64_t rows, int64_t n, oct_array *a, oct_err *err)
{
    return oct_array_create(a, OCT_F32, 2, (int64_t[]){ rows, n }, err);
}

static oct_status compute(const oct_sound *s, const float *samples, int64_t n, int64_t frames, bool time_last,
                          float *out, oct_err *err)
{
    oct_array rows = { 0 };
    if (!time_last)
        return oct_features_compute(s->steps, samples, n, out, err);
    OCT_TRY(create_floats(frames, s->steps->n_features, &rows, err));
    const oct_status st = oct_features_compute(s->steps, samples, n, rows.data, err);
    if (st == OCT_OK)
        transpose(rows.data, frames, s->steps->n_features, out);
    oct_array_free(&rows);
    return st;
}

/* Where the model fixes the number of frames, the window ends where they do, in silence if need be. */
static oct_status features_window(const oct_sound *s, int64_t begin, int64_t time, oct_part *part, oct_err *err)
{
    const oct_input_desc *in = s->in;
    if (in->rank < 2 || in->rank > OCT_ARRAY_RANK)
        return oct_fail(err, OCT_EMALFORMED, "frames of features need an input of 2 to %d dimensions, '%s' has %d",
                        OCT_ARRAY_RANK, in->name, in->rank < 0 ? 0 : in->rank);
    const plane p = plane_of(in, s->steps);
    const int64_t n = p.frames > 0 ? oct_features_samples(s->steps, p.frames) : time,
                  frames = p.frames > 0 ? p.frames : oct_features_frames(s->steps, n);
    if (n < 0 || frames < 0)
        return oct_fail(err, OCT_EMALFORMED, "too many samples for features");
    if (frames == 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld samples at %d a second are too few for a frame of features",
                        (long long)n, oct_features_rate(s->steps));
    const bool whole = in->rank == 2;
    oct_array samples = { 0 };
    int64_t dims[OCT_ARRAY_RANK];
    for (int i = 0; i < in->rank; i++)
        dims[i] = i == p.time ? frames : i == p.feature ? s->steps->n_features : 1;
    OCT_TRY(oct_array_create(&part->array, OCT_F32, in->rank - !whole, dims + !whole, err));
    part->kind = whole ? OCT_PART_WHOLE : OCT_PART_ROW;
    OCT_TRY(create_floats(1, n, &samples, err));
    oct_status st = read_window(s, begin, n, time, samples.data, err);
    if (st == OCT_OK)
        st = compute(s, samples.data, n, frames, p.time > p.feature, part->array.data, err);
    oct_array_free(&samples);
    return st;
}

oct_status oct_sound_window(const oct_sound *s, int64_t k, oct_part *part, oct_err *err)
{
    const int64_t hop = s->steps->hop ? s->steps->hop : s->steps->frame,
                  time = s->steps->frame ? s->steps->frame : s->n + s->steps->lead;
    const int64_t begin = s->steps->frame ? k * hop - s->steps->lead : -(int64_t)s->steps->lead;
    part->sound = true;
    return s->steps->features ? features_window(s, begin, time, part, err) : samples_window(s, begin, time, part, err);
}

/* ---- those of one sample ---- */

oct_status oct_sounds_init(oct_sounds *s, const oct_feed_ctx *ctx, oct_err *err)
{
    *s = (oct_sounds){ .ctx = ctx };
    s->sound = oct_calloc(ctx->n + 1, sizeof *s->sound);
    s->filter = oct_calloc(ctx->n + 1, sizeof *s->filter);
    return s->sound && s->filter ? OCT_OK : oct_nomem(err);
}

void oct_sounds_close(oct_sounds *s)
{
    for (size_t i = 0; s->sound && i < s->ctx->n; i++) {
        close_sound(s->sound[i]);
        s->sound[i] = NULL;
    }
    s->windows = s->window = 0;
}

void oct_sounds_free(oct_sounds *s)
{
    oct_sounds_close(s);
    for (size_t i = 0; s->filter && i < s->ctx->n; i++)
        oct_resampler_free(&s->filter[i]);
    oct_free(s->sound);
    oct_free(s->filter);
    *s = (oct_sounds){ 0 };
}

bool oct_sounds_cut(const oct_sounds *s)
{
    bool any = false;
    for (size_t i = 0; i < s->ctx->n; i++)
        any |= s->ctx->steps[i].frame != 0;
    return any;
}

static oct_status add(oct_sounds *s, size_t input, const char *name, oct_err *err)
{
    const int64_t n = windows_of(s->sound[input]);
    if (s->windows && n != s->windows)
        return oct_fail(err, OCT_EMALFORMED, "%s: has %lld windows, and the recording beside it %lld", name,
                        (long long)n, (long long)s->windows);
    s->windows = n;
    return OCT_OK;
}

oct_status oct_sounds_open(oct_sounds *s, size_t i, const char *path, oct_err *err)
{
    OCT_TRY(open_sound(path, &s->ctx->inputs[i], &s->ctx->steps[i], &s->filter[i], &s->sound[i], err));
    return add(s, i, path, err);
}

oct_status oct_sounds_take(oct_sounds *s, size_t i, oct_array *bytes, const char *name, oct_err *err)
{
    OCT_TRY(take_sound(bytes, name, &s->ctx->inputs[i], &s->ctx->steps[i], &s->filter[i], &s->sound[i], err));
    return add(s, i, name, err);
}

bool oct_sounds_advance(oct_sounds *s)
{
    if (++s->window < s->windows)
        return true;
    oct_sounds_close(s);
    return false;
}
