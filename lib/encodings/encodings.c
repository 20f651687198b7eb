/* lib/encodings/encodings.c -- what the forms share. */
#include "encodings/encodings_int.h"

#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool oct_encoding_is_table(const void *data, size_t size)
{
    static const char table[] = "octet-calibration";
    const uint8_t *b = data;
    return size == 0 || (size >= 2 && b[0] == 0x1f && b[1] == 0x8b) ||
           (size >= sizeof table - 1 && memcmp(b, table, sizeof table - 1) == 0);
}

void oct_encodings_free(oct_encodings *e)
{
    oct_calib_destroy(e->ranges);
    e->ranges = NULL;
}

/* ---- entries ---- */

oct_status oct_encodings_add(oct_encodings *e, const char *name, size_t n, oct_calib_tensor **t, oct_err *err)
{
    char *copy = oct_alloc(n + 1);
    if (!copy)
        return oct_nomem(err);
    memcpy(copy, name, n);
    copy[n] = 0;
    oct_status s = OCT_OK;
    if (n == 0 || memchr(name, 0, n))
        s = oct_fail(err, OCT_EMALFORMED, "a name is empty or holds a NUL");
    else if (oct_calib_find(e->ranges, copy))
        s = oct_fail(err, OCT_EMALFORMED, "'%.200s' occurs twice", copy);
    else
        s = oct_calib_add(e->ranges, copy, t, err);
    oct_free(copy);
    return s;
}

bool oct_encodings_pin(oct_calib_tensor *t, double lo, double hi)
{
    if (!(lo <= hi) || !(lo >= -FLT_MAX) || !(hi <= FLT_MAX))
        return false;
    t->pinned = true;
    t->pin = (oct_range){ (float)fmin(lo, 0) + 0.0f, (float)fmax(hi, 0) + 0.0f };
    return true;
}

bool oct_encodings_pin_exact(oct_calib_tensor *t, int bits, double scale, double zero)
{
    const double top = ldexp(1, bits) - 1;
    if (scale == 0)
        return oct_encodings_pin(t, 0, 0);
    if (!(scale >= (double)FLT_MIN && scale <= (double)FLT_MAX) || !(zero >= 0 && zero <= top) || zero != rint(zero))
        return false;
    if (!oct_encodings_pin(t, -zero * scale, (top - zero) * scale))
        return false;
    if (bits == 8 || bits == 16)
        t->exact = (oct_calib_exact){ bits, (int32_t)zero, (float)scale };
    return true;
}

/* ---- text ---- */

bool oct_encoding_next(oct_words *w)
{
    while (oct_words_line(w)) {
        while (w->end > w->at && strchr(" \t\r", w->end[-1]))
            w->end--;
        if (w->at < w->end)
            return true;
    }
    return false;
}

oct_status oct_encoding_add(oct_encodings *e, const oct_words *w, const char *end, oct_calib_tensor **t, oct_err *err)
{
    oct_err what = OCT_ERR_INIT;
    return oct_encodings_add(e, w->at, (size_t)(end - w->at), t, &what) == OCT_OK
               ? OCT_OK
               : oct_words_misplaced(w, w->at, &what, err);
}

oct_status oct_encoding_check_name(const char *name, const char *separators, oct_err *err)
{
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < 0x20 || strchr(separators, *p))
            return oct_fail(err, OCT_EUSAGE,
                            "the name '%.200s' has no place in this form, because of a character in it", name);
    return OCT_OK;
}

oct_status oct_encoding_tree(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err)
{
    const oct_status s = oct_tree_parse(text, size, label, root, err);
    const bool signed_one = err && strstr(err->text, "near '-'") && oct_encoding_holds(text, size, "-Infinity");
    if (s == OCT_EMALFORMED &&
        (signed_one || (err && (strstr(err->text, "near 'NaN'") || strstr(err->text, "near 'Infinity'")))))
        oct_hint(
            err,
            "the tool found no range for that tensor: look at its samples and calibrate again, or take the tensor's entry out");
    return s;
}

bool oct_encoding_is_json(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n'))
        i++;
    return i < size && text[i] == '{';
}

bool oct_encoding_holds(const char *text, size_t size, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = text, *end = text + size; (size_t)(end - p) >= n; p++) {
        p = memchr(p, word[0], (size_t)(end - p) - n + 1);
        if (!p)
            return false;
        if (memcmp(p, word, n) == 0)
            return true;
    }
    return false;
}
