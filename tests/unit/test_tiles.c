/* Steps that run together on a few rows at a time: which do, and that they give the bits of the steps one by one on
 * every instruction set, with any number of threads, and for a sample alone. */
#include "unit.h"

#include "net.h"
#include "kernels/cpu.h"
#include "runtime/plan_int.h"

enum { CAP = 1 << 19 };
static float want[CAP], got[CAP];
static oct_pool *pools[3];

static int set_up(void **state)
{
    pools[1] = oct_pool_create(2);
    pools[2] = oct_pool_create(3);
    return 0;
}

static int tear_down(void **state)
{
    oct_pool_destroy(pools[1]);
    oct_pool_destroy(pools[2]);
    return 0;
}

TEST_GROUP(set_up, tear_down);

static int rounded(oct_graph *g, const char *name, int x, float scale, uint8_t zero)
{
    char names[4][32];
    static const char *const forms[] = { "%s_scale", "%s_zero", "%s_q", "%s_r" };
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], forms[i], name);
    const int s = NET_F32(g, names[0], "", scale), z = net_const(g, names[1], OCT_U8, "", &zero);
    const int q = NET_NODE(g, "QuantizeLinear", names[2], names[2], x, s, z);
    return NET_NODE(g, "DequantizeLinear", names[3], names[3], q, s, z);
}

/* Attention as exporters write it, on integers. heads: of q; mask: its dimensions. */
static oct_graph *attention(const char *q, const char *k, const char *v, const char *mask)
{
    oct_graph *g = net_graph(17);
    const int qs = rounded(g, "q", net_input(g, "x", OCT_F32, q), 1.0f / 127, 128);
    const int ks = rounded(g, "k", net_input(g, "y", OCT_F32, k), 1.0f / 120, 120);
    const int vs = rounded(g, "v", net_input(g, "z", OCT_F32, v), 1.0f / 127, 128);
    const int m = net_input(g, "m", OCT_F32, mask);
    const int s = NET_NODE(g, "MatMul", "qk", "s", qs, ks);
    const int d = NET_NODE(g, "Div", "scale", "d", s, NET_F32(g, "root", "", 0.7f));
    const int b = NET_NODE(g, "Add", "mask", "b", d, m);
    const int p = rounded(g, "p", NET_NODE(g, "Softmax", "softmax", "p", b), 1.0f / 255, 0);
    net_output(g, NET_NODE(g, "MatMul", "pv", "o", p, vs));
    return g;
}

/* What follows a layer: a bias, an activation, and a normalization that also something else reads, rounded. */
static oct_graph *tail(const char *x, const char *row)
{
    oct_graph *g = net_graph(20);
    const int in = net_input(g, "x", OCT_F32, x);
    const int sum = NET_NODE(g, "Add", "bias", "a", net_random(g, "c", row, 3), in);
    const int gelu = NET_NODE(g, "Gelu", "gelu", "s", sum);
    const int norm = NET_NODE(g, "LayerNormalization", "norm", "n", gelu, net_random(g, "gamma", row, 4),
                              net_random(g, "beta", row, 5));
    net_output(g, NET_NODE(g, "Sigmoid", "last", "o", rounded(g, "r", norm, 1.0f / 30, 110)));
    net_output(g, norm);
    return g;
}

static size_t tiled(const oct_graph *g, const oct_plan_opts *opts)
{
    size_t n = 0;
    oct_plan *p = net_plan(g, opts, NULL);
    for (size_t i = 0; i < p->n_step; i++)
        n += p->step[i]->tiles != NULL;
    oct_plan_destroy(p);
    return n;
}

/* Steps that are shown run alone. */
static const char *const shown[] = { "s", "d", "b", "p", "p_q", "o", "a", "n", "r_q" };
static const oct_plan_opts alone = { .taps = shown, .n_taps = OCT_COUNT(shown) };

