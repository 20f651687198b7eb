/* lib/quant/lint/examine.h -- examines a finished model, made by any tool: how its nodes run in a target, and what goes
 * wrong there.
 *
 *   oct_lint *l;
 *   OCT_TRY(oct_lint_open(model->graph, table, &l, err));
 *   OCT_TRY(oct_lint_judge(l, target, &v, err));    // v.node[v.n], v.fits
 *   ... l->finding[l->n_finding] ...
 *
 * oct_lint_close(l); */
#ifndef OCT_QUANT_EXAMINE_H
#define OCT_QUANT_EXAMINE_H

#include "observers/calib.h"
#include "targets/stand.h"

/* What goes wrong, or may go wrong. */
typedef enum oct_finding_kind {
    OCT_FINDING_TRAP,      /* the target does not load the node, although it is valid ONNX */
    OCT_FINDING_COLLAPSE,  /* values of a small range have the scale of a wide range, so that few quantized values are
                              left for them */
    OCT_FINDING_WRAPS,     /* a sum of products may exceed int32 */
    OCT_FINDING_SATURATES, /* sums of two products may exceed int16, in a target that adds them in 16 bits */
    OCT_FINDING_ROUNDS, /* ONNX Runtime rounds the float weights of a layer between quantizers when it loads the file,
                           or the activations of weights in blocks */
    OCT_FINDING_KINDS
} oct_finding_kind;

typedef struct oct_finding {
    oct_finding_kind kind;
    const char *name, *op; /* the name of the node, with the path to its graph in front */
    const char *text;      /* the reason, as one clause */
    unsigned
        sums; /* OCT_FINDING_SATURATES: bit k is set if it concerns targets that add in the way k, an oct_pair_sums */
    bool weights; /* OCT_FINDING_SATURATES: one of the two factors is constant */
    bool session; /* OCT_FINDING_ROUNDS: an option of the session decides, for all such layers of the graph */
} oct_finding;

/* Whether a finding concerns a target: those of sums depend on how it adds products, and those of rounding on whether
 * ONNX Runtime may load its files. */
bool oct_finding_concerns(const oct_finding *f, const oct_target *t);

/* "trap", "collapse", "wraps", "saturates", "rounds" */
const char *oct_finding_name(oct_finding_kind kind);

typedef struct oct_lint {
    oct_arena *arena;
    oct_graph
        *g; /* a copy of the model as it is in the file, with functions inlined, constants folded and shapes inferred */
    oct_graph *read; /* the same with the quantization parameters attached to values; nodes have the same indices */
    const oct_calib *table; /* borrowed; may be NULL */
    bool quantized;         /* the model has quantized values */
    size_t nodes;           /* of g and of its subgraphs */
    oct_finding *finding;   /* all findings but traps, which depend on the target */
    size_t n_finding, cap_finding;
} oct_lint;

/* Examines a model. It is borrowed and must outlive *l; so must `table`, which has ranges of its values and may be
 * NULL. Errors are those of shape inference. */
oct_status oct_lint_open(const oct_graph *model, const oct_calib *table, oct_lint **l, oct_err *err);
void oct_lint_close(oct_lint *l); /* l may be NULL */

typedef struct oct_lint_node {
    const char *name; /* with the path to its graph in front: "If_3/then_branch/conv" */
    const char *op;
    oct_stand stand;
    const char *with; /* the node together with which it runs on integers, or NULL */
    bool lost;        /* the file has quantized this layer, but the target computes it in float or leaves it */
    bool weighted;    /* it is a layer whose weights are constant, in any form */
    double macs;      /* multiply-accumulates of a sample; 0: none, or not known */
    const int *from;  /* [n_from]: places in the list of the nodes that make its inputs; none inside bodies */
    size_t n_from;
} oct_lint_node;

typedef struct oct_lint_verdict {
    const char *target;
    oct_lint_node *node; /* nodes that compute something */
    size_t n, integer;
    oct_finding *trap; /* nodes that the target does not load */
    size_t n_trap, cap_trap;
    /* layers with constant weights, those of them that run on integers, and those with weights in blocks */
    size_t weighted, weighted_integer, weighted_blocks;
    double macs, integer_macs; /* multiply-accumulates of a sample, and those on integers; 0: not known */
    size_t layers, lost; /* products and recurrent layers that the file has quantized, and those of them that the target
                            computes in float or leaves to another runtime */
    bool left;           /* it leaves them */
    const char *first_lost, *first_why; /* name and reason of the first of these; or NULL */
    size_t saturating;                  /* layers whose sums of two products may saturate in the target */
    bool fits; /* the target loads the model, runs every quantized layer on integers, and gives exact sums */
} oct_lint_verdict;
/* Judges the model for a target. The result is in l's arena. */
oct_status oct_lint_judge(oct_lint *l, const oct_target *t, oct_lint_verdict *v, oct_err *err);

/* spans.c: intervals that contain the values of a graph, as far as operators, constants, quantization parameters and
 * the table tell. */
typedef struct oct_span {
    bool known;
    double lo, hi;
} oct_span;
oct_status oct_spans_find(const oct_graph *read, const oct_calib *table, oct_arena *arena, oct_span **span,
                          oct_err *err);

/* hazards.c: the findings of one graph; `where` is the path to it. */
oct_status oct_hazards_find(oct_lint *l, const oct_graph *read, const char *where, oct_err *err);
/* The same of layers that ONNX Runtime rounds when it loads the graph; g: as it is in the file. */
oct_status oct_rounded_find(oct_lint *l, const oct_graph *g, const char *where, oct_err *err);

#endif
