/* Writes 16-bit floats into the graph: the types of nodes that compute on them, and a Cast for each value that is
 * needed in another type, which all readers in that type share. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "base/spill.h"
#include "kernels/half.h"
#include "ops/op.h"
#include "ops/signature.h"

#include <string.h>

typedef struct half_value {
    bool ours;             /* its 16-bit type was made here */
    const oct_tensor *was; /* if it is such a constant: its float32 numbers */
    int stored; /* for a constant: the value that a Cast computes in float32 from its 16-bit form; -1: not made yet */
    int cast[OCT_BF16 + 1]; /* by type (float32, float16 or bfloat16): the value that has the same numbers in this type;
                               -1: not made yet */
} half_value;

typedef struct halver {
    const oct_half_opts *o;
    oct_graph *g;
    half_value *value; /* by value */
    size_t n_value, cap_value;
} halver;

bool oct_half_follows(const oct_node *n, int slot)
{
    const oct_signature *s = n->domain[0] ? oct_signature_find(n->domain, n->op, INT64_MAX) : NULL;
    if (s)
        return oct_signature_takes(s, slot, OCT_F16);
    if (strcmp(n->op, "Resize") == 0 || strcmp(n->op, "Upsample") == 0 || strcmp(n->op, "Dropout") == 0)
        return slot == 0;
    return strcmp(n->op, "Shape") != 0 && strcmp(n->op, "Size") != 0;
}

/* The 16-bit type that a node computes on. */
static oct_dtype computes_on(const halver *h, int id)
{
    const oct_dtype t = oct_half_of(h->o, id);
    return t == OCT_BF16 && h->o->bf16_stored ? OCT_UNDEFINED : t;
}

/* An entry for every value of the graph. */
static oct_status grow(halver *h, oct_err *err)
{
    while (h->n_value < h->g->n_value || !h->value) {
        if (!OCT_GROW(h->g->arena, h->value, h->n_value, h->cap_value))
            return oct_nomem(err);
        h->value[h->n_value].ours = false;
        h->value[h->n_value].was = NULL;
        h->value[h->n_value].stored = -1;
        memset(h->value[h->n_value++].cast, -1, sizeof h->value->cast);
    }
    return OCT_OK;
}

/* Adds a value for v in another type, with v's shape, named after v and the type. */
static oct_status new_cast(halver *h, int v, oct_dtype t, int *cast, oct_err *err)
{
    const char *suffix = oct_arena_printf(h->g->arena, "_%s", oct_dtype_name(t));
    if (!suffix)
        return oct_nomem(err);
    OCT_TRY(oct_edit_value(h->g, h->g->value[v].name, suffix, t, v, cast, err));
    OCT_TRY(grow(h, err));
    h->value[*cast].ours = t != OCT_F32;
    h->value[v].cast[t] = *cast;
    h->value[*cast].cast[h->g->value[v].dtype] = v;
    return OCT_OK;
}

static void retype(halver *h, int v, oct_dtype t)
{
    h->g->value[v].dtype = t;
    h->value[v].ours = true;
}

static oct_status add_cast(halver *h, int from, int to, int before, oct_err *err)
{
    int id;
    OCT_TRY(oct_edit_node(h->g, "Cast", &from, 1, to, before, &id, err));
    return oct_node_set_int(h->g, id, "to", h->g->value[to].dtype, err);
}

/* ---- constants ---- */

/* Whether every reader takes the constant in type t, so that it needs no second form. */
static bool all_take(const halver *h, int v, oct_dtype t)
{
    const oct_value *x = &h->g->value[v];
    bool all = !x->is_output && !x->is_input && x->outer < 0;
    for (size_t i = 0; i < x->n_uses; i++) {
        oct_use u = x->uses[i];
        all &= u.slot >= 0 && computes_on(h, u.node) == t && oct_half_follows(&h->g->node[u.node], u.slot);
    }
    return all;
}

/* Whether a large constant is also read as it is, so that a Cast computes its other form. Captures do not count: for
 * them, the values of nested graphs that represent the constant decide. */
static bool stays_wide(const halver *h, int v, oct_dtype t)
{
    const oct_value *x = &h->g->value[v];
    bool wide = x->is_output;
    for (size_t i = 0; i < x->n_uses; i++) {
        const oct_use u = x->uses[i];
        wide |= u.slot >= 0 && (computes_on(h, u.node) != t || !oct_half_follows(&h->g->node[u.node], u.slot));
    }
    return wide && x->constant->count >= OCT_HALF_TABLE;
}

/* Rounds a constant to type t. Denormal numbers, some of which bfloat16 can represent, become 0, because float32
 * arithmetic on them is slow. */
