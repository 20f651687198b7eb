/* Models whose constants are given as arrays beside the message. */
#include "unit.h"

#include "built_model.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static octet_model *load_graph(octet *o, const message *p, const octet_array *constants, size_t n, int threads)
{
    octet_model *m;
    if (octet_model_load_graph(o, p->v, p->n, constants, n, threads, &m) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    return m;
}

static const octet_array *run(octet *o, octet_model *m, const octet_array *in, size_t n_in)
{
    const octet_array *y;
    size_t n;
    if (octet_model_run(o, m, in, n_in, &y, &n) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    return y;
}

/* ---- types ---- */

/* w[4] as bytes, and the numbers that these are. */
typedef struct typed_constant {
    int type;
    size_t bytes;
    unsigned char v[32];
    float is[4];
} typed_constant;

static const typed_constant typed[] = {
    { 1, 16, { 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0xc0 }, { 1, 2, -3, 0 } },
    { 2, 4, { 1, 2, 3, 255 }, { 1, 2, 3, 255 } },
    { 3, 4, { 1, 2, 3, 255 }, { 1, 2, 3, -1 } },
    { 4, 8, { 1, 0, 2, 0, 0, 1, 255, 255 }, { 1, 2, 256, 65535 } },
    { 5, 8, { 1, 0, 2, 0, 0, 1, 255, 255 }, { 1, 2, 256, -1 } },
    { 6, 16, { 1, 0, 0, 0, 0, 0, 1, 0, 254, 255, 255, 255 }, { 1, 65536, -2, 0 } },
    { 7,
      32,
      { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255 },
      { 1, 4294967296, -2, 0 } },
    { 9, 4, { 1, 0, 1, 1 }, { 1, 0, 1, 1 } },
    { 10, 8, { 0, 0x3c, 0, 0x40, 0, 0xc2 }, { 1, 2, -3, 0 } },
    { 11, 32, { [6] = 0xf0, 0x3f, [15] = 0x40, [22] = 0x08, 0xc0 }, { 1, 2, -3, 0 } },
    { 12, 16, { 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 128 }, { 1, 65536, 2147483648, 0 } },
    { 13, 32, { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, [23] = 128 }, { 1, 4294967296, 0x1p63f, 0 } },
    { 16, 8, { 0x80, 0x3f, 0, 0x40, 0x40, 0xc0 }, { 1, 2, -3, 0 } },
    { 17, 4, { 0x38, 0x40, 0xc4 }, { 1, 2, -3, 0 } },
    { 18, 4, { 0x40, 0x48, 0xcc }, { 1, 2, -3, 0 } },
    { 19, 4, { 0x3c, 0x40, 0xc2 }, { 1, 2, -3, 0 } },
    { 20, 4, { 0x40, 0x44, 0xc6 }, { 1, 2, -3, 0 } },
    { 21, 2, { 0x21, 0xf3 }, { 1, 2, 3, 15 } },
    { 22, 2, { 0xe1, 0x83 }, { 1, -2, 3, -8 } },
    { 23, 2, { 0x42, 0x0d }, { 1, 2, -3, 0 } },
    { 24, 4, { 0x7f, 0x80, 0x7e, 0x81 }, { 1, 2, 0.5, 4 } },
    { 25, 1, { 0x39 }, { 1, 2, 3, 0 } },
    { 26, 1, { 0x39 }, { 1, -2, -1, 0 } },
};

/* y = a + Cast(w): float32[N,4]. */
static message sum_model(octet_type type, int rank, const int64_t *dims)
{
    message graph = { 0 }, cast = node_message("Cast", "w", "f");
    put_attr_int(&cast, "to", OCTET_FLOAT32);
    put_part(&graph, GRAPH_NODE, cast);
    put_node(&graph, "Add", "a f", "y");
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("w", type, rank, dims));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    return model_message(graph, 25);
}

static const float ten[4] = { 10, 10, 10, 10 };
static const octet_array ten_array = { .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, 4 }, .data = ten };

