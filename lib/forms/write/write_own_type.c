/* Gives a graph that was read as float32 its 16-bit type back: the nodes whose results had that type in the file
 * compute in it again, and the Casts are only those that the file needs.
 *
 * Values know what they were (oct_value.own_type), also where that was float32: rounded to a narrower type, a mask of
 * -1e9 is -inf, and rows without any other value are NaN. Values that passes and forms have made follow their readers.
 */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "base/spill.h"
#include "kernels/half.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "passes/pass.h"

#include <math.h>
#include <string.h>

enum { DEQUANTIZE_SINCE = 19 }; /* the opset from which on scales may be of 16 bits */

/* ---- which nodes ---- */

static bool is_to(const oct_node *n, oct_dtype t)
{
    return oct_is_op(n, "Cast") && oct_node_int(n, "to", 0) == t;
}

/* Whether the operator computes in a 16-bit type. Of those that quantize only what makes reals of constants does. */
static bool takes(const oct_graph *g, int id, oct_dtype t)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    if (!op || oct_node_graph_at(n, 0) || n->n_captured || oct_is_op(n, "Cast"))
        return false;
    if (oct_is_op(n, "DequantizeLinear"))
        return oct_graph_opset(g, "") >= DEQUANTIZE_SINCE;
    const int since = t == OCT_F16 ? op->f16 : op->bf16;
    if (op->is_qdq || since < 0 || (op->exec && !op->run) || (!n->domain[0] && oct_graph_opset(g, "") < since))
        return false;
    if (!n->domain[0])
        return true;
    const oct_signature *s = oct_signature_find(n->domain, n->op, INT64_MAX);
    bool any = false, all = true;
    for (int i = 0; i < n->n_in; i++) {
        const bool real = s && n->in[i] >= 0 && g->value[n->in[i]].dtype == OCT_F32 && oct_half_follows(n, i);
        any |= real;
        all &= !real || oct_signature_takes(s, i, t);
    }
    return any && all;
}

/* Whether a 16-bit type represents a constant that passes or rounding have made: with noise 50 dB below it at most for
 * the 11 bits of float16, 40 dB for the 8 bits of bfloat16. */
static bool fits(const oct_tensor *k, oct_dtype t)
{
    enum { SOME = 1024 };
    const float *x = k->data;
    const double least = t == OCT_F16 ? 1e5 : 1e4;
    double power = 0, noise = 0;
    float rounded[SOME];
    for (int64_t at = 0, n; x && at < k->count; at += n) {
        n = k->count - at < SOME ? k->count - at : SOME;
        oct_round_half(NULL, t, x + at, (size_t)n, rounded);
        for (int64_t i = 0; i < n; i++) {
            const double is = (double)x[at + i], off = (double)rounded[i] - is;
            if (!isfinite(is))
                continue;
            power += is * is;
            noise += off * off;
        }
    }
    oct_spill_forget(x, k->bytes);
    return noise == 0 || noise * least < power;
}

static bool constants_fit(const oct_graph *g, const oct_node *n, oct_dtype t)
{
    bool all = true;
    for (int i = 0; i < n->n_in && all; i++) {
        const oct_value *v = n->in[i] >= 0 ? &g->value[n->in[i]] : NULL;
        all = !v || !v->constant || v->dtype != OCT_F32 || !oct_half_follows(n, i) ||
              (v->constant->data && fits(v->constant, t));
    }
    return all;
}

/* Whether all nodes that read a value read it in type t; type: by node, of those behind. */
static bool is_read_so(const oct_graph *g, int v, oct_dtype t, const oct_dtype *type)
{
    const oct_value *x = &g->value[v];
    bool all = x->n_uses > 0 && !x->is_output;
    for (size_t i = 0; i < x->n_uses && all; i++) {
        const oct_use u = x->uses[i];
        all = u.slot >= 0 &&
              (is_to(&g->node[u.node], t) || (type[u.node] == t && oct_half_follows(&g->node[u.node], u.slot)));
    }
    return all;
}

/* Whether a node read data and weights of type t, so that it computed on them, even if its result was then cast to
 * float32: a Cast to float32 is gone. Weights alone say nothing, as they may be stored so. */
static bool had_operands(const oct_graph *g, const oct_node *n, oct_dtype t)
{
    bool weights = false, data = false;
    for (int i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i] >= 0 ? &g->value[n->in[i]] : NULL;
        if (!v || v->dtype != OCT_F32 || v->own_type != t || !oct_half_follows(n, i))
            continue;
        const bool made = v->constant || (v->producer >= 0 && oct_is_op(&g->node[v->producer], "DequantizeLinear"));
        weights |= made;
        data |= !made;
    }
    return weights && data;
}

