/* Small graphs built in C, and running them; shared by the tests of graph, passes and runtime. Include after cmocka. */
#ifndef OCT_TESTS_NET_H
#define OCT_TESTS_NET_H

#include "passes/pass.h"
#include "runtime/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Calls that must succeed. */
#define GOOD(expr)                                              \
    do {                                                        \
        oct_err good_err_ = OCT_ERR_INIT, *err = &good_err_;    \
        oct_status good_s_ = (expr);                            \
        if (good_s_ != OCT_OK)                                  \
            fail_msg("status %d: %s", (int)good_s_, err->text); \
    } while (0)

static inline oct_graph *net_graph(int64_t opset)
{
    oct_graph *g = oct_graph_create();
    assert_non_null(g);
    GOOD(oct_graph_set_opset(g, "", opset, err));
    return g;
}

/* Dimensions as text: "2,3,?" or "N,3" for open ones, "" for a scalar. Returns the rank. */
static inline int net_dims(oct_graph *g, const char *text, oct_dim *d)
{
    int rank = 0;
    char copy[100], *save = NULL;
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        long long n = 0;
        d[rank++] = sscanf(p, "%lld", &n) == 1 ? (oct_dim){ n, NULL }
                                               : (oct_dim){ -1, *p == '?' ? NULL : oct_arena_strdup(g->arena, p) };
    }
    return rank;
}

static inline int net_input(oct_graph *g, const char *name, oct_dtype t, const char *dims)
{
    int v;
    oct_dim d[OCT_MAX_RANK];
    GOOD(oct_graph_add_value(g, name, t, &v, err));
    int rank = net_dims(g, dims, d);
    GOOD(oct_graph_set_shape(g, v, rank, d, err));
    g->value[v].is_input = true;
    assert_true(OCT_GROW(g->arena, g->input, g->n_input, g->cap_input));
    g->input[g->n_input++] = v;
    return v;
}

static inline void net_output(oct_graph *g, int v)
{
    g->value[v].is_output = true;
    assert_true(OCT_GROW(g->arena, g->output, g->n_output, g->cap_output));
    g->output[g->n_output++] = v;
}

static inline int net_const(oct_graph *g, const char *name, oct_dtype t, const char *dims, const void *data)
{
    int v;
    oct_dim d[OCT_MAX_RANK];
    int64_t n[OCT_MAX_RANK];
    int rank = net_dims(g, dims, d);
    for (int i = 0; i < rank; i++)
        n[i] = d[i].n;
    GOOD(oct_graph_new_const(g, name, t, rank, n, data, &v, err));
    return v;
}
#define NET_F32(g, name, dims, ...) net_const(g, name, OCT_F32, dims, (const float[]){ __VA_ARGS__ })
#define NET_S64(g, name, dims, ...) net_const(g, name, OCT_S64, dims, (const int64_t[]){ __VA_ARGS__ })

/* A fixed sequence of numbers, the same everywhere: multiples of 1/64 in [-1, 1). */
static inline uint32_t net_next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}
static inline void net_fill(float *dst, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)(int)(net_next(&seed) % 128u) / 64.0f - 1.0f;
}
static inline int net_random(oct_graph *g, const char *name, const char *dims, uint32_t seed)
{
    oct_dim d[OCT_MAX_RANK];
    size_t n = 1;
    int rank = net_dims(g, dims, d);
    for (int i = 0; i < rank; i++)
        n *= (size_t)d[i].n;
    float *v = oct_arena_calloc(g->arena, n + 1, sizeof *v);
    assert_non_null(v);
    net_fill(v, n, seed);
    return net_const(g, name, OCT_F32, dims, v);
}

/* Adds a node named `name` whose first output is a value named `out`; inputs are value indices ended by NET_END,
 * -1 absent. Returns the value; net_last is the node. */
enum { NET_END = -9 };
static int net_last;
static inline int net_node(oct_graph *g, const char *op, const char *name, const char *out, ...)
{
    int v, slot = 0;
    va_list ap;
    const char *dot = strchr(op, '.') ? strrchr(op, '.') : NULL;
    char domain[64] = "";
    if (dot)
        snprintf(domain, sizeof domain, "%.*s", (int)(dot - op), op);
    GOOD(oct_graph_add_node(g, dot ? dot + 1 : op, domain, name, 0, 1, -1, &net_last, err));
    va_start(ap, out);
    for (int in; (in = va_arg(ap, int)) != NET_END; slot++)
        if (in >= 0)
            GOOD(oct_graph_set_input(g, net_last, slot, in, err));
    va_end(ap);
    GOOD(oct_graph_add_value(g, out, OCT_UNDEFINED, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 0, v, err));
    return v;
}
/* NODE(g, "Conv", "conv", "y", x, w, b) */
#define NET_NODE(g, op, name, ...) net_node(g, op, name, __VA_ARGS__, NET_END)

