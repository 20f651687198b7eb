/* lib/passes/pass.h -- graph passes: one file each, one table (passes.c).
 *
 * A pass changes the graph in place and may be run again: on its own output it changes nothing. It sees one graph; nested
 * ones are given to it in turn. After every pass the graph is sorted, pruned and, in debug builds, checked. */
#ifndef OCT_PASSES_PASS_H
#define OCT_PASSES_PASS_H

#include "graph/graph.h"

/* What a pass did to a node, for the report: "Conv+BatchNormalization", "conv1", ... Optional. */
typedef struct oct_pass_log {
    void (*change)(void *arg, const char *pass, const char *what, const char *node);
    void *arg;
} oct_pass_log;

typedef struct oct_pass {
    const char *name;    /* for --disable-pass */
    const char *summary; /* one line, for --list-passes */
    oct_status (*run)(oct_graph *g, const struct oct_pass *self, const oct_pass_log *log, oct_err *err);
    bool flattens; /* takes part in oct_passes_flatten */
    /* In place of run: called for each node that is there at the start and has not gone since. */
    oct_status (*at)(oct_graph *g, int id, const struct oct_pass *self, const oct_pass_log *log, oct_err *err);
} oct_pass;

/* The table, in the order in which they run. */
const oct_pass *const *oct_pass_all(size_t *n);

/* Runs all passes but the disabled ones, given by name, again and again until none changes anything. An unknown name is OCT_EUSAGE, with the
 * nearest name. log may be NULL. */
oct_status oct_passes_run(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                          oct_err *err);

/* Runs only those passes that execution needs: functions and branches whose condition is constant are inlined, constants are folded. */
oct_status oct_passes_flatten(oct_graph *g, oct_err *err);

/* Runs the fusions of a runtime (fusions.inc): several nodes that together compute an operator become one node of it. The operator's version
 * may differ from the graph's opset (oct_node.opset), so the graph can be run but must not be saved. Shapes must have been inferred. */
oct_status oct_passes_fuse(oct_graph *g, const oct_pass_log *log, oct_err *err);

/* Reports one change; log may be NULL. */
void oct_pass_note(const oct_pass_log *log, const oct_pass *p, const char *what, const char *node);

/* Checks that a node has all required inputs and outputs and no more than its operator allows; else OCT_EMALFORMED. Graphs nested in
 * unknown operators are not inferred, so passes that change those call this themselves. */
struct oct_op;
oct_status oct_check_arity(const oct_graph *g, int id, const struct oct_op *op, oct_err *err);

/* Checks that ONNX defines all operators of the default domain in g and the graphs nested in it; OCT_EMALFORMED names the node with an unknown
 * one, and the nearest name. In opsets beyond oct_signature_newest() unknown operators are accepted; *newer is the first, or NULL. */
oct_status oct_check_operators(const oct_graph *g, const char **newer, oct_err *err);
/* Checks that operands have types that their operators accept, as far as types are known; to be called after oct_infer_shapes. For operators of
 * com.microsoft only which operands must have the same type. OCT_EMALFORMED names node and values. */
oct_status oct_check_types(const oct_graph *g, oct_err *err);

/* Shape inference over the whole graph and those nested in it: element types, shapes and known values of every operator
 * that has a record. Shapes declared in the model fill what cannot be inferred. Nodes without a record leave their outputs as declared,
 * but for types that follow from the operators that read them.
 * Errors name the node. */
oct_status oct_infer_shapes(oct_graph *g, oct_err *err);
/* Clears the shapes of the outputs of nodes with a record: shapes that were declared, or inferred for other inputs, may not hold. */
void oct_forget_shapes(oct_graph *g);

/* Bounds of folding. Not folded are nodes whose outputs take more bytes than `output`, nodes that would raise the number of multiplications
 * done so far above `work`, and all that are left once the graph's arena exceeds `arena` bytes. moved: `output` does not hold for what moves or
 * converts elements of its inputs and has no more of them (Transpose, Cast, Concat; not Expand of a scalar). */
typedef struct oct_fold_bounds {
    size_t output, arena;
    double work;
    bool moved;
} oct_fold_bounds;

/* Evaluates nodes whose inputs are constants, and makes constants of values that shape inference knows completely.
 * DequantizeLinear of a constant stays: folding it would undo a quantized model's size. bounds may be NULL.
 * Returns through n_folded (may be NULL) how many nodes went. Runs shape inference as it goes. */
oct_status oct_fold_constants(oct_graph *g, const oct_fold_bounds *bounds, int *n_folded, oct_err *err);

#endif
