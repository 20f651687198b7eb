/* lib/encodings/enc_aimet.c -- encodings of AIMET and QNN, JSON: bits, scale and offset of each tensor, where real =
 * scale * (q + offset) of unsigned values q.
 *
 * Up to version 0.6 `activation_encodings` and `param_encodings` are objects of lists, in 1.0.0 lists of objects with a
 * name, and in 2.0.0 there is one list, `encodings`, in ONNX's words. QNN's --quantization_overrides takes the first,
 * also with `min` and `max` alone. */
#include "encodings/encodings_int.h"

#include "base/json.h"
#include "base/json_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool claims(const char *text, size_t size)
{
    return oct_encoding_is_json(text, size) &&
           (oct_encoding_holds(text, size, "\"activation_encodings\"") ||
            oct_encoding_holds(text, size, "\"param_encodings\"") || oct_encoding_holds(text, size, "\"encodings\""));
}

/* ---- one tensor ---- */

/* What an encoding says, of one channel or of all. */
typedef struct said {
    bool real; /* float: not quantized */
    bool symmetric;
    int bits;
    const oct_tree *scale, *offset, *lo, *hi;
    double offset_adds, offset_sign; /* unsigned zero point = sign * offset + adds */
} said;

/* A number, or that of a list at i. */
static bool number_at(const oct_tree *t, size_t i, double *v)
{
    return oct_tree_number(oct_tree_is_list(t) ? oct_tree_at(t, i) : t, v);
}

static bool read_bits(const oct_tree *t, int *bits)
{
    double v;
    if (!oct_tree_number(t, &v) || !(v >= 2 && v <= 32) || v != rint(v))
        return false;
    *bits = (int)v;
    return true;
}

/* "uint8", "int16", "float16". */
static bool read_type(const char *name, said *s)
{
    const bool whole = name && strncmp(name, "uint", 4) == 0;
    const char *digits = !name ? "" : whole ? name + 4 : strncmp(name, "int", 3) == 0 ? name + 3 : "";
    s->real = name && strstr(name, "float");
    s->bits = strlen(digits) <= 2 ? atoi(digits) : 0;
    s->offset_adds = whole || s->bits < 2 ? 0 : ldexp(1, s->bits - 1);
    return s->real || (s->bits >= 2 && s->bits <= 32);
}

static oct_status read_said(const oct_tree *t, said *s, oct_err *err)
{
    const oct_tree *bits = oct_tree_member(t, "bitwidth"), *symmetric = oct_tree_member(t, "is_symmetric");
    const char *dtype = oct_tree_text(oct_tree_member(t, "dtype")),
               *name = oct_tree_text(oct_tree_member(t, "output_dtype"));
    if (name) {
        *s = (said){ .scale = oct_tree_member(t, "y_scale"),
                     .offset = oct_tree_member(t, "y_zero_point"),
                     .offset_sign = 1 };
        return read_type(name, s)
                   ? OCT_OK
                   : oct_fail(err, OCT_EMALFORMED, "'output_dtype' is '%.40s', no type of 2 to 32 bits", name);
    }
    *s = (said){ .scale = oct_tree_member(t, "scale"),
                 .offset = oct_tree_member(t, "offset"),
                 .lo = oct_tree_member(t, "min"),
                 .hi = oct_tree_member(t, "max"),
                 .real = dtype && strcasecmp(dtype, "float") == 0,
                 .offset_sign = -1 };
    oct_tree_bool(symmetric ? symmetric : oct_tree_member(t, "is_sym"), &s->symmetric);
    const oct_tree *given = bits ? bits : oct_tree_member(t, "bw");
    if (!given)
        return oct_fail(err, OCT_EMALFORMED, "it has no 'bitwidth' ('bw' as of version 1.0.0)");
    if (!read_bits(given, &s->bits))
        return oct_fail(err, OCT_EMALFORMED, "'%s' is not a whole number from 2 to 32", bits ? "bitwidth" : "bw");
    if (dtype && !s->real && strcasecmp(dtype, "int") != 0)
        return oct_fail(err, OCT_EMALFORMED, "'dtype' is '%.40s', neither int nor float", dtype);
    return OCT_OK;
}

/* The zero point of channel i among unsigned values. */
static bool zero_of(const said *s, size_t i, double *zero)
{
    const double middle = ldexp(1, s->bits - 1);
    *zero = 0;
    if (s->offset && !number_at(s->offset, i, zero))
        return false;
    *zero = s->offset_sign * *zero + s->offset_adds;
    if (s->offset_sign < 0 && *zero < 0) /* versions up to 0.4 of TensorFlow's models have it with the other sign */
        *zero = -*zero;
    if (s->symmetric && *zero == middle - 1) /* -127 to 127: 255 values, the same ones with the middle as zero */
        *zero = middle;
    return true;
}

