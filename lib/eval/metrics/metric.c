/* The table of metrics, and those of single samples. */
#include "eval/metrics/metric.h"

#include "base/buf.h"
#include "base/fork.h"
#include "eval/sets/classes.h"
#include "eval/sets/average_precision.h"
#include "eval/sets/judging.h"
#include "eval/sets/maps.h"
#include "eval/sets/retrieval.h"
#include "eval/sets/sequences.h"
#include "eval/sets/similarity.h"
#include "eval/sets/value_set.h"
#include "kernels/math.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scores ---- */

/* Whether `label` is among the k largest values. Of equal values the one with the smaller index comes first; NaN comes
 * last. */
static double in_top(const float *v, size_t n, int64_t label, size_t k)
{
    if (label < 0)
        return NAN;
    if ((uint64_t)label >= n || isnan(v[label]))
        return 0;
    size_t ahead = 0;
    for (size_t i = 0; i < n; i++)
        ahead += v[i] > v[label] || (i < (size_t)label && v[i] == v[label]);
    return ahead < k;
}

static double score_top(const oct_sample_view *s)
{
    if (s->codes && s->n_out == 1)
        return s->label < 0 ? NAN : s->out[0] == (float)s->label;
    if (s->n_out == 1 && s->label >= 0)
        return !isnan(s->out[0]) && (s->k > 1 || oct_class_of(s->out, 1, s->threshold) == (size_t)s->label);
    return in_top(s->out, s->n_out, s->label, s->k);
}

/* A single value is interpreted as the probability of one of two classes, unless it is the class. Outputs without a
 * class agree with nothing, not even with each other. */
static double score_agreement(const oct_sample_view *s)
{
    if (s->codes && s->n_out == 1)
        return s->out[0] == s->ref[0];
    const size_t found = oct_class_of(s->out, s->n_out, s->threshold);
    return found != OCT_NO_CLASS && found == oct_class_of(s->ref, s->n_out, s->threshold);
}

/* The share of positions at which both models give the largest score to the same class, without padding. NaN gives it
 * to none. */
static double score_positions(const oct_sample_view *s)
{
    size_t same = 0, n = 0, place = 0;
    for (size_t at = 0; s->width && at + s->width <= s->n_out; at += s->width, place++) {
        if (s->present && !s->present[place])
            continue;
        n++;
        const size_t a = oct_class_of(s->ref + at, s->width, s->threshold),
                     b = oct_class_of(s->out + at, s->width, s->threshold);
        same += a == b && a < s->width && !isnan(s->ref[at + a]) && !isnan(s->out[at + a]);
    }
    return n ? (double)same / (double)n : NAN;
}

static double score_matched(const oct_sample_view *s)
{
    double least = NAN;
    for (size_t i = 0; s->match && i < s->n_errors; i++) {
        const oct_match_count *m = &s->match[i];
        if (m->of)
            least = fmin(least, (double)m->found / (double)m->of);
    }
    return least;
}

static double mean_square(const float *want, const oct_sample_view *s)
{
    if (!s->n_out)
        return NAN;
    oct_error e = { 0 };
    oct_error_add(&e, want, s->out, s->n_out);
    return e.broken ? INFINITY : e.noise / (double)s->n_out;
}

static double score_mse(const oct_sample_view *s)
{
    return mean_square(s->in ? s->in : s->ref, s);
}

static double score_mse_of_float(const oct_sample_view *s)
{
    return mean_square(s->ref, s);
}

static double score_cosine(const oct_sample_view *s)
{
    double least = NAN;
    for (size_t i = 0; i < s->n_errors; i++) {
        if (!s->errors[i].n)
            continue;
        least = isnan(least) ? 1 : least;
        double c = oct_error_cosine(&s->errors[i]);
        if (!(c >= least))
            least = isnan(c) ? 0 : c;
    }
    return least;
}

