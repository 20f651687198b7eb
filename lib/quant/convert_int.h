/* lib/quant/convert_int.h -- the inside of a conversion: what its steps and the methods share. */
#ifndef OCT_QUANT_CONVERT_INT_H
#define OCT_QUANT_CONVERT_INT_H

#include "quant/calibrate.h"
#include "quant/convert.h"

/* convert.c */
/* One line to the listener; level as in oct_convert_listener. Warnings are kept in the record too. */
void oct_conversion_say(oct_conversion *c, int level, const char *fmt, ...) OCT_PRINTF(3, 4);
/* Sees that the job is decided as it is set: before decisions are looked at. */
oct_status oct_conversion_settle(oct_conversion *c, oct_err *err);
/* Makes the job, at first and again after a method of step `graph` has changed the graph. */
oct_status oct_conversion_reopen(oct_conversion *c, oct_err *err);
/* Runs the methods of a step. */
oct_status oct_conversion_run_step(oct_conversion *c, oct_method_step step, oct_err *err);
/* Settings of the job were changed: it is to be decided anew. */
static inline void oct_conversion_changed(oct_conversion *c)
{
    c->decided = false;
    c->revision++;
}
/* Quantized values of weights or biases were changed in their place: decisions stay, but what was made of them does not. */
static inline void oct_conversion_edited(oct_conversion *c)
{
    c->revision++;
}

/* types_of_ends.c: gives inputs and outputs their types, in the model as it will be written. */
oct_status oct_conversion_close_ends(oct_conversion *c, oct_err *err);
/* fold_trial.c: once the methods have decided, fills methods_db where that is wanted, and sets fold_lost. */
oct_status oct_fold_try(oct_conversion *c, oct_err *err);

/* statistics.c */
/* An empty table, and which samples fill it. */
oct_status oct_statistics_begin(oct_conversion *c, oct_err *err);
/* A pass over all samples that fills the table with what the job wants, and tables of their halves where something will be measured. */
oct_status oct_statistics_gather(oct_conversion *c, oct_err *err);
/* The same of some values over a few samples of the half that chooses, into a new table, which is the caller's also after a failure. */
typedef struct oct_few {
    const char *const *values; /* [n] */
    const int *axes;           /* [n], as oct_calibrate_opts has them */
    size_t n;
    bool channels;             /* moments of all positions alone */
} oct_few;
oct_status oct_statistics_few(const oct_conversion *c, const oct_few *what, oct_calib **into, oct_err *err);
/* The samples of half h, at most so many (0: all), of those that are chosen. */
oct_pick oct_pick_half(const oct_conversion *c, int h, int64_t most);
/* Says what a table lacks for 16-bit floats. */
void oct_statistics_warn(oct_conversion *c);
/* Why nothing can be measured by running the model on samples that are there; NULL: it can. */
const char *oct_no_measuring(const oct_conversion *c);
/* The same of weights alone, for which nothing has a range. */
const char *oct_no_running(const oct_conversion *c);
extern const char oct_no_ranges[]; /* one such reason: statistics choose nothing */
/* Samples for what is measured on the whole model: more for small models, where they cost little and each tells less. */
int64_t oct_measured_samples(const oct_conversion *c);

/* half_trial.c: runs the decided graph on a few samples; what makes values in float16 that are infinite or NaN there and finite in float stays
 * float32. */
oct_status oct_half_try(oct_conversion *c, oct_err *err);

/* simulate.c: gives back the memory of the simulation; one that is asked for again is made anew. */
void oct_conversion_end_sim(oct_conversion *c);

/* pinned.c: what became of ranges that the table fixes, said and kept in c->pinned. */
oct_status oct_conversion_find_pinned(oct_conversion *c, oct_err *err);

/* denormal_layers.c: fills c->denormal once everything is decided. O(weights). */
oct_status oct_conversion_find_denormals(oct_conversion *c, oct_err *err);

/* causes.c: fills c->causes once everything is decided, from new measurements or from those of a method. */
oct_status oct_conversion_find_causes(oct_conversion *c, oct_err *err);
/* Measures what all values and layers cost that are decided now (of sites below `least`, a share of the noise of their kind, only that they are), and
 * keeps it in the file of the options, or takes it from there. In c's arena. */
struct oct_sensitivity;
oct_status oct_conversion_sensitivity(oct_conversion *c, double least, struct oct_sensitivity *out, oct_err *err);
/* loss.c */
/* Looks for few layers whose values and weights cause most of the loss. */
oct_status oct_conversion_find_culprits(oct_conversion *c, const struct oct_sensitivity *s, oct_err *err);
/* Warns of what a judged conversion has lost, and sets c->lossy. */
void oct_conversion_warn_of_loss(oct_conversion *c);

/* judge.c: decides whether samples are kept aside, before any are read. calibrates: whether statistics are asked of them. */
void oct_conversion_keep_aside(oct_conversion *c, bool calibrates);
/* Whether the samples that judge are pairs, which are not divided. */
bool oct_conversion_in_pairs(const oct_conversion *c);
/* The samples that judge where no goal is set, for float graph fl: those kept aside, if there are any. */
oct_pick oct_pick_judging(const oct_conversion *c, const oct_graph *fl);
/* Why the result cannot be compared with the float graph fl over the samples; NULL: it can. */
const char *oct_conversion_unjudged(const oct_conversion *c, const oct_graph *fl);
/* Compares two graphs by the metrics that count and those of the goals, over what the source has picked. timed: as the judge does. */
oct_status oct_conversion_compare(oct_conversion *c, const oct_eval_model models[2], bool timed, oct_eval_result **r, oct_err *err);
/* Finds the score of each goal among those of a comparison's second model, in its order; checks the limits. OCT_EUSAGE: it has none. */
oct_status oct_goal_scores(const oct_conversion *c, const oct_eval_result *r, oct_eval_score *score, oct_err *err);

/* size_choice.c. Behind the choice of schemes: chooses them for o.size, and sets c->size. */
oct_status oct_size_choose(oct_conversion *c, oct_err *err);
/* When all is decided: the file that will be written is counted, and where it is larger than it may be schemes are chosen for less. */
oct_status oct_size_hold(oct_conversion *c, oct_err *err);

/* conversion_save.c: what the metadata will say; bytes that the file takes as it is decided now. */
oct_status oct_conversion_size(oct_conversion *c, uint64_t *bytes, oct_err *err);

/* goal.c */
/* Between the choice of schemes and the rounding of weights: keeps what trials begin with, where there may be any. */
oct_status oct_goal_prepare(oct_conversion *c, oct_err *err);
/* Of decisions that miss a goal, leaves float as few layers as reach it, by trials on the samples that judge: measured sensitivity orders
 * them, doubling and bisection find how many. Where each half of the samples can decide, one half chooses and the other judges. Fills
 * c->trials; the best of them is the result, whether it has the goal or not. */
oct_status oct_goal_reach(oct_conversion *c, oct_err *err);

#endif
