/* lib/quant: the least cut, and schemes chosen by a target's costs, with tables made by hand. */
#include "unit.h"

#include "net.h"
#include "quant/place/least_cut.h"
#include "quant/quant.h"

/* ---- the least cut ---- */

enum { THINGS = 8, PAIRS = 14 };

/* What each choice costs, by trying all of them. */
static double least_of_all(const double pay[THINGS][2], const int pair[PAIRS][2], const double price[PAIRS])
{
    double least = INFINITY;
    for (unsigned first = 0; first < 1u << THINGS; first++) {
        double sum = 0;
        for (int i = 0; i < THINGS; i++)
            sum += pay[i][!(first >> i & 1)];
        for (int k = 0; k < PAIRS; k++)
            sum += (first >> pair[k][0] & 1) && !(first >> pair[k][1] & 1) ? price[k] : 0;
        least = fmin(least, sum);
    }
    return least;
}

TEST(cuts_are_the_least)
{
    uint32_t seed = 5;
    for (int n = 0; n < 200; n++) {
        oct_arena *a = oct_arena_create();
        oct_cut *c;
        double pay[THINGS][2], price[PAIRS], sum = 0;
        int pair[PAIRS][2];
        bool first[THINGS];
        GOOD(oct_cut_create(a, THINGS, &c, err));
        for (int i = 0; i < THINGS; i++) {
            for (int s = 0; s < 2; s++)
                pay[i][s] = net_next(&seed) % 8;
            GOOD(oct_cut_pay(c, i, pay[i][0], pay[i][1], err));
        }
        for (int k = 0; k < PAIRS; k++) {
            pair[k][0] = (int)(net_next(&seed) % THINGS);
            pair[k][1] = (int)(net_next(&seed) % THINGS);
            price[k] = net_next(&seed) % 5 ? net_next(&seed) % 6 : INFINITY;
            GOOD(oct_cut_split(c, pair[k][0], pair[k][1], price[k], err));
        }
        oct_cut_solve(c, first);
        for (int i = 0; i < THINGS; i++)
            sum += pay[i][!first[i]];
        for (int k = 0; k < PAIRS; k++)
            sum += first[pair[k][0]] && !first[pair[k][1]] ? price[k] : 0;
        assert_float_equal(sum, least_of_all(pay, pair, price), 1e-9);
        oct_arena_destroy(a);
    }
}

/* ---- choices ---- */

#define TARGET \
    "name mine\nsummary a board\ntypes u8*s8 u8*u8\nop MatMul static dynamic weight-only\nop Sigmoid static\n"
#define BORDERS "cost quantize float call=1e8\ncost dequantize float call=1e8\n" /* 0.1 ms each */

typedef struct made {
    oct_target *target;
    oct_policy *policy;
    oct_graph *g;
    oct_qjob *job;
} made;

/* x[4][8] -> MatMul a -> Sigmoid s -> MatMul b -> y. */
static made make_in(const char *target, const char *costs, const char *rules, oct_scheme scheme, const char *rows)
{
    made m;
    char text[1000];
    snprintf(text, sizeof text, "%s%s", target, costs);
    GOOD(oct_target_parse(text, "t", &m.target, err));
    GOOD(oct_policy_create(NULL, &m.policy, err));
    if (rules)
        GOOD(oct_policy_add(m.policy, rules, "test", err));
    oct_graph *g = m.g = net_graph(17);
    int v = net_input(g, "x", OCT_F32, rows);
    v = NET_NODE(g, "MatMul", "a", "va", v, net_random(g, "wa", "8,8", 1));
    v = NET_NODE(g, "Sigmoid", "s", "vs", v);
    v = NET_NODE(g, "MatMul", "b", "vb", v, net_random(g, "wb", "8,8", 2));
    net_output(g, v);
    const oct_qjob_opts o = { .policy = m.policy, .target = m.target, .have_data = true, .scheme = scheme };
    GOOD(oct_qjob_create(g, &o, &m.job, err));
    return m;
}

static made make(const char *costs, const char *rules, oct_scheme scheme, const char *rows)
{
    return make_in(TARGET, costs, rules, scheme, rows);
}

static void drop(made *m)
{
    oct_qjob_destroy(m->job);
    oct_policy_destroy(m->policy);
    oct_target_close(m->target);
    oct_graph_destroy(m->g);
}

static const oct_layer_decision *layer(const made *m, const char *name)
{
    for (size_t i = 0; i < oct_qjob_n_layers(m->job); i++)
        if (strcmp(oct_qjob_layer(m->job, i)->name, name) == 0)
            return oct_qjob_layer(m->job, i);
    fail_msg("no layer '%s'", name);
    return NULL;
}

