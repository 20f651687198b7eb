/* Reading .tflite: what was written is read as it was, and wrong bytes are an error that says where. */
#include "tflite/read/tflite_read.h"
#include "tflite/tfl_read.h"
#include "tflite/tflite.h"

#include "unit.h"

#include "net.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- a file ---- */

/* A model with scales by channel, zero points, an open batch, options of both widths and reals. */
static oct_graph *network(void)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "N,4,8,9");
    const int c = NET_NODE(g, "Conv", "c", "c", x, net_random(g, "w", "6,4,3,3", 3));
    NET_INTS(g, "strides", 2, 1);
    const int l = NET_NODE(g, "LeakyRelu", "l", "l", c);
    net_output(g, NET_NODE(g, "Flatten", "flat", "y", l));
    GOOD(oct_graph_sort(g, err));
    GOOD(oct_infer_shapes(g, err));
    return g;
}

typedef struct file {
    uint8_t *data;
    size_t size;
} file;

static file written(const oct_tfl_model *m)
{
    char path[] = "/tmp/octet-test-XXXXXX";
    const int fd = mkstemp(path);
    oct_out out;
    char *data;
    file f;
    assert_true(fd >= 0);
    close(fd);
    GOOD(oct_out_open(&out, path, err));
    GOOD(oct_tfl_model_write(m, &out, err));
    GOOD(oct_out_commit(&out, err));
    GOOD(oct_read_all(path, (size_t)1 << 30, &data, &f.size, err));
    f.data = (uint8_t *)data;
    unlink(path);
    return f;
}

/* Sets scales by channel on the weights and a zero point on the input, as a quantized file has them. */
static void quantize(oct_tfl_model *m)
{
    static float by_channel[6] = { 0.5F, 0.25F, 1, 2, 3, 4 };
    static float one[1] = { 0.125F };
    static int32_t zeros[6], point[1] = { -7 };
    static int8_t bytes[6 * 3 * 3 * 4];
    static const oct_quant wide = { .n = 6, .axis = 0, .scale = by_channel, .zp = zeros, .dtype = OCT_S8 };
    static const oct_quant narrow = { .n = 1, .scale = one, .zp = point, .dtype = OCT_S8 };
    oct_tfl_tensor *w = &m->tensor[m->op[0].in[1]], *x = &m->tensor[m->input[0].tensor];
    *x = (oct_tfl_tensor){ .name = x->name,
                           .type = OCT_TFL_INT8,
                           .rank = x->rank,
                           .open = x->open,
                           .quant = &narrow,
                           .dims = { 1, 8, 9, 4 } };
    *w = (oct_tfl_tensor){ .name = w->name,
                           .type = OCT_TFL_INT8,
                           .rank = 4,
                           .open = -1,
                           .quant = &wide,
                           .dims = { 6, 3, 3, 4 },
                           .data = bytes,
                           .bytes = sizeof bytes };
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (int8_t)(i * 7);
}

static file a_file(void)
{
    oct_graph *g = network();
    oct_tflite t;
    GOOD(oct_tflite_make(g, "test", &t, err));
    quantize(&t.model);
    const file f = written(&t.model);
    oct_tflite_free(&t);
    oct_graph_destroy(g);
    return f;
}

/* ---- what was written ---- */

static void same_tensor(const oct_tfl_tensor *a, const oct_tfl_tensor *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
    assert_int_equal(a->open, b->open);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->data != NULL, b->data != NULL);
    if (a->data)
        assert_memory_equal(a->data, b->data, a->bytes);
    assert_int_equal(a->quant != NULL, b->quant != NULL);
    assert_true(!a->quant || oct_quant_same(a->quant, b->quant));
}

static void same_operator(const oct_tfl_operator *a, const oct_tfl_operator *b)
{
    assert_int_equal(a->code, b->code);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->n_in, b->n_in);
    assert_int_equal(a->n_out, b->n_out);
    assert_memory_equal(a->in, b->in, (size_t)a->n_in * sizeof *a->in);
    assert_memory_equal(a->out, b->out, (size_t)a->n_out * sizeof *a->out);
    assert_int_equal(a->n_fields, b->n_fields);
    for (size_t i = 0; i < a->n_fields; i++)
        assert_int_equal(oct_tfl_option(b, a->field[i].slot, -77), (int32_t)a->field[i].bits);
}

TEST(reads_what_was_written)
{
    oct_graph *g = network();
    oct_arena *arena = oct_arena_create();
    oct_tflite t;
    oct_tfl_model m;
    GOOD(oct_tflite_make(g, "test", &t, err));
    quantize(&t.model);
    const file f = written(&t.model);
    GOOD(oct_tfl_model_read(f.data, f.size, "m.tflite", arena, &m, err));
    assert_int_equal(m.n_tensor, t.model.n_tensor);
    assert_int_equal(m.n_op, t.model.n_op);
    for (size_t i = 0; i < m.n_tensor; i++)
        same_tensor(&t.model.tensor[i], &m.tensor[i]);
    for (size_t i = 0; i < m.n_op; i++)
        same_operator(&t.model.op[i], &m.op[i]);
    assert_int_equal(m.n_input, 1);
    assert_string_equal(m.input[0].name, "x");
    assert_int_equal(m.input[0].tensor, t.model.input[0].tensor);
    assert_string_equal(m.output[0].name, "y");
    assert_string_equal(m.description, "test");
    assert_int_equal(m.n_subgraph, 1);
    const file again = written(&m);
    assert_int_equal(again.size, f.size);
    assert_memory_equal(again.data, f.data, f.size);
    oct_free(again.data);
    oct_free(f.data);
    oct_arena_destroy(arena);
    oct_tflite_free(&t);
    oct_graph_destroy(g);
}

