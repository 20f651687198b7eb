/* .tflite models: bytes of flatbuffers, orders of axes, what is refused, limits and lack of memory. That files run is
 * tested by tests/checks/check_tflite.py. */
#include "tflite/tflite.h"

#include "unit.h"

#include "net.h"

/* ---- flatbuffers ---- */

static uint32_t word(const oct_flat *f, size_t at)
{
    uint32_t x;
    assert_true(at + sizeof x <= f->b.len);
    memcpy(&x, f->b.data + at, sizeof x);
    return x;
}

static uint16_t half(const oct_flat *f, size_t at)
{
    uint16_t x;
    assert_true(at + sizeof x <= f->b.len);
    memcpy(&x, f->b.data + at, sizeof x);
    return x;
}

/* The place of a table's field, by the rules of the format: the layout stands as far in front as the table says. */
static size_t field(const oct_flat *f, size_t table, int slot)
{
    const size_t layout = table - word(f, table);
    const int slots = (half(f, layout) - 4) / 2;
    return slot < slots && half(f, layout + 4 + 2 * (size_t)slot) ? table + half(f, layout + 4 + 2 * (size_t)slot) : 0;
}

TEST(tables_and_vectors)
{
    oct_flat f = { .b = OCT_BUF_INIT };
    size_t at[OCT_FLAT_SLOTS];
    const int64_t wide[] = { 5, -7 };
    oct_buf_add(&f.b, "\0\0\0\0\0\0", 6); /* an odd place to begin */
    const oct_flat_field fields[] = { { 0, 1, 9 }, { 2, 0, 0 }, { 5, 4, 0x12345678 } };
    const size_t table = oct_flat_table(&f, fields, 3, at);
    const size_t vector = oct_flat_vector(&f, wide, 2, 8), text = oct_flat_string(&f, "abc");
    oct_flat_point(&f, at[2], vector);
    const size_t second = oct_flat_table(&f, fields, 3, NULL);
    assert_false(f.b.failed);
    assert_int_equal(table % 4, 0);
    assert_int_equal((vector + 4) % 8, 0);
    assert_int_equal(f.b.data[field(&f, table, 0)], 9);
    assert_int_equal(field(&f, table, 1), 0);
    assert_int_equal(word(&f, field(&f, table, 5)), 0x12345678);
    assert_int_equal(field(&f, table, 9), 0);
    assert_int_equal(field(&f, table, 2) + word(&f, field(&f, table, 2)), vector);
    assert_int_equal(word(&f, vector), 2);
    assert_memory_equal(f.b.data + vector + 4, wide, sizeof wide);
    assert_int_equal(word(&f, text), 3);
    assert_string_equal(f.b.data + text + 4, "abc");
    /* both tables have one layout */
    assert_int_equal(table - word(&f, table), second - word(&f, second));
    oct_buf_free(&f.b);
}

/* ---- orders of axes ---- */

/* "CONV_2D RELU ..." of what a graph becomes. */
static const char *operators(oct_graph *g, char dst[400], oct_buf *notes)
{
    oct_tflite t;
    size_t n = 0;
    GOOD(oct_graph_sort(g, err));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_tflite_make(g, "test", &t, err));
    dst[0] = 0;
    for (size_t i = 0; i < t.model.n_op && n < 380; i++)
        n += (size_t)snprintf(dst + n, 400 - n, "%s%s", i ? " " : "", oct_tfl_code_name(t.model.op[i].code));
    if (notes)
        oct_buf_puts(notes, oct_buf_str(&t.notes));
    oct_tflite_free(&t);
    return dst;
}

static int conv(oct_graph *g, const char *name, int x, const char *weights)
{
    char w[20];
    snprintf(w, sizeof w, "%s_w", name);
    return NET_NODE(g, "Conv", name, name, x, net_random(g, w, weights, 3));
}

