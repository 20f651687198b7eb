/* Conversions of networks that tests build, with all methods off but those switched on, and what the really quantized
 * model computes. */
#ifndef OCT_TESTS_CONVERTED_H
#define OCT_TESTS_CONVERTED_H

#include <stdlib.h>
#include <unistd.h>
#include "folder.h"
#include "unit.h"

#include "net.h"
#include "onnx/model.h"
#include "quant/convert/convert_int.h"
#include "quant/simulate/simulate.h"
#include "quant/job/annotate.h"

enum { ROWS = 16, MOST = 8192 }; /* samples; their elements */

/* A conversion of a network that was built here, with all methods off but those switched on. */
typedef struct work {
    oct_model m;
    char path[300];
    size_t size; /* of a sample */
    float x[ROWS][MOST];
    int rows[2], row[2][ROWS]; /* samples of each half: those that are not kept aside */
    oct_target *target;
    oct_source *src;
    oct_convert_opts o;
    oct_conversion c;
} work;

static inline work *new_work_for(const char *target)
{
    work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->m = (oct_model){ .graph = net_graph(13), .path = "net" };
    snprintf(w->path, sizeof w->path, "%s/x.npy", folder);
    GOOD(oct_target_open(target, &w->target, err));
    w->o = (oct_convert_opts){ .name = "net", .job = { .target = w->target, .threads = 1 }, .observer = "minmax" };
    return w;
}

static inline work *new_work(void)
{
    return new_work_for("octet");
}

static inline void set_input(work *w, const char *dims)
{
    oct_dim d[OCT_MAX_RANK];
    const int rank = net_dims(w->m.graph, dims, d);
    net_input(w->m.graph, "x", OCT_F32, dims);
    w->size = 1;
    for (int i = 0; i < rank; i++)
        w->size *= (size_t)d[i].n;
    assert_true(w->size <= MOST);
    for (int r = 0; r < ROWS; r++)
        net_fill(w->x[r], w->size, 100u + (uint32_t)r);
}

/* Writes the samples as they are now, shape [ROWS, dims...] of an input [1, dims...]. */
static inline void write_samples(const work *w)
{
    const oct_shape *s = &w->m.graph->value[w->m.graph->input[0]].shape;
    FILE *f = fopen(w->path, "wb");
    char head[128], dims[80] = "";
    assert_non_null(f);
    for (int d = 1; d < s->rank; d++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%d, ", (int)s->d[d].n);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %s), }", ROWS, dims);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, 128, f);
    for (int r = 0; r < ROWS; r++)
        fwrite(w->x[r], sizeof(float), w->size, f);
    fclose(f);
}

static inline void on(work *w, const char *method)
{
    GOOD(oct_methods_switch(&w->o.methods, method, true, err));
}

static inline void decide(work *w)
{
    const char *spec = w->path;
    oct_input_desc *in;
    size_t n_in;
    write_samples(w);
    GOOD(oct_eval_inputs(&(oct_eval_model){ "net", w->m.graph, 0 }, 1, w->m.graph->arena, &in, &n_in, err));
    GOOD(oct_source_open(&(oct_source_options){ .specs = &spec, .n_specs = 1, .inputs = in, .n_inputs = n_in }, &w->src,
                         err));
    GOOD(oct_conversion_open(&w->c, &w->o, err));
    oct_conversion_take(&w->c, &w->m);
    GOOD(oct_conversion_decide(&w->c, w->src, err));
    oct_batch b = OCT_BATCH_INIT;
    for (int half = 0; half < 2; half++) {
        GOOD(oct_source_pick(w->src, &(oct_pick){ .i = half, .n = 2, .mixed = true }, err));
        do {
            GOOD(oct_source_next(w->src, 1, &b, err));
            if (b.n)
                w->row[half][w->rows[half]++] = (int)b.indices[0];
        } while (b.n);
        assert_true(w->rows[half] > 3);
    }
    oct_batch_free(&b);
}

static inline void free_work(work *w)
{
    oct_conversion_close(&w->c);
    oct_target_close(w->target);
    oct_source_close(w->src);
    oct_graph_destroy(w->m.graph);
    free(w);
}

static inline const oct_method_result *method(const work *w, const char *name)
{
    for (size_t i = 0; i < w->c.n_methods; i++)
        if (strcmp(w->c.methods[i].method->name, name) == 0)
            return &w->c.methods[i];
    fail_msg("no method '%s'", name);
    return NULL;
}

static inline int node_named(const work *w, const char *name)
{
    const oct_graph *g = w->c.job->g;
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            return g->order[i];
    fail_msg("no node '%s'", name);
    return -1;
}

typedef struct shown {
    float *to;
    size_t n;
} shown;

static inline oct_status keep_shown(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    shown *s = arg;
    s->n = (size_t)t->count;
    return oct_operand_to_f32(t, s->to, err);
}

/* Value `name` of g on a sample; returns how many numbers. */
static inline size_t value_of(const oct_graph *g, const char *name, const float *x, float *to)
{
    const oct_plan_opts o = { .taps = &name, .n_taps = 1, .no_passes = true };
    shown s = { to, 0 };
    oct_plan *p = net_plan(g, &o, NULL);
    oct_plan_set_tap(p, keep_shown, &s);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    oct_plan_destroy(p);
    assert_true(s.n > 0);
    return s.n;
}

