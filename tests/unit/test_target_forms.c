/* lib/quant with targets of one property each: what becomes of scales, zero points, biases, opsets and quantizers,
 * against numbers worked out here. */
#include "unit.h"

#include "forms/forms.h"
#include "job_work.h"
#include "net.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

#include <stdlib.h>

/* Decides g, of input [2,3,6,6], for a target of these lines. */
static work decide(oct_graph *g, const char *lines, const char *rules, bool correct)
{
    static float x[2 * 3 * 6 * 6];
    work w = { NULL };
    char text[400];
    snprintf(text, sizeof text, "name t\nsummary t\n%s", lines);
    GOOD(oct_target_parse(text, "t", &w.target, err));
    GOOD(oct_policy_create(NULL, &w.policy, err));
    if (rules)
        GOOD(oct_policy_add(w.policy, rules, "test", err));
    oct_qjob_opts o = { .policy = w.policy, .target = w.target, .have_data = true, .bias_weights = correct };
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    w.calib = oct_calib_create();
    net_fill(x, OCT_COUNT(x), 1);
    take_statistics(&w, g, x);
    GOOD(oct_qjob_decide(w.job, w.calib, err));
    return w;
}

static const oct_quant *quant_of(const work *w, const oct_graph *g, const char *value)
{
    const oct_quant *q = oct_quant_of(w->job, oct_graph_find(g, value));
    assert_non_null(q);
    return q;
}

static const oct_node *named(const oct_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            return &g->node[g->order[i]];
    fail_msg("no node '%s'", name);
    return NULL;
}

static const oct_node *maker(const oct_graph *g, int value)
{
    assert_true(value >= 0 && g->value[value].producer >= 0);
    return &g->node[g->value[value].producer];
}

/* Conv, an operator between, Conv. */
static oct_graph *convs(const char *between)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3,6,6");
    int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3), net_random(g, "b1", "4", 4));
    int r = NET_NODE(g, between, "between", "r", a);
    net_output(g,
               NET_NODE(g, "Conv", "second", "y", r, net_random(g, "w2", "2,4,3,3", 5), net_random(g, "b2", "2", 6)));
    return g;
}

static bool is_power_of_two(float v)
{
    int e;
    return frexpf(v, &e) == 0.5f;
}

TEST(scales_are_powers_of_two)
{
    oct_graph *g = convs("Relu");
    float w[4 * 27];
    memcpy(w, g->value[oct_graph_find(g, "w1")].constant->data, sizeof w);
    work k = decide(g, "types s8*s8\nactivations symmetric\nscales powers-of-two\nop Conv static\n", NULL, false);
    static const char *const values[] = { "x", "r" };
    for (size_t i = 0; i < OCT_COUNT(values); i++) {
        const oct_quant *q = quant_of(&k, g, values[i]);
        assert_true(is_power_of_two(q->scale[0]));
        assert_int_equal(q->n, 1);
    }
    const oct_quant *q = &k.job->constants[0].weights[0]->quant;
    assert_int_equal(q->n, 4);
    for (int o = 0; o < 4; o++) {
        float top = 0;
        for (int i = 0; i < 27; i++)
            top = fmaxf(top, fabsf(w[o * 27 + i]));
        assert_true(is_power_of_two(q->scale[o]));
        assert_true(q->scale[o] >= top / 127 && q->scale[o] < 2 * top / 127); /* the next above */
        for (int i = 0; i < 27; i++)
            assert_int_equal(((const int8_t *)q->qvals->data)[o * 27 + i], (int)rintf(w[o * 27 + i] / q->scale[o]));
    }
    GOOD(oct_qjob_rewrite(k.job, err));
    assert_int_equal(net_count(g, "Relu"), 1); /* zero points are in the middle, so no quantizer clamps */
    stop(&k, g);
}

/* Sums have a wider range than what is added. */
TEST(results_have_the_scale_of_inputs)
{
    for (int same = 0; same < 2; same++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,3,6,6");
        int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3));
        int r = NET_NODE(g, "Add", "sum", "r", a, a);
        net_output(g, NET_NODE(g, "Conv", "second", "y", r, net_random(g, "w2", "2,4,3,3", 5)));
        work k = decide(g,
                        same ? "types u8*s8\nop Conv static\nop Add static same-scale\n"
                             : "types u8*s8\nop Conv,Add static\n",
                        NULL, false);
        const oct_quant *from = quant_of(&k, g, "a"), *to = quant_of(&k, g, "r");
        assert_int_equal(from->scale[0] == to->scale[0] && from->zp[0] == to->zp[0], same);
        stop(&k, g);
    }
}

