/* lib/targets/carried_int.h -- internals of targets that carry dequantizers forward, shared by carried.c and
 * carried_sums.c. */
#ifndef OCT_TARGETS_CARRIED_INT_H
#define OCT_TARGETS_CARRIED_INT_H

#include "ops/op.h"
#include "passes/match.h"
#include "targets/stand_int.h"
#include "targets/target_int.h"

typedef struct carrier {
    const oct_target *t;
    const oct_graph *g;
    const oct_node *
        *from;     /* [n_value]: the DequantizeLinear that was carried to the value; NULL: the value has real numbers */
    size_t *place; /* [n_node]: the node's position in g's order */
    size_t *last;  /* [n_value]: the place of the value's last reader; 0: there is none */
    oct_stand *stand;
    struct oct_walks *walk; /* [n_node]: what has been found by walking back from the node, once it is judged */
} carrier;

/* Where walks back through nodes end. Each node's walk is its own answer or the walk of one node before it, so that a
 * chain of n nodes takes n steps, not n^2. */
typedef struct oct_walks {
    int layer; /* the layer on integers with which a sum after the node is fused: the node itself, or the layer that it
                  is part of; -1: none */
    int arithmetic; /* the arithmetic on integers that makes the node's result, also through elementwise nodes; -1: none
                     */
    const oct_target_op
        *taker; /* the line of the operator with which a quantizer of the result is fused; NULL: there is none */
    bool moved; /* the result is carried, and reached this node through one that moves bytes */
} oct_walks;

static inline const oct_target_op *line_of(const carrier *c, const oct_node *n)
{
    return n->domain[0] ? NULL : oct_target_entry(c->t, n->op);
}

static inline const oct_node *before(const carrier *c, int value)
{
    return value >= 0 ? c->from[value] : NULL;
}

static inline bool is_constant(const carrier *c, int value)
{
    const oct_node *d = before(c, value);
    return value >= 0 && (oct_linear_constant(c->g, value) || (d && oct_linear_constant(c->g, d->in[0])));
}

/* Whether a value is dequantized from 8 bits, of a type that operators with weights support as activations. */
static inline bool is_carried(const carrier *c, int value)
{
    const oct_node *d = before(c, value);
    const oct_dtype type = d ? oct_linear_type(c->g, d) : OCT_UNDEFINED;
    return (type == OCT_U8 || type == OCT_S8) &&
           (oct_target_takes(c->t, type, OCT_U8) || oct_target_takes(c->t, type, OCT_S8));
}

static inline int only_reader(const oct_graph *g, int value)
{
    return value >= 0 && oct_value_used_once(&g->value[value]) ? g->value[value].uses[0].node : -1;
}

/* The node that makes a value with only one reader; -1: none. */
static inline int lone_producer(const carrier *c, int value)
{
    return value >= 0 && oct_value_used_once(&c->g->value[value]) ? c->g->value[value].producer : -1;
}

static inline void settle(carrier *c, int id, const char *why)
{
    c->stand[id].kind = why ? OCT_STANDS_FLOAT : OCT_STANDS_INTEGER;
    c->stand[id].why = why ? why : "quantized in the model";
}

/* carried_sums.c: judges a sum. It runs on integers if it is fused with a layer or with arithmetic before it, or if its
 * own kernel reads at least one of its inputs as bytes. */
void oct_carried_judge_sum(carrier *c, int id);
/* Fills c->walk of a node. All nodes before it must have been judged and noted, and the node itself judged. */
void oct_carried_note(carrier *c, int id);
/* Why arithmetic on two values, at least one of which is quantized, computes on real numbers; NULL: it reads bytes. */
const char *oct_carried_on_reals(const carrier *c, const oct_node *n);

#endif
