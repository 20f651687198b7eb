/* Placement: which nodes run on integers, which values get a quantizer, which share a grid.
 *
 * Products are chosen by the policy and the target. Other operators follow from them: one runs on integers when its inputs are
 * there as integers anyway and its output is wanted as integers, so that no quantizer is placed that only costs. */
#include "quant/job.h"

#include <math.h>

static const oct_op *op_of(const oct_qjob *j, int node)
{
    return oct_op_of(j->g, node);
}

static bool is_const(const oct_qjob *j, int value)
{
    return value >= 0 && j->g->value[value].konst;
}

static bool is_float(const oct_qjob *j, int value)
{
    return value >= 0 && j->g->value[value].dtype == OCT_F32;
}

int oct_grid_root(const oct_qjob *j, int v)
{
    while (j->value[v].same != v)
        v = j->value[v].same;
    return v;
}

static void join(oct_qjob *j, int a, int b)
{
    a = oct_grid_root(j, a);
    b = oct_grid_root(j, b);
    if (a != b)
        j->value[a > b ? a : b].same = a > b ? b : a;
}

static bool integer_role(oct_role r)
{
    return r == OCT_ROLE_PRODUCT || r == OCT_ROLE_INTEGER;
}

/* Whether a dynamic form can be written, and the target runs it. */
static bool runs_dynamic(const oct_qjob *j, int id, const char **why)
{
    if (op_of(j, id)->dynamic)
        return oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_DYNAMIC, why);
    *why = "no dynamic form in the target";
    return false;
}

/* ---- products ---- */

static void choose_product(oct_qjob *j, int id)
{
    qnode *q = &j->node[id];
    const oct_node *n = &j->g->node[id];
    const oct_op *op = op_of(j, id);
    const oct_tensor *w = oct_layer_weights(j->g, id);
    if (q->row.scheme == OCT_SCHEME_FLOAT) {
        q->why = q->row.rule;
    } else if (n->n_captured || !is_float(j, n->in[0]) || n->out[0] < 0 || (n->n_in > 1 && !is_float(j, n->in[1]))) {
        q->why = "its tensors are not float32";
    } else if (is_const(j, n->in[0])) {
        q->why = "its data input is a constant";
    } else if (!op->weights.computed && !w) {
        q->why = "its weights are not constant";
    } else if (w && !op->weights.kernel && w->rank != 2) {
        q->why = "its weights are not one matrix";
    } else if (w && !oct_layer_layout(j->g, id, &(oct_weight_layout){ 0 })) {
        q->why = "its groups do not divide its weights";
    } else if (oct_no_integer(op, n)) {
        q->why = oct_no_integer(op, n);
    } else if (n->n_in > 2 && n->in[2] >= 0 && !is_const(j, n->in[2])) {
        q->why = "its bias is not constant";
    } else if (q->row.scheme == OCT_SCHEME_WEIGHT_ONLY) {
        q->why = oct_no_blocks(j, id);
        if (!q->why && oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_WEIGHT_ONLY, &q->why)) {
            q->role = OCT_ROLE_BLOCKS;
            q->why = q->row.rule;
        }
    } else if (q->row.block) {
        q->why = "weights in blocks are for the scheme weight-only";
    } else if (q->row.scheme == OCT_SCHEME_STATIC && j->opts.have_data) {
        if (oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_STATIC, &q->why)) {
            q->role = OCT_ROLE_PRODUCT;
            q->why = q->row.rule;
        }
    } else if (q->row.scheme == OCT_SCHEME_DYNAMIC || q->row.scheme == OCT_SCHEME_STATIC) {
        if (runs_dynamic(j, id, &q->why)) {
            q->role = OCT_ROLE_DYNAMIC;
            q->why = j->opts.have_data ? q->row.rule : "no data: activations are quantized when it runs";
        } else if (!j->opts.have_data) {
            q->why = "no data for the ranges of its activations";
        }
    } else {
        q->why = q->row.rule;
    }
}

static bool is_const_f32(const oct_qjob *j, const oct_node *n, int slot)
{
    return slot < n->n_in && is_const(j, n->in[slot]) && is_float(j, n->in[slot]) && j->g->value[n->in[slot]].konst->rank == 3;
}

