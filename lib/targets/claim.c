/* Parts of a graph that another runtime holds.
 *
 * Every node has a rank: how often a path that leads to it leaves the nodes that can be claimed. Along an edge the rank
 * never falls, and it rises where the path leaves. So a path from a node of some rank that leaves and returns ends at a
 * higher rank: the nodes of one rank are convex, and parts cannot wait for each other. All steps below keep this. They
 * take a time that is linear in the nodes and edges. */
#include "targets/claim.h"

#include "forms/forms.h"
#include "forms/qlinear.h"
#include "ops/core/quantized.h"
#include "ops/traits.h"
#include "passes/pass.h"

#include <string.h>

/* What a node gains here and what a part costs, in picoseconds, on one thread of an AVX-512 VNNI machine: the
 * difference between ONNX Runtime's kernels (share/costs) and our own (bench/results.csv), rounded to its disadvantage.
 * Nodes in float take as long here as there, except that convolutions take 7 % longer; entering a node costs less. */
#define GAIN_CALL 0.5e6       /* any node */
#define GAIN_LAYER 1.5e6      /* a layer on integers, in addition */
#define GAIN_MAC 1.5          /* each of its multiply-accumulates */
#define GAIN_LAYER_OUT 80.0   /* each element of its result */
#define GAIN_OUT 30.0         /* the same of other nodes on integers */
#define LOSS_FLOAT_KERNEL 1.2 /* each multiply-accumulate of a convolution in float */
#define COST_PART 5e6         /* entering and leaving a part */
#define COST_BORDER 0.3e6     /* a tensor that crosses the border of a part */
#define COST_BORDER_BYTE 40.0 /* its copy, and another layout */

enum {
    USUAL = 128,   /* for a dimension that is open, except for the first, which is 1 */
    MOST_USES = 64 /* readers of a value that are looked at */
};

/* A graph that can be computed as a whole is divided only if that gains so many times as much. */
#define DIVIDING_GAINS 1.25

/* What a node is. */
typedef enum work {
    WORK_FLOAT,    /* anything else */
    WORK_SPELLING, /* it expresses quantized values */
    WORK_MOVE,     /* on integers, but no layer */
    WORK_LAYER     /* a layer on integers */
} work;

/* All of it is indexed by node, and by value where that is said. */
typedef struct claimer {
    const oct_graph *g;
    oct_arena *arena;
    oct_claim_what what;
    const char **cannot; /* why a node cannot be computed here; NULL: it can */
    work *work;
    double *gain, *loss; /* loss: of convolutions in float */
    double *bytes;       /* [values] */
    bool *inner;         /* a value of it cannot cross a border */
    bool *constant;      /* it depends on constants alone */
} claimer;

/* A way to divide the graph. */
typedef struct division {
    const char **out; /* why a node is in no part; NULL: it is in one */
    int *rank;
    int *component; /* of nodes in parts: connected ones have the same */
    double value;   /* what is gained by all parts */
    bool whole;     /* there is one part that has all nodes */
} division;

static int n_read(const oct_node *n)
{
    return n->n_in + n->n_captured;
}

/* The i-th value that a node or its nested graphs read; -1: absent. */
static int read_at(const oct_node *n, int i)
{
    return i < n->n_in ? n->in[i] : n->captured[i - n->n_in];
}

/* ---- what can be computed ---- */

/* Whether a node is an operator on integers that reading the graph makes a float operator on quantized values. */
static bool is_qlinear(const oct_node *n)
{
    const oct_qlinear *f = oct_qlinear_of(n);
    return f && strcmp(f->op, n->op) != 0;
}

static const char *no_operator(const oct_graph *g, int node, oct_arena *a, const char *where)
{
    const oct_node *n = &g->node[node];
    const char *dot = n->domain[0] ? "." : "";
    bool elsewhen = false;
    size_t n_all;
    const oct_op *const *all = oct_op_all(&n_all);
    if (oct_graph_function(g, n->domain, n->op, n->overload))
        return oct_arena_printf(a, "operator %s%s%s%s is a function that is not inlined", n->domain, dot, n->op, where);
    for (size_t i = 0; i < n_all && !elsewhen; i++)
        elsewhen = strcmp(all[i]->type, n->op) == 0 && strcmp(all[i]->domain, n->domain) == 0;
    return elsewhen ? oct_arena_printf(a, "operator %s%s%s%s is unknown in opset %lld", n->domain, dot, n->op, where,
                                       (long long)oct_node_opset(g, n))
                    : oct_arena_printf(a, "operator %s%s%s%s is unknown", n->domain, dot, n->op, where);
}

