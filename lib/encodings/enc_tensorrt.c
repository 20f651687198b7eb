/* lib/encodings/enc_tensorrt.c -- calibration cache of TensorRT: a line that names release and calibrator, then `NAME:
 * SCALE` with the eight hexadecimal digits of a float32. The scale is that of int8 around zero, so the range is 127 of
 * it to both sides. */
#include "encodings/encodings_int.h"

#include <ctype.h>
#include <string.h>

#define HEAD "TRT-"
#define OURS "TRT-8601-EntropyCalibration2" /* the calibrator that trtexec and most programs read a cache with */

static bool claims(const char *text, size_t size)
{
    return size >= strlen(HEAD) && memcmp(text, HEAD, strlen(HEAD)) == 0;
}

static bool hex_float(oct_word word, float *v)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < word.n; i++) {
        const int digit = oct_hex_digit((char)tolower((unsigned char)word.at[i]));
        if (digit < 0)
            return false;
        bits = bits << 4 | (uint32_t)digit;
    }
    memcpy(v, &bits, sizeof *v);
    return word.n >= 1 && word.n <= 8;
}

static oct_status read_line(oct_encodings *e, const oct_words *w, oct_err *err)
{
    const char *colon = w->end - 1; /* a line is not empty */
    oct_calib_tensor *t;
    float scale;
    while (colon > w->at && *colon != ':')
        colon--;
    oct_words value = *w;
    value.at = colon + 1;
    const oct_word word = oct_words_take(&value);
    if (colon == w->at || value.at < value.end || !hex_float(word, &scale))
        return oct_words_fault(w, w->at, err, "'NAME: ' and eight hexadecimal digits of a scale are expected");
    OCT_TRY(oct_encoding_add(e, w, colon, &t, err));
    if (!oct_encodings_pin_exact(t, 8, (double)scale, 128))
        return oct_words_fault(w, word.at, err, "%.9g is no scale", (double)scale);
    t->pin.lo = 0 - t->pin.hi; /* -128 is not used */
    return OCT_OK;
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_words w = { .label = label, .next = text, .limit = text + size };
    oct_encoding_next(&w); /* the head */
    while (oct_encoding_next(&w))
        OCT_TRY(read_line(e, &w, err));
    return OCT_OK;
}

static oct_status write(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    oct_buf_puts(out, OURS "\n");
    for (size_t i = 0; i < rows->n; i++) {
        uint32_t bits;
        memcpy(&bits, &rows->v[i].q.scale, sizeof bits);
        OCT_TRY(oct_encoding_check_name(rows->v[i].name, "", err));
        oct_buf_printf(out, "%s: %08x\n", rows->v[i].name, bits);
    }
    return OCT_OK;
}

const oct_encoding_form oct_encoding_tensorrt = {
    .name = "tensorrt",
    .summary = "calibration cache of TensorRT",
    .symmetric = true,
    .claims = claims,
    .read = read,
    .write = write,
};
