/* lib/eval/judging.h -- by what outputs are judged: a rule that says what they mean, and what is true of the samples. */
#ifndef OCT_EVAL_JUDGING_H
#define OCT_EVAL_JUDGING_H

#include "eval/decode.h"
#include "eval/truth.h"

struct oct_judging {
    const oct_decode *rule; /* NULL: nothing is declared. Never while an evaluation runs: what is not declared has its defaults */
    const oct_truth *truth; /* NULL: none but labels */
    size_t classes;         /* values per sample of the first output when it is [N, classes], else 0 */
    bool labels;            /* samples have class numbers */
    bool compared;          /* there is a model besides the float one */
};

/* The kind of set that metrics of this task are of: what the rule says, else what the truth is of, else classes. */
oct_set_kind oct_judging_kind(const oct_judging *j);

/* The output of a place among n of a sample; NULL: there is none, which OCT_EUSAGE names with those that there are. Without a name or pattern the
 * first of `rank` dimensions (0: of any). */
oct_status oct_output_find(const oct_decode_output *p, int rank, const oct_set_tensor *out, size_t n, const oct_set_tensor **t, oct_err *err);
bool oct_output_fits(const oct_decode_output *p, const oct_set_tensor *t);

#endif
