/* lib/encodings/enc_tensorrt.c -- calibration cache of TensorRT: a line that names release and calibrator, then `NAME:
 * SCALE` with the eight hexadecimal digits of a float32. The scale is that of int8 around zero, so the range is 127 of
 * it to both sides. */
#include "encodings/encodings_int.h"

#include <string.h>

#define HEAD "TRT-"
#define OURS "TRT-8601-EntropyCalibration2" /* the calibrator that trtexec and most programs read a cache with */

static bool claims(const char *text, size_t size)
{
    return size >= strlen(HEAD) && memcmp(text, HEAD, strlen(HEAD)) == 0;
}

static bool hex_float(const char *w, size_t n, float *v)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdef", c = (char)(w[i] >= 'A' && w[i] <= 'F' ? w[i] + 32 : w[i]),
                   *at = c ? strchr(digits, c) : NULL;
        if (!at)
            return false;
        bits = bits << 4 | (uint32_t)(at - digits);
    }
    memcpy(v, &bits, sizeof *v);
    return n >= 1 && n <= 8;
}

static oct_status read_line(oct_encodings *e, const oct_encoding_line *l, oct_err *err)
{
    const char *colon = l->end - 1; /* a line is not empty */
    oct_calib_tensor *t;
    float scale;
    while (colon > l->at && *colon != ':')
        colon--;
    const char *w = colon + 1;
    while (w < l->end && *w == ' ')
        w++;
    if (colon == l->at || w >= l->end || !hex_float(w, (size_t)(l->end - w), &scale))
        return oct_encoding_fault(l, err, "expected 'NAME: ' and eight hexadecimal digits of a scale");
    OCT_TRY_WITHIN(oct_encodings_add(e, l->at, (size_t)(colon - l->at), &t, err), err, "%s:%zu", l->label, l->number);
    if (!oct_encodings_pin_exact(t, 8, (double)scale, 128))
        return oct_encoding_fault(l, err, "%.9g is no scale", (double)scale);
    t->pin.lo = 0 - t->pin.hi; /* -128 is not used */
    return OCT_OK;
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_encoding_line l = { .label = label, .next = text, .limit = text + size };
    oct_encoding_next(&l); /* the head */
    while (oct_encoding_next(&l))
        OCT_TRY(read_line(e, &l, err));
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
