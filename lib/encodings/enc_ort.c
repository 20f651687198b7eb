/* lib/encodings/enc_ort.c -- the calibration cache of ONNX Runtime's quantizer, JSON: for each tensor `lowest` and
 * `highest`, an array of NumPy each; alone (write_calibration_table) or as `data` of an object that names the method
 * (save_tensors_data). Up to release 1.14 it is a pair of numbers. */
#include "encodings/encodings_int.h"

#include "base/json.h"
#include "base/json_tree.h"

#include <math.h>
#include <string.h>

/* Steps over blanks, to what is no blank; 0: the end. */
static char step(const char **p, const char *end)
{
    while (*p < end && **p && strchr(" \t\r\n", **p))
        ++*p;
    return *p < end ? **p : 0;
}

/* Whether the first member of an object is a list that begins with a number, as in `{"x": [-1.5, 2]`: up to 1.14 the
 * file has pairs alone. */
static bool is_pairs(const char *text, size_t size)
{
    const char *p = text, *end = text + size;
    if (step(&p, end) != '{' || (p++, step(&p, end)) != '"')
        return false;
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    if (p == end || (p++, step(&p, end)) != ':' || (p++, step(&p, end)) != '[')
        return false;
    const char c = (p++, step(&p, end));
    return c == '-' || (c >= '0' && c <= '9');
}

/* What the classes of its objects are called. */
static bool claims(const char *text, size_t size)
{
    return oct_encoding_is_json(text, size) &&
           (oct_encoding_holds(text, size, "\"TensorData\"") || oct_encoding_holds(text, size, "\"TensorsData\"") ||
            is_pairs(text, size));
}

/* The least or the largest of a number, or of lists of numbers in each other. */
static bool extreme(const oct_tree *t, bool most, int depth, double *v)
{
    double x;
    if (!oct_tree_is_list(t))
        return oct_tree_number(t, v);
    if (depth == 0 || oct_tree_count(t) == 0)
        return false;
    *v = most ? -INFINITY : INFINITY;
    for (size_t i = 0; i < oct_tree_count(t); i++) {
        if (!extreme(oct_tree_at(t, i), most, depth - 1, &x))
            return false;
        *v = most ? fmax(*v, x) : fmin(*v, x);
    }
    return true;
}

static bool bound(const oct_tree *tensor, const char *name, bool most, double *v)
{
    const oct_tree *b = oct_tree_is_list(tensor) ? oct_tree_count(tensor) == 2 ? oct_tree_at(tensor, most) : NULL
                                                 : oct_tree_member(tensor, name);
    return extreme(oct_tree_is_object(b) ? oct_tree_member(b, "data") : b, most, 8, v);
}

static oct_status read_tensor(oct_encodings *e, const char *name, const oct_tree *tensor, oct_err *err)
{
    oct_calib_tensor *t;
    double lo, hi;
    OCT_TRY(oct_encodings_add(e, name, strlen(name), &t, err));
    if (!bound(tensor, "lowest", false, &lo) || !bound(tensor, "highest", true, &hi)) {
        oct_fail(err, OCT_EMALFORMED,
                 oct_tree_is_list(tensor) ? "expected a pair of numbers"
                                          : "it has no 'lowest' and 'highest' that are numbers");
        oct_hint(err, "calibrate with MinMax, Entropy or Percentile");
        return OCT_EMALFORMED;
    }
    return oct_encodings_pin(t, lo, hi) ? OCT_OK
                                        : oct_fail(err, OCT_EMALFORMED, "%g to %g is not a range of float32", lo, hi);
}

static oct_status read_tree(oct_encodings *e, oct_tree *root, const char *label, oct_err *err)
{
    const char *class = oct_tree_text(oct_tree_member(root, "CLS")), *name;
    oct_tree *tensors = class && strcmp(class, "TensorsData") == 0 ? oct_tree_member(root, "data") : root, *tensor;
    if (!oct_tree_is_object(tensors))
        return oct_fail(err, OCT_EMALFORMED, "%s: 'data' is not an object with a member for each tensor", label);
    for (void *at = NULL; oct_tree_next(tensors, &at, &name, &tensor);)
        OCT_TRY_WITHIN(read_tensor(e, name, tensor, err), err, "%s: tensor '%.200s'", label, name);
    return OCT_OK;
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_tree *root;
    OCT_TRY(oct_encoding_tree(text, size, label, &root, err));
    const oct_status s = read_tree(e, root, label, err);
    oct_tree_free(root);
    return s;
}

static void put_bound(oct_json *j, const char *name, float v)
{
    oct_json_open(j, name, '{');
    oct_json_num(j, "data", (double)v);
    oct_json_str(j, "dtype", "float32");
    oct_json_str(j, "CLS", "numpy.array");
    oct_json_close(j);
}

static oct_status write(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    oct_json j = OCT_JSON_INIT(out);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "CLS", "TensorsData");
    oct_json_open(&j, "data", '{');
    for (size_t i = 0; i < rows->n; i++) {
        oct_json_open(&j, rows->v[i].name, '{');
        put_bound(&j, "lowest", rows->v[i].range.lo);
        put_bound(&j, "highest", rows->v[i].range.hi);
        oct_json_str(&j, "CLS", "TensorData");
        oct_json_close(&j);
    }
    oct_json_close(&j);
    oct_json_open(&j, "calibration_method", '{');
    oct_json_str(&j, "CLS", "CalibrationMethod");
    oct_json_str(&j, "value", "CalibrationMethod.MinMax");
    oct_json_close(&j);
    oct_json_bool(&j, "smooth_quant", false);
    oct_json_close(&j);
    oct_buf_puts(out, "\n");
    return OCT_OK;
}

const oct_encoding_form oct_encoding_ort = {
    .name = "ort",
    .summary = "calibration cache of ONNX Runtime, JSON",
    .claims = claims,
    .read = read,
    .write = write,
};
