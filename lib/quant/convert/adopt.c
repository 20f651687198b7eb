/* Puts the decisions of a model that is already quantized into a job of its float model: scales of values, quantized
 * weights and biases. Their costs can then be measured in the float graph, whichever tool made the model. */
#include "quant/convert/convert_int.h"

#include "forms/forms.h"
#include "kernels/quantize.h"
#include "ops/core/quantized.h"
#include "passes/pass.h"
#include "quant/job/records.h"
#include "quant/simulate/sensitivity.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

#define LEAST_DB                                                                                                \
    0.0 /* dB of weights compared with those of the float model: below this they are different weights, or have \
           another order */

typedef struct adoption {
    oct_conversion *c;
    oct_qjob *j;
    const oct_graph *spelled; /* the quantized model */
    oct_graph *q;      /* the same, with quantization parameters attached to values; indices are those of `spelled` */
    const int *now;    /* by value of `spelled`: the value with the same numbers in q */
    const int *before; /* [n_values]: the value with the same name in the quantized model, or -1 */
    bool *taken;       /* [n_value of q]: values and weights for which a place in the float graph was found */
} adoption;

/* ---- pairs ---- */

/* The value of the quantized model that has the name of a float value, or holds its integers in operator form; -1:
 * there is none. */
static oct_status pair_names(adoption *a, const oct_graph *g, oct_err *err)
{
    int *before = oct_arena_alloc(a->c->arena, (g->n_value + 1) * sizeof *before);
    if (!before)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++) {
        const char *integers = oct_arena_printf(a->c->arena, "%s_quantized", g->value[v].name);
        if (!integers)
            return oct_nomem(err);
        before[v] = oct_graph_find(a->spelled, g->value[v].name);
        before[v] = before[v] >= 0 ? before[v] : oct_graph_find(a->spelled, integers);
    }
    a->before = before;
    return OCT_OK;
}

/* The value of the quantized model that corresponds to one of the float graph, or -1. */
static int other_value(const adoption *a, int v)
{
    return v >= 0 && a->before[v] >= 0 ? a->now[a->before[v]] : -1;
}

static bool has_scale(const oct_value *v)
{
    const oct_quant *q = v->quant;
    return q && q->n == 1 && !q->block && !v->constant &&
           (q->dtype == OCT_U8 || q->dtype == OCT_S8 || q->dtype == OCT_U16 || q->dtype == OCT_S16);
}

/* The value that is rounded for this one: the value itself, or (*copied) the result of a quantizer for some of its
 * readers; -1: it is not rounded. */
static int rounded_value(const adoption *a, int v, bool *copied)
{
    const int x = other_value(a, v);
    *copied = false;
    if (x < 0 || has_scale(&a->q->value[x]))
        return x;
    for (size_t i = 0; i < a->q->value[x].n_uses; i++) {
        const oct_node *n = &a->q->node[a->q->value[x].uses[i].node];
        if (oct_border_of(a->q, n) == OCT_BORDER_ROUNDS && has_scale(&a->q->value[n->out[0]])) {
            *copied = true;
            return n->out[0];
        }
    }
    return -1;
}

/* The node of the quantized model that computes a value; nodes that only round it are passed over. */
static int computing_node(const adoption *a, int x)
{
    int p = x >= 0 ? a->q->value[x].producer : -1;
    while (p >= 0 && oct_op_of(a->q, p) && oct_op_of(a->q, p)->is_qdq)
        p = a->q->node[p].in[0] >= 0 ? a->q->value[a->q->node[p].in[0]].producer : -1;
    return p;
}

static const oct_quant *weights_of(const adoption *a, int node)
{
    const oct_node *n = &a->q->node[node];
    const oct_quant *w = oct_input_at(n, 1) >= 0 ? a->q->value[n->in[1]].quant : NULL;
    return w && w->qvals && w->n > 0 && !w->block && oct_dtype_bits(w->dtype) >= 8 ? w : NULL;
}

/* The node that multiplies by what a layer's weights have become. It computes the layer's output, or the output of the
 * clamp after it, or has its name. */
