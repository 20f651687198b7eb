/* lib/api/samples_int.h -- from the samples of a call to a source, and what is to be said of them. Private to lib/api.
 */
#ifndef OCT_API_SAMPLES_INT_H
#define OCT_API_SAMPLES_INT_H

#include "api/samples.h"
#include "base/json.h"
#include "data/data.h"
#include "eval/run/follow.h"
#include "eval/sets/decode.h"
#include "eval/sets/truth.h"
#include "graph/graph.h"
#include "observers/calib.h"

enum { OCT_STATES_MAX = 512 };

/* The texts after which tokens were generated. */
typedef struct oct_generated {
    int64_t texts, ended; /* ended: how many ended before so many tokens as were asked for */
    const char *file;     /* which names the ids that end a text, of static storage; NULL: none does */
} oct_generated;

typedef struct oct_samples {
    octet_samples of;                /* what was asked for */
    bool hold;                       /* leave at least a fifth of the samples unchosen */
    bool synthetic;                  /* samples may be generated (data/source/synthetic.h) */
    int64_t shard_i, shard_n;        /* the part of the samples to use; shard_n 0: all */
    const oct_given_samples *given;  /* the caller's own, of of.get */
    oct_state state[OCT_STATES_MAX]; /* the states as numbers, from oct_samples_read_states */
    size_t n_state;
    const char *model;     /* the path of the model, for what stands beside it (api/beside.h); NULL: it has none */
    oct_generated made_of; /* how tokens were generated, once the samples are open */
    char tokenizer[256]; /* the file beside the model that makes ids of texts, as none was given; "": it is not used */
} oct_samples;

/* OCT_EUSAGE: numbers out of their range, or samples that are given twice. */
oct_status oct_samples_check(const octet_samples *s, oct_err *err);
/* Finds the states of s->of in the model, and with s->of.generate also the caches that are found by their names.
 * OCT_EUSAGE: there are no such outputs and inputs, or they do not match. */
oct_status oct_samples_read_states(const oct_graph *g, oct_samples *s, oct_err *err);
/* Opens the samples for n inputs. The states must have been read. g is the float model, which makes generated samples
 * (eval/run/generate.h). g and s->given must outlive the source. */
oct_status oct_samples_open_inputs(const oct_graph *g, const oct_input_desc *in, size_t n, oct_samples *s, int threads,
                                   oct_source **src, oct_err *err);
/* The same for the inputs of g. The states of samples are computed by running g (eval/run/follow.h). g and
 * s->given must outlive the source. */
oct_status oct_samples_open(const oct_graph *g, oct_samples *s, int threads, oct_source **src, oct_err *err);
/* Warns of inputs of g, as it was loaded, whose pixels the model scales itself (passes/input_pixels.h) where the
 * preprocessing makes other numbers of them than it takes. Faults in the steps are left to those who open the
 * samples. */
void oct_samples_warn_pixels(oct_voice v, const oct_graph *g, octet_texts preprocess);
/* Says what was found beside the model: the tokenizer, and how many texts ended early by the ids there; the latter as
 * member `generated` of a report, of samples that are generated. */
void oct_samples_say_beside(oct_voice v, const oct_samples *s);
void oct_samples_put_generated(oct_json *j, const oct_samples *s);
/* Says which samples were chosen, if not all are used. */
void oct_samples_say_chosen(oct_voice v, const oct_source *src);
/* Says how many samples were broken, and which. */
void oct_samples_say_bad(oct_voice v, const oct_source *src);
/* Says what a user may not expect of how samples were taken: how many files of which kinds were left out, which inputs
 * that are caches were left empty, what was turned, which array had another name; then what was broken. */
void oct_samples_say_taken(oct_voice v, const oct_source *src);
/* Warns if a calibration table lacks shards, and names them. */
void oct_samples_warn_incomplete(oct_voice v, const char *path, const oct_calib *c);

/* Opens how results are judged; what is NULL stays NULL. Close both, also after a failure. */
oct_status oct_judging_open(const char *decode, const char *truth, oct_decode **rule, oct_truth **t, oct_err *err);

#endif
