/* lib/quant/policy_int.h -- the inside of a policy, shared by its parser, its matcher and what writes one. */
#ifndef OCT_QUANT_POLICY_INT_H
#define OCT_QUANT_POLICY_INT_H

#include "quant/policy.h"

/* Words of the columns; the place of each is the value of the field: oct_scheme, oct_weight_type, symmetric. */
extern const char *const oct_scheme_words[OCT_SCHEME_COUNT], *const oct_weight_words[OCT_WEIGHT_COUNT], *const oct_symmetry_words[2];
/* "u8" or "s8". */
const char *oct_activation_word(oct_dtype t);

typedef struct oct_match oct_match;

/* What follows the word of a term. */
typedef enum oct_operand_kind {
    OCT_TAKES_NOTHING,
    OCT_TAKES_TYPES,   /* operator types, with commas between them */
    OCT_TAKES_PATTERN, /* of names of nodes */
    OCT_TAKES_NUMBER
} oct_operand_kind;

/* A term of a match: its word, what the word is followed by, and whether a node fits (before a '!' is taken into account). */
typedef struct oct_term {
    const char *word;
    oct_operand_kind takes;
    bool (*fits)(const oct_match *m, const oct_graph *g, int node);
    int arg; /* of fits */
} oct_term;
enum { OCT_TERMS = 10 };
extern const oct_term oct_terms[OCT_TERMS];

struct oct_match {
    const oct_term *term;
    bool negated;
    const char **names; /* operator types, or one pattern */
    size_t n_names;
    int64_t number;
    bool *found;        /* of each name: a graph had it (oct_policy_note) */
    const char *place;  /* where it stands: "rules.txt:3:4" */
};

/* Which columns a rule sets; the others are inherited. */
enum {
    OCT_SET_SCHEME = 1,
    OCT_SET_WEIGHTS = 2,
    OCT_SET_PER = 4,
    OCT_SET_ACTIVATIONS = 8,
    OCT_SET_SYMMETRIC = 16,
    OCT_SET_OBSERVER = 32
};

typedef struct oct_rule {
    oct_match *match; /* all must hold */
    size_t n_match, cap_match;
    unsigned set;
    oct_policy_row row; /* row.rule: "op:Conv (built-in:3)" */
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
