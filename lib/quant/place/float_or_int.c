/* The scheme of each node: float, static, dynamic, weight-only or stored, by policy, target, constraints and
 * what the graph allows. Products are chosen by the policy and the target. Other operators follow from them: an
 * operator runs on integers if its inputs are available as integers anyway, and its output is needed as integers. So no
 * quantizer is placed without a benefit. (16-bit floats: half.c.) */
#include "quant/place/place_int.h"

#include "forms/qlinear.h"
#include "quant/job/job.h"
#include "quant/job/records.h"
#include "quant/weights/weights.h"

#include <math.h>

/* Whether sums of a product of two activations may saturate: weights can be made safe, activations cannot. With u8 they
 * do not where the target multiplies u8 by u8; s8 activations become u8 there if they have one reader. */
static bool saturates(const oct_qjob *j, int id)
{
    const oct_target *t = j->opts.target;
    const bool is_signed = oct_asked_activations(j, &j->node[id].row) == OCT_S8 &&
                           !oct_value_used_once(&j->g->value[j->g->node[id].in[1]]);
    return oct_target_saturates(t) && (is_signed || !oct_target_takes(t, OCT_U8, OCT_U8));
}

/* Whether the target runs a node in a quantized scheme. If not, *why is set to the reason. */
static bool runs(const oct_qjob *j, int id, oct_scheme scheme, const char **why)
{
    const char *fault = scheme == OCT_SCHEME_WEIGHT_ONLY ? oct_no_blocks(j, id)
                        : scheme == OCT_SCHEME_DYNAMIC && !oct_op_of(j->g, id)->dynamic
                            ? "no dynamic form in the target"
                            : NULL;
    if (!fault && scheme == OCT_SCHEME_DYNAMIC && oct_is_left_product(j, id))
        fault = oct_no_turn(j, id);
    if (!fault && scheme == OCT_SCHEME_STATIC && !oct_layer_weights(j->g, id) && saturates(j, id))
        fault = "sums of products of two activations could saturate on some of the target's CPUs";
    if (fault)
        *why = fault;
    const oct_target_form form = scheme == OCT_SCHEME_STATIC    ? OCT_TARGET_STATIC
                                 : scheme == OCT_SCHEME_DYNAMIC ? OCT_TARGET_DYNAMIC
                                                                : OCT_TARGET_WEIGHT_ONLY;
    return !fault && oct_target_runs(j->opts.target, j->g, id, form, why);
}

/* Whether a value is the dequantized form of integers in the file. */
static bool has_integers(const oct_qjob *j, int value)
{
    const int p = j->g->value[value].producer;
    const oct_op *op = p >= 0 ? oct_op_of(j->g, p) : NULL;
    return op && op->is_qdq && oct_is_const(j, j->g->node[p].in[0]);
}

static const char not_one[] = "its weights are not one matrix";

/* The reason why a product cannot be quantized in any scheme, or NULL. */
static const char *no_product(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    const oct_tensor *w = oct_layer_weights(j->g, id);
    if (n->n_captured || !oct_is_f32(j, n->in[0]) || n->out[0] < 0 || (n->n_in > 1 && !oct_is_f32(j, n->in[1])))
        return "its tensors are not float32";
    if (oct_is_const(j, n->in[0]) &&
        (w || !op->weights.computed)) /* otherwise both factors are data, and one happens to be known */
        return "its data input is a constant";
    if (!op->weights.computed && !w)
        return n->n_in > 1 && has_integers(j, n->in[1]) ? "its weights are integers, and its input is not"
                                                        : "its weights are not constant";
    if (w && !op->weights.kernel && w->rank != 2)
        return not_one;
    if (w && !w->count) /* of a sum of no products ONNX Runtime's integer operators write nothing */
        return "its weights are empty";
    if (w && !oct_layer_layout(j->g, id, &(oct_weight_layout){ 0 }))
        return "its groups do not divide its weights";
    if (oct_no_integer(op, n))
        return oct_no_integer(op, n);
    return oct_input_at(n, 2) >= 0 && !oct_is_const(j, n->in[2]) ? "its bias is not constant" : NULL;
}

