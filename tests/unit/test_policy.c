/* lib/quant: the policy table. */
#include "unit.h"

#include "passes/pass.h"
#include "quant/policy/policy_int.h"

#include <stdio.h>
#include <string.h>

/* x [1,3,5,10] -> Conv /a/conv (1200 multiply-accumulates) -> depthwise Conv /b/dw (1728) -> MatMul /head/fc (19200) ->
 * Softmax, and an unnamed Relu (output r) of x. */
typedef struct net {
    oct_graph *g;
    int conv, dw, fc, soft, relu;
} net;

static int add(oct_graph *g, const char *op, const char *name, int in, int weights, const char *out, int *value)
{
    oct_err err = OCT_ERR_INIT;
    int id;
    assert_int_equal(oct_graph_add_node(g, op, "", name, weights >= 0 ? 2 : 1, 1, -1, &id, &err), OCT_OK);
    assert_int_equal(oct_graph_set_input(g, id, 0, in, &err), OCT_OK);
    if (weights >= 0)
        assert_int_equal(oct_graph_set_input(g, id, 1, weights, &err), OCT_OK);
    assert_int_equal(oct_graph_add_value(g, out, OCT_F32, value, &err), OCT_OK);
    assert_int_equal(oct_graph_set_output(g, id, 0, *value, &err), OCT_OK);
    return id;
}

static net make_net(void)
{
    static const float zeros[4096];
    oct_err err = OCT_ERR_INIT;
    net n = { .g = oct_graph_create() };
    int x, wc, wd, wm, a, b, c, d, r;
    assert_non_null(n.g);
    assert_int_equal(oct_graph_set_opset(n.g, "", 17, &err), OCT_OK);
    assert_int_equal(oct_graph_add_value(n.g, "x", OCT_F32, &x, &err), OCT_OK);
    n.g->value[x].is_input = true;
    assert_int_equal(oct_graph_set_shape(n.g, x, 4, (oct_dim[]){ { 1, NULL }, { 3, NULL }, { 5, NULL }, { 10, NULL } },
                                         &err),
                     OCT_OK);
    assert_int_equal(oct_graph_new_const_f32(n.g, "wc", 4, (int64_t[]){ 8, 3, 1, 1 }, zeros, &wc, &err), OCT_OK);
    assert_int_equal(oct_graph_new_const_f32(n.g, "wd", 4, (int64_t[]){ 8, 1, 3, 3 }, zeros, &wd, &err), OCT_OK);
    assert_int_equal(oct_graph_new_const_f32(n.g, "wm", 2, (int64_t[]){ 8, 100 }, zeros, &wm, &err), OCT_OK);
    n.conv = add(n.g, "Conv", "/a/conv", x, wc, "a", &a);
    n.dw = add(n.g, "Conv", "/b/dw", a, wd, "b", &b);
    assert_int_equal(oct_node_set_int(n.g, n.dw, "group", 8, &err), OCT_OK);
    n.fc = add(n.g, "MatMul", "/head/fc", b, wm, "c", &c);
    n.soft = add(n.g, "Softmax", "soft max", c, -1, "d", &d);
    n.relu = add(n.g, "Relu", "", x, -1, "r", &r);
    n.g->value[d].is_output = true;
    assert_int_equal(oct_infer_shapes(n.g, &err), OCT_OK);
    return n;
}

/* The scheme that the node gets from the built-in rules and then `text`. */
static oct_policy_row row_of(const net *n, int node, const char *text)
{
    oct_err err = OCT_ERR_INIT;
    oct_policy *p;
    oct_policy_row row;
    assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
    if (oct_policy_add(p, text, "t", &err) != OCT_OK)
        fail_msg("%s", err.text);
    oct_policy_match(p, n->g, node, &(oct_policy_facts){ .macs = 1200 + 1728 + 19200 }, &row);
    row.rule = NULL;
    oct_policy_destroy(p);
    return row;
}

