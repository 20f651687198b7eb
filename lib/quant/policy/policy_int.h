/* lib/quant/policy/policy_int.h -- internals of a policy, shared by its parser, its matcher and its writer. */
#ifndef OCT_QUANT_POLICY_INT_H
#define OCT_QUANT_POLICY_INT_H

#include "ops/text/regex.h"
#include "quant/policy/policy.h"

/* The columns that consist of words. The observer's column follows them. */
typedef enum oct_column { OCT_COLUMN_SCHEME, OCT_COLUMN_WEIGHTS, OCT_COLUMN_ACTIVATIONS, OCT_COLUMNS } oct_column;

/* A part of a column: what it sets, and its words, at the index of their values. n is 0 if the column has no such
 * part. */
typedef struct oct_policy_part {
    const char *what;
    const char *const *words;
    size_t n;
} oct_policy_part;
enum { OCT_PARTS = 3 };
extern const oct_policy_part oct_policy_parts[OCT_COLUMNS][OCT_PARTS];
/* By value of the granularity: how many weights share a scale; 0: all of a channel or of the tensor. */
int oct_policy_block(int granularity);

typedef struct oct_match oct_match;

/* What follows the word of a term. */
typedef enum oct_operand_kind {
    OCT_TAKES_NOTHING,
    OCT_TAKES_TYPES,   /* operator types, separated by commas */
    OCT_TAKES_PATTERN, /* a pattern of node names */
    OCT_TAKES_REGEX,   /* a regular expression for node names */
    OCT_TAKES_VALUES,  /* a pattern of value names; no node matches it */
    OCT_TAKES_NUMBER,  /* an integer */
    OCT_TAKES_SHARE,   /* an integer, or a percentage of the model's total */
    OCT_TAKES_MEASURE  /* a number that is compared with statistics */
} oct_operand_kind;

/* The answer of a term about a node. If the fact is unknown, neither the term nor its negation matches. */
typedef enum oct_policy_fit { OCT_RULE_FITS_NOT, OCT_RULE_FITS, OCT_RULE_FITS_UNKNOWN } oct_policy_fit;

/* A kind of term: its word, what follows the word, and whether a node matches it (before a '!' is applied). */
typedef struct oct_term {
    const char *word;
    oct_operand_kind takes;
    oct_policy_fit (*fits)(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f);
    int arg; /* the answer of `fits` that matches; for numbers: 1 above, -1 below, 0 equal */
} oct_term;
extern const char oct_term_late[]; /* the word of the term */
enum { OCT_TERMS = 22 };
extern const oct_term oct_terms[OCT_TERMS];

struct oct_match {
    const oct_term *term;
    bool negated;
    const char **names; /* operator types, or one pattern or expression */
    size_t n_names;
    oct_regex *regex; /* the compiled expression, or NULL */
    double number;
    bool percent;
    bool *found;       /* by name: it occurs in a graph (oct_policy_note) */
    const char *place; /* the place of the term: "rules.txt:3:4" */
};

/* policy_terms.c: whether a term is about names of nodes. */
bool oct_term_names(const oct_term *t);
/* Whether the name of a value matches the pattern. */
bool oct_match_has_value(const oct_match *m, const char *value);
/* Whether the i-th name of a term is that of the node, or of its operator. path may be NULL. */
bool oct_match_has_name(const oct_match *m, size_t i, const oct_graph *g, int node, const char *path);

typedef struct oct_rule {
    oct_match *match; /* all of them must match */
    size_t n_match, cap_match;
    int value[OCT_COLUMNS][OCT_PARTS]; /* -1: inherited from earlier rules */
    oct_observer_spec observer;        /* .observer NULL: inherited from earlier rules */
    const char *text;                  /* as in oct_policy_row.rule */
    bool builtin;
} oct_rule;

struct oct_policy {
    oct_arena *arena;
    oct_rule *rule;
    size_t n_rule, cap_rule;
};

/* policy_parse.c: appends the rules of a text. */
oct_status oct_policy_parse(oct_policy *p, const char *text, const char *label, bool builtin, oct_err *err);

#endif