static void choose_recurrent(oct_qjob *j, int id)
{
    qnode *q = &j->node[id];
    const oct_node *n = &j->g->node[id];
    if (q->row.scheme == OCT_SCHEME_FLOAT) {
        q->why = q->row.rule;
    } else if (q->row.scheme != OCT_SCHEME_DYNAMIC) {
        q->why = "recurrent layers are quantized dynamically or not at all";
    } else if (!runs_dynamic(j, id, &q->why)) {
        return;
    } else if (!is_const_f32(j, n, 1) || !is_const_f32(j, n, 2)) { /* and so are X and the states, all of one type */
        q->why = "its weights are not constants of float32";
    } else if (oct_no_integer(op_of(j, id), n)) {
        q->why = oct_no_integer(op_of(j, id), n);
    } else {
        q->role = OCT_ROLE_DYNAMIC;
        q->why = q->row.rule;
    }
}

/* ---- clamps ---- */

/* A clamp behind an integer node joins its quantizer when nothing else sees the unclamped value. */
static void choose_clamp(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const int p = n->n_in > 0 && n->in[0] >= 0 ? j->g->value[n->in[0]].producer : -1;
    float lo, hi;
    j->node[id].role = OCT_ROLE_FLOAT;
    if (p < 0 || j->node[id].barred || !oct_op_clamp(j->g, id, &lo, &hi) || !(lo <= 0.0f) || !(hi >= 0.0f))
        return;
    const oct_op *op = op_of(j, p);
    if (!op || !op->fuses_clamp || !integer_role(j->node[p].role) || !oct_value_used_once(&j->g->value[n->in[0]]))
        return;
    j->node[id].role = OCT_ROLE_CLAMP;
    j->node[id].why = "done by the quantizer of the node before it";
    j->value[n->out[0]].clamp_lo = lo;
    j->value[n->out[0]].clamp_hi = hi;
}

int oct_quantized_output(const oct_qjob *j, int node)
{
    int v = j->g->node[node].out[0];
    if (v < 0 || j->g->value[v].n_uses != 1)
        return v;
    int user = j->g->value[v].uses[0].node;
    return j->node[user].role == OCT_ROLE_CLAMP ? j->g->node[user].out[0] : v;
}

/* The node whose result value is as far as quantization goes: through a clamp that goes away. */
static int real_producer(const oct_qjob *j, int value)
{
    int p = j->g->value[value].producer;
    if (p >= 0 && j->node[p].role == OCT_ROLE_CLAMP)
        p = j->g->value[j->g->node[p].in[0]].producer;
    return p;
}

/* ---- other operators ---- */

/* Inputs of a node that carry quantized data. */
static int data_inputs(const oct_qjob *j, int id)
{
    const oct_op *op = op_of(j, id);
    const oct_node *n = &j->g->node[id];
    switch (op->quant) {
    case OCT_QUANT_JOIN:
    case OCT_QUANT_ARITH: return n->n_in;
    case OCT_QUANT_WEIGHTED: return oct_layer_weights(j->g, id) ? 1 : 2;
    default: return 1;
    }
}

static bool reads_integer(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        oct_use u = v->uses[i];
        oct_role r = j->node[u.node].role;
        if (u.slot >= 0 && integer_role(r) && u.slot < data_inputs(j, u.node))
            return true;
        if (r == OCT_ROLE_CLAMP && reads_integer(j, j->g->node[u.node].out[0]))
            return true;
    }
    return false;
}

/* Whether a product reads the value, so that a quantizer stands on it whatever others do. */
static bool read_by_product(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++)
        if (v->uses[i].slot >= 0 && j->node[v->uses[i].node].role == OCT_ROLE_PRODUCT &&
            v->uses[i].slot < data_inputs(j, v->uses[i].node))
            return true;
    return false;
}

static bool made_integer(const oct_qjob *j, int value)
{
    int p = real_producer(j, value);
    return p >= 0 && integer_role(j->node[p].role);
}