static oct_status narrowed(const halver *h, int v, oct_dtype t, oct_tensor **half, oct_err *err)
{
    const oct_tensor *k = h->g->value[v].constant;
    OCT_TRY(oct_tensor_new(h->g->arena, t, k->rank, k->dims, half, err));
    uint16_t *to = (uint16_t *)(uintptr_t)(*half)->data;
    oct_narrow(NULL, t, k->data, (size_t)k->count, to);
    for (int64_t i = 0; t == OCT_BF16 && i < k->count; i++)
        to[i] = to[i] & 0x7f80 ? to[i] : to[i] & 0x8000;
    oct_spill_forget(k->data, k->bytes);
    oct_spill_forget(to, (*half)->bytes);
    return OCT_OK;
}

static oct_status constant_in(halver *h, int v, oct_dtype t, int *out, oct_err *err)
{
    oct_tensor *half;
    OCT_TRY(narrowed(h, v, t, &half, err));
    if (all_take(h, v, t)) {
        retype(h, v, t);
        h->value[v].was = h->g->value[v].constant;
        *out = v;
    } else {
        OCT_TRY(new_cast(h, v, t, out, err));
    }
    oct_graph_set_const(h->g, *out, half);
    return OCT_OK;
}

/* Adds the constant in type t, and a Cast of it back to float32, whose output readers get. */
static oct_status store(halver *h, int v, oct_dtype t, int before, oct_err *err)
{
    int half, wide;
    oct_tensor *k;
    OCT_TRY(narrowed(h, v, t, &k, err));
    OCT_TRY(new_cast(h, v, t, &half, err));
    oct_graph_set_const(h->g, half, k);
    OCT_TRY(oct_edit_value(h->g, h->g->value[half].name, "_float32", OCT_F32, v, &wide, err));
    OCT_TRY(grow(h, err));
    h->value[v].stored = wide;
    return add_cast(h, half, wide, before, err);
}

static oct_status store_constants(halver *h, int id, oct_err *err)
{
    for (int i = 0; i < h->g->node[id].n_in; i++) {
        const int v = h->g->node[id].in[i];
        const oct_tensor *k = oct_graph_constant(h->g, v);
        if (!k || !k->data || k->dtype != OCT_F32 || k->count < OCT_HALF_TABLE || !oct_half_follows(&h->g->node[id], i))
            continue;
        if (h->value[v].stored < 0)
            OCT_TRY(store(h, v, oct_half_of(h->o, id), id, err));
        OCT_TRY(oct_graph_set_input(h->g, id, i, h->value[v].stored, err));
    }
    return OCT_OK;
}

/* ---- readers ---- */

static oct_status in_type(halver *h, int v, oct_dtype t, int before, int *out, oct_err *err);

/* The matrix of which constant v is the transpose, if the file has that matrix in type t for other readers; -1: there
 * is none. */
static int turned(const halver *h, int v, oct_dtype t)
{
    const oct_graph *g = h->g;
    const oct_recipe *r = g->value[v].recipe;
    const oct_op *op = r ? oct_op_find(r->node.domain, r->node.op, r->opset) : NULL;
    const int from = op && op->permutes ? r->node.in[0] : -1;
    if (from < 0 || g->value[from].dead || g->value[v].constant->rank != 2 ||
        r->made[g->value[v].made_slot] != g->value[v].constant)
        return -1;
    if (h->value[from].ours)
        return h->value[from].was == r->from[0] && g->value[from].dtype == t ? from : -1;
    bool has = h->value[from].cast[t] >= 0;
    for (size_t i = 0; i < g->value[from].n_uses; i++) {
        const oct_use u = g->value[from].uses[i];
        has |= u.slot >= 0 && computes_on(h, u.node) == t && oct_half_follows(&g->node[u.node], u.slot);
    }
    return has && g->value[from].constant == r->from[0] ? from : -1;
}

/* Adds a node that computes v in type t from that matrix, so that the numbers are stored only once. Runtimes run it
 * when they load the model. */
static oct_status turn(halver *h, int v, int from, oct_dtype t, int before, int *out, oct_err *err)
{
    const oct_node *was = &h->g->value[v].recipe->node;
    int id;
    if (h->g->value[from].dtype != t)
        OCT_TRY(in_type(h, from, t, before, &from, err));
    OCT_TRY(new_cast(h, v, t, out, err));
    OCT_TRY(oct_edit_node(h->g, was->op, &from, 1, *out, before, &id, err));
    h->g->node[id].attr = was->attr;
    h->g->node[id].n_attr = h->g->node[id].cap_attr = was->n_attr;
    return OCT_OK;
}

/* Finds or makes the value in type t, for reader `before`. */
static oct_status in_type(halver *h, int v, oct_dtype t, int before, int *out, oct_err *err)
{
    const oct_value *x = &h->g->value[v];
    *out = h->value[v].cast[t];
    if (*out >= 0)
        return OCT_OK;
    if (x->constant && x->constant->data && x->dtype == OCT_F32 && !stays_wide(h, v, t)) {
        const int from = turned(h, v, t);
        return from >= 0 ? turn(h, v, from, t, before, out, err) : constant_in(h, v, t, out, err);
    }
    OCT_TRY(new_cast(h, v, t, out, err));
    return add_cast(h, v, *out, before, err);
}

