/* Ranges in the forms of other tools: read, written, and broken. */

#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "encodings/encodings.h"
#include "net.h"

/* x -> first -> r -> second -> y; `second` has no name, and goes by its result. */
static oct_graph *layers(void)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,2,4,4");
    int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "3,2,1,1", 3));
    int r = NET_NODE(g, "Relu", "relu", "r", a);
    int y = NET_NODE(g, "Conv", "", "y", r, net_random(g, "w2", "3,1,1,1", 5));
    net_int(g, "group", 3);
    net_output(g, y);
    return g;
}

/* Whether this build reads JSON; else forms that are JSON are refused. */
static bool reads_json(void)
{
    static const char text[] = "{\"encodings\": []}";
    oct_encodings e;
    const oct_status s = oct_encodings_parse(text, sizeof text - 1, "t", &e, NULL);
    oct_encodings_free(&e);
    return s != OCT_EUNSUPPORTED;
}

static oct_calib *read_for(const char *text, const oct_graph *g, const char *form, oct_encodings_match *m)
{
    oct_encodings e;
    oct_err err = OCT_ERR_INIT;
    oct_calib *c = oct_calib_create();
    assert_string_equal(oct_encoding_form_name(oct_encoding_form_of(text, strlen(text))), form);
    if (oct_encodings_parse(text, strlen(text), "t", &e, &err) != OCT_OK ||
        oct_encodings_take(&e, "t", g, c, m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    oct_encodings_free(&e);
    return c;
}

/* One tensor's entry. */
typedef struct want {
    const char *name;
    float lo, hi;
    oct_calib_exact exact;
} want;

static void assert_pin(const oct_calib *c, const want *w)
{
    const oct_calib_tensor *t = oct_calib_find(c, w->name);
    assert_non_null(t);
    assert_true(t->pinned);
    assert_float_equal(t->pin.lo, w->lo, 1e-6 * fabs((double)w->lo));
    assert_float_equal(t->pin.hi, w->hi, 1e-6 * fabs((double)w->hi));
    assert_int_equal(t->exact.bits, w->exact.bits);
    if (w->exact.bits) {
        assert_float_equal(t->exact.scale, w->exact.scale, 0);
        assert_int_equal(t->exact.zero, w->exact.zero);
    }
}

#define AIMET_X \
    "\"bitwidth\": 8, \"is_symmetric\": \"False\", \"max\": 2.609, \"min\": -2.109, \"offset\": -114.0, \"scale\": 0.0185"

TEST(forms_say_the_same)
{
    static const struct {
        const char *form, *text;
        want x, r;
        size_t taken, weights, others;
    } each[] = {
        { "tensorrt",
          "TRT-8601-EntropyCalibration2\nx: 3c010a14\n(Unnamed Layer* 0) [Shuffle]_output: 3f800000\nr: 00000000\nw1: 3F000000\n",
          { "x", -127 * 0x1.02142800p-7f, 127 * 0x1.02142800p-7f, { 8, 128, 0x1.02142800p-7f } },
          { "r", 0, 0 },
          2,
          1,
          1 },
        { "ort-cache", "x 2.5\nr 6.0\nno such name 1\n", { "x", -2.5f, 2.5f }, { "r", -6, 6 }, 2, 0, 1 },
        { "ncnn",
          "first_param_0 63.5 127 254 \ny_param_0 1 2 3\n#third 1\nfirst 50.800000 \ny 31.75 63.5\n",
          { "x", -2.5f, 2.5f, { 8, 128, 1 / 50.8f } },
          { "r", -4, 4 },
          2,
          2,
          0 },
        { "ort",
          "{\"x\": {\"lowest\": {\"data\": -1.5, \"dtype\": \"float32\", \"CLS\": \"numpy.array\"}, \"highest\": {\"data\": [0.5], \"dtype\": "
          "\"float32\", \"CLS\": \"numpy.array\"}, \"CLS\": \"TensorData\"}, \"r\": {\"lowest\": 1, \"highest\": [[2, 6.5]], \"CLS\": \"TensorData\"}}",
          { "x", -1.5f, 0.5f },
          { "r", 0, 6.5f },
          2,
          0,
          0 },
        { "ort", " {\"x\" : [ -1.5, 0.5], \"r\": [0.25, 6.5]}", { "x", -1.5f, 0.5f }, { "r", 0, 6.5f }, 2, 0, 0 },
        { "aimet",
          "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"is_symmetric\": \"True\", \"offset\": 0, \"scale\": 0.02, \"min\": -2.56, \"max\": "
          "2.54}], \"r\": [{\"bitwidth\": 8, \"is_symmetric\": \"True\", \"offset\": 0, \"scale\": 0.02, \"min\": 0, \"max\": 5.1}]}}",
          { "x", -128 * 0.02f, 127 * 0.02f, { 8, 128, 0.02f } },
          { "r", 0, 255 * 0.02f, { 8, 0, 0.02f } },
          2,
          0,
          0 },
        { "aimet",
          "{\"version\": \"0.6.1\", \"activation_encodings\": {\"x\": [{" AIMET_X
          "}], \"r\": [{\"bitwidth\": 4, \"min\": 0, \"max\": 6}]}, "
          "\"param_encodings\": {\"w1\": [], \"w2\": []}}",
          { "x", -114 * 0.0185f, 141 * 0.0185f, { 8, 114, 0.0185f } },
          { "r", 0, 6 },
          2,
          2,
          0 },
        { "aimet",
          "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 16, \"is_symmetric\": \"True\", \"offset\": -32767, \"scale\": 0.001}], "
          "\"r\": [{\"bitwidth\": 8, \"offset\": 0, \"scale\": 0.5}, {\"bitwidth\": 8, \"offset\": -255, \"scale\": 0.25}]}}",
          { "x", -32.768f, 32.767f, { 16, 32768, 0.001f } },
          { "r", -63.75f, 127.5f },
          2,
          0,
          0 },
        { "aimet",
          "{\"version\": \"1.0.0\", \"activation_encodings\": [{\"name\": \"x\", \"dtype\": \"INT\", \"enc_type\": \"PER_TENSOR\", \"is_sym\": true, "
          "\"bw\": 8, \"scale\": [0.031], \"offset\": [-128.0]}, {\"name\": \"r\", \"dtype\": \"INT\", \"bw\": 8, \"scale\": [0.5, 0.25], \"offset\": [0, -3]}], "
          "\"param_encodings\": [{}]}",
          { "x", -128 * 0.031f, 127 * 0.031f, { 8, 128, 0.031f } },
          { "r", -0.75f, 127.5f },
          2,
          1,
          0 },
        { "aimet",
          "{\"version\": \"2.0.0\", \"encodings\": [{\"name\": \"x\", \"output_dtype\": \"int8\", \"y_scale\": 0.5, \"y_zero_point\": -3}, "
          "{\"name\": \"r\", \"output_dtype\": \"uint8\", \"y_scale\": 0.25}, {\"name\": \"w2\", \"output_dtype\": \"int4\", \"y_scale\": [1, 2, 3]}]}",
          { "x", -62.5f, 65, { 8, 125, 0.5f } },
          { "r", 0, 63.75f, { 8, 0, 0.25f } },
          2,
          1,
          0 },
    };
    oct_graph *g = layers();
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_encodings_match m;
        if (each[i].text[0] == '{' && !reads_json())
            continue;
        oct_calib *c = read_for(each[i].text, g, each[i].form, &m);
        assert_pin(c, &each[i].x);
        assert_pin(c, &each[i].r);
        assert_int_equal(m.taken, each[i].taken);
        assert_int_equal(m.weights, each[i].weights);
        assert_int_equal(m.others, each[i].others);
        oct_calib_destroy(c);
    }
    oct_graph_destroy(g);
}

/* What an encoding has as float stays float. */
TEST(floats_stay)
{
    if (!reads_json()) {
        print_message("# skipped: a build without jansson\n");
        return;
    }
    oct_graph *g = layers();
    oct_encodings_match m;
    oct_calib *c =
        read_for("{\"activation_encodings\": {\"x\": [{\"bitwidth\": 16, \"dtype\": \"float\"}]}}", g, "aimet", &m);
    assert_true(oct_calib_find(c, "x")->off);
    oct_calib_destroy(c);
    oct_graph_destroy(g);
}

/* A table of ranges and parameters, through each form and back. */
TEST(written_and_read)
{
    oct_graph *g = layers();
    oct_calib *c = oct_calib_create();
    const want x = { "x", -127 * 0.02f, 127 * 0.02f, { 8, 128, 0.02f } }, r = { "r", 0, 255 * 0.01f, { 8, 0, 0.01f } };
    const want *both[] = { &x, &r };
    for (int i = 0; i < 2; i++) {
        oct_calib_tensor *t;
        GOOD(oct_calib_add(c, both[i]->name, &t, err));
        t->pinned = true;
        t->pin = (oct_range){ both[i]->lo, both[i]->hi };
        t->exact = both[i]->exact;
    }
    for (size_t i = 0; i < oct_encoding_form_count(); i++) {
        const oct_encoding_form *f = oct_encoding_form_at(i);
        const char *name = oct_encoding_form_name(f), *known = strcmp(name, "qnn") == 0 ? "aimet" : name;
        const bool json = strcmp(known, "aimet") == 0, scales = strncmp(name, "ort", 3) != 0;
        oct_encodings_match m;
        oct_buf b = OCT_BUF_INIT;
        size_t n;
        GOOD(oct_encodings_text(f, c, oct_observer_default(), g, &b, &n, err));
        assert_int_equal(n, 2);
        if (oct_buf_str(&b)[0] == '{' && !reads_json()) {
            oct_buf_free(&b);
            continue;
        }
        oct_calib *d = read_for(oct_buf_str(&b), g, known, &m);
        const oct_calib_tensor *tx = oct_calib_find(d, "x"), *tr = oct_calib_find(d, "r");
        assert_int_equal(tx->exact.bits, scales ? 8 : 0);
        if (scales)
            assert_float_equal(tx->exact.scale, 0.02f, strcmp(name, "ncnn") == 0 ? 2e-9 : 0);
        assert_int_equal(tx->exact.zero, scales ? 128 : 0);
        assert_float_equal(tx->pin.hi, x.hi, 1e-6);
        assert_float_equal(tr->pin.hi, r.hi, 1e-6);
        if (json)
            assert_pin(d, &r);
        else
            assert_float_equal(tr->pin.lo, strcmp(name, "ort") == 0 ? 0 : -r.hi, 1e-6);
        oct_calib_destroy(d);
        oct_buf_free(&b);
    }
    oct_calib_destroy(c);
    oct_graph_destroy(g);
}

/* ncnn's weights: 127 over the largest of each output channel, of each group where there are groups. */
TEST(weights_have_scales)
{
    oct_graph *g = layers();
    const float *w1 = g->value[oct_graph_find(g, "w1")].constant->data,
                *w2 = g->value[oct_graph_find(g, "w2")].constant->data;
    oct_calib *c = oct_calib_create();
    const char *names[] = { "x", "r" };
    for (int i = 0; i < 2; i++) {
        oct_calib_tensor *t;
        GOOD(oct_calib_add(c, names[i], &t, err));
        t->pinned = true;
        t->pin = (oct_range){ -1, 1 };
    }
    oct_buf b = OCT_BUF_INIT;
    size_t n;
    GOOD(oct_encodings_text(oct_encoding_form_find("ncnn"), c, oct_observer_default(), g, &b, &n, err));
    float got[6];
    assert_int_equal(sscanf(oct_buf_str(&b), "first_param_0 %f %f %f\ny_param_0 %f %f %f\nfirst 127\ny 127", got,
                            got + 1, got + 2, got + 3, got + 4, got + 5),
                     6);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(got[i], 127 / fmaxf(fabsf(w1[2 * i]), fabsf(w1[2 * i + 1])), 1e-4);
        assert_float_equal(got[3 + i], 127 / fabsf(w2[i]), 1e-4);
    }
    oct_buf_free(&b);
    oct_calib_destroy(c);
    oct_graph_destroy(g);
}