/* Wherever the bytes lie: at `off` bytes behind an aligned address. */
TEST(each_type_is_read)
{
    octet *o = octet_open();
    for (size_t i = 0; i < LENGTH(typed); i++)
        for (size_t off = 0; off < 2; off++) {
            const typed_constant *t = &typed[i];
            _Alignas(64) unsigned char bytes[33];
            memcpy(bytes + off, t->v, t->bytes);
            message p = sum_model((octet_type)t->type, 1, (const int64_t[]){ 4 });
            const octet_array w = { .name = "w", (octet_type)t->type, .rank = 1, .dims = { 4 }, .data = bytes + off };
            octet_model *m = load_graph(o, &p, &w, 1, 1);
            const float *y = run(o, m, &ten_array, 1)->data;
            for (int k = 0; k < 4; k++)
                if (y[k] != 10 + t->is[k])
                    fail_msg("type %d at %zu: element %d is %g, wanted %g", t->type, off, k, (double)y[k],
                             (double)(10 + t->is[k]));
            octet_model_free(m);
            message_free(&p);
        }
    octet_close(o);
}

/* A constant is no input, and where the graph leaves dimensions open those of the array count. */
TEST(constants_are_no_inputs)
{
    octet *o = octet_open();
    for (int open = 0; open < 3; open++) {
        static const int64_t dims[3][2] = { { 1, 4 }, { -1, 4 }, { 0 } };
        message p = sum_model(OCTET_FLOAT32, open < 2 ? 2 : -1, dims[open]);
        octet_array w = ten_array;
        w.name = "w";
        octet_model *m = load_graph(o, &p, &w, 1, 1);
        assert_string_equal(octet_model_input(m, 0)->name, "a");
        assert_null(octet_model_input(m, 1));
        assert_int_equal(((const float *)run(o, m, &ten_array, 1)->data)[3], 20);
        octet_model_free(m);
        /* without the array it is an input */
        m = load_graph(o, &p, NULL, 0, 1);
        assert_string_equal(octet_model_input(m, 1)->name, "w");
        const octet_array both[2] = { ten_array, w };
        assert_int_equal(((const float *)run(o, m, both, 2)->data)[3], 20);
        octet_model_free(m);
        message_free(&p);
    }
    octet_close(o);
}

TEST(an_empty_constant_needs_no_data)
{
    octet *o = octet_open();
    message graph = { 0 }, join = node_message("Concat", "a w", "y");
    put_attr_int(&join, "axis", 0);
    put_part(&graph, GRAPH_NODE, join);
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("w", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    message p = model_message(graph, 17);
    const octet_array w = { .name = "w", .type = OCTET_FLOAT32, .rank = 2, .dims = { 0, 4 } };
    octet_model *m = load_graph(o, &p, &w, 1, 1);
    const octet_array *y = run(o, m, &ten_array, 1);
    assert_int_equal(y->dims[0], 1);
    assert_memory_equal(y->data, ten, sizeof ten);
    octet_model_free(m);
    message_free(&p);
    octet_close(o);
}

/* The sizes come with the run, so Resize runs when they are known; its regions are an array without elements. */
TEST(an_empty_input_needs_no_data)
{
    static const float scales[] = { 1, 2 };
    octet *o = octet_open();
    message graph = { 0 };
    put_part(&graph, GRAPH_NODE, node_message("Resize", "a r s", "y"));
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ 1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("r", OCTET_FLOAT32, 1, (const int64_t[]){ 0 }));
    put_part(&graph, GRAPH_INPUT, value_info("s", OCTET_FLOAT32, 1, (const int64_t[]){ 2 }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, -1 }));
    message p = model_message(graph, 17);
    const octet_array in[] = { ten_array,
                               { .name = "r", .type = OCTET_FLOAT32, .rank = 1, .dims = { 0 } },
                               { .name = "s", .type = OCTET_FLOAT32, .rank = 1, .dims = { 2 }, .data = scales } };
    octet_model *m = load_graph(o, &p, NULL, 0, 1);
    const octet_array *y = run(o, m, in, 3);
    assert_int_equal(y->dims[1], 8);
    assert_int_equal(((const float *)y->data)[7], ten[3]);
    octet_model_free(m);
    message_free(&p);
    octet_close(o);
}

