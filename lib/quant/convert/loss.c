/* Warns of every kind of loss: scores that chance does not explain, outputs that differ much from the float model's,
 * and a few layers that cause most of the loss. */
#include "quant/convert/convert_int.h"

#include "base/number_text.h"
#include "quant/job/placed.h"
#include "quant/simulate/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOOD_DB 30         /* dB at the outputs: a loss above this is not worth a warning */
#define MUCH_APART_DB 3    /* dB between the simulation and the result */
#define MUCH_DB 6          /* dB: a few layers must cause at least so much loss */
#define LEAST_SHARE 0.08   /* share of the loss: a site that causes less is no suspect */
#define LIKELY_SHARE 0.5   /* share of the loss of all suspects: if it is smaller, they are not measured */
#define FEW 0.03           /* share of the layers with weights that counts as few */
#define CLOSE_CALLS 0.1    /* share of samples whose class may change without being counted as a loss */
enum { POOR_DB = 12 };     /* dB at the outputs: the noise has a quarter of their amplitude */
enum { USEFUL_DB = 20 };   /* dB: below this, the loss is said with what helps, but it fails nothing */
#define NEAR_DB 40         /* dB: above this, an option that gains more is not worth a word unless a score has lost */
#define FINE_DB 46         /* dB: an error of half a percent, below which numbers that no score judges may want more */
#define A_POINT 0.01       /* a share of the samples: an interval that allows a larger loss is said */
#define FIVE_POINTS 0.05   /* the same for samples without labels, where close decisions change in both directions */
enum { SAME_PERCENT = 2 }; /* files that differ by less are said to be as large */
enum { LEAST_FEW = 2 };    /* layers: the one that computes a value, and one that reads it */

/* ---- a few layers ---- */

typedef struct suspects {
    const oct_qjob *j;
    bool *floats; /* by node: it would be float */
    bool *rounds; /* by node: its weights stay rounded */
    bool *value;  /* by value: it stays rounded */
    size_t n;     /* how many layers with weights would be float */
    double noise; /* the noise that would be removed, if errors are independent */
} suspects;

static bool would_be_float(const suspects *x, const oct_site *s, int id)
{
    return (oct_is_static(x->j, id) || oct_is_dynamic(x->j, id)) && !x->floats[id] &&
           (s->node == id || (s->value >= 0 && oct_site_touches(x->j, id, s->value)));
}

/* Adds the layers around a site to the suspects, if they are few enough. */
static void suspect(suspects *x, const oct_site *s, size_t most)
{
    size_t more = 0;
    for (size_t i = 0; i < x->j->n_layer; i++)
        more += (oct_is_product(x->j, x->j->layer[i]) || oct_is_dynamic(x->j, x->j->layer[i])) &&
                would_be_float(x, s, x->j->layer[i]);
    if (x->n + more > most)
        return;
    for (size_t i = 0; i < x->j->n_layer; i++) {
        const int id = x->j->layer[i];
        if (would_be_float(x, s, id)) {
            x->floats[id] = true;
            x->rounds[id] = false;
        }
    }
    if (s->value >= 0)
        x->value[s->value] = false;
    x->n += more;
    x->noise += s->noise;
}

static size_t count_products(const oct_qjob *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        n += oct_op_of(j->g, j->layer[i])->quant == OCT_QUANT_WEIGHTED || oct_is_dynamic_recurrent(j, j->layer[i]);
    return n;
}

static void suspect_worst(suspects *x, const oct_sensitivity *s)
{
    const size_t few = (size_t)ceil(FEW * (double)count_products(x->j)), most = few < LEAST_FEW ? LEAST_FEW : few;
    for (size_t v = 0; v < x->j->n_values; v++)
        x->value[v] = true;
    for (size_t id = 0; id < x->j->n_nodes; id++)
        x->rounds[id] = true;
    for (size_t i = 0; i < s->n; i++)
        if (!s->site[i].body && oct_site_counts(x->j, &s->site[i]) &&
            s->site[i].noise >= LEAST_SHARE * oct_sensitivity_left(x->j, s))
            suspect(x, &s->site[i], most);
}