/* -log of the softmax probability of one of n values; INFINITY if there is no such value, or one is NaN. */
static double surprise(const float *v, size_t n, int64_t at)
{
    float most = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i]))
            return INFINITY;
        most = v[i] > most ? v[i] : most;
    }
    if (!isfinite(most) || (uint64_t)at >= n)
        return INFINITY;
    for (size_t i = 0; i < n; i++)
        sum += oct_exp((double)v[i] - (double)most);
    return oct_log(sum) + ((double)most - (double)v[at]);
}

static double score_tokens(const oct_sample_view *s)
{
    double sum = 0, counted = 0;
    const size_t n = s->tokens ? s->n_out / s->tokens : 0;
    for (size_t t = 0; t < s->tokens; t++) {
        if (s->next[t] < 0)
            continue;
        sum += surprise(s->out + t * n, n, s->next[t]);
        counted++;
    }
    return counted > 0 ? sum : NAN;
}

static double count_tokens(const oct_sample_view *s)
{
    double counted = 0;
    for (size_t t = 0; t < s->tokens; t++)
        counted += s->next[t] >= 0;
    return counted;
}

/* ---- divergence ---- */

static const double LEAST_SHARE = 1e-7; /* smaller probabilities are set to this, because quantized ones are often 0 */

static double share_at_least(double p)
{
    return p < LEAST_SHARE ? LEAST_SHARE : p > 1 ? 1 : p;
}

static double term(double p, double q)
{
    return p * oct_log(p / q);
}

/* The divergence for one number that stands for two classes. */
static double divergence_of_one(double p, double q, bool logits)
{
    if (logits) {
        p = 1 / (1 + oct_exp(-p));
        q = 1 / (1 + oct_exp(-q));
    }
    return term(share_at_least(p), share_at_least(q)) + term(share_at_least(1 - p), share_at_least(1 - q));
}

static double divergence_of_logits(const float *p, const float *q, size_t n)
{
    double sum = 0;
    const double p0 = surprise(p, n, 0), q0 = surprise(q, n, 0); /* the logarithm of the sum is v[0] plus this */
    if (!isfinite(p0) || !isfinite(q0))
        return INFINITY;
    const double p_all = (double)p[0] + p0, q_all = (double)q[0] + q0;
    for (size_t i = 0; i < n; i++)
        sum += oct_exp(p[i] - p_all) * (p[i] - p_all - (q[i] - q_all));
    return isnan(sum) ? INFINITY : sum;
}

static double divergence(const float *p, const float *q, size_t n, bool logits)
{
    double sum = 0;
    if (n == 1)
        sum = divergence_of_one(p[0], q[0], logits);
    else if (logits)
        return divergence_of_logits(p, q, n);
    for (size_t i = 0; i < n && n > 1; i++)
        sum += term(share_at_least(p[i]), share_at_least(q[i]));
    return isnan(sum) ? INFINITY : sum;
}

/* For language models: at the positions that count for perplexity. */
static double score_divergence(const oct_sample_view *s)
{
    double sum = 0, counted = 0;
    for (size_t i = 0, at = 0; s->width && at + s->width <= s->n_out; i++, at += s->width) {
        if (s->tokens && i < s->tokens && s->next[i] < 0)
            continue;
        sum += divergence(s->ref + at, s->out + at, s->width, s->logits);
        counted++;
    }
    return counted > 0 ? sum / counted : NAN;
}

double oct_metric_sqnr(const oct_error *outputs, size_t n)
{
    double least = NAN;
    for (size_t i = 0; i < n; i++) {
        if (!outputs[i].n)
            continue;
        double db = oct_error_sqnr(&outputs[i]);
        if (isnan(db))
            return NAN;
        least = fmin(least, db);
    }
    return least;
}

/* The largest share of an output's signal that is noise: 0.01 is 20 dB. */
static double noise_share(const oct_error *outputs, size_t n)
{
    double most = NAN;
    for (size_t i = 0; i < n; i++) {
        const oct_error *e = &outputs[i];
        if (!e->n)
            continue;
        double share = e->broken ? INFINITY : e->noise == 0 ? 0 : e->noise / e->signal;
        most = fmax(most, share);
    }
    return most;
}

