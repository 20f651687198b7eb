/* lib/targets: the format of target files, what they inherit, and whether a target runs a node. */
#include "unit.h"

#include "net.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "targets.h"

#include <unistd.h>

static oct_target *parsed(const char *text)
{
    oct_target *t = NULL;
    GOOD(oct_target_parse(text, "t", &t, err));
    return t;
}

#define HEAD "name mine\nsummary a board\ntypes u8*s8\n"

/* ---- the built-in targets ---- */

TEST(builtin_targets_have_their_names)
{
    const char *name, *summary;
    size_t n = 0;
    for (; (name = oct_target_builtin(n, &summary)); n++) {
        assert_string_equal(oct_target_name(target_named(name)), name);
        assert_true(strlen(summary) > 10);
    }
    assert_int_equal(n, 20);
    assert_string_equal(oct_target_builtin(0, NULL), "onnxruntime-x86");
    oct_target_builtin(1, &summary);
    assert_string_equal(summary, "ONNX Runtime on CPUs with VNNI, and on ARM");
}

/* What each runs, written down apart from the files. */
TEST(builtin_targets_run)
{
#define COMMON                                                                                                                    \
    " Conv Gemm MatMul Add Mul Concat Sigmoid LeakyRelu GlobalAveragePool AveragePool MaxPool Reshape Transpose Flatten Squeeze " \
    "Unsqueeze Slice DepthToSpace Gather Split Resize "
    static const struct {
        const char *name, *listed;
        bool saturates, needs, bfloat16;
    } each[] = { { "onnxruntime-x86", COMMON, true, true, false },
                 { "onnxruntime-vnni", COMMON, false, true, false },
                 { "octet", COMMON "ConvTranspose Tanh HardSwish HardSigmoid Elu Swish GlobalMaxPool SpaceToDepth ",
                   false, false, true },
                 { "onnxruntime-octet",
                   COMMON "ConvTranspose Tanh HardSwish HardSigmoid Elu Swish GlobalMaxPool SpaceToDepth ", false,
                   false, false } };
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        const oct_target *t = target_named(each[i].name);
        assert_int_equal(oct_target_saturates(t), each[i].saturates);
        assert_int_equal(oct_target_rules_of(t)->bfloat16 == OCT_BFLOAT16_YES, each[i].bfloat16);
        assert_true(oct_target_takes(t, OCT_U8, OCT_S8) && oct_target_takes(t, OCT_U8, OCT_U8) &&
                    oct_target_takes(t, OCT_S8, OCT_S8));
        assert_false(oct_target_takes(t, OCT_S8, OCT_U8));
        for (size_t k = 0; k < n; k++) {
            char word[100];
            const char *op = all[k]->type;
            const bool matrix = strcmp(op, "MatMul") == 0 || strcmp(op, "Gemm") == 0;
            snprintf(word, sizeof word, " %s ", op);
            assert_int_equal(oct_target_lists(t, op, OCT_TARGET_STATIC), strstr(each[i].listed, word) != NULL);
            assert_int_equal(oct_target_lists(t, op, OCT_TARGET_DYNAMIC), matrix || strstr(" LSTM GRU RNN ", word));
            assert_int_equal(oct_target_lists(t, op, OCT_TARGET_WEIGHT_ONLY), matrix);
            assert_int_equal(oct_target_needs_output(t, op, false), each[i].needs && strcmp(op, "Conv") == 0);
            assert_int_equal(oct_target_needs_output(t, op, true),
                             each[i].needs && (strcmp(op, "Conv") == 0 || matrix));
            assert_true(!oct_target_op_rules_of(t, op)->per_tensor);
        }
    }
}

/* ---- one question ---- */

static const char *reason(const oct_target *t, const oct_graph *g, oct_target_form form)
{
    const char *why = NULL;
    bool runs = oct_target_runs(t, g, net_last, form, &why);
    assert_int_equal(runs, why == NULL);
    assert_int_equal(oct_target_runs(t, g, net_last, form, NULL), runs);
    return runs ? "runs" : why;
}