static bool can_cross(const oct_value *v)
{
    switch (v->dtype) {
    case OCT_F32:
    case OCT_F16:
    case OCT_BF16:
    case OCT_F64:
    case OCT_U8:
    case OCT_S8:
    case OCT_U16:
    case OCT_S16:
    case OCT_U32:
    case OCT_S32:
    case OCT_U64:
    case OCT_S64:
    case OCT_BOOL: return v->kind == OCT_VALUE_TENSOR;
    default: return false;
    }
}

/* What of a value is unknown, so that it cannot be read or made here; NULL: nothing. */
static const char *unknown_of(const oct_value *v)
{
    const bool lost =
        v->constant ? !v->constant->data && v->constant->bytes : v->producer < 0 && !v->is_input && v->outer < 0;
    return lost ? "elements" : v->kind == OCT_VALUE_TENSOR && v->dtype == OCT_UNDEFINED ? "type" : NULL;
}

/* Sets *why where a node of g or of a nested graph cannot be computed; it is in arena. */
static oct_status find_fault(const oct_graph *g, int node, const char *where, oct_arena *a, const char **why,
                             oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_graph *nested;
    *why = NULL;
    const oct_op *op = oct_op_of(g, node);
    /* NhwcMaxPool becomes MaxPool. */
    if (!oct_op_can_run(op) && !(op && (is_qlinear(n) || strcmp(n->op, "NhwcMaxPool") == 0))) {
        *why = no_operator(g, node, a, where);
        return *why ? OCT_OK : oct_nomem(err);
    }
    if (op && op->makes_maps) {
        *why = oct_arena_printf(a, "operator %s makes maps%s", n->op, where);
        return *why ? OCT_OK : oct_nomem(err);
    }
    for (int i = 0; i < n_read(n) + n->n_out; i++) {
        const int v = i < n_read(n) ? read_at(n, i) : n->out[i - n_read(n)];
        const bool unused = i >= n_read(n) && v >= 0 && !g->value[v].n_uses && !g->value[v].is_output;
        /* Types inside a nested graph are known only when it runs. */
        if (v < 0 || unused || (g->outer && !g->value[v].constant))
            continue;
        const char *what = unknown_of(&g->value[v]);
        if (what) {
            *why =
                oct_arena_printf(a, "the %s of '%s' %s unknown", what, g->value[v].name, what[0] == 'e' ? "are" : "is");
            return *why ? OCT_OK : oct_nomem(err);
        }
    }
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        for (size_t i = 0; i < nested->n_order && !*why; i++)
            OCT_TRY(find_fault(nested, nested->order[i], " in its graph", a, why, err));
    return OCT_OK;
}

static oct_status find_faults(claimer *c, oct_err *err)
{
    const oct_graph *g = c->g;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        OCT_TRY(find_fault(g, id, "", c->arena, &c->cannot[id], err));
        c->constant[id] = !n->n_captured && !oct_node_graph_at(n, 0);
        for (int k = 0; k < n_read(n) + n->n_out; k++) {
            const int v = k < n_read(n) ? read_at(n, k) : n->out[k - n_read(n)];
            const int maker = v >= 0 ? g->value[v].producer : -1;
            if (v < 0)
                continue;
            c->inner[id] |= !g->value[v].constant && !can_cross(&g->value[v]);
            if (k < n_read(n))
                c->constant[id] &= maker >= 0 ? c->constant[maker] : g->value[v].constant != NULL;
        }
        if (!n->n_in)
            c->constant[id] &= strcmp(n->op, "Constant") == 0;
    }
    return OCT_OK;
}

/* ---- what it gains ---- */

/* The number of a value's elements. */
static double elements(const oct_graph *g, int value)
{
    const oct_shape *s = &g->value[value].shape;
    double n = 1;
    for (int d = 0; d < s->rank; d++)
        n *= s->d[d].n >= 0 ? (double)s->d[d].n : d ? USUAL : 1;
    return s->rank >= 0 ? n : USUAL;
}

