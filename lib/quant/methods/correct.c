/* Bias correction: measures the errors that weights.c corrects in biases. With a table, this is the shift of means
 * caused by rounded weights. With samples, it is also the shift caused by rounded activations, from the means of the
 * products' inputs after quantization.
 *
 * On average, a product should give sum w E[x]. It gives sum wq E[xq], where xq is its input in the quantized model. If
 * xq were measured in the quantized model itself, a layer would also correct errors of the layers before it, which they
 * correct themselves. Therefore xq is measured with exact products: the float graph gets a second branch after every
 * product. There, the product's float output is quantized and passes through everything between products (Add, Concat,
 * pools, means), each result with its own quantization parameters, up to the inputs of the next products. So all layers
 * can be corrected at once. */
#include "forms/edit.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

typedef struct brancher {
    oct_qjob *j;
    oct_graph *g; /* a copy that grows the branches */
    int before;   /* the node in front of which branches are inserted, after the value that they start from, so that no
                     value must be kept long; -1: the end */
    int *rounded; /* [n_values]: the counterpart of a value in the branch, or the value itself */
} brancher;

/* Rounds x by the quantization parameters of value v: adds a border, whose readers see rounded values. */
static oct_status fake_quantize(brancher *b, int v, int x, int *out, oct_err *err)
{
    OCT_TRY(oct_edit_value(b->g, b->g->value[v].name, "_branch_rounded", OCT_F32, v, out, err));
    b->g->value[*out].quant = oct_quant_of(b->j, v);
    return oct_edit_node(b->g, "QuantizeLinear", &x, 1, *out, b->before, NULL, err);
}

/* Repeats the node on the values of the branch. */
static oct_status repeat(brancher *b, int id, oct_err *err)
{
    oct_graph *g = b->g;
    const oct_node *n = &b->j->g->node[id];
    int copy;
    OCT_TRY(oct_graph_add_node(g, n->op, n->domain, "", n->n_in, n->n_out, b->before, &copy, err));
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
    b->before = j->g->n_order ? j->g->order[0] : -1;
    for (size_t i = 0; i < j->g->n_input; i++) {
        int v = j->g->input[i];
        if (oct_quant_of(j, v))
            OCT_TRY(fake_quantize(b, v, v, &b->rounded[v], err));
    }
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        bool product = oct_is_product(j, id), moved = false;
        b->before = i + 1 < j->g->n_order ? j->g->order[i + 1] : -1;
        for (int k = 0; k < n->n_in; k++)
            moved |= n->in[k] >= 0 && b->rounded[n->in[k]] != n->in[k];
        if (moved && !product && n->n_captured == 0)
            OCT_TRY(repeat(b, id, err));
        for (int k = 0; k < n->n_out; k++) {
            int v = n->out[k];
            if (v >= 0 && oct_quant_of(j, v))
                OCT_TRY(fake_quantize(b, v, b->rounded[v], &b->rounded[v], err));
        }
    }
    return OCT_OK;
}

/* Stores the differences of the means of v's channels between the branches. The table has the means of both. */
static oct_status keep_difference(oct_qjob *j, int v, const oct_calib *both, const char *rounded, oct_err *err)
{
    const oct_calib_tensor *a = oct_calib_find(both, oct_value_name(j->g, v)), *b = oct_calib_find(both, rounded);
    const size_t n = a && b && a->chan.channels == b->chan.channels ? a->chan.channels : 0;
    if (!n)
        return OCT_OK;
    if (!(j->moved[v] = oct_arena_calloc(j->arena, n, sizeof **j->moved)))
        return oct_nomem(err);
    j->moved_channels[v] = n;
    for (size_t i = 0; i < n; i++)
        j->moved[v][i] = oct_chan_mean(&b->chan.c[i]) - oct_chan_mean(&a->chan.c[i]);
    return OCT_OK;
}

