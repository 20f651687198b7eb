/* lib/quant/place/constraints.h -- what restricts the placement of a job beyond its policy and its target.
 *
 * Placement (place.c) is a function of the graph, the policy, the target and this list. Methods, goals, sizes, costs
 * and the checks of a decision add to the list; none of them writes a scheme into a node. A list belongs to one job;
 * the jobs of subgraphs have their own. */
#ifndef OCT_QUANT_CONSTRAINTS_H
#define OCT_QUANT_CONSTRAINTS_H

#include "quant/quant.h"

typedef enum oct_constraint_kind {
    OCT_CONSTRAINT_FLOAT,       /* the node computes in float32; `scheme` stored: with weights in 8 bits, if it can */
    OCT_CONSTRAINT_NO_RANGES,   /* something that it reads or makes has no statistics: it is not static */
    OCT_CONSTRAINT_WIDE,        /* if it runs on integers, its activations have 16 bits */
    OCT_CONSTRAINT_COST,        /* `scheme` takes the place of the policy's scheme, and `wide` may widen activations */
    OCT_CONSTRAINT_FORM,        /* `scheme`, `weights` and `block` take the place of the policy's */
    OCT_CONSTRAINT_OWN_PARAMS,  /* operand `slot` of a Concat has parameters of its own */
    OCT_CONSTRAINT_AROUND_ZERO, /* input `slot` of a product of two activations has parameters around 0 */
    OCT_CONSTRAINT_KINDS
} oct_constraint_kind;

enum { OCT_SLOT_OUTPUT = 31 }; /* the slot of output 0 */

/* Who asked for it. */
typedef enum oct_constraint_from {
    OCT_FROM_PLACEMENT,       /* place.c: clamps that no quantizer performs; found anew by each placement */
    OCT_FROM_STATISTICS,      /* choose_ranges.c: values that have none */
    OCT_FROM_RANGES,          /* half_range.c: values that a type does not hold */
    OCT_FROM_RUN,             /* half_trial.c: values that are not finite in a run */
    OCT_FROM_JOINS,           /* part_joins.c: values that would share a scale */
    OCT_FROM_FACTORS,         /* factors.c: products of two activations */
    OCT_FROM_COSTS,           /* by_cost.c */
    OCT_FROM_MIXED_PRECISION, /* mixed.c */
    OCT_FROM_GOALS,           /* max_drop.c */
    OCT_FROM_SIZE,            /* size_units.c */
    OCT_FROM_FINER,           /* finer_trial.c */
    OCT_FROM_TRIAL,           /* body_sites.c, which drops it again */
    OCT_CONSTRAINT_SOURCES
} oct_constraint_from;

typedef struct oct_constraint {
    oct_constraint_kind kind;
    oct_constraint_from from;
    int node;
    int slot;        /* OCT_CONSTRAINT_OWN_PARAMS and _AROUND_ZERO alone */
    const char *why; /* lasts as long as the job */
    oct_scheme scheme;
    bool wide;
    oct_weight_type weights;
    int block; /* 0: weights and block are the policy's */
    int next;  /* the one before it that concerns the same node, or -1; set by oct_constrain */
} oct_constraint;

typedef struct oct_constraints {
    oct_arena *arena;
    size_t n_nodes;
    oct_constraint *v;
    size_t n, cap;
    int *last; /* [n_nodes]: the last one that concerns the node, or -1 */
} oct_constraints;

/* An empty list for nodes 0 to n_nodes - 1. Its memory is the arena's. */
oct_status oct_constraints_open(oct_constraints *l, oct_arena *arena, size_t n_nodes, oct_err *err);
/* Makes these n the only ones. */
oct_status oct_constraints_set(oct_constraints *l, const oct_constraint *v, size_t n, oct_err *err);

/* Adds a constraint; it takes the place of one of the same kind at the same node and slot. OCT_ENOMEM, also if `why` is
 * NULL where a kind needs it. */
oct_status oct_constrain(oct_constraints *l, const oct_constraint *c, oct_err *err);
/* The same for OCT_CONSTRAINT_FLOAT. */
oct_status oct_keep_float(oct_constraints *l, int node, oct_constraint_from from, const char *why, oct_err *err);
/* Removes those of a kind that come from one source, at one node or (-1) at all. */
void oct_constraints_drop(oct_constraints *l, oct_constraint_kind kind, oct_constraint_from from, int node);

/* The constraint of this kind at a node, or NULL; of kinds that have slots, any. Nodes added after the job was made
 * have none. */
const oct_constraint *oct_constraint_on(const oct_constraints *l, int node, oct_constraint_kind kind);
/* Whether there is one for this slot. */
bool oct_slot_constrained(const oct_constraints *l, int node, oct_constraint_kind kind, int slot);
/* The reason why a node must compute in float32, or NULL. */
const char *oct_kept_float(const oct_constraints *l, int node);

/* The scheme that the target's costs chose for a node: OCT_SCHEME_DYNAMIC, OCT_SCHEME_WEIGHT_ONLY (8 bits) or
 * OCT_SCHEME_FLOAT; OCT_SCHEME_AUTO: no other than the policy's. */
oct_scheme oct_scheme_by_cost(const oct_constraints *l, int node);

/* "kept in float", and "mixed-precision": for lists. */
const char *oct_constraint_kind_name(oct_constraint_kind kind);
const char *oct_constraint_from_name(oct_constraint_from from);

#endif