TEST(builtin_table)
{
    net n = make_net();
    oct_err err = OCT_ERR_INIT;
    oct_policy *p;
    oct_policy_row row;
    assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
    oct_policy_match(p, n.g, n.conv, NULL, &row);
    assert_int_equal(row.scheme, OCT_SCHEME_STATIC);
    assert_int_equal(row.weights, OCT_WEIGHT_S8);
    assert_true(row.per_channel);
    assert_int_equal(row.activations, OCT_U8);
    assert_false(row.symmetric);
    assert_null(row.observer.observer); /* measured by the job */
    assert_non_null(strstr(row.rule, "any (built-in:"));
    assert_int_equal(strncmp(oct_policy_place(row.rule), "built-in:", 9), 0);
    assert_null(oct_policy_place("name:/a (b) (my.policy:3)")); /* shown as it is */
    assert_string_equal(oct_policy_place("op:Conv (my.policy:12); the target (7)"), "my.policy:12); the target (7)");
    assert_null(oct_policy_place("no integer form"));
    assert_null(oct_policy_place(
        "left float: rounding 'x' alone would cause 94 % of the loss (about 4.0 dB are gained, for 0.0 % of the multiply-accumulates)"));
    oct_policy_match(p, n.g, n.soft, NULL, &row);
    assert_int_equal(row.scheme, OCT_SCHEME_FLOAT);
    assert_non_null(strstr(row.rule, "op:Softmax"));
    oct_policy_destroy(p);
    oct_graph_destroy(n.g);
}

TEST(columns_are_inherited)
{
    net n = make_net();
    oct_policy_row r =
        row_of(&n, n.conv, "op:Conv - s7 - minmax\n\n# comment\nname:/a/* dynamic - s8/tensor/sym # more\n");
    assert_int_equal(r.scheme, OCT_SCHEME_DYNAMIC);
    assert_int_equal(r.weights, OCT_WEIGHT_S7);
    assert_true(r.per_channel);
    assert_int_equal(r.activations, OCT_S8);
    assert_true(r.symmetric);
    assert_string_equal(r.observer.observer->name, "minmax");
    r = row_of(&n, n.conv, "any float\r\nop:Conv static u8/tensor");
    assert_int_equal(r.scheme, OCT_SCHEME_STATIC);
    assert_int_equal(r.weights, OCT_WEIGHT_U8);
    assert_false(r.per_channel);
    assert_int_equal(r.block, 0);
    r = row_of(&n, n.fc, "op:MatMul weight-only u4/block64/asym\n");
    assert_int_equal(r.scheme, OCT_SCHEME_WEIGHT_ONLY);
    assert_int_equal(r.weights, OCT_WEIGHT_U4);
    assert_int_equal(r.block, 64);
    r = row_of(&n, n.fc, "any weight-only s4/block16\nop:MatMul - s8/channel\n");
    assert_int_equal(r.weights, OCT_WEIGHT_S8);
    assert_int_equal(r.block, 0);
    assert_int_equal(row_of(&n, n.conv, "any weight-only s4/block16\n").block, 16);
    oct_graph_destroy(n.g);
}

