/* lib/quant/policy_int.h -- the inside of a policy, shared by its parser and its matcher. */
#ifndef OCT_QUANT_POLICY_INT_H
#define OCT_QUANT_POLICY_INT_H

#include "quant/policy.h"

typedef enum oct_match_kind {
    OCT_MATCH_ANY,
    OCT_MATCH_OP,        /* text: one of `names`       */
    OCT_MATCH_NAME,      /* text: a pattern            */
    OCT_MATCH_FIRST,
    OCT_MATCH_LAST,
    OCT_MATCH_IO,
    OCT_MATCH_CONST_B,
    OCT_MATCH_DEPTHWISE,
    OCT_MATCH_MORE,      /* more weights than `number` */
    OCT_MATCH_FEWER
} oct_match_kind;

typedef struct oct_match {
    oct_match_kind kind;
    bool negated;
    const char *text;  /* the pattern of NAME */
    const char **names; /* of OP */
    size_t n_names;
    int64_t number;
    bool *found;        /* of NAME and of each name of OP: a graph had it (oct_policy_note) */
    const char *place;  /* where it stands: "rules.txt:3:4" */
} oct_match;

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

/* Whether name fits a pattern of *, ?, [a-z], [!a-z] and \ before a character that stands for itself. Linear memory,
 * at most |name| * |pattern| steps. */
bool oct_glob(const char *pattern, const char *name);

/* policy_parse.c: appends the rules of a text. */
oct_status oct_policy_parse(oct_policy *p, const char *text, const char *label, bool builtin, oct_err *err);

#endif