/* The reason that is reported for a product that lacks ranges. */
static const char *no_ranges(const oct_qjob *j, int id, bool dynamic)
{
    if (oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_NO_RANGES))
        return dynamic ? "no statistics of its values: activations are quantized when it runs"
                       : "a tensor has no statistics in the calibration table";
    return dynamic ? "no data: activations are quantized when it runs" : "no data for the ranges of its activations";
}

static const char slower[] = "by cost: on integers the target would be slower",
                  stored[] = "by cost: on integers the target would be slower; its weights are stored in 8 bits",
                  cheaper[] = "by cost: the target is faster with ranges found when it runs than with calibrated ones";

/* Chooses float, with weights that are stored in 8 bits if possible. */
static void choose_reals(oct_qjob *j, int id, bool asked)
{
    const char *why = oct_no_stored(j, id);
    oct_set_scheme(j, id, why ? OCT_SCHEME_FLOAT : OCT_SCHEME_STORED,
                   asked ? (why ? why : j->node[id].row.rule)
                   : why ? slower
                         : stored);
}

/* Whether weights in blocks would exist beside a table of the same numbers. DequantizeLinear in blocks makes a float
 * copy of the whole matrix, from which rows cannot be picked cheaply. */
static bool stores_with_table(const oct_qjob *j, int id)
{
    return j->opts.blocks_qdq && !j->node[id].row.asked && oct_is_tied(j, id) && !oct_no_stored(j, id);
}

static void choose_product(oct_qjob *j, int id)
{
    const oct_policy_row *row = &j->node[id].row;
    const oct_scheme by_cost = oct_scheme_by_cost(&j->constraints, id);
    if (row->scheme == OCT_SCHEME_STORED || (row->scheme != OCT_SCHEME_FLOAT && by_cost == OCT_SCHEME_FLOAT)) {
        choose_reals(j, id, row->scheme == OCT_SCHEME_STORED);
        return;
    }
    const bool data = j->opts.have_data && !oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_NO_RANGES),
               half = oct_scheme_is_half(row->scheme);
    const bool costs = by_cost != OCT_SCHEME_AUTO;
    const oct_scheme scheme = costs                                       ? by_cost
                              : row->scheme == OCT_SCHEME_STATIC && !data ? OCT_SCHEME_DYNAMIC
                                                                          : row->scheme;
    const char *why = row->scheme == OCT_SCHEME_FLOAT ? row->rule : no_product(j, id);
    if (!why && scheme == OCT_SCHEME_STATIC)
        why = oct_target_no_static(j->opts.target, j->g, id);
    if (!why && row->block && scheme != OCT_SCHEME_WEIGHT_ONLY)
        why = "weights in blocks are for the scheme weight-only";
    if (!why && !half && oct_layer_weights(j->g, id) &&
        oct_weights_grow(j, id, scheme == OCT_SCHEME_WEIGHT_ONLY && j->opts.bits != 8 ? 4 : 8))
        why = "its weights are computed from a constant that takes fewer bytes than they would as integers";
    if (why == not_one && !half && !oct_no_stored(j, id))
        oct_set_scheme(j, id, OCT_SCHEME_STORED, "its weights are several matrices, which are stored");
    else if (why || half)
        oct_set_scheme(j, id, OCT_SCHEME_FLOAT, why ? why : row->rule);
    else if (scheme == OCT_SCHEME_WEIGHT_ONLY && stores_with_table(j, id))
        oct_set_scheme(
            j, id, OCT_SCHEME_STORED,
            "it shares its weights with a table whose rows a Gather picks, which in QDQ form cannot be in blocks");
    else if (runs(j, id, scheme, &j->node[id].why))
        oct_set_scheme(j, id, scheme,
                       scheme == OCT_SCHEME_DYNAMIC && !data ? no_ranges(j, id, true)
                       : costs                               ? cheaper
                                                             : row->rule);
    else if (scheme == OCT_SCHEME_DYNAMIC && row->scheme == OCT_SCHEME_STATIC && !data)
        j->node[id].why = no_ranges(j, id, false);
}

