/* lib/quant/policy_int.h -- the inside of a policy, shared by its parser, its matcher and what writes one. */
#ifndef OCT_QUANT_POLICY_INT_H
#define OCT_QUANT_POLICY_INT_H

#include "ops/text/regex.h"
#include "quant/policy.h"

/* The columns of words; the observer's follows them. */
typedef enum oct_column { OCT_COLUMN_SCHEME, OCT_COLUMN_WEIGHTS, OCT_COLUMN_ACTIVATIONS, OCT_COLUMNS } oct_column;

/* A part of a column: what it says, and its words, each in the place of its value; n 0: the column has no such part. */
typedef struct oct_policy_part {
    const char *what;
    const char *const *words;
    size_t n;
} oct_policy_part;
enum { OCT_PARTS = 3 };
extern const oct_policy_part oct_policy_parts[OCT_COLUMNS][OCT_PARTS];
/* Weights that share a scale by a value of granularity; 0: those of a channel or a tensor. */
int oct_policy_block(int granularity);

typedef struct oct_match oct_match;

/* What follows the word of a term. */
typedef enum oct_operand_kind {
    OCT_TAKES_NOTHING,
    OCT_TAKES_TYPES,   /* operator types, with commas between them */
    OCT_TAKES_PATTERN, /* of names of nodes */
    OCT_TAKES_REGEX,   /* an expression, of names of nodes */
    OCT_TAKES_VALUES,  /* a pattern of names of values: no node fits */
    OCT_TAKES_NUMBER,  /* a whole number */
    OCT_TAKES_SHARE,   /* a whole number, or percent of the model's */
    OCT_TAKES_MEASURE  /* a number, of what only statistics tell */
} oct_operand_kind;

/* What is unknown fits neither a term nor its negation. */
typedef enum oct_policy_fit { OCT_RULE_FITS_NOT, OCT_RULE_FITS, OCT_RULE_FITS_UNKNOWN } oct_policy_fit;

/* A term of a match: its word, what the word is followed by, and whether a node fits (before a '!' is taken into account). */
typedef struct oct_term {
    const char *word;
    oct_operand_kind takes;
    oct_policy_fit (*fits)(const oct_match *m, const oct_graph *g, int node, const oct_policy_facts *f);
    int arg; /* of fits; of numbers: 1 above, -1 below, 0 equal */
} oct_term;
extern const char oct_term_late[]; /* the word of the term */
enum { OCT_TERMS = 22 };
extern const oct_term oct_terms[OCT_TERMS];

struct oct_match {
    const oct_term *term;
    bool negated;
    const char **names; /* operator types, or one pattern or expression */
    size_t n_names;
    oct_regex *regex;   /* that expression, or NULL */
    double number;
    bool percent;
    bool *found;        /* of each name: a graph had it (oct_policy_note) */
    const char *place;  /* where it stands: "rules.txt:3:4" */
};

/* policy_terms.c: whether a term is about names of nodes. */
bool oct_term_names(const oct_term *t);
/* Whether the name of a value fits the pattern. */
bool oct_match_has_value(const oct_match *m, const char *value);
/* Whether the i-th name of a match is that of the node, or of its operator; path may be NULL. */
bool oct_match_has_name(const oct_match *m, size_t i, const oct_graph *g, int node, const char *path);

typedef struct oct_rule {
    oct_match *match; /* all must hold */
    size_t n_match, cap_match;
    int value[OCT_COLUMNS][OCT_PARTS]; /* -1: inherited */
    oct_observer_spec observer;        /* .observer NULL: inherited */
    const char *text;                  /* as of oct_policy_row.rule */
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
