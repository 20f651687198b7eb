/* lib/quant/policy/policy.h -- the policy table: which scheme, types and observer a node gets. It is plain text with
 * one rule in a line. In each column, the last rule that matches decides; '-' leaves the decision to earlier rules.
 *
 *     # match                 scheme   weights         activations     observer
 *     op:Conv                 static   s8/channel/sym  u8/tensor/asym  hist-mse
 *     op:MatMul & const-b     dynamic  s8/channel/sym  u8/tensor/asym  -
 *     name:head.*             float    -               -               -
 *
 * A match consists of terms, joined by '&'. A '!' in front of a term negates it. If a fact is unknown, such as the rank
 * of an unknown shape, neither the term nor its negation matches. The terms:
 *
 *     op:A,B,...  name:GLOB  name~REGEX         operator types; the whole name of the node (RE2's syntax)
 *     first  last  io  const-b  depthwise  any
 *     weights>N  weights<N                      number of weights: 10000, 10k, 2M
 *     rank>N  rank<N  rank=N                    of the first input
 *     macs>N  macs>P%  macs<                    multiply-accumulates of a run, or their share of the model's
 *     range>X  range<                           largest magnitude of the node's output, as samples or a table say
 *     sqnr<X  sqnr>                             dB of the output in 8 bits, with the range that hist-mse finds
 *     late                                      the rule holds only after statistics are gathered and ranges are chosen
 *     value:GLOB                                alone or with late: values that no integer layer computes, such as
 * inputs; the rule names their observer
 *
 * Late rules do not influence how the graph is prepared. So a table that lists decisions does not change what these
 * decisions depended on.
 *
 * Weights: s8, s7, u8 /channel|tensor /sym. For weight-only: s4, s8 /blockN /sym, or u4, u8 /blockN /asym, where N
 * values along k share a scale. Activations: u8, s8, u16, s16 /tensor /asym|sym. */
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

const char *oct_scheme_name(oct_scheme s); /* The name of a scheme: "auto", "static", "dynamic", "weight-only",
                                              "stored", "fp16", "bf16" or "float". */
/* Finds a scheme by its name. False: there is no such scheme. */
bool oct_scheme_parse(const char *text, oct_scheme *s);

static inline bool oct_scheme_is_half(oct_scheme s)
{
    return s == OCT_SCHEME_FP16 || s == OCT_SCHEME_BF16;
}

/* The type of weights. Quantized values of s8 are -127..127, of s7 -64..64 (stored as int8); u8 has the integers of s8
 * plus 128, with zero point 128. In blocks, all quantized values of 4 or 8 bits are used: u4 and u8 have a zero point
 * for each block, and s4 and s8 have the middle as zero point. */
typedef enum oct_weight_type {
    OCT_WEIGHT_S8,
    OCT_WEIGHT_S7,
    OCT_WEIGHT_U8,
    OCT_WEIGHT_S4,
    OCT_WEIGHT_U4,
    OCT_WEIGHT_COUNT
} oct_weight_type;

/* What the table says about one node. */
typedef struct oct_policy_row {
    oct_scheme scheme;
    oct_weight_type weights;
    bool per_channel;
    int block;                  /* how many weights share a scale; 0: no rule asks for blocks */
    oct_dtype activations;      /* OCT_U8, OCT_S8, OCT_U16 or OCT_S16 */
    bool symmetric;             /* activations */
    oct_observer_spec observer; /* .observer NULL: no rule names one, and the job chooses (quant/methods/tune.c) */
    bool asked;                 /* a rule of the user sets the scheme, so costs must not change it */
    bool named;       /* a rule of the user sets the scheme by the node's name, so mixed precision must not change it */
    bool typed;       /* a rule of the user sets the type of activations, so mixed precision must not widen them */
    bool types_asked; /* a rule of the user sets the type of activations */
    oct_dtype unmet;  /* the type that such a rule asks for, if the target does not take it and another stands for it
                         (job.c); else OCT_UNDEFINED */
    const char *rule; /* text and place of the rule that sets the scheme: "op:Conv (built-in:3)" */
    /* Rules of the user: those that set the type of activations and the observer, that whose observer --observer
     * replaces, and that whose scheme --scheme replaces (job.c). NULL: there is none. */
    const char *types_rule, *observer_rule, *observer_replaced, *scheme_replaced;
} oct_policy_row;