static bool is_matrices(const oct_qjob *j, const oct_node *n, int slot)
{
    return slot < n->n_in && oct_is_const(j, n->in[slot]) && oct_is_f32(j, n->in[slot]) &&
           j->g->value[n->in[slot]].constant->rank == 3;
}

bool oct_recurrent_matrices(const oct_qjob *j, int node)
{
    const oct_node *n = &j->g->node[node];
    return is_matrices(j, n, 1) && is_matrices(j, n, 2);
}

static bool asks_stored(const oct_policy_row *row)
{
    return row->scheme == OCT_SCHEME_WEIGHT_ONLY || row->scheme == OCT_SCHEME_STORED;
}

/* Stores the matrices in 8 bits of a layer that computes in float. */
static void choose_stored(oct_qjob *j, int id, const char *why)
{
    const bool asked = asks_stored(&j->node[id].row);
    const char *fault = oct_no_stored(j, id);
    if (fault)
        j->node[id].why = fault;
    else
        oct_set_scheme(j, id, OCT_SCHEME_WEIGHT_ONLY, asked ? "its matrices are stored in 8 bits" : why);
}

/* The size of the state from which on products in the body of a Scan are faster than the float operator, with one
 * sequence. Measured in ONNX Runtime (bench/recurrent, docs/kernels-lab.md): with 256 they take 0.9 of its time, with
 * 128 twice its time. With u8 weights, which may be needed against saturation of pairs, they take 1.1 at 256 and 0.9 at
 * 320. In our runtime they take half of it at 256. */
enum { LEAST_STATE = 256, LEAST_STATE_U8 = 320 };

/* The reason why matrices are stored in 8 bits instead of being multiplied dynamically, as a complete sentence; NULL:
 * there is none. */
static const char *no_body(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const char *fault = oct_no_body(j->g, id);
    if (fault) {
        const char *text = oct_arena_printf(j->arena, "stored in 8 bits: %s", fault);
        return text ? text : fault;
    }
    const bool narrow =
        j->g->value[n->in[2]].constant->dims[2] < (oct_target_saturates(j->opts.target) ? LEAST_STATE_U8 : LEAST_STATE);
    return narrow && !j->node[id].row.asked ? "stored in 8 bits: on integers its state is too narrow to gain time"
                                            : NULL;
}

static void choose_recurrent(oct_qjob *j, int id)
{
    const oct_policy_row *row = &j->node[id].row;
    const oct_node *n = &j->g->node[id];
    const char *why = oct_op_of(j->g, id)->body ? no_body(j, id) : NULL;
    if (row->scheme == OCT_SCHEME_FLOAT)
        j->node[id].why = row->rule;
    else if (j->opts.have_data && !asks_stored(row) && oct_recurrent_matrices(j, id) &&
             oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_ROUNDED, NULL))
        j->node[id].why = "the target computes it between quantizers"; /* place_around.c */
    else if (row->scheme != OCT_SCHEME_DYNAMIC && !asks_stored(row))
        j->node[id].why = "recurrent layers are quantized dynamically or not at all";
    else if (oct_kept_float(&j->constraints, id))
        choose_stored(j, id, oct_kept_float(&j->constraints, id));
    else if (asks_stored(row) || !runs(j, id, OCT_SCHEME_DYNAMIC, &j->node[id].why))
        choose_stored(j, id, "stored in 8 bits: the target has no integer form of it");
    else if (why)
        choose_stored(j, id, why);
    else if (!oct_recurrent_matrices(j, id)) /* so are X and the states: all have one type */
        j->node[id].why = "its weights are not constants of float32";
    else if (oct_no_integer(oct_op_of(j->g, id), n))
        j->node[id].why = oct_no_integer(oct_op_of(j->g, id), n);
    else
        oct_set_scheme(j, id, OCT_SCHEME_DYNAMIC, row->rule);
}