/* Products of operators that are defined on quantized weights, as far as records do not count them: each weight counts
 * once for each row of the first input. */
static double count_macs(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const double macs = (double)oct_node_macs(g, node);
    double weights = 0, rows = 1;
    if (macs > 0 || n->n_in < 2 || n->in[0] < 0 || oct_value_is_constant(&g->value[n->in[0]]))
        return macs;
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && oct_value_is_constant(&g->value[n->in[i]]))
            weights += elements(g, n->in[i]);
    const oct_shape *s = &g->value[n->in[0]].shape;
    if (s->rank > 0 && s->d[s->rank - 1].n > 0)
        rows = elements(g, n->in[0]) / (double)s->d[s->rank - 1].n;
    return weights * rows;
}

/* Whether an operator, which may be one on integers, is a layer. */
static bool is_layer(const oct_op *op, const oct_qlinear *f)
{
    return f ? oct_op_is_layer(oct_op_find("", f->op, f->opset)) : op && (op->scheme || oct_op_is_layer(op));
}

/* What a node of a graph whose quantized values were read is, and what it gains. */
static oct_status weigh(const oct_graph *read, int node, work *kind, double *gain, double *loss, oct_err *err)
{
    const oct_node *n = &read->node[node];
    const oct_op *op = oct_op_of(read, node);
    const oct_qlinear *f = oct_qlinear_of(n);
    const bool on_integers = is_qlinear(n);
    const oct_graph *nested;
    oct_compute how = OCT_ON_REALS;
    double out = 0;
    *kind = WORK_FLOAT;
    *gain = GAIN_CALL;
    *loss = 0;
    for (int k = 0; k < n->n_out; k++)
        out += n->out[k] >= 0 ? elements(read, n->out[k]) : 0;
    if ((op && op->is_qdq) || oct_border_of(read, n)) {
        *kind = WORK_SPELLING;
        *gain = 0;
    } else if (op && !op->scheme && !on_integers) {
        OCT_TRY(oct_compute_of(read, node, &how, err));
    }
    if (how != OCT_ON_REALS || on_integers || (op && op->scheme))
        *kind = is_layer(op, on_integers ? f : NULL) ? WORK_LAYER : WORK_MOVE;
    if (*kind == WORK_LAYER)
        *gain += GAIN_LAYER + GAIN_MAC * count_macs(read, node) + GAIN_LAYER_OUT * out;
    else if (*kind == WORK_MOVE)
        *gain += GAIN_OUT * out;
    else if (op && oct_op_is_layer(op) && op->weights.kernel)
        *loss = LOSS_FLOAT_KERNEL * (double)oct_node_macs(read, node);
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        for (size_t i = 0; i < nested->n_order; i++) {
            work inside;
            double more, less;
            OCT_TRY(weigh(nested, nested->order[i], &inside, &more, &less, err));
            *kind = inside > *kind && inside != WORK_SPELLING ? inside : *kind;
            *gain += more;
            *loss += less;
        }
    return OCT_OK;
}

/* A copy of g with sizes for dimensions that are open, if these suit all nodes. */
static oct_status copy_sized(const oct_graph *g, oct_graph **copy, oct_err *err)
{
    oct_err ignored = OCT_ERR_INIT;
    OCT_TRY(oct_graph_clone(g, copy, err));
    if (oct_set_usual_shapes(*copy, &ignored) == OCT_OK)
        return OCT_OK;
    oct_graph_destroy(*copy);
    *copy = NULL;
    return oct_graph_clone(g, copy, err);
}

/* The node of the file that a node of the graph that was read stands for; -1: none. */
static int node_in_file(const oct_graph *g, const oct_graph *read, int node)
{
    const oct_node *n = &read->node[node];
    if ((size_t)node < g->n_node && !g->node[node].dead)
        return node;
    for (int i = 0; i < n->n_out + n->n_in; i++) {
        const int v = i < n->n_out ? n->out[i] : n->in[i - n->n_out];
        if (v >= 0 && (size_t)v < g->n_value && g->value[v].producer >= 0)
            return g->value[v].producer;
    }
    return -1;
}

/* Operators of ONNX Runtime with channels last are read only in their usual form. */
static oct_status put_channels_first(oct_graph *g, oct_err *err)
{
    size_t n;
    const oct_pass *const *pass = oct_pass_all(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(pass[i]->name, "nhwc") == 0)
            OCT_TRY(pass[i]->run(g, pass[i], NULL, err));
    return oct_graph_sort(g, err);
}

