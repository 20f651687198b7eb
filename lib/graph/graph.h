/* lib/graph/graph.h -- the IR: values and nodes in arrays, referred to by index.
 *
 * It knows no operator. Invariants (oct_graph_check): every input of a node is -1 (absent) or a value;
 * a value has at most one producer; `order` lists the live nodes in a topological order; uses are exact.
 * Graphs nest: an attribute of a node may hold graphs (the branches of If, the body of Loop). What a nested graph takes
 * from the graph around it is a value of its own that names the outer one (oct_value.outer), one for each level; the
 * node lists it among its captures. The other values of nested graphs are their own.
 * Everything lives in the graph's arena: strings, shapes, attributes, constants that passes make. Bytes
 * of loaded constants may be views into a mapped file, which then must outlive the graph. */
#ifndef OCT_GRAPH_GRAPH_H
#define OCT_GRAPH_GRAPH_H

#include "base/buf.h"
#include "base/dtype.h"
#include "base/mem.h"

enum { OCT_MAX_RANK = 8 };
/* The largest dimension that a value may have. No tensor that large could be held, and sums of such dimensions do not
 * overflow. */
#define OCT_MAX_DIM ((int64_t)1 << 40)

/* One dimension: known (n >= 0); or n == -1, and either named by a symbol or unknown (sym NULL). Symbols are compared
 * as strings. */
typedef struct oct_dim {
    int64_t n;
    const char *sym;
} oct_dim;

typedef struct oct_shape {
    int rank; /* -1: unknown; then d is unset */
    oct_dim *d;
} oct_shape;

/* A constant. data: `bytes` bytes, little endian, C order, 4-bit and 2-bit types packed; oct_str[count] of strings. */
typedef struct oct_tensor {
    oct_dtype dtype;
    int rank;
    int64_t *dims;
    int64_t count;
    size_t bytes;
    const void *data;
    /* Numbers of float32 that wait, so that they take no room: data is NULL, and they stand as numbers of
     * `narrow_type`, float16 or bfloat16, at `narrow` (ops/core/waiting.h). NULL: none wait. */
    const void *narrow;
    oct_dtype narrow_type;
} oct_tensor;

/* Affine quantization: real = scale[c] * (q - zp[c]), where c is 0 (per tensor, n == 1), the index along `axis` (per
 * channel), or in blocks that of the block, in C order of a tensor whose dimension `axis` counts blocks. */
typedef struct oct_quant {
    int n, axis; /* n: number of scales; 0: dynamic, computed from the tensor at run time */
    const float *scale;
    const int32_t *zp; /* never NULL but for dynamic */
    oct_dtype dtype;   /* of the quantized values */
    int64_t block;     /* elements along axis that share a scale; 0: not in blocks */
    bool bytes;        /* in blocks: products may also quantize their other operand in these blocks (MatMulNBits'
                          accuracy_level 4) */
    /* The quantized elements of a constant if they are known, else NULL. A matrix in blocks may be stored by columns,
     * as in MatMulNBits: u8 [columns][blocks][block * bits / 8], each an unsigned number, lowest bits first. Then scale
     * and zp are [columns][blocks]. */
    const oct_tensor *qvals;
} oct_quant;

/* An input slot of a node; slot -1: captured by a subgraph of that node. */
typedef struct oct_use {
    int node, slot;
} oct_use;

/* The kind of a value. If it is not a tensor, dtype is OCT_UNDEFINED and the shape unknown. */
typedef enum oct_value_kind {
    OCT_VALUE_TENSOR,
    OCT_VALUE_SEQUENCE, /* of tensors */
    OCT_VALUE_OPTIONAL, /* a tensor or nothing */
    OCT_VALUE_OPTIONAL_SEQUENCE
} oct_value_kind;