static oct_status name_culprits(oct_conversion *c, const suspects *x, double gain, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_culprits *k = &c->culprits;
    *k = (oct_culprits){ .gain = gain, .layer = oct_arena_calloc(c->arena, x->j->n_layer + 1, sizeof *k->layer) };
    if (!k->layer)
        return oct_nomem(err);
    for (size_t i = 0; i < x->j->n_layer; i++) {
        const int id = x->j->layer[i];
        if (!x->floats[id])
            continue;
        if (!(k->layer[k->n] = oct_arena_strdup(c->arena, oct_node_label(x->j->g, id))))
            b.failed = true;
        oct_buf_printf(&b, "%s%s", k->n ? ", " : "", k->layer[k->n]);
        k->n++;
        k->macs += oct_known_work_share(x->j, id);
    }
    k->names = b.failed ? NULL : oct_arena_strdup(c->arena, oct_buf_str(&b));
    oct_buf_free(&b);
    return k->names ? OCT_OK : oct_nomem(err);
}

/* Measures their gain on the other half of the samples. */
static oct_status measure_gain(oct_conversion *c, const suspects *x, double *before, double *after, oct_err *err)
{
    oct_sim *s;
    oct_sim_loss loss;
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_MANY_RUNS, 1, &s, err));
    OCT_TRY(oct_sim_measure(s, &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS }, &loss, err));
    *before = loss.sqnr;
    OCT_TRY(oct_sim_measure(s,
                            &(oct_sim_mask){ .value = x->value, .layer = x->rounds, .weights = OCT_SIM_SOME_WEIGHTS },
                            &loss, err));
    *after = loss.sqnr;
    return OCT_OK;
}

oct_status oct_conversion_find_culprits(oct_conversion *c, const oct_sensitivity *s, oct_err *err)
{
    const oct_qjob *j = c->job;
    suspects x = { .j = j,
                   .floats = oct_arena_calloc(c->arena, j->n_nodes + 1, sizeof(bool)),
                   .rounds = oct_arena_calloc(c->arena, j->n_nodes + 1, sizeof(bool)),
                   .value = oct_arena_calloc(c->arena, j->n_values + 1, sizeof(bool)) };
    double before, after;
    if (!x.floats || !x.rounds || !x.value)
        return oct_nomem(err);
    suspect_worst(&x, s);
    /* Large errors are not independent, so that half of the noise may be nearly all of it. */
    if (x.noise < LIKELY_SHARE * oct_sensitivity_left(j, s))
        return OCT_OK;
    OCT_TRY(measure_gain(c, &x, &before, &after, err));
    return before < GOOD_DB && after > before + MUCH_DB ? name_culprits(c, &x, after - before, err) : OCT_OK;
}

/* ---- warnings ---- */

/* Whether the whole interval of a score lies below the float model's. Without labels: whether the whole interval of the
 * agreement lies below a value that costs no accuracy. A model agrees with itself by 100 %, so even four different
 * classes of 64 would be significant. But close decisions change in both directions, and as many are improved as are
 * damaged: networks of 60 % top-1 gave another class for 5 to 7 % of the samples, at the same accuracy. */
bool oct_score_is_worse(const oct_eval_score *x)
{
    if (!x || isnan(x->lo))
        return false;
    return x->metric->relative ? oct_metric_in_percent(x->metric) && x->lo > CLOSE_CALLS
                               : x->drop > 0 && !x->within_noise;
}

/* Says of each output how far its length is from the float model's, which no metric of values tells. Returns whether
 * one differs by more than decisions that were close explain. */
static bool warn_of_lengths(oct_conversion *c)
{
    bool far = false;
    for (size_t i = 0; c->verdict && i < c->verdict->n_outputs; i++) {
        const oct_eval_output *o = &c->verdict->models[1].outputs[i];
        const bool differs = isnan(o->longer) ? o->apart > 0 : fabs(o->longer) > CLOSE_CALLS;
        char longer[64] = "";
        if (!o->apart)
            continue;
        if (o->longer != 0 && !isnan(o->longer))
            snprintf(longer, sizeof longer, ", by %.1f %% in all", 100 * o->longer);
        oct_conversion_say(c, differs ? OCT_NOTE_WARNING : 0,
                           "output '%s' has another length than the float model's on %llu of %lld samples%s; %s",
                           o->name, (unsigned long long)o->apart, (long long)c->verdict->samples, longer,
                           !oct_output_is_numbers(o->form) ? "its rows are compared as a set"
                           : o->compared                   ? "its values are compared on the others"
                                                           : "its values could not be compared");
        far |= differs;
    }
    return far;
}