static oct_status weigh_read(claimer *c, oct_graph *read, oct_err *err)
{
    const oct_graph *g = c->g;
    for (size_t v = 0; v < g->n_value; v++)
        if (!g->value[v].dead)
            c->bytes[v] = elements(read, (int)v) * oct_dtype_bits(g->value[v].dtype) / 8;
    OCT_TRY(put_channels_first(read, err));
    OCT_TRY(oct_forms_read(read, &(oct_read_opts){ .keeps_lstm = true }, NULL, err));
    oct_graph_prune(read);
    for (size_t i = 0; i < g->n_order; i++)
        c->work[g->order[i]] = WORK_SPELLING;
    for (size_t i = 0; i < read->n_order; i++) {
        const int id = read->order[i], of = node_in_file(g, read, id);
        work kind;
        double gain, loss;
        if (of < 0)
            continue;
        OCT_TRY(weigh(read, id, &kind, &gain, &loss, err));
        if (kind != WORK_SPELLING && (kind > c->work[of] || c->work[of] == WORK_SPELLING))
            c->work[of] = kind;
        c->gain[of] += gain;
        c->loss[of] += loss;
    }
    return OCT_OK;
}

static oct_status weigh_all(claimer *c, oct_err *err)
{
    oct_graph *read = NULL;
    OCT_TRY(copy_sized(c->g, &read, err));
    const oct_status s = weigh_read(c, read, err);
    oct_graph_destroy(read);
    return s;
}

/* ---- a division ---- */

static bool in_part(const division *d, int node, int rank)
{
    return node >= 0 && !d->out[node] && d->rank[node] == rank;
}

static bool is_dequantizer(const oct_graph *g, int node)
{
    return node >= 0 && strcmp(g->node[node].op, "DequantizeLinear") == 0;
}

static bool is_quantizer(const oct_graph *g, int node)
{
    return node >= 0 && strcmp(g->node[node].op, "QuantizeLinear") == 0;
}

/* Whether a part of this rank reads the value by another node than `but`. Of a value with very many readers it is
 * assumed. */
static bool is_read_in(const claimer *c, const division *d, int value, int rank, int but)
{
    const oct_value *v = &c->g->value[value];
    for (size_t i = 0; i < v->n_uses && i < MOST_USES; i++)
        if (v->uses[i].node != but && in_part(d, v->uses[i].node, rank))
            return true;
    return v->n_uses > MOST_USES;
}

static bool is_read_outside(const claimer *c, const division *d, int value, int rank)
{
    const oct_value *v = &c->g->value[value];
    bool any = v->is_output || v->n_uses > MOST_USES;
    for (size_t i = 0; i < v->n_uses && !any; i++)
        any = !in_part(d, v->uses[i].node, rank);
    return any;
}

static void set_ranks(const claimer *c, division *d)
{
    const oct_graph *g = c->g;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        int rank = 0;
        for (int k = 0; k < n_read(n); k++) {
            const int maker = read_at(n, k) >= 0 ? g->value[read_at(n, k)].producer : -1;
            const int of = maker >= 0 ? d->rank[maker] + (d->out[id] && !d->out[maker]) : 0;
            rank = of > rank ? of : rank;
        }
        d->rank[id] = rank;
    }
    /* What no node of the same part feeds comes as late as it may, beside its readers; so do dequantizers. */
    for (size_t i = g->n_order; i-- > 0;) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        int late = INT32_MAX;
        bool fed = false;
        if (d->out[id])
            continue;
        for (int k = 0; k < n->n_out; k++) {
            const oct_value *y = n->out[k] >= 0 ? &g->value[n->out[k]] : NULL;
            for (size_t u = 0; y && u < y->n_uses; u++) {
                const int by = y->uses[u].node, most = d->rank[by] - (d->out[by] != NULL);
                late = most < late ? most : late;
            }
        }
        for (int k = 0; k < n_read(n); k++)
            fed |= read_at(n, k) >= 0 && in_part(d, g->value[read_at(n, k)].producer, d->rank[id]);
        if (late < INT32_MAX && late > d->rank[id] && (!fed || c->constant[id] || is_dequantizer(g, id)))
            d->rank[id] = late;
    }
}

