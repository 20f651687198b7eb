/* lib/passes/pass.h -- graph passes: each has a file, and all are in one table (passes.c).
 *
 * A pass changes the graph in place. It may be run again, and does not change its own output. A pass handles one graph;
 * subgraphs are given to it in turn. After every pass the graph is sorted, pruned and, in debug builds, checked. */
#ifndef OCT_PASSES_PASS_H
#define OCT_PASSES_PASS_H

#include "graph/graph.h"

/* Receives what a pass did to a node, for the report: "Conv+BatchNormalization", "conv1", ... Optional. */
typedef struct oct_pass_log {
    void (*change)(void *arg, const char *pass, const char *what, const char *node);
    void *arg;
} oct_pass_log;

typedef struct oct_pass {
    const char *name;    /* for --disable-pass */
    const char *summary; /* one line, for --list-passes */
    oct_status (*run)(oct_graph *g, const struct oct_pass *self, const oct_pass_log *log, oct_err *err);
    bool flattens; /* it is part of oct_passes_flatten */
    /* Replaces run: it is called for each node that exists at the start and has not been removed since. */
    oct_status (*at)(oct_graph *g, int id, const struct oct_pass *self, const oct_pass_log *log, oct_err *err);
} oct_pass;

/* The table, in the order in which they run. */
const oct_pass *const *oct_pass_all(size_t *n);

/* Runs all passes except the disabled ones, which are given by name, until none changes anything. OCT_EUSAGE: a name is
 * unknown; the hint has the nearest one. log may be NULL. */
oct_status oct_passes_run(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                          oct_err *err);

/* Runs only the passes that execution needs: they inline functions and branches with a constant condition, and fold
 * constants. */
oct_status oct_passes_flatten(oct_graph *g, oct_err *err);

/* Runs the fusions for a runtime (fusions.inc). Several nodes that together compute an operator become one node. The
 * version of the operator may differ from the graph's opset (oct_node.opset), so the graph can be run but must not be
 * saved. Shapes must have been inferred. */
oct_status oct_passes_fuse(oct_graph *g, const oct_pass_log *log, oct_err *err);

/* One of them: nodes that spell an activation. For who writes files that have the activation, but not its parts. */
extern const oct_pass oct_pass_activation;

/* Reports one change; log may be NULL. */
void oct_pass_note(const oct_pass_log *log, const oct_pass *p, const char *what, const char *node);

/* Checks that a node has all required inputs and outputs, and no more than its operator allows; else OCT_EMALFORMED.
 * Shapes in graphs nested in unknown operators are not inferred, so passes that change such graphs call this
 * themselves. */
struct oct_op;
oct_status oct_check_arity(const oct_graph *g, int id, const struct oct_op *op, oct_err *err);

/* Checks that ONNX defines all operators of the default domain in g and in its subgraphs. OCT_EMALFORMED names the node
 * with an unknown operator, and the nearest name. In opsets beyond oct_signature_newest() unknown operators are
 * accepted; *newer is the first of them, or NULL. */
oct_status oct_check_operators(const oct_graph *g, const char **newer, oct_err *err);
/* Checks that operators accept the types of their operands, as far as types are known. Call it after oct_infer_shapes.
 * For operators of com.microsoft it checks only that operands have the same type where they must. OCT_EMALFORMED names
 * node and values. */
oct_status oct_check_types(const oct_graph *g, oct_err *err);

/* Infers element types, shapes and known values of every operator that has a record, in the graph and its subgraphs.
 * Shapes declared in the model are used where nothing can be inferred. Outputs of nodes without a record stay as
 * declared, except for types that follow from their readers. Errors name the node. */
oct_status oct_infer_shapes(oct_graph *g, oct_err *err);
/* Sets the batch, which is the first dimension of inputs, to 1 where it is open, and other open dimensions of inputs to
 * 128, and infers shapes anew. Fails where that does not suit all nodes. */
oct_status oct_set_usual_shapes(oct_graph *g, oct_err *err);
/* Clears the shapes of the outputs of nodes with a record, because shapes that were declared, or inferred for other
 * inputs, may be wrong. */
void oct_forget_shapes(oct_graph *g);

/* Bounds of folding. A node is not folded if its outputs take more than `output` bytes, or if it would raise the number
 * of multiplications made so far above `work`. Nothing is folded any more when the graph's arena exceeds `arena` bytes.
 * moved: `output` does not limit nodes that only move or convert the elements of their inputs (Transpose, Cast, Concat;
 * but not Expand of a scalar). */
typedef struct oct_fold_bounds {
    size_t output, arena;
    double work;
    bool moved;
} oct_fold_bounds;

/* Evaluates nodes with constant inputs, and makes constants of values that shape inference knows completely.
 * DequantizeLinear of a constant is kept, because folding it would enlarge a quantized model. bounds may be NULL.
 * *n_folded (may be NULL): how many nodes were removed. Shapes are inferred along the way. */
oct_status oct_fold_constants(oct_graph *g, const oct_fold_bounds *bounds, int *n_folded, oct_err *err);

#endif