static double whole_max(const oct_error *outputs, size_t n)
{
    double most = NAN;
    for (size_t i = 0; i < n; i++) {
        if (outputs[i].broken)
            return INFINITY;
        if (outputs[i].n)
            most = fmax(most, outputs[i].max_abs);
    }
    return most;
}

static bool is_classified(const oct_metric_case *c)
{
    return c->set == OCT_SET_CLASSES && c->labels && (c->classes >= 2 || c->single);
}

static bool has_five(const oct_metric_case *c)
{
    return c->set == OCT_SET_CLASSES && c->labels && c->classes >= 100;
}

static bool has_classes(const oct_metric_case *c)
{
    return c->set == OCT_SET_CLASSES && c->compared && !c->reconstruction &&
           (c->classes >= 2 || (c->single && c->codes) || (c->positions && c->competes));
}

/* Where the outputs are boxes, maps or embeddings, metrics of these say more. */
static bool has_codes(const oct_metric_case *c)
{
    return c->set == OCT_SET_CLASSES && c->compared && c->any_codes;
}

/* ---- for which outputs a metric is defined ---- */

/* Labels are numbers, and names of classes are none. */
static bool has_one_class(const oct_metric_case *c)
{
    return !c->names && (c->single || c->list);
}

static bool has_class_or_positions(const oct_metric_case *c)
{
    return c->single || c->list || c->positions;
}

static bool has_distributions(const oct_metric_case *c)
{
    return !c->codes && has_class_or_positions(c);
}

static bool has_any_codes(const oct_metric_case *c)
{
    return c->any_codes;
}

static bool has_numbers(const oct_metric_case *c)
{
    return c->numbers;
}

static bool has_any_numbers(const oct_metric_case *c)
{
    return c->any_numbers;
}

static bool has_any_compared_numbers(const oct_metric_case *c)
{
    return c->compared && c->any_numbers;
}

static bool is_reconstruction(const oct_metric_case *c)
{
    return c->set == OCT_SET_CLASSES && c->reconstruction && !c->labels;
}

/* It cannot be seen whether outputs predict the next token, so that this metric is computed only on request. */
static bool is_asked(const oct_metric_case *c)
{
    return false;
}

static bool is_paired(const oct_metric_case *c)
{
    return c->set == OCT_SET_PAIRS && c->truth;
}

static bool is_retrieved(const oct_metric_case *c)
{
    return c->set == OCT_SET_RETRIEVAL && c->truth;
}

static bool is_labelled(const oct_metric_case *c)
{
    return c->set == OCT_SET_SEQUENCES && c->truth && !c->texts;
}

static bool is_tagged(const oct_metric_case *c)
{
    return is_labelled(c) && c->tags;
}

static bool is_spelled(const oct_metric_case *c)
{
    return c->set == OCT_SET_SEQUENCES && c->truth && c->texts;
}

static bool is_detected(const oct_metric_case *c)
{
    return c->set == OCT_SET_BOXES && c->truth;
}

static bool has_masks(const oct_metric_case *c)
{
    return is_detected(c) && c->masks;
}

static bool has_keypoints(const oct_metric_case *c)
{
    return is_detected(c) && c->keypoints;
}

/* Without a truth, the boxes of the float model are the objects. This is meaningful only if there is another model. */
static bool has_boxes(const oct_metric_case *c)
{
    return c->set == OCT_SET_BOXES && (c->truth || c->compared);
}

static bool is_mapped(const oct_metric_case *c)
{
    return c->set == OCT_SET_MAPS && c->truth;
}

#define ONE_CLASS "one class for each sample: [N, C], or one value, [N] or [N, 1]"
#define NUMBERS "real numbers in fixed places, of any shape"