TEST(a_node_runs_or_there_is_a_reason)
{
    const oct_target *t = target_named("onnxruntime-x86");
    oct_graph *g = net_graph(18);
    int x = net_input(g, "x", OCT_F32, "1,3,4,4"), w = net_random(g, "w", "4,5", 1);
    NET_NODE(g, "Resize", "nothing", "r0", x, -1, NET_F32(g, "s", "4", 1, 1, 2, 2));
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    net_str(g, "mode", "nearest");
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    net_str(g, "mode", "linear");
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "the target interpolates in float");
    assert_string_equal(reason(t, g, OCT_TARGET_DYNAMIC), "no dynamic form in the target");
    NET_NODE(g, "MatMul", "product", "p", x, w);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    assert_string_equal(reason(t, g, OCT_TARGET_DYNAMIC), "runs");
    assert_string_equal(reason(t, g, OCT_TARGET_WEIGHT_ONLY), "runs");
    NET_NODE(g, "MatMul", "attention", "a", x, x); /* without constant weights */
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    assert_string_equal(reason(t, g, OCT_TARGET_DYNAMIC), "no dynamic form in the target");
    NET_NODE(g, "Tanh", "tanh", "t", x);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "the target runs this operator in float");
    assert_string_equal(reason(target_named("octet"), g, OCT_TARGET_STATIC), "runs");
    NET_NODE(g, "my.domain.Add", "foreign", "f", x, x); /* an operator of that name, but another */
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "the target runs this operator in float");
    NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "k", "2,3,1,1", 2));
    assert_string_equal(reason(t, g, OCT_TARGET_WEIGHT_ONLY), "the target takes no weights in blocks here");
    oct_graph_destroy(g);
}

/* A Transpose that makes the first dimension the last but one, before a product: where the operands' ranks differ. */
TEST(traps_are_found_where_they_are)
{
    static const struct {
        int64_t perm[3];
        const char *shape;
        bool trap;
    } each[] = { { { 1, 0, 2 }, "4,4", true },  { { 1, 2, 0 }, "4,4", true },  { { 0, 2, 1 }, "4,4", false },
                 { { 2, 0, 1 }, "4,4", false }, { { 2, 1, 0 }, "4,4", false }, { { 1, 0, 2 }, "4,4,4", false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++)
        for (int passed = 0; passed < 2; passed++) {
            oct_graph *g = net_graph(18);
            int v = NET_NODE(g, "Transpose", "turn", "t", net_input(g, "x", OCT_F32, "4,4,4"));
            const int turn = net_last;
            GOOD(oct_node_set_ints(g, turn, "perm", each[i].perm, 3, err));
            v = passed ? NET_NODE(g, "Identity", "", "same", v) : v;
            NET_NODE(g, "MatMul", "product", "y", v, net_random(g, "w", each[i].shape, 1));
            GOOD(oct_infer_shapes(g, err));
            assert_int_equal(oct_target_trap(target_named("onnxruntime-vnni"), g, turn) != NULL, each[i].trap);
            assert_null(oct_target_trap(target_named("octet"), g, turn));
            assert_null(oct_target_trap(target_named("onnxruntime-vnni"), g, net_last));
            oct_graph_destroy(g);
        }
}

TEST(reductions_of_scatters_are_traps)
{
    static const char *const ops[] = { "ScatterND", "ScatterElements" }, *const how[] = { NULL, "none", "add", "max" };
    for (size_t i = 0; i < OCT_COUNT(ops) * OCT_COUNT(how); i++) {
        oct_graph *g = net_graph(18);
        const int x = net_input(g, "x", OCT_F32, "4,4"), at = net_input(g, "at", OCT_S64, "4,4"),
                  reduction = (int)(i / OCT_COUNT(ops));
        NET_NODE(g, ops[i % OCT_COUNT(ops)], "scatter", "y", x, at, x);
        if (how[reduction])
            GOOD(oct_node_set_str(g, net_last, "reduction", how[reduction], err));
        assert_int_equal(oct_target_trap(target_named("onnxruntime-x86"), g, net_last) != NULL, reduction > 1);
        assert_null(oct_target_trap(target_named("octet"), g, net_last));
        oct_graph_destroy(g);
    }
}

/* Biases of Gemm that ONNX Runtime takes for ones of another scale, where it runs the layer on integers. */
TEST(biases_are_traps)
{
    static const struct {
        const char *op;
        float scale; /* of the bias */
        bool integer, trap;
    } each[] = { { "Gemm", 0.03f, true, true },
                 { "Gemm", 0.02f, true, false },
                 { "Gemm", 0.03f, false, false },
                 { "Conv", 0.03f, true, false } };
    static const int32_t bias[4] = { 1, 2, 3, 4 };
    static const int8_t bytes[16] = { 1, 2, 3, 4 };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int sx = NET_F32(g, "sx", "", 0.1f), sw = NET_F32(g, "sw", "", 0.2f),
                  sb = NET_F32(g, "sb", "", each[i].scale);
        const int x = NET_NODE(g, "DequantizeLinear", "xd", "xr", net_input(g, "x", OCT_S8, "2,4"), sx);
        const int w = NET_NODE(g, "DequantizeLinear", "wd", "wr", net_const(g, "w", OCT_S8, "4,4", bytes), sw);
        const int b = NET_NODE(g, "DequantizeLinear", "bd", "br", net_const(g, "b", OCT_S32, "4", bias), sb);
        net_output(g, NET_NODE(g, each[i].op, "node", "y", x, w, b));
        assert_int_equal(oct_target_refuses(target_named("onnxruntime-x86"), g, net_last, each[i].integer) != NULL,
                         each[i].trap);
        assert_null(oct_target_refuses(target_named("octet"), g, net_last, each[i].integer));
        oct_graph_destroy(g);
    }
}

