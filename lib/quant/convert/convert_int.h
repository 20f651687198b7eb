/* lib/quant/convert/convert_int.h -- internals of a conversion that its steps and the methods share. */
#ifndef OCT_QUANT_CONVERT_INT_H
#define OCT_QUANT_CONVERT_INT_H

#include "quant/inputs/calibrate.h"
#include "quant/convert/convert.h"

/* conversion.c */
/* Sends one line to the listener; level as in oct_convert_listener. Warnings are also kept in the record. */
void oct_conversion_say(oct_conversion *c, int level, const char *fmt, ...) OCT_PRINTF(3, 4);
/* Shows the listener a graph. */
static inline void oct_conversion_show(const oct_conversion *c, const char *step, const oct_graph *g)
{
    if (c->o.listener.graph)
        c->o.listener.graph(c->o.listener.graph_arg, step, g);
}
/* Decides the job anew if its settings have changed. Call it before using decisions. */
oct_status oct_conversion_settle(oct_conversion *c, oct_err *err);
/* Opens the job: at the beginning, and again after a method of step `graph` has changed the graph. */
oct_status oct_conversion_reopen(oct_conversion *c, oct_err *err);
/* given_weights.c: writes weights that came quantized in the type that a rule asks for. */
oct_status oct_conversion_give_weights(oct_conversion *c, oct_err *err);
/* Whether a method of a step is switched on. */
static inline bool oct_conversion_may_run(const oct_conversion *c, oct_method_step step)
{
    bool any = false;
    for (size_t i = 0; i < c->n_known; i++)
        any |= c->o.methods.on[i] && c->known[i]->step == step;
    return any;
}
/* Call it after changing settings of the job: the job must then be decided anew. */
static inline void oct_conversion_changed(oct_conversion *c)
{
    c->decided = false;
    c->revision++;
}
/* Call it after changing quantized values of weights or biases in place: the decisions remain, but what was derived
 * from them is out of date. */
static inline void oct_conversion_edited(oct_conversion *c)
{
    c->revision++;
}

/* types_of_ends.c: gives inputs and outputs their requested types, in the model as it will be written. */
oct_status oct_conversion_close_ends(oct_conversion *c, oct_err *err);

/* Folding of preprocessing that changes how layers are rounded. Two conversions are compared; each has one of these. */
typedef struct oct_fold {
    oct_model *loaded; /* the model that was taken; c->m is a copy of it, which is owned */
    oct_steps *asked;  /* [n_input]: preprocessing before anything was folded */
    size_t n_input;
    const oct_given_params *given; /* [n_given]: parameters of inputs before anything was folded */
    size_t n_given;
    bool unfolded; /* nodes in front of the model normalise instead */
    bool trial;    /* this conversion is made for db alone, and ends with it */
    /* [n_db], by output: the SQNR that the methods reached on the samples that judge, in this conversion and in the
     * other one; NULL: not measured */
    double *db, *other_db;
    size_t n_db, worst;       /* worst: the output that loses most by folding */
    const char *worst_output; /* its name */
    bool lost;                /* folding costs an output more than it may: this conversion was given up */
    bool over;                /* nothing more of this conversion is wanted */
} oct_fold;
/* fold_trial.c */
/* Before inputs get their types: has c change a copy of the model, and keeps what another conversion begins with. */
oct_status oct_fold_begin(oct_conversion *c, const oct_steps *steps, oct_err *err);
void oct_fold_end(oct_conversion *c); /* releases the copy */
/* After the methods have decided: measures db, if the conversions are compared, and sets `lost` and `over`. */
oct_status oct_fold_try(oct_conversion *c, oct_err *err);

/* convert.c: oct_conversion_decide without a comparison. */
oct_status oct_conversion_run(oct_conversion *c, oct_source *src, oct_err *err);
/* Begins anew, as after oct_conversion_open. What is in c->arena stays there. */
oct_status oct_conversion_restart(oct_conversion *c, const oct_convert_opts *o, oct_err *err);

/* statistics.c */
/* Makes an empty table, and chooses the samples that will fill it. */
oct_status oct_statistics_begin(oct_conversion *c, oct_err *err);
/* Reads all chosen samples once. Fills the table with what the job asks for, and if something will be measured, also a
 * table for each half of the samples. */
oct_status oct_statistics_gather(oct_conversion *c, oct_err *err);
/* Finds the shapes that inputs have in a sample. If these are not what was assumed for dimensions that the model leaves
 * open, the job is opened anew with them. All chosen samples are picked afterwards. */
oct_status oct_statistics_see_shapes(oct_conversion *c, oct_err *err);
/* Gathers statistics of a few values over a few samples of the half that chooses, into a new table. The caller owns the
 * table, also after a failure. */
typedef struct oct_few {
    const char *const *values; /* [n] */
    const int *axes;           /* [n], as oct_calibrate_opts has them */
    size_t n;
    bool channels; /* only moments, of all positions */
    int64_t all;   /* up to so many samples of both halves; 0: a few of the half that chooses */
} oct_few;
oct_status oct_statistics_few(const oct_conversion *c, const oct_few *what, oct_calib **into, oct_err *err);
/* Picks samples of half h (0: the half that chooses, 1: the half that judges) among the chosen samples, at most `most`
 * (0: all). */