static void becomes(const char *costs, const char *rules, oct_scheme asked, oct_scheme a, oct_scheme s, oct_scheme b)
{
    made m = make(costs, rules, asked, "4,8");
    assert_int_equal(layer(&m, "a")->scheme, a);
    assert_int_equal(layer(&m, "s")->scheme, s);
    assert_int_equal(layer(&m, "b")->scheme, b);
    drop(&m);
}

#define FLOAT OCT_SCHEME_FLOAT
#define STATIC OCT_SCHEME_STATIC
#define DYNAMIC OCT_SCHEME_DYNAMIC
#define AUTO OCT_SCHEME_AUTO

TEST(the_cheapest_wins)
{
    /* 1 ms on floats; half of that on integers */
    becomes(BORDERS "cost product float call=1e9\ncost product static call=5e8\ncost product dynamic call=9e8\n", NULL,
            AUTO, STATIC, STATIC, STATIC);
    becomes(BORDERS "cost product float call=1e9\ncost product static call=2e9\ncost product dynamic call=3e9\n", NULL,
            AUTO, FLOAT, FLOAT, FLOAT);
    becomes(BORDERS "cost product float call=1e9\ncost product static call=9.9e8\ncost product dynamic call=5e8\n",
            NULL, AUTO, DYNAMIC, FLOAT, DYNAMIC);
    /* What is no slower than float is kept. */
    becomes(BORDERS "cost product float call=1e9\ncost product static call=9e8\ncost product dynamic call=5e8\n", NULL,
            AUTO, STATIC, STATIC, STATIC);
    becomes("", NULL, AUTO, STATIC, STATIC, STATIC); /* nothing is known */
    becomes("cost quantize float call=1e9\n", NULL, AUTO, STATIC, STATIC, STATIC);
}

/* Both quantizers around the first product and those behind it cost 0.1 ms each. */
TEST(borders_count)
{
#define PRODUCTS BORDERS "cost product float call=1e9\ncost product static call=5e8\n"
    becomes(PRODUCTS "cost Sigmoid float call=1e8\ncost Sigmoid static call=1.5e8\n", NULL, AUTO, STATIC, STATIC,
            STATIC); /* 0.05 ms are less than a border */
    becomes(PRODUCTS "cost Sigmoid float call=1e8\ncost Sigmoid static call=1.2e9\n", NULL, AUTO, STATIC, FLOAT,
            STATIC);
    /* Products that win less than their borders cost. */
    becomes(
        BORDERS
        "cost product float call=1e9\ncost product static call=9.9e8\ncost Sigmoid float call=1e8\ncost Sigmoid static call=9e8\n",
        NULL, AUTO, FLOAT, FLOAT, FLOAT);
}

TEST(what_is_asked_for_stays)
{
#define SLOW BORDERS "cost product float call=1e9\ncost product static call=2e9\ncost product dynamic call=3e9\n"
    becomes(SLOW, "op:MatMul static - - -\n", AUTO, STATIC, STATIC, STATIC);
    becomes(SLOW, "name:a static - - -\n", AUTO, STATIC, FLOAT, FLOAT);
    becomes(SLOW, "name:a - - s8/tensor/sym -\n", AUTO, FLOAT, FLOAT, FLOAT); /* says nothing of the scheme */
    becomes(SLOW, NULL, STATIC, STATIC, STATIC, STATIC);
    becomes(SLOW, NULL, DYNAMIC, DYNAMIC, FLOAT, DYNAMIC);
}

/* x[4][64] -> MatMul a -> MatMul b -> y, both by 64 x 64; a rule wants b float. */
static made make_wide(const char *costs, bool block_bytes)
{
    made m;
    char text[1000];
    snprintf(text, sizeof text, "%s%s", TARGET, costs);
    GOOD(oct_target_parse(text, "t", &m.target, err));
    GOOD(oct_policy_create(NULL, &m.policy, err));
    GOOD(oct_policy_add(m.policy, "name:b float - - -\n", "test", err));
    oct_graph *g = m.g = net_graph(17);
    int v = net_input(g, "x", OCT_F32, "4,64");
    const int weights = net_random(g, "wa", "64,64", 1);
    v = NET_NODE(g, "MatMul", "a", "va", v, weights);
    v = NET_NODE(g, "MatMul", "b", "vb", v, net_random(g, "wb", "64,64", 2));
    net_output(g, v);
    const oct_qjob_opts o = { .policy = m.policy, .target = m.target, .have_data = true, .block_bytes = block_bytes };
    GOOD(oct_qjob_create(g, &o, &m.job, err));
    return m;
}