TEST(matches)
{
    net n = make_net();
    const struct {
        const char *match;
        bool conv, dw, fc, soft, relu;
    } cases[] = {
        { "any", 1, 1, 1, 1, 1 },
        { "op:Conv", 1, 1, 0, 0, 0 },
        { "op:Relu,MatMul", 0, 0, 1, 0, 1 },
        { "op:Conv & depthwise", 0, 1, 0, 0, 0 },
        { "op:Conv&!depthwise", 1, 0, 0, 0, 0 },
        { "! op:Conv", 0, 0, 1, 1, 1 },
        { "first", 1, 0, 0, 0, 0 },
        { "last", 0, 0, 1, 0, 0 },
        { "io", 1, 0, 0, 1, 1 },
        { "const-b", 1, 1, 1, 0, 0 },
        { "weights>72", 0, 0, 1, 0, 0 },
        { "weights<72", 1, 0, 0, 0, 0 },
        { "weights<1k", 1, 1, 1, 0, 0 },
        { "name:/head/*", 0, 0, 1, 0, 0 },
        { "name:r", 0, 0, 0, 0, 1 },
        { "name:soft\\ max", 0, 0, 0, 1, 0 },
        { "name:/[ab]/??", 0, 1, 0, 0, 0 },
        { "name:/[!a]/*", 0, 1, 0, 0, 0 },
        { "name:/*/f*c", 0, 0, 1, 0, 0 },
        { "name:\\*", 0, 0, 0, 0, 0 },
        { "name:soft[^!-~]max", 0, 0, 0, 1, 0 },
        { "name:*a*a*a*a*a*a*a*a*a*a*b", 0, 0, 0, 0, 0 },
        { "name~/[ab]/(conv|dw)", 1, 1, 0, 0, 0 },
        { "name~conv", 0, 0, 0, 0, 0 },
        { "name~.*\\ .*", 0, 0, 0, 1, 0 },
        { "!name~/.*", 0, 0, 0, 1, 1 },
        { "name~(?i)/A/CONV & op:Conv", 1, 0, 0, 0, 0 },
        { "rank=4", 1, 1, 1, 1, 1 },
        { "rank>3", 1, 1, 1, 1, 1 },
        { "rank<4", 0, 0, 0, 0, 0 },
        { "!rank=4", 0, 0, 0, 0, 0 },
        { "macs>1200", 0, 1, 1, 0, 0 },
        { "macs<2k", 1, 1, 0, 1, 1 },
        { "macs>7.5%", 0, 1, 1, 0, 0 },
        { "macs<8% & const-b", 1, 1, 0, 0, 0 },
        { "range>0", 0, 0, 0, 0, 0 }, /* there are no statistics */
        { "!range>0", 0, 0, 0, 0, 0 },
        { "!sqnr<0", 0, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char text[100];
        snprintf(text, sizeof text, "any static\n%s float\n", cases[i].match);
        const struct {
            int node;
            bool want;
        } w[] = { { n.conv, cases[i].conv },
                  { n.dw, cases[i].dw },
                  { n.fc, cases[i].fc },
                  { n.soft, cases[i].soft },
                  { n.relu, cases[i].relu } };
        for (size_t k = 0; k < OCT_COUNT(w); k++)
            if ((row_of(&n, w[k].node, text).scheme == OCT_SCHEME_FLOAT) != w[k].want)
                fail_msg("%s: node %zu", cases[i].match, k);
    }
    oct_graph_destroy(n.g);
}

TEST(faults_name_the_place)
{
    const struct {
        const char *text, *want, *hint;
    } cases[] = {
        { "any static\nop:Conv sttic", "t:2:9: there is no scheme 'sttic'", "did you mean 'static'?" },
        { "dephwise float", "t:1:1: there is no match 'dephwise'", "did you mean 'depthwise'?" },
        { "op:Conv static s8/chanel/sym", "t:1:19: there is no granularity 'chanel'", "did you mean 'channel'?" },
        { "op:Conv static s5", "t:1:16: there is no weight type 's5'", NULL },
        { "op:Conv static s8/channel/asym", "t:1:16: weights are symmetric", NULL },
        { "any weight-only u4", "t:1:17: 4-bit weights are in blocks", NULL },
        { "any weight-only u4/block24", "t:1:20: there is no granularity 'block24'", "did you mean 'block64'?" },
        { "any weight-only u4/block32/sym", "t:1:17: u4 and u8 blocks have zero points", NULL },
        { "any weight-only s8/block32/asym", "t:1:17: weights are symmetric", NULL },
        { "op:Conv static - f8", "t:1:18: there is no activation type 'f8'", NULL },
        { "op:Conv static - u8/channel", "t:1:21: there is no granularity of activations 'channel'", "one of tensor" },
        { "op:Conv static - u8/tensor/sym/x", "t:1:32: nothing more is expected behind the symmetry", NULL },
        { "op:Conv static/x", "t:1:16: nothing more is expected behind the scheme", NULL },
        { "op:Conv static - - hist-msee", "t:1:20: ", NULL },
        { "op:Conv static - - - -x", "t:1:22: more than five columns", NULL },
        { "op:Conv", "t:1:8: the rule sets nothing", NULL },
        { "op:, float", "t:1:1: an operator type is missing", NULL },
        { "op:A & float", "t:1:8: there is no match 'float'", NULL },
        { "op:A & ", "t:1:8: a match is missing", NULL },
        { "name: float", "t:1:1: a pattern is missing", NULL },
        { "weights>x float", "t:1:9: a number is expected", NULL },
        { "weights>1% float", "t:1:9: a number is expected", NULL },
        { "rank=4.5 float", "t:1:6: a number is expected", NULL },
        { "macs>101% float", "t:1:6: a number or a share is expected", NULL },
        { "macs>-1 float", "t:1:6: a number or a share is expected", NULL },
        { "any & range>nan float", "t:1:13: a number is expected", NULL },
        { "sqnr<20dB float", "t:1:6: a number is expected", NULL },
        { "name~ float", "t:1:1: a pattern is missing after 'name~'", NULL },
        { "name~a(b float", "t:1:6: pattern: ", NULL },
        { "weights>99999999999999999999 float", "t:1:9: a number is expected", NULL },
        { "any auto", "t:1:5: there is no scheme 'auto'", NULL },
        { "value: - - - minmax", "t:1:1: a pattern is missing after 'value:'", NULL },
        { "any & value:x - - - minmax", "t:1:1: 'value:' stands alone", NULL },
        { "value:x & !late - - - minmax", "t:1:1: 'value:' stands alone", NULL },
        { "!value:x - - - minmax", "t:1:1: 'value:' stands alone", NULL },
        { "value:x static - - minmax", "t:1:1: a value has an observer", NULL },
        { "value:x - - s8 minmax", "t:1:1: a value has an observer", NULL },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_policy *p;
        assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
        assert_int_equal(oct_policy_add(p, cases[i].text, "t", &err), OCT_EMALFORMED);
        if (strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s: got %s", cases[i].text, err.text);
        if (cases[i].hint)
            assert_string_equal(err.hint, cases[i].hint);
        oct_policy_destroy(p);
    }
    oct_err err = OCT_ERR_INIT;
    oct_policy *p;
    assert_int_equal(oct_policy_create("/nonexistent", &p, &err), OCT_EIO);
}

/* What statistics say of /a/conv's result alone: 4096 values in equal steps from 0 to 1, whose SQNR in 8 bits is 10
 * log10(4 * 255^2) = 54.2 dB. */
TEST(measured_properties)
{
    enum { N = 4096 };
    static float values[N];
    static const struct {
        const char *match;
        bool conv, dw;
    } cases[] = { { "range>0.9", 1, 0 }, { "range>1.1", 0, 0 }, { "!range>1.1", 1, 0 },        { "range<1.1", 1, 0 },
                  { "sqnr>53.5", 1, 0 }, { "sqnr<53.5", 0, 0 }, { "sqnr<55 & op:Conv", 1, 0 }, { "!sqnr<20", 1, 0 } };
    net n = make_net();
    oct_err err = OCT_ERR_INIT;
    oct_calib *c = oct_calib_create();
    oct_calib_tensor *t;
    assert_non_null(c);
    assert_int_equal(oct_calib_add(c, "a", &t, &err), OCT_OK);
    for (int i = 0; i < N; i++)
        values[i] = (float)i / (N - 1);
    assert_int_equal(oct_stats_update(&t->stats, values, N, &err), OCT_OK);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_policy *p;
        oct_policy_row row;
        char text[64];
        snprintf(text, sizeof text, "any static\n%s float\n", cases[i].match);
        assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
        assert_null(oct_policy_measured(p));
        assert_int_equal(oct_policy_add(p, text, "t", &err), OCT_OK);
        assert_string_equal(oct_policy_measured(p), "t:2:1");
        const oct_policy_facts facts = { .calib = c };
        oct_policy_match(p, n.g, n.conv, &facts, &row);
        if ((row.scheme == OCT_SCHEME_FLOAT) != cases[i].conv)
            fail_msg("%s: conv", cases[i].match);
        oct_policy_match(p, n.g, n.dw, &facts, &row);
        if ((row.scheme == OCT_SCHEME_FLOAT) != cases[i].dw)
            fail_msg("%s: dw", cases[i].match);
        oct_policy_destroy(p);
    }
    oct_calib_destroy(c);
    oct_graph_destroy(n.g);
}

/* Rules of a command line: the columns stand behind '='. */
TEST(rules_of_options)
{
    static const struct {
        const char *text, *fault, *hint;
    } cases[] = {
        { "op:Conv=dynamic", NULL, NULL },
        { "name:/a/conv = dynamic", "--set:7:15: the scheme is missing", NULL },
        { "rank=4 & name:/a/*=dynamic s8/tensor", NULL, NULL },
        { "name~/[a=]/conv=dynamic - s8/tensor/sym", NULL, NULL },
        { "op:Conv=dynamc", "--set:7:9: there is no scheme 'dynamc'", "did you mean 'dynamic'?" },
        { "op:Conv=dynamic s8/tensr", "--set:7:20: there is no granularity 'tensr'", "did you mean 'tensor'?" },
        { "opConv=dynamic", "--set:7:1: there is no match 'opConv'", NULL },
        { "op:Conv", "--set:7:8: the scheme is missing", NULL },
        { "op:Conv=dynamic\nany=float", "--set:7:16: one rule is expected", NULL },
        { "=float", "--set:7:2: there is no match 'float'", NULL },
    };
    net n = make_net();
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_policy *p;
        oct_policy_row row;
        assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
        const oct_status s = oct_policy_set(p, cases[i].text, "--set", 7, &err);
        if ((s == OCT_OK) != !cases[i].fault ||
            (s != OCT_OK && strncmp(err.text, cases[i].fault, strlen(cases[i].fault)) != 0))
            fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].hint)
            assert_string_equal(err.hint, cases[i].hint);
        oct_policy_match(p, n.g, n.conv, NULL, &row);
        if (s == OCT_OK && !strstr(cases[i].text, "rank"))
            assert_int_equal(row.scheme, OCT_SCHEME_DYNAMIC);
        if (s == OCT_OK)
            assert_non_null(strstr(row.rule, "(--set:7)"));
        oct_policy_destroy(p);
    }
    oct_graph_destroy(n.g);
}

