/* lib/encodings/enc_ort_cache.c -- calibration.cache of ONNX Runtime's quantizer: lines `NAME LARGEST`, the largest
 * magnitude of a tensor. What reads it takes the range from -LARGEST to LARGEST. */
#include "encodings/encodings_int.h"

#include <math.h>
#include <string.h>

/* Reads the number at the end of a line, whose name may have blanks. *end: of the name; false: there is no name, or no
 * number. */
static bool read_last(const oct_words *w, const char **end, double *v)
{
    const char *at = w->end;
    while (at > w->at && !strchr(" \t", at[-1]))
        at--;
    for (*end = at; *end > w->at && strchr(" \t", (*end)[-1]);)
        --*end;
    return *end > w->at && oct_word_number((oct_word){ at, (size_t)(w->end - at) }, v);
}

/* Any text whose first line ends in a number. */
static bool claims(const char *text, size_t size)
{
    oct_words w = { .next = text, .limit = text + size };
    const char *end;
    double v;
    return oct_encoding_next(&w) && read_last(&w, &end, &v);
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_words w = { .label = label, .next = text, .limit = text + size };
    while (oct_encoding_next(&w)) {
        const char *end;
        oct_calib_tensor *t;
        double v;
        if (!read_last(&w, &end, &v))
            return oct_words_fault(&w, w.at, err, "'NAME NUMBER' is expected");
        OCT_TRY(oct_encoding_add(e, &w, end, &t, err));
        if (!oct_encodings_pin(t, -fabs(v), fabs(v)))
            return oct_words_fault(&w, end, err, "the number is too large for float32");
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
