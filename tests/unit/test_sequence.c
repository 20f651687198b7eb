/* lib/ops, lib/runtime: sequences and optionals, in graphs whose results are worked out by hand. */
#include "unit.h"

#include "net.h"

#define RUN(p, ...) GOOD(oct_plan_run(p, (const void *const[]){ __VA_ARGS__ }, err))

static void same(const oct_plan *p, size_t out, int rank, const int64_t *dims, const float *want)
{
    const oct_operand *t = oct_plan_output(p, out);
    assert_int_equal(t->dtype, OCT_F32);
    assert_int_equal(t->rank, rank);
    assert_memory_equal(t->dims, dims, (size_t)rank * sizeof *dims);
    if (t->count)
        assert_memory_equal(t->data, want, (size_t)t->count * sizeof *want);
}

/* x[5] in parts of 2, 2, 1; the one at -1 goes to the front of the others; joined, and stacked where they are alike. */
TEST(parts_and_whole)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "5");
    int s = NET_NODE(g, "SplitToSequence", "split", "s", x, NET_S64(g, "two", "", 2));
    int last = NET_NODE(g, "SequenceAt", "at", "last", s, NET_S64(g, "minus", "", -1));
    int rest = NET_NODE(g, "SequenceErase", "erase", "rest", s);
    int front = NET_NODE(g, "SequenceInsert", "insert", "front", rest, last, NET_S64(g, "zero", "", 0));
    net_output(g, NET_NODE(g, "ConcatFromSequence", "join", "joined", front));
    net_int(g, "axis", 0);
    net_output(g, NET_NODE(g, "ConcatFromSequence", "stack", "stacked", rest));
    net_int(g, "axis", -1);
    net_int(g, "new_axis", 1);
    net_output(g, NET_NODE(g, "SequenceLength", "length", "n", front));
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(g->value[s].kind, OCT_VALUE_SEQUENCE);
    assert_int_equal(g->value[front].elem, OCT_F32);
    assert_int_equal(g->value[last].dtype, OCT_F32);
    oct_plan *p = net_plan(g, NULL, NULL);
    for (int r = 0; r < 2; r++) {
        const float v[5] = { 1, 2, 3, 4, r ? 5 : 6 };
        RUN(p, v);
        same(p, 0, 1, (int64_t[]){ 5 }, (float[]){ v[4], 1, 2, 3, 4 });
        same(p, 1, 2, (int64_t[]){ 2, 2 }, (float[]){ 1, 3, 2, 4 });
        assert_int_equal(*(const int64_t *)oct_plan_output(p, 2)->data, 3);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* A loop that appends i * x to a sequence, starting from an empty one; the sequence is an output too. */
TEST(sequences_grow)
{
    oct_graph *g = net_graph(13);
    int m = net_input(g, "m", OCT_S64, ""), x = net_input(g, "x", OCT_F32, "2");
    int empty = NET_NODE(g, "SequenceEmpty", "empty", "e", -1);
    int y = NET_NODE(g, "Loop", "loop", "y", m, -1, empty), at = net_last;
    oct_graph *b = net_nested(g);
    int i = net_input(b, "i", OCT_S64, ""), go = net_input(b, "go", OCT_BOOL, ""),
        s = net_input(b, "s", OCT_UNDEFINED, "");
    b->value[s].shape.rank = -1;
    int f = NET_NODE(b, "Cast", "cast", "f", i);
    net_int(b, "to", OCT_F32);
    int ix = NET_NODE(b, "Mul", "mul", "ix", f, net_take(b, x));
    net_output(b, go);
    net_output(b, NET_NODE(b, "SequenceInsert", "insert", "s2", s, ix));
    net_give(g, at, "body", b);
    net_output(g, y);
    net_output(g, NET_NODE(g, "ConcatFromSequence", "join", "all", y));
    net_int(g, "axis", 0);
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(g->value[y].kind, OCT_VALUE_SEQUENCE);
    oct_plan *p = net_plan(g, NULL, NULL);
    for (int64_t trips = 3; trips > 0; trips -= 2) {
        oct_datum *whole;
        RUN(p, &trips, ((float[]){ 1, -2 }));
        same(p, 1, 1, (int64_t[]){ 2 * trips }, (float[]){ 0, -0.0f, 1, -2, 2, -4 });
        assert_int_equal(oct_plan_output(p, 0)->dtype, OCT_UNDEFINED);
        GOOD(oct_plan_output_datum(p, 0, &whole, err));
        assert_true(whole->kind == OCT_DATUM_SEQUENCE && (int64_t)whole->n == trips);
        if (trips > 2)
            assert_true(((const float *)whole->at[2]->t.data)[1] == -4);
        oct_datum_unref(whole);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* y[k] = x[k] * w + captured, for tensors of different sizes. */
TEST(maps)
{
    oct_graph *g = net_graph(17);
    int x = net_input(g, "x", OCT_F32, "3"), w = NET_F32(g, "w", "", 10), c = NET_NODE(g, "Neg", "neg", "c", w);
    int s = NET_NODE(g, "SplitToSequence", "split", "s", x, NET_S64(g, "sizes", "2", 1, 2));
    int y = NET_NODE(g, "SequenceMap", "map", "y", s, w), at = net_last;
    oct_graph *b = net_nested(g);
    int e = net_input(b, "e", OCT_UNDEFINED, ""), k = net_input(b, "k", OCT_UNDEFINED, "");
    b->value[e].shape.rank = b->value[k].shape.rank = -1;
    net_output(b, NET_NODE(b, "Add", "add", "r", NET_NODE(b, "Mul", "mul", "q", e, k), net_take(b, c)));
    net_give(g, at, "body", b);
    net_output(g, NET_NODE(g, "ConcatFromSequence", "join", "z", y));
    net_int(g, "axis", 0);
    oct_plan *p = net_plan(g, NULL, NULL);
    RUN(p, ((float[]){ 1, 2, 3 }));
    same(p, 0, 1, (int64_t[]){ 3 }, (float[]){ 0, 10, 20 });
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* y = x given ? x + 1 : -1, where x is an optional input. */
TEST(optionals)
{
    oct_graph *g = net_graph(18);
    int x = net_input(g, "x", OCT_UNDEFINED, "");
    g->value[x].kind = OCT_VALUE_OPTIONAL;
    g->value[x].elem = OCT_F32;
    g->value[x].shape.rank = -1;
    int has = NET_NODE(g, "OptionalHasElement", "has", "has", x), y = NET_NODE(g, "If", "if", "y", has), at = net_last;
    oct_graph *then = net_nested(g), *other = net_nested(g);
    int v = NET_NODE(then, "OptionalGetElement", "get", "v", net_take(then, x));
    net_output(then, NET_NODE(then, "Add", "add", "t", v, NET_F32(then, "one", "", 1)));
    net_output(other, NET_F32(other, "none", "1", -1));
    net_give(g, at, "then_branch", then);
    net_give(g, at, "else_branch", other);
    net_output(g, y);
    oct_plan *p = net_plan(g, NULL, NULL);
    oct_datum *in;
    float given[] = { 3, 4 }; /* borrowed until the run */
    for (int r = 0; r < 3; r++) {
        if (r == 1)
            GOOD(oct_datum_none(&in, err));
        else
            GOOD(oct_datum_borrow(OCT_F32, 1, (int64_t[]){ 2 }, given, &in, err));
        GOOD(oct_plan_run_data(p, &in, err));
        same(p, 0, 1, (int64_t[]){ r == 1 ? 1 : 2 }, r == 1 ? (float[]){ -1 } : (float[]){ 4, 5 });
        oct_datum_unref(in);
    }
    oct_err e = OCT_ERR_INIT; /* its address alone does not say what it is */
    assert_int_equal(oct_plan_run(p, (const void *const[]){ &in }, &e), OCT_EUSAGE);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(refused)
{
    static const struct {
        const char *op, *says;
        int64_t at;
    } cases[] = {
        { "SequenceAt", "position 3", 3 },
        { "SequenceAt", "position -4", -4 },
        { "SequenceErase", "position 3", 3 },
        { "SequenceInsert", "position 4", 4 },
        { "SequenceInsert", "int64", 0 },
        { "OptionalGetElement", "empty", 0 },
        { "ConcatFromSequence", "another shape", 0 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(18);
        int x = net_input(g, "x", OCT_F32, "5"), pos = net_input(g, "p", OCT_S64, "");
        int s = NET_NODE(g, "SplitToSequence", "split", "s", x, NET_S64(g, "two", "", 2));
        int y;
        if (i == 3)
            y = NET_NODE(g, cases[i].op, "odd", "y", s, x, pos);
        else if (i == 4)
            y = NET_NODE(g, cases[i].op, "odd", "y", s, pos);
        else if (i == 5)
            y = NET_NODE(g, cases[i].op, "odd", "y", NET_NODE(g, "Optional", "none", "none", -1));
        else if (i == 6)
            y = NET_NODE(g, cases[i].op, "odd", "y", s);
        else
            y = NET_NODE(g, cases[i].op, "odd", "y", s, pos);
        if (i == 6) { /* parts of 2, 2 and 1 do not stack */
            net_int(g, "axis", 0);
            net_int(g, "new_axis", 1);
        }
        net_output(g, y);
        oct_err e = OCT_ERR_INIT;
        oct_plan *p = net_plan(g, NULL, NULL);
        assert_int_equal(oct_plan_run(p, (const void *const[]){ (float[]){ 1, 2, 3, 4, 5 }, &cases[i].at }, &e),
                         OCT_EMALFORMED);
        if (!strstr(e.text, cases[i].says) || !strstr(e.text, "'odd'"))
            fail_msg("%s", e.text);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}