/* Bytes at any address: what has to be aligned is copied. */
TEST(reads_bytes_of_any_alignment)
{
    const file f = a_file();
    uint8_t *moved = oct_alloc(f.size + 3);
    for (size_t by = 1; by <= 3; by++) {
        oct_arena *arena = oct_arena_create();
        oct_tfl_model m, n;
        memcpy(moved + by, f.data, f.size);
        GOOD(oct_tfl_model_read(f.data, f.size, "m.tflite", arena, &m, err));
        GOOD(oct_tfl_model_read(moved + by, f.size, "m.tflite", arena, &n, err));
        for (size_t i = 0; i < m.n_tensor; i++) {
            same_tensor(&m.tensor[i], &n.tensor[i]);
            assert_int_equal((uintptr_t)n.tensor[i].data % oct_tfl_type_bytes(n.tensor[i].type), 0);
        }
        oct_arena_destroy(arena);
    }
    oct_free(moved);
    oct_free(f.data);
}

/* ---- wrong bytes ---- */

static bool said_where(const oct_err *err)
{
    return strncmp(err->text, "m.tflite: ", 10) == 0 && err->hint[0];
}

/* The graph of a file, or why there is none. */
static oct_status graph_of(const void *data, size_t size, oct_graph **g, oct_buf *notes, oct_err *err)
{
    const char *maker;
    *g = oct_graph_create();
    assert_non_null(*g);
    return oct_tflite_read(data, size, *g, &maker, notes, err);
}

/* Each byte in turn gets other values, and the file ends at each place: a model or an error with a remedy. So it is for
 * the graph, which holds. */
TEST(any_byte_may_be_wrong)
{
    const file f = a_file();
    static const uint8_t by[] = { 1, 0x80, 0xff };
    size_t refused = 0;
    for (size_t i = 0; i < f.size; i++)
        for (size_t k = 0; k <= sizeof by; k++) {
            oct_arena *arena = oct_arena_create();
            oct_err err = OCT_ERR_INIT;
            oct_tfl_model m;
            const size_t size = k < sizeof by ? f.size : i;
            uint8_t *copy = oct_alloc(size); /* of exactly that size, for the sanitizer */
            memcpy(copy, f.data, size);
            if (k < sizeof by)
                copy[i] ^= by[k];
            const oct_status s = oct_tfl_model_read(copy, size, "m.tflite", arena, &m, &err);
            refused += s != OCT_OK;
            if (s != OCT_OK && ((s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED) || !said_where(&err)))
                fail_msg("byte %zu, %zu: status %d: %s", i, k, (int)s, err.text);
            oct_buf notes = OCT_BUF_INIT;
            oct_graph *g;
            oct_err why = OCT_ERR_INIT;
            const oct_status t = graph_of(copy, size, &g, &notes, &why);
            if (t == OCT_OK)
                assert_int_equal(oct_graph_check(g, &why), OCT_OK);
            else if (t != OCT_EMALFORMED && t != OCT_EUNSUPPORTED)
                fail_msg("byte %zu, %zu: status %d: %s", i, k, (int)t, why.text);
            oct_graph_destroy(g);
            oct_buf_free(&notes);
            oct_free(copy);
            oct_arena_destroy(arena);
        }
    assert_true(refused > f.size);
    oct_free(f.data);
}

static void refuse(const oct_tfl_model *m, const char *text)
{
    oct_arena *arena = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    oct_tfl_model n;
    const file f = written(m);
    assert_int_equal(oct_tfl_model_read(f.data, f.size, "m.tflite", arena, &n, &err), OCT_EMALFORMED);
    if (!strstr(err.text, text) || !said_where(&err))
        fail_msg("%s", err.text);
    oct_free(f.data);
    oct_arena_destroy(arena);
}