static void absent(void *arg, const char *place, const char *op)
{
    char *text = arg;
    snprintf(text + strlen(text), 200, "%s %s;", place, op);
}

TEST(rules_that_match_nothing)
{
    static const struct {
        const char *rules, *text, *hint, *absent;
    } cases[] = {
        { "op:Conv float\nname:/haed/fc float\n", "t:2:1: no node is named '/haed/fc'", "'/head/fc'", "" },
        { "name:/nothing/like/it* float\n", "t:1:1: no node is named '/nothing/like/it*'", "--dump-policy -' names all",
          "" },
        { "op:Conv & name:/haed/fc float\n", "t:1:11: no node is named", "'/head/fc'", "" },
        { "!name:nobody float\n", "t:1:1: no node is named 'nobody'", "--dump-policy -' names all", "" },
        { "op:Cnov float\n", "t:1:1: there is no operator 'Cnov'", "'Conv'", "" },
        { "op:Conv,Softmaxx float\n", "t:1:1: there is no operator 'Softmaxx'", "'Softmax'", "" },
        { "op:Zzzzzzzz float\n", "t:1:1: there is no operator 'Zzzzzzzz'", NULL, "" },
        { "op:LSTM,DynamicQuantizeLSTM float\nname:*fc* float\n", NULL, NULL, "t:1:1 LSTM;t:1:1 DynamicQuantizeLSTM;" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        net n = make_net();
        oct_err err = OCT_ERR_INIT;
        oct_policy *p;
        char said[600] = "";
        assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
        assert_int_equal(oct_policy_add(p, cases[i].rules, "t", &err), OCT_OK);
        assert_int_equal(oct_policy_note(p, n.g, NULL), OCT_OK);
        assert_int_equal(oct_policy_check(p, n.g, absent, said, &err), cases[i].text ? OCT_EUSAGE : OCT_OK);
        if (cases[i].text && !strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].rules, err.text);
        if (cases[i].hint ? !strstr(err.hint, cases[i].hint) : err.hint[0])
            fail_msg("%s: hint %s", cases[i].rules, err.hint);
        assert_string_equal(said, cases[i].absent);
        oct_policy_destroy(p);
        oct_graph_destroy(n.g);
    }
}

