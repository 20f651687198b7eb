/* lib/data/pictures/preprocess.c -- preprocessing steps are read from their text. */
#include "data/pictures/preprocess_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
} presets[] = {
    { "imagenet", "resize=256:crop=224:mean=123.675,116.28,103.53:std=58.395,57.12,57.375" }, /* torchvision */
    { "imagenet-tf", "resize=256:crop=224:mean=127.5:std=127.5" }, /* TensorFlow, Keras MobileNet */
    { "caffe", "resize=256:crop=224:order=bgr:mean=104,117,123" },
    { "unit", "mean=0:std=255" },
};

const char *const oct_interp_names[] = { "bilinear", "linear", "bicubic", "nearest" };
const char *const oct_order_names[] = { "rgb", "bgr", "gray" };
const char *const oct_layout_names[] = { "nchw", "nhwc" };
static const char *const keys[] = { "resize",      "interp",    "crop",       "order",        "mean",
                                    "std",         "layout",    "precrop",    "letterbox",    "pad",
                                    "rate",        "frame",     "hop",        "lead",         "channel",
                                    "value",       "ids",       "length",     "pad-id",       "tokenizer",
                                    "log-mel",     "fbank",     "mfcc",       "num-mel-bins", "frame-length",
                                    "frame-shift", "high-freq", "snip-edges", "use-energy",   "normalize-samples" };
const char *const oct_features_names[] = { "log-mel", "fbank", "mfcc" };
const oct_ids_name oct_ids_names[] = { { "u8", OCT_U8 },   { "u16", OCT_U16 }, { "u32", OCT_U32 },
                                       { "i32", OCT_S32 }, { "i64", OCT_S64 }, { NULL, OCT_UNDEFINED } };

enum {
    MAX_LENGTH = 1 << 20,
    MAX_SIDE = 1 << 15,
    MAX_RATE = 1 << 20,
    MAX_FRAME = 1 << 28,
    MAX_CHANNEL = 255,
    MAX_FEATURES = 512,
    MAX_MS = 1000
};

static void hint_nearest(oct_err *err, const char *word)
{
    oct_nearest near = { .word = word, .most = 3 };
    for (size_t i = 0; i < OCT_COUNT(keys) + OCT_COUNT(presets); i++)
        oct_nearest_try(&near, i < OCT_COUNT(keys) ? keys[i] : presets[i - OCT_COUNT(keys)].name);
    oct_nearest_hint(&near, 1, NULL, err);
    if (!near.n)
        oct_hint(
            err,
            "steps are precrop=, resize=, letterbox=, pad=, interp=, crop=, order=, mean=, std=, layout=, and of recordings "
            "channel=, rate=, lead=, frame=, hop=, log-mel=, fbank=, mfcc=, and of token ids ids=, length=, pad-id=, tokenizer=; INPUT/value= gives an input a number; presets are imagenet, imagenet-tf, caffe, unit");
}

/* 1..MAX_SIDE; the character after the number goes to *rest. */
static bool parse_side(const char *t, const char **rest, int *v)
{
    if (*t < '0' || *t > '9')
        return false;
    char *end;
    long n = strtol(t, &end, 10);
    *rest = end;
    *v = (int)n;
    return n >= 1 && n <= MAX_SIDE;
}

static bool parse_size(const char *t, int *w, int *h, bool *both)
{
    const char *rest;
    if (!parse_side(t, &rest, w))
        return false;
    *both = *rest == 'x' || *rest == 'X';
    *h = *w;
    if (*both && !parse_side(rest + 1, &rest, h))
        return false;
    return *rest == 0;
}

static bool parse_floats(const char *t, float *v, int *n)
{
    for (*n = 0; *n < 4;) {
        char *end;
        if (strchr("+-.0123456789", *t) == NULL || *t == 0)
            return false;
        float f = strtof(t, &end);
        if (end == t || !isfinite(f) || strcspn(t, "xX") < (size_t)(end - t))
            return false;
        v[(*n)++] = f;
        if (*end == 0)
            return true;
        if (*end != ',')
            return false;
        t = end + 1;
    }
    return false;
}

static int find_name(const char *value, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(value, names[i]) == 0)
            return (int)i;
    return -1;
}