/* What is inconsistent is named. */
TEST(names_what_is_wrong)
{
    oct_graph *g = network();
    oct_tflite t;
    static float none[1] = { 0 };
    static int32_t large[1] = { 200 }, zero[1];
    GOOD(oct_tflite_make(g, "test", &t, err));
    oct_tfl_model *m = &t.model;
    quantize(m);
    oct_tfl_tensor *w = &m->tensor[m->op[0].in[1]], *x = &m->tensor[m->input[0].tensor];
    const oct_tfl_tensor right = *w, input = *x;
    w->dims[1] = 4;
    refuse(m, "its type and shape ask for 288");
    *w = right;
    w->axis = 1;
    refuse(m, "it has 6 scales for its dimension 1");
    *w = right;
    x->quant = &(oct_quant){ .n = 1, .scale = none, .zp = zero, .dtype = OCT_S8 };
    refuse(m, "'x': its scale 0 is 0");
    x->quant = &(oct_quant){ .n = 1, .scale = input.quant->scale, .zp = large, .dtype = OCT_S8 };
    refuse(m, "'x': its zero point 0 is 200");
    *x = input;
    const int in = m->op[0].in[0];
    m->op[0].in[0] = 1000;
    refuse(m, "operator #0 (CONV_2D): its input 0 is tensor 1000");
    m->op[0].in[0] = m->op[1].out[0];
    refuse(m, "its input 0 is made by no operator before it");
    m->op[0].in[0] = in;
    m->op[1].out[0] = m->op[0].out[0];
    refuse(m, "its output 0 is there already");
    oct_tflite_free(&t);
    oct_graph_destroy(g);
}

/* ---- graphs ---- */

/* "Conv LeakyRelu ..." of a graph. */
static const char *operators(const oct_graph *g, char dst[400])
{
    size_t n = 0;
    dst[0] = 0;
    for (size_t i = 0; i < g->n_order && n < 380; i++)
        n += (size_t)snprintf(dst + n, 400 - n, "%s%s", i ? " " : "", g->node[g->order[i]].op);
    return dst;
}

/* The inputs and outputs are as they were, and transposes that the file needs are gone. */
TEST(graph_is_that_which_was_written)
{
    oct_graph *g = network(), *read;
    oct_buf notes = OCT_BUF_INIT;
    oct_tflite t;
    char text[400], shape[160];
    GOOD(oct_tflite_make(g, "test", &t, err));
    const file f = written(&t.model);
    GOOD(graph_of(f.data, f.size, &read, &notes, err));
    GOOD(oct_graph_check(read, err));
    assert_string_equal(operators(read, text), "Conv LeakyRelu Reshape");
    assert_string_equal(oct_buf_str(&notes),
                        "input 'x' is [1,4,8,9], with the channels first; in the file they are last\n");
    assert_string_equal(oct_shape_text(&read->value[read->input[0]].shape, shape, sizeof shape), "[batch,4,8,9]");
    assert_string_equal(read->value[read->output[0]].name, "y");
    const oct_node *conv = &read->node[read->order[0]];
    const oct_tensor *was = g->value[g->node[g->order[0]].in[1]].constant, *is = read->value[conv->in[1]].constant;
    assert_int_equal(was->bytes, is->bytes);
    assert_memory_equal(was->data, is->data, was->bytes);
    oct_graph_destroy(read);
    oct_buf_free(&notes);
    oct_free(f.data);
    oct_tflite_free(&t);
    oct_graph_destroy(g);
}

/* Integers are the reals that they mean, between their borders; weights keep their bytes and scales. */
TEST(integers_become_reals)
{
    const file f = a_file();
    oct_graph *g;
    oct_buf notes = OCT_BUF_INIT;
    char text[400];
    GOOD(graph_of(f.data, f.size, &g, &notes, err));
    assert_string_equal(operators(g, text), "QuantizeLinear DequantizeLinear DequantizeLinear Conv LeakyRelu Reshape");
    assert_int_equal(g->value[g->input[0]].dtype, OCT_F32);
    const oct_node *q = &g->node[g->order[0]], *w = &g->node[g->order[2]];
    assert_true(*(const float *)g->value[q->in[1]].constant->data == 0.125F);
    assert_int_equal(*(const int8_t *)g->value[q->in[2]].constant->data, -7);
    const int8_t *bytes = g->value[w->in[0]].constant->data;
    for (int i = 0; i < 6 * 4 * 3 * 3; i++) { /* [6,3,3,4] became [6,4,3,3] */
        const int o = i / 36, c = i / 9 % 4, at = i % 9;
        assert_int_equal(bytes[i], (int8_t)(((o * 9 + at) * 4 + c) * 7));
    }
    assert_true(((const float *)g->value[w->in[1]].constant->data)[3] == 2);
    assert_int_equal(oct_node_int(w, "axis", 1), 0);
    oct_graph_destroy(g);
    oct_buf_free(&notes);
    oct_free(f.data);
}

TEST(without_memory)
{
    const file f = a_file();
    oct_status s = OCT_ENOMEM;
    size_t n = 0;
    while (s != OCT_OK) {
        oct_err err = OCT_ERR_INIT;
        oct_alloc_fail_at(++n);
        oct_buf notes = OCT_BUF_INIT;
        const char *maker;
        oct_graph *g = oct_graph_create();
        s = g ? oct_tflite_read(f.data, f.size, g, &maker, &notes, &err) : OCT_ENOMEM;
        oct_alloc_fail_at(0);
        oct_buf_free(&notes);
        oct_graph_destroy(g);
        assert_true(s == OCT_OK || s == OCT_ENOMEM);
    }
    assert_true(n > 1);
    oct_free(f.data);
}
