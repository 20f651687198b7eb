/* Measures the peak performance of the machine: a matrix product with the kernels that models run, in float and in
 * integers, and copying. */
#include "eval/run/eval_int.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { SIDE = 512, RUNS = 30, COPY_BYTES = 1 << 17, COPIES = 256, TRIES = 20, VAIN = 5 };

/* Takes a rate that was measured. Whether to go on: not when the last VAIN have hardly raised the peak. */
static bool raises(double rate, double *peak, int *vain)
{
    *vain = rate > 1.01 * *peak ? 0 : *vain + 1;
    *peak = rate > *peak ? rate : *peak;
    return *vain < VAIN;
}

/* ---- products ---- */

static oct_status add_node(oct_graph *g, const char *op, const int *in, int n_in, const char *out, oct_dtype t,
                           int *value, oct_err *err)
{
    int node;
    OCT_TRY(oct_graph_add_node(g, op, "", out, n_in, 1, -1, &node, err));
    for (int k = 0; k < n_in; k++)
        OCT_TRY(oct_graph_set_input(g, node, k, in[k], err));
    OCT_TRY(oct_graph_add_value(g, out, t, value, err));
    return oct_graph_set_output(g, node, 0, *value, err);
}

/* Adds a quantizer and its inverse: for a value that an integer product reads or computes. */
static oct_status add_rounding(oct_graph *g, int scale, int zero, const char *codes, const char *reals, int *value,
                               oct_err *err)
{
    int q;
    OCT_TRY(add_node(g, "QuantizeLinear", (int[]){ *value, scale, zero }, 3, codes, OCT_U8, &q, err));
    return add_node(g, "DequantizeLinear", (int[]){ q, scale, zero }, 3, reals, OCT_F32, value, err);
}

static oct_status add_weights(oct_graph *g, bool integers, int scale, int *w, oct_err *err)
{
    const int64_t dims[2] = { SIDE, SIDE };
    const size_t n = (size_t)SIDE * SIDE;
    float *x = oct_calloc(n, sizeof *x);
    if (!x)
        return oct_nomem(err);
    int8_t *codes = (int8_t *)x;
    for (size_t i = 0; i < n; i++)
        if (integers)
            codes[i] = (int8_t)(i * 37 % 127);
        else
            x[i] = (float)(i * 37 % 127) / 127;
    oct_status s = integers ? oct_graph_new_const(g, "w_codes", OCT_S8, 2, dims, codes, w, err)
                            : oct_graph_new_const_f32(g, "w", 2, dims, x, w, err);
    oct_free(x);
    if (s == OCT_OK && integers) {
        const int8_t none = 0;
        int zero;
        s = oct_graph_new_const(g, "w_zero", OCT_S8, 0, NULL, &none, &zero, err);
        if (s == OCT_OK)
            s = add_node(g, "DequantizeLinear", (int[]){ *w, scale, zero }, 3, "w", OCT_F32, w, err);
    }
    return s;
}

static oct_status build(oct_graph *g, bool integers, oct_err *err)
{
    const float step = 1.0f / 64;
    const uint8_t middle = 128;
    int x, w, y, scale, zero;
    if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input) ||
        !OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
        return oct_nomem(err);
    OCT_TRY(oct_graph_set_opset(g, "", 13, err));
    OCT_TRY(oct_graph_add_value(g, "x", OCT_F32, &x, err));
    OCT_TRY(oct_graph_set_dims(g, x, 2, (int64_t[]){ SIDE, SIDE }, err));
    g->value[x].is_input = true;
    g->input[g->n_input++] = x;
    OCT_TRY(oct_graph_new_const_f32(g, "scale", 0, NULL, &step, &scale, err));
    OCT_TRY(oct_graph_new_const(g, "zero", OCT_U8, 0, NULL, &middle, &zero, err));
    OCT_TRY(add_weights(g, integers, scale, &w, err));
    if (integers)
        OCT_TRY(add_rounding(g, scale, zero, "x_codes", "x_rounded", &x, err));
    OCT_TRY(add_node(g, "MatMul", (int[]){ x, w }, 2, "product", OCT_F32, &y, err));
    if (integers)
        OCT_TRY(add_rounding(g, scale, zero, "y_codes", "y", &y, err));
    g->value[y].is_output = true;
    g->output[g->n_output++] = y;
    return oct_graph_sort(g, err);
}

/* Multiply-accumulates per second in the fastest run of the product's step. */
static oct_status time_product(const oct_graph *g, oct_pool *pool, double *peak, oct_err *err)
{
    const oct_plan_opts opts = { .pool = pool };
    oct_plan *p = NULL;
    int vain = 0;
    bool more = true;
    float *x = oct_calloc((size_t)SIDE * SIDE, sizeof *x);
    oct_status s = x ? oct_plan_create(g, NULL, &opts, &p, err) : oct_nomem(err);
    for (int run = 0; run < RUNS && s == OCT_OK && more; run++) {
        double rate = 0;
        oct_plan_profile(p, true);
        s = oct_plan_run(p, (const void *const[]){ x }, err);
        for (size_t i = 0; s == OCT_OK && i < oct_plan_n_steps(p); i++) {
            const oct_step_info info = oct_plan_step(p, i);
            if (info.macs && info.seconds > 0)
                rate = fmax(rate, (double)info.macs / info.seconds);
        }
        more = raises(rate, peak, &vain);
    }
    oct_plan_destroy(p);
    oct_free(x);
    return s;
}

static oct_status measure_product(bool integers, oct_pool *pool, double *rate, oct_err *err)
{
    oct_graph *g = oct_graph_create();
    oct_status s = g ? build(g, integers, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = time_product(g, pool, rate, err);
    oct_graph_destroy(g);
    return s;
}

/* ---- copying ---- */

/* Each thread copies what fits its own cache: no step can move its operands faster. */
typedef struct copying {
    uint8_t *to;
    const uint8_t *from;
} copying;

static void copy(void *arg, size_t begin, size_t end, size_t thread)
{
    const copying *c = arg;
    for (size_t i = begin; i < end; i++)
        for (int k = 0; k < COPIES; k++) {
            memcpy(c->to + i * COPY_BYTES, c->from + i * COPY_BYTES, COPY_BYTES);
            __asm__ volatile("" : : "r"(c->to) : "memory"); /* keeps the compiler from dropping the copy */
        }
}

static oct_status measure_copy(oct_pool *pool, double *peak, oct_err *err)
{
    const size_t threads = (size_t)oct_pool_threads(pool), bytes = threads * COPY_BYTES;
    uint8_t *both = oct_calloc(bytes, 2);
    if (!both)
        return oct_nomem(err);
    memset(both, 1, 2 * bytes);
    copying c = { both, both + bytes };
    int vain = 0;
    bool more = true;
    for (int i = 0; i < TRIES && more; i++) {
        const double began = oct_now();
        oct_pool_for(pool, threads, 1, copy, &c);
        const double seconds = oct_now() - began;
        more = raises(seconds > 0 ? 2.0 * COPIES * (double)bytes / seconds : 0, peak, &vain);
    }
    oct_free(both);
    return OCT_OK;
}

oct_status ev_measure_machine(oct_pool *pool, oct_eval_machine *m, oct_err *err)
{
    *m = (oct_eval_machine){ 0 };
    OCT_TRY(measure_product(false, pool, &m->float_macs, err));
    OCT_TRY(measure_product(true, pool, &m->int8_macs, err));
    return measure_copy(pool, &m->bytes, err);
}