/* Operators on integers that OpenVINO takes scales of wrongly, or does not have. */
TEST(spellings_are_traps)
{
    static const struct {
        const char *op, *scales;
        bool trap;
    } each[] = { { "QLinearConv", "4", true },
                 { "QLinearConv", "", false },
                 { "QLinearConv", "1", false },
                 { "QLinearMatMul", "4", true },
                 { "com.microsoft.QGemm", "", true },
                 { "com.microsoft.QLinearConv", "", true },
                 { "com.microsoft.QLinearAdd", "", false },
                 { "Conv", "4", false } };
    static const float four[] = { 1, 2, 3, 4 };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_U8, "1,4,4,4"), s = net_const(g, "s", OCT_F32, each[i].scales, four);
        NET_NODE(g, each[i].op, "node", "y", x, s, s, x, s, s, s, s);
        assert_int_equal(oct_target_refuses(target_named("openvino"), g, net_last, false) != NULL, each[i].trap);
        assert_null(oct_target_refuses(target_named("onnxruntime-x86"), g, net_last, true));
        oct_graph_destroy(g);
    }
}

/* What the files of some targets say as a whole, written down apart from them. */
TEST(targets_differ)
{
    static const struct {
        const char *name;
        bool u8, s8, symmetric, powers, one_each, fixed, float_bias, channels_of_conv, channels_of_gemm;
    } each[] = { { "openvino-gpu", true, true, false, false, false, false, true, true, true },
                 { "vitisai", false, true, true, true, true, true, false, false, false },
                 { "nnapi", true, false, false, false, false, true, false, true, false },
                 { "litert", false, true, false, false, false, false, false, true, false },
                 { "st-neuralart", false, true, false, false, false, true, false, true, true } };
    float scale;
    int32_t zero;
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        const oct_target *t = target_named(each[i].name);
        assert_int_equal(oct_target_takes(t, OCT_U8, OCT_S8), each[i].u8);
        assert_int_equal(oct_target_takes(t, OCT_S8, OCT_S8), each[i].s8);
        assert_int_equal(oct_target_rules_of(t)->symmetric, each[i].symmetric);
        assert_int_equal(oct_target_rules_of(t)->powers_of_two, each[i].powers);
        assert_int_equal(oct_target_rules_of(t)->own_quantizers, each[i].one_each);
        assert_int_equal(oct_target_rules_of(t)->static_shapes, each[i].fixed);
        assert_int_equal(oct_target_rules_of(t)->biases == OCT_BIASES_FLOAT, each[i].float_bias);
        assert_int_equal(oct_target_rules_of(t)->biases == OCT_BIASES_INT8, strcmp(each[i].name, "vitisai") == 0);
        assert_int_equal(oct_target_op_rules_of(t, "Add")->takes_clamp, strcmp(each[i].name, "vitisai") == 0);
        assert_int_equal(!oct_target_op_rules_of(t, "Conv")->per_tensor, each[i].channels_of_conv);
        assert_int_equal(!oct_target_op_rules_of(t, "Gemm")->per_tensor, each[i].channels_of_gemm);
        assert_true(oct_target_rules_of(t)->onnx_alone && oct_target_rules_of(t)->proof &&
                    oct_target_lists(t, "Conv", OCT_TARGET_STATIC));
    }
    assert_false(oct_target_lists(target_named("coreml"), "Conv", OCT_TARGET_STATIC));
    assert_true(oct_target_scale_of(target_named("litert"), "Tanh", OCT_S8, &scale, &zero) && scale == 1.0f / 128 &&
                zero == 0);
    assert_true(oct_target_scale_of(target_named("litert"), "LogSoftmax", OCT_S8, &scale, &zero) &&
                scale == 1.0f / 16 && zero == 127);
    assert_false(oct_target_scale_of(target_named("litert"), "Tanh", OCT_U8, &scale, &zero));
}