/* The last rule that fits a value wins, and those of values fit no node. */
TEST(observers_of_values)
{
    net n = make_net();
    oct_policy *p;
    oct_policy_row row;
    char said[600] = "";
    assert_int_equal(oct_policy_create(NULL, &p, NULL), OCT_OK);
    assert_int_equal(
        oct_policy_add(
            p, "any - - - minmax\nvalue:* - - - hist-mse\nvalue:ab* - - - hist-percentile=99\nvalue:x - - - minmax",
            "t", NULL),
        OCT_OK);
    assert_string_equal(oct_policy_observer_of(p, "other", false).observer->name, "hist-mse");
    assert_string_equal(oct_policy_observer_of(p, "abc", false).observer->name, "hist-percentile");
    assert_true(oct_policy_observer_of(p, "abc", false).param == 99);
    assert_string_equal(oct_policy_observer_of(p, "x", false).observer->name, "minmax");
    oct_policy_match(p, n.g, n.g->order[0], NULL, &row);
    assert_string_equal(row.observer.observer->name, "minmax");
    assert_int_equal(oct_policy_note(p, n.g, NULL), OCT_OK);
    oct_policy_check_values(p, absent, said);
    assert_string_equal(said, "t:3:1 ab*;");
    oct_policy_destroy(p);
    assert_int_equal(oct_policy_create(NULL, &p, NULL), OCT_OK);
    assert_null(oct_policy_observer_of(p, "x", false).observer);
    oct_policy_destroy(p);
    oct_graph_destroy(n.g);
}