static double border(const claimer *c, int value)
{
    return COST_BORDER + COST_BORDER_BYTE * c->bytes[value];
}

/* ---- fringes ---- */

/* The value that enters a part for a node: what a dequantizer reads that only this node needs, or the value itself.
 * *by: whose reading of it ends with the node. */
static int entering(const claimer *c, const division *d, int node, int value, int *by)
{
    const int maker = c->g->value[value].producer;
    const oct_node *n = is_dequantizer(c->g, maker) ? &c->g->node[maker] : NULL;
    *by = node;
    if (!n || !in_part(d, maker, d->rank[node]) || c->constant[maker] || !oct_value_used_once(&c->g->value[value]) ||
        n->n_in < 1 || n->in[0] < 0)
        return value;
    *by = maker;
    return n->in[0];
}

/* The border that a node's removal from the start of its part saves; negative: it costs. false: the node is not at the
 * start, or only the graph's inputs are before it. */
static bool saved_at_start(const claimer *c, const division *d, int node, double *saved)
{
    const oct_graph *g = c->g;
    const oct_node *n = &g->node[node];
    const int rank = d->rank[node];
    bool behind_other = false;
    *saved = 0;
    for (int k = 0; k < n_read(n); k++) {
        int by;
        if (read_at(n, k) < 0 || g->value[read_at(n, k)].constant)
            continue;
        const int v = entering(c, d, node, read_at(n, k), &by), maker = g->value[v].producer;
        if (in_part(d, maker, rank) || g->value[v].constant)
            return false;
        if (maker >= 0 && c->constant[maker])
            continue;
        behind_other |= maker >= 0;
        *saved += is_read_in(c, d, v, rank, by) ? 0 : border(c, v);
    }
    for (int k = 0; k < n->n_out; k++) {
        const int v = n->out[k];
        if (v < 0)
            continue;
        const oct_value *y = &g->value[v];
        bool rounded = y->n_uses > 0 && y->n_uses <= MOST_USES, read = y->n_uses > MOST_USES;
        for (size_t u = 0; u < y->n_uses && u < MOST_USES; u++) {
            rounded &= is_quantizer(g, y->uses[u].node);
            read |= in_part(d, y->uses[u].node, rank);
        }
        *saved += is_read_outside(c, d, v, rank) ? border(c, v) : 0;
        *saved -= !read ? 0 : rounded ? COST_BORDER + COST_BORDER_BYTE * c->bytes[v] / 4 : border(c, v);
    }
    return behind_other;
}

/* The same at the end; false also if only the graph's outputs are behind it. */
static bool saved_at_end(const claimer *c, const division *d, int node, double *saved)
{
    const oct_graph *g = c->g;
    const oct_node *n = &g->node[node];
    const int rank = d->rank[node];
    bool before_other = false;
    *saved = 0;
    for (int k = 0; k < n->n_out; k++) {
        const int v = n->out[k];
        if (v < 0)
            continue;
        if (is_read_in(c, d, v, rank, node))
            return false;
        before_other |= g->value[v].n_uses > 0;
        *saved += border(c, v);
    }
    for (int k = 0; k < n_read(n); k++) {
        int by;
        if (read_at(n, k) < 0 || g->value[read_at(n, k)].constant)
            continue;
        const int v = entering(c, d, node, read_at(n, k), &by), maker = g->value[v].producer;
        if (in_part(d, maker, rank))
            *saved -= is_read_outside(c, d, v, rank) && v == read_at(n, k) ? 0 : border(c, v);
        else if (!is_read_in(c, d, v, rank, by))
            *saved += border(c, v);
    }
    return before_other;
}

/* Whether a node dequantizes, or computes from constants alone, for nodes none of which is in its part. */
static bool has_lost_readers(const claimer *c, const division *d, int node)
{
    const oct_node *n = &c->g->node[node];
    bool any = false;
    if (d->out[node] || (!is_dequantizer(c->g, node) && !c->constant[node]))
        return false;
    for (int k = 0; k < n->n_out; k++) {
        const oct_value *y = n->out[k] >= 0 ? &c->g->value[n->out[k]] : NULL;
        if (y && (y->is_output || is_read_in(c, d, n->out[k], d->rank[node], -1)))
            return false;
        any |= y && y->n_uses;
    }
    return any;
}