typedef struct oct_value {
    const char *name; /* unique in its graph, never NULL or "" */
    oct_dtype dtype;  /* OCT_UNDEFINED: not known yet */
    oct_shape shape;
    oct_value_kind kind;
    oct_dtype elem; /* for a sequence or optional: the element type of its tensors, if known */
    int producer;   /* node; -1: graph input, constant, or captured value */
    int outer;      /* in a nested graph: the captured value of the outer graph; else -1 */
    bool is_input, is_output;
    oct_dtype own_type; /* float16 or bfloat16: it was that in the file, and is read as float32; float32: it was that
                           beside such (passes/to_float32.h). OCT_UNDEFINED otherwise */
    const oct_tensor *constant; /* the constant's value, or NULL */
    /* If set, the tensor is stored as integers, and its elements are the real numbers that these represent, of dtype
     * f32 or a 16-bit float: all readers of the value see the rounded numbers. NULL: elements are of type dtype.
     * lib/forms reads and writes the forms of this in files. */
    const oct_quant *quant;
    /* Propagation of shapes: the elements of a small integer tensor as far as they are known, n_known of them; NULL:
     * unknown. Not set for constants. */
    const oct_dim *known;
    int n_known;
    const struct oct_recipe
        *recipe; /* for a constant made by folding: how it was computed, as output made_slot; else NULL */
    int made_slot;
    oct_use *uses;
    size_t n_uses, cap_uses;
    const void *origin; /* the loader's record (initializer or value_info), or NULL */
    bool dead;          /* removed; the index stays unused */
} oct_value;

/* Numbers of ONNX's AttributeProto.AttributeType. */
typedef enum oct_attr_type {
    OCT_ATTR_FLOAT = 1,
    OCT_ATTR_INT = 2,
    OCT_ATTR_STRING = 3,
    OCT_ATTR_TENSOR = 4,
    OCT_ATTR_GRAPH = 5,
    OCT_ATTR_FLOATS = 6,
    OCT_ATTR_INTS = 7,
    OCT_ATTR_STRINGS = 8,
    OCT_ATTR_GRAPHS = 10,
    OCT_ATTR_OTHER = 99, /* tensors, sparse tensors, types: only origin */
} oct_attr_type;

typedef struct oct_attr {
    const char *name;
    oct_attr_type type;
    float f;
    int64_t i;
    const char *s; /* NUL added; s_len bytes */
    size_t s_len;
    const oct_tensor *t;
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
    struct oct_graph *const *graphs; /* nested graphs of this node; GRAPH has one */
    int n;                           /* of floats, ints, strings or graphs */
    const char *ref;                 /* ref_attr_name inside functions, or NULL */
    const void *origin;              /* the loader's record, or NULL for an attribute that a pass made */
} oct_attr;

typedef struct oct_node {
    const char *name;     /* may be "" */
    const char *op;       /* operator type */
    const char *domain;   /* "" for the default domain (the loader maps "ai.onnx" to it) */
    const char *overload; /* overload of a model-local function; usually "" */
    int64_t opset;        /* opset of the operator if a fusion of a plan inserted the node; 0: the graph's opset for the
                             domain. Not saved */
    int *in;              /* value indices, -1 absent */
    int *out;
    int n_in, n_out;
    oct_attr *attr;
    size_t n_attr, cap_attr;
    int *captured; /* values of this graph that subgraphs use */
    int n_captured;
    const void *origin; /* the loader's record, or NULL for a node that a pass made */
    bool changed;       /* differs from origin, so that it is written anew */
    bool dead;
} oct_node;

/* A node that folding removed. */
typedef struct oct_recipe {
    oct_node node; /* its inputs are values of the graph, which may have been removed since; no outputs */
    const oct_tensor *const *from; /* [node.n_in]: the constant inputs; NULL: absent */
    const oct_tensor *const *made; /* [node.n_out]: the computed outputs; NULL: absent */
    int64_t opset;                 /* of the graph */
} oct_recipe;

typedef struct oct_opset {
    const char *domain;
    int64_t version;
} oct_opset;

/* A model-local function. Attributes of the body's nodes may refer to those of the call (oct_attr.ref); defaults
 * replace those that a call omits. The body is a graph with opsets of its own. */
typedef struct oct_function {
    const char *domain, *name, *overload;
    struct oct_graph *body;
    const oct_attr *defaults;
    size_t n_defaults;
} oct_function;