/* What does not depend on the values of a run is found out before it. */
TEST(a_model_is_prepared_for_shapes)
{
    octet *o = octet_open();
    message graph = { 0 };
    put_node(&graph, "Add", "a b", "y");
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, -1 }));
    put_part(&graph, GRAPH_INPUT, value_info("b", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    message p = model_message(graph, 17);
    octet_model *m = load_graph(o, &p, NULL, 0, 1);
    octet_array in[2] = { ten_array, ten_array }, shape[2] = { ten_array, ten_array };
    shape[0].data = shape[1].data = NULL;
    assert_int_equal(octet_model_prepare(o, m, shape, 2), OCTET_OK);
    assert_int_equal(((const float *)run(o, m, in, 2)->data)[3], 20);
    shape[0].dims[1] = 3;
    assert_int_equal(octet_model_prepare(o, m, shape, 2), OCTET_MALFORMED);
    assert_non_null(strstr(octet_error(o), "Add"));
    assert_int_equal(octet_model_prepare(o, m, shape, 1), OCTET_MALFORMED); /* an input is missing */
    assert_int_equal(octet_model_prepare(o, m, NULL, 2), OCTET_USAGE);
    assert_int_equal(octet_model_prepare(o, NULL, shape, 2), OCTET_USAGE);
    assert_int_equal(octet_model_prepare(NULL, m, shape, 2), OCTET_USAGE);
    assert_int_equal(((const float *)run(o, m, in, 2)->data)[0], 20); /* it still runs */
    octet_model_free(m);
    message_free(&p);
    octet_close(o);
}

/* ---- outputs in memory of the caller's ---- */

enum { OUTPUTS = 4, ROOM = 8 };

typedef struct places {
    float *at[OUTPUTS]; /* NULL: nobody wants it */
    size_t asked;
} places;

static void *place(void *context, size_t i, const octet_array *output)
{
    places *p = context;
    assert_int_equal(i, p->asked++);
    assert_null(output->data);
    assert_int_equal(output->rank, 2);
    assert_int_equal(output->dims[1], 4);
    return p->at[i];
}

/* A sum, what reads it, the same value under another name, and an input: the last two are not the plan's own memory. */
TEST(outputs_are_left_where_they_are_wanted)
{
    static _Alignas(64) float memory[OUTPUTS][ROOM];
    static const float want[OUTPUTS] = { 20, -20, 20, 10 };
    octet *o = octet_open();
    message graph = { 0 };
    put_node(&graph, "Add", "a b", "y0");
    put_node(&graph, "Neg", "y0", "y1");
    put_node(&graph, "Identity", "y0", "y2");
    put_node(&graph, "Identity", "a", "y3");
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("b", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    for (int i = 0; i < OUTPUTS; i++)
        put_part(&graph, GRAPH_OUTPUT,
                 value_info((const char[]){ 'y', (char)('0' + i), 0 }, OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    message p = model_message(graph, 17);
    octet_model *m = load_graph(o, &p, NULL, 0, 1);
    const octet_array in[2] = { ten_array, ten_array };
    for (int shift = 0; shift < 2; shift++) /* the second time not aligned */
        for (int skip = -1; skip < OUTPUTS; skip++) {
            places x = { .asked = 0 };
            for (int i = 0; i < OUTPUTS; i++) {
                memset(memory[i], 0, sizeof memory[i]);
                x.at[i] = i == skip ? NULL : memory[i] + shift;
            }
            assert_int_equal(octet_model_run_into(o, m, in, 2, place, &x), OCTET_OK);
            assert_int_equal(x.asked, OUTPUTS);
            for (int i = 0; i < OUTPUTS; i++)
                for (int k = 0; k < ROOM; k++)
                    assert_true(memory[i][k] == (i != skip && k >= shift && k < shift + 4 ? want[i] : 0));
        }
    memset(memory, 0, sizeof memory);
    assert_true(((const float *)run(o, m, in, 2)[0].data)[3] == 20); /* and leaves the places of other runs alone */
    assert_true(memory[0][0] == 0 && memory[1][0] == 0);
    assert_int_equal(octet_model_run_into(o, m, in, 2, NULL, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_run_into(o, NULL, in, 2, place, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_run_into(NULL, m, in, 2, place, NULL), OCTET_USAGE);
    octet_model_free(m);
    message_free(&p);
    octet_close(o);
}

/* ---- wrong arrays ---- */

typedef struct refused {
    const char *name;
    octet_array w[2];
    size_t n;
    octet_status want;
    const char *says; /* a part of the error */
} refused;

#define ARRAY(name, type, data, rank, ...) { name, (octet_type)(type), rank, { __VA_ARGS__ }, data }
#define GOOD ARRAY("w", 1, ten, 2, 1, 4)

static const refused refusals[] = {
    { "type", { ARRAY("w", 6, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "int32" },
    { "shape", { ARRAY("w", 1, ten, 2, 1, 3) }, 1, OCTET_MALFORMED, "[1,3]" },
    { "fewer dimensions", { ARRAY("w", 1, ten, 1, 4) }, 1, OCTET_MALFORMED, "[1,4]" },
    { "more dimensions", { ARRAY("w", 1, ten, 3, 1, 1, 4) }, 1, OCTET_MALFORMED, "[1,1,4]" },
    { "unknown name", { ARRAY("none", 1, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "'none'" },
    { "empty name", { ARRAY("", 1, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "''" },
    { "an output's name", { ARRAY("y", 1, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "'y'" },
    { "a name inside", { ARRAY("f", 1, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "'f'" },
    { "an initializer's name", { ARRAY("i", 1, ten, 2, 1, 4) }, 1, OCTET_MALFORMED, "a constant of" },
    { "twice", { GOOD, GOOD }, 2, OCTET_MALFORMED, "twice" },
    { "no name", { ARRAY(NULL, 1, ten, 2, 1, 4) }, 1, OCTET_USAGE, "name" },
    { "no data", { ARRAY("w", 1, NULL, 2, 1, 4) }, 1, OCTET_MALFORMED, "data" },
    { "dimension below", { ARRAY("w", 1, ten, 2, 1, -4) }, 1, OCTET_MALFORMED, "-4" },
    { "overflow", { ARRAY("w", 1, ten, 2, INT64_MAX, 4) }, 1, OCTET_MALFORMED, "dimension 1" },
    { "bytes overflow", { ARRAY("w", 1, ten, 2, 1, INT64_MAX) }, 1, OCTET_UNSUPPORTED, "'w'" },
    { "elements overflow", { ARRAY("w", 1, ten, 2, 1LL << 40, 1 << 22) }, 1, OCTET_UNSUPPORTED, "'w'" },
    { "none, of too many", { ARRAY("u", 1, ten, 2, 0, (1LL << 40) + 1) }, 1, OCTET_MALFORMED, "'u'" },
    { "rank below", { ARRAY("w", 1, ten, -1, 1, 4) }, 1, OCTET_UNSUPPORTED, "rank" },
    { "rank above", { ARRAY("w", 1, ten, OCTET_MAX_RANK + 1, 1, 4) }, 1, OCTET_UNSUPPORTED, "rank" },
    { "rank huge", { ARRAY("w", 1, ten, INT_MAX, 1, 4) }, 1, OCTET_UNSUPPORTED, "rank" },
    { "strings", { ARRAY("w", 8, ten, 2, 1, 4) }, 1, OCTET_UNSUPPORTED, "string" },
    { "no type", { ARRAY("w", 0, ten, 2, 1, 4) }, 1, OCTET_UNSUPPORTED, "type" },
    { "type below", { ARRAY("w", -1, ten, 2, 1, 4) }, 1, OCTET_UNSUPPORTED, "type" },
    { "type huge", { ARRAY("w", INT_MAX, ten, 2, 1, 4) }, 1, OCTET_UNSUPPORTED, "type" },
};

/* y = a + Cast(w) + i; u, which declares no shape, is not read. */
static message refusing_model(void)
{
    message graph = { 0 }, cast = node_message("Cast", "w", "f");
    const octet_array i = { .name = "i", .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, 4 }, .data = ten };
    put_attr_int(&cast, "to", OCTET_FLOAT32);
    put_part(&graph, GRAPH_NODE, cast);
    put_node(&graph, "Add", "a f", "s");
    put_node(&graph, "Add", "s i", "y");
    put_constant(&graph, &i, sizeof ten, true);
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("w", OCTET_FLOAT32, 2, (const int64_t[]){ 1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("u", OCTET_FLOAT32, -1, NULL));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    return model_message(graph, 17);
}

TEST(wrong_constants_are_told)
{
    octet *o = octet_open();
    message p = refusing_model();
    octet_model *m;
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const refused *r = &refusals[i];
        m = (octet_model *)1;
        const octet_status got = octet_model_load_graph(o, p.v, p.n, r->w, r->n, 1, &m);
        if (got != r->want)
            fail_msg("%s: status %d, wanted %d (%s)", r->name, got, r->want, octet_error(o));
        if (!strstr(octet_error(o), r->says))
            fail_msg("%s: '%s' is not in '%s'", r->name, r->says, octet_error(o));
        assert_null(m);
    }
    const octet_array good = GOOD;
    assert_int_equal(octet_model_load_graph(NULL, p.v, p.n, &good, 1, 1, &m), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, NULL, p.n, &good, 1, 1, &m), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, NULL, 1, 1, &m), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, &good, 1, -1, &m), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, &good, 1, 1025, &m), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, &good, 1, 1, NULL), OCTET_USAGE);
    assert_int_equal(octet_model_load_graph(o, "no model", 8, &good, 1, 1, &m), OCTET_MALFORMED);
    m = load_graph(o, &p, &good, 1, 1);
    const octet_array in[2] = { ten_array, ten_array };
    assert_int_equal(((const float *)run(o, m, in, 2)->data)[0], 30);
    octet_model_free(m);
    message_free(&p);
    octet_close(o);
}

/* ---- the same as initializers ---- */

enum { WIDE = 96, DEEP = 64, BLOCK = 32 };

static float scale[WIDE], block_scale[DEEP / BLOCK * WIDE], table[DEEP * DEEP];
static int8_t narrow[DEEP * WIDE];
static uint8_t packed[DEEP * WIDE / 2];
static int32_t bias[WIDE];
static int64_t picked[] = { 5, 63, 0, 5 };

static const struct {
    octet_array a;
    size_t bytes;
} weights[] = {
    { { "narrow", OCTET_INT8, 2, { DEEP, WIDE }, narrow }, sizeof narrow },
    { { "scale", OCTET_FLOAT32, 1, { WIDE }, scale }, sizeof scale },
    { { "bias", OCTET_INT32, 1, { WIDE }, bias }, sizeof bias },
    { { "packed", (octet_type)22, 2, { DEEP, WIDE }, packed }, sizeof packed },
    { { "block_scale", OCTET_FLOAT32, 2, { DEEP / BLOCK, WIDE }, block_scale }, sizeof block_scale },
    { { "table", OCTET_FLOAT32, 2, { DEEP, DEEP }, table }, sizeof table },
    { { "picked", OCTET_INT64, 1, { 4 }, picked }, sizeof picked },
};

static void fill(void)
{
    uint32_t r = 1;
    for (int i = 0; i < DEEP * WIDE; i++)
        narrow[i] = (int8_t)((r = r * 1664525 + 1013904223) >> 24);
    for (int i = 0; i < DEEP * WIDE / 2; i++)
        packed[i] = (uint8_t)((r = r * 1664525 + 1013904223) >> 24);
    for (int i = 0; i < DEEP * DEEP; i++)
        table[i] = (float)(int32_t)(r = r * 1664525 + 1013904223) * 0x1p-31f;
    for (int i = 0; i < WIDE; i++) {
        scale[i] = 0.01f + 0.001f * (float)(i % 7);
        bias[i] = i * 50 - 1000;
    }
    for (int i = 0; i < DEEP / BLOCK * WIDE; i++)
        block_scale[i] = 0.02f + 0.001f * (float)(i % 5);
}

/* Products with a matrix of int8, one of 4 bits in blocks and one of float32, a bias of int32, rows that are picked. */
static message mixed_model(bool embedded)
{
    message graph = { 0 }, wide = node_message("DequantizeLinear", "packed block_scale", "unpacked"),
            real = node_message("Cast", "sums", "reals"), shift = node_message("DequantizeLinear", "bias scale", "b");
    put_node(&graph, "DynamicQuantizeLinear", "x", "q qs qz");
    put_node(&graph, "MatMulInteger", "q narrow qz", "sums");
    put_attr_int(&real, "to", OCTET_FLOAT32);
    put_part(&graph, GRAPH_NODE, real);
    put_node(&graph, "Mul", "scale qs", "ss");
    put_node(&graph, "Mul", "reals ss", "m");
    put_attr_int(&shift, "axis", 0);
    put_part(&graph, GRAPH_NODE, shift);
    put_node(&graph, "Add", "m b", "y");
    put_attr_int(&wide, "axis", 0);
    put_attr_int(&wide, "block_size", BLOCK);
    put_part(&graph, GRAPH_NODE, wide);
    put_node(&graph, "MatMul", "x unpacked", "z");
    put_node(&graph, "MatMul", "x table", "t");
    put_node(&graph, "Gather", "table picked", "rows");
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, 2, (const int64_t[]){ -1, DEEP }));
    for (size_t i = 0; i < LENGTH(weights); i++)
        put_constant(&graph, &weights[i].a, weights[i].bytes, embedded);
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, WIDE }));
    put_part(&graph, GRAPH_OUTPUT, value_info("z", OCTET_FLOAT32, 2, (const int64_t[]){ -1, WIDE }));
    put_part(&graph, GRAPH_OUTPUT, value_info("t", OCTET_FLOAT32, 2, (const int64_t[]){ -1, DEEP }));
    put_part(&graph, GRAPH_OUTPUT, value_info("rows", OCTET_FLOAT32, 2, (const int64_t[]){ 4, DEEP }));
    return model_message(graph, 21);
}

static void compare_outputs(const octet_array *a, const octet_array *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t bytes = sizeof(float);
        assert_int_equal(a[i].rank, b[i].rank);
        for (int k = 0; k < a[i].rank; k++) {
            assert_int_equal(a[i].dims[k], b[i].dims[k]);
            bytes *= (size_t)a[i].dims[k];
        }
        assert_memory_equal(a[i].data, b[i].data, bytes);
    }
}

TEST(results_are_those_of_initializers)
{
    static float x[5 * DEEP];
    octet *o = octet_open();
    fill();
    for (int i = 0; i < 5 * DEEP; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    octet_array given[LENGTH(weights)];
    for (size_t i = 0; i < LENGTH(weights); i++)
        given[i] = weights[i].a;
    message inside = mixed_model(true), beside = mixed_model(false);
    octet_model *one, *other;
    assert_int_equal(octet_model_load_memory(o, inside.v, inside.n, 1, &one), OCTET_OK);
    other = load_graph(o, &beside, given, LENGTH(given), 2);
    for (int64_t n = 1; n <= 5; n += 2) {
        const octet_array in = { .type = OCTET_FLOAT32, .rank = 2, .dims = { n, DEEP }, .data = x };
        const octet_array *want = run(o, one, &in, 1), *got = run(o, other, &in, 1);
        compare_outputs(want, got, 4);
        for (int k = 0; k < 4 * DEEP; k++)
            assert_true(((const float *)got[3].data)[k] == table[picked[k / DEEP] * DEEP + k % DEEP]);
    }
    octet_model_free(one);
    octet_model_free(other);
    message_free(&inside);
    message_free(&beside);
    octet_close(o);
}

/* ---- graphs in graphs ---- */

static message branch(const char *op, const char *in)
{
    message g = { 0 };
    put_node(&g, op, in, "branch_y");
    put_text(&g, 2, op);
    put_part(&g, GRAPH_OUTPUT, value_info("branch_y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    return g;
}

/* s = s + w, `trips` times; the condition stays what it was. */
static message body(void)
{
    message g = { 0 };
    put_node(&g, "Add", "state w", "next");
    put_node(&g, "Identity", "go", "still");
    put_text(&g, 2, "body");
    put_part(&g, GRAPH_INPUT, value_info("iteration", OCTET_INT64, 0, NULL));
    put_part(&g, GRAPH_INPUT, value_info("go", OCTET_BOOL, 0, NULL));
    put_part(&g, GRAPH_INPUT, value_info("state", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&g, GRAPH_OUTPUT, value_info("still", OCTET_BOOL, 0, NULL));
    put_part(&g, GRAPH_OUTPUT, value_info("next", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    return g;
}

/* y = Loop(trips, a: + w), then z = flag ? y - w : (If(flag2): y * w : w). */
static message nested_model(void)
{
    message graph = { 0 }, outer = node_message("If", "flag", "z"), inner = node_message("If", "flag2", "inner_z"),
            loop = node_message("Loop", "trips - a", "y"), otherwise = { 0 };
    put_attr_graph(&loop, "body", body());
    put_part(&graph, GRAPH_NODE, loop);
    put_attr_graph(&inner, "then_branch", branch("Mul", "y w"));
    put_attr_graph(&inner, "else_branch", branch("Identity", "w"));
    put_part(&otherwise, GRAPH_NODE, inner);
    put_text(&otherwise, 2, "otherwise");
    put_part(&otherwise, GRAPH_OUTPUT, value_info("inner_z", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_attr_graph(&outer, "then_branch", branch("Sub", "y w"));
    put_attr_graph(&outer, "else_branch", otherwise);
    put_part(&graph, GRAPH_NODE, outer);
    put_part(&graph, GRAPH_INPUT, value_info("a", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    put_part(&graph, GRAPH_INPUT, value_info("trips", OCTET_INT64, 0, NULL));
    put_part(&graph, GRAPH_INPUT, value_info("flag", OCTET_BOOL, 0, NULL));
    put_part(&graph, GRAPH_INPUT, value_info("flag2", OCTET_BOOL, 0, NULL));
    put_part(&graph, GRAPH_INPUT, value_info("w", OCTET_FLOAT32, 2, (const int64_t[]){ 1, 4 }));
    put_part(&graph, GRAPH_OUTPUT, value_info("z", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    return model_message(graph, 17);
}

/* What is computed from outside is read by bodies, and the number of iterations may be a constant itself. */
TEST(bodies_read_constants)
{
    static const float w[4] = { 1, 2, 3, -4 };
    octet *o = octet_open();
    message p = nested_model();
    for (int flags = 0; flags < 4; flags++)
        for (int given = 0; given < 2; given++) {
            const bool flag = flags & 1, flag2 = flags & 2;
            const int64_t trips = 3;
            const octet_array constants[] = {
                { .name = "w", .type = OCTET_FLOAT32, .rank = 2, .dims = { 1, 4 }, .data = w },
                { .name = "trips", .type = OCTET_INT64, .data = &trips },
                { .name = "flag", .type = OCTET_BOOL, .data = &flag },
                { .name = "flag2", .type = OCTET_BOOL, .data = &flag2 },
            };
            octet_array in[4] = { ten_array, constants[1], constants[2], constants[3] };
            in[0].name = "a";
            octet_model *m = load_graph(o, &p, constants, given ? 4 : 1, 1);
            const float *z = run(o, m, in, given ? 1 : 4)->data;
            for (int k = 0; k < 4; k++) {
                const float y = 10 + 3 * w[k], want = flag ? y - w[k] : flag2 ? y * w[k] : w[k];
                if (z[k] != want)
                    fail_msg("flags %d, given %d: %g, wanted %g", flags, given, (double)z[k], (double)want);
            }
            octet_model_free(m);
        }
    message_free(&p);
    octet_close(o);
}

/* ---- memory ---- */

/* Bytes that are allocated; 0 where this is not counted, as under sanitizers. */
static size_t allocated(void)
{
    const struct mallinfo2 i = mallinfo2();
    return i.uordblks + i.hblkhd;
}

/* Rows of a large table are picked where the table lies. */
TEST(constants_are_not_copied)
{
    enum { ROWS = 1 << 20, LARGE = ROWS * 4 * sizeof(float) };
    octet *o = octet_open();
    message graph = { 0 };
    put_node(&graph, "Gather", "w i", "y");
    put_part(&graph, GRAPH_INPUT, value_info("i", OCTET_INT64, 1, (const int64_t[]){ -1 }));
    put_part(&graph, GRAPH_INPUT, value_info("w", OCTET_FLOAT32, 2, (const int64_t[]){ ROWS, 4 }));
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ -1, 4 }));
    message p = model_message(graph, 17);
    unsigned char *bytes = malloc(LARGE + 1);
    assert_non_null(bytes);
    for (size_t off = 0; off < 2; off++) {
        memset(bytes, 0, LARGE + 1);
        const float last = 7;
        memcpy(bytes + off + LARGE - 4, &last, 4);
        const size_t before = allocated();
        const octet_array w = {
            .name = "w", .type = OCTET_FLOAT32, .rank = 2, .dims = { ROWS, 4 }, .data = bytes + off
        };
        octet_model *m = load_graph(o, &p, &w, 1, 1);
        const int64_t row = ROWS - 1;
        const octet_array i = { .type = OCTET_INT64, .rank = 1, .dims = { 1 }, .data = &row };
        assert_int_equal(((const float *)run(o, m, &i, 1)->data)[3], 7);
        const size_t grown = allocated() - before;
        if (before && (off ? grown < LARGE || grown > 3 * LARGE / 2 : grown > LARGE / 8))
            fail_msg("%zu bytes more at %zu behind an aligned address", grown, off);
        octet_model_free(m);
    }
    free(bytes);
    message_free(&p);
    octet_close(o);
}

/* ---- parts ---- */

enum { SIDE = 256 };

/* A product of x and dequantized weights, quantized on both sides; names begin with its letter. */
static void put_layer(message *graph, const char *x, char letter)
{
    char in[40], out[40], x_names[60];
    snprintf(x_names, sizeof x_names, "%s s z", x);
    snprintf(out, sizeof out, "%c_q", letter);
    put_node(graph, "QuantizeLinear", x_names, out);
    snprintf(in, sizeof in, "%c_q s z", letter);
    snprintf(out, sizeof out, "%c_x", letter);
    put_node(graph, "DequantizeLinear", in, out);
    snprintf(in, sizeof in, "%c_w s", letter);
    snprintf(out, sizeof out, "%c_k", letter);
    put_node(graph, "DequantizeLinear", in, out);
    snprintf(in, sizeof in, "%c_x %c_k", letter, letter);
    snprintf(out, sizeof out, "%c_y", letter);
    put_node(graph, "MatMul", in, out);
    snprintf(out, sizeof out, "%c_w", letter);
    put_part(graph, GRAPH_INPUT, value_info(out, OCTET_INT8, 2, (const int64_t[]){ SIDE, SIDE }));
}

TEST(parts_are_found)
{
    static const float tenth = 0.1f;
    static const unsigned char middle = 128;
    static signed char w[SIDE * SIDE];
    for (int i = 0; i < SIDE; i++)
        w[i * SIDE + i] = 1;
    octet_array given[] = {
        { .name = "a_w", .type = OCTET_INT8, .rank = 2, .dims = { SIDE, SIDE }, .data = w },
        { .name = "b_w", .type = OCTET_INT8, .rank = 2, .dims = { SIDE, SIDE }, .data = w },
        { .name = "s", .type = OCTET_FLOAT32, .data = &tenth },
        { .name = "z", .type = OCTET_UINT8, .data = &middle },
    };
    message graph = { 0 };
    put_part(&graph, GRAPH_INPUT, value_info("x", OCTET_FLOAT32, 2, (const int64_t[]){ 64, SIDE }));
    put_part(&graph, GRAPH_INPUT, value_info("s", OCTET_FLOAT32, 0, NULL));
    put_part(&graph, GRAPH_INPUT, value_info("z", OCTET_UINT8, 0, NULL));
    put_layer(&graph, "x", 'a');
    put_layer(&graph, "a_y", 'b');
    put_node(&graph, "Strange", "b_y", "odd");
    put_node(&graph, "Relu", "odd", "y");
    put_part(&graph, GRAPH_OUTPUT, value_info("y", OCTET_FLOAT32, 2, (const int64_t[]){ 64, SIDE }));
    message p = model_message(graph, 17);
    octet *o = octet_open();
    const octet_claim *claims;
    size_t n;
    if (octet_graph_parts(o, p.v, p.n, given, 4, 0, &claims, &n) != OCTET_OK)
        fail_msg("%s", octet_error(o));
    assert_int_equal(n, 10);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(claims[i].part, 0);
        assert_string_equal(claims[i].reason, "");
    }
    assert_int_equal(claims[8].part, -1);
    assert_string_equal(claims[8].reason, "operator Strange is unknown");
    assert_int_equal(claims[9].part, -1);
    /* The result belongs to o until the next call of this function, whatever else o does. */
    octet_model *m;
    assert_int_equal(octet_model_load_graph(o, p.v, p.n, given, 4, 1, &m), OCTET_MALFORMED);
    assert_string_equal(claims[8].reason, "operator Strange is unknown");

    /* Without the arrays, a layer has no weights to compute with on integers. */
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 0, 0, &claims, &n), OCTET_OK);
    assert_int_equal(claims[3].part, -1);
    octet_close(o);
    message_free(&p);
}

TEST(wrong_questions_are_told)
{
    octet *o = octet_open();
    const octet_claim *claims;
    size_t n;
    message p = sum_model(OCTET_FLOAT32, 1, (const int64_t[]){ 4 });
    octet_array w = { .name = "nobody", .type = OCTET_FLOAT32, .rank = 1, .dims = { 4 }, .data = ten };
    assert_int_equal(octet_graph_parts(o, p.v, p.n, &w, 1, 0, &claims, &n), OCTET_MALFORMED);
    assert_string_equal(octet_error(o), "graph in memory: constant 'nobody': the graph has no input of that name");
    assert_null(claims);
    assert_int_equal(n, 0);
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 1, 0, &claims, &n), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(o, NULL, 5, NULL, 0, 0, &claims, &n), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 0, 0, NULL, &n), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 0, 0, &claims, NULL), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 0, (octet_claim_what)3, &claims, &n), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(NULL, p.v, p.n, NULL, 0, 0, &claims, &n), OCTET_USAGE);
    assert_int_equal(octet_graph_parts(o, p.v, p.n - 1, NULL, 0, 0, &claims, &n), OCTET_MALFORMED);
    assert_int_equal(octet_graph_parts(o, p.v, p.n, NULL, 0, 0, &claims, &n), OCTET_OK);
    assert_int_equal(n, 2);
    assert_string_equal(claims[1].reason, "no integer work: float stays where it is");
    octet_close(o);
    message_free(&p);
}