TEST(errors_name_the_place)
{
    static const struct {
        const char *text, *says;
        oct_status status;
    } each[] = {
        { "TRT-1\nx\n", "t:2:1: 'NAME: ' and", OCT_EMALFORMED },
        { "TRT-1\nx: 3f80000g\n", "t:2:1:", OCT_EMALFORMED },
        { "TRT-1\nx: bf800000\n", "t:2:4: -1 is no scale", OCT_EMALFORMED },
        { "TRT-1\nx: 7fc00000\n", "is no scale", OCT_EMALFORMED },
        { "TRT-1\nx: 3f800000\n\nx: 3f800000\n", "t:4:1: 'x' occurs twice", OCT_EMALFORMED },
        { "TRT-1\nz: 3f800000\n", "another model", OCT_EUSAGE },
        { "x 1\nr\n", "t:2:1: 'NAME NUMBER' is expected", OCT_EMALFORMED },
        { "x 1e39\n", "t:1:2: the number is too large", OCT_EMALFORMED },
        { "x nan\n", "known form", OCT_EMALFORMED },
        { "x_param_0 1\nfirst\n", "t:2:6: a number from 1e-38", OCT_EMALFORMED },
        { "x_param_0 1\nfirst -1\n", "t:2:7: '-1' is no number from", OCT_EMALFORMED },
        { "x_param_0 1\nfirst 1e-37\n", "no scale", OCT_EMALFORMED },
        { "x_param_0 1\nfirst 1 two\n", "t:2:9: 'two' is no number from", OCT_EMALFORMED },
        { "x_param_0 1\n first 1\n first 2\n", "t:3:2: 'first' occurs twice", OCT_EMALFORMED },
        { "x_param_0 1\nzeroth 1\n", "a layer of this one", OCT_EUSAGE },
        { "{\"activation_encodings\": \n[}", "t:2:2:", OCT_EMALFORMED },
        { "{\"activation_encodings\": 3}", "neither an object nor a list", OCT_EMALFORMED },
        { "{\"param_encodings\": {}}", "no ranges", OCT_EUNSUPPORTED },
        { "{\"activation_encodings\": {}, \"activation_encodings\": {}}", "duplicate", OCT_EMALFORMED },
        { "{\"activation_encodings\": [{\"bw\": 8}]}", "entry 0, counted from 0, has no name", OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": []}}", "activation_encodings: 'x': it has no encoding", OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 1}]}}", "'bitwidth' is not a whole number",
          OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8}]}}", "neither scale and offset nor min and max",
          OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"scale\": 1, \"offset\": -256}]}}",
          "not those of 8 bits", OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"scale\": -1, \"offset\": 0}]}}",
          "not those of 8 bits", OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"scale\": [], \"offset\": 0}]}}", "'scale' is empty",
          OCT_EMALFORMED },
        { "{\"encodings\": [{\"name\": \"x\", \"output_dtype\": \"int64\"}]}", "'int64'", OCT_EMALFORMED },
        { "{\"x\": {\"CLS\": \"TensorData\", \"avg\": 1}}", "tensor 'x': it has no 'lowest'", OCT_EMALFORMED },
        { "{\"CLS\": \"TensorsData\", \"data\": 1}", "'data' is not an object", OCT_EMALFORMED },
        { "{\"x\": {\"CLS\": \"TensorData\", \"lowest\": 2, \"highest\": 1}}", "not a range", OCT_EMALFORMED },
        { "{\"x\": {\"CLS\": \"TensorData\", \"lowest\": 0, \"highest\": 1e39}}", "not a range", OCT_EMALFORMED },
        { "{\"x\": {\"CLS\": \"TensorData\", \"lowest\": [], \"highest\": 1}}", "'lowest'", OCT_EMALFORMED },
        { "{\"x\": [1]}", "tensor 'x': expected a pair of numbers", OCT_EMALFORMED },
        { "{\"x\": [1, \"2\"]}", "tensor 'x': expected a pair of numbers", OCT_EMALFORMED },
        { "{\"version\": \"3.0.0\", \"activation_encodings\": []}", "'version' is '3.0.0', which is newer",
          OCT_EUNSUPPORTED },
        { "{\"activation_encodings\": {\"x\": [{\"scale\": 1, \"offset\": 0}]}}", "'x': it has no 'bitwidth'",
          OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"dtype\": \"bfloat\"}]}}", "'dtype' is 'bfloat'",
          OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"scale\": \"1\", \"offset\": 0}]}}", "not numbers",
          OCT_EMALFORMED },
        { "{\"activation_encodings\": [{\"name\": \"x\", \"bw\": 8, \"scale\": [1, 2], \"offset\": [0]}]}",
          "not as many of each", OCT_EMALFORMED },
        { "{\"activation_encodings\": {\"x\": [{\"bitwidth\": 8, \"scale\": 1, \"offset\": 0, \"min\": -9, \"max\": 255}]}}",
          "contradict min and max", OCT_EMALFORMED },
        { "", "known form", OCT_EMALFORMED },
    };
    oct_graph *g = layers();
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_encodings e;
        oct_encodings_match m;
        if (each[i].text[0] == '{' && !reads_json())
            continue;
        oct_calib *c = oct_calib_create();
        oct_status s = oct_encodings_parse(each[i].text, strlen(each[i].text), "t", &e, &err);
        if (s == OCT_OK)
            s = oct_encodings_take(&e, "t", g, c, &m, &err);
        if (s != each[i].status || !strstr(err.text, each[i].says))
            fail_msg("case %zu: %d '%s' lacks '%s'", i, s, err.text, each[i].says);
        oct_encodings_free(&e);
        oct_calib_destroy(c);
    }
    oct_graph_destroy(g);
}

