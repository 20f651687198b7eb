/* lib/eval/run/generate.h -- samples that a decoder makes by writing on: each prompt is run with an empty cache, then
 * the likeliest tokens one by one, with the cache that the run before has returned. Every run's inputs are a sample. */
#ifndef OCT_EVAL_GENERATE_H
#define OCT_EVAL_GENERATE_H

#include "data/data.h"
#include "graph/graph.h"
#include "runtime/carry.h"

typedef struct oct_generator oct_generator;

typedef struct oct_generate_options {
    int64_t tokens;     /* at most so many after each prompt */
    const int64_t *end; /* [n_end]: ids that end a text */
    size_t n_end;
} oct_generate_options;

/* Takes all samples of `prompts`, which was opened with these states and inputs. A text ends before a run on an id that
 * ends it: where there are such ids, all texts are generated once to see when. g is copied; its constants must outlive
 * the generator. From step to step inputs change as decoder_inputs.h says: the mask has a 1 more for each token, and
 * positions go on from the last one. Tokens at the end of a prompt that its mask leaves out are dropped. A decoder that
 * takes one token at a time reads prompts in the same way: there is a step for each of their tokens. OCT_EUSAGE there
 * are no states, no ids or no scores OCT_EMALFORMED    a prompt that does not fit, or prompts of more than 256 MB */
oct_status oct_generator_create(const oct_graph *g, const oct_state *states, size_t n_states, oct_source *prompts,
                                const oct_input_desc *inputs, size_t n_inputs, const oct_generate_options *o,
                                oct_generator **out, oct_err *err);
void oct_generator_destroy(void *generator); /* NULL allowed */

/* The number of prompts, and of those that an id has ended. */
int64_t oct_generator_prompts(const oct_generator *generator, int64_t *ended);

/* The samples, of any order, for one thread at a time: prompt 0, its tokens, prompt 1 and so on. Those of a prompt are
 * a group. Borrowed from the generator. */
const oct_given_samples *oct_generator_samples(const oct_generator *generator);

#endif