/* Takes nodes in float from the fringes of the parts if borders become no larger. */
static void trim(const claimer *c, division *d)
{
    static const char why[] = "it computes in float at the border of a part";
    const oct_graph *g = c->g;
    double saved;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        if (!d->out[id] && c->work[id] == WORK_FLOAT && !c->constant[id] && saved_at_start(c, d, id, &saved) &&
            saved >= 0)
            d->out[id] = why;
    }
    for (size_t i = g->n_order; i-- > 0;) {
        const int id = g->order[i];
        if (has_lost_readers(c, d, id))
            d->out[id] = "its readers are not in the part";
        if (!d->out[id] && c->work[id] == WORK_FLOAT && !c->constant[id] && saved_at_end(c, d, id, &saved) &&
            saved >= 0)
            d->out[id] = why;
    }
}

/* Leaves dequantizers with what reads them, and quantizers with what they round. */
static void join_spelling(const claimer *c, division *d)
{
    const oct_graph *g = c->g;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i], v = g->node[id].n_in > 0 ? g->node[id].in[0] : -1;
        const int maker = v >= 0 ? g->value[v].producer : -1;
        if (!d->out[id] && is_quantizer(g, id) && maker >= 0 && !c->constant[id] && !in_part(d, maker, d->rank[id]))
            d->out[id] = "what it quantizes is not computed in the part";
    }
    for (size_t i = g->n_order; i-- > 0;)
        if (has_lost_readers(c, d, g->order[i]))
            d->out[g->order[i]] = "its readers are not in the part";
}

/* ---- value ---- */

static int root(int *of, int node)
{
    while (of[node] != node)
        node = of[node] = of[of[node]];
    return node;
}

static void connect(const claimer *c, division *d)
{
    const oct_graph *g = c->g;
    for (size_t i = 0; i < g->n_order; i++)
        d->component[g->order[i]] = g->order[i];
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        for (int k = 0; !d->out[id] && k < n_read(n); k++) {
            const int maker = read_at(n, k) >= 0 ? g->value[read_at(n, k)].producer : -1;
            if (in_part(d, maker, d->rank[id]))
                d->component[root(d->component, maker)] = root(d->component, id);
        }
    }
    for (size_t i = 0; i < g->n_order; i++)
        d->component[g->order[i]] = root(d->component, g->order[i]);
}

/* Whether a layer's quantized operands are dequantized in its part, so that it runs on integers there. */
static bool keeps_operands(const claimer *c, const division *d, int node)
{
    const oct_node *n = &c->g->node[node];
    for (int k = 0; k < n->n_in; k++) {
        const int maker = n->in[k] >= 0 ? c->g->value[n->in[k]].producer : -1;
        if (is_dequantizer(c->g, maker) && !in_part(d, maker, d->rank[node]))
            return false;
    }
    return true;
}

/* Of components, by their root, and of parts, by rank. */
typedef struct sums {
    double *layers, *all; /* what layers on integers gain, and all nodes minus borders */
    int *seen;            /* [values]: 1 + the component for which the value was counted */
} sums;

/* Adds the nodes of component `of`, which are next to each other in node[n]. */
static void add_component(const claimer *c, const division *d, const int *node, size_t n, int of, sums *x)
{
    const oct_graph *g = c->g;
    for (size_t i = 0; i < n; i++) {
        const int id = node[i], rank = d->rank[id];
        const oct_node *m = &g->node[id];
        const bool counts = c->work[id] != WORK_LAYER || keeps_operands(c, d, id);
        x->all[of] += counts ? c->gain[id] - c->loss[id] : 0;
        if (counts && (c->work[id] == WORK_LAYER || (c->what != OCT_CLAIM_INTEGERS && c->work[id] == WORK_FLOAT)))
            x->layers[of] += c->gain[id];
        for (int k = 0; k < n_read(m); k++) {
            const int v = read_at(m, k);
            if (v < 0 || g->value[v].constant || in_part(d, g->value[v].producer, rank) || x->seen[v] == of + 1)
                continue;
            x->seen[v] = of + 1;
            x->all[of] -= border(c, v);
        }
        for (int k = 0; k < m->n_out; k++)
            if (m->out[k] >= 0 && is_read_outside(c, d, m->out[k], rank))
                x->all[of] -= border(c, m->out[k]);
    }
}