/* Names that a form has no place for are refused, not written as another name. */
TEST(names_without_a_place)
{
    static const char *const bad[][2] = { { "tensorrt", "a\nb" }, { "ort-cache", "a\nb" } };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_calib *c = oct_calib_create();
        oct_calib_tensor *t;
        oct_buf b = OCT_BUF_INIT;
        size_t n;
        GOOD(oct_calib_add(c, bad[i][1], &t, err));
        t->pinned = true;
        t->pin = (oct_range){ -1, 1 };
        assert_int_equal(oct_encodings_text(oct_encoding_form_find(bad[i][0]), c, oct_observer_default(), NULL, &b, &n,
                                            NULL),
                         OCT_EUSAGE);
        oct_buf_free(&b);
        oct_calib_destroy(c);
    }
}

/* Each allocation fails in turn. */
TEST(no_memory)
{
    static const char text[] = "TRT-1\nx: 3c010a14\nr: 3d000000\n";
    oct_graph *g = layers();
    for (size_t i = 0; i < oct_encoding_form_count(); i++) {
        bool done = false;
        for (size_t k = 1; !done; k++) {
            oct_encodings e;
            oct_encodings_match m;
            oct_buf b = OCT_BUF_INIT;
            size_t n;
            oct_alloc_fail_at(k);
            oct_calib *c = oct_calib_create();
            oct_status s = oct_encodings_parse(text, sizeof text - 1, "t", &e, NULL);
            if (s == OCT_OK)
                s = c ? oct_encodings_take(&e, "t", g, c, &m, NULL) : OCT_ENOMEM;
            if (s == OCT_OK)
                s = oct_encodings_text(oct_encoding_form_at(i), c, oct_observer_default(), g, &b, &n, NULL);
            oct_alloc_fail_at(0);
            assert_true(s == OCT_OK || s == OCT_ENOMEM);
            done = s == OCT_OK;
            oct_buf_free(&b);
            oct_encodings_free(&e);
            oct_calib_destroy(c);
        }
    }
    oct_graph_destroy(g);
}

