/* lib/quant/examine.h -- what is known of a model as it stands, whoever wrote it: how its nodes run in a target, and what goes wrong with it.
 *
 *   oct_lint *l;
 *   OCT_TRY(oct_lint_open(model->graph, table, &l, err));
 *   OCT_TRY(oct_lint_judge(l, target, &v, err));    // v.node[v.n], v.fits
 *   ... l->finding[l->n_finding] ...
 *   oct_lint_close(l);
 */
#ifndef OCT_QUANT_EXAMINE_H
#define OCT_QUANT_EXAMINE_H

#include "observers/calib.h"
#include "targets/stand.h"

/* What goes wrong, or may. */
typedef enum oct_finding_kind {
    OCT_FINDING_TRAP,      /* a target does not load it, though it is valid */
    OCT_FINDING_COLLAPSE,  /* values of a small range on the grid of a wide one: few of its numbers are left */
    OCT_FINDING_WRAPS,     /* a sum of products could leave int32 */
    OCT_FINDING_SATURATES  /* sums of two products could leave int16, where a target adds them so */
} oct_finding_kind;

typedef struct oct_finding {
    oct_finding_kind kind;
    const char *name, *op; /* of the node, behind the path to it */
    const char *text;      /* a clause */
} oct_finding;

/* "trap", "collapse", "wraps", "saturates" */
const char *oct_finding_name(oct_finding_kind kind);

typedef struct oct_lint {
    oct_arena *arena;
    oct_graph *g;    /* a copy of the model as its file spells it, with functions as nodes, constants folded, shapes inferred */
    oct_graph *read; /* the same with its quantization on its values; nodes have the same indices */
    const oct_calib *table; /* borrowed; may be NULL */
    bool quantized;  /* it has quantized values */
    size_t nodes;    /* of g and the graphs in it */
    oct_finding *finding; /* but for traps, which depend on the target */
    size_t n_finding, cap_finding;
} oct_lint;

/* model is borrowed, and must outlive *l, as must table (ranges of its values; may be NULL). Errors of shape inference. */
oct_status oct_lint_open(const oct_graph *model, const oct_calib *table, oct_lint **l, oct_err *err);
void oct_lint_close(oct_lint *l); /* NULL allowed */

typedef struct oct_lint_node {
    const char *name; /* behind the path to it: "If_3/then_branch/conv" */
    const char *op;
    oct_stand stand;
    const char *with; /* the name of the node with which it becomes one, or NULL */
    bool lost;        /* the file has quantized this layer, and it runs on real numbers */
} oct_lint_node;

typedef struct oct_lint_verdict {
    const char *target;
    oct_lint_node *node; /* those that compute */
    size_t n, integer;
    oct_finding *trap;   /* what it does not load */
    size_t n_trap, cap_trap;
    size_t layers, lost; /* products and recurrent layers that the file has quantized; those of them that run on real numbers */
    const char *first_lost, *first_why; /* name and reason of the first of these, or NULL */
    size_t saturating;   /* layers whose sums of two products may saturate there */
    bool fits;           /* it loads, runs all that is quantized on integers, and gives exact sums */
} oct_lint_verdict;
/* In l's arena. */
oct_status oct_lint_judge(oct_lint *l, const oct_target *t, oct_lint_verdict *v, oct_err *err);

/* spans.c: intervals that hold the values of a read graph, as far as operators, constants, grids and the table tell. */
typedef struct oct_span {
    bool known;
    double lo, hi;
} oct_span;
oct_status oct_spans_find(const oct_graph *read, const oct_calib *table, oct_arena *arena, oct_span **span, oct_err *err);

/* hazards.c: the findings of one graph; `where` is the path to it. */
oct_status oct_hazards_find(oct_lint *l, const oct_graph *read, const char *where, oct_err *err);

#endif