/* The nodes that are in parts, component by component; *n of them. */
static int *by_component(const claimer *c, const division *d, size_t *n)
{
    const oct_graph *g = c->g;
    int *node = oct_arena_calloc(c->arena, g->n_order + 1, sizeof *node);
    size_t *at = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *at);
    *n = 0;
    for (size_t i = 0; node && at && i < g->n_order; i++)
        if (!d->out[g->order[i]])
            at[d->component[g->order[i]] + 1]++;
    for (size_t k = 0; node && at && k < g->n_node; k++)
        at[k + 1] += at[k];
    for (size_t i = 0; node && at && i < g->n_order; i++)
        if (!d->out[g->order[i]]) {
            node[at[d->component[g->order[i]]]++] = g->order[i];
            ++*n;
        }
    return at ? node : NULL;
}

static const char *too_little(const claimer *c, double layers)
{
    return layers > 0 ? "too little integer work: it would gain less than the borders of a part cost"
           : c->what != OCT_CLAIM_INTEGERS ? "nothing to gain: no work around it that pays for the borders of a part"
                                           : "no integer work around it";
}

/* Drops what does not pay: components, then parts. */
static oct_status drop(claimer *c, division *d, oct_err *err)
{
    const oct_graph *g = c->g;
    size_t n;
    connect(c, d);
    const int *node = by_component(c, d, &n);
    sums x = { .layers = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *x.layers),
               .all = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *x.all),
               .seen = oct_arena_calloc(c->arena, g->n_value + 1, sizeof *x.seen) };
    double *layers = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *layers);
    double *all = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *all);
    if (!node || !x.layers || !x.all || !x.seen || !layers || !all)
        return oct_nomem(err);
    for (size_t i = 0, end; i < n; i = end) {
        const int of = d->component[node[i]], rank = d->rank[node[i]];
        for (end = i + 1; end < n && d->component[node[end]] == of;)
            end++;
        add_component(c, d, node + i, end - i, of, &x);
        if (!d->whole && (x.layers[of] <= 0 || x.all[of] <= 0))
            continue;
        layers[rank] += x.layers[of];
        all[rank] += x.all[of];
    }
    d->value = 0;
    for (size_t k = 0; k < g->n_node; k++) /* a rank is less than the number of nodes */
        if (layers[k] >= COST_PART && all[k] > COST_PART)
            d->value += all[k] - COST_PART;
    for (size_t i = 0; i < n; i++) {
        const int id = node[i], of = d->component[id], rank = d->rank[id];
        if (!d->whole && (x.layers[of] <= 0 || x.all[of] <= 0))
            d->out[id] = too_little(c, x.layers[of]);
        else if (layers[rank] < COST_PART || all[rank] <= COST_PART)
            d->out[id] = too_little(c, layers[rank]);
    }
    return OCT_OK;
}

/* How a graph may be divided. */
typedef enum way {
    WAY_WHOLE,          /* not at all */
    WAY_RUNNABLE,       /* by what can be computed */
    WAY_WITHOUT_KERNELS /* the same, without convolutions in float, which are faster elsewhere */
} way;

static oct_status divide(claimer *c, way how, division *d, oct_err *err)
{
    const oct_graph *g = c->g;
    *d = (division){ .out = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *d->out),
                     .rank = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *d->rank),
                     .component = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *d->component),
                     .whole = how == WAY_WHOLE };
    if (!d->out || !d->rank || !d->component)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order && !d->whole; i++) {
        const int id = g->order[i];
        d->out[id] = c->cannot[id]  ? c->cannot[id]
                     : c->inner[id] ? "its values cannot cross the border of a part"
                     : how == WAY_WITHOUT_KERNELS && c->loss[id] > 0 && c->work[id] == WORK_FLOAT
                         ? "it computes in float, and not faster than elsewhere"
                         : NULL;
    }
    if (!d->whole) {
        set_ranks(c, d);
        if (c->what != OCT_CLAIM_ALL)
            trim(c, d);
        join_spelling(c, d);
        set_ranks(c, d); /* what was taken out may divide a part once more */
    }
    return c->what == OCT_CLAIM_ALL ? OCT_OK : drop(c, d, err);
}