/* What OpenVINO rounds twice: extremes of real numbers that are quantized with a zero point, or behind a Concat. */
TEST(quantized_extremes_are_traps)
{
    static const struct {
        const char *op;
        uint8_t zero;
        bool dequantized, joined, trap;
    } each[] = { { "ReduceMax", 3, false, false, true },  { "ReduceMin", 3, false, false, true },
                 { "ReduceMax", 0, false, false, false }, { "ReduceMax", 0, false, true, true },
                 { "ReduceMax", 3, true, false, false },  { "ReduceMean", 3, false, false, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int s = NET_F32(g, "s", "", 0.1f), z = net_const(g, "z", OCT_U8, "", &each[i].zero);
        int x = net_input(g, "x", OCT_F32, "1,4,4,4");
        if (each[i].dequantized)
            x = NET_NODE(g, "DequantizeLinear", "from", "f", NET_NODE(g, "QuantizeLinear", "to", "t", x, s, z), s, z);
        int y = NET_NODE(g, each[i].op, "node", "y", x);
        const int node = net_last;
        y = each[i].joined ? NET_NODE(g, "Concat", "join", "j", y) : y;
        net_output(g, NET_NODE(g, "QuantizeLinear", "last", "q", y, s, z));
        assert_int_equal(oct_target_refuses(target_named("openvino"), g, node, false) != NULL, each[i].trap);
        oct_graph_destroy(g);
    }
}

TEST(conditions_compare_attributes)
{
    oct_target *t = parsed(
        HEAD "op Gather static if axis=0,-2 else it gathers rows alone\nop Concat static if axis=1,absent else no\n");
    oct_graph *g = net_graph(18);
    int x = net_input(g, "x", OCT_F32, "1,3,4,4");
    NET_NODE(g, "Gather", "rows", "r", x, NET_S64(g, "i", "1", 0));
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "it gathers rows alone"); /* absent is not among the values */
    net_int(g, "axis", 0);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    net_int(g, "axis", -2);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    net_int(g, "axis", 2);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "it gathers rows alone");
    NET_NODE(g, "Concat", "join", "j", x, x);
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "runs");
    net_float(g, "axis", 1.0f); /* neither a text nor a whole number */
    assert_string_equal(reason(t, g, OCT_TARGET_STATIC), "no");
    oct_graph_destroy(g);
    oct_target_close(t);
}

/* ---- inheritance ---- */

TEST(a_target_changes_what_it_inherits)
{
    oct_target *t = parsed(
        "name mine\r\nsummary  one more   # no comment \ninherits onnxruntime-x86\ntypes s8*s8\npair-sums exact\n"
        "op Conv,Softmax static per-tensor # all of them\nop MaxPool,LSTM,GRU,RNN,NonZero float\nop Gemm,MatMul static\n");
    assert_string_equal(oct_target_name(t), "mine");
    assert_true(oct_target_lists(t, "Softmax", OCT_TARGET_STATIC) && oct_target_lists(t, "Add", OCT_TARGET_STATIC));
    assert_false(oct_target_lists(t, "MaxPool", OCT_TARGET_STATIC));
    assert_false(oct_target_needs_output(t, "Conv", false)); /* a line replaces all that was said of the operator */
    assert_false(!oct_target_op_rules_of(t, "Conv")->per_tensor);
    assert_true(!oct_target_op_rules_of(t, "Gemm")->per_tensor);
    assert_false(oct_target_saturates(t) || oct_target_takes(t, OCT_U8, OCT_S8));
    assert_true(oct_target_takes(t, OCT_S8, OCT_S8));
    oct_target_close(t);
}