TEST(transposes_cancel)
{
    char text[400];
    oct_buf notes = OCT_BUF_INIT;
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,9,8,4");
    const int turned = NET_NODE(g, "Transpose", "t", "turned", x);
    NET_INTS(g, "perm", 0, 3, 1, 2);
    const int y = NET_NODE(g, "Relu", "r", "y", conv(g, "c", turned, "6,4,3,3"));
    net_output(g, NET_NODE(g, "Transpose", "b", "back", y));
    NET_INTS(g, "perm", 0, 2, 3, 1);
    assert_string_equal(operators(g, text, &notes), "CONV_2D");
    assert_string_equal(oct_buf_str(&notes), "");
    oct_buf_free(&notes);
    oct_graph_destroy(g);
}

TEST(what_is_left_is_named)
{
    char text[400];
    oct_buf notes = OCT_BUF_INIT;
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,4,8,9");
    net_output(g, NET_NODE(g, "Flatten", "flat", "y", conv(g, "c", x, "6,4,3,3")));
    assert_string_equal(operators(g, text, &notes), "CONV_2D TRANSPOSE RESHAPE");
    assert_string_equal(oct_buf_str(&notes),
                        "in the file input 'x' is [1,8,9,4]: NHWC\nTRANSPOSE of 'c' before node 'flat' (Flatten)\n");
    oct_buf_free(&notes);
    oct_graph_destroy(g);
}

/* Channels that are one position each need no TRANSPOSE to become a vector. */
TEST(axes_of_one_element)
{
    char text[400];
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,4,8,9");
    const int mean = NET_NODE(g, "GlobalAveragePool", "p", "mean", conv(g, "c", x, "6,4,3,3"));
    net_output(g, NET_NODE(g, "Flatten", "flat", "y", mean));
    assert_string_equal(operators(g, text, NULL), "CONV_2D AVERAGE_POOL_2D RESHAPE");
    oct_graph_destroy(g);
}

/* ---- LSTM ---- */

/* x[7,1,6] -> LSTM of 5 -> its last step; turned: x[1,7,6] behind a Transpose. b: of all biases. */
static oct_graph *lstm(bool turned, float b)
{
    oct_graph *g = net_graph(14);
    float bias[40];
    int x = net_input(g, "x", OCT_F32, turned ? "1,7,6" : "7,1,6"), last;
    if (turned) {
        x = NET_NODE(g, "Transpose", "t", "xt", x);
        NET_INTS(g, "perm", 1, 0, 2);
    }
    for (int i = 0; i < 40; i++)
        bias[i] = b;
    NET_NODE(g, "LSTM", "lstm", "steps", x, net_random(g, "w", "1,20,6", 1), net_random(g, "r", "1,20,5", 2),
             net_const(g, "b", OCT_F32, "1,40", bias));
    net_int(g, "hidden_size", 5);
    GOOD(oct_graph_add_value(g, "last", OCT_UNDEFINED, &last, err));
    GOOD(oct_graph_set_output(g, net_last, 1, last, err));
    net_output(g, last);
    return g;
}

/* Sequences stay where they stand, and only the last step is cut out. */
TEST(lstm_of_either_order)
{
    char text[400];
    for (int turned = 0; turned < 2; turned++) {
        oct_graph *g = lstm(turned, 0.25F);
        oct_tflite t;
        assert_string_equal(operators(g, text, NULL), turned ? "UNIDIRECTIONAL_SEQUENCE_LSTM SLICE RESHAPE"
                                                             : "UNIDIRECTIONAL_SEQUENCE_LSTM SLICE");
        GOOD(oct_tflite_make(g, "test", &t, err));
        const oct_tfl_operator *o = &t.model.op[0];
        const float *w = g->value[oct_graph_find(g, "w")].constant->data, *own = t.model.tensor[o->in[4]].data;
        assert_int_equal(oct_tfl_option(o, OCT_TFL_LSTM_TIME_MAJOR, 0), !turned);
        assert_true(t.model.tensor[o->in[18]].variable && t.model.tensor[o->in[19]].variable);
        assert_true(own[3] == w[30 + 3]);                                        /* gate o is ONNX's second */
        assert_true(((const float *)t.model.tensor[o->in[13]].data)[0] == 0.5F); /* the sum of both biases */
        assert_int_equal(o->n_within, 0);
        oct_tflite_free(&t);
        oct_graph_destroy(g);
    }
}

