/* Fusion: recognizes activations that a model expresses by elementwise nodes, and makes each one operator: Gelu (by
 * Erf, Tanh or Sigmoid), Swish, HardSwish and Mish.
 *
 * Each of these consists of a function T of a polynomial in x, and a polynomial in x and T. For Gelu, T = erf(0.7071
 * x), and the result is 0.5 x + 0.5 x T, in whatever order it is multiplied. So the nodes around T are read as
 * polynomials, and their coefficients are compared. */
#include "passes/match.h"

#include "ops/op.h"

#include <math.h>
#include <string.h>

enum { POWERS = 4, DEEPEST = 8, CANDIDATES = 8, STEPS = 200 };

/* sum over t and p of c[t][p] T^t x^p */
typedef struct poly {
    double c[2][POWERS];
} poly;

typedef struct search {
    const oct_graph *g;
    int x, t;  /* values; t is -1 as long as it is not found */
    int steps; /* how many remain, because a hostile graph may share nodes in many ways */
    oct_match *m;
} search;

/* An activation that was found. */
typedef struct found {
    oct_match m;
    int root, x;
} found;

/* ------------------------------------------------------------------ polynomials */

static poly sum_of(poly a, poly b, double sign)
{
    for (int t = 0; t < 2; t++)
        for (int p = 0; p < POWERS; p++)
            a.c[t][p] += sign * b.c[t][p];
    return a;
}

/* False: a power is too high. */
static bool product_of(const poly *a, const poly *b, poly *y)
{
    poly sum = { 0 };
    for (int i = 0; i < 2 * POWERS; i++)
        for (int k = 0; k < 2 * POWERS; k++) {
            const double v = a->c[i / POWERS][i % POWERS] * b->c[k / POWERS][k % POWERS];
            const int t = i / POWERS + k / POWERS, p = i % POWERS + k % POWERS;
            if (v != 0.0 && (t > 1 || p >= POWERS))
                return false;
            if (v != 0.0)
                sum.c[t][p] += v;
        }
    *y = sum;
    return true;
}

static bool is_number(const poly *a, double *v)
{
    *v = a->c[0][0];
    for (int i = 1; i < 2 * POWERS; i++)
        if (a->c[i / POWERS][i % POWERS] != 0.0)
            return false;
    return true;
}

static bool power_of(const poly *a, const poly *b, poly *y)
{
    double n;
    if (!is_number(b, &n) || (n != 2.0 && n != 3.0) || !product_of(a, a, y))
        return false;
    return n == 2.0 || product_of(y, a, y);
}

static bool combine(const oct_node *n, const poly *a, const poly *b, poly *y)
{
    double v;
    if (oct_is_op(n, "Mul"))
        return product_of(a, b, y);
    if (oct_is_op(n, "Pow"))
        return power_of(a, b, y);
    if (oct_is_op(n, "Div"))
        return is_number(b, &v) && v != 0.0 && product_of(a, &(poly){ .c[0][0] = 1.0 / v }, y);
    *y = sum_of(*a, *b, oct_is_op(n, "Sub") ? -1.0 : 1.0);
    return true;
}

static bool is_arithmetic(const oct_node *n)
{
    return (oct_is_op(n, "Add") || oct_is_op(n, "Sub") || oct_is_op(n, "Mul") || oct_is_op(n, "Div") ||
            oct_is_op(n, "Pow")) &&
           n->n_in == 2 && n->in[0] >= 0 && n->in[1] >= 0 && n->n_out == 1;
}

/* Reads a value as a polynomial. The nodes on the way join the match. */
static bool read_poly(search *s, int value, int depth, poly *y)
{
    double v;
    *y = (poly){ 0 };
    if (s->steps-- <= 0)
        return false;
    if (value == s->x) {
        y->c[0][1] = 1.0;
        return true;
    }
    if (value == s->t) {
        y->c[1][0] = 1.0;
        return true;
    }
    if (oct_number_of(s->g, value, &v)) {
        y->c[0][0] = v;
        return isfinite(v);
    }
    const int id = oct_maker(s->g, value);
    poly a, b;
    if (id < 0 || depth == 0 || !is_arithmetic(&s->g->node[id]) || !oct_match_add(s->m, id))
        return false;
    const oct_node *n = &s->g->node[id];
    return read_poly(s, n->in[0], depth - 1, &a) && read_poly(s, n->in[1], depth - 1, &b) && combine(n, &a, &b, y);
}