typedef struct oct_name_set oct_name_set;

typedef struct oct_graph {
    oct_arena *arena;          /* that of the outermost graph */
    struct oct_graph *outer;   /* the graph around a nested one, or NULL */
    struct oct_graph **nested; /* all graphs that were made inside this one, including those of removed nodes */
    size_t n_nested, cap_nested;
    const char *name;
    oct_value *value;
    size_t n_value, cap_value;
    oct_node *node;
    size_t n_node, cap_node;
    int *order; /* live nodes, topological */
    size_t n_order, cap_order;
    size_t near; /* position in the order of the node that was searched for last */
    int *input;  /* inputs without those that have an initializer */
    size_t n_input, cap_input;
    int *output; /* a value may occur more than once */
    size_t n_output, cap_output;
    oct_opset *opset; /* only in the outermost graph */
    size_t n_opset, cap_opset;
    const oct_function *function; /* of the outermost graph, sorted by domain, name and overload; shared by clones */
    size_t n_function;
    const void *origin; /* the loader's record, or NULL */
    bool changed;       /* changed since it was loaded; oct_graph_is_changed includes nested graphs */
    /* name -> value index, open addressing */
    int *map;
    size_t map_cap, map_used;
    oct_name_set
        *names; /* of the outermost graph: all names in it and in nested graphs, made when first needed; else NULL */
} oct_graph;

oct_graph *oct_graph_create(void); /* NULL: out of memory */
void oct_graph_destroy(oct_graph *g);

/* A deep copy except for constants' bytes, quantization, origins, functions and strings, which are shared: `g` must
 * outlive it. Dead nodes and values are kept dead, so indices are the same in both. Nested graphs are copied along. The
 * copy of a nested graph is independent: its captured values become inputs, after its own, or constants; its opsets are
 * those of the outermost graph. */
oct_status oct_graph_clone(const oct_graph *g, oct_graph **copy, oct_err *err);

/* --- values --- */
/* Finds a value by name; -1 if there is none. */
int oct_graph_find(const oct_graph *g, const char *name);
/* Adds a value. name is copied; it must be new (OCT_EMALFORMED otherwise). */
oct_status oct_graph_add_value(oct_graph *g, const char *name, oct_dtype t, int *value, oct_err *err);
/* Adds a value named `base`, or base_1, base_2, ... if the name is used in this graph or in any graph around or inside
 * it. */
oct_status oct_graph_new_value(oct_graph *g, const char *base, oct_dtype t, int *value, oct_err *err);
/* Renames a value to `base`, or base_1, base_2, ... when that is taken. */
oct_status oct_graph_rename(oct_graph *g, int value, const char *base, oct_err *err);
/* Adds a constant with a unique name made from base; dims are copied, bytes are copied into the arena. */
oct_status oct_graph_new_const(oct_graph *g, const char *base, oct_dtype t, int rank, const int64_t *dims,
                               const void *data, int *value, oct_err *err);
/* Shortcuts for constants that passes often need. */
oct_status oct_graph_new_const_f32(oct_graph *g, const char *base, int rank, const int64_t *dims, const float *data,
                                   int *value, oct_err *err);
oct_status oct_graph_new_const_s64(oct_graph *g, const char *base, int rank, const int64_t *dims, const int64_t *data,
                                   int *value, oct_err *err);
/* Makes an existing value (without producer) constant. t is kept by reference. */
void oct_graph_set_const(oct_graph *g, int value, const oct_tensor *t);
/* Allocates a tensor with uninitialised bytes in an arena. */
oct_status oct_tensor_new(oct_arena *a, oct_dtype t, int rank, const int64_t *dims, oct_tensor **out, oct_err *err);

/* A tensor of bytes with its last two dimensions exchanged. */
oct_status oct_tensor_transposed(oct_arena *a, const oct_tensor *t, const oct_tensor **out, oct_err *err);

/* Copies a shape into the graph's arena and sets it. d[i].sym are kept by reference (arena or literal). OCT_EMALFORMED
 * for a dimension above OCT_MAX_DIM. */