oct_pick oct_pick_half(const oct_conversion *c, int h, int64_t most);
/* Warns of ranges that come from a handful of samples. */
void oct_statistics_warn_few(oct_conversion *c);
/* Warns of what a table lacks for 16-bit floats. */
void oct_statistics_warn(oct_conversion *c);
/* The reason why nothing can be measured by running the model, although there are samples; NULL: it can. */
const char *oct_no_measuring(const oct_conversion *c);
/* The same for measurements of whatever is rounded. */
const char *oct_no_simulating(const oct_conversion *c);
/* The same for measurements of weights alone, which need no ranges. */
const char *oct_no_running(const oct_conversion *c);
extern const char oct_no_ranges[]; /* one of these reasons: statistics do not choose anything */
/* How many samples to use for measurements on the whole model. Small models get more, because samples cost little there
 * and each says less. */
int64_t oct_measured_samples(const oct_conversion *c);

/* half_trial.c: runs the decided graph on a few samples. Nodes whose float16 results are infinite or NaN, while they
 * are finite in float32, stay float32. */
oct_status oct_half_try(oct_conversion *c, oct_err *err);

/* dynamic_trial.c: measures the scheme dynamic in place of static, where the target has it for most of the model, and
 * sets c->dynamic. Call it when all is decided; decisions are then as before. */
oct_status oct_dynamic_try(oct_conversion *c, oct_err *err);
/* Bytes of the weights as they are placed, without scales. */
double oct_weight_bytes(const oct_qjob *j);
/* Bytes of a file with its decisions, as far as the weights of layers tell; 0: they do not. */
double oct_size_with(const oct_conversion *c, const oct_qjob *j);
/* Adds what a job and its bodies are expected to take. */
void oct_add_expected(const oct_qjob *j, oct_target_times *sum);

/* finer_trial.c: leaves more layers float where a notice or warning of loss would follow, and little time is lost. Sets
 * c->finer. */
oct_status oct_finer_try(oct_conversion *c, oct_err *err);

/* simulate.c: frees the memory of the simulation. If a method asks for it later, it is made anew. */
void oct_conversion_end_sim(oct_conversion *c);

/* pinned.c: finds how the ranges that the table fixes were used, reports it, and keeps it in c->pinned. */
oct_status oct_conversion_find_pinned(oct_conversion *c, oct_err *err);

/* denormal_layers.c: fills c->denormal after everything is decided. O(number of weights). */
oct_status oct_conversion_find_denormals(oct_conversion *c, oct_err *err);

/* causes.c: fills c->causes after everything is decided, from new measurements or from those of a method. */
oct_status oct_conversion_find_causes(oct_conversion *c, oct_err *err);
/* Measures the cost of all values and layers with their current decisions. Sites that cause less than `least` (a share
 * of the noise of their kind) are only counted. Results are kept in the file that the options name, and taken from
 * there if they are known. *out is in c's arena. */
struct oct_sensitivity;
oct_status oct_conversion_sensitivity(oct_conversion *c, double least, struct oct_sensitivity *out, oct_err *err);
/* Adds the layers in bodies, each alone, to what that has measured. */
oct_status oct_conversion_sensitivity_in_bodies(oct_conversion *c, double least, struct oct_sensitivity *out,
                                                oct_err *err);
/* loss.c */
/* Looks for a few layers whose values and weights cause most of the loss. */
oct_status oct_conversion_find_culprits(oct_conversion *c, const struct oct_sensitivity *s, oct_err *err);
/* Warns of what a judged conversion has lost, and sets c->lossy. */
void oct_conversion_warn_of_loss(oct_conversion *c);
/* loss.c: whether methods for static layers have scaled the graph, which a conversion by another scheme does
 * not begin with. */
bool oct_conversion_is_scaled(const oct_conversion *c);
/* Whether there is a loss of which it warns with what helps, and whether what it would name was seen to help. */
bool oct_conversion_has_lost(const oct_conversion *c);
bool oct_cure_helps(const oct_conversion *c);
/* What an SQNR in dB and the score that counts (NULL: there is none) say of a result. */
typedef enum oct_loss {
    OCT_LOSS_NONE,
    OCT_LOSS_SOME, /* nothing that is worth a warning, but the outputs are numbers, which some may want more exact, or
                      classes of which few samples say little */
    OCT_LOSS_MUCH  /* a score is worse, or the outputs are broken or of little use */
} oct_loss;
oct_loss oct_loss_of(double sqnr, const oct_eval_score *score, bool broken);
bool oct_conversion_is_coarse(const oct_conversion *c);
/* Whether the whole interval of a score lies where it is a loss. */
bool oct_score_is_worse(const oct_eval_score *x);
/* judge.c: compares the result with the float model, for verdict.c, and holds the goals against that. c->verdict is
 * NULL where nothing could be compared; else *judged: the samples. */