/* Whether min and max, where there are both, are those of a scale and a zero point: to two steps, as values of one
 * symmetric encoding are 255 or 256. */
static bool agree(const said *s, size_t i, double scale, double zero)
{
    double lo, hi;
    if (!s->lo || !s->hi || !number_at(s->lo, i, &lo) || !number_at(s->hi, i, &hi))
        return true;
    return fabs(lo + zero * scale) <= 2 * scale && fabs(hi - (ldexp(1, s->bits) - 1 - zero) * scale) <= 2 * scale;
}

static oct_status pin_scale(oct_calib_tensor *t, const said *s, size_t i, oct_err *err)
{
    double scale, zero;
    const double middle = ldexp(1, s->bits - 1);
    if (!number_at(s->scale, i, &scale) || !zero_of(s, i, &zero))
        return oct_fail(err, OCT_EMALFORMED, "its scale and its zero point are not numbers, or not as many of each");
    if (scale > 0 && s->symmetric && zero == 0 && !agree(s, i, scale, zero) &&
        agree(s, i, scale, middle)) /* of signed values */
        zero = middle;
    if (!oct_encodings_pin_exact(t, s->bits, scale, zero))
        return oct_fail(err, OCT_EMALFORMED, "scale %g and zero point %g are not those of %d bits", scale, zero,
                        s->bits);
    if (agree(s, i, scale, zero))
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "scale and offset (%g to %g) contradict min and max", (double)t->pin.lo,
             (double)t->pin.hi);
    oct_hint(err, "take out min and max, or scale and offset");
    return OCT_EMALFORMED;
}

/* Pins t to what is said of channel i. */
static oct_status pin_channel(oct_calib_tensor *t, const said *s, size_t i, oct_err *err)
{
    double lo, hi;
    if (s->scale && (s->offset || s->offset_sign > 0))
        return pin_scale(t, s, i, err);
    if (!s->lo || !s->hi || !number_at(s->lo, i, &lo) || !number_at(s->hi, i, &hi))
        return oct_fail(err, OCT_EMALFORMED, "it has neither scale and offset nor min and max");
    return oct_encodings_pin(t, lo, hi) ? OCT_OK
                                        : oct_fail(err, OCT_EMALFORMED, "%g to %g is not a range of float32", lo, hi);
}

/* Fixes t by the entries of its n channels: several are united to one range. */
static oct_status pin_channels(oct_calib_tensor *t, const said *s, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        oct_calib_tensor one = { 0 };
        OCT_TRY(pin_channel(&one, s, i, err));
        const bool first = !t->pinned;
        t->pinned = true;
        t->pin = (oct_range){ fminf(t->pin.lo, one.pin.lo), fmaxf(t->pin.hi, one.pin.hi) };
        t->exact = first ? one.exact : (oct_calib_exact){ 0 };
    }
    return OCT_OK;
}

static oct_status read_encoding(oct_calib_tensor *t, const oct_tree *encoding, oct_err *err)
{
    said s;
    OCT_TRY(read_said(encoding, &s, err));
    const size_t n = oct_tree_is_list(s.scale) ? oct_tree_count(s.scale) : 1;
    if (s.real) {
        t->off = true;
        return OCT_OK;
    }
    return n ? pin_channels(t, &s, n, err) : oct_fail(err, OCT_EMALFORMED, "'scale' is empty");
}

/* list: encodings of channels, or one of all. */
static oct_status read_tensor(oct_encodings *e, const char *name, const oct_tree *list, oct_err *err)
{
    oct_calib_tensor *t;
    OCT_TRY(oct_encodings_add(e, name, strlen(name), &t, err));
    if (oct_tree_is_object(list))
        return read_encoding(t, list, err);
    if (!oct_tree_count(list))
        return oct_fail(err, OCT_EMALFORMED, "it has no encoding");
    for (size_t i = 0; i < oct_tree_count(list); i++)
        OCT_TRY(read_encoding(t, oct_tree_at(list, i), err));
    return OCT_OK;
}

/* ---- all ---- */

/* An object by name, or a list of objects that have one. */
static oct_status read_all(oct_encodings *e, oct_tree *all, const char *label, const char *what, oct_err *err)
{
    const char *name;
    oct_tree *t;
    for (void *at = NULL; oct_tree_is_object(all) && oct_tree_next(all, &at, &name, &t);)
        OCT_TRY_WITHIN(read_tensor(e, name, t, err), err, "%s: %s: '%.200s'", label, what, name);
    for (size_t i = 0; oct_tree_is_list(all) && i < oct_tree_count(all); i++) {
        name = oct_tree_text(oct_tree_member(oct_tree_at(all, i), "name"));
        if (!name)
            return oct_fail(err, OCT_EMALFORMED, "%s: %s: entry %zu, counted from 0, has no name", label, what, i);
        OCT_TRY_WITHIN(read_tensor(e, name, oct_tree_at(all, i), err), err, "%s: %s: '%.200s'", label, what, name);
    }
    return OCT_OK;
}