const char *oct_culprits_text(char dst[OCT_CULPRITS_TEXT], const oct_culprits *k)
{
    char macs[OCT_MACS_TEXT];
    const char *them = k->n == 1 ? "it" : "them";
    if (isfinite(k->gain))
        snprintf(dst, OCT_CULPRITS_TEXT, "with %s in float the outputs gain %.1f dB, for %s", them, k->gain,
                 oct_macs_text(macs, k->macs));
    else
        snprintf(dst, OCT_CULPRITS_TEXT, "with %s in float the outputs equal the float model's, for %s", them,
                 oct_macs_text(macs, k->macs));
    return dst;
}

static void warn_of_culprits(oct_conversion *c)
{
    char text[OCT_CULPRITS_TEXT];
    const oct_culprits *k = &c->culprits;
    const bool one = k->n == 1;
    oct_conversion_say(
        c, OCT_NOTE_WARNING,
        "%zu node%s cause%s most of the loss: %s; %s; rows \"name:NODE float\" of --policy keep %s float", k->n,
        one ? "" : "s", one ? "s" : "", k->names, oct_culprits_text(text, k), one ? "it" : "them");
}

/* What was measured part by part must explain the result. */
static void compare_with_result(oct_conversion *c)
{
    const oct_causes *x = &c->causes;
    oct_buf b = OCT_BUF_INIT;
    if (!x->samples || !isfinite(x->worst_output) || !isfinite(c->sqnr) ||
        fabs(x->worst_output - c->sqnr) <= MUCH_APART_DB)
        return;
    for (size_t i = 0; i < x->n_left_out; i++)
        oct_buf_printf(&b, "%s%s", i ? ", " : "not simulated: ", x->left_out[i]);
    oct_conversion_say(c, x->n_left_out ? OCT_NOTE_WARNING : 0,
                       "the simulation of all roundings has %.1f dB, and the written model %.1f dB; %s",
                       x->worst_output, c->sqnr,
                       x->n_left_out ? oct_buf_str(&b)
                                     : "the simulation used other samples, and values before functions like Softmax");
    oct_buf_free(&b);
}

/* ---- what helps ---- */

enum { REMEDY_TEXT = 160 };

/* Whether methods for static layers have changed the graph. A conversion by another scheme begins without that. */
bool oct_conversion_is_scaled(const oct_conversion *c)
{
    for (size_t i = 0; i < c->n_methods; i++)
        if (c->methods[i].ran && c->methods[i].method->step == OCT_STEP_GRAPH &&
            c->methods[i].after != c->methods[i].before)
            return true;
    return false;
}

/* What methods have scaled by powers of two is the same in 16-bit floats. */
static oct_cure cure_of(const oct_conversion *c, const oct_tried *x)
{
    const bool other = oct_conversion_is_scaled(c) && x->scheme != OCT_SCHEME_FP16;
    return (oct_cure){ .scheme = oct_scheme_name(x->scheme), .sqnr = other ? NAN : x->sqnr, .size = x->size };
}

/* Outputs without a score of decisions: only their error tells whether they are good enough. */
static bool are_numbers(const oct_eval_score *x)
{
    return !(x && oct_metric_in_percent(x->metric));
}

/* The share of the samples that counts as a loss. */
static double points_of(const oct_eval_score *x)
{
    return x->metric->relative ? FIVE_POINTS : A_POINT;
}

static bool allows_loss(const oct_eval_score *x)
{
    return oct_metric_in_percent(x->metric) && x->hi > points_of(x);
}

oct_loss oct_loss_of(double sqnr, const oct_eval_score *x, bool broken)
{
    const bool unsure = x && x->metric->relative && allows_loss(x);
    return oct_score_is_worse(x) || broken || sqnr < USEFUL_DB                ? OCT_LOSS_MUCH
           : (are_numbers(x) && sqnr < FINE_DB) || (unsure && sqnr < NEAR_DB) ? OCT_LOSS_SOME
                                                                              : OCT_LOSS_NONE;
}

static oct_loss loss_of_result(const oct_conversion *c)
{
    return oct_loss_of(c->sqnr, oct_conversion_score(c), c->verdict && c->verdict->models[1].broken);
}

bool oct_conversion_has_lost(const oct_conversion *c)
{
    return loss_of_result(c) == OCT_LOSS_MUCH || c->seen_gap > 0;
}