/* Agreement where each sample has a class at each of its positions. */
static const oct_metric agreement_of_positions = {
    "agreement",
    "share of positions where the largest output is the float model's, without those that attention_mask says are padding, mean over samples",
    "%",
    .kind = OCT_METRIC_MEAN,
    .larger_is_better = true,
    .relative = true,
    .score = score_positions,
};

static const oct_metric *agreement_as(const oct_metric_case *c)
{
    return !c->list && !c->single && c->positions ? &agreement_of_positions : NULL;
}

/* The squared error where there is nothing but the float model's output to be wrong against: the float model has
 * none. */
static const oct_metric mse_of_float = {
    "mse",
    "mean squared error to the float output",
    "",
    .kind = OCT_METRIC_MEAN,
    .relative = true,
    .score = score_mse_of_float,
    .lost = "is the mean squared error to float's outputs",
};

static const oct_metric *mse_as(const oct_metric_case *c)
{
    return c->reconstruction ? NULL : &mse_of_float;
}

static const oct_metric metrics[] = {
    { "top1",
      "share of samples whose class is found: the one with the largest score in the first output, or of one score, whether it is above the threshold",
      "%", ONE_CLASS, has_one_class, OCT_METRIC_PROPORTION, true, false, is_classified, score_top, NULL, 1 },
    { "top5", "share of samples whose class is among the five with the largest scores", "%", ONE_CLASS, has_one_class,
      OCT_METRIC_PROPORTION, true, false, has_five, score_top, NULL, 5 },
    { "top#", "the same among the # largest scores: top3", "%", ONE_CLASS, has_one_class, OCT_METRIC_PROPORTION, true,
      false, is_asked, score_top, NULL, 1 },
    { "ap50", "average precision of boxes at an overlap of 0.5, at 101 recalls, mean over classes", "%", NULL, NULL,
      OCT_METRIC_SET, true, false, is_detected, .truth = true, .set = { [OCT_SET_BOXES] = oct_boxes_ap50 } },
    { "map", "mean of average precisions at overlaps of 0.50, 0.55 ... 0.95, as COCO has it", "%", NULL, NULL,
      OCT_METRIC_SET, true, false, is_detected, .truth = true, .set = { [OCT_SET_BOXES] = oct_boxes_map } },
    { "mask-ap50", "the same as ap50 for masks, by the overlap of their pixels", "%", NULL, NULL, OCT_METRIC_SET, true,
      false, has_masks, .truth = true, .needs = OCT_NEEDS_MASKS, .set = { [OCT_SET_BOXES] = oct_masks_ap50 } },
    { "mask-map", "the same as map for masks", "%", NULL, NULL, OCT_METRIC_SET, true, false, has_masks, .truth = true,
      .needs = OCT_NEEDS_MASKS, .set = { [OCT_SET_BOXES] = oct_masks_map } },
    { "keypoint-ap50", "the same as ap50 for keypoints, by their similarity (OKS) at 0.5", "%", NULL, NULL,
      OCT_METRIC_SET, true, false, has_keypoints, .truth = true, .needs = OCT_NEEDS_KEYPOINTS,
      .set = { [OCT_SET_BOXES] = oct_keypoints_ap50 } },
    { "keypoint-map", "the same as map for keypoints", "%", NULL, NULL, OCT_METRIC_SET, true, false, has_keypoints,
      .truth = true, .needs = OCT_NEEDS_KEYPOINTS, .set = { [OCT_SET_BOXES] = oct_keypoints_map } },
    { "f1",
      "F1: the mean over classes, or the second of two classes; of boxes at an overlap of 0.5, at the rule's score or the best one",
      "%", NULL, NULL, OCT_METRIC_SET, true, false, has_boxes,
      .set = { [OCT_SET_CLASSES] = oct_classes_f1, [OCT_SET_BOXES] = oct_boxes_f1 } },
    { "precision", "share of what was found that is right, over classes and scores as f1", "%", NULL, NULL,
      OCT_METRIC_SET, true, false, is_asked,
      .set = { [OCT_SET_CLASSES] = oct_classes_precision, [OCT_SET_BOXES] = oct_boxes_precision } },
    { "recall", "share of what is there that was found, over classes and scores as f1", "%", NULL, NULL, OCT_METRIC_SET,
      true, false, is_asked, .set = { [OCT_SET_CLASSES] = oct_classes_recall, [OCT_SET_BOXES] = oct_boxes_recall } },
    { "miou", "intersection over union of the pixels of a class, mean over classes", "%", NULL, NULL, OCT_METRIC_SET,
      true, false, is_mapped, .truth = true, .set = { [OCT_SET_MAPS] = oct_maps_miou } },
    { "spearman", "rank correlation of the cosines of pairs of embeddings with their scores", "", NULL, NULL,
      OCT_METRIC_SET, true, false, is_paired, .truth = true, .set = { [OCT_SET_PAIRS] = oct_pairs_spearman } },
    { "pearson", "linear correlation of the same", "", NULL, NULL, OCT_METRIC_SET, true, false, is_paired,
      .truth = true, .set = { [OCT_SET_PAIRS] = oct_pairs_pearson } },
    { "recall@1", "share of a query's relevant documents that is found first, mean over queries", "%", NULL, NULL,
      OCT_METRIC_SET, true, false, is_retrieved, .truth = true,
      .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_recall_1 } },
    { "recall@5", "the same among the first 5", "%", NULL, NULL, OCT_METRIC_SET, true, false, is_asked, .truth = true,
      .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_recall_5 } },
    { "recall@10", "the same among the first 10", "%", NULL, NULL, OCT_METRIC_SET, true, false, is_retrieved,
      .truth = true, .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_recall_10 } },
    { "recall@100", "the same among the first 100", "%", NULL, NULL, OCT_METRIC_SET, true, false, is_asked,
      .truth = true, .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_recall_100 } },
    { "ndcg@10", "discounted cumulative gain of the first 10 documents relative to the best order, mean over queries",
      "%", NULL, NULL, OCT_METRIC_SET, true, false, is_retrieved, .truth = true,
      .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_ndcg_10 } },
    { "ndcg@100", "the same of the first 100", "%", NULL, NULL, OCT_METRIC_SET, true, false, is_asked, .truth = true,
      .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_ndcg_100 } },
    { "mrr", "inverse of the rank of the first relevant document, mean over queries", "", NULL, NULL, OCT_METRIC_SET,
      true, false, is_retrieved, .truth = true, .set = { [OCT_SET_RETRIEVAL] = oct_retrieval_mrr } },
    { "token-f1", "F1 of the labels of places, mean over labels without the tag O", "%", NULL, NULL, OCT_METRIC_SET,
      true, false, is_labelled, .truth = true, .set = { [OCT_SET_SEQUENCES] = oct_sequences_token_f1 } },
    { "entity-f1",
      "F1 of entities with the same bounds and type, by tags such as B-PER, as conlleval and seqeval count", "%", NULL,
      NULL, OCT_METRIC_SET, true, false, is_tagged, .truth = true,
      .set = { [OCT_SET_SEQUENCES] = oct_sequences_entity_f1 } },
    { "wer", "word error rate: words substituted, inserted and left out, per word of the truth", "%", NULL, NULL,
      OCT_METRIC_SET, false, false, is_spelled, .truth = true, .set = { [OCT_SET_SEQUENCES] = oct_sequences_wer } },
    { "cer", "character error rate: the same of characters", "%", NULL, NULL, OCT_METRIC_SET, false, false, is_spelled,
      .truth = true, .set = { [OCT_SET_SEQUENCES] = oct_sequences_cer } },
    { "mse",
      "mean squared error: of the reconstruction when the output has the input's shape, else to the float output", "",
      NUMBERS, has_numbers, OCT_METRIC_MEAN, false, false, is_reconstruction, score_mse, NULL, .as = mse_as },
    { "agreement", "share of samples that get the float model's class; of outputs [N, L, C], share of the positions",
      "%", "one class for each sample, [N, C], [N] or [N, 1], or for each position, [N, L, C]", has_class_or_positions,
      OCT_METRIC_PROPORTION, true, true, has_classes, score_agreement, NULL, .as = agreement_as },
    { "matched",
      "share of the float model's answers that are the same, or of its chosen rows that are found again within a tenth; the worst of such outputs",
      "%", "truth values, classes or places, or rows that values choose or sort", has_any_codes, OCT_METRIC_MEAN, true,
      true, has_codes, score_matched, NULL, .of_all = true },
    { "cosine", "cosine to the float outputs, the smallest over the outputs, mean over samples", "", NUMBERS,
      has_any_numbers, OCT_METRIC_MEAN, true, true, has_any_compared_numbers, score_cosine, NULL, .of_all = true },
    { "sqnr",
      "signal to quantization noise ratio of the worst output over all samples; its drop is the share of the signal that is noise (0.01 at 20 dB)",
      "dB", NUMBERS, has_any_numbers, OCT_METRIC_WHOLE, true, true, has_any_compared_numbers, .whole = oct_metric_sqnr,
      .loss = noise_share, .lost = "of the signal is noise" },
    { "psnr",
      "peak signal to noise ratio: the squared span of the float output's values over their mean squared error; its drop is the inverse of that",
      "dB", NUMBERS, has_numbers, OCT_METRIC_SET, true, true, is_asked, .set = { [OCT_SET_VALUES] = oct_values_psnr },
      .set_loss = oct_values_share, .lost = "of the squared peak is error" },
    { "kl",
      "divergence of the output's distributions from float's, in nats, mean over samples; values that sum up to 1 are taken as they are (1e-7 at "
      "least), others are logits",
      "", "distributions over classes: [N, C], [N, L, C], or one value for two classes", has_distributions,
      OCT_METRIC_MEAN, false, true, is_asked, score_divergence, .distributions = true },
    { "perplexity",
      "exp of the mean negative log-likelihood of the next token by the first output (logits), without what attention_mask leaves out",
      "", "logits of the next token, [N, L, V], for token ids [N, L]", NULL, OCT_METRIC_TOKENS, false, false, is_asked,
      score_tokens, count_tokens },
    { "maxerr", "largest absolute difference to the float outputs", "", NUMBERS, has_any_numbers, OCT_METRIC_WHOLE,
      false, true, has_any_compared_numbers, .whole = whole_max, .loss = whole_max,
      .lost = "is the largest difference from a float value" },
};

