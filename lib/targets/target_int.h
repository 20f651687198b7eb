/* lib/targets/target_int.h -- internals of a target, shared by its parser and its queries. */
#ifndef OCT_TARGETS_TARGET_INT_H
#define OCT_TARGETS_TARGET_INT_H

#include "base/words.h"
#include "targets/target.h"

enum { OCT_TARGET_ACTIVATIONS = 4 }; /* types of activations: u8, s8, u16, s16 */

/* What a line says about one operator. */
typedef struct oct_target_op {
    const char *op;
    unsigned forms; /* bits of oct_target_form; 0: it runs in float */
    oct_target_op_rules rules;
    bool kept; /* from `keeps`: it runs on integers if a file has quantized it, but conversions never quantize it */
    /* The condition: the attribute has one of the values, or is absent if that is allowed. attr NULL: there is none. */
    const char *attr;
    const char **value;
    size_t n_value;
    bool absent;
    const char *otherwise; /* the reason if the condition does not hold */
    int depth;             /* 0: the line is in the file itself; 1: in the target that it inherits from; ... */
} oct_target_op;

/* The parameters that the target prescribes for the output of an operator if it has this type. */
typedef struct oct_target_scale {
    const char *op;
    oct_dtype type;
    float scale;
    int32_t zero;
    int depth; /* as oct_target_op.depth */
} oct_target_scale;

/* Picoseconds of a call, and of each multiply-accumulate, element of the outputs, element that is read, and element of
 * the weights. */
typedef struct oct_cost_line {
    const char *kind; /* "conv-1x1", or the operator's name */
    oct_cost_how how;
    double call, mac, out, in, weight;
} oct_cost_line;

typedef struct oct_cost_table {
    const char *name, *runtime, *cpus; /* the last two for people; NULL: the table does not say */
    oct_cost_line *line;
    size_t n, cap;
} oct_cost_table;

typedef struct oct_cost_work {
    double macs, out, in, weights;
} oct_cost_work;

struct oct_target {
    oct_arena *arena;
    const char *name, *summary;
    oct_target_rules rules;
    int depth; /* while files are read: as oct_target_op.depth */
    oct_target_scale *scale;
    size_t n_scale, cap_scale;
    uint32_t traps;                        /* bit i: of oct_target_trap_name(i) */
    bool takes[OCT_TARGET_ACTIVATIONS][2]; /* by the types of activations and of weights (0: u8, 1: s8) */
    oct_cost_table costs[OCT_COST_TABLES];
    size_t n_costs;
    int costs_depth; /* as oct_target_op.depth, of the file that has these tables */
    oct_target_op *op;
    size_t n_op, cap_op;
};

/* The text of a built-in target, or NULL. */
const char *oct_target_text(const char *name);
/* The text of a built-in table of costs, or NULL; the i-th table's name, NULL beyond the last. */
const char *oct_costs_text(const char *name);
const char *oct_costs_builtin(size_t i);
/* Adds the rest of a line after the word `cost` to a table; reads a whole table, which is named by its label. Strings
 * are kept in the arena. */
oct_status oct_cost_read(oct_words *w, oct_cost_table *t, oct_err *err);
oct_status oct_costs_parse(const char *text, const char *label, oct_arena *a, oct_cost_table *t, oct_err *err);
/* What the target's lines say about an operator, or NULL. */
oct_target_op *oct_target_entry(const oct_target *t, const char *op);

#endif
