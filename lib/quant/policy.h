/* lib/quant/policy.h -- the policy table: which scheme, types and observer a node gets. Plain text, one rule a line, the
 * last rule that matches wins, column by column ('-' inherits):
 *
 *     # match                 scheme   weights         activations     observer
 *     op:Conv                 static   s8/channel/sym  u8/tensor/asym  hist-mse
 *     op:MatMul & const-b     dynamic  s8/channel/sym  u8/tensor/asym  -
 *     name:head.*             float    -               -               -
 *
 * Matches, joined by '&': op:A,B,...  name:GLOB  name~REGEX (RE2's syntax; the whole name)  first  last  io  const-b  depthwise  any;
 * weights>N  weights<N (elements: 10000, 10k, 2M); rank>N  rank<N  rank=N (of the first input); macs>N  macs>P%  macs< (multiply-accumulates of a
 * run, or their share of the model's); and of what the node makes, as samples or a table say: range>X  range< (the largest magnitude),
 * sqnr<X  sqnr> (dB, of 8 bits with the range that hist-mse finds). A '!' in front negates; what is not known, as the rank where shapes are not or
 * statistics of a tensor that has none, fits neither way. late: from when statistics are there and ranges are chosen; what is done to the graph before
 * that sees nodes as other rules have them, so that a table of decisions does not change what these rested on. value:GLOB, alone or with late, is of values that no integer layer makes, such as inputs, and names their observer. Weights: s8, s7, u8 /channel|tensor /sym, and for weight-only s4, s8 /blockN /sym or u4, u8 /blockN /asym, where N values
 * along k share a scale; activations: u8, s8, u16, s16 /tensor /asym|sym. */
#ifndef OCT_QUANT_POLICY_H
#define OCT_QUANT_POLICY_H

#include "graph/graph.h"
#include "observers/calib.h"
#include "observers/observer.h"

typedef enum oct_scheme {
    OCT_SCHEME_AUTO = 0,
    OCT_SCHEME_STATIC,
    OCT_SCHEME_DYNAMIC,
    OCT_SCHEME_WEIGHT_ONLY,
    OCT_SCHEME_STORED,
    OCT_SCHEME_FP16,
    OCT_SCHEME_BF16,
    OCT_SCHEME_FLOAT,
    OCT_SCHEME_COUNT
} oct_scheme;

const char *oct_scheme_name(oct_scheme s); /* "auto", "static", "dynamic", "weight-only", "stored", "fp16", "bf16", "float" */
/* False when there is no such scheme. */
bool oct_scheme_parse(const char *text, oct_scheme *s);

static inline bool oct_scheme_is_half(oct_scheme s)
{
    return s == OCT_SCHEME_FP16 || s == OCT_SCHEME_BF16;
}

/* Weights' range in quantized values: s8 -127..127, s7 -64..64 (stored as int8), u8 is s8's integers plus 128 with zero point 128. In blocks all
 * quantized values of 4 or 8 bits are used; u4 and u8 have a zero point a block, s4 and s8 the middle one. */
typedef enum oct_weight_type { OCT_WEIGHT_S8, OCT_WEIGHT_S7, OCT_WEIGHT_U8, OCT_WEIGHT_S4, OCT_WEIGHT_U4, OCT_WEIGHT_COUNT } oct_weight_type;

/* What the table says of one node. */
typedef struct oct_policy_row {
    oct_scheme scheme;
    oct_weight_type weights;
    bool per_channel;
    int block;                 /* weights that share a scale; 0: no rule asks for blocks */
    oct_dtype activations;     /* OCT_U8, OCT_S8, OCT_U16 or OCT_S16 */
    bool symmetric;            /* activations */
    oct_observer_spec observer; /* .observer NULL: no rule names one; left to the job (quant/tune.c) */
    bool asked;                /* a rule of the user's set the scheme: it is not for costs to change */
    bool named;                /* a rule of the user's set the scheme of nodes of this name: it is not for mixed precision to change */
    bool typed;                /* the same of the type of activations: they are not for mixed precision to widen */
    bool types_asked;          /* a rule of the user's set the type of activations */
    oct_dtype unmet;           /* such a type that the target does not take, so that another stands for it (job.c); OCT_UNDEFINED: none */
    const char *rule;          /* text and place of the rule that set the scheme: "op:Conv (built-in:3)" */
} oct_policy_row;

