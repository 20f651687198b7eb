/* lib/runtime/plan_int.h -- internals of plans, shared by the files that make them: lower.c (steps), layout.c
 * (reorders), memory.c (arena), plan.c (the rest), and by those that run them: plan_run.c, staged.c. */
#ifndef OCT_RUNTIME_PLAN_INT_H
#define OCT_RUNTIME_PLAN_INT_H

#include "ops/core/packed.h"
#include "runtime/plan.h"

/* The memory of a tensor. Operands refer to it by index; several operands may share one. */
typedef struct rt_buffer {
    size_t bytes;
    int first, last;          /* the step that writes it, and the last one that reads it; INT32_MAX for outputs */
    int alias;                /* buffer whose bytes it shares, or -1 */
    size_t at;                /* where they begin in it */
    struct rt_operand *other; /* the same tensor in the other layout, if made */
    int input;                /* graph input whose memory it is, or -1 */
    oct_tensor_layout layout; /* of its bytes; operands follow it */
    bool constant;            /* operands have the bytes */
    size_t offset;            /* in the arena */
    size_t lane;              /* bytes of a section, of which each thread has one (tiles.c); 0: it is whole */
    bool placed;
    uint8_t *memory; /* of an input, and of what is placed: where the bytes are in this run */
} rt_buffer;

typedef struct rt_operand {
    oct_operand t; /* first member, so that pointers to oct_operand can be converted back */
    int buffer;
    struct rt_operand *next; /* of the plan's */
} rt_operand;

typedef struct rt_step {
    oct_step s; /* without an operator it changes the layout, in[0] to out[0]. in and out are contiguous: in[i], i <
                   n_in + n_out, are all operands */
    bool alias; /* out[0] shares the memory of in[0]; nothing runs */
    const char *scheme; /* NULL: that of out[0] */
    size_t *tap;        /* [n_out]: what out[i] is shown as after the step; OCT_NO_TAP: it is not */
    double seconds;
    uint64_t calls, macs;
    const struct rt_tiles *tiles; /* tiles.c: it runs together with others, a few rows at a time; NULL: alone */
} rt_step;

struct oct_plan {
    oct_arena *arena;   /* everything in the plan except large packed weights */
    oct_graph *g;       /* the clone */
    oct_plan_opts opts; /* max_trips is set */
    rt_step **step;
    size_t n_step, cap_step;
    rt_buffer *buffer;
    size_t n_buffer, cap_buffer;
    rt_operand *operand;          /* the first of all */
    rt_operand **input, **output; /* plain operands of the graph's */
    int *tap_at;                  /* for each tap: its value in g, or -1; set before lowering */
    bool *tap_reals;              /* for each tap: its value is the output of a DequantizeLinear */
    size_t n_shown; /* number of inputs to show to taps; inputs of stages and captured values have been shown already */
    int depth;      /* of nested graphs */
    uint64_t iteration;       /* of this run: oct_run.iteration */
    struct rt_staged *staged; /* staged.c: parts that cannot be planned at once; NULL: everything is in `step` */
    uint8_t *memory;
    size_t memory_bytes, live_bytes, weight_bytes;
    oct_packed_refs packed;
    void *scratch;
    size_t scratch_bytes;
    const void **given; /* for each input: the data of the run */
    bool *movable;      /* for each output: oct_plan_set_output may put it elsewhere */
    rt_operand **moved; /* [n_moved]: those whose bytes are those of an input or an output, which each run may have
                           elsewhere */
    size_t n_moved;
    oct_tap_fn tap;
    void *tap_arg;
    bool profile;
    size_t at; /* the step after the current or last one */
};

/* ---- plans inside plans ---- */

/* A plan for g, with the options and taps of `like`; in[i] is for g's input i, NULL: as declared. inner: all of it must
 * be planned at once. */
oct_status rt_create(const oct_graph *g, const oct_plan_input *in, const oct_plan *like, bool inner, oct_plan **plan,
                     oct_err *err);
oct_plan_input rt_input_of(const oct_datum *x);
bool rt_same_inputs(const oct_plan_input *a, const oct_plan_input *b, size_t n);

/* kept.c: a cache of a graph's plans for recent combinations of inputs. Everything except the plans is in the caller's
 * arena. */