TEST(parameters_are_fixed)
{
    for (int fixed = 0; fixed < 2; fixed++) {
        oct_graph *g = convs("Sigmoid");
        work k = decide(g,
                        fixed ? "types u8*s8\nscale Sigmoid u8 1/256 0\nop Conv,Sigmoid static\n"
                              : "types u8*s8\nop Conv,Sigmoid static\n",
                        NULL, false);
        const oct_quant *q = quant_of(&k, g, "r");
        assert_int_equal(q->scale[0] == 1.0f / 256 && q->zp[0] == 0, fixed);
        stop(&k, g);
    }
}

/* A float bias, which gives the mean back that rounded weights take: b + sum (w - wq) E[x]. */
TEST(biases_are_real)
{
    for (int correct = 0; correct < 2; correct++) {
        oct_graph *g = convs("Relu");
        float w[4 * 27], b[4];
        memcpy(w, g->value[oct_graph_find(g, "w1")].constant->data, sizeof w);
        memcpy(b, g->value[oct_graph_find(g, "b1")].constant->data, sizeof b);
        work k = decide(g, "types u8*s8\nbiases float\nop Conv static\n", "any - s7/tensor/sym - -\n", correct);
        const oct_quant *q = &k.job->constants[0].weights[0]->quant;
        const oct_chan_stats *chan = &oct_calib_find(k.calib, "x")->chan;
        const double step =
            (double)(quant_of(&k, g, "x")->scale[0] * q->scale[0]); /* numbers are those that int32 would give */
        double want[4], moved = 0;
        for (int o = 0; o < 4; o++) {
            want[o] = b[o];
            for (int i = 0; correct && i < 27; i++)
                want[o] +=
                    ((double)w[o * 27 + i] - ((const int8_t *)q->qvals->data)[o * 27 + i] * (double)q->scale[0]) *
                    oct_chan_mean(&chan->c[i / 9]);
            moved = fmax(moved, fabs(want[o] - b[o]));
        }
        GOOD(oct_qjob_rewrite(k.job, err));
        const oct_tensor *bias = g->value[named(g, "first")->in[2]].constant;
        assert_non_null(bias); /* no DequantizeLinear before it */
        assert_int_equal(bias->dtype, OCT_F32);
        for (int o = 0; o < 4; o++)
            assert_true(fabs((double)((const float *)bias->data)[o] - want[o]) < 0.51 * step);
        assert_int_equal(moved > step, correct);
        stop(&k, g);
    }
}

/* A clamp of what a layer makes on real numbers is left with the layer, also where the layer is given up after samples
 * were measured, when what the clamp reads has no statistics: both keep the reason that they have. */
TEST(clamps_stay_with_layers)
{
    static const char rounds[] = "types u8*s8\nplacement everywhere\nop Conv static needs-output\nop Relu rounded\n";
    for (int late = 0; late <= 1; late++) {
        oct_graph *g = convs("Relu");
        work k = decide(g, rounds, late ? NULL : "name:first float\n", false);
        const int first = g->value[oct_graph_find(g, "a")].producer, clamp = g->value[oct_graph_find(g, "r")].producer;
        if (late) {
            GOOD(oct_keep_float(&k.job->constraints, first, OCT_FROM_GOALS, "it loses too much", err));
            GOOD(oct_qjob_decide(k.job, k.calib, err));
            assert_string_equal(oct_why_of(k.job, first), "it loses too much");
            oct_constraint_words words = { 0 };
            size_t told = 0;
            for (size_t i = 0; i < oct_qjob_n_layers(k.job); i++)
                for (size_t n = 0; oct_qjob_constraint(k.job, i, n, &words); n++)
                    told += oct_qjob_layer(k.job, i)->node == first && strcmp(words.what, "kept in float") == 0 &&
                            strcmp(words.from, "goals") == 0 && strcmp(words.why, "it loses too much") == 0;
            assert_int_equal(told, 1);
        }
        assert_string_equal(oct_why_of(k.job, clamp), "computed in float, as the layer before it is");
        GOOD(oct_qjob_rewrite(k.job, err));
        const oct_node *second = named(g, "second"), *relu = named(g, "between");
        assert_string_equal(maker(g, second->in[0])->op, "DequantizeLinear");
        assert_string_equal(maker(g, relu->in[0])->name, "first");
        stop(&k, g);
    }
}

/* Where a table lacks what a rounded node reads, the node is given up, and a float layer before it keeps its own
 * reason. */
