/* Bias correction: measures the errors that weights.c corrects in biases. With a table, this is the shift of means
 * caused by rounded weights. With samples, it is also the shift caused by rounded activations, from the means of the
 * products' inputs after quantization.
 *
 * On average, a product should give sum w E[x]. It gives sum wq E[xq], where xq is its input in the quantized model. If
 * xq were measured in the quantized model itself, a layer would also correct errors of the layers before it, which they
 * correct themselves. Therefore xq is measured with exact products: the float graph gets a second branch after every
 * product. There, the product's float output is quantized and passes through everything between products (Add, Concat,
 * pools, means), each result with its own quantization parameters, up to the inputs of the next products. So all layers
 * can be corrected at once. A body has branches of its own, which begin at what enters it. */
#include "forms/edit.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

typedef struct brancher {
    oct_qjob *j;
    const oct_qjob *outermost;
    oct_graph *g; /* a copy that grows the branches */
    int before;   /* the node in front of which branches are inserted, after the value that they start from, so that no
                     value must be kept long; -1: the end */
    int *rounded; /* [n_values]: the counterpart of a value in the branch, or the value itself */
    int *real;    /* [n_values]: the value itself, or what a body has taken of it from outside */
    struct brancher *body; /* [j->n_body] */
} brancher;

/* What a run shows. */
typedef struct shown {
    const char **name;
    int *axis;
    size_t n;
} shown;

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

/* A body may run for some samples alone, or several times, so that means of what it takes from outside are of the value
 * in the body. */
static oct_status see_captured(brancher *b, int v, oct_err *err)
{
    OCT_TRY(oct_edit_value(b->g, b->g->value[v].name, "_branch_taken", OCT_F32, v, &b->real[v], err));
    return oct_edit_node(b->g, "Identity", &v, 1, b->real[v], b->before, NULL, err);
}

static oct_status branch(brancher *b, oct_err *err)
{
    const oct_qjob *j = b->j;
    b->before = j->g->n_order ? j->g->order[0] : -1;
    for (size_t v = 0; v < j->n_values; v++) {
        const bool taken = j->g->value[v].outer >= 0;
        if (j->g->value[v].dead || !oct_quant_of(j, (int)v) || !(taken || j->g->value[v].is_input))
            continue;
        if (taken)
            OCT_TRY(see_captured(b, (int)v, err));
        OCT_TRY(fake_quantize(b, (int)v, (int)v, &b->rounded[v], err));
    }
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        bool product = oct_is_product(j, id), moved = false;
        b->before = i + 1 < j->g->n_order ? j->g->order[i + 1] : -1;
        for (int k = 0; k < n->n_in; k++)
            moved |= n->in[k] >= 0 && b->rounded[n->in[k]] != n->in[k];
        if (moved && !product && n->n_captured == 0 && !oct_node_graph_at(n, 0))
            OCT_TRY(repeat(b, id, err));
        for (int k = 0; k < n->n_out; k++) {
            int v = n->out[k];
            if (v >= 0 && oct_quant_of(j, v))
                OCT_TRY(fake_quantize(b, v, b->rounded[v], &b->rounded[v], err));
        }
    }
    return OCT_OK;
}

/* The errors of n rounded numbers, which are spread over a step, have a mean by chance. A body may see few numbers, and
 * a loop adds up what chance gave: the difference shrinks by the share of its square that chance explains. */
static double without_chance(double d, uint64_t n, const oct_quant *q)
{
    const double step = q ? (double)q->scale[0] : 0, chance = step * step / 12 / (double)(n ? n : 1);
    return d * d > chance ? d * (1 - chance / (d * d)) : 0;
}

/* Stores the differences of the means of v's channels between the branches. The table has the means of both. */
static oct_status keep_difference(oct_qjob *j, int v, const oct_calib *both, const char *real, const char *rounded,
                                  oct_err *err)
{
    const oct_calib_tensor *a = oct_calib_find(both, real), *b = oct_calib_find(both, rounded);
    const size_t n = a && b && a->chan.channels == b->chan.channels ? a->chan.channels : 0;
    if (!n)
        return OCT_OK;
    if (!(j->moved[v] = oct_arena_calloc(j->arena, n, sizeof **j->moved)))
        return oct_nomem(err);
    j->moved_channels[v] = n;
    for (size_t i = 0; i < n; i++) {
        const double d = oct_chan_mean(&b->chan.c[i]) - oct_chan_mean(&a->chan.c[i]);
        j->moved[v][i] = *j->where ? without_chance(d, b->chan.c[i].n, oct_quant_of(j, v)) : d;
    }
    return OCT_OK;
}

/* Whether the means of a value are compared. A run shows values by name, so that bodies in which one name stands for
 * different values are left out. */
static bool is_compared(const brancher *b, int v)
{
    return oct_is_observed(b->j, v) && oct_moments_axis(b->j, v) && b->rounded[v] != v &&
           (b->j == b->outermost || oct_job_count_named(b->outermost, oct_value_name(b->j->g, v)) == 1);
}

