/* lib/passes/input_pixels.h on the preprocessing that exports begin with, and lib/data on inputs that are no
 * pictures. */
#include "unit.h"

#include "data/data.h"
#include "net.h"
#include "passes/input_pixels.h"

#define B OCT_PIXELS_BYTES
#define U OCT_PIXELS_UNIT
#define S OCT_PIXELS_SIGNED
#define N OCT_PIXELS_UNKNOWN

static const char *const names[] = { [B] = "0 to 255", [U] = "0 to 1", [S] = "-1 to 1", [N] = "not known" };

/* Up to three steps: an operator and its number, or a node that moves elements. */
typedef struct step {
    const char *op;
    float by;
    bool first; /* the number is the first operand */
} step;

static int add_step(oct_graph *g, int v, const step *s, int at)
{
    char name[16], out[16], constant[16];
    snprintf(name, sizeof name, "n%d", at);
    snprintf(out, sizeof out, "v%d", at);
    snprintf(constant, sizeof constant, "c%d", at);
    if (strcmp(s->op, "Transpose") == 0) {
        v = NET_NODE(g, "Transpose", name, out, v);
        GOOD(oct_node_set_ints(g, net_last, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
        return v;
    }
    if (strcmp(s->op, "Relu") == 0)
        return NET_NODE(g, "Relu", name, out, v);
    const int c = NET_F32(g, constant, "", s->by);
    return s->first ? NET_NODE(g, s->op, name, out, c, v) : NET_NODE(g, s->op, name, out, v, c);
}

TEST(chains)
{
    static const struct {
        step s[4];
        oct_pixels want;
    } cases[] = {
        { { { "Mul", 1 / 255.f } }, B },
        { { { "Div", 255 } }, B },
        { { { "Mul", 1 / 127.5f }, { "Add", -1 } }, B },
        { { { "Mul", 1 / 127.5f }, { "Sub", 1 } }, B },
        { { { "Div", 127.5f }, { "Sub", 1 }, { "Transpose" } }, B },
        { { { "Transpose" }, { "Sub", 127.5f }, { "Div", 127.5f } }, B },
        { { { "Sub", 116.28f }, { "Mul", 1 / 57.f } }, B },
        { { { "Sub", 117 } }, B }, /* the means alone */
        { { { "Mul", 1 / 255.f, true }, { "Sub", 0.45f }, { "Div", 0.225f } }, B },
        { { { "Sub", 0.45f }, { "Div", 0.225f } }, U },
        { { { "Mul", 2 }, { "Sub", 1 } }, U },
        { { { "Sub", 0.1307f }, { "Div", 0.3081f } }, U },
        { { { "Mul", 255 } }, U },
        { { { "Mul", 255 }, { "Sub", 117 } }, U },
        { { { "Add", 1 }, { "Mul", 127.5f } }, S },
        { { { "Add", 1 }, { "Mul", 127.5f }, { "Sub", 117 } }, N }, /* means again */
        { { { "Mul", 2 } }, N },
        { { { "Mul", 0.458f }, { "Add", -0.03f } }, N }, /* from one normalization to another */
        { { { "Sub", 1, true } }, N },                   /* 1 - x */
        { { { "Relu" }, { "Mul", 1 / 255.f } }, N },     /* another node computes first */
        { { { "Transpose" } }, N },
        { { { "Div", 1, true } }, N },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "1,8,8,3");
        int v = x;
        for (int k = 0; k < 4 && cases[i].s[k].op; k++)
            v = add_step(g, v, &cases[i].s[k], k);
        net_output(g, NET_NODE(g, "Sigmoid", "end", "y", v));
        const oct_pixels got = oct_input_pixels(g, x);
        if (got != cases[i].want)
            fail_msg("case %zu (%s %g): the pixels are %s, expected %s", i, cases[i].s[0].op, (double)cases[i].s[0].by,
                     names[got], names[cases[i].want]);
        oct_graph_destroy(g);
    }
}

/* A BatchNormalization in front, a convolution of single pixels, channels that are split and joined in another order,
 * and bytes with a Cast. */
TEST(other_forms)
{
    for (int form = 0; form < 4; form++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", form == 3 ? OCT_U8 : OCT_F32, "1,3,8,8");
        int v = -1;
        if (form == 0)
            v = NET_NODE(g, "BatchNormalization", "bn", "v", x, NET_F32(g, "s", "3", 1, 1, 1),
                         NET_F32(g, "b", "3", 0, 0, 0), NET_F32(g, "m", "3", 120, 115, 100),
                         NET_F32(g, "r", "3", 3600, 3600, 3600));
        if (form == 1) {
            v = NET_NODE(g, "Conv", "conv", "v", x, NET_F32(g, "w", "3,1,1,1", 0.017f, 0.018f, 0.017f),
                         NET_F32(g, "b", "3", -2, -2, -1.8f));
            net_int(g, "group", 3);
        }
        if (form == 2) {
            v = NET_NODE(g, "Gather", "flip", "f", x, NET_S64(g, "i", "3", 2, 1, 0));
            net_int(g, "axis", 1);
            v = NET_NODE(g, "Sub", "sub", "v", v, NET_F32(g, "m", "1,3,1,1", 104, 117, 123));
        }
        if (form == 3) {
            v = NET_NODE(g, "Cast", "cast", "v", x);
            net_int(g, "to", OCT_F32);
        }
        net_output(g, NET_NODE(g, "Sigmoid", "end", "y", v));
        if (oct_input_pixels(g, x) != B)
            fail_msg("form %d: the pixels are %s, expected %s", form, names[oct_input_pixels(g, x)], names[B]);
        oct_graph_destroy(g);
    }
}

/* Three filters of the lengths 2, 5 and 10, behind which independent values of standard deviation s have the variances
 * (2s)^2, (5s)^2 and (10s)^2. moved: in other places first. fault: what is there in place of what tells. */
static double spread_with(float s, bool moved, const char *fault)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, moved ? "1,8,8,1" : "1,1,8,8");
    int v = x;
    if (moved) {
        v = NET_NODE(g, "Transpose", "t", "a", x);
        GOOD(oct_node_set_ints(g, net_last, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
    }
    v = strcmp(fault, "relu first") == 0 ? NET_NODE(g, "Relu", "r", "b", v) : v;
    v = NET_NODE(g, "Conv", "conv", "c", v, NET_F32(g, "w", "3,1,2,2", 1, -1, 1, 1, 3, 0, 0, 4, 6, 0, 8, 0));
    if (strcmp(fault, "no normalization") == 0)
        v = NET_NODE(g, "Relu", "n", "d", v);
    else
        v = NET_NODE(g, "BatchNormalization", "n", "d", v, NET_F32(g, "s", "3", 1, 1, 1), NET_F32(g, "o", "3", 0, 0, 0),
                     NET_F32(g, "m", "3", 0, 0, 0), NET_F32(g, "r", "3", 4 * s * s, 25 * s * s, 400 * s * s));
    net_output(g, v);
    const double found = oct_input_spread(g, x);
    oct_graph_destroy(g);
    return found;
}

TEST(spreads)
{
    static const float s[] = { 0.25f, 1, 60 };
    static const char *const faults[] = { "relu first", "no normalization" };
    for (size_t i = 0; i < OCT_COUNT(s); i++) /* the last filter spreads twice as far: the median is of the others */
        for (int moved = 0; moved < 2; moved++)
            if (fabs(spread_with(s[i], moved, "") - (double)s[i]) > 1e-5 * (double)s[i])
                fail_msg("the input spreads by %g, expected %g", spread_with(s[i], moved, ""), (double)s[i]);
    for (size_t i = 0; i < OCT_COUNT(faults); i++)
        if (!isnan(spread_with(1, false, faults[i])))
            fail_msg("%s: a spread is told", faults[i]);
}

/* Shapes of pictures, and of what is none. */
TEST(pictures)
{
    static const struct {
        oct_dtype type;
        int rank;
        int64_t d[5];
        bool picture;
        const char *what;
    } cases[] = {
        { OCT_F32, 4, { -1, 3, 224, 224 }, true, "photos" },
        { OCT_F32, 4, { -1, 3, -1, -1 }, true, "photos of any size" },
        { OCT_U8, 4, { 1, 480, 640, 3 }, true, "bytes, channels last" },
        { OCT_F16, 4, { 1, 3, 64, 64 }, true, "photos in float16" },
        { OCT_F32, 4, { -1, 1, 28, 28 }, true, "gray" },
        { OCT_S64, 2, { -1, -1 }, false, "tokens" },
        { OCT_S64, 4, { 1, 3, 64, 64 }, false, "integers" },
        { OCT_BOOL, 4, { 1, 1, 64, 64 }, false, "a mask" },
        { OCT_F32, 4, { -1, 3, -1, 64 }, false, "a cache of three heads" },
        { OCT_F32, 4, { -1, 1, -1, 256 }, false, "a cache of one head" },
        { OCT_F32, 4, { -1, 12, 0, 64 }, false, "an empty cache" },
        { OCT_F32, 4, { -1, 3, 1024, 1 }, false, "coordinates of points" },
        { OCT_F32, 4, { -1, 3, -1, 1 }, false, "coordinates of any number of points" },
        { OCT_F32, 3, { -1, 3, 1024 }, false, "coordinates" },
        { OCT_F32, 4, { 1, 1, 80, 3000 }, false, "a spectrogram" },
        { OCT_F32, 4, { 1, 1, 4, 4 }, false, "a small table" },
        { OCT_F32, 5, { 1, 3, 16, 112, 112 }, false, "a film" },
        { OCT_F32, -1, { 0 }, false, "no shape" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_input_desc in = { .name = "x", .dtype = cases[i].type, .rank = cases[i].rank, .dims = cases[i].d };
        if (oct_input_is_picture(&in) != cases[i].picture)
            fail_msg("%s: expected %s picture", cases[i].what, cases[i].picture ? "a" : "no");
    }
}