TEST(float_layers_keep_reasons)
{
    oct_graph *g = convs("Softmax");
    work k =
        decide(g, "types u8*s8\nplacement everywhere\nop Conv static needs-output\nop Softmax rounded\n", NULL, false);
    const int first = g->value[oct_graph_find(g, "a")].producer, softmax = g->value[oct_graph_find(g, "r")].producer;
    oct_calib *none = oct_calib_create();
    assert_non_null(none);
    GOOD(oct_keep_float(&k.job->constraints, first, OCT_FROM_GOALS, "it loses too much", err));
    GOOD(oct_qjob_decide(k.job, none, err));
    assert_string_equal(oct_kept_float(&k.job->constraints, softmax),
                        "a tensor has no statistics in the calibration table");
    assert_string_equal(oct_why_of(k.job, first), "it loses too much");
    oct_calib_destroy(none);
    stop(&k, g);
}

/* Of 16 bits is only the first input where the target wants that, also where both are one value. */
TEST(others_are_narrow)
{
    for (int narrow = 0; narrow <= 1; narrow++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "3,3");
        net_output(g, NET_NODE(g, "MatMul", "square", "y", x, x));
        work k = decide(g,
                        narrow ? "types u8*u8 u16*u8\nplacement everywhere\nop MatMul static others-narrow\n"
                               : "types u8*u8 u16*u8\nplacement everywhere\nop MatMul static\n",
                        "any - - u16 -\n", false);
        GOOD(oct_qjob_rewrite(k.job, err));
        GOOD(oct_infer_shapes(g, err));
        const oct_node *n = named(g, "square");
        assert_int_equal(g->value[maker(g, n->in[0])->in[0]].dtype, OCT_U16);
        assert_int_equal(g->value[maker(g, n->in[1])->in[0]].dtype, narrow ? OCT_U8 : OCT_U16);
        stop(&k, g);
    }
}

/* What is of 8 bits is rounded once more for a layer of 16, and the other way round, by quantizers of ONNX's domain
 * where the target has no others. */
TEST(types_meet_in_a_second_pair)
{
    for (int i = 0; i < 4; i++) {
        const bool alone = i & 1, to_wide = i & 2;
        oct_graph *g = convs("Relu");
        work k = decide(g,
                        alone ? "types u8*s8 u16*s8\ncom.microsoft no\nop Conv static\n"
                              : "types u8*s8 u16*s8\nop Conv static\n",
                        to_wide ? "name:second - - u16 -\n" : "name:first - - u16 -\n", false);
        GOOD(oct_qjob_rewrite(k.job, err));
        GOOD(oct_infer_shapes(g, err));
        const oct_node *d = maker(g, named(g, "second")->in[0]), *q = maker(g, d->in[0]), *before = maker(g, q->in[0]),
                       *wide = to_wide ? q : maker(g, before->in[0]);
        assert_string_equal(d->op, "DequantizeLinear");
        assert_string_equal(q->op, "QuantizeLinear");
        assert_string_equal(before->op, "DequantizeLinear");
        assert_int_equal(g->value[d->in[0]].dtype, to_wide ? OCT_U16 : OCT_U8);
        assert_int_equal(g->value[q->in[2]].constant->dtype, to_wide ? OCT_U16 : OCT_U8);
        assert_int_equal(g->value[before->in[0]].dtype, to_wide ? OCT_U8 : OCT_U16);
        assert_string_equal(wide->domain, alone ? "" : "com.microsoft");
        assert_int_equal(oct_graph_opset(g, ""), alone ? 21 : 13);
        assert_int_equal(oct_graph_opset(g, "com.microsoft") != 0, !alone);
        stop(&k, g);
    }
}

TEST(readers_have_their_own)
{
    static const struct {
        const char *text;
        size_t quantizers, dequantizers; /* that follow the value with two readers */
    } each[] = {
        { "types u8*s8\nop Conv static\n", 1, 1 },
        { "types u8*s8\ndequantizers one-each\nop Conv static\n", 1, 2 },
        { "types u8*s8\nquantizers one-each\nop Conv static\n", 2, 2 },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,3,6,6");
        net_output(g, NET_NODE(g, "Conv", "first", "y", x, net_random(g, "w1", "4,3,3,3", 3)));
        net_output(g, NET_NODE(g, "Conv", "second", "z", x, net_random(g, "w2", "4,3,3,3", 5)));
        work k = decide(g, each[i].text, NULL, false);
        GOOD(oct_qjob_rewrite(k.job, err));
        const oct_node *d1 = maker(g, named(g, "first")->in[0]), *d2 = maker(g, named(g, "second")->in[0]);
        assert_int_equal(1 + (d1 != d2), each[i].dequantizers);
        assert_int_equal(1 + (maker(g, d1->in[0]) != maker(g, d2->in[0])), each[i].quantizers);
        assert_int_equal(maker(g, d1->in[0])->in[0], oct_graph_find(g, "x"));
        assert_int_equal(maker(g, d2->in[0])->in[0], oct_graph_find(g, "x"));
        stop(&k, g);
    }
}