bool oct_conversion_is_coarse(const oct_conversion *c)
{
    return c->verdict && loss_of_result(c) == OCT_LOSS_SOME && !(c->seen_gap > 0);
}

/* What a cure must reach. Where samples differ so much that ranges fit those that calibrated alone, the few that judge
 * tell less, too. */
static double enough(const oct_conversion *c)
{
    return oct_conversion_is_coarse(c) || (c->verdict && are_numbers(oct_conversion_score(c)) && c->seen_gap > 0)
               ? FINE_DB
               : USEFUL_DB;
}

/* A file that computes what the float model does has left everything as it is, and is no cure. Nor is one that loses
 * about as much as the result does, unless a score tells that it is better. */
static bool repairs(const oct_conversion *c, const oct_tried *x)
{
    const double least = c->sqnr + (oct_score_is_worse(oct_conversion_score(c)) ? 0 : OCT_DYNAMIC_GAIN);
    return x->scheme && isfinite(x->sqnr) && x->sqnr >= enough(c) && !(x->sqnr < least) && !x->worse;
}

/* Of the schemes that were tried, the first one of use, or else the one with the least loss; none may lose less than
 * the result. */
static oct_cure best_tried(const oct_conversion *c)
{
    const oct_tried *best = NULL;
    for (size_t k = 0; k < OCT_TRIED; k++)
        if (repairs(c, &c->tried[k]))
            return cure_of(c, &c->tried[k]);
    for (size_t k = 0; k < OCT_TRIED; k++)
        if (c->tried[k].scheme && isfinite(c->tried[k].sqnr) && c->tried[k].sqnr > (best ? best->sqnr : c->sqnr))
            best = &c->tried[k];
    return best ? cure_of(c, best) : (oct_cure){ .sqnr = NAN };
}

static bool is_of_use(const oct_dynamic_trial *d)
{
    return d->sqnr >= USEFUL_DB && !(d->score.metric && oct_score_is_worse(&d->score));
}

static bool was_tried(const oct_conversion *c)
{
    bool any = false;
    for (size_t k = 0; k < OCT_TRIED; k++)
        any |= c->tried[k].scheme != OCT_SCHEME_AUTO;
    return any;
}

oct_cure oct_conversion_cure(const oct_conversion *c)
{
    const oct_sensitivity *s = c->sensitivity;
    const oct_dynamic_trial *d = &c->dynamic;
    const bool budget = c->remedy.budget > 0 && c->remedy.sqnr > c->sqnr,
               dynamic = d->gains && d->sqnr >= c->sqnr + OCT_DYNAMIC_GAIN,
               stored = s && c->o.job.scheme != OCT_SCHEME_STORED && s->weights.sqnr >= USEFUL_DB &&
                        s->weights.sqnr > c->sqnr;
    if (c->o.writable) /* another form of file, which has no other scheme */
        return (oct_cure){ .budget = budget ? ceil(100 * c->remedy.budget) : 0, .sqnr = budget ? c->remedy.sqnr : NAN };
    /* Stored weights and layers in float gain no time, so that they come after dynamic ranges that are of use. */
    if (dynamic && is_of_use(d))
        return (oct_cure){ .scheme = "dynamic", .sqnr = d->scaled ? NAN : d->sqnr, .size = d->size };
    if (was_tried(c) && !(budget && c->remedy.sqnr >= USEFUL_DB))
        return best_tried(c);
    if (dynamic && !stored && !(budget && c->remedy.sqnr >= d->sqnr))
        return (oct_cure){ .scheme = "dynamic", .sqnr = d->scaled ? NAN : d->sqnr, .size = d->size };
    if (budget)
        return (oct_cure){ .budget = ceil(100 * c->remedy.budget), .sqnr = c->remedy.sqnr };
    if (stored)
        return (oct_cure){ .scheme = "stored", .sqnr = NAN };
    return (oct_cure){ .scheme = c->o.job.scheme == OCT_SCHEME_FP16 ? NULL : "fp16", .sqnr = NAN };
}

static bool is_dynamic(const oct_cure *x)
{
    return x->scheme && strcmp(x->scheme, "dynamic") == 0;
}

/* "in a file as large", as far as the weights tell. */
static const char *size_of_dynamic(const oct_dynamic_trial *d, char text[64])
{
    const double percent = 100 * (d->larger - 1);
    if (fabs(percent) < SAME_PERCENT)
        return "in a file as large";
    snprintf(text, 64, "in a file about %.0f %% %s", fabs(percent), percent > 0 ? "larger" : "smaller");
    return text;
}