static bool can_be_whole(const claimer *c)
{
    const oct_graph *g = c->g;
    bool can = true;
    for (size_t i = 0; i < g->n_order; i++)
        can &= !c->cannot[g->order[i]];
    for (size_t i = 0; i < g->n_input; i++)
        can &= can_cross(&g->value[g->input[i]]);
    for (size_t i = 0; i < g->n_output; i++)
        can &= can_cross(&g->value[g->output[i]]);
    return can;
}

static oct_status choose(claimer *c, division *best, oct_err *err)
{
    const oct_graph *g = c->g;
    division other;
    double loss = 0;
    for (size_t i = 0; i < g->n_order; i++)
        loss += c->loss[g->order[i]];
    const bool whole = can_be_whole(c);
    OCT_TRY(divide(c, whole ? WAY_WHOLE : WAY_RUNNABLE, best, err));
    if (loss <= 0 || c->what != OCT_CLAIM_INTEGERS)
        return OCT_OK;
    OCT_TRY(divide(c, WAY_WITHOUT_KERNELS, &other, err));
    if (other.value > best->value * (whole ? DIVIDING_GAINS : 1))
        *best = other;
    return OCT_OK;
}

static oct_status number(const claimer *c, const division *d, oct_claim *claim, int *n_parts, oct_err *err)
{
    const oct_graph *g = c->g;
    int *part = oct_arena_calloc(c->arena, g->n_node + 1, sizeof *part); /* by rank */
    if (!part)
        return oct_nomem(err);
    *n_parts = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (!d->out[g->order[i]])
            part[d->rank[g->order[i]]] = 1;
    for (size_t r = 0; r < g->n_node; r++)
        part[r] = part[r] ? (*n_parts)++ : -1;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        claim[id] = d->out[id] ? (oct_claim){ -1, d->out[id] } : (oct_claim){ part[d->rank[id]], "" };
    }
    return OCT_OK;
}

static bool has_work(const claimer *c)
{
    bool any = c->what != OCT_CLAIM_INTEGERS;
    for (size_t i = 0; i < c->g->n_order && !any; i++)
        any = c->work[c->g->order[i]] == WORK_LAYER;
    return any;
}

/* *gain: picoseconds. */
static oct_status find_parts(const oct_graph *g, oct_claim_what what, oct_arena *arena, oct_claim **out, int *n_parts,
                             double *gain, oct_err *err)
{
    claimer c = { .g = g,
                  .arena = arena,
                  .what = what,
                  .cannot = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.cannot),
                  .work = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.work),
                  .gain = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.gain),
                  .loss = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.loss),
                  .bytes = oct_arena_calloc(arena, g->n_value + 1, sizeof *c.bytes),
                  .inner = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.inner),
                  .constant = oct_arena_calloc(arena, g->n_node + 1, sizeof *c.constant) };
    oct_claim *claim = oct_arena_calloc(arena, g->n_node + 1, sizeof *claim);
    division d;
    *n_parts = 0;
    *gain = 0;
    if (!c.cannot || !c.work || !c.gain || !c.loss || !c.bytes || !c.inner || !c.constant || !claim)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_node; i++)
        claim[i] = (oct_claim){ -1, "" };
    OCT_TRY(find_faults(&c, err));
    OCT_TRY(weigh_all(&c, err));
    if (has_work(&c)) {
        OCT_TRY(choose(&c, &d, err));
        OCT_TRY(number(&c, &d, claim, n_parts, err));
        *gain = d.value;
    } else {
        for (size_t i = 0; i < g->n_order; i++) {
            const char *why = c.cannot[g->order[i]];
            claim[g->order[i]].reason = why ? why : "no integer work: float stays where it is";
        }
    }
    *out = claim;
    return OCT_OK;
}

oct_status oct_claim_nodes(const oct_graph *g, oct_claim_what what, oct_arena *arena, oct_claim **out, int *n_parts,
                           oct_err *err)
{
    double gain;
    return find_parts(g, what, arena, out, n_parts, &gain, err);
}

oct_status oct_claim_gain(const oct_graph *g, double *gain, oct_err *err)
{
    oct_arena *arena = oct_arena_create();
    oct_claim *claim;
    int n_parts;
    const oct_status s = arena ? find_parts(g, OCT_CLAIM_INTEGERS, arena, &claim, &n_parts, gain, err) : oct_nomem(err);
    oct_arena_destroy(arena);
    *gain = s == OCT_OK ? *gain / 1000 : 0;
    return s;
}