const oct_metric *oct_metric_at(size_t i)
{
    return i < OCT_COUNT(metrics) ? &metrics[i] : NULL;
}

const char *oct_metric_names(size_t i, const char **summary)
{
    if (i >= OCT_COUNT(metrics))
        return NULL;
    if (summary)
        *summary = metrics[i].summary;
    return metrics[i].name;
}

const oct_metric *oct_metric_as(const oct_metric *m, const oct_metric_case *c)
{
    const oct_metric *other = m->as ? m->as(c) : NULL;
    return other ? other : m;
}

oct_status oct_metric_check(const oct_metric *m, const oct_metric_case *c, const char *shape, oct_err *err)
{
    if (!m->defined || m->defined(c))
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "metric '%s' is defined for %s, and the first output is %s%s", m->name, m->shapes, shape,
             c->names      ? " of strings"
             : c->codes    ? " of truth values or classes"
             : !c->numbers ? " of rows that values choose or sort"
                           : "");
    oct_hint(err,
             c->any_codes ? "'matched' says which share of such an output is the float model's%s"
                          : "'sqnr' and 'cosine' compare numbers of any shape%s",
             c->set == OCT_SET_CLASSES ? "; a rule may say what the outputs mean (--decode)" : "");
    return OCT_EUSAGE;
}