static void check(oct_graph *g, size_t steps)
{
    const char *isa;
    assert_int_equal(tiled(g, NULL), steps);
    assert_int_equal(tiled(g, &alone), 0);
    const size_t n = net_run_with(g, &alone, NULL, want, CAP);
    for (size_t i = 0; (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        for (size_t t = 0; t < OCT_COUNT(pools); t++) {
            const oct_plan_opts opts = { .pool = pools[t] };
            memset(got, 0xff, n * sizeof *got);
            assert_int_equal(net_run_with(g, &opts, NULL, got, CAP), n);
            if (memcmp(want, got, n * sizeof *got) != 0)
                fail_msg("%s with %zu threads differs from the steps one by one", isa, t + 1);
        }
    }
    GOOD(oct_isa_limit("native", err));
    oct_graph_destroy(g);
}

/* Sections of one head, of some rows of a head (the last are fewer), and of heads that share a mask by row. */
TEST(attentions)
{
    check(attention("2,3,150,16", "2,3,16,131", "2,3,131,24", "2,1,1,131"), 6);
    check(attention("1,2,301,8", "1,2,8,260", "1,2,260,8", "1,1,301,260"), 6);
    check(attention("4,200,32", "4,32,140", "4,140,8", "140"), 6);
}

/* One matrix of keys and values for all heads; queries of one row each. */
TEST(shared_matrices)
{
    check(attention("2,8,60,16", "16,131", "1,1,131,24", "2,1,60,131"), 6);
    check(attention("64,24,1,8", "64,24,8,130", "64,24,130,8", "64,1,1,130"), 6);
}

TEST(tails)
{
    check(tail("2,45,600", "600"), 6);
    check(tail("97,700", "700"), 6);
    check(tail("3,4,10,301", "1,301"), 6);
}

/* Small tensors stay in the cache as they are. */
TEST(small_tensors)
{
    check(tail("2,10,60", "60"), 0);
    check(attention("1,2,20,8", "1,2,8,20", "1,2,20,8", "20"), 0);
}

/* Each sample of a batch alone: other sections. */
TEST(batches)
{
    static const char *const three[] = { "3,4,150,16", "3,4,16,131", "3,4,131,24", "3,1,1,131" }, *const one[] = {
        "1,4,150,16", "1,4,16,131", "1,4,131,24", "1,1,1,131"
    };
    static float in[4][3 * 4 * 131 * 24];
    oct_graph *g = attention("N,4,150,16", "N,4,16,131", "N,4,131,24", "N,1,1,131");
    oct_plan *all = net_plan(g, NULL, three), *single = net_plan(g, NULL, one);
    const size_t part[] = { 4 * 150 * 16, 4 * 16 * 131, 4 * 131 * 24, 131 }, out = 4 * 150 * 24;
    const void *inputs[4];
    for (size_t i = 0; i < 4; i++) {
        net_fill(in[i], 3 * part[i], 7u + (uint32_t)i);
        inputs[i] = in[i];
    }
    GOOD(oct_plan_run(all, inputs, err));
    for (size_t n = 0; n < 3; n++) {
        for (size_t i = 0; i < 4; i++)
            inputs[i] = in[i] + n * part[i];
        GOOD(oct_plan_run(single, inputs, err));
        assert_memory_equal(oct_plan_output(single, 0)->data, (const float *)oct_plan_output(all, 0)->data + n * out,
                            out * sizeof(float));
    }
    oct_plan_destroy(all);
    oct_plan_destroy(single);
    oct_graph_destroy(g);
}

/* The time of the steps in tiles is theirs. */
TEST(profiles)
{
    oct_graph *g = attention("2,3,150,16", "2,3,16,131", "2,3,131,24", "2,1,1,131");
    static float in[4][1 << 16];
    const void *const inputs[] = { in[0], in[1], in[2], in[3] };
    for (int t = 0; t < 2; t++) {
        const oct_plan_opts opts = { .pool = pools[t] };
        oct_plan *p = net_plan(g, &opts, NULL);
        oct_plan_profile(p, true);
        GOOD(oct_plan_run(p, inputs, err));
        for (size_t i = 0; i < oct_plan_n_steps(p); i++) {
            assert_true(oct_plan_step(p, i).calls == 1);
            assert_true(!p->step[i]->tiles || oct_plan_step(p, i).seconds > 0);
        }
        oct_plan_destroy(p);
    }
    oct_graph_destroy(g);
}