/* The experts of a layer that computes in float. */
static void choose_experts(oct_qjob *j, int id)
{
    const oct_policy_row *row = &j->node[id].row;
    const char *fault = oct_no_stored(j, id);
    if (oct_scheme_is_half(row->scheme))
        return;
    if (row->scheme == OCT_SCHEME_FLOAT || fault)
        j->node[id].why = row->scheme == OCT_SCHEME_FLOAT ? row->rule : fault;
    else
        oct_set_scheme(j, id, OCT_SCHEME_STORED, "its experts are stored");
}

/* The rows of a table are kept in 8 bits. The rows that are picked become float. */
static void choose_table(oct_qjob *j, int id)
{
    const oct_policy_row *row = &j->node[id].row;
    bool is_table;
    const char *why = oct_no_table(j, id, &is_table);
    if (!is_table || oct_scheme_is_half(row->scheme))
        return;
    if (row->scheme == OCT_SCHEME_FLOAT)
        j->node[id].why = row->rule;
    else if (why)
        j->node[id].why = why;
    else
        oct_set_scheme(
            j, id, OCT_SCHEME_WEIGHT_ONLY,
            row->block && row->asked
                ? "a table is stored in 8 bits, or in blocks if a product shares its numbers and has them in blocks"
                : "rows of a table are stored in 8 bits");
}

/* A clamp after an integer node is performed by the quantizer, if nothing else reads the unclamped value. */
static void choose_clamp(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const int p = oct_input_at(n, 0) >= 0 ? j->g->value[n->in[0]].producer : -1;
    float lo, hi;
    j->node[id].absorbed = false;
    j->node[id].scheme = OCT_SCHEME_FLOAT;
    if (!oct_is_static(j, p) || oct_kept_float(&j->constraints, id) || !oct_op_clamp(j->g, id, &lo, &hi) ||
        !(lo <= 0.0f) || !(hi >= 0.0f) || !oct_op_of(j->g, p)->fuses_clamp ||
        !oct_value_used_once(&j->g->value[n->in[0]]))
        return;
    oct_set_scheme(j, id, OCT_SCHEME_STATIC, "done by the quantizer of the node before it");
    j->node[id].absorbed = true;
    j->value[n->out[0]].clamp_lo = lo;
    j->value[n->out[0]].clamp_hi = hi;
}

bool oct_is_read_as_integers(const oct_qjob *j, int value, bool by_product)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_use u = v->uses[i];
        if (u.slot >= 0 && (by_product ? oct_is_product(j, u.node) : oct_is_static(j, u.node)) &&
            u.slot < oct_data_inputs(j, u.node))
            return true;
        if (!by_product && j->node[u.node].absorbed && oct_is_read_as_integers(j, j->g->node[u.node].out[0], false))
            return true;
    }
    return false;
}

/* Whether a node that is not a product has an integer form here. *why: the reason why not, if there is something to
 * report. */
static bool candidate(const oct_qjob *j, int id, const char **why)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    const oct_policy_row *row = &j->node[id].row;
    if (!op || op->quant == OCT_QUANT_NONE || oct_op_is_layer(op) || n->n_captured)
        return false;
    if (row->scheme == OCT_SCHEME_FLOAT)
        *why = row->rule;
    if (oct_scheme_by_cost(&j->constraints, id) == OCT_SCHEME_FLOAT) {
        *why = slower;
        return false;
    }
    if ((row->scheme != OCT_SCHEME_STATIC && row->scheme != OCT_SCHEME_DYNAMIC) ||
        !oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_STATIC, why))
        return false;
    if (oct_no_integer(op, n)) {
        *why = oct_no_integer(op, n);
        return false;
    }
    if (oct_counting_of(j, id) == OCT_COUNTS_WIDE) {
        *why = oct_becomes_integers;
        return false;
    }
    bool real = true;
    for (int i = 0; i < oct_data_inputs(j, id); i++)
        real &= oct_is_f32(j, n->in[i]);
    for (int k = 0; k < n->n_out; k++)
        real &= n->out[k] < 0 || oct_is_f32(j, n->out[k]);
    return real;
}

/* The reason why running a candidate on integers has no benefit, or NULL: all its data inputs are available as
 * integers, and an output is read as integers. */