typedef struct oct_policy oct_policy;

/* The table's word for a type of activations: "u8", "s8", "u16", "s16". */
const char *oct_policy_activations(oct_dtype t);

/* In a reason that begins with a rule and its place, as oct_policy_row.rule does, the place, "built-in:3)..."; NULL: it begins with no rule. */
const char *oct_policy_place(const char *reason);
/* The built-in table (share/policy.txt), as text and parsed. */
const char *oct_policy_builtin(void);
/* The built-in rules, then those of the file (NULL: none). OCT_EMALFORMED with file, line, column and the reason. */
oct_status oct_policy_create(const char *file, oct_policy **p, oct_err *err);
/* Adds rules from text; label names it in messages. */
oct_status oct_policy_add(oct_policy *p, const char *text, const char *label, oct_err *err);
/* Adds a rule as a command line has it, 'MATCH=COLUMNS', the number-th: the columns follow the first '=' behind which a scheme or a '-' stands. Faults
 * are at "<label>:<number>:<column>". */
oct_status oct_policy_set(oct_policy *p, const char *text, const char *label, size_t number, oct_err *err);
void oct_policy_destroy(oct_policy *p);

/* What rules may ask for besides the node itself. */
typedef struct oct_policy_facts {
    const char *path;       /* the node's name behind the path to its graph ("If_3/then_branch/conv"), which names fit as well; NULL: there is none */
    const oct_calib *calib; /* statistics, or NULL */
    int64_t macs;           /* of the whole model; 0: unknown */
    bool late;              /* rules that are late hold */
} oct_policy_facts;

/* The row for a node. Unmatched nodes: float. facts NULL: none are known. */
void oct_policy_match(const oct_policy *p, const oct_graph *g, int node, const oct_policy_facts *facts, oct_policy_row *row);
/* The place of a rule that asks for what statistics tell; NULL: none does. */
const char *oct_policy_measured(const oct_policy *p);

/* The observer that rules name for a value that no integer layer makes; .observer NULL: none. late: those that are late, too. */
oct_observer_spec oct_policy_observer_of(const oct_policy *p, const char *value, bool late);
/* Whether a rule waits for statistics: it is late, or asks for what they tell. */
bool oct_policy_waits(const oct_policy *p);

/* Whether a rule sets this scheme. */
bool oct_policy_uses(const oct_policy *p, oct_scheme s);
/* Whether a rule may ask for weights in blocks of a product of g: rules of the scheme weight-only do, but those by the names of other nodes, as of a Gather
 * whose table has a scale a row. */
bool oct_policy_asks_blocks(const oct_policy *p, const oct_graph *g);
/* Whether some rule asks for activations of 16 bits. */
bool oct_policy_uses_16_bits(const oct_policy *p);

/* Notes which of the names and operator types that rules ask for are in a graph, nested ones included. For the model as it is loaded and as it
 * is quantized: passes take nodes away and add others. */
oct_status oct_policy_note(oct_policy *p, const oct_graph *g, oct_err *err);
/* Of what was noted: a name: pattern that no node has, or an op: type that is in no graph and that ONNX and Octet do not know, is a mistake:
 * OCT_EUSAGE with its place and the nearest names of g. fn is told of operator types that exist but were in no graph, as in a table for many
 * models. The built-in rules are not asked. */
oct_status oct_policy_check(const oct_policy *p, const oct_graph *g, void (*fn)(void *arg, const char *place, const char *op), void *arg,
                            oct_err *err);
/* fn is told of value: patterns that were in no graph. */
void oct_policy_check_values(const oct_policy *p, void (*fn)(void *arg, const char *place, const char *pattern), void *arg);

#endif