static int other_layer(const adoption *a, int id)
{
    oct_epilogue e;
    const oct_node *n = &a->j->g->node[id];
    const int clamp = oct_clamp_behind(a->j->g, n->out[0], &e),
              at[] = { n->out[0], clamp >= 0 ? a->j->g->node[clamp].out[0] : -1 };
    for (size_t k = 0; k < OCT_COUNT(at); k++) {
        const int p = computing_node(a, other_value(a, at[k]));
        if (p >= 0 && weights_of(a, p))
            return p;
    }
    for (size_t i = 0; *n->name && i < a->q->n_order; i++)
        if (strcmp(a->q->node[a->q->order[i]].name, n->name) == 0 && weights_of(a, a->q->order[i]))
            return a->q->order[i];
    return -1;
}

/* ---- values ---- */

static oct_status copy_scale(const adoption *a, const oct_quant *from, const oct_quant **to, oct_err *err)
{
    oct_quant *q = oct_arena_memdup(a->j->arena, from, sizeof *q);
    if (!q || !(q->scale = oct_arena_memdup(a->j->arena, from->scale, sizeof *q->scale)) ||
        !(q->zp = oct_arena_memdup(a->j->arena, from->zp, sizeof *q->zp)))
        return oct_nomem(err);
    *to = q;
    return OCT_OK;
}

/* Marks the nodes of the float graph that read a quantized copy of a value: their counterparts read it, or are
 * unknown. */
static void mark_readers(adoption *a, int v, int copy)
{
    const oct_value *x = &a->j->g->value[v];
    for (size_t i = 0; i < x->n_uses; i++) {
        const int id = x->uses[i].node, p = id >= 0 && a->j->g->node[id].n_out
                                                ? computing_node(a, other_value(a, a->j->g->node[id].out[0]))
                                                : -1;
        bool reads = p < 0;
        for (int k = 0; p >= 0 && k < a->q->node[p].n_in; k++)
            reads |= a->q->node[p].in[k] == copy;
        if (reads)
            oct_set_scheme(a->j, id, OCT_SCHEME_STATIC, "");
    }
}

static oct_status adopt_value(adoption *a, int v, oct_err *err)
{
    oct_qjob *j = a->j;
    bool copied;
    const int x =
        j->g->value[v].constant || j->g->value[v].dead || !oct_is_f32(j, v) ? -1 : rounded_value(a, v, &copied);
    if (x < 0 || !has_scale(&a->q->value[x]))
        return OCT_OK;
    OCT_TRY(copy_scale(a, a->q->value[x].quant, &j->value[v].quant, err));
    j->value[v].wanted = a->taken[x] = true;
    if (copied || j->g->value[v].producer < 0)
        mark_readers(a, v, x);
    else
        oct_set_scheme(j, j->g->value[v].producer, OCT_SCHEME_STATIC, "");
    return OCT_OK;
}

/* An operator that only moves values does not round them again, so its output shares their parameters. */
static void share_scales(adoption *a)
{
    oct_qjob *j = a->j;
    for (size_t i = 0; i < j->g->n_order; i++) {
        const oct_node *n = &j->g->node[j->g->order[i]];
        const oct_op *op = oct_op_of(j->g, j->g->order[i]);
        const int from = n->n_in ? n->in[0] : -1, to = n->n_out ? n->out[0] : -1;
        if (op && op->quant == OCT_QUANT_SAME && from >= 0 && to >= 0 && j->value[from].quant && j->value[to].quant &&
            oct_quant_same(j->value[from].quant, j->value[to].quant)) {
            j->value[to].same = oct_params_root(j, from);
            j->value[to].next = j->value[j->value[to].same].next;
            j->value[j->value[to].same].next = to;
        }
    }
}

/* ---- weights ---- */