enum { NEWEST = 2 }; /* the major number of the newest version that is known */

static oct_status check_version(const oct_tree *root, const char *label, oct_err *err)
{
    const char *version = oct_tree_text(oct_tree_member(root, "version"));
    if (!version || strtol(version, NULL, 10) <= NEWEST)
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED, "%s: 'version' is '%.40s', which is newer than the known ones", label, version);
    oct_hint(err, "export it as of version 0.6.1, 1.0.0 or 2.0.0");
    return OCT_EUNSUPPORTED;
}

static oct_status read_tree(oct_encodings *e, oct_tree *root, const char *label, oct_err *err)
{
    static const char *const lists[] = { "activation_encodings", "encodings" };
    bool any = false;
    OCT_TRY(check_version(root, label, err));
    for (size_t i = 0; i < OCT_COUNT(lists); i++) {
        oct_tree *all = oct_tree_member(root, lists[i]);
        if (all && !oct_tree_is_object(all) && !oct_tree_is_list(all))
            return oct_fail(err, OCT_EMALFORMED, "%s: '%s' is neither an object nor a list", label, lists[i]);
        any |= all != NULL;
        OCT_TRY(read_all(e, all, label, lists[i], err));
    }
    e->weights = oct_tree_count(oct_tree_member(root, "param_encodings"));
    return any ? OCT_OK
               : oct_fail(err, OCT_EUNSUPPORTED, "%s: it has no 'activation_encodings', and so no ranges", label);
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_tree *root;
    OCT_TRY(oct_encoding_tree(text, size, label, &root, err));
    const oct_status s = read_tree(e, root, label, err);
    oct_tree_free(root);
    return s;
}

/* ---- writing ---- */

static bool is_symmetric(const oct_encoding_row *r)
{
    return r->q.zero == 1 << (r->bits - 1);
}

static void put_one(oct_json *j, const char *key, double v)
{
    oct_json_open(j, key, '[');
    oct_json_num(j, NULL, v);
    oct_json_close(j);
}

/* Version 1.0.0. */
static oct_status write(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    oct_json j = OCT_JSON_INIT(out);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "version", "1.0.0");
    oct_json_open(&j, "activation_encodings", '[');
    for (size_t i = 0; i < rows->n; i++) {
        const oct_encoding_row *r = &rows->v[i];
        oct_json_open(&j, NULL, '{');
        oct_json_str(&j, "name", r->name);
        oct_json_str(&j, "dtype", "INT");
        oct_json_str(&j, "enc_type", "PER_TENSOR");
        oct_json_int(&j, "bw", r->bits);
        oct_json_bool(&j, "is_sym", is_symmetric(r));
        put_one(&j, "scale", (double)r->q.scale);
        put_one(&j, "offset", -r->q.zero);
        oct_json_close(&j);
    }
    oct_json_close(&j);
    oct_json_open(&j, "param_encodings", '[');
    oct_json_close(&j);
    oct_json_close(&j);
    oct_buf_puts(out, "\n");
    return OCT_OK;
}

/* Version 0.6.1, which QNN's converters take as well. */
static oct_status write_objects(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    oct_json j = OCT_JSON_INIT(out);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "version", "0.6.1");
    oct_json_open(&j, "activation_encodings", '{');
    for (size_t i = 0; i < rows->n; i++) {
        const oct_encoding_row *r = &rows->v[i];
        const double scale = (double)r->q.scale;
        oct_json_open(&j, r->name, '[');
        oct_json_open(&j, NULL, '{');
        oct_json_int(&j, "bitwidth", r->bits);
        oct_json_str(&j, "dtype", "int");
        oct_json_str(&j, "is_symmetric", is_symmetric(r) ? "True" : "False");
        oct_json_num(&j, "max", scale * ((1 << r->bits) - 1 - r->q.zero));
        oct_json_num(&j, "min", 0 - scale * r->q.zero);
        oct_json_int(&j, "offset", -r->q.zero);
        oct_json_num(&j, "scale", scale);
        oct_json_close(&j);
        oct_json_close(&j);
    }
    oct_json_close(&j);
    oct_json_open(&j, "param_encodings", '{');
    oct_json_close(&j);
    oct_json_close(&j);
    oct_buf_puts(out, "\n");
    return OCT_OK;
}

const oct_encoding_form oct_encoding_aimet = {
    .name = "aimet",
    .summary = "encodings of AIMET and QNN, JSON",
    .claims = claims,
    .read = read,
    .write = write,
};

const oct_encoding_form oct_encoding_qnn = {
    .name = "qnn",
    .summary = "encodings of AIMET and QNN, JSON, as of version 0.6.1",
    .read = read,
    .write = write_objects,
};