TEST(properties_are_what_a_file_says)
{
    oct_target *
        none = parsed(HEAD),
       *all = parsed(
           HEAD
           "activations symmetric\nbiases float\nscales powers-of-two\nshapes static\nplacement everywhere\n"
           "quantizers one-each\ndequantizers one-each\ncom.microsoft no\ndevice untested\nbatchnorm depthwise\nlstms forward\nattributes written\nbfloat16 never\n"
           "onnxruntime never\n");
    const oct_target_rules *n = oct_target_rules_of(none), *a = oct_target_rules_of(all);
    const bool each[][2] = {
        { n->symmetric, a->symmetric },
        { n->powers_of_two, a->powers_of_two },
        { n->static_shapes, a->static_shapes },
        { n->everywhere, a->everywhere },
        { n->own_quantizers, a->own_quantizers },
        { n->own_dequantizers, a->own_dequantizers },
        { n->onnx_alone, a->onnx_alone },
        { n->proof, a->proof },
        { n->norms_are_convs, a->norms_are_convs },
        { n->lstms_one_way, a->lstms_one_way },
        { n->writes_defaults, a->writes_defaults },
        { n->never_in_ort, a->never_in_ort },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++)
        assert_true(!each[i][0] && each[i][1]);
    assert_true(n->biases == OCT_BIASES_INT32 && a->biases == OCT_BIASES_FLOAT);
    assert_true(n->bfloat16 == OCT_BFLOAT16_NO && a->bfloat16 == OCT_BFLOAT16_NEVER);
    oct_target_close(none);
    oct_target_close(all);
    oct_target *t = parsed(
        HEAD
        "op Mul,Add static shared-inputs\nop AveragePool static same-scale\nop LayerNormalization,Relu rounded\nscale Tanh u16 1/32768 32768\n");
    float scale = 0;
    int32_t zero = 0;
    assert_true(oct_target_op_rules_of(t, "Mul")->shared_inputs &&
                !oct_target_op_rules_of(t, "AveragePool")->shared_inputs &&
                !oct_target_op_rules_of(t, "Sub")->shared_inputs);
    assert_true(oct_target_op_rules_of(t, "AveragePool")->same_scale && !oct_target_op_rules_of(t, "Add")->same_scale);
    assert_true(oct_target_lists(t, "Relu", OCT_TARGET_ROUNDED) && !oct_target_lists(t, "Relu", OCT_TARGET_STATIC));
    assert_true(oct_target_scale_of(t, "Tanh", OCT_U16, &scale, &zero) && scale == 0x1p-15f && zero == 32768);
    assert_false(oct_target_scale_of(t, "Tanh", OCT_U8, &scale, &zero) ||
                 oct_target_scale_of(t, "Sigmoid", OCT_U16, &scale, &zero));
    oct_target_close(t);
}

/* ---- mistakes ---- */