/* Weights in blocks are of products: a rule by the name of another node asks for none. */
TEST(blocks_are_of_products)
{
    static const struct {
        const char *text;
        bool blocks;
    } each[] = {
        { "any dynamic - - -", false },
        { "any weight-only - - -", true },
        { "op:MatMul weight-only - - -", true },
        { "name:/head/fc weight-only - - -", true },
        { "name:soft?max weight-only - - -", false },
        { "name:/*/* weight-only - - -", true },
        { "!name:soft?max weight-only - - -", true },
        { "name:later weight-only - - -", true },
        { "name:soft?max weight-only - - -\nname:/head/fc & late weight-only - - -", true },
    };
    net n = make_net();
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_policy *p;
        assert_int_equal(oct_policy_create(NULL, &p, NULL), OCT_OK);
        assert_int_equal(oct_policy_add(p, each[i].text, "t", NULL), OCT_OK);
        if (oct_policy_asks_blocks(p, n.g) != each[i].blocks)
            fail_msg("%s", each[i].text);
        oct_policy_destroy(p);
    }
    oct_graph_destroy(n.g);
}

TEST(memory_runs_out)
{
    oct_err err = OCT_ERR_INIT;
    oct_policy *p;
    oct_alloc_fail_at(0);
    assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_OK);
    oct_policy_destroy(p);
    size_t n = oct_alloc_fail_at(0);
    for (size_t i = 1; i <= n; i++) {
        oct_alloc_fail_at(i);
        assert_int_equal(oct_policy_create(NULL, &p, &err), OCT_ENOMEM);
    }
    oct_alloc_fail_at(0);
}