oct_status oct_conversion_compare_result(oct_conversion *c, const char *output, oct_pick *judged, oct_err *err);
oct_status oct_conversion_hold_goals(oct_conversion *c, oct_err *err);
/* cure_trial.c: tries schemes for such a warning, on the samples of pick. Sets c->tried. */
oct_status oct_cures_try(oct_conversion *c, const oct_pick *pick, oct_err *err);
/* judge.c: the score that counts among those of a comparison; NULL: there is none. */
const oct_eval_score *oct_conversion_score_of(const oct_conversion *c, const oct_eval_result *r);

/* said.c: warns of all that lint finds in the result for its target, and sets c->lossy if there is something. Call it
 * when the model is made. */
oct_status oct_conversion_find_faults(oct_conversion *c, oct_err *err);
/* in_onnxruntime.c: estimates how long the result takes there. Call it when the graph is as it will be written. */
oct_status oct_conversion_estimate(oct_conversion *c, oct_err *err);

/* chosen_samples.c: decides, before any sample is read, whether samples are kept aside. calibrates: whether statistics
 * are taken from the samples. */
void oct_conversion_keep_aside(oct_conversion *c, bool calibrates);
/* Whether the samples that judge form pairs. Such samples are not divided. */
bool oct_conversion_in_pairs(const oct_conversion *c);
/* The samples that judge float graph fl if no goal is set: those kept aside, if there are any. */
oct_pick oct_pick_judging(const oct_conversion *c, const oct_graph *fl);
/* Outputs of the float model that evaluations of this conversion share, at most 32 MB of them; NULL: `fl` is another
 * graph. They last until the graph changes (oct_conversion_reopen). */
oct_status oct_conversion_kept(oct_conversion *c, const oct_graph *fl, oct_kept_outputs **kept, oct_err *err);
/* Compares two graphs on the samples of a pick, by errors alone. The caller frees *r, and picks all again. */
oct_status oct_conversion_errors(oct_conversion *c, const oct_eval_model models[2], const oct_pick *pick,
                                 oct_eval_result **r, oct_err *err);
/* The SQNR of the outputs with the current decisions, as the result is judged: of what is named to a user. The
 * simulation sees other samples, and values before functions like Softmax. NAN: they cannot be compared. All samples
 * are picked afterwards. */
oct_status oct_conversion_at_outputs(oct_conversion *c, double *sqnr, oct_err *err);
/* How many samples suffice to judge a graph; 0: all. */
int64_t oct_enough_to_judge(const oct_graph *g);
/* The reason why the result cannot be compared with float graph fl over the samples; NULL: it can. */
const char *oct_conversion_unjudged(const oct_conversion *c, const oct_graph *fl);
/* Checks on one sample that the metrics that count, and those of the goals, are defined for the outputs: before the
 * work, not after it. OCT_EUSAGE: one is not. All chosen samples are picked afterwards. */
oct_status oct_conversion_check_metrics(oct_conversion *c, oct_err *err);
/* A result for an evaluation, which is judged as the runtime of the options computes it. */
oct_eval_model oct_conversion_result(const oct_conversion *c, const char *name, const oct_graph *g);
/* Compares two graphs over the picked samples, by the metrics that count and those of the goals. timed: also compare
 * their speed, as the final verdict does. */
oct_status oct_conversion_compare(oct_conversion *c, const oct_eval_model models[2], bool timed, oct_eval_result **r,
                                  oct_err *err);
/* Finds the score of each goal, in the order of the goals, among those of the second model of a comparison. Checks the
 * limits. OCT_EUSAGE: there is no such score. */
oct_status oct_goal_scores(const oct_conversion *c, const oct_eval_result *r, oct_eval_score *score, oct_err *err);

/* size_choice.c: chooses schemes for o.size, after the usual choice of schemes, and sets c->size. */
oct_status oct_size_choose(oct_conversion *c, oct_err *err);
/* Called when everything is decided: computes the size of the file. If it exceeds the limit, schemes are chosen anew
 * for a smaller size. */
oct_status oct_size_hold(oct_conversion *c, oct_err *err);

/* conversion_save.c: how many bytes the file takes with the current decisions. */
oct_status oct_conversion_size(oct_conversion *c, uint64_t *bytes, oct_err *err);

/* max_drop.c */
/* Called between the choice of schemes and the rounding of weights: keeps the decisions with which trials begin, if
 * there may be trials. */
oct_status oct_goal_prepare(oct_conversion *c, oct_err *err);
/* If the decisions miss a goal, leaves as few layers float as are needed to reach it. Trials are compared on the
 * samples that judge. Measured sensitivity orders the layers; doubling and bisection find how many are needed. If each
 * half of the samples is large enough, one half chooses and the other judges. Fills c->trials. The best trial becomes
 * the result, even if it misses the goal. */
oct_status oct_goal_reach(oct_conversion *c, oct_err *err);

#endif