/* Gathers moments of product inputs, without the branch and with it, over the same samples. */
static oct_status gather(brancher *b, oct_conversion *c, oct_err *err)
{
    oct_qjob *j = b->j;
    const int64_t samples = oct_measured_samples(c);
    oct_calib *both = oct_calib_create();
    const char **names = oct_arena_calloc(b->g->arena, 2 * j->n_values + 1, sizeof *names);
    int *axes = oct_arena_calloc(b->g->arena, 2 * j->n_values + 1, sizeof *axes);
    oct_status s = both && names && axes ? OCT_OK : oct_nomem(err);
    size_t n = 0;
    for (size_t v = 0; s == OCT_OK && v < j->n_values; v++)
        if (oct_is_observed(j, (int)v) && oct_moments_axis(j, v) && b->rounded[v] != (int)v) {
            axes[n] = axes[n + 1] = oct_moments_axis(j, v);
            names[n++] = oct_value_name(j->g, (int)v);
            names[n++] = b->g->value[b->rounded[v]].name;
        }
    const oct_calibrate_opts o = {
        .values = names, .axes = axes, .n = n, .moments_only = true, .limit = samples, .threads = c->o.job.threads
    };
    if (s == OCT_OK)
        s = oct_source_pick(c->src, &(oct_pick){ .most = samples }, err);
    if (s == OCT_OK && n)
        s = oct_calibrate(b->g, c->src, &o, both, err);
    for (size_t v = 0; s == OCT_OK && v < j->n_values; v++)
        if (b->rounded[v] != (int)v)
            s = keep_difference(j, (int)v, both, b->g->value[b->rounded[v]].name, err);
    oct_calib_destroy(both);
    return s;
}

static oct_status measure(brancher *b, oct_conversion *c, oct_err *err)
{
    oct_qjob *j = b->j;
    OCT_TRY(oct_graph_clone(j->g, &b->g, err));
    b->rounded = oct_arena_alloc(b->g->arena, (j->n_values + 1) * sizeof *b->rounded);
    j->moved = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->moved);
    j->moved_channels = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->moved_channels);
    if (!b->rounded || !j->moved || !j->moved_channels)
        return oct_nomem(err);
    for (size_t v = 0; v < j->n_values; v++)
        b->rounded[v] = (int)v;
    OCT_TRY(branch(b, err));
    return gather(b, c, err);
}

static oct_status run_inputs(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    oct_qjob *j = c->job;
    bool any = false;
    OCT_TRY(oct_conversion_settle(c, err));
    for (size_t v = 0; v < j->n_values; v++)
        any |= oct_is_observed(j, (int)v);
    if (!any) {
        r->why = "graphs inside nodes (If, Loop, Scan) only get ranges";
        return OCT_OK;
    }
    brancher b = { .j = j };
    oct_status s = measure(&b, c, err);
    oct_graph_destroy(b.g);
    oct_conversion_changed(c);
    return s;
}

static void prepare_weights(oct_qjob_opts *o)
{
    o->bias_weights = true;
}

/* ---- the gain ---- */

/* Adds up the squared errors of means over all channels of corrected products, in steps of the outputs' scales. */
static void add_up(const oct_qjob *j, qshift *sum)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i], v = oct_quantized_output(j, id);
        const qshift *x = &j->constants[id].shift;
        if (!oct_is_product(j, id) || !x->channels || v < 0 || !oct_quant_of(j, v))
            continue;
        const double step = (double)oct_quant_of(j, v)->scale[0], unit = 1 / (step * step);
        sum->weights += x->weights * unit;
        sum->inputs += x->inputs * unit;
        sum->left += x->left * unit;
        sum->channels += x->channels;
    }
    for (size_t i = 0; i < j->n_body; i++)
        add_up(j->body[i].job, sum);
}

static void gain(const oct_conversion *c, oct_method_result *r)
{
    const bool inputs = r->method->needs == OCT_NEEDS_SAMPLES;
    qshift sum = { 0 };
    add_up(c->job, &sum);
    if (sum.channels == 0)
        return;
    r->measure = "mean error of outputs";
    r->unit = "steps";
    r->before = sqrt((inputs ? sum.inputs : sum.weights) / (double)sum.channels);
    r->after = sqrt(sum.left / (double)sum.channels);
}

const oct_method oct_method_bias_weights = {
    .name = "bias-weights",
    .summary = "biases make up for the mean error of rounded weights",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_STATISTICS,
    .by_default = true,
    .prepare = prepare_weights,
    .gain = gain,
};

const oct_method oct_method_bias_inputs = {
    .name = "bias-inputs",
    .summary = "biases make up for the mean error of rounded activations, measured",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run_inputs,
    .gain = gain,
};