static bool candidate(const oct_qjob *j, int id, const char **why)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = op_of(j, id);
    const oct_scheme scheme = j->node[id].row.scheme;
    if (!op || op->quant == OCT_QUANT_NONE || op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT || n->n_captured || scheme == OCT_SCHEME_FP16 ||
        scheme == OCT_SCHEME_BF16)
        return false;
    if (scheme == OCT_SCHEME_FLOAT) {
        *why = j->node[id].row.rule;
        return false;
    }
    if (j->node[id].row.scheme == OCT_SCHEME_WEIGHT_ONLY)
        return false;
    if (!oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_STATIC, why))
        return false;
    if (oct_no_integer(op, n)) {
        *why = oct_no_integer(op, n);
        return false;
    }
    for (int i = 0; i < data_inputs(j, id); i++)
        if (!is_float(j, n->in[i]))
            return false;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && !is_float(j, n->out[k]))
            return false;
    return true;
}

/* Whether an integer candidate still pays: all data inputs are there as integers, and some output is read so. */
static bool pays(const oct_qjob *j, int id, const char **why)
{
    const oct_node *n = &j->g->node[id];
    bool any = false;
    for (int i = 0; i < data_inputs(j, id); i++) {
        if (is_const(j, n->in[i]))
            continue;
        if (!made_integer(j, n->in[i]) && !read_by_product(j, n->in[i])) {
            *why = "an input is not there as integers";
            return false;
        }
        any = true;
    }
    bool read = false;
    for (int k = 0; k < n->n_out; k++)
        read |= n->out[k] >= 0 && reads_integer(j, n->out[k]);
    if (!read)
        *why = "nothing reads its result as integers";
    else if (!any)
        *why = "all its inputs are constants";
    return any && read;
}

static void choose_others(oct_qjob *j)
{
    const oct_graph *g = j->g;
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        if (j->node[id].role == OCT_ROLE_FLOAT && candidate(j, id, &j->node[id].why) && !j->node[id].barred) {
            j->node[id].role = OCT_ROLE_INTEGER;
            j->node[id].why = "between integer operators, and the target has an integer form";
        }
    }
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < g->n_order; i++) /* clamps follow what is before them */
            if (j->node[g->order[i]].role == OCT_ROLE_CLAMP || j->node[g->order[i]].role == OCT_ROLE_FLOAT)
                choose_clamp(j, g->order[i]);
        for (size_t i = 0; i < g->n_order; i++) {
            int id = g->order[i];
            if (j->node[id].role == OCT_ROLE_INTEGER && !pays(j, id, &j->node[id].why)) {
                j->node[id].role = OCT_ROLE_FLOAT;
                again = true;
            }
        }
    }
}

/* ---- values ---- */

static void want_output(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    int v = oct_quantized_output(j, id);
    bool product = j->node[id].role == OCT_ROLE_PRODUCT;
    bool needed = !product || oct_target_needs_output(j->opts.target, n->op) || reads_integer(j, v);
    if (needed) {
        j->value[v].wanted = true;
    } else if (v != n->out[0]) { /* without a quantizer the clamp has to stay */
        qnode *clamp = &j->node[j->g->value[v].producer];
        clamp->role = OCT_ROLE_FLOAT;
        clamp->why = "its result leaves as real numbers";
        j->value[v].clamp_lo = -INFINITY;
        j->value[v].clamp_hi = INFINITY;
    }
    for (int k = 1; k < n->n_out; k++)
        if (n->out[k] >= 0)
            j->value[n->out[k]].wanted = true;
}

static void want_values(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (!integer_role(j->node[id].role))
            continue;
        for (int k = 0; k < data_inputs(j, id); k++) {
            j->value[n->in[k]].wanted = true;
            j->value[n->in[k]].constant = is_const(j, n->in[k]);
        }
        if (j->node[id].role == OCT_ROLE_PRODUCT)
            j->value[n->in[0]].axis = oct_channel_axis(op_of(j, id), n);
        want_output(j, id);
    }
}

/* Grids that must be one: data movement keeps codes. Concat shares where no input's clamp depends on its own grid: a
 * quantizer that also clamps must end where the clamp does, which a wider shared grid would not. */
