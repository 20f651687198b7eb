/* Prepares a graph for a job: shapes, types, opset, passes. */
#include "quant/job/job.h"

#include "passes/fuse.h"
#include "passes/one_way.h"
#include "passes/opset.h"
#include "passes/to_float32.h"
#include "passes/unfold.h"

#include <stdio.h>

/* The opset that the written form needs: DequantizeLinear supports channels from 13 and blocks from 21 on; Conv and
 * pooling support bfloat16 from 22 on. MatMulNBits belongs to a domain of its own. */
/* Whether a layer of g, or of the graphs that its nodes hold, multiplies by several matrices, whose blocks
 * DequantizeLinear has. */
static bool has_several_matrices(const oct_graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_order && !any; i++) {
        const oct_op *op = oct_op_of(g, g->order[i]);
        const oct_tensor *w = oct_layer_weights(g, g->order[i]);
        const oct_graph *nested;
        any = op && (op->experts || (op->weights.blocks && w && w->rank > 2));
        for (size_t k = 0; !any && (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            any = has_several_matrices(nested);
    }
    return any;
}

static int64_t least_opset(const oct_qjob_opts *o, const oct_graph *g)
{
    if (o->scheme == OCT_SCHEME_BF16)
        return oct_target_rules_of(o->target)->bfloat16 == OCT_BFLOAT16_YES ? 22 : 13;
    if (o->scheme == OCT_SCHEME_WEIGHT_ONLY && !o->blocks_qdq)
        return has_several_matrices(g) ? 21 : 0;
    bool blocks = o->may_block || o->scheme == OCT_SCHEME_WEIGHT_ONLY ||
                  (o->scheme == OCT_SCHEME_AUTO && oct_policy_asks_blocks(o->policy, g));
    const bool wide = oct_target_rules_of(o->target)->onnx_alone && oct_policy_uses_16_bits(o->policy);
    return (o->blocks_qdq && blocks) || wide ? 21 : 13;
}

/* Logs which constants were not folded after all. */
static void say_unfolded(const oct_pass_log *log, size_t n, size_t saved)
{
    char text[96];
    snprintf(text, sizeof text, "%zu constant%s computed by the model after all: %.1f kB less in the file", n,
             n > 1 ? "s are" : " is", (double)saved / 1000);
    if (n && log && log->change)
        log->change(log->arg, "fold", text, "");
}

/* Turns a model of another float type into one of float32, so that its layers are found and can be quantized. Before
 * that, functions are inlined, and constants are computed in their own type. */
static oct_status widen_floats(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err)
{
    oct_widened w;
    if (o->scheme == OCT_SCHEME_FLOAT || !oct_has_narrow_floats(g))
        return OCT_OK;
    OCT_TRY(oct_passes_flatten(g, err));
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_unfold_moves(g, err)); /* a table and its transpose remain one constant */
    OCT_TRY(oct_widen_floats(g, o->waiting ? OCT_WIDEN_LATE : OCT_WIDEN_ALL, &w, err));
    *source = *source ? *source : w.widest;
    if (w.widest && o->log && o->log->change) {
        char text[96];
        snprintf(text, sizeof text, "%s is read as float32: %zu constants of %lld elements", oct_dtype_name(w.widest),
                 w.constants, (long long)w.elements);
        o->log->change(o->log->arg, "widen", text, "");
    }
    return oct_infer_shapes(g, err);
}

oct_status oct_job_prepare(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err)
{
    const int64_t least = least_opset(o, g);
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_check_types(g, err));
    if (oct_graph_opset(g, "") < least) {
        int64_t from = oct_graph_opset(g, "");
        OCT_TRY(oct_raise_opset(g, least, err));
        if (o->log && o->log->change) {
            char text[64];
            snprintf(text, sizeof text, "opset %lld to %lld", (long long)from, (long long)least);
            o->log->change(o->log->arg, "opset", text, "");
        }
    }
    OCT_TRY(widen_floats(g, o, source, err));
    OCT_TRY(oct_passes_run(g, o->disabled, o->n_disabled, o->log, err));
    if (oct_target_rules_of(o->target)->norms_are_convs)
        OCT_TRY(oct_norms_to_convs(g, o->log, err));
    if (oct_target_rules_of(o->target)->lstms_one_way)
        OCT_TRY(oct_lstms_one_way(g, o->log, err));
    if (!oct_scheme_is_half(o->scheme))
        return OCT_OK;
    size_t n, saved;
    OCT_TRY(oct_unfold_half(g, &n, &saved, err));
    say_unfolded(o->log, n, saved);
    return OCT_OK;
}

oct_status oct_job_unfold(const oct_qjob *j, oct_graph *g, const oct_pass_log *log, oct_err *err)
{
    size_t n, saved;
    OCT_TRY(oct_unfold_constants(j, g, &n, &saved, err));
    say_unfolded(log, n, saved);
    return OCT_OK;
}
