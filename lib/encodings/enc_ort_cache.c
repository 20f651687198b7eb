/* lib/encodings/enc_ort_cache.c -- calibration.cache of ONNX Runtime's quantizer: lines `NAME LARGEST`, the largest
 * magnitude of a tensor. What reads it takes the range from -LARGEST to LARGEST. */
#include "encodings/encodings_int.h"

#include <math.h>

/* Where the last word of a line begins. */
static const char *last_word(const oct_encoding_line *l)
{
    const char *w = l->end;
    while (w > l->at && w[-1] != ' ' && w[-1] != '\t')
        w--;
    return w;
}

/* Any text whose first line ends in a number. */
static bool claims(const char *text, size_t size)
{
    oct_encoding_line l = { .next = text, .limit = text + size };
    double v;
    if (!oct_encoding_next(&l))
        return false;
    const char *w = last_word(&l);
    return w > l.at && oct_encoding_number(w, (size_t)(l.end - w), &v);
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_encoding_line l = { .label = label, .next = text, .limit = text + size };
    while (oct_encoding_next(&l)) {
        const char *w = last_word(&l), *end = w;
        oct_calib_tensor *t;
        double v;
        while (end > l.at && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        if (end == l.at || !oct_encoding_number(w, (size_t)(l.end - w), &v))
            return oct_encoding_fault(&l, err, "expected 'NAME NUMBER'");
        OCT_TRY_WITHIN(oct_encodings_add(e, l.at, (size_t)(end - l.at), &t, err), err, "%s:%zu", l.label, l.number);
        if (!oct_encodings_pin(t, -fabs(v), fabs(v)))
            return oct_encoding_fault(&l, err, "the number is too large for float32");
    }
    return OCT_OK;
}

static oct_status write(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    for (size_t i = 0; i < rows->n; i++) {
        char text[32];
        const oct_encoding_row *r = &rows->v[i];
        OCT_TRY(oct_encoding_check_name(r->name, "", err));
        oct_buf_printf(out, "%s %s\n", r->name, oct_f32_text(text, fmaxf(-r->range.lo, r->range.hi)));
    }
    return OCT_OK;
}

const oct_encoding_form oct_encoding_ort_cache = {
    .name = "ort-cache",
    .summary = "calibration.cache of ONNX Runtime",
    .symmetric = true,
    .claims = claims,
    .read = read,
    .write = write,
};