oct_status oct_graph_set_shape(oct_graph *g, int value, int rank, const oct_dim *d, oct_err *err);
oct_status oct_graph_set_dims(oct_graph *g, int value, int rank, const int64_t *dims, oct_err *err);
/* Whether rank and every dimension are known; then dims (may be NULL) receives them. */
bool oct_shape_known(const oct_shape *s, int64_t dims[OCT_MAX_RANK]);
/* "[1,3,N,?]" into dst; returns dst. */
const char *oct_shape_text(const oct_shape *s, char *dst, size_t size);

/* --- nodes --- */
/* Adds a node before node `before` in the order (-1: at the end). op, domain and name are copied. Its
 * inputs and outputs are set by the calls below. */
oct_status oct_graph_add_node(oct_graph *g, const char *op, const char *domain, const char *name, int n_in, int n_out,
                              int before, int *node, oct_err *err);
/* The node after a live one in the order; -1: none. */
int oct_graph_next(oct_graph *g, int node);
/* Sets or replaces input `slot` (-1 removes it). Grows the list when slot == n_in. Keeps uses exact. */
oct_status oct_graph_set_input(oct_graph *g, int node, int slot, int value, oct_err *err);
/* Drops inputs from slot n on. */
void oct_graph_cut_inputs(oct_graph *g, int node, int n);
/* Makes node the producer of value at output `slot`; a former producer loses it. value -1: absent. */
oct_status oct_graph_set_output(oct_graph *g, int node, int slot, int value, oct_err *err);
/* Replaces every use of `from` (inputs, captures) by `to`. If `from` is a graph output, which must keep its name, that
 * use stays: move the producer instead. */
oct_status oct_graph_replace_uses(oct_graph *g, int from, int to, oct_err *err);
/* Removes a node; its outputs become values without producer, which are to be removed or given another producer. */
void oct_graph_remove_node(oct_graph *g, int node);
/* Removes a value that has no uses and no producer and is no input or output. */
void oct_graph_remove_value(oct_graph *g, int value);
/* Removes nodes whose outputs are unused, and then unused constants, nested graphs first. Returns the number of removed
 * nodes. */
int oct_graph_prune(oct_graph *g);
/* Whether a value has exactly one use and is no graph output. */
static inline bool oct_value_used_once(const oct_value *v)
{
    return v->n_uses == 1 && !v->is_output;
}

/* Whether the value is a constant: its elements, real or quantized, are known before a run. */
static inline bool oct_value_is_constant(const oct_value *v)
{
    return v->constant || (v->quant && v->quant->qvals);
}

/* Whether a constant's elements can be read, which those of sparse constants and of unknown types cannot. */
static inline bool oct_value_has_data(const oct_value *v)
{
    return (v->constant && v->constant->data) || (v->quant && v->quant->qvals);
}

/* Whether the value is a matrix in blocks that is stored by columns. */
static inline bool oct_value_by_columns(const oct_value *v)
{
    return v->quant && v->quant->block && v->quant->qvals && v->shape.rank == 2 && v->quant->qvals->rank == 3;
}

/* Whether a nested graph reads the value. */
static inline bool oct_value_is_captured(const oct_value *v)
{
    for (size_t i = 0; i < v->n_uses; i++)
        if (v->uses[i].slot < 0)
            return true;
    return false;
}

/* Stable topological sort of the order. OCT_EMALFORMED names a node of a cycle. */
oct_status oct_graph_sort(oct_graph *g, oct_err *err);
/* Verifies the invariants; OCT_EINTERNAL names the first that does not hold. Linear time. */
oct_status oct_graph_check(const oct_graph *g, oct_err *err);

/* The display name of a node: its name, or that of its first output. */
const char *oct_node_label(const oct_graph *g, int node);
/* Appends the path from the graph of a node into its k-th nested graph: "If_3/then_branch/". */
void oct_node_put_path(const oct_graph *g, int node, size_t k, oct_buf *b);
/* "node 'conv1' (Conv)", or "node #17 (Conv, output 'y')" for one without a name; into dst. */
const char *oct_node_text(const oct_graph *g, int node, char *dst, size_t size);
/* Returns s, the status of work on a node. If it is a failure, the text of the node is put before that of err (NULL
 * allowed). */