static const char *does_not_pay(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    bool any = false, read = false;
    for (int i = 0; i < oct_data_inputs(j, id); i++) {
        if (!oct_target_rules_of(j->opts.target)->everywhere && !oct_is_const(j, n->in[i]) &&
            !oct_is_static(j, oct_maker_node(j, n->in[i])) && !oct_is_read_as_integers(j, n->in[i], true))
            return "one input is float";
        any |= !oct_is_const(j, n->in[i]);
    }
    for (int k = 0; k < n->n_out; k++)
        read |= n->out[k] >= 0 && oct_is_read_as_integers(j, n->out[k], false);
    read |= oct_target_rules_of(j->opts.target)->everywhere;
    return !read ? "nothing that runs on integers reads the result" : any ? NULL : "all inputs are constants";
}

static void choose_others(oct_qjob *j)
{
    const oct_graph *g = j->g;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        if (j->node[id].scheme == OCT_SCHEME_FLOAT && candidate(j, id, &j->node[id].why) &&
            !oct_kept_float(&j->constraints, id))
            oct_set_scheme(j, id, OCT_SCHEME_STATIC, "between integer operators, and the target has an integer form");
    }
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < g->n_order; i++) /* clamps follow the node before them */
            if (j->node[g->order[i]].absorbed || j->node[g->order[i]].scheme == OCT_SCHEME_FLOAT)
                choose_clamp(j, g->order[i]);
        for (size_t i = 0; i < g->n_order; i++) {
            const int id = g->order[i];
            const char *why = oct_is_static(j, id) && !oct_is_product(j, id) ? does_not_pay(j, id) : NULL;
            if (why)
                oct_set_scheme(j, id, OCT_SCHEME_FLOAT, why);
            again |= why != NULL;
        }
    }
}

/* The reason why a node stays float that is not a product and does not become integer. */
static const char *without_scheme(const oct_qjob *j, int id, const oct_op *op)
{
    if (!op)
        return "the operator is unknown";
    if (oct_node_graph_at(&j->g->node[id], 0))
        return "control flow: the nodes of its graphs are decided one by one";
    if (j->node[id].row.scheme == OCT_SCHEME_WEIGHT_ONLY)
        return "weight-only rounds the weights of products";
    if (oct_qlinear_of(&j->g->node[id]))
        return "its scales are not constants: Octet computes it in float";
    return op->integer && !j->opts.have_data ? "no data for the range of its result" : "no integer form";
}

void oct_place_clamp_back(oct_qjob *j, int clamp)
{
    qvalue *v = &j->value[j->g->node[clamp].out[0]];
    oct_set_scheme(j, clamp, OCT_SCHEME_FLOAT, "its result is read as float");
    j->node[clamp].absorbed = false;
    v->clamp_lo = -INFINITY;
    v->clamp_hi = INFINITY;
}

/* Whether a node that is kept in float has weights in 8 bits all the same. */
static bool is_stored_beside(const oct_qjob *j, int id)
{
    return oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_FLOAT)->scheme == OCT_SCHEME_STORED;
}

void oct_place_schemes(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_op *op = oct_op_of(j->g, id);
        j->node[id].absorbed = false;
        oct_set_scheme(j, id, OCT_SCHEME_FLOAT, without_scheme(j, id, op));
        if (op && op->quant == OCT_QUANT_WEIGHTED && !oct_kept_float(&j->constraints, id))
            choose_product(j, id);
        if (op && op->quant == OCT_QUANT_RECURRENT)
            choose_recurrent(j, id);
        if (op && op->experts && !oct_kept_float(&j->constraints, id))
            choose_experts(j, id);
        if (op && op->picks && !oct_kept_float(&j->constraints, id))
            choose_table(j, id);
        if (!oct_kept_float(&j->constraints, id))
            continue;
        j->node[id].why = oct_kept_float(&j->constraints, id);
        if (op && op->quant == OCT_QUANT_WEIGHTED && is_stored_beside(j, id) && !oct_no_stored(j, id))
            j->node[id].scheme = OCT_SCHEME_STORED;
    }
    if (j->opts.have_data)
        choose_others(j);
}
