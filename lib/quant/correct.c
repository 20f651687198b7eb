/* Bias correction: what biases make up for, by weights.c. With a table, the shift of the means by rounded weights; with samples
 * also that by rounded activations, from the means of product inputs as quantization leaves them.
 *
 * What a product should give on average is sum w E[x]; what it gives is sum wq E[xq], with xq its input in the quantized model.
 * Were xq taken from the quantized model itself, a layer would also make up for errors of the layers before it, which make
 * up for them too. So xq is taken with the products right: the float graph gets a second branch behind every product, in which
 * the product's float output is put on its grid and carried on through everything between products (Add, Concat, pools,
 * means), each result on its own grid, up to the inputs of the next products. All layers can then be corrected at once. */
#include "forms/edit.h"
#include "quant/convert_int.h"
#include "quant/job.h"

#include <math.h>
#include <string.h>

typedef struct brancher {
    oct_qjob *j;
    oct_graph *g;  /* a copy that grows the branches */
    int *rounded;  /* [n_values]: the value's counterpart in the branch, or the value itself */
} brancher;

/* x on the grid of value v: QuantizeLinear and DequantizeLinear. */
static oct_status put_on_grid(brancher *b, int v, int x, int *out, oct_err *err)
{
    const qvalue *q = &b->j->value[v];
    oct_graph *g = b->g;
    int scale, zero, codes;
    uint8_t zp = (uint8_t)q->q.zero;
    OCT_TRY(oct_graph_new_const(g, "branch_scale", OCT_F32, 0, NULL, &q->q.scale, &scale, err));
    OCT_TRY(oct_graph_new_const(g, "branch_zero_point", q->dtype, 0, NULL, &zp, &zero, err));
    OCT_TRY(oct_edit_value(g, g->value[v].name, "_branch_codes", q->dtype, v, &codes, err));
    OCT_TRY(oct_edit_value(g, g->value[v].name, "_branch_rounded", OCT_F32, v, out, err));
    OCT_TRY(oct_edit_node(g, "QuantizeLinear", (int[]){ x, scale, zero }, 3, codes, -1, NULL, err));
    return oct_edit_node(g, "DequantizeLinear", (int[]){ codes, scale, zero }, 3, *out, -1, NULL, err);
}

/* The node once more, on the branch's values. */
static oct_status repeat(brancher *b, int id, oct_err *err)
{
    oct_graph *g = b->g;
    const oct_node *n = &b->j->g->node[id];
    int copy;
    OCT_TRY(oct_graph_add_node(g, n->op, n->domain, "", n->n_in, n->n_out, -1, &copy, err));
    g->node[copy].attr = g->node[id].attr; /* never changed here */
    g->node[copy].n_attr = g->node[copy].cap_attr = g->node[id].n_attr;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            OCT_TRY(oct_graph_set_input(g, copy, i, b->rounded[n->in[i]], err));
    for (int k = 0; k < n->n_out; k++) {
        int v = n->out[k], y;
        if (v < 0)
            continue;
        OCT_TRY(oct_edit_value(g, g->value[v].name, "_branch", g->value[v].dtype, v, &y, err));
        OCT_TRY(oct_graph_set_output(g, copy, k, y, err));
        b->rounded[v] = y;
    }
    return OCT_OK;
}

static oct_status branch(brancher *b, oct_err *err)
{
    const oct_qjob *j = b->j;
    for (size_t i = 0; i < j->g->n_input; i++) {
        int v = j->g->input[i];
        if (j->value[v].wanted && j->value[v].has_grid)
            OCT_TRY(put_on_grid(b, v, v, &b->rounded[v], err));
    }
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        bool product = j->node[id].role == OCT_ROLE_PRODUCT, moved = false;
        for (int k = 0; k < n->n_in; k++)
            moved |= n->in[k] >= 0 && b->rounded[n->in[k]] != n->in[k];
        if (moved && !product && n->n_captured == 0)
            OCT_TRY(repeat(b, id, err));
        for (int k = 0; k < n->n_out; k++) {
            int v = n->out[k];
            if (v >= 0 && j->value[v].wanted && j->value[v].has_grid)
                OCT_TRY(put_on_grid(b, v, b->rounded[v], &b->rounded[v], err));
        }
    }
    return oct_graph_sort(b->g, err);
}

/* Moves the channels' moments of one value to another table and name. */
static oct_status file_under(oct_calib *raw, const char *from, oct_calib *into, const char *to, oct_err *err)
{
    oct_calib_tensor *f = oct_calib_find(raw, from), *t;
    OCT_TRY(oct_calib_add(into, to, &t, err));
    if (f) {
        t->chan = f->chan;
        f->chan = (oct_chan_stats){ 0 };
    }
    return OCT_OK;
}