/* The weight farthest from 0 becomes 127 steps, or -127: never -128, and the same around 128 of u8. */
TEST(weights_are_narrow)
{
    static const char *const text[] = { "types u8*s8\nop Conv static\n", "types u8*u8\nop Conv static\n" };
    for (int u8 = 0; u8 < 2; u8++) {
        oct_graph *g = convs("Relu");
        work k = decide(g, text[u8], NULL, false);
        const oct_quant *q = &k.job->constants[0].weights[0]->quant;
        int most = 0;
        assert_int_equal(q->dtype, u8 ? OCT_U8 : OCT_S8);
        for (int i = 0; i < 4 * 27; i++) {
            const int v = u8 ? ((const uint8_t *)q->qvals->data)[i] - 128 : ((const int8_t *)q->qvals->data)[i];
            most = abs(v) > most ? abs(v) : most;
        }
        assert_int_equal(most, 127);
        stop(&k, g);
    }
}

/* A real layer between quantizers reads equal scales of channels where ONNX Runtime may load the file, which would
 * round its weights, and what it reads beside others stays one scale for these. Read again, both are one value. */
TEST(real_layers_stay_so)
{
    for (int rounds = 0; rounds < 2; rounds++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,3,6,6");
        const int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3));
        const int b = NET_NODE(g, "Conv", "middle", "b", a, net_random(g, "w2", "4,4,3,3", 4));
        const int r = NET_NODE(g, "Relu", "relu", "r", b);
        net_output(g, NET_NODE(g, "Conv", "third", "y", r, net_random(g, "w3", "2,4,1,1", 5)));
        net_output(g, NET_NODE(g, "Conv", "beside", "z", a, net_random(g, "w4", "2,4,1,1", 6)));
        work k =
            decide(g, rounds ? "types u8*s8\nop Conv static\n" : "types u8*s8\nonnxruntime never\nop Conv static\n",
                   "name:middle float\n", false);
        assert_int_equal(!oct_target_rules_of(k.job->opts.target)->never_in_ort, rounds);
        GOOD(oct_qjob_rewrite(k.job, err));
        const oct_node *middle = maker(g, named(g, "middle")->in[0]), *beside = maker(g, named(g, "beside")->in[0]);
        assert_string_equal(middle->op, "DequantizeLinear");
        assert_int_equal(middle->in[0], beside->in[0]);
        assert_int_equal(middle != beside, rounds);
        const oct_tensor *scale = g->value[middle->in[1]].constant, *one = g->value[beside->in[1]].constant;
        const oct_tensor *zero = g->value[middle->in[2]].constant, *first = g->value[beside->in[2]].constant;
        assert_true(one->count == 1 && scale->count == (rounds ? 4 : 1) && zero->count == scale->count &&
                    oct_node_int(middle, "axis", 1) == 1);
        for (int64_t i = 0; i < scale->count; i++) {
            assert_true(((const float *)scale->data)[i] == *(const float *)one->data);
            assert_true(((const uint8_t *)zero->data)[i] == *(const uint8_t *)first->data);
        }
        GOOD(oct_forms_read(g, &(oct_read_opts){ 0 }, NULL, err));
        assert_int_equal(named(g, "middle")->in[0], named(g, "beside")->in[0]);
        assert_int_equal(g->value[named(g, "middle")->in[0]].quant->n, 1);
        stop(&k, g);
    }
}

/* One channel has no scales that differ in shape from one scale: the rows have some. */
TEST(single_channels_stay_real)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3,6,6");
    const int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "1,3,3,3", 3));
    const int b = NET_NODE(g, "Conv", "middle", "b", a, net_random(g, "w2", "4,1,3,3", 4));
    net_output(g, NET_NODE(g, "Conv", "third", "y", b, net_random(g, "w3", "2,4,1,1", 5)));
    GOOD(oct_infer_shapes(g, err));
    work k = decide(g, "types u8*s8\nop Conv static needs-output rounds-constants\n", "name:middle float\n", false);
    GOOD(oct_qjob_rewrite(k.job, err));
    const oct_node *d = maker(g, named(g, "middle")->in[0]);
    assert_int_equal(oct_node_int(d, "axis", 1), 2);
    assert_int_equal(g->value[d->in[1]].constant->count, 4); /* rows of 6 behind 3x3 without pads */
    stop(&k, g);
}