enum { RT_KEPT = 4 };
typedef struct rt_kept {
    const oct_graph *g;
    oct_plan_input *want; /* [g->n_input], for the caller to set */
    struct {
        oct_plan *plan;
        oct_plan_input *in;
        uint64_t used;
    } of[RT_KEPT];
    uint64_t clock;
} rt_kept;
oct_status rt_kept_init(rt_kept *k, const oct_graph *g, oct_arena *a, oct_err *err);
void rt_kept_free(rt_kept *k);
/* The plan for k->want, made if necessary; the least recently used one is then dropped if the cache is full. */
oct_status rt_kept_plan(rt_kept *k, const oct_plan *like, oct_plan **plan, oct_err *err);

/* staged.c: graphs with parts that can be planned only after other parts have run. */
oct_status rt_stage_init(oct_plan *p, const oct_plan_input *in, oct_err *err);
void rt_stage_free(oct_plan *p);
oct_status rt_stage_run(oct_plan *p, oct_datum *const *in, oct_err *err);
oct_datum *rt_stage_output(const oct_plan *p, size_t i); /* borrowed; NULL before a run */
/* What is inside, one after the other: the plans, in a fixed order, then the nodes that run one by one. Begins as
 * zeros; plan NULL: it is the node. */
typedef struct rt_part {
    size_t stage, body, kept, order; /* what comes next */
    oct_plan *plan;
    int node;
} rt_part;
bool rt_next_part(const oct_plan *p, rt_part *at); /* false: there are no more */
oct_step_info rt_part_info(const oct_plan *p, int node);
/* Turns on profiling of everything inside, from zero. */
void rt_profile_stages(oct_plan *p);
int rt_block_bits(const oct_graph *g, const oct_node *n); /* of the weights of a node that has them in blocks */

/* cover.c: the nodes that could run now, (*node)[n_node] in the arena: their operands are numeric constants, inputs of
 * known type and shape, or outputs of such nodes with a known shape. *all: these are all nodes. */
oct_status rt_cover(const oct_graph *g, oct_arena *a, bool **node, bool *all, oct_err *err);

/* ---- making one plan ---- */

/* OCT_EUNSUPPORTED for a node whose operator has no record, and for a value without producer and data. */
oct_status rt_check_known(const oct_graph *g, int node, oct_err *err);
oct_status rt_check_value(const oct_value *v, oct_err *err);
/* A datum of an input as declared, with these data; NULL if its type or shape is unknown. */
oct_status rt_borrow_input(const oct_value *v, const void *data, oct_datum **x, oct_err *err);
/* Makes the steps in order, with operands without memory and in plain layout. */
oct_status rt_lower(oct_plan *p, oct_err *err);
/* Chooses layouts and inserts reorders; then prepares every step. */
oct_status rt_layout(oct_plan *p, oct_err *err);
/* parts.c: between the two halves of rt_layout. */
oct_status rt_join_parts(oct_plan *p, oct_err *err);
/* tiles.c: after rt_layout, joins steps that run together on a few rows at a time: those from first to last, which
 * rt_tiles_run runs. */
typedef struct rt_tiles rt_tiles;
oct_status rt_tile(oct_plan *p, oct_err *err);
size_t rt_tiles_first(const rt_tiles *t);
size_t rt_tiles_last(const rt_tiles *t);
oct_status rt_tiles_run(oct_plan *p, const rt_tiles *t, oct_err *err);
/* Sets the offsets of all buffers, and p->memory_bytes. */
oct_status rt_place(oct_plan *p, oct_err *err);

/* Shared pieces. */
oct_status rt_new_buffer(oct_plan *p, size_t bytes, int *buffer, oct_err *err);
rt_operand *rt_new_operand(oct_plan *p, const oct_operand *like, int buffer); /* NULL: no memory */
/* A step for a node, or for none (both NULL), without operands; rt_add_step appends it to the plan. NULL: out of
 * memory. */
rt_step *rt_new_step(oct_plan *p, const oct_op *op, const oct_node *n, int n_in, int n_out);
oct_status rt_add_step(oct_plan *p, rt_step *st, oct_err *err);
/* The tap of a value's name, or OCT_NO_TAP. */
size_t rt_tap_of(const oct_plan *p, const char *name);
/* Tapped values must outlive passes and pruning, which keep graph outputs: on: they are outputs of g, the plan's graph
 * or one with its indices, until that is taken back. Shapes computed in the graph are constants once the inputs' shapes
 * are: they fold, tapped or not. */
void rt_show_taps(const oct_plan *p, oct_graph *g, bool on);
void rt_run_reorder(oct_pool *pool, const oct_step *s); /* copies in[0] to out[0], which has another layout */
int rt_root(const oct_plan *p, int buffer);             /* follows aliases */
size_t rt_offset(const oct_plan *p, int buffer);        /* the offset of a buffer in the memory of its root */

#endif