/* What a hint says of files that look like one form and are of another, or none. */
TEST(hints_say_what_to_do)
{
    static const struct {
        const char *text, *hint;
        size_t size; /* 0: all of the text */
    } each[] = {
        { "{\"x\": {\"CLS\": \"TensorData\", \"lowest\": NaN, \"highest\": 1}}", "calibrate again" },
        { "{\"x\": {\"CLS\": \"TensorData\", \"lowest\": -Infinity, \"highest\": 1}}", "calibrate again" },
        { "first 1\n", "a table of ncnn begins with the lines of weights" },
        { "x_param_0 1\nfirts 1\n", "did you mean 'first'?" },
        { "\x10\0\0\0\0\0\x06\0\x08\0", "calibration.json", 10 },
        { "{\"a\": 1}", "the known forms are calibration tables and ort" },
    };
    oct_graph *g = layers();
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_encodings e;
        oct_encodings_match m;
        if (each[i].text[0] == '{' && !reads_json())
            continue;
        oct_calib *c = oct_calib_create();
        if (oct_encodings_parse(each[i].text, each[i].size ? each[i].size : strlen(each[i].text), "t", &e, &err) ==
            OCT_OK)
            assert_int_equal(oct_encodings_take(&e, "t", g, c, &m, &err), OCT_EUSAGE);
        if (!strstr(err.hint, each[i].hint))
            fail_msg("case %zu: '%s' lacks '%s'", i, err.hint, each[i].hint);
        oct_encodings_free(&e);
        oct_calib_destroy(c);
    }
    oct_graph_destroy(g);
}

/* An entry with a slip in its name is told, with the tensor that it may be about. */
TEST(slips_are_named)
{
    oct_graph *g = layers();
    oct_encodings_match m;
    char text[200];
    oct_calib *c = read_for("x 2.5\nrr 6.0\nno such name 1\n", g, "ort-cache", &m);
    oct_encodings_say_others(&m, text, sizeof text);
    assert_string_equal(text, "entries of nothing that the model has: 2, the first 'rr' (is 'r' meant?)");
    oct_calib_destroy(c);
    c = read_for("x 2.5\nr 6.0\ny 1\na 1\nrr 1\n", g, "ort-cache", &m);
    oct_encodings_say_others(&m, text, sizeof text);
    assert_string_equal(text,
                        "entries of nothing that the model has: 1, the first 'rr'"); /* all tensors have entries */
    oct_calib_destroy(c);
    oct_graph_destroy(g);
}