TEST(faults_name_place_and_remedy)
{
    static const struct {
        const char *text, *says, *hint;
    } each[] = {
        { HEAD "sumary x", "t:4:1: there is no key 'sumary'", "did you mean 'summary'?" },
        { HEAD "elephant", "t:4:1: there is no key 'elephant'",
          "one of name, summary, also, inherits, types, pair-sums, bfloat16, quantized, computes, trap, dequantizing, signs, keeps, activations, biases, scales, shapes, placement, "
          "quantizers, dequantizers, batchnorm, lstms, attributes, com.microsoft, onnxruntime, device, scale, costs, cost, op" },
        { HEAD "trap mouse", "t:4:6: there is no trap 'mouse'",
          "one of float16-turned-batch, float16-mean-variance, float16-scatter-reduction, pool-of-lists, gemm-bias, cubic-behind-conv, qlinear-channels, qlinear-unknown, quantized-extremes, dequantized-states" },
        { HEAD "name two", "t:4:1: 'name' stands in two lines", "" },
        { "name", "t:1:5: a name of up to 64 characters is missing", "" },
        { "name a/b", "t:1:7: a name is of letters, digits, '-', '.' and '_'", "" },
        { "name a b", "t:1:8: the end of the line is expected", "" },
        { "summary   ", "t:1:11: the summary is missing", "" },
        { "inherits octett", "t:1:10: there is no built-in target 'octett'", "did you mean 'octet'?" },
        { HEAD "inherits octet", "t:4:1: 'inherits' comes before what the target changes", "" },
        { "types u8*s4", "t:1:7: there is no pair of types 'u8*s4'", "did you mean 'u8*s8'?" },
        { "types", "t:1:6: pairs of activations and weights are missing, as in u8*s8", "" },
        { "pair-sums saturates", "t:1:11: there is no kind of sums 'saturates'", "did you mean 'saturate'?" },
        { "quantized some", "t:1:11: there is no extent 'some'", "one of listed, all" },
        { "bfloat16 maybe", "t:1:10: there is no answer 'maybe'", "one of no, yes, never" },
        { "signs fre", "t:1:7: there is no answer 'fre'", "did you mean 'free'?" },
        { "keeps", "t:1:6: an operator is missing", "" },
        { "keeps Softmax static", "t:1:15: the end of the line is expected", "" },
        { "keeps Xyzzyplugh", "t:1:7: there is no operator 'Xyzzyplugh'",
          "operators are named as in ONNX, and joined by commas without blanks" },
        { "op Add float crossed", "t:1:8: 'float' stands alone", "" },
        { "op QLinearMatMul fit-weights static", "t:1:18: 'fit-weights' stands alone", "" },
        { "op QLinearMatMul float fit-weights", "t:1:24: 'fit-weights' stands alone", "" },
        { "op MatMul float u8-weights", "t:1:11: 'float' stands alone", "" },
        { "op MatMul float others-narrow", "t:1:11: 'float' stands alone", "" },
        { "op Conv fit-weights", "t:1:4: Conv is no operator on integers, which alone can be fit-weights", "" },
        { "activations symetric", "t:1:13: there is no kind of zero points 'symetric'", "did you mean 'symmetric'?" },
        { HEAD "biases int8", "t: biases of int8 are added as they are only where all scales are powers of two",
          "add a line 'scales powers-of-two'" },
        { "biases none", "t:1:8: there is no type of biases 'none'", "one of int32, float, int8" },
        { "pair-sums # none", "t:1:11: the kind of sums is missing", "one of exact, saturate, saturate-in-taps" },
        { "op Conv float float", "t:1:15: 'float' stands alone", "" },
        { "shapes static static", "t:1:15: the end of the line is expected", "" },
        { "scale", "t:1:6: there is no operator ''",
          "operators are named as in ONNX, and joined by commas without blanks" },
        { "scale Tanhh u8 1/128 128", "t:1:7: there is no operator 'Tanhh'", "did you mean 'Tanh'?" },
        { "scale Tanh u9 1/128 128", "t:1:12: there is no type of activations 'u9'", "did you mean 'u8'?" },
        { "scale Tanh u8 1/0 128", "t:1:15: a scale is expected, as in 1/256", "" },
        { "scale Tanh u8 -1 128", "t:1:15: a scale is expected, as in 1/256", "" },
        { "scale Tanh s8 1/128 128", "t:1:21: '128' is no whole number from -128 to 127", "" },
        { "scale Tanh u16 1/128 x", "t:1:22: 'x' is no whole number from 0 to 65535", "" },
        { "scale Tanh u8 1/128 128 1", "t:1:25: the end of the line is expected", "" },
        { "scale Tanh u8 1/128 128\nscale Tanh s8 1/128 0\nscale Tanh u8 1/256 128",
          "t:3:12: Tanh of u8 stands in two lines", "" },
        { "op Mul residual", "t:1:4: Mul has no residual form", "" },
        { "op Mul rounded static", "t:1:22: 'rounded' and another form stand together", "" },
        { HEAD "scales powers-of-two", "t: scales that are powers of two do not end where clamps do",
          "add a line 'activations symmetric'" },
        { "op", "t:1:3: an operator is missing", "" },
        { "op Conv,,Add static", "t:1:9: an operator is missing", "" },
        { "op Add,Conf static", "t:1:8: there is no operator 'Conf'", "did you mean 'Conv'?" },
        { "op Xyzzyplugh static", "t:1:4: there is no operator 'Xyzzyplugh'",
          "operators are named as in ONNX, and joined by commas without blanks" },
        { "op NonZero static", "t:1:4: there is no quantized form of NonZero", "" },
        { "op Add,Relu static", "t:1:8: Relu has no line: the quantizer of the operator before it clamps", "" },
        { "op LSTM static", "t:1:4: LSTM has no static form", "" },
        { "op Add dynamic", "t:1:4: Add has no dynamic form", "" },
        { "op Add static weight-only", "t:1:4: Add has no weight-only form", "" },
        { "op Conv statik", "t:1:9: there is no form or property 'statik'", "did you mean 'static'?" },
        { "op Conv per-tensor",
          "t:1:19: a form is missing, one of static dynamic weight-only rounded residual float fit-weights", "" },
        { "op Conv static float", "t:1:16: 'float' stands alone", "" },
        { "op Add static\nop Mul,Add static", "t:2:8: Add stands in two lines", "" },
        { "op Add,Add static", "t:1:8: Add stands in two lines", "" },
        { "op Add static if", "t:1:17: a condition is expected after 'if', as in mode=nearest,absent", "" },
        { "op Add static if =1", "t:1:18: a condition is expected after 'if', as in mode=nearest,absent", "" },
        { "op Add static if a=1, else b", "t:1:22: a value is missing", "" },
        { "op Add static if a=1",
          "t:1:21: 'else' and a reason for reports are expected, as in: else the target interpolates in float", "" },
        { "op Add static if a=1 else", "t:1:26: the reason after 'else' is missing", "" },
        { "types u8*s8", "t: the line 'name' is missing", "" },
        { "name a\nsummary b\n", "t: the target has no types",
          "add a line of pairs of activations and weights, as 'types u8*s8'" },
        { "name a\ninherits octet\n", "t: the line 'summary' is missing", "" },
        { "name a\nsummary b\ntypes s8*s8\nop LSTM dynamic\n",
          "t: dynamic quantization makes u8 activations, which the target does not take",
          "add u8*s8 or u8*u8 to the line 'types', or leave 'dynamic' out" },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_target *t = NULL;
        assert_int_equal(oct_target_parse(each[i].text, "t", &t, &err), OCT_EMALFORMED);
        assert_null(t);
        assert_string_equal(err.text, each[i].says);
        assert_string_equal(err.hint, each[i].hint);
    }
}