static bool set_resize(oct_steps *s, const char *value)
{
    int w, h;
    bool both;
    s->resize_short = s->resize_w = s->resize_h = s->letter_w = s->letter_h = 0;
    if (strcmp(value, "none") == 0)
        return true;
    if (!parse_size(value, &w, &h, &both))
        return false;
    if (both) {
        s->resize_w = w;
        s->resize_h = h;
    } else {
        s->resize_short = w;
    }
    return true;
}

static bool set_crop(oct_steps *s, const char *value)
{
    bool both;
    s->crop_w = s->crop_h = 0;
    return strcmp(value, "none") == 0 || parse_size(value, &s->crop_w, &s->crop_h, &both);
}

/* 224, 320x240, or a share of both sides: 0.875. */
static bool set_precrop(oct_steps *s, const char *value)
{
    bool both;
    char *end;
    s->precrop_w = s->precrop_h = 0;
    s->precrop = 0;
    if (strcmp(value, "none") == 0)
        return true;
    if (!strchr(value, '.'))
        return parse_size(value, &s->precrop_w, &s->precrop_h, &both);
    const double share = strtod(value, &end);
    if (value[strspn(value, "0123456789.e-")] || end == value || *end || !(share > 0 && share <= 1))
        return false;
    s->precrop = share;
    return true;
}

static bool set_letterbox(oct_steps *s, const char *value)
{
    bool both;
    s->resize_short = s->resize_w = s->resize_h = s->letter_w = s->letter_h = 0;
    return strcmp(value, "none") == 0 || parse_size(value, &s->letter_w, &s->letter_h, &both);
}

static bool set_pad(oct_steps *s, const char *value)
{
    char *end;
    const long v = strtol(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || v > 255)
        return false;
    s->pad = (int)v;
    return s->has_pad = true;
}

static bool set_count(const char *value, long least, long most, int *v)
{
    char *end;
    const long n = strtol(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || n < least || n > most)
        return false;
    *v = (int)n;
    return true;
}

static bool set_value(oct_steps *s, const char *value)
{
    char *end;
    const double v = strtod(value, &end);
    s->has_value = strcmp(value, "none") != 0;
    if (!s->has_value)
        return true;
    s->value = v;
    return value[strspn(value, "+-0123456789.eE")] == 0 && *end == 0 && end != value && fabs(v) < 0x1p63;
}

static bool set_rate(oct_steps *s, const char *value)
{
    if (strcmp(value, "none") != 0)
        return set_count(value, 1, MAX_RATE, &s->rate);
    s->rate = 0;
    return true;
}

static bool set_channel(oct_steps *s, const char *value)
{
    int k = -1;
    if (strcmp(value, "mean") != 0 && !set_count(value, 0, MAX_CHANNEL, &k))
        return false;
    s->channel = k + 1;
    return true;
}

static bool set_ids(oct_steps *s, const char *value)
{
    for (const oct_ids_name *n = oct_ids_names; n->name; n++)
        if (strcmp(value, n->name) == 0) {
            s->ids = n->type;
            return true;
        }
    return false;
}

static bool set_length(oct_steps *s, const char *value)
{
    if (strcmp(value, "none") != 0)
        return set_count(value, 1, MAX_LENGTH, &s->length);
    s->length = 0;
    return true;
}

static bool set_pad_id(oct_steps *s, const char *value)
{
    int id = 0;
    s->has_pad_id = strcmp(value, "none") != 0;
    if (s->has_pad_id && !set_count(value, 0, INT32_MAX, &id))
        return false;
    s->pad_id = id;
    return true;
}

static bool set_tokenizer(oct_steps *s, const char *value)
{
    const size_t n = strcmp(value, "none") == 0 ? 0 : strlen(value);
    if (n >= sizeof s->tokenizer || !*value)
        return false;
    memcpy(s->tokenizer, value, n);
    s->tokenizer[n] = 0;
    return true;
}

static bool set_features(oct_steps *s, oct_features kind, const char *value)
{
    s->features = OCT_FEATURES_NONE;
    s->n_features = 0;
    if (strcmp(value, "none") == 0)
        return true;
    s->features = kind;
    return set_count(value, 1, MAX_FEATURES, &s->n_features);
}