static const char *leaves(const char *scheme)
{
    return strcmp(scheme, "stored") == 0 ? "leaves activations float, and " : "";
}

/* The cure in words, "" if there is none. What was tried comes with its number; the rest is a guess, and says so. */
static const char *remedy(const oct_conversion *c, char text[REMEDY_TEXT])
{
    const oct_cure x = oct_conversion_cure(c);
    char size[64];
    text[0] = '\0';
    if (!x.scheme && !(x.budget > 0) && was_tried(c))
        snprintf(text, REMEDY_TEXT, "no other scheme that was tried loses less");
    else if (!x.scheme && x.budget > 0)
        snprintf(text, REMEDY_TEXT, "--budget %.0f leaves more layers float, with %.1f dB when it was tried", x.budget,
                 x.sqnr);
    else if (is_dynamic(&x) && !isnan(x.sqnr) && c->dynamic.gains)
        snprintf(text, REMEDY_TEXT, "--scheme dynamic has %.1f dB when it was tried, instead of %.1f, %s", x.sqnr,
                 c->sqnr, size_of_dynamic(&c->dynamic, size));
    else if (x.scheme && !isnan(x.sqnr))
        snprintf(text, REMEDY_TEXT, "--scheme %s %shas %.1f dB when it was tried", x.scheme, leaves(x.scheme), x.sqnr);
    else if (x.scheme)
        snprintf(text, REMEDY_TEXT, "--scheme %s %sloses less (a guess)", x.scheme, leaves(x.scheme));
    return text;
}

const char *oct_cure_text(char dst[OCT_CURE_TEXT], const oct_cure *x)
{
    char size[32];
    const char *in = !x->scheme                         ? ""
                     : strcmp(x->scheme, "stored") == 0 ? ", in float"
                     : strcmp(x->scheme, "fp16") == 0   ? ", in float16"
                                                        : "";
    if (isnan(x->sqnr)) {
        snprintf(dst, OCT_CURE_TEXT, "a guess");
        return dst;
    }
    const int n = snprintf(dst, OCT_CURE_TEXT, "%.1f dB when it was tried", x->sqnr);
    if (x->size > 0)
        snprintf(dst + n, OCT_CURE_TEXT - (size_t)n, ", about %s%s", oct_fmt_bytes(size, (uint64_t)x->size), in);
    else
        snprintf(dst + n, OCT_CURE_TEXT - (size_t)n, "%s", in);
    return dst;
}

/* Says that the samples are too few to exclude a loss that counts. */
static void say_uncertain(oct_conversion *c, const oct_eval_score *x)
{
    if (!x || !allows_loss(x) || !(x->hi - x->drop > points_of(x)))
        return;
    const double points = points_of(x);
    const oct_interval drop = { x->drop, x->lo, x->hi };
    const uint64_t n = oct_interval_samples(&drop, x->n, x->drop + points);
    const char *limit = c->o.n_goals          ? "" /* there is one */
                        : x->metric->relative ? ", or set a limit (--min-agreement 95%)"
                                              : ", or set a limit (--max-drop 1%)";
    oct_conversion_say(
        c, 0,
        "%llu sample%s cannot exclude a loss of %.1f points of %s (95 %%); %s%llu could exclude one of %.0f: give more "
        "samples%s",
        (unsigned long long)x->n, x->n == 1 ? "" : "s", 100 * x->hi, x->metric->name, n ? "about " : "more than ",
        (unsigned long long)(n ? n : OCT_INTERVAL_MOST), 100 * points, limit);
}

/* Whether what helps was measured, in the simulation at least, or nothing was found that does. */
static bool is_tried(const oct_conversion *c)
{
    const oct_cure x = oct_conversion_cure(c);
    return was_tried(c) || !isnan(x.sqnr) || oct_cure_helps(c) || (x.scheme && strcmp(x.scheme, "fp16") != 0);
}

/* Without a warning: says that dynamic ranges lose less, where that may matter. Returns whether it did. */
static bool say_dynamic(oct_conversion *c, const oct_eval_score *x)
{
    const oct_cure cure = oct_conversion_cure(c);
    char helps[REMEDY_TEXT];
    if (!is_dynamic(&cure) || c->dynamic.taken || !(c->sqnr < NEAR_DB || (x && x->drop > 0 && allows_loss(x))))
        return false;
    oct_conversion_say(c, 0, "%s", remedy(c, helps));
    return true;
}