bool oct_metric_in_percent(const oct_metric *m)
{
    return m->unit[0] == '%';
}

/* ---- top-k for any k ---- */

enum { MOST_K = 999 };

/* Records that were requested. They exist until the process ends, like those of the table. */
static struct {
    oct_metric m;
    char name[8];
} made[MOST_K + 1];

static const oct_metric *make_top(size_t k)
{
    oct_lock(OCT_LOCK_METRICS);
    if (!made[k].m.name) {
        made[k].m = metrics[0];
        made[k].m.applies = is_asked;
        made[k].m.k = k;
        snprintf(made[k].name, sizeof made[k].name, "top%zu", k);
        made[k].m.summary = "share of samples whose label is among so many largest";
        made[k].m.name = made[k].name;
    }
    oct_unlock(OCT_LOCK_METRICS);
    return &made[k].m;
}

/* The k of "top3"; 0: the name is not of that form. */
static size_t k_of(const char *name)
{
    if (strncmp(name, "top", 3) != 0 || name[3] < '1' || name[3] > '9')
        return 0;
    char *end;
    const unsigned long k = strtoul(name + 3, &end, 10);
    return *end || k > MOST_K ? 0 : k;
}

oct_status oct_metric_suits(const oct_metric *m, const oct_judging *j, oct_err *err)
{
    static const char *const things[] = {
        [OCT_SET_CLASSES] = "classes", [OCT_SET_MAPS] = "maps of classes", [OCT_SET_PAIRS] = "pairs of samples",
        [OCT_SET_BOXES] = "boxes",     [OCT_SET_SEQUENCES] = "sequences",  [OCT_SET_RETRIEVAL] = "queries and documents"
    };
    if (m->kind != OCT_METRIC_SET || m->set[OCT_SET_VALUES])
        return OCT_OK;
    if (m->needs && oct_judging_kind(j) == OCT_SET_BOXES) {
        const bool masks = m->needs == OCT_NEEDS_MASKS;
        if (!j->rule || !(masks ? j->rule->box.prototypes.given : j->rule->box.keypoints.given)) {
            oct_fail(err, OCT_EUSAGE, "metric '%s' is of %s, and the rule does not say where these are", m->name,
                     masks ? "masks" : "keypoints");
            oct_hint(err, masks ? "--decode yolov8-seg, or the keys coefficients and prototypes"
                                : "--decode yolov8-pose, or the key keypoints");
            return OCT_EUSAGE;
        }
    }
    if (m->set[oct_judging_kind(j)])
        return m->truth && !j->truth
                   ? oct_fail(err, OCT_EUSAGE, "metric '%s' needs what is true of the samples: --truth", m->name)
                   : OCT_OK;
    size_t of = OCT_SET_CLASSES;
    while (of + 1 < OCT_SET_VALUES && !m->set[of])
        of++;
    oct_fail(err, OCT_EUSAGE, "metric '%s' is of %s, and nothing says that outputs are these", m->name, things[of]);
    oct_hint(
        err,
        "a rule says what outputs are (--decode; 'help' lists those that are built in), and --truth what is true of the samples");
    return OCT_EUSAGE;
}

oct_status oct_metric_find(const char *name, const oct_metric **m, oct_err *err)
{
    oct_nearest near = { .word = name, .most = 2 };
    const size_t k = k_of(name);
    if (k && k != 1 && k != 5) {
        *m = make_top(k);
        return OCT_OK;
    }
    for (size_t i = 0; i < OCT_COUNT(metrics); i++) {
        if (strchr(metrics[i].name, '#'))
            continue;
        if (strcmp(metrics[i].name, name) == 0) {
            *m = &metrics[i];
            return OCT_OK;
        }
        oct_nearest_try(&near, metrics[i].name);
    }
    oct_fail(err, OCT_EUSAGE, "unknown metric '%s'", name);
    oct_nearest_hint(&near, 1, NULL, err);
    return OCT_EUSAGE;
}