static bool set_high_freq(oct_steps *s, const char *value)
{
    const bool below = *value == '-';
    const bool known = set_count(value + below, 0, MAX_RATE, &s->high_freq);
    s->high_freq = below ? -s->high_freq : s->high_freq;
    return known;
}

static bool set_switch(const char *value, bool *no)
{
    *no = strcmp(value, "no") == 0;
    return *no || strcmp(value, "yes") == 0;
}

static bool set_std(oct_steps *s, const char *value)
{
    if (!parse_floats(value, s->std, &s->n_std))
        return false;
    for (int i = 0; i < s->n_std; i++)
        if (!(s->std[i] > 0))
            return false;
    return true;
}

static bool set_key(oct_steps *s, int key, const char *value)
{
    int at = -1;
    switch (key) {
    case 0: return set_resize(s, value);
    case 1:
        if ((at = find_name(value, oct_interp_names, OCT_COUNT(oct_interp_names))) >= 0)
            s->interp = (oct_interp)at;
        return at >= 0;
    case 2: return set_crop(s, value);
    case 3:
        if ((at = find_name(value, oct_order_names, OCT_COUNT(oct_order_names))) >= 0) {
            s->order = (oct_order)at;
            s->has_order = true;
        }
        return at >= 0;
    case 4: return parse_floats(value, s->mean, &s->n_mean);
    case 5: return set_std(s, value);
    case 7: return set_precrop(s, value);
    case 8: return set_letterbox(s, value);
    case 9: return set_pad(s, value);
    case 10: return set_rate(s, value);
    case 11: return set_count(value, 1, MAX_FRAME, &s->frame);
    case 12: return set_count(value, 1, MAX_FRAME, &s->hop);
    case 13: return set_count(value, 0, MAX_FRAME, &s->lead);
    case 14: return set_channel(s, value);
    case 15: return set_value(s, value);
    case 16: return set_ids(s, value);
    case 17: return set_length(s, value);
    case 18: return set_pad_id(s, value);
    case 19: return set_tokenizer(s, value);
    case 20: return set_features(s, OCT_FEATURES_LOG_MEL, value);
    case 21: return set_features(s, OCT_FEATURES_FBANK, value);
    case 22: return set_features(s, OCT_FEATURES_MFCC, value);
    case 23: return set_count(value, 1, MAX_FEATURES, &s->mel_bins);
    case 24: return set_count(value, 1, MAX_MS, &s->frame_length);
    case 25: return set_count(value, 1, MAX_MS, &s->frame_shift);
    case 26: return set_high_freq(s, value);
    case 27: return set_switch(value, &s->mirrored);
    case 28: return set_switch(value, &s->no_energy);
    case 29:
        if (!set_switch(value, &s->normalize_samples))
            return false;
        s->normalize_samples = !s->normalize_samples;
        return true;
    default:
        if ((at = find_name(value, oct_layout_names, OCT_COUNT(oct_layout_names))) >= 0) {
            s->layout = (oct_layout)at;
            s->has_layout = true;
        }
        return at >= 0;
    }
}

static const char *const expected[] = {
    "resize=256 (shorter side), resize=WxH (stretch) or resize=none, sides 1 to 32768",
    "interp=bilinear, linear, bicubic or nearest",
    "crop=224, crop=WxH or crop=none, sides 1 to 32768",
    "order=rgb, bgr or gray",
    "mean=M or one number per channel, as mean=104,117,123",
    "std=S or one number per channel, above zero",
    "layout=nchw or nhwc",
    "precrop=224, precrop=WxH, precrop=0.875 (of each side) or precrop=none",
    "letterbox=640, letterbox=WxH or letterbox=none, sides 1 to 32768",
    "pad=V, 0 to 255",
    "rate=16000 (samples a second, 1 to 1048576) or rate=none",
    "frame=512 (samples of a window)",
    "hop=160 (samples from one window to the next)",
    "lead=64 (zeros in front of the recording)",
    "channel=mean, or channel=K, counted from 0",
    "value=N, a number, or value=none",
    "ids=u8, u16, u32, i32 or i64",
    "length=128 (tokens of a sample, 1 to 1048576) or length=none",
    "pad-id=0 (the id that fills up) or pad-id=none",
    "tokenizer=tokenizer.json (a file of at most 255 bytes in its name) or tokenizer=none",
    "log-mel=80 (filters, 1 to 512) or log-mel=none",
    "fbank=80 (filters, 1 to 512) or fbank=none",
    "mfcc=13 (cepstra, 1 to 512) or mfcc=none",
    "num-mel-bins=23 (filters, 1 to 512)",
    "frame-length=25 (milliseconds, 1 to 1000)",
    "frame-shift=10 (milliseconds, 1 to 1000)",
    "high-freq=7600 (Hz), high-freq=-400 (less than half the rate) or high-freq=0 (half the rate)",
    "snip-edges=yes or no",
    "use-energy=yes or no",
    "normalize-samples=yes (from -1 to 1) or no (from -32768 to 32767)",
};