static void list_shown(const brancher *b, shown *x)
{
    for (size_t v = 0; v < b->j->n_values; v++) {
        if (!is_compared(b, (int)v))
            continue;
        const char *pair[2] = { b->g->value[b->real[v]].name, b->g->value[b->rounded[v]].name };
        for (int k = 0; k < 2; k++) {
            x->name[x->n] = pair[k];
            x->axis[x->n++] = oct_moments_axis(b->j, v);
        }
    }
    for (size_t i = 0; i < b->j->n_body; i++)
        list_shown(&b->body[i], x);
}

static oct_status keep_differences(const brancher *b, const oct_calib *both, oct_err *err)
{
    for (size_t v = 0; v < b->j->n_values; v++)
        if (is_compared(b, (int)v))
            OCT_TRY(keep_difference(b->j, (int)v, both, b->g->value[b->real[v]].name, b->g->value[b->rounded[v]].name,
                                    err));
    for (size_t i = 0; i < b->j->n_body; i++)
        OCT_TRY(keep_differences(&b->body[i], both, err));
    return OCT_OK;
}

static size_t count_values(const oct_qjob *j)
{
    size_t n = j->n_values;
    for (size_t i = 0; i < j->n_body; i++)
        n += count_values(j->body[i].job);
    return n;
}

/* Gathers moments of product inputs, without the branch and with it, over the same samples. */
static oct_status gather(brancher *b, oct_conversion *c, oct_err *err)
{
    const int64_t samples = oct_measured_samples(c);
    const size_t most = 2 * count_values(b->j) + 1;
    oct_calib *both = oct_calib_create();
    shown x = { .name = oct_arena_calloc(b->g->arena, most, sizeof *x.name),
                .axis = oct_arena_calloc(b->g->arena, most, sizeof *x.axis) };
    oct_status s = both && x.name && x.axis ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK)
        list_shown(b, &x);
    const oct_calibrate_opts o = {
        .values = x.name, .axes = x.axis, .n = x.n, .moments_only = true, .limit = samples, .threads = c->o.job.threads
    };
    if (s == OCT_OK)
        s = oct_source_pick(c->src, &(oct_pick){ .most = samples }, err);
    if (s == OCT_OK && x.n)
        s = oct_calibrate(b->g, c->src, &o, both, err);
    if (s == OCT_OK)
        s = keep_differences(b, both, err);
    oct_calib_destroy(both);
    return s;
}

/* Branches in a graph and in those that its nodes hold. arena: that of the outermost graph. */
static oct_status branch_all(brancher *b, oct_arena *arena, oct_err *err)
{
    oct_qjob *j = b->j;
    b->rounded = oct_arena_alloc(arena, (j->n_values + 1) * sizeof *b->rounded);
    b->real = oct_arena_alloc(arena, (j->n_values + 1) * sizeof *b->real);
    b->body = oct_arena_calloc(arena, j->n_body + 1, sizeof *b->body);
    j->moved = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->moved);
    j->moved_channels = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->moved_channels);
    if (!b->rounded || !b->real || !b->body || !j->moved || !j->moved_channels)
        return oct_nomem(err);
    for (size_t v = 0; v < j->n_values; v++)
        b->rounded[v] = b->real[v] = (int)v;
    for (size_t i = 0; i < j->n_body; i++) {
        const qbody *of = &j->body[i];
        b->body[i] = (brancher){ .j = of->job,
                                 .outermost = b->outermost,
                                 .g = oct_node_graph_at(&b->g->node[of->node], of->at) };
        OCT_TRY(branch_all(&b->body[i], arena, err));
    }
    return branch(b, err);
}

static oct_status measure(brancher *b, oct_conversion *c, oct_err *err)
{
    OCT_TRY(oct_graph_clone(b->j->g, &b->g, err));
    OCT_TRY(branch_all(b, b->g->arena, err));
    return gather(b, c, err);
}

static bool any_observed(const oct_qjob *j)
{
    bool any = false;
    for (size_t v = 0; v < j->n_values && !any; v++)
        any = oct_is_observed(j, (int)v);
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = any_observed(j->body[i].job);
    return any;
}

static oct_status run_inputs(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    OCT_TRY(oct_conversion_settle(c, err));
    if (!any_observed(c->job)) {
        r->why = "no layer reads values whose range is known before it runs";
        return OCT_OK;
    }
    brancher b = { .j = c->job, .outermost = c->job };
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
    .summary = "biases make up for rounded weights",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_STATISTICS,
    .by_default = true,
    .prepare = prepare_weights,
    .gain = gain,
};

const oct_method oct_method_bias_inputs = {
    .name = "bias-inputs",
    .summary = "biases make up for rounded activations",
    .step = OCT_STEP_BIASES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run_inputs,
    .gain = gain,
};