/* Noise of the signal in a value of the really quantized model, on the samples of a half. */
static inline double real_noise(work *w, const char *name, int half)
{
    static float y[MOST], yq[MOST];
    double signal = 0, noise = 0;
    oct_graph *q;
    GOOD(oct_quantized_copy(w->c.job, &q, err));
    for (int k = 0; k < w->rows[half]; k++) {
        const float *x = w->x[w->row[half][k]];
        const size_t n = value_of(w->c.job->g, name, x, y);
        assert_int_equal(value_of(q, name, x, yq), n);
        for (size_t i = 0; i < n; i++) {
            signal += (double)y[i] * (double)y[i];
            noise += ((double)y[i] - (double)yq[i]) * ((double)y[i] - (double)yq[i]);
        }
    }
    oct_graph_destroy(q);
    return noise / signal;
}

static inline double to_db(double noise)
{
    return -10 * log10(noise);
}

static inline oct_sim_loss measured(work *w, int half, const oct_sim_mask *m)
{
    oct_sim *s;
    oct_sim_loss loss;
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, half, &s, err));
    GOOD(oct_sim_measure(s, m, &loss, err));
    return loss;
}

static const oct_sim_mask everything = { .weights = OCT_SIM_ROUNDED_WEIGHTS };

/* The noise relative to the signal of what a test makes of the numbers of a value, on the samples of a half. */
static inline double noise_seen(work *w, const char *name, int half, void (*see)(const float *real, float *x, size_t n))
{
    static float y[MOST], yq[MOST], real[MOST];
    double signal = 0, noise = 0;
    oct_graph *q;
    GOOD(oct_quantized_copy(w->c.job, &q, err));
    for (int k = 0; k < w->rows[half]; k++) {
        const float *x = w->x[w->row[half][k]];
        const size_t n = value_of(w->c.job->g, name, x, y);
        assert_int_equal(value_of(q, name, x, yq), n);
        memcpy(real, y, sizeof real);
        see(real, y, n);
        see(real, yq, n);
        for (size_t i = 0; i < n; i++) {
            signal += (double)y[i] * (double)y[i];
            noise += ((double)y[i] - (double)yq[i]) * ((double)y[i] - (double)yq[i]);
        }
    }
    oct_graph_destroy(q);
    return noise / signal;
}

static inline const float *build_product(work *w)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,24");
    const int m = net_random(g, "w", "24,10", 9);
    net_output(g, NET_NODE(g, "MatMul", "product", "y", g->input[0], m));
    return g->value[m].constant->data;
}

static inline double rounded(double x, double scale, int zp)
{
    return (fmin(fmax(rint(x / scale) + zp, 0), 255) - zp) * scale;
}

/* A 1x1 layer reads an input whose first channel is `outlier` times as large and counts as much less; `wide`: it has
 * much of the multiply-accumulates. */
static inline void build_planted(work *w, float outlier, bool wide)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,8,8");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= outlier;
    const int stem = net_random(g, "sw", wide ? "8,4,3,3" : "8,4,1,1", 11);
    float *v = (float *)(uintptr_t)g->value[stem].constant->data;
    const int taps = wide ? 9 : 1;
    for (int o = 0; o < 8; o++)
        for (int i = 0; i < taps; i++)
            v[o * 4 * taps + i] /= outlier;
    int y = NET_NODE(g, "Conv", "stem", "s", g->input[0], stem);
    if (wide)
        NET_INTS(g, "pads", 1, 1, 1, 1);
    y = NET_NODE(g, "Conv", "body", "b", NET_NODE(g, "Relu", "r1", "r", y), net_random(g, "bw", "32,8,3,3", 12));
    y = NET_NODE(g, "Conv", "head", "y", NET_NODE(g, "Relu", "r2", "t", y), net_random(g, "hw", "8,32,1,1", 13));
    net_output(g, y);
}

static inline int64_t float_layers(const work *w, double *share)
{
    const oct_qjob *j = w->c.job;
    int64_t n = 0;
    *share = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_scheme_of(j, j->layer[i]) == OCT_SCHEME_FLOAT) {
            *share += (double)oct_node_macs(j->g, j->layer[i]) / (double)oct_graph_macs(j->g);
            n += oct_op_of(j->g, j->layer[i])->quant == OCT_QUANT_WEIGHTED;
        }
    return n;
}

static inline double planted(float outlier, bool wide, bool mixed, work **w)
{
    *w = new_work();
    build_planted(*w, outlier, wide);
    if (mixed)
        on(*w, "mixed-precision");
    decide(*w);
    return to_db(real_noise(*w, "y", 0));
}

static inline float *weights_in(const work *w, const char *name)
{
    return (float *)(uintptr_t)w->m.graph->value[oct_graph_find(w->m.graph, name)].constant->data;
}

/* Costs of convolutions in a target, where activations of 16 bits take `wide`. */
#define COSTS(kind, wide) \
    "cost " kind " float mac=10\ncost " kind " static mac=5\ncost " kind " static16 mac=" wide "\n"
#define ALL_COSTS(wide) COSTS("conv", wide) COSTS("conv-few", wide) COSTS("conv-1x1", wide)

#endif
