/* lib/api/choices.h -- what there is to choose from, for options and --help. Where no other file is named, the
 * functions are those of the layers that they belong to, whose headers say more of them; choices.c sees that they are
 * declared alike. */
#ifndef OCT_API_CHOICES_H
#define OCT_API_CHOICES_H

#include "base/status.h"

/* Name i and its summary, where it has one; NULL: there are no more. Schemes and passes: choices.c. */
const char *oct_metric_names(size_t i, const char **summary);
const char *oct_decode_builtin(size_t i, const char **summary);
const char *oct_target_builtin(size_t i, const char **summary);
const char *oct_choice_scheme(size_t i, const char **summary);
const char *oct_choice_pass(size_t i, const char **summary);
/* All in one text: "minmax, avg-minmax, ..." */
const char *oct_observer_names(void);
const char *oct_encoding_form_names(void);
/* Whether a name is one of files with samples. */
bool oct_looks_like_data(const char *path);

/* The target that is also called so, and other names of targets. */
const char *oct_target_called(const char *word);
bool oct_target_alias(size_t i, char *dst, size_t size);
/* choices.c: how a built-in target was proved, in words. */
oct_status oct_choice_target_proof(const char *name, const char **proof, oct_err *err);

/* choices.c: method i; false: there are no more. */
typedef struct oct_choice_method {
    const char *name, *summary, *step, *needs;
    bool by_default, high; /* high: it takes so long that it is used only with --effort high */
} oct_choice_method;
bool oct_choice_method_at(size_t i, oct_choice_method *m);

/* The built-in policy table. */
const char *oct_policy_builtin(void);
/* "95%" or "0.95" of --min-integer and the like. */
oct_status oct_share_parse(const char *option, const char *of, const char *text, double *share, oct_err *err);

#endif