/* Moments of product inputs, as they are and on the branch, over the same samples. */
static oct_status gather(brancher *b, oct_source *src, int64_t samples, int threads, oct_calib *exact, oct_calib *rounded,
                         oct_err *err)
{
    const oct_qjob *j = b->j;
    oct_calib *raw = oct_calib_create();
    const char **names = oct_calloc(2 * j->n_wanted + 1, sizeof *names);
    int *axes = oct_calloc(2 * j->n_wanted + 1, sizeof *axes);
    oct_status s = raw && names && axes ? OCT_OK : oct_nomem(err);
    size_t n = 0;
    for (size_t i = 0; s == OCT_OK && i < j->n_wanted; i++) {
        int v = oct_graph_find(j->g, j->wanted[i]);
        if (!j->wanted_axes[i] || b->rounded[v] == v)
            continue;
        names[n] = j->wanted[i];
        names[n + 1] = b->g->value[b->rounded[v]].name;
        axes[n] = axes[n + 1] = j->wanted_axes[i];
        n += 2;
    }
    oct_calibrate_opts o = { .values = names, .axes = axes, .n = n, .moments_only = true, .limit = samples, .threads = threads };
    if (s == OCT_OK && n)
        s = oct_calibrate(b->g, src, &o, raw, err);
    for (size_t i = 0; s == OCT_OK && i < n; i += 2) {
        s = file_under(raw, names[i], exact, names[i], err);
        if (s == OCT_OK)
            s = file_under(raw, names[i + 1], rounded, names[i], err);
    }
    oct_calib_destroy(raw);
    oct_free(names);
    oct_free(axes);
    return s;
}

static oct_status measure(oct_qjob *j, oct_conversion *c, brancher *b, oct_err *err)
{
    const int64_t samples = oct_measured_samples(c);
    if (!(j->exact = oct_calib_create()) || !(j->rounded = oct_calib_create()))
        return oct_nomem(err);
    for (size_t v = 0; v < j->n_values; v++)
        b->rounded[v] = (int)v;
    OCT_TRY(branch(b, err));
    OCT_TRY(oct_source_pick(c->src, &(oct_pick){ .most = samples }, err));
    return gather(b, c->src, samples, c->o.job.threads, j->exact, j->rounded, err);
}

static oct_status run_inputs(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    oct_qjob *j = c->job;
    OCT_TRY(oct_conversion_settle(c, err));
    if (j->n_wanted == 0) {
        r->why = "the graphs that nodes hold have ranges alone";
        return OCT_OK;
    }
    brancher b = { .j = j, .rounded = oct_calloc(j->n_values + 1, sizeof(int)) };
    oct_status s = b.rounded ? oct_graph_clone(j->g, &b.g, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = measure(j, c, &b, err);
    oct_graph_destroy(b.g);
    oct_free(b.rounded);
    oct_conversion_changed(c);
    return s;
}

static void prepare_weights(oct_qjob_opts *o)
{
    o->bias_weights = true;
}

/* ---- what it gained ---- */

/* Squares of what means were off by, in steps of the outputs' grids, over all channels of corrected products. */
static void add_up(const oct_qjob *j, qshift *sum, int64_t *channels)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i], v = oct_quantized_output(j, id);
        const qweights *w = j->weights[id];
        if (j->node[id].role != OCT_ROLE_PRODUCT || !w || !w->shift.channels || v < 0 || !j->value[v].has_grid)
            continue;
        const double step = (double)j->value[v].q.scale, unit = 1 / (step * step);
        sum->weights += w->shift.weights * unit;
        sum->inputs += w->shift.inputs * unit;
        sum->left += w->shift.left * unit;
        *channels += w->shift.channels;
    }
    for (size_t i = 0; i < j->n_body; i++)
        add_up(j->body[i].job, sum, channels);
}

static void gain(const oct_conversion *c, oct_method_result *r, bool inputs)
{
    qshift sum = { 0 };
    int64_t n = 0;
    add_up(c->job, &sum, &n);
    if (n == 0)
        return;
    r->measure = "mean error of outputs";
    r->unit = "steps";
    r->before = sqrt((inputs ? sum.inputs : sum.weights) / (double)n);
    r->after = sqrt(sum.left / (double)n);
}

static void gain_weights(const oct_conversion *c, oct_method_result *r)
{
    gain(c, r, false);
}

static void gain_inputs(const oct_conversion *c, oct_method_result *r)
{
    gain(c, r, true);
}

const oct_method oct_method_bias_weights = {
    .name = "bias-weights",
    .summary = "biases make up for the mean error of rounded weights",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_STATISTICS,
    .by_default = true,
    .prepare = prepare_weights,
    .gain = gain_weights,
};

const oct_method oct_method_bias_inputs = {
    .name = "bias-inputs",
    .summary = "biases make up for the mean error of rounded activations, measured",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run_inputs,
    .gain = gain_inputs,
};
