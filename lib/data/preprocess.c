/* lib/data/preprocess.c -- the text of preprocessing steps: reading, canonical form, words. */
#include "data/preprocess.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
} presets[] = {
    { "imagenet", "resize=256:crop=224:mean=123.675,116.28,103.53:std=58.395,57.12,57.375" }, /* torchvision */
    { "imagenet-tf", "resize=256:crop=224:mean=127.5:std=127.5" },                            /* TensorFlow, Keras MobileNet */
    { "caffe", "resize=256:crop=224:order=bgr:mean=104,117,123" },
    { "unit", "mean=0:std=255" },
};

static const char *const interp_names[] = { "bilinear", "linear", "bicubic", "nearest" };
static const char *const order_names[] = { "rgb", "bgr", "gray" };
static const char *const layout_names[] = { "nchw", "nhwc" };
static const char *const keys[] = { "resize", "interp", "crop", "order", "mean", "std", "layout", "precrop", "letterbox", "pad" };

enum { MAX_SIDE = 1 << 15 };

static void hint_nearest(oct_err *err, const char *word)
{
    oct_nearest near = { .word = word, .most = 3 };
    for (size_t i = 0; i < OCT_COUNT(keys) + OCT_COUNT(presets); i++)
        oct_nearest_try(&near, i < OCT_COUNT(keys) ? keys[i] : presets[i - OCT_COUNT(keys)].name);
    oct_nearest_hint(&near, 1, NULL, err);
    if (!near.n)
        oct_hint(err, "steps are precrop=, resize=, letterbox=, pad=, interp=, crop=, order=, mean=, std=, layout=; presets are imagenet, "
                      "imagenet-tf, caffe, unit");
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
        if ((at = find_name(value, interp_names, OCT_COUNT(interp_names))) >= 0)
            s->interp = (oct_interp)at;
        return at >= 0;
    case 2: return set_crop(s, value);
    case 3:
        if ((at = find_name(value, order_names, OCT_COUNT(order_names))) >= 0) {
            s->order = (oct_order)at;
            s->has_order = true;
        }
        return at >= 0;
    case 4: return parse_floats(value, s->mean, &s->n_mean);
    case 5: return set_std(s, value);
    case 7: return set_precrop(s, value);
    case 8: return set_letterbox(s, value);
    case 9: return set_pad(s, value);
    default:
        if ((at = find_name(value, layout_names, OCT_COUNT(layout_names))) >= 0) {
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
};

static oct_status one_step(char *step, oct_steps *s, oct_err *err)
{
    char *eq = strchr(step, '=');
    if (!eq) {
        for (size_t i = 0; i < OCT_COUNT(presets); i++)
            if (strcmp(step, presets[i].name) == 0)
                return oct_steps_parse(presets[i].text, NULL, 1, s, err);
        oct_fail(err, OCT_EUSAGE, "preprocess: '%s' is neither a step nor a preset", step);
        hint_nearest(err, step);
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

int oct_steps_pad(const oct_steps *s)
{
    return s->has_pad ? s->pad : 114;
}

bool oct_steps_any(const oct_steps *s)
{
    return s->precrop_w || s->precrop > 0 || s->letter_w || s->resize_short || s->resize_w || s->crop_w || s->has_order || s->n_mean || s->n_std || s->has_layout;
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

void oct_steps_text(const oct_steps *s, const char *prefix, oct_buf *out)
{
    bool first = true;
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
        oct_buf_puts(out, interp_names[s->interp]);
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
        oct_buf_puts(out, order_names[s->order]);
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
        oct_buf_puts(out, layout_names[s->layout]);
    }
}

void oct_steps_words(const oct_steps *s, oct_buf *out)
{
    if (!oct_steps_any(s)) {
        oct_buf_puts(out, "values as they are (pictures: RGB, 0..255)");
        return;
    }
    if (s->precrop_w)
        oct_buf_printf(out, "centre %dx%d, ", s->precrop_w, s->precrop_h);
    if (s->precrop > 0) {
        oct_buf_puts(out, "centre ");
        put_share(out, s->precrop);
        oct_buf_puts(out, " of each side, ");
    }
    if (s->letter_w)
        oct_buf_printf(out, "fitted into %dx%d on %d (%s), ", s->letter_w, s->letter_h, oct_steps_pad(s), interp_names[s->interp]);
    if (s->resize_short)
        oct_buf_printf(out, "shorter side to %d (%s), ", s->resize_short, interp_names[s->interp]);
    if (s->resize_w)
        oct_buf_printf(out, "stretched to %dx%d (%s), ", s->resize_w, s->resize_h, interp_names[s->interp]);
    if (s->crop_w)
        oct_buf_printf(out, "centre crop %dx%d, ", s->crop_w, s->crop_h);
    if (s->has_order)
        oct_buf_printf(out, "%s, ", s->order == OCT_ORDER_BGR ? "BGR" : s->order == OCT_ORDER_GRAY ? "gray" : "RGB");
    if (s->n_mean || s->n_std) {
        oct_buf_puts(out, s->n_mean > 1 ? "(x - (" : s->n_mean ? "(x - " : "x");
        put_floats(out, s->mean, s->n_mean);
        oct_buf_puts(out, s->n_mean > 1 ? "))" : s->n_mean ? ")" : "");
        oct_buf_puts(out, s->n_std > 1 ? " / (" : s->n_std ? " / " : "");
        put_floats(out, s->std, s->n_std);
        oct_buf_puts(out, s->n_std > 1 ? ")" : "");
    } else {
        oct_buf_puts(out, "values as they are");
    }
    if (s->has_layout)
        oct_buf_printf(out, ", %s", s->layout == OCT_LAYOUT_NHWC ? "NHWC" : "NCHW");
}