/* Whether the float results of a node had type t; without any, its float inputs decide. */
static bool had(const oct_graph *g, int id, oct_dtype t, const oct_dtype *type)
{
    const oct_node *n = &g->node[id];
    bool any = false, all = true;
    if (had_operands(g, n, t))
        return true;
    for (int k = 0; k < n->n_out; k++) {
        const oct_value *v = n->out[k] >= 0 ? &g->value[n->out[k]] : NULL;
        if (!v || v->dtype != OCT_F32)
            continue;
        any = true;
        all &= v->own_type == t || (!v->own_type && is_read_so(g, n->out[k], t, type));
    }
    for (int i = 0; i < n->n_in && !any; i++) {
        const oct_value *v = n->in[i] >= 0 ? &g->value[n->in[i]] : NULL;
        if (v && v->dtype == OCT_F32 && !v->constant)
            all &= v->own_type == t;
    }
    return all;
}

static oct_dtype own_type_of(const oct_graph *g, int id, bool bf16, const oct_dtype *type)
{
    static const oct_dtype types[] = { OCT_F16, OCT_BF16 };
    for (size_t i = 0; i < 1 + (size_t)bf16; i++)
        if (takes(g, id, types[i]) && had(g, id, types[i], type) && constants_fit(g, &g->node[id], types[i]))
            return types[i];
    return OCT_UNDEFINED;
}

/* ---- Casts ---- */

/* What a Cast to float32 has made a value from, if type t has all of its numbers; else the value. */
static int narrow_origin(const oct_graph *g, int v, oct_dtype t)
{
    const int p = g->value[v].producer;
    if (p < 0 || !oct_is_op(&g->node[p], "Cast") || g->value[v].dtype != OCT_F32)
        return v;
    const int from = g->node[p].in[0];
    const oct_dtype had = from >= 0 ? g->value[from].dtype : OCT_UNDEFINED;
    return had == t || had == OCT_S8 || had == OCT_U8 ? from : v;
}

/* A Cast of a type to itself, or back to the type of what another Cast has widened, is no longer needed. */
static oct_status drop_cast(oct_graph *g, int id, oct_err *err)
{
    const int in = g->node[id].in[0], out = g->node[id].out[0];
    const oct_dtype t = out >= 0 ? g->value[out].dtype : OCT_UNDEFINED;
    if (in < 0 || (t != OCT_F16 && t != OCT_BF16))
        return OCT_OK;
    const int from = narrow_origin(g, in, t);
    if (from != in && g->value[from].dtype != t)
        return oct_graph_set_input(g, id, 0, from, err);
    if (g->value[from].dtype != t)
        return OCT_OK;
    if (!g->value[out].is_output) {
        OCT_TRY(oct_graph_replace_uses(g, out, from, err));
        oct_graph_remove_node(g, id);
        return OCT_OK;
    }
    const int maker = g->value[from].producer;
    if (maker < 0 || g->value[from].is_output || oct_value_is_captured(&g->value[from]))
        return OCT_OK;
    oct_graph_remove_node(g, id);
    OCT_TRY(oct_graph_replace_uses(g, from, out, err));
    return oct_graph_set_output(g, maker, oct_edit_output_slot(g, maker, from), out, err);
}

static oct_status drop_casts(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_order;) {
        const int id = g->order[i];
        const size_t before = g->n_order;
        if (oct_is_op(&g->node[id], "Cast"))
            OCT_TRY(drop_cast(g, id, err));
        i += g->n_order == before;
    }
    oct_graph_prune(g);
    return OCT_OK;
}

oct_status oct_own_type_write(oct_graph *g, bool bf16, const bool *stays, oct_err *err)
{
    const size_t n = g->n_node;
    oct_dtype *type = oct_calloc(n + 1, sizeof *type);
    if (!type)
        return oct_nomem(err);
    for (size_t i = g->n_order; i-- > 0;) {
        const int id = g->order[i];
        type[id] = stays[id] ? OCT_UNDEFINED : own_type_of(g, id, bf16, type);
    }
    oct_status s = oct_half_write(g, &(oct_half_opts){ type, n, OCT_UNDEFINED, false }, err);
    oct_free(type);
    if (s == OCT_OK)
        s = drop_casts(g, err);
    return s == OCT_OK ? oct_graph_sort(g, err) : s;
}