/* Compares with a tolerance for the rounding of constants to float32. */
static bool matches(const poly *a, const poly *want)
{
    for (int i = 0; i < 2 * POWERS; i++) {
        const double v = a->c[i / POWERS][i % POWERS], w = want->c[i / POWERS][i % POWERS];
        if (!(fabs(v - w) <= 2e-6 * fabs(w) + 1e-12))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ the activations */

static const poly half_sum = { .c = { { 0, 0.5 }, { 0, 0.5 } } }; /* 0.5 x (1 + T) */
static const poly product = { .c[1][1] = 1.0 };                   /* x T */
static const poly sixth = { .c[1][1] = 1.0 / 6.0 };               /* x T / 6 */
static const poly only_x = { .c[0][1] = 1.0 };
static const poly in_erf = { .c[0][1] = 0.70710678118654752 }; /* x / sqrt 2 */
static const poly in_tanh = { .c[0] = { 0, 0.79788456080286536, 0,
                                        0.79788456080286536 * 0.044715 } }; /* sqrt(2 / pi) ... */
static const poly in_sigmoid = { .c[0] = { 0, 1.5957691216057308, 0, 1.5957691216057308 * 0.044715 } }; /* twice that */
static const poly in_relu6 = { .c[0] = { 3.0, 1.0 } };
static const poly in_unit = { .c[0] = { 0.5, 1.0 / 6.0 } };

typedef struct activation {
    const char *op;
    int64_t opset;
    const char *approximate; /* of Gelu */
    float alpha;             /* of Swish */
    const poly *tail;        /* what x and T must give */
} activation;

static const activation gelu = { "Gelu", 20, NULL, 0, &half_sum }, gelu_tanh = { "Gelu", 20, "tanh", 0, &half_sum },
                        gelu_sigmoid = { "Gelu", 20, "tanh", 0, &product },
                        hard_swish = { "HardSwish", 14, NULL, 0, &product },
                        hard_swish6 = { "HardSwish", 14, NULL, 0, &sixth }, mish = { "Mish", 18, NULL, 0, &product };

static bool is_linear(const poly *p)
{
    return p->c[0][1] > 0.0 && matches(p, &(poly){ .c[0][1] = p->c[0][1] });
}

static bool by_clip(const oct_graph *g, int id, const poly *p, activation *a)
{
    float lo, hi;
    if (!oct_op_clamp(g, id, &lo, &hi) || lo != 0.0f)
        return false;
    *a = hi == 6.0f ? hard_swish6 : hard_swish;
    return (hi == 6.0f && matches(p, &in_relu6)) || (hi == 1.0f && matches(p, &in_unit));
}

static bool by_sigmoid(const poly *p, activation *a)
{
    *a = gelu_sigmoid;
    if (matches(p, &in_sigmoid))
        return true;
    *a = (activation){ "Swish", 24, NULL, (float)p->c[0][1], &product };
    return is_linear(p);
}

/* The activation that T = f(p(x)) may become. */
static bool activation_of(const oct_graph *g, int id, const poly *p, activation *a)
{
    const oct_node *n = &g->node[id];
    if (oct_is_op(n, "Erf")) {
        *a = gelu;
        return matches(p, &in_erf);
    }
    if (oct_is_op(n, "Tanh")) {
        *a = gelu_tanh;
        return matches(p, &in_tanh);
    }
    if (oct_is_op(n, "Sigmoid"))
        return by_sigmoid(p, a);
    if (oct_is_op(n, "HardSigmoid")) {
        *a = hard_swish;
        return fabsf(oct_node_float(n, "alpha", 0.2f) * 6.0f - 1.0f) < 2e-6f &&
               oct_node_float(n, "beta", 0.5f) == 0.5f && matches(p, &only_x);
    }
    return by_clip(g, id, p, a);
}

/* ------------------------------------------------------------------ finding them */

/* Goes from T through its readers until the polynomial is the wanted one. Returns the node, or -1. */
static int find_root(search *s, const poly *want)
{
    int at = s->t;
    for (int i = 0; i < DEEPEST && s->g->value[at].n_uses > 0; i++) {
        const int id = s->g->value[at].uses[0].node;
        poly p;
        if (s->g->value[at].uses[0].slot < 0 || s->g->node[id].n_out != 1 ||
            !read_poly(s, s->g->node[id].out[0], DEEPEST, &p))
            return -1;
        if (matches(&p, want))
            return id;
        at = s->g->node[id].out[0];
    }
    return -1;
}

static bool is_float(const oct_graph *g, int value)
{
    return g->value[value].dtype == OCT_F32;
}

/* Whether T and x give the wanted polynomial at some node, and no intermediate result is visible elsewhere. */
static bool ends_well(search *s, const activation *a, found *y)
{
    y->x = s->x;
    y->root = find_root(s, a->tail);
    return y->root >= 0 && oct_match_holds(s->g, s->m, y->root) &&
           oct_same_dims(s->g, s->x, s->g->node[y->root].out[0]);
}

/* Tries T of node f with this x. */
static bool match_at(const oct_graph *g, int f, int x, found *y, activation *a)
{
    search s = { g, x, -1, STEPS, &y->m };
    poly p;
    y->m = (oct_match){ { f }, 1 };
    if (!is_float(g, x) || !read_poly(&s, g->node[f].in[0], DEEPEST, &p) || !activation_of(g, f, &p, a))
        return false;
    s.t = g->node[f].out[0];
    return ends_well(&s, a, y);
}

/* x * tanh(softplus(x)) */
static bool match_mish(const oct_graph *g, int f, found *y, activation *a)
{
    const int soft = oct_is_op(&g->node[f], "Tanh") ? oct_made_by(g, g->node[f].in[0], "Softplus", 1) : -1;
    if (soft < 0 || !is_float(g, g->node[soft].in[0]))
        return false;
    search s = { g, g->node[soft].in[0], g->node[f].out[0], STEPS, &y->m };
    y->m = (oct_match){ { f, soft }, 2 };
    *a = mish;
    return ends_well(&s, a, y);
}

/* Values that may be x: those from which the argument of T is computed by arithmetic. */
static int candidates(const oct_graph *g, int value, int depth, int *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return n;
    const int id = oct_maker(g, value);
    if (n == CANDIDATES || oct_value_is_constant(&g->value[value]))
        return n;
    list[n++] = value;
    if (depth > 0 && id >= 0 && is_arithmetic(&g->node[id]))
        for (int k = 0; k < 2; k++)
            n = candidates(g, g->node[id].in[k], depth - 1, list, n);
    return n;
}

static bool match(const oct_graph *g, int f, found *y, activation *a)
{
    const oct_node *n = &g->node[f];
    int list[CANDIDATES];
    if (n->n_in < 1 || n->in[0] < 0 || n->n_out != 1 || n->out[0] < 0)
        return false;
    const int count = candidates(g, n->in[0], DEEPEST, list, 0);
    for (int i = 0; i < count; i++)
        if (match_at(g, f, list[i], y, a))
            return true;
    return match_mish(g, f, y, a);
}

static bool may_begin(const oct_node *n)
{
    static const char *const ops[] = { "Erf", "Tanh", "Sigmoid", "HardSigmoid", "Clip" };
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        if (oct_is_op(n, ops[i]))
            return true;
    return false;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    found y;
    activation a;
    int made;
    if (!may_begin(&g->node[id]) || !match(g, id, &y, &a))
        return OCT_OK;
    OCT_TRY(oct_match_replace(g, &y.m, y.root, y.root, &(oct_fused){ a.op, "", a.opset, { y.x }, 1 }, &made, err));
    if (a.approximate)
        OCT_TRY(oct_node_set_str(g, made, "approximate", a.approximate, err));
    if (a.alpha != 0.0f)
        OCT_TRY(oct_node_set_float(g, made, "alpha", a.alpha, err));
    oct_pass_note(log, self, a.op, g->node[made].name);
    return OCT_OK;
}

const oct_pass oct_pass_activation = { "activation", "make elementwise nodes that spell an activation one operator",
                                       .at = at };