/* What .tflite does not have is refused, and named. */
TEST(lstm_refused)
{
    static const char *const said[] = { "direction reverse", "clip", "input_forget", "Y_c", "first state" };
    for (int i = 0; i < (int)OCT_COUNT(said); i++) {
        oct_graph *g = lstm(false, 0);
        oct_err e = OCT_ERR_INIT;
        oct_tflite t;
        int cells;
        if (i == 0) /* alone it would become an LSTM that runs forward */
            net_str(g, "direction", "reverse");
        if (i <= 1)
            net_float(g, "clip", 1);
        if (i == 2)
            net_int(g, "input_forget", 1);
        if (i == 3) {
            GOOD(oct_graph_add_value(g, "cells", OCT_UNDEFINED, &cells, err));
            GOOD(oct_graph_set_output(g, net_last, 2, cells, err));
            net_output(g, cells);
        }
        if (i == 4)
            GOOD(oct_graph_set_input(g, net_last, 5, net_random(g, "h", "1,1,5", 4), err));
        GOOD(oct_graph_sort(g, err));
        GOOD(oct_infer_shapes(g, err));
        assert_int_equal(oct_tflite_make(g, "test", &t, &e), OCT_EUNSUPPORTED);
        assert_non_null(strstr(e.text, said[i]));
        assert_non_null(strstr(e.text, "'lstm' (LSTM)"));
        assert_true(e.hint[0]);
        oct_tflite_free(&t);
        oct_graph_destroy(g);
    }
}

/* ---- what is refused ---- */

TEST(names_node_and_remedy)
{
    oct_err said = OCT_ERR_INIT;
    oct_tflite t;
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,4");
    net_output(g, NET_NODE(g, "Erf", "curve", "y", x));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_tflite_make(g, "test", &t, &said), OCT_EUNSUPPORTED);
    assert_non_null(strstr(said.text, "'curve' (Erf)"));
    assert_true(said.hint[0]);
    oct_tflite_free(&t);
    oct_graph_destroy(g);
}

/* Sizes are added before anything is written; the constants' bytes are not looked at. */
TEST(two_gigabytes)
{
    oct_err said = OCT_ERR_INIT;
    uint64_t bytes = 0;
    oct_tfl_tensor tensor[3];
    oct_tfl_model m = { .tensor = tensor, .n_tensor = 2, .name = "large", .description = "" };
    for (int i = 0; i < 3; i++)
        tensor[i] = (oct_tfl_tensor){ .name = "t",
                                      .type = OCT_TFL_INT8,
                                      .rank = 1,
                                      .dims = { 1 << 30 },
                                      .open = -1,
                                      .data = &said,
                                      .bytes = (size_t)1 << 30 };
    tensor[1].bytes -= 4096;
    GOOD(oct_tfl_model_size(&m, &bytes, err));
    assert_true(bytes > ((uint64_t)1 << 31) - 4096 && bytes < (uint64_t)1 << 31);
    m.n_tensor = 3;
    assert_int_equal(oct_tfl_model_size(&m, &bytes, &said), OCT_EUNSUPPORTED);
    assert_non_null(strstr(said.text, "2 GB"));
    assert_true(said.hint[0]);
}

/* Every allocation fails in turn. */
TEST(without_memory)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,4,8,9");
    net_output(g, NET_NODE(g, "Flatten", "flat", "y", conv(g, "c", x, "6,4,3,3")));
    GOOD(oct_graph_sort(g, err));
    GOOD(oct_infer_shapes(g, err));
    oct_status s = OCT_ENOMEM;
    size_t n = 0;
    while (s != OCT_OK) {
        oct_err err = OCT_ERR_INIT;
        oct_tflite t;
        uint64_t bytes;
        oct_alloc_fail_at(++n);
        s = oct_tflite_make(g, "test", &t, &err);
        if (s == OCT_OK)
            s = oct_tfl_model_size(&t.model, &bytes, &err);
        oct_alloc_fail_at(0);
        oct_tflite_free(&t);
        if (s != OCT_OK && s != OCT_ENOMEM)
            fail_msg("allocation %zu: status %d: %s", n, (int)s, err.text);
    }
    assert_true(n > 10);
    oct_graph_destroy(g);
}