oct_status oct_within_node(const oct_graph *g, int node, oct_status s, oct_err *err);
/* Whether two quantizations are equal: type, axis, blocks, scales and zero points. Quantized values are not compared.
 */
bool oct_quant_same(const oct_quant *a, const oct_quant *b);
/* Input `slot` of a node; -1: it is absent. */
static inline int oct_input_at(const oct_node *n, int slot)
{
    return slot >= 0 && slot < n->n_in ? n->in[slot] : -1;
}
/* The constant that a value is (-1: there is no value), or that an input of a node is; NULL: it is none. Its bytes may
 * be unknown. */
static inline const oct_tensor *oct_graph_constant(const oct_graph *g, int value)
{
    return value >= 0 ? g->value[value].constant : NULL;
}
static inline const oct_tensor *oct_node_constant(const oct_graph *g, const oct_node *n, int slot)
{
    return oct_graph_constant(g, oct_input_at(n, slot));
}
/* The same for a constant of float32 whose bytes are known; NULL: it is none. */
static inline const oct_tensor *oct_graph_floats(const oct_graph *g, int value)
{
    const oct_tensor *t = oct_graph_constant(g, value);
    return t && t->data && t->dtype == OCT_F32 ? t : NULL;
}
/* Whether a node is this operator of the default domain. */
bool oct_is_op(const oct_node *n, const char *op);

/* --- nested graphs --- */
/* The k-th nested graph of a node, over all its attributes; NULL beyond the last. */
oct_graph *oct_node_graph_at(const oct_node *n, size_t k);
/* The graph of an attribute; NULL if absent. */
oct_graph *oct_node_graph(const oct_node *n, const char *attr);
/* Makes an empty graph inside `outer`; oct_node_set_graph gives it to a node. */
oct_status oct_graph_new_nested(oct_graph *outer, oct_graph **nested, oct_err *err);
oct_status oct_node_set_graph(oct_graph *g, int node, const char *attr, oct_graph *nested, oct_err *err);
/* The value of a nested graph that stands for value `outer` of the graph around it; made at the first call. */
oct_status oct_graph_capture(oct_graph *nested, int outer, int *value, oct_err *err);
/* Replaces captures of `from` by captures of `to` in node's nested graphs. */
oct_status oct_graph_recapture(oct_graph *g, int node, int from, int to, oct_err *err);
/* Sets node's list of captures to what its nested graphs capture. To be called when these are complete, and after they
 * changed. */
oct_status oct_graph_set_captures(oct_graph *g, int node, oct_err *err);
/* Copies the properties of captured values (type, shape, elements, constant, quantization) to the values that represent
 * them in node's nested graphs. */
oct_status oct_graph_pass_on(oct_graph *g, int node, oct_err *err);
/* Whether a constant has to stay in its nested graph. */
typedef bool (*oct_stays_nested)(const oct_graph *nested, int value);
/* Replaces equal constants of nested graphs, of at least so many bytes, by captures of one constant in the outermost
 * graph g, which is added if necessary. Those that stay (NULL: none do) are left alone. */
oct_status oct_graph_share_constants(oct_graph *g, size_t least, oct_stays_nested stays, oct_err *err);
/* The name of a value in files: for a captured value, that of the outer value. */
const char *oct_value_name(const oct_graph *g, int value);
/* Whether the graph or one nested in it was changed since it was loaded. */
bool oct_graph_is_changed(const oct_graph *g);
/* Sets the functions of an outermost graph, sorting f[n], which is kept. OCT_EMALFORMED when two have the same
 * identifiers. */
oct_status oct_graph_set_functions(oct_graph *g, oct_function *f, size_t n, oct_err *err);
/* A model-local function by its identifiers, or NULL. */
const oct_function *oct_graph_function(const oct_graph *g, const char *domain, const char *name, const char *overload);

