/* lib/data/pictures/preprocess_text.c -- preprocessing steps as a canonical text, and in words. */
#include "data/pictures/preprocess_int.h"

#include <stdio.h>
#include <string.h>

int oct_steps_pad(const oct_steps *s)
{
    return s->has_pad ? s->pad : 114;
}

bool oct_steps_any(const oct_steps *s)
{
    return s->precrop_w || s->precrop > 0 || s->letter_w || s->resize_short || s->resize_w || s->crop_w ||
           s->has_order || s->n_mean || s->n_std || s->has_layout || s->has_value || oct_steps_of_sound(s) ||
           oct_steps_of_tokens(s);
}

bool oct_steps_of_sound(const oct_steps *s)
{
    return s->channel || s->rate || s->lead || s->frame || s->hop || s->features || s->mel_bins || s->frame_length ||
           s->frame_shift || s->high_freq || s->mirrored || s->no_energy || s->normalize_samples;
}

bool oct_steps_of_tokens(const oct_steps *s)
{
    return s->ids || s->length || s->has_pad_id || *s->tokenizer;
}

static void put(oct_buf *out, const char *prefix, const char *key, bool *first)
{
    oct_buf_printf(out, "%s%s%s=", *first ? "" : ":", prefix, key);
    *first = false;
}

static void put_floats(oct_buf *out, const float *v, int n)
{
    char t[32];
    for (int i = 0; i < n; i++)
        oct_buf_printf(out, "%s%s", i ? "," : "", oct_f32_text(t, v[i]));
}

/* With a point, as a share is told from a side by it. */
static void put_share(oct_buf *out, double share)
{
    char t[32];
    oct_f64_text(t, share);
    oct_buf_printf(out, "%s%s", t, strchr(t, '.') ? "" : ".0");
}

static void put_size(oct_buf *out, int w, int h)
{
    oct_buf_printf(out, "%dx%d", w, h);
}

/* Whole numbers as such. */
static const char *value_text(char t[32], double v)
{
    if (v == (double)(int64_t)v)
        snprintf(t, 32, "%lld", (long long)v);
    else
        oct_f64_text(t, v);
    return t;
}

static void put_sound(const oct_steps *s, const char *prefix, bool *first, oct_buf *out)
{
    const struct {
        const char *key;
        int value;
    } steps[] = {
        { "channel", s->channel }, { "rate", s->rate }, { "lead", s->lead }, { "frame", s->frame }, { "hop", s->hop }
    };
    for (size_t i = 0; i < OCT_COUNT(steps); i++)
        if (steps[i].value) {
            put(out, prefix, steps[i].key, first);
            oct_buf_printf(out, "%d", i ? steps[i].value : steps[i].value - 1);
        }
}

static void put_features(const oct_steps *s, const char *prefix, bool *first, oct_buf *out)
{
    const struct {
        const char *key;
        int value;
    } numbers[] = { { s->features ? oct_features_names[s->features - 1] : "", s->n_features },
                    { "num-mel-bins", s->mel_bins },
                    { "frame-length", s->frame_length },
                    { "frame-shift", s->frame_shift },
                    { "high-freq", s->high_freq } };
    const struct {
        const char *step;
        bool given;
    } switches[] = { { "snip-edges=no", s->mirrored },
                     { "use-energy=no", s->no_energy },
                     { "normalize-samples=yes", s->normalize_samples } };
    for (size_t i = 0; i < OCT_COUNT(numbers); i++)
        if (numbers[i].value) {
            put(out, prefix, numbers[i].key, first);
            oct_buf_printf(out, "%d", numbers[i].value);
        }
    for (size_t i = 0; i < OCT_COUNT(switches); i++)
        if (switches[i].given) {
            oct_buf_printf(out, "%s%s%s", *first ? "" : ":", prefix, switches[i].step);
            *first = false;
        }
}

static void put_tokens(const oct_steps *s, const char *prefix, bool *first, oct_buf *out)
{
    for (const oct_ids_name *n = oct_ids_names; n->name; n++)
        if (s->ids == n->type) {
            put(out, prefix, "ids", first);
            oct_buf_puts(out, n->name);
        }
    if (s->length) {
        put(out, prefix, "length", first);
        oct_buf_printf(out, "%d", s->length);
    }
    if (s->has_pad_id) {
        put(out, prefix, "pad-id", first);
        oct_buf_printf(out, "%lld", (long long)s->pad_id);
    }
    if (*s->tokenizer) {
        put(out, prefix, "tokenizer", first);
        oct_buf_puts(out, s->tokenizer);
    }
}

void oct_steps_text(const oct_steps *s, const char *prefix, oct_buf *out)
{
    bool first = true;
    char number[32];
    if (s->has_value) {
        put(out, prefix, "value", &first);
        oct_buf_puts(out, value_text(number, s->value));
    }
    put_sound(s, prefix, &first, out);
    put_features(s, prefix, &first, out);
    put_tokens(s, prefix, &first, out);
    if (s->precrop_w || s->precrop > 0) {
        put(out, prefix, "precrop", &first);
        if (s->precrop_w)
            put_size(out, s->precrop_w, s->precrop_h);
        else
            put_share(out, s->precrop);
    }
    if (s->resize_short || s->resize_w || s->letter_w) {
        put(out, prefix, s->letter_w ? "letterbox" : "resize", &first);
        if (s->resize_short)
            oct_buf_printf(out, "%d", s->resize_short);
        else
            put_size(out, s->letter_w ? s->letter_w : s->resize_w, s->letter_w ? s->letter_h : s->resize_h);
        put(out, prefix, "interp", &first);
        oct_buf_puts(out, oct_interp_names[s->interp]);
    }
    if (s->letter_w) {
        put(out, prefix, "pad", &first);
        oct_buf_printf(out, "%d", oct_steps_pad(s));
    }
    if (s->crop_w) {
        put(out, prefix, "crop", &first);
        put_size(out, s->crop_w, s->crop_h);
    }
    if (s->has_order) {
        put(out, prefix, "order", &first);
        oct_buf_puts(out, oct_order_names[s->order]);
    }
    if (s->n_mean) {
        put(out, prefix, "mean", &first);
        put_floats(out, s->mean, s->n_mean);
    }
    if (s->n_std) {
        put(out, prefix, "std", &first);
        put_floats(out, s->std, s->n_std);
    }
    if (s->has_layout) {
        put(out, prefix, "layout", &first);
        oct_buf_puts(out, oct_layout_names[s->layout]);
    }
}