/* A hint for a word without a value: a step lacks its value, or a word of the field is meant. */
static void hint_word(oct_err *err, const char *word)
{
    static const struct {
        const char *word, *hint;
    } known[] = {
        { "bgr", "the order of channels is a step: order=bgr" },
        { "rgb", "pictures are RGB unless order=bgr or order=gray is given" },
        { "gray", "the order of channels is a step: order=gray" },
        { "grayscale", "the order of channels is a step: order=gray" },
        { "nhwc", "the order of axes is a step: layout=nhwc" },
        { "nchw", "the order of axes is a step: layout=nchw" },
        { "normalize",
          "give the numbers, as mean=123.675,116.28,103.53:std=58.395,57.12,57.375, or a preset: imagenet" },
        { "0-1", "numbers from 0 to 1 are the preset 'unit'" },
        { "yolo", "as for YOLO: letterbox=640x640:std=255" },
        { "coco", "as for YOLO: letterbox=640x640:std=255" },
        { "torchvision", "the numbers of torchvision are the preset 'imagenet'" },
        { "keras", "Keras has several: 'imagenet-tf' is from -1 to 1, 'caffe' is BGR less its mean" },
        { "raw", "without steps values stay as they are" },
        { "none", "without steps values stay as they are" },
    };
    const int key = find_name(word, keys, OCT_COUNT(keys));
    if (strcmp(word, "help") == 0) {
        oct_buf b = OCT_BUF_INIT;
        for (size_t i = 0; i < OCT_COUNT(presets); i++)
            oct_buf_printf(&b, "%s%s", i ? ", " : "", presets[i].name);
        oct_hint(err, "presets are %s; steps are separated by ':', as resize=256:crop=224:mean=127.5:std=127.5",
                 oct_buf_str(&b));
        oct_buf_free(&b);
        return;
    }
    if (key >= 0) {
        oct_hint(err, "it needs a value: %s", expected[key]);
        return;
    }
    for (size_t i = 0; i < OCT_COUNT(known); i++)
        if (strcmp(word, known[i].word) == 0) {
            oct_hint(err, "%s", known[i].hint);
            return;
        }
    if (*word >= '0' && *word <= '9')
        oct_hint(err, "sizes belong to a step: resize=%s (stretch), letterbox=%s (pad) or crop=%s", word, word, word);
    else
        hint_nearest(err, word);
}