/* What is slower on integers has its weights in 8 bits, unless a rule wants it float. */
TEST(what_stays_float_is_stored_small)
{
    made m = make_wide(SLOW, false);
    assert_int_equal(layer(&m, "a")->scheme, OCT_SCHEME_STORED);
    assert_int_equal(layer(&m, "b")->scheme, FLOAT);
    assert_non_null(strstr(layer(&m, "a")->why, "by cost"));
    assert_float_equal(layer(&m, "a")->expected, 1e6, 1e-6);
    drop(&m);
}

/* Blocks lose less than one scale of all inputs: they win what tables cannot tell apart, where the runtime may quantize
 * by them. */
TEST(blocks_win_a_draw)
{
#define DRAW(blocks)                                                                                                                    \
    BORDERS                                                                                                                             \
    "cost product float call=1e9\ncost product static call=2e9\ncost product dynamic call=5e8\ncost product blocks8-bytes call=" blocks \
    "\n"
    static const struct {
        const char *costs;
        bool bytes;
        oct_scheme a;
    } each[] = { { DRAW("5e8"), true, OCT_SCHEME_WEIGHT_ONLY },
                 { DRAW("5e8"), false, DYNAMIC },
                 { DRAW("6e8"), true, DYNAMIC } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        made m = make_wide(each[i].costs, each[i].bytes);
        assert_int_equal(layer(&m, "a")->scheme, each[i].a);
        assert_float_equal(layer(&m, "a")->expected, 5e5, 1e-6);
        drop(&m);
    }
}

/* x[4][8] -> MatMul a -> Sigmoid s -> MatMul b as above, in a target that takes activations of 16 bits, too. */
static void in_16_bits(const char *costs, const char *rules, const oct_scheme scheme[3], const oct_dtype type[3],
                       double decided)
{
    static const char *const names[] = { "a", "s", "b" };
    made m = make_in(
        "name mine\nsummary a board\ntypes u8*s8 u16*s8\nop MatMul static dynamic weight-only\nop Sigmoid static\n",
        costs, rules, AUTO, "4,8");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(layer(&m, names[i])->scheme, scheme[i]);
        if (scheme[i] == STATIC)
            assert_int_equal(layer(&m, names[i])->row->activations, type[i]);
    }
    assert_float_equal(oct_qjob_expected(m.job).decided[0], decided, 1e-6);
    drop(&m);
}

/* Borders take 0.1 ms, products 1 ms on floats. */
TEST(sixteen_bits_are_a_price_too)
{
    static const oct_scheme all[] = { STATIC, STATIC, STATIC }, none[] = { FLOAT, FLOAT, FLOAT },
                            middle[] = { STATIC, FLOAT, STATIC };
    static const oct_dtype wide[] = { OCT_U16, OCT_U16, OCT_U16 }, narrow[] = { OCT_U8, OCT_U8, OCT_U8 },
                           first[] = { OCT_U16, OCT_U8, OCT_U8 };
#define IN16(eight, sixteen) \
    BORDERS "cost product float call=1e9\ncost product static call=" eight "\ncost product static16 call=" sixteen "\n"
    /* Where 8 bits take longer than floats and 16 do not: two products of 0.5 ms and x quantized; the Sigmoid, which no
     * table knows, goes along. */
    in_16_bits(IN16("2e9", "5e8"), NULL, all, wide, 1.1e6);
    in_16_bits(IN16("2e9", "3e9"), NULL, none, narrow, 2e6);
    in_16_bits(IN16("2e9", "1.1e9"), NULL, none, narrow, 2e6);
    in_16_bits(IN16("9e8", "4e8"), NULL, all, narrow,
               1.9e6); /* what the policy gives is kept where it is no slower than float */
    becomes(IN16("2e9", "5e8"), NULL, AUTO, FLOAT, FLOAT, FLOAT); /* the target takes no such activations */
    /* A rule's: 0.7 ms of 16 bits, 0.5 of 8, x quantized, and a conversion between the two. */
    in_16_bits(IN16("5e8", "7e8"), "name:a - - u16 -\n", all, first, 0.7e6 + 0.5e6 + 0.1e6 + 0.2e6);
    /* 0.05 ms are saved beside a Sigmoid that runs on 8 bits: less than a conversion of 0.2 takes, more than one of
     * 0.02. The Sigmoid leaves in the end. */
#define SLOW_SIGMOID \
    "cost product float call=1e9\ncost product static call=5e8\ncost product static16 call=4.5e8\ncost Sigmoid float call=1e8\ncost Sigmoid static call=9e9\n"
    in_16_bits(BORDERS SLOW_SIGMOID, NULL, middle, narrow, 2 * 0.5e6 + 0.1e6 + 2 * 0.1e6);
    in_16_bits("cost quantize float call=1e7\ncost dequantize float call=1e7\n" SLOW_SIGMOID, NULL, middle, wide,
               2 * 0.45e6 + 0.1e6 + 2 * 0.01e6);
}