static inline void net_int(oct_graph *g, const char *name, int64_t v)
{
    GOOD(oct_node_set_int(g, net_last, name, v, err));
}
static inline void net_float(oct_graph *g, const char *name, float v)
{
    GOOD(oct_node_set_float(g, net_last, name, v, err));
}
static inline void net_str(oct_graph *g, const char *name, const char *v)
{
    GOOD(oct_node_set_str(g, net_last, name, v, err));
}
#define NET_INTS(g, name, ...)                                                  \
    GOOD(oct_node_set_ints(g, net_last, name, (const int64_t[]){ __VA_ARGS__ }, \
                           (int)OCT_COUNT(((const int64_t[]){ __VA_ARGS__ })), err))

/* ---- nested graphs ---- */

static inline oct_graph *net_nested(oct_graph *outer)
{
    oct_graph *g = NULL;
    GOOD(oct_graph_new_nested(outer, &g, err));
    return g;
}
/* What a value of the outer graph is called inside. */
static inline int net_take(oct_graph *nested, int outer)
{
    int v = -1;
    GOOD(oct_graph_capture(nested, outer, &v, err));
    return v;
}
/* Gives a complete nested graph to a node. */
static inline void net_give(oct_graph *g, int node, const char *attr, oct_graph *nested)
{
    GOOD(oct_node_set_graph(g, node, attr, nested, err));
}
/* A graph that only shows a value of the outer graph, for what matters of captures alone. */
static inline void net_capture(oct_graph *g, int node, int v)
{
    oct_graph *nested = net_nested(g);
    net_output(nested, net_take(nested, v));
    net_give(g, node, "body", nested);
}

/* Live nodes of an operator; op NULL: all. */
static inline size_t net_count(const oct_graph *g, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++)
        n += !op || strcmp(g->node[g->order[i]].op, op) == 0;
    return n;
}
/* The live node that makes the value named `out`. */
static inline oct_node *net_producer(const oct_graph *g, const char *out)
{
    int v = oct_graph_find(g, out);
    if (v < 0 || g->value[v].producer < 0)
        fail_msg("nothing makes '%s'", out);
    return &g->node[g->value[v].producer];
}

/* Makes a plan with the given input shapes ("2,3,8,8", NULL: as declared). */
static inline oct_plan *net_plan(const oct_graph *g, const oct_plan_opts *opts, const char *const *shapes)
{
    oct_plan *p = NULL;
    oct_plan_input in[8] = { { 0 } };
    for (size_t i = 0; shapes && i < g->n_input; i++) {
        const oct_shape *s = &g->value[g->input[i]].shape;
        oct_dim d[OCT_MAX_RANK];
        in[i] = (oct_plan_input){ .tensor = true,
                                  .rank = shapes[i] ? net_dims((oct_graph *)(uintptr_t)g, shapes[i], d) : s->rank };
        for (int k = 0; k < in[i].rank; k++)
            in[i].dims[k] = shapes[i] ? d[k].n : s->d[k].n;
    }
    GOOD(oct_plan_create(g, shapes ? in : NULL, opts, &p, err));
    return p;
}

/* Runs a graph of f32 inputs on random numbers and appends all its outputs as f32 to dst; returns how many numbers. */
static inline size_t net_run_with(const oct_graph *g, const oct_plan_opts *opts, const char *const *shapes, float *dst,
                                  size_t cap)
{
    oct_plan *p = net_plan(g, opts, shapes);
    const void *in[8];
    float *mem[8] = { NULL };
    size_t n = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        oct_dim d[OCT_MAX_RANK];
        int64_t dims[OCT_MAX_RANK], count;
        int rank = g->value[g->input[i]].shape.rank;
        if (shapes && shapes[i]) {
            rank = net_dims((oct_graph *)(uintptr_t)g, shapes[i], d);
            for (int k = 0; k < rank; k++)
                dims[k] = d[k].n;
        } else {
            assert_true(oct_shape_known(&g->value[g->input[i]].shape, dims));
        }
        assert_true(oct_count(dims, rank, &count));
        in[i] = mem[i] = oct_alloc((size_t)count * sizeof(float));
        assert_non_null(mem[i]);
        net_fill(mem[i], (size_t)count, 77u + (uint32_t)i);
    }
    GOOD(oct_plan_run(p, in, err));
    for (size_t i = 0; i < oct_plan_n_outputs(p); i++) {
        const oct_operand *t = oct_plan_output(p, i);
        assert_true(n + (size_t)t->count <= cap);
        GOOD(oct_operand_to_f32(t, dst + n, err));
        n += (size_t)t->count;
    }
    for (size_t i = 0; i < g->n_input; i++)
        oct_free(mem[i]);
    oct_plan_destroy(p);
    return n;
}
static inline size_t net_run(const oct_graph *g, float *dst, size_t cap)
{
    return net_run_with(g, NULL, NULL, dst, cap);
}

/* Largest difference, relative to the range of `want`. */
static inline double net_error(const float *want, const float *got, size_t n)
{
    double lo = INFINITY, hi = -INFINITY, worst = 0;
    for (size_t i = 0; i < n; i++) {
        lo = fmin(lo, want[i]);
        hi = fmax(hi, want[i]);
        worst = fmax(worst, fabs((double)want[i] - (double)got[i]));
        if (isnan(got[i]) != isnan(want[i]))
            return INFINITY;
    }
    return worst / (hi > lo ? hi - lo : 1.0);
}

#endif
