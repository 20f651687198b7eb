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

/* Runs all passes in turn, until none changes anything, but the disabled ones (names; unknown ones are OCT_EUSAGE with the nearest name). log may be NULL. */
oct_status oct_passes_run(oct_graph *g, const char *const *disabled, size_t n_disabled, const oct_pass_log *log,
                          oct_err *err);

/* Runs only those that running a graph depends on: functions and decided branches are inlined, constants folded. */
oct_status oct_passes_flatten(oct_graph *g, oct_err *err);

/* Runs the fusions of a runtime (fusions.inc): nodes that spell an operator become one, of whatever version it is (oct_node.opset), so the
 * graph can be run but is not to be saved. Shapes must have been inferred. */
oct_status oct_passes_fuse(oct_graph *g, const oct_pass_log *log, oct_err *err);

/* Reports one change; log may be NULL. */
void oct_pass_note(const oct_pass_log *log, const oct_pass *p, const char *what, const char *node);

/* Whether a node has as many inputs and outputs as its operator allows, those that must be there among them; else OCT_EMALFORMED. Bodies
 * of operators that are not known are not inferred, so what changes them asks for itself. */
struct oct_op;
oct_status oct_check_arity(const oct_graph *g, int id, const struct oct_op *op, oct_err *err);

/* Whether ONNX has the operators of the default domain in g and the graphs nested in it; OCT_EMALFORMED names the node that has another, and
 * the nearest name. In opsets beyond oct_signature_newest() what is not known is let pass; *newer is the first such operator, or NULL. */
oct_status oct_check_operators(const oct_graph *g, const char **newer, oct_err *err);
/* Whether operands have the types that their operators take, as far as types are known: after oct_infer_shapes. Operators of the default
 * domain, and of com.microsoft which operands must be of one type. OCT_EMALFORMED names node and values. */
oct_status oct_check_types(const oct_graph *g, oct_err *err);

/* Shape inference over the whole graph and those nested in it: element types, shapes and known values of every operator
 * that has a record. Shapes declared in the model fill what cannot be inferred. Nodes without a record leave their outputs as declared.
 * Errors name the node. */
oct_status oct_infer_shapes(oct_graph *g, oct_err *err);
/* Forgets the shapes of what nodes with a record make: declared or found for other inputs, they may not hold. */
void oct_forget_shapes(oct_graph *g);

/* Nodes with outputs of more bytes stay, those that take the products computed until then beyond `work`, and all that are left when the
 * graph's arena has grown beyond its bound. */
typedef struct oct_fold_bounds {
    size_t output, arena;
    double work;
} oct_fold_bounds;

/* Evaluates nodes whose inputs are constants, and turns values that shape inference knows wholly into constants.
 * DequantizeLinear of a constant stays: folding it would undo a quantized model's size. bounds may be NULL.
 * Returns through n_folded (may be NULL) how many nodes went. Runs shape inference as it goes. */
oct_status oct_fold_constants(oct_graph *g, const oct_fold_bounds *bounds, int *n_folded, oct_err *err);

#endif