TEST(short_runs_are_left_alone)
{
    becomes("cost product float call=1e8\ncost product static call=1.2e8\n", NULL, AUTO, STATIC, STATIC, STATIC);
    becomes("cost product float call=1e8\ncost product static call=1.5e8\n", NULL, AUTO, FLOAT, FLOAT, FLOAT);
}

/* Nanoseconds, by hand: 4 rows of 8 by 8 are 256 multiply-accumulates, 32 outputs, 32 inputs, 64 weights. */
TEST(times_are_those_of_the_table)
{
    made m = make(
        "cost quantize float out=1000\ncost product float call=1e9\ncost product static call=2000 mac=1000 out=100 in=10 weight=1\n",
        NULL, AUTO, "4,8");
    const oct_target_times t = oct_qjob_expected(m.job);
    const double one = 2 + 256 + 3.2 + 0.32 + 0.064;
    assert_int_equal(t.n, 1);
    assert_float_equal(t.on_floats[0], 2e6, 1e-6);
    assert_float_equal(t.decided[0], 2 * one + 32, 1e-6); /* with the quantizer of x; b needs none behind it */
    assert_float_equal(layer(&m, "a")->expected, one, 1e-6);
    assert_float_equal(layer(&m, "a")->on_floats, 1e6, 1e-6);
    assert_true(isnan(layer(&m, "s")->expected));
    drop(&m);
    m = make("cost product float out=1000\ncost product static out=500\n", NULL, AUTO, "?,8"); /* one sample */
    assert_float_equal(oct_qjob_expected(m.job).on_floats[0], 16, 1e-9);
    drop(&m);
}

/* Two classes of CPUs: neither may lose. */
TEST(each_class_must_hold)
{
    oct_target *t;
    GOOD(oct_target_open("onnxruntime-x86", &t, err));
    assert_int_equal(oct_target_n_costs(t), 2);
    assert_string_equal(oct_target_costs_name(t, 0), "onnxruntime-avx2");
    oct_target_close(t);
    GOOD(oct_target_open("onnxruntime-vnni", &t, err));
    assert_int_equal(oct_target_n_costs(t), 1); /* in place of those that it inherits */
    oct_target_close(t);
    GOOD(oct_target_parse("name m\nsummary s\ninherits onnxruntime-vnni\ncosts none\n", "t", &t, err));
    assert_int_equal(oct_target_n_costs(t), 0);
    oct_target_close(t);
}

TEST(faults_are_told)
{
    static const struct {
        const char *line, *says;
    } each[] = { { "cost prodct float call=1", "there is no kind of operator 'prodct'" },
                 { "cost product quick call=1", "there is no way to run it 'quick'" },
                 { "cost product float", "a term and its picoseconds are missing" },
                 { "cost product float call", "a term and its picoseconds are expected" },
                 { "cost product float mac=1 mac=2", "'mac' stands twice in this line" },
                 { "cost product float mac=-1", "'-1' is no number from 0 to 1e+15" },
                 { "cost product float mac=inf", "'inf' is no number from 0 to 1e+15" },
                 { "cost product float mac=1e16", "'1e16' is no number from 0 to 1e+15" },
                 { "cost product float mac=", "a number from 0 to 1e+15 is missing" },
                 { "cost product float mac=1\ncost product float out=1",
                   "product float stands in two lines of this table" },
                 { "costs", "names of tables of costs, or 'none', are missing" },
                 { "costs onnxruntime-avx3", "there is no table of costs 'onnxruntime-avx3'" } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_err err = OCT_ERR_INIT;
        char text[400];
        oct_target *t = NULL;
        snprintf(text, sizeof text, "%s%s\n", TARGET, each[i].line);
        assert_int_equal(oct_target_parse(text, "t", &t, &err), OCT_EMALFORMED);
        if (!strstr(err.text, each[i].says))
            fail_msg("'%s': %s", each[i].line, err.text);
    }
}