static void share_grids(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (j->node[id].role != OCT_ROLE_INTEGER)
            continue;
        oct_quant_trait t = op_of(j, id)->quant;
        if (t == OCT_QUANT_SAME)
            for (int k = 0; k < n->n_out; k++)
                if (n->out[k] >= 0)
                    join(j, n->in[0], n->out[k]);
    }
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (j->node[id].role != OCT_ROLE_INTEGER || op_of(j, id)->quant != OCT_QUANT_JOIN)
            continue;
        float lo = 0, hi = 0;
        bool agree = true;
        for (int k = 0; k < n->n_in; k++) {
            const qvalue *v = &j->value[n->in[k]];
            int root = oct_grid_root(j, n->in[k]);
            const qvalue *r = &j->value[root];
            float a = fmaxf(v->clamp_lo, r->clamp_lo), b = fminf(v->clamp_hi, r->clamp_hi);
            agree &= k == 0 || (a == lo && b == hi);
            lo = a;
            hi = b;
        }
        for (int k = 0; k < n->n_in && agree; k++)
            join(j, n->in[k], n->out[0]);
    }
}

const oct_policy_row *oct_maker_row(const oct_qjob *j, int value)
{
    int p = real_producer(j, value);
    return p >= 0 && integer_role(j->node[p].role) ? &j->node[p].row : NULL;
}

const oct_policy_row *oct_reader_row(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++)
        if (j->node[v->uses[i].node].role != OCT_ROLE_FLOAT)
            return &j->node[v->uses[i].node].row;
    return NULL;
}

/* Marks the grids that lie around zero because a rule says so for one of their values. */
static void mark_symmetric(oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++) {
        if (!j->value[v].wanted)
            continue;
        const oct_policy_row *row = oct_maker_row(j, (int)v);
        row = row ? row : oct_reader_row(j, (int)v);
        if (row && row->symmetric)
            j->value[oct_grid_root(j, (int)v)].symmetric = true;
    }
}

/* A grid that also clamps must end where the clamp does, which one around zero does not: such clamps stay nodes. */
static bool bar_clamps(oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        if (j->node[id].role != OCT_ROLE_CLAMP || !j->value[oct_grid_root(j, j->g->node[id].out[0])].symmetric)
            continue;
        j->node[id].barred = "its result has a grid around zero, which does not end where it does";
        any = true;
    }
    return any;
}

static oct_status list_wanted(oct_qjob *j, oct_err *err)
{
    j->wanted = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->wanted);
    j->wanted_axes = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->wanted_axes);
    j->wanted_value = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->wanted_value);
    if (!j->wanted || !j->wanted_axes || !j->wanted_value)
        return oct_nomem(err);
    j->n_wanted = 0;
    for (size_t v = 0; v < j->n_values; v++)
        if (j->value[v].ranged || (j->value[v].wanted && !j->value[v].constant)) {
            j->wanted_axes[j->n_wanted] = j->value[v].axis;
            j->wanted_value[j->n_wanted] = (int)v;
            j->wanted[j->n_wanted++] = oct_value_name(j->g, (int)v);
        }
    return OCT_OK;
}

/* Why a node stays float that is no product and that nothing makes integer. */
static const char *without_role(const oct_qjob *j, int id, const oct_op *op)
{
    if (!op)
        return "the operator is unknown";
    if (oct_node_graph_at(&j->g->node[id], 0))
        return "control flow: the nodes of its graphs are decided one by one";
    if (j->node[id].row.scheme == OCT_SCHEME_WEIGHT_ONLY)
        return "weight-only rounds the weights of products";
    return op->integer && !j->opts.have_data ? "no data for the range of its result" : "no integer form";
}

static void place(oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        j->value[v] = (qvalue){ .same = (int)v, .clamp_lo = -INFINITY, .clamp_hi = INFINITY, .sqnr = NAN };
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        const oct_op *op = op_of(j, id);
        j->node[id].role = OCT_ROLE_FLOAT;
        j->node[id].why = without_role(j, id, op);
        /* barred: a reason found while deciding. */
        if (op && op->quant == OCT_QUANT_WEIGHTED && !j->node[id].barred)
            choose_product(j, id);
        if (op && op->quant == OCT_QUANT_RECURRENT)
            choose_recurrent(j, id);
        if (j->node[id].barred)
            j->node[id].why = j->node[id].barred;
    }
    if (j->opts.have_data)
        choose_others(j);
    want_values(j);
    share_grids(j);
    mark_symmetric(j);
}

oct_status oct_job_place(oct_qjob *j, oct_err *err)
{
    do
        place(j);
    while (bar_clamps(j));
    OCT_TRY(oct_half_place(j, err));
    return list_wanted(j, err);
}