/* ---- files ---- */

TEST(files_are_read)
{
    char path[] = "/tmp/octet-target-XXXXXX";
    oct_err fault = OCT_ERR_INIT;
    oct_target *t = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, HEAD, strlen(HEAD)), strlen(HEAD));
    GOOD(oct_target_open(path, &t, err));
    assert_string_equal(oct_target_name(t), "mine");
    oct_target_close(t);
    assert_int_equal(write(fd, "\0", 1), 1);
    assert_int_equal(oct_target_open(path, &t, &fault), OCT_EMALFORMED);
    assert_non_null(strstr(fault.text, "this is not a target file"));
    assert_int_equal(ftruncate(fd, 2 << 20), 0);
    assert_int_equal(oct_target_open(path, &t, &fault), OCT_EMALFORMED);
    close(fd);
    unlink(path);
    assert_int_equal(oct_target_open(path, &t, &fault), OCT_EIO);
    assert_int_equal(oct_target_open("octett", &t, &fault), OCT_EUSAGE);
    assert_string_equal(fault.text, "there is no target 'octett'");
}

TEST(memory_runs_out)
{
    oct_err fault = OCT_ERR_INIT;
    oct_target *t = NULL;
    oct_alloc_fail_at(0);
    GOOD(oct_target_open("onnxruntime-vnni", &t, err));
    oct_target_close(t);
    size_t n = oct_alloc_fail_at(0);
    for (size_t i = 1; i <= n; i++) {
        oct_alloc_fail_at(i);
        assert_int_equal(oct_target_open("onnxruntime-vnni", &t, &fault), OCT_ENOMEM);
    }
    oct_alloc_fail_at(0);
}
