/* lib/eval/sets/judging.h -- how outputs are judged: a rule that says what they mean, and the truth about the samples.
 */
#ifndef OCT_EVAL_JUDGING_H
#define OCT_EVAL_JUDGING_H

#include "eval/sets/decode.h"
#include "eval/sets/truth.h"

struct oct_judging {
    const oct_decode *rule; /* NULL: nothing is declared. During an evaluation it is not NULL, because undeclared keys
                               have default values */
    const oct_truth *truth; /* NULL: there is nothing but labels */
    size_t classes;         /* values per sample of the first output when it is [N, classes], else 0 */
    bool labels;            /* samples have labels */
    bool compared;          /* there is a model besides the float one */
};

/* The kind of set that the metrics of this task need: as the rule says, else as the truth is, else classes. */
oct_set_kind oct_judging_kind(const oct_judging *j);

/* Finds an output among the n outputs of a sample; NULL: there is none, and OCT_EUSAGE lists those that there are.
 * Without a name or a pattern it is the first one with `rank` dimensions (0: any). */
oct_status oct_output_find(const oct_decode_output *p, int rank, const oct_set_tensor *out, size_t n,
                           const oct_set_tensor **t, oct_err *err);

/* Which built-in rules for detectors suit the outputs of a model. */
enum { OCT_GUESSES = 4 };

/* The names of built-in rules that judge boxes and whose patterns fit the n outputs (v may be NULL; -1: the dimension
 * is not known, and fits nothing). Only those whose patterns say most are listed; the shapes tell no more, so it is a
 * guess. Returns how many there are in rule[OCT_GUESSES]. */
size_t oct_rule_guess(const oct_set_tensor *out, size_t n, const char *rule[OCT_GUESSES]);

#endif