/* --- putting graphs into others --- */
/* Copies all nodes of `src` (a function's body, a branch) into g before node `before` (-1: at the end). map[v], for
 * every value of src: the value of g that it becomes, or -1 for none (absent inputs), or -2: a new one, named after it,
 * prefixed by `prefix` when that is not empty; filled on return. fill (may be NULL) completes each attribute that
 * refers to an attribute of the call: it sets *a from the call, or a->type to 0 to drop it. Outputs of src whose value
 * already has a producer or stands for another are the caller's. */
typedef oct_status (*oct_fill_attr)(void *arg, oct_attr *a, oct_err *err);
oct_status oct_graph_splice(oct_graph *g, int before, const oct_graph *src, const char *prefix, int *map,
                            oct_fill_attr fill, void *arg, oct_err *err);

/* --- constants that folding made (recipe.c) --- */
/* Records for oct_value.recipe how node, whose inputs are constants, has computed its outputs; made: [n_out]. To be
 * called while the node has its inputs. */
oct_status oct_graph_note_recipe(oct_graph *g, int node, const oct_tensor *const *made, const oct_recipe **recipe,
                                 oct_err *err);

enum { OCT_RECIPE_NODES = 64 };
/* The constants, without duplicates, from which recipes start: they are read by nodes of recipes and have no recipe. */
typedef struct oct_sources {
    const oct_tensor *of[OCT_RECIPE_NODES];
    size_t n, bytes, nodes; /* their number, their total bytes, and the number of nodes that compute from them */
} oct_sources;
/* The sources of a constant with a recipe. False if it cannot be recomputed: this would need more than OCT_RECIPE_NODES
 * nodes or constants, or operators have other versions now. */
bool oct_graph_sources(const oct_graph *g, int value, oct_sources *s);

/* Makes constants values that nodes compute, by their recipes. An unfolding records the nodes that were added, so that
 * several constants share them. */
typedef struct oct_unfolding oct_unfolding;
oct_unfolding *oct_unfolding_create(void); /* NULL: out of memory */
void oct_unfolding_destroy(oct_unfolding *u);
/* For a constant for which oct_graph_sources succeeds. Nodes are inserted before all others. Afterwards this graph and
 * those around it must be sorted, and their captures updated (oct_graph_update_captures). */
oct_status oct_graph_unfold(oct_graph *g, int value, oct_unfolding *u, oct_err *err);
/* Updates the captures of all nodes of g and of its nested graphs, and the properties of captured values. */
oct_status oct_graph_update_captures(oct_graph *g, oct_err *err);

/* --- attributes --- */
const oct_attr *oct_node_attr(const oct_node *n, const char *name); /* NULL if absent */
int64_t oct_node_int(const oct_node *n, const char *name, int64_t absent);
float oct_node_float(const oct_node *n, const char *name, float absent);
const char *oct_node_str(const oct_node *n, const char *name, const char *absent);
/* The integers and their count (0 and NULL if absent). */
const int64_t *oct_node_ints(const oct_node *n, const char *name, int *count);
const float *oct_node_floats(const oct_node *n, const char *name, int *count);
/* Sets or replaces an attribute, copying the value, and marks the node as changed. */
oct_status oct_node_set_int(oct_graph *g, int node, const char *name, int64_t v, oct_err *err);
oct_status oct_node_set_float(oct_graph *g, int node, const char *name, float v, oct_err *err);
oct_status oct_node_set_str(oct_graph *g, int node, const char *name, const char *v, oct_err *err);
oct_status oct_node_set_ints(oct_graph *g, int node, const char *name, const int64_t *v, int n, oct_err *err);
oct_status oct_node_set_tensor(oct_graph *g, int node, const char *name, const oct_tensor *t, oct_err *err);
void oct_node_drop_attr(oct_graph *g, int node, const char *name);

/* --- opsets (of the outermost graph) --- */
int64_t oct_graph_opset(const oct_graph *g, const char *domain); /* 0: not imported */
/* The version of a node's operator: its own, or the graph's for its domain. */
int64_t oct_node_opset(const oct_graph *g, const oct_node *n);
oct_status oct_graph_set_opset(oct_graph *g, const char *domain, int64_t version, oct_err *err);

#endif