/* The real numbers that quantized weights stand for. */
static oct_status real_weights(const adoption *a, const oct_quant *w, oct_tensor **real, oct_err *err)
{
    const oct_tensor *t = w->qvals;
    size_t outer = 1;
    for (int d = 0; d < w->axis && w->n > 1; d++)
        outer *= (size_t)t->dims[d];
    OCT_TRY(oct_tensor_new(a->j->arena, OCT_F32, t->rank, t->dims, real, err));
    oct_dequantize_f32_axis(NULL, w->dtype, t->data, outer, (size_t)w->n, (size_t)t->count / outer / (size_t)w->n,
                            w->scale, w->zp, (float *)(uintptr_t)(*real)->data);
    return OCT_OK;
}

/* Transposes weights in place if they are the transpose of those in the float model. */
static oct_status transpose(const adoption *a, oct_tensor **t, oct_err *err)
{
    const int64_t rows = (*t)->dims[0], columns = (*t)->dims[1];
    const float *from = (*t)->data;
    oct_tensor *turned;
    OCT_TRY(oct_tensor_new(a->j->arena, OCT_F32, 2, (int64_t[]){ columns, rows }, &turned, err));
    float *to = (float *)(uintptr_t)turned->data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            to[k * rows + r] = from[r * columns + k];
    *t = turned;
    return OCT_OK;
}