static void sound_words(const oct_steps *s, oct_buf *out)
{
    if (s->channel)
        oct_buf_printf(out, "channel %d, ", s->channel - 1);
    if (s->rate)
        oct_buf_printf(out, "%d samples a second, ", s->rate);
    if (s->lead)
        oct_buf_printf(out, "%d zero%s in front, ", s->lead, s->lead == 1 ? "" : "s");
    if (s->frame)
        oct_buf_printf(out, "windows of %d every %d (zeros behind the end), ", s->frame, s->hop ? s->hop : s->frame);
}

static void feature_words(const oct_steps *s, oct_buf *out)
{
    if (s->features == OCT_FEATURES_LOG_MEL)
        oct_buf_printf(out, "log-mel spectra of %d filters (Whisper's definition), ", s->n_features);
    if (s->features == OCT_FEATURES_FBANK)
        oct_buf_printf(out, "logarithms of %d mel filters (Kaldi's definition", s->n_features);
    if (s->features == OCT_FEATURES_MFCC)
        oct_buf_printf(out, "%d cepstra of %d mel filters (Kaldi's definition%s", s->n_features,
                       s->mel_bins ? s->mel_bins : OCT_MEL_BINS, s->no_energy ? "" : ", the first the energy");
    if (s->features < OCT_FEATURES_FBANK)
        return;
    oct_buf_printf(out, ", frames of %d ms every %d%s", s->frame_length ? s->frame_length : OCT_FRAME_LENGTH,
                   s->frame_shift ? s->frame_shift : OCT_FRAME_SHIFT, s->mirrored ? ", mirrored at the ends" : "");
    if (s->high_freq)
        oct_buf_printf(out, s->high_freq > 0 ? ", to %d Hz" : ", to half the rate less %d Hz",
                       s->high_freq > 0 ? s->high_freq : -s->high_freq);
    oct_buf_puts(out, s->normalize_samples ? ", samples from -1 to 1), " : "), ");
}

static void token_words(const oct_steps *s, oct_buf *out)
{
    if (*s->tokenizer)
        oct_buf_printf(out, "tokens by %s, ", s->tokenizer);
    if (s->ids)
        oct_buf_printf(out, "token ids of %s, ", oct_dtype_name(s->ids));
    if (s->length)
        oct_buf_printf(out, "%d tokens a sample, ", s->length);
    if (s->has_pad_id)
        oct_buf_printf(out, "filled up with %lld, ", (long long)s->pad_id);
}

void oct_steps_words(const oct_steps *s, bool picture, oct_buf *out)
{
    if (!oct_steps_any(s)) {
        oct_buf_puts(out, picture ? "values as they are (pictures: RGB, 0..255)" : "values as they are");
        return;
    }
    if (s->has_value) {
        char number[32];
        oct_buf_printf(out, "%s in every sample", value_text(number, s->value));
        return;
    }
    sound_words(s, out);
    feature_words(s, out);
    token_words(s, out);
    if (s->precrop_w)
        oct_buf_printf(out, "centre %dx%d, ", s->precrop_w, s->precrop_h);
    if (s->precrop > 0) {
        oct_buf_puts(out, "centre ");
        put_share(out, s->precrop);
        oct_buf_puts(out, " of each side, ");
    }
    if (s->letter_w)
        oct_buf_printf(out, "fitted into %dx%d on %d (%s), ", s->letter_w, s->letter_h, oct_steps_pad(s),
                       oct_interp_names[s->interp]);
    if (s->resize_short)
        oct_buf_printf(out, "shorter side to %d (%s), ", s->resize_short, oct_interp_names[s->interp]);
    if (s->resize_w)
        oct_buf_printf(out, "stretched to %dx%d (%s), ", s->resize_w, s->resize_h, oct_interp_names[s->interp]);
    if (s->crop_w)
        oct_buf_printf(out, "centre crop %dx%d, ", s->crop_w, s->crop_h);
    if (s->has_order)
        oct_buf_printf(out, "%s, ", s->order == OCT_ORDER_BGR ? "BGR" : s->order == OCT_ORDER_GRAY ? "gray" : "RGB");
    if (s->n_mean || s->n_std) {
        const int n_mean = s->n_mean == 1 && s->mean[0] == 0 ? 0 : s->n_mean;
        oct_buf_puts(out, n_mean > 1 ? "(x - (" : n_mean ? "(x - " : "x");
        put_floats(out, s->mean, n_mean);
        oct_buf_puts(out, n_mean > 1 ? "))" : n_mean ? ")" : "");
        oct_buf_puts(out, s->n_std > 1 ? " / (" : s->n_std ? " / " : "");
        put_floats(out, s->std, s->n_std);
        oct_buf_puts(out, s->n_std > 1 ? ")" : "");
    } else {
        oct_buf_puts(out, "values as they are");
    }
    if (s->has_layout)
        oct_buf_printf(out, ", %s", s->layout == OCT_LAYOUT_NHWC ? "NHWC" : "NCHW");
}