static oct_status one_step(char *step, oct_steps *s, oct_err *err)
{
    char *eq = strchr(step, '=');
    if (!eq) {
        for (size_t i = 0; i < OCT_COUNT(presets); i++)
            if (strcmp(step, presets[i].name) == 0)
                return oct_steps_parse(presets[i].text, NULL, 1, s, err);
        oct_fail(err, OCT_EUSAGE, "preprocess: '%s' is neither a step nor a preset", step);
        hint_word(err, step);
        return OCT_EUSAGE;
    }
    *eq = 0;
    int key = find_name(step, keys, OCT_COUNT(keys));
    if (key < 0) {
        oct_fail(err, OCT_EUSAGE, "preprocess: unknown step '%s'", step);
        hint_nearest(err, step);
        return OCT_EUSAGE;
    }
    if (!set_key(s, key, eq + 1)) {
        oct_fail(err, OCT_EUSAGE, "preprocess: cannot read %s=%s", step, eq + 1);
        oct_hint(err, "expected %s", expected[key]);
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

/* The input that `step` names in front of a slash, as a length; names may hold slashes and colons themselves. */
static int prefixed_input(const char *step, const char *const *names, size_t n, size_t *length)
{
    int best = -1;
    for (size_t i = 0; names && i < n; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(step, names[i], len) == 0 && step[len] == '/' && (best < 0 || len > *length)) {
            best = (int)i;
            *length = len;
        }
    }
    return best;
}

oct_status oct_steps_parse(const char *text, const char *const *names, size_t n, oct_steps *steps, oct_err *err)
{
    char step[512];
    while (*text) {
        size_t length = 0;
        int input = prefixed_input(text, names, n, &length);
        if (input >= 0)
            text += length + 1;
        size_t len = strcspn(text, ":");
        if (len >= sizeof step)
            return oct_fail(err, OCT_EUSAGE, "preprocess: a step longer than %zu characters", sizeof step - 1);
        const char *slash = memchr(text, '/', len), *eq = memchr(text, '=', len);
        if (slash && (!eq || slash < eq)) {
            oct_fail(err, OCT_EUSAGE, "preprocess: the model has no input '%.*s'", (int)(slash - text), text);
            if (names && n)
                oct_hint(err, "its first input is '%s'", names[0]);
            return OCT_EUSAGE;
        }
        for (size_t i = 0; len && i < n; i++)
            if (input < 0 || i == (size_t)input) {
                memcpy(step, text, len);
                step[len] = 0;
                OCT_TRY(one_step(step, &steps[i], err));
            }
        text += len;
        if (*text == ':')
            text++;
    }
    return OCT_OK;
}

static oct_status check_kaldi(const oct_steps *s, oct_err *err)
{
    const int rate = s->rate ? s->rate : OCT_FEATURES_RATE,
              length = s->frame_length ? s->frame_length : OCT_FRAME_LENGTH,
              shift = s->frame_shift ? s->frame_shift : OCT_FRAME_SHIFT,
              bins = s->mel_bins ? s->mel_bins : OCT_MEL_BINS;
    const int top = s->high_freq > 0 ? s->high_freq : rate / 2 + s->high_freq;
    if (s->features == OCT_FEATURES_FBANK && (s->mel_bins || s->no_energy))
        return oct_fail(err, OCT_EUSAGE,
                        "preprocess: num-mel-bins= and use-energy= are for mfcc=, fbank=%d has its own number",
                        s->n_features);
    if (s->features == OCT_FEATURES_MFCC && s->n_features > bins)
        return oct_fail(err, OCT_EUSAGE, "preprocess: mfcc=%d is more than num-mel-bins=%d", s->n_features, bins);
    if ((int64_t)rate * length < 2000 || (int64_t)rate * shift < 1000)
        return oct_fail(err, OCT_EUSAGE, "preprocess: frames of %d ms every %d are too short for rate=%d", length,
                        shift, rate);
    if (top <= 20 || top > (rate + 1) / 2)
        return oct_fail(err, OCT_EUSAGE, "preprocess: high-freq=%d is not between 20 Hz and half of rate=%d",
                        s->high_freq, rate);
    return OCT_OK;
}

oct_status oct_steps_check(const oct_steps *s, oct_err *err)
{
    if (s->hop && !s->frame)
        return oct_fail(err, OCT_EUSAGE, "preprocess: hop=%d without frame=", s->hop);
    if (s->features == OCT_FEATURES_FBANK || s->features == OCT_FEATURES_MFCC)
        return check_kaldi(s, err);
    if (s->mel_bins || s->frame_length || s->frame_shift || s->high_freq || s->mirrored || s->no_energy ||
        s->normalize_samples)
        return oct_fail(err, OCT_EUSAGE,
                        "preprocess: num-mel-bins=, frame-length=, frame-shift=, high-freq=, snip-edges=, "
                        "use-energy= and normalize-samples= are for fbank= and mfcc=");
    if (s->features && s->rate && s->rate != OCT_FEATURES_RATE) {
        oct_fail(err, OCT_EUSAGE, "preprocess: log-mel=%d is for %d samples a second, not rate=%d", s->n_features,
                 OCT_FEATURES_RATE, s->rate);
        oct_hint(err, "fbank= takes any rate");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}