static bool same_dims(const oct_tensor *a, const oct_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool stand_for(const oct_tensor *real, const oct_tensor *want)
{
    oct_error e = { 0 };
    if (!same_dims(real, want))
        return false;
    oct_error_add(&e, want->data, real->data, (size_t)want->count);
    return oct_error_sqnr(&e) > LEAST_DB;
}

static bool reads_rounded(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    return (n->in[0] >= 0 && j->value[n->in[0]].quant) || (n->out[0] >= 0 && j->value[n->out[0]].quant);
}

static oct_status adopt_layer(adoption *a, int id, oct_err *err)
{
    oct_qjob *j = a->j;
    const oct_tensor *want = oct_layer_weights(j->g, id);
    const int p = want && want->dtype == OCT_F32 ? other_layer(a, id) : -1;
    oct_tensor *real;
    if (p < 0)
        return OCT_OK;
    const oct_quant *w = weights_of(a, p);
    const oct_node *n = &a->q->node[p];
    OCT_TRY(real_weights(a, w, &real, err));
    if (!stand_for(real, want) && real->rank == 2 && real->dims[0] == want->dims[want->rank > 1])
        OCT_TRY(transpose(a, &real, err));
    if (!stand_for(real, want))
        return OCT_OK;
    qweights *x = oct_arena_calloc(j->arena, 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    *x = (qweights){ .quant = *w, .matrix = j->g->node[id].in[1], .qvals = real };
    j->constants[id].weights[0] = x;
    a->taken[n->in[1]] = true;
    const bool rounded = reads_rounded(j, id) || j->node[id].scheme == OCT_SCHEME_STATIC;
    oct_set_scheme(j, id, rounded ? OCT_SCHEME_STATIC : OCT_SCHEME_DYNAMIC, "");
    const oct_quant *bias =
        oct_input_at(n, 2) >= 0 && oct_input_at(&j->g->node[id], 2) >= 0 ? a->q->value[n->in[2]].quant : NULL;
    const oct_tensor *own = oct_layer_bias(j->g, id);
    if (bias && bias->qvals && bias->dtype == OCT_S32 && own && own->count == bias->qvals->count)
        j->constants[id].bias = bias;
    return OCT_OK;
}

/* ---- the whole model ---- */

static void forget_decisions(oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        j->value[v] = (qvalue){
            .axis = j->value[v].axis, .same = (int)v, .next = -1, .clamp_lo = -INFINITY, .clamp_hi = INFINITY
        };
    memset(j->constants, 0, j->n_nodes * sizeof *j->constants);
    for (size_t id = 0; id < j->n_nodes; id++)
        j->node[id] = (qnode){ .policy = j->node[id].policy, .row = j->node[id].row, .scheme = OCT_SCHEME_FLOAT };
}

static oct_status read_quantized(adoption *a, oct_err *err)
{
    OCT_TRY(oct_graph_clone(a->spelled, &a->c->adopted, err));
    a->q = a->c->adopted;
    OCT_TRY(oct_infer_shapes(a->q, err));
    OCT_TRY(oct_forms_read(a->q, NULL, &a->now, err));
    a->taken = oct_arena_calloc(a->c->arena, a->q->n_value + 1, sizeof *a->taken);
    return a->taken ? OCT_OK : oct_nomem(err);
}

/* Whether passes over the float graph g remove a value that the quantized model rounds. */
static oct_status passes_hide(adoption *a, const oct_graph *g, bool *hide, oct_err *err)
{
    oct_graph *fused;
    bool copied;
    *hide = false;
    OCT_TRY(pair_names(a, g, err));
    OCT_TRY(oct_graph_clone(g, &fused, err));
    oct_status s = oct_infer_shapes(fused, err);
    if (s == OCT_OK)
        s = oct_passes_run(fused, NULL, 0, NULL, err);
    for (size_t v = 0; s == OCT_OK && v < g->n_value; v++) {
        const int x = g->value[v].producer >= 0 && fused->value[v].dead ? rounded_value(a, (int)v, &copied) : -1;
        *hide |= x >= 0 && has_scale(&a->q->value[x]);
    }
    oct_graph_destroy(fused);
    return s;
}

/* Opens the job with nodes fused as in the quantized model, or not fused. */
static oct_status open_job(adoption *a, oct_err *err)
{
    oct_conversion *c = a->c;
    const oct_pass *const *all = oct_pass_all(&c->o.job.n_disabled);
    const char **names = oct_arena_calloc(c->arena, c->o.job.n_disabled + 1, sizeof *names);
    bool hide;
    if (!names)
        return oct_nomem(err);
    for (size_t i = 0; i < c->o.job.n_disabled; i++)
        names[i] = all[i]->name;
    c->o.job.disabled = names;
    OCT_TRY(passes_hide(a, c->m->graph, &hide, err));
    c->o.job.n_disabled *= hide;
    OCT_TRY(oct_conversion_reopen(c, err));
    a->j = c->job;
    return pair_names(a, a->j->g, err);
}

static void count(const adoption *a, oct_adopted *n)
{
    for (size_t v = 0; v < a->q->n_value; v++) {
        const oct_value *x = &a->q->value[v];
        if (x->dead || !x->quant || x->n_uses == 0)
            continue;
        const oct_op *op = oct_op_of(a->q, x->uses[0].node);
        const bool weights = x->quant->qvals && x->uses[0].slot == 1 && op && op->quant == OCT_QUANT_WEIGHTED;
        if (weights)
            *(a->taken[v] ? &n->layers : &n->other_layers) += 1;
        else if (!x->quant->qvals && !x->constant)
            *(a->taken[v] ? &n->values : &n->other_values) += 1;
    }
}

static oct_status adopt(adoption *a, oct_adopted *n, oct_err *err)
{
    OCT_TRY(read_quantized(a, err));
    OCT_TRY(open_job(a, err));
    oct_qjob *j = a->j;
    forget_decisions(j);
    for (size_t v = 0; v < j->n_values; v++)
        OCT_TRY(adopt_value(a, (int)v, err));
    share_scales(a);
    for (size_t i = 0; i < j->n_layer; i++)
        OCT_TRY(adopt_layer(a, j->layer[i], err));
    *n = (oct_adopted){ 0 };
    count(a, n);
    return OCT_OK;
}

oct_status oct_conversion_adopt(oct_conversion *c, oct_source *src, const oct_graph *quantized, oct_adopted *found,
                                oct_err *err)
{
    adoption a = { .c = c, .spelled = quantized };
    c->src = src;
    OCT_TRY(adopt(&a, found, err));
    c->decided = true;
    if (found->values + found->layers == 0) {
        oct_fail(err, OCT_EUSAGE, "nothing that is quantized has a counterpart in %s", c->o.name);
        oct_hint(
            err,
            "values are paired by their names, layers by the names of what they make; give the float model first, then the model that was made from it");
        return OCT_EUSAGE;
    }
    const oct_status s = oct_conversion_find_causes(c, err);
    oct_conversion_end_sim(c);
    return s;
}