/* The same of what leaves activations float. */
static bool say_finer(oct_conversion *c)
{
    char helps[REMEDY_TEXT];
    bool any = false;
    for (size_t k = 0; k < OCT_TRIED; k++)
        any |= repairs(c, &c->tried[k]);
    if (any && oct_conversion_is_coarse(c))
        oct_conversion_say(c, 0, "%s", remedy(c, helps));
    return any && oct_conversion_is_coarse(c);
}

/* A float model that guesses is fed wrongly: ranges are then those of values that never occur. */
static void warn_of_guesses(oct_conversion *c)
{
    for (size_t i = 0; c->verdict && i < c->verdict->n_scores; i++) {
        const oct_eval_score *x = &c->verdict->models[0].scores[i];
        if (!oct_eval_is_guess(x))
            continue;
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "%s of the float model is %.3g %% of %llu samples, and guessing has %.3g %%: do --preprocess "
            "and the order of the labels fit it?",
            x->metric->name, 100 * x->value, (unsigned long long)x->n, 100 * x->chance);
        return;
    }
}

static bool is_broken(const oct_conversion *c)
{
    return c->verdict && c->verdict->models[1].broken;
}

bool oct_cure_helps(const oct_conversion *c)
{
    const oct_cure x = oct_conversion_cure(c);
    bool any = is_dynamic(&x) ? is_of_use(&c->dynamic) : !x.scheme && x.sqnr >= USEFUL_DB;
    for (size_t k = 0; k < OCT_TRIED; k++)
        any |= repairs(c, &c->tried[k]);
    return any;
}

void oct_conversion_warn_of_loss(oct_conversion *c)
{
    const oct_eval_score *x = oct_conversion_score(c);
    const oct_culprits *k = &c->culprits;
    char helps[REMEDY_TEXT], hint[REMEDY_TEXT + 80];
    warn_of_guesses(c);
    remedy(c, helps);
    snprintf(hint, sizeof hint, "%s%s--sensitivity shows what causes it, --policy FILE leaves layers float", helps,
             *helps ? "; " : "");
    const bool worse = oct_score_is_worse(x), broken = is_broken(c), lengths = warn_of_lengths(c),
               poor = c->sqnr < POOR_DB;
    if (worse && x->metric->relative)
        oct_conversion_say(c, OCT_NOTE_WARNING,
                           "%s with the float model is %.1f %%, and below %.0f %% by more than chance; %s",
                           x->metric->name, 100 * x->value, 100 * (1 - CLOSE_CALLS), hint);
    else if (worse)
        oct_conversion_say(c, OCT_NOTE_WARNING, "%s is worse than the float model's, by more than chance; %s",
                           x->metric->name, hint);
    else if (broken)
        oct_conversion_say(c, OCT_NOTE_WARNING, "the outputs are infinite or NaN elsewhere than the float model's; %s",
                           hint);
    else if (poor)
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "output SQNR %.1f dB is below %d: the outputs have little in common with the float model's; %s", c->sqnr,
            POOR_DB, hint);
    else if (c->sqnr < USEFUL_DB)
        oct_conversion_say(c, OCT_NOTE_WARNING, "output SQNR %.1f dB is below %d%s%s", c->sqnr, USEFUL_DB,
                           *helps ? "; " : "", helps);
    if (!worse)
        say_uncertain(c, x);
    char seen[32] = "exact";
    if (isfinite(c->seen_gap))
        snprintf(seen, sizeof seen, "%.1f dB", c->sqnr + c->seen_gap);
    const bool warned = worse || broken || c->sqnr < USEFUL_DB, other = !warned && c->seen_gap > 0 && is_tried(c);
    if (c->seen_gap > 0)
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "output SQNR is %s on samples that calibration saw, and %.1f dB on others: ranges and choices fit the samples too closely; "
            "give more of them, or samples that differ more%s%s",
            seen, c->sqnr, other ? "; " : "", other ? helps : "");
    compare_with_result(c);
    if (k->names)
        warn_of_culprits(c);
    c->lossy |= worse || broken || poor || lengths || k->names;
    c->curable = warned || other || say_dynamic(c, x) || say_finer(c);
}