/* The label of the rule that --observer stands for. */
#define OCT_POLICY_OBSERVER "--observer"

typedef struct oct_policy oct_policy;

/* The table's name for a type of activations: "u8", "s8", "u16", "s16". */
const char *oct_policy_activations(oct_dtype t);

/* In a reason that begins with a rule and its place, as oct_policy_row.rule does: the place, "built-in:3)...". NULL:
 * the reason begins with no rule. */
const char *oct_policy_place(const char *reason);
/* The built-in table (share/policy.txt): its text, and the parsed policy. */
const char *oct_policy_builtin(void);
/* The built-in rules, followed by those of the file (NULL: none). OCT_EMALFORMED with file, line, column and the
 * reason. */
oct_status oct_policy_create(const char *file, oct_policy **p, oct_err *err);
/* Adds the rules of a text. label: its name in messages. */
oct_status oct_policy_add(oct_policy *p, const char *text, const char *label, oct_err *err);
/* Adds a rule in the form of the command line, 'MATCH=COLUMNS'; it is the rule with this number. The columns follow the
 * first '=' after which a scheme or
 * '-' stands. Errors name the place as "<label>:<number>:<column>". */
oct_status oct_policy_set(oct_policy *p, const char *text, const char *label, size_t number, oct_err *err);
void oct_policy_destroy(oct_policy *p);

/* What rules may ask about a node, in addition to the node itself. */
typedef struct oct_policy_facts {
    /* the node's name with the path to its graph in front ("If_3/then_branch/conv"), which patterns of names may match
     * too; NULL: there is none */
    const char *path;
    const oct_calib *calib; /* statistics of its values, or NULL */
    int64_t macs;           /* of the whole model; 0: unknown */
    bool late;              /* late rules apply too */
} oct_policy_facts;

/* The row for a node. A node that no rule matches stays float. facts NULL: nothing is known. */
void oct_policy_match(const oct_policy *p, const oct_graph *g, int node, const oct_policy_facts *facts,
                      oct_policy_row *row);
/* The place of a rule that needs statistics; NULL: there is none. */
const char *oct_policy_measured(const oct_policy *p);

/* The observer that rules name for a value that no integer layer computes; .observer NULL: none. late: late rules apply
 * too. */
oct_observer_spec oct_policy_observer_of(const oct_policy *p, const char *value, bool late);
/* Whether a rule must wait for statistics: it is late, or has a term about statistics. */
bool oct_policy_waits(const oct_policy *p);

/* Whether a rule sets this scheme. */
bool oct_policy_uses(const oct_policy *p, oct_scheme s);
/* Whether a rule may ask for weights in blocks for a product of g. Rules of the scheme weight-only do, except those
 * that name other nodes, such as a Gather whose table has a scale for each row. */
bool oct_policy_asks_blocks(const oct_policy *p, const oct_graph *g);
/* Whether a rule asks for 16-bit activations. */
bool oct_policy_uses_16_bits(const oct_policy *p);

/* Notes which names and operator types of the rules occur in a graph or its subgraphs. To be called for the model as it
 * is loaded and as it is quantized, because passes remove nodes and add others. */
oct_status oct_policy_note(oct_policy *p, const oct_graph *g, oct_err *err);
/* Checks what was noted. It is an error if no node has the name of a name: pattern, or if the type of an op: term is in
 * no graph and is unknown to ONNX and Octet: OCT_EUSAGE with the place, and the nearest names of g. fn is called for
 * operator types that exist but are in no graph, as is usual in a table for many models. The built-in rules are not
 * checked. */
oct_status oct_policy_check(const oct_policy *p, const oct_graph *g,
                            void (*fn)(void *arg, const char *place, const char *op), void *arg, oct_err *err);
/* Calls fn for value: patterns that match in no graph. */
void oct_policy_check_values(const oct_policy *p, void (*fn)(void *arg, const char *place, const char *pattern),
                             void *arg);
/* Writes term and a pattern that a name alone fits, such as "name:conv1" (policy_write.c). */
void oct_policy_put_name(oct_buf *b, const char *term, const char *name);

#endif