/* Whether a node takes its inputs in any type, and its results do not depend on the type. */
static bool takes_any(const halver *h, int id)
{
    const oct_node *n = &h->g->node[id];
    bool follows = false;
    for (int i = 0; i < n->n_in; i++)
        follows |= oct_half_follows(n, i);
    return !follows || (strcmp(n->op, "Cast") == 0 && !computes_on(h, id));
}

static oct_status convert_inputs(halver *h, int id, oct_err *err)
{
    const oct_dtype half = computes_on(h, id);
    for (int i = 0; i < h->g->node[id].n_in && !takes_any(h, id); i++) {
        const int v = h->g->node[id].in[i];
        const oct_dtype have = v >= 0 ? h->g->value[v].dtype : OCT_UNDEFINED;
        const oct_dtype want = half && oct_half_follows(&h->g->node[id], i) ? half : OCT_F32;
        int in;
        if (v < 0 || want == have || (have != OCT_F32 && !h->value[v].ours))
            continue;
        OCT_TRY(in_type(h, v, want, id, &in, err));
        OCT_TRY(oct_graph_set_input(h->g, id, i, in, err));
    }
    return OCT_OK;
}

/* ---- outputs ---- */

/* Makes the node compute value `cast`, which is v in another type, and adds a Cast that computes v from it. */
static oct_status cast_output(halver *h, int id, int v, int cast, oct_err *err)
{
    OCT_TRY(oct_graph_set_output(h->g, id, oct_edit_output_slot(h->g, id, v), cast, err));
    return add_cast(h, cast, v, oct_edit_after(h->g, id), err);
}

/* Gives output v of a node type t. If the value with this name must stay float32, a Cast computes it. */
static oct_status output_in(halver *h, int id, int v, oct_dtype t, oct_err *err)
{
    const oct_value *x = &h->g->value[v];
    int cast;
    if (!((x->is_output && !h->o->ends) || oct_value_is_captured(x))) {
        retype(h, v, t);
        return OCT_OK;
    }
    h->g->value[v].dtype = OCT_F32;
    OCT_TRY(new_cast(h, v, t, &cast, err));
    return cast_output(h, id, v, cast, err);
}

static oct_status convert_outputs(halver *h, int id, oct_err *err)
{
    const oct_dtype t = oct_half_of(h->o, id);
    if (strcmp(h->g->node[id].op, "Cast") == 0)
        OCT_TRY(oct_node_set_int(h->g, id, "to", t, err));
    oct_infer c = { h->g, id, oct_graph_opset(h->g, h->g->node[id].domain) };
    OCT_TRY(oct_op_of(h->g, id)->infer(&c, err)); /* tells which outputs have the type */
    for (int k = 0; k < h->g->node[id].n_out; k++) {
        const int v = h->g->node[id].out[k];
        if (v >= 0 && h->g->value[v].dtype == t)
            OCT_TRY(output_in(h, id, v, t, err));
    }
    return OCT_OK;
}

/* ---- inputs and outputs of the graph ---- */

static bool is_plain_float(const oct_value *v)
{
    return v->dtype == OCT_F32 && !v->constant && !oct_value_is_captured(v);
}

/* Outputs of the graph that float nodes compute: now a Cast computes them, from a new value that takes over their
 * readers. */
static oct_status halve_graph_outputs(halver *h, oct_err *err)
{
    for (size_t i = 0; i < h->g->n_output; i++) {
        int v = h->g->output[i], p = h->g->value[v].producer, cast;
        if (p < 0 || !is_plain_float(&h->g->value[v]))
            continue;
        OCT_TRY(new_cast(h, v, OCT_F32, &cast, err));
        OCT_TRY(oct_graph_replace_uses(h->g, v, cast, err));
        retype(h, v, h->o->ends);
        OCT_TRY(cast_output(h, p, v, cast, err));
    }
    return OCT_OK;
}

oct_status oct_half_write(oct_graph *g, const oct_half_opts *o, oct_err *err)
{
    halver h = { .o = o, .g = g };
    OCT_TRY(grow(&h, err));
    for (size_t i = 0; i < g->n_input && o->ends; i++)
        if (is_plain_float(&g->value[g->input[i]]) && !g->value[g->input[i]].is_output)
            retype(&h, g->input[i], o->ends);
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        OCT_TRY(convert_inputs(&h, id, err));
        if (computes_on(&h, id))
            OCT_TRY(convert_outputs(&h, id, err));
        else if (oct_half_of(o, id))
            OCT_TRY(store_constants(&h, id, err));
        while (g->order[i] != id) /* Casts were added before it */
            i++;
    }
    return o->ends ? halve_graph_outputs(&h, err) : OCT_OK;
}
