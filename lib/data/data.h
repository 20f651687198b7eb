/* lib/data/data.h -- streams of samples: where they come from, how they become a model's inputs.
 *
 *   oct_source_options o = { .specs = specs, .n_specs = 1, .preprocess = &p, .n_preprocess = 1,
 *                            .inputs = inputs, .n_inputs = 1 };
 *   oct_source *src;
 *   OCT_TRY(oct_source_open(&o, &src, err));
 *   oct_batch b = OCT_BATCH_INIT;
 *   while ((s = oct_source_next(src, 8, &b, err)) == OCT_OK && b.n)
 *       run(b.tensors, ...);
 *   oct_batch_free(&b);
 *   oct_source_close(src);
 *
 * A SPEC is a folder, a CSV, an .npy, an .npz, a .pb, a file of token ids, a tar shard, a pattern (* ? [..] or
 * {000..127}), "-" (a tar stream on standard input) or "pipe:CMD". README.md of this folder and the manual say how each
 * is read.
 *
 * Memory depends on the batch and on a short queue, and for streams of which some samples are chosen on store_bytes;
 * never on the number of samples. */
#ifndef OCT_DATA_DATA_H
#define OCT_DATA_DATA_H

#include "base/sha256.h"
#include "data/arrays/array_files.h"
#include "data/pictures/placing.h"
#include "data/pictures/preprocess.h"

/* Whether pictures for an input have their channels last: layout= decides; else whether its last dimension alone can be
 * channels. */
bool oct_input_is_nhwc(const oct_input_desc *in, const oct_steps *s);
/* Whether an input has the type and shape of pictures, and not of tokens, of a cache, of coordinates, a spectrogram or
 * another table: real numbers or bytes, rank 4, with three channels of an open size, or three or one of known sides,
 * none below 16 and none more than twice the other. */
bool oct_input_is_picture(const oct_input_desc *in);

/* What samples of the caller's are called. */
#define OCT_GIVEN "samples"

/* Samples that the caller has: get sets array[k] for each of the n inputs, one sample with or without the dimension of
 * the batch, valid until the next call. i counts from 0. */
typedef struct oct_given_samples {
    oct_status (*get)(void *arg, int64_t i, const oct_input_desc *inputs, size_t n, oct_array *array, oct_err *err);
    void *arg;
    int64_t count;
    /* The rest may be zero. */
    bool whole;          /* get is asked for all inputs of the model, also for those that have default values */
    const int64_t *ends; /* [n_groups], rising, the last one is count: samples from one end to the next are a recording,
                            which is chosen or held out as a whole; borrowed until the source is closed */
    int64_t n_groups;    /* 0: all are one recording, and each is chosen by itself */
    char *(*name)(void *arg, int64_t i); /* of a sample, to be released with oct_free; NULL when out of memory */
    const char *preprocess, *words;      /* what oct_source_preprocess and oct_source_preprocess_words say */
    uint64_t stamp;                      /* changes if the samples do (oct_source_list_hash) */
} oct_given_samples;

/* All strings and arrays are borrowed for the call of oct_source_open only. */
typedef struct oct_source_options {
    const char *const *specs; /* read in this order */
    size_t n_specs;
    const char *const *preprocess; /* texts of steps, joined in this order; n_preprocess may be 0 */
    size_t n_preprocess;
    const oct_input_desc *inputs;
    size_t n_inputs;
    const char *labels; /* .npy of integers or CSV, or NULL; replaces the labels of the specs */
    bool skip_bad;      /* count and name broken samples instead of stopping; see oct_source_next */
    /* How many samples to choose, spread over all (choice.h); 0: all. A stream that cannot be counted without reading
     * it whole is read to its end by oct_source_open, and samples are kept by hashes of their places (store.h), fewer
     * if that many do not fit. */
    int64_t samples;          /* with groups of `given`: how many of these */
    bool first;               /* choose the first samples instead */
    uint64_t seed;            /* another one chooses others; the order stays that of the data */
    size_t store_bytes;       /* for samples of a stream; 0: 256 MB */
    bool hold;                /* hold out at least a fifth of the samples, for oct_pick.aside */
    int64_t shard_i, shard_n; /* only the chosen samples at places p with p % shard_n == shard_i; shard_n 0: all */
    /* States: inputs that are zero in the first sample of a recording, unless the data have arrays of their names. With
     * states, samples come one at a time, and all samples before one that is given are decoded, for the visitor. A
     * recording is a WAV file; other samples of a file or folder that a SPEC names are one recording together, in their
     * order. */
    const char *const *states;
    size_t n_states;
    const oct_given_samples
        *given;     /* borrowed until the source is closed; they follow those of the specs; NULL: none */
    bool synthetic; /* the word `synthetic` among specs means generated samples (synthetic.h) */
    int threads;    /* decoding threads; 0: two, or one on a single processor */
} oct_source_options;

typedef struct oct_source oct_source;

/* A picture before any step, in pixels; zeros: none. */
typedef struct oct_picture_size {
    int w, h;
} oct_picture_size;

/* The result of one call of oct_source_next. It owns its memory, which grows as needed, so it should be reused. */
typedef struct oct_batch {
    size_t n;           /* samples; 0 at the end of the data */
    oct_array *tensors; /* one per input: the model's type and rank, rows of the samples in order.
                         * Where the model fixes the batch to B, dims[0] is B and rows n..B-1 repeat the last sample. */
    size_t n_tensors;
    int64_t *labels;    /* [n], -1 where there is none */
    bool follows;       /* the first sample follows the last sample of the previous batch in the same recording */
    const char **names; /* [n], "dir/cat.jpg", "x.npy[12]", "x.jsonl:13" by its line; borrowed until the next call */
    int64_t *indices;   /* [n], position in the stream, before sharding, counting broken samples */
    int64_t *places;    /* [n], position among the chosen samples, or among those given if a pick limits their number */
    oct_picture_size *pictures; /* [n], sizes of pictures before any step, of the first input that takes pictures */
    void *store;                /* private */
} oct_batch;

#define OCT_BATCH_INIT { 0 }
void oct_batch_free(oct_batch *b);
/* Adds the names of the batch's samples to the error of a run: "sample 'x.jsonl:3'", "samples 'a.png' to 'h.png'". */
void oct_batch_within(const oct_batch *b, oct_err *err);

/* Opens the specs and checks what can be checked without decoding. *src is to be closed with oct_source_close.
 *   OCT_EUSAGE        a preprocessing text that cannot be read, a shard out of range, nothing that looks like data
 *   OCT_EIO           a file that cannot be read
 *   OCT_EMALFORMED    a file that breaks its format, or whose arrays do not fit the model's inputs
 *   OCT_EUNSUPPORTED  a format this build or version does not read */
oct_status oct_source_open(const oct_source_options *o, oct_source **src, oct_err *err);
void oct_source_close(oct_source *src); /* NULL allowed */

/* The next up to max samples of one shape. A change of shape ends a batch early, and so do samples that cannot be
 * stacked (tensors whose first dimension is not the batch come one at a time). A batch size that the model fixes
 * overrides max. batch->n == 0 with OCT_OK: no more data.
 *   OCT_EMALFORMED, OCT_EIO, OCT_EUNSUPPORTED  a broken sample, named; with skip_bad it is counted instead
 *   OCT_ENUMERIC                               NaN, or an integer out of the input's range: sample, input and index
 *   OCT_ENOMEM                                 also when a decoding thread cannot start
 * Even with skip_bad these stop the run: lack of memory; a file or stream that exists and cannot be read; a sample that
 * can be read but whose shape or type does not fit the model's input after preprocessing, since then a step is missing
 * and no sample is broken. Errors come in the order of the samples: all samples before a broken one have been
 * delivered. After an error the source does not continue; only reset and close are useful then. */
oct_status oct_source_next(oct_source *src, size_t max, oct_batch *batch, oct_err *err);

/* The number of samples that are stacked in a batch's arrays, including those repeated for a fixed batch size; 0 if the
 * arrays are one sample as a whole. */
int64_t oct_batch_rows(const oct_source *src, const oct_batch *b);
/* The number of elements of one sample in a tensor of a batch of `rows`; *first: how many entries of the first
 * dimension it has. The whole tensor if its first dimension does not count samples. */
int64_t oct_row_elements(int rank, const int64_t *dims, int64_t rows, int64_t *first);

/* A visitor is called for every sample in order, also for those that are not given, with the arrays of all inputs; it
 * may change the contents of states. follows: as in oct_batch. Its failure ends the reading. */
typedef oct_status (*oct_visit_fn)(void *arg, oct_array *arrays, bool follows, oct_err *err);
/* For a source with states, before the first sample of a pass is taken; in place of an earlier one. done, which may be
 * NULL, is called with arg when the source is closed, or another visitor set. */
void oct_source_set_visit(oct_source *src, oct_visit_fn fn, void (*done)(void *arg), void *arg);

/* The position of a pass: after the samples of all batches that were given. */
typedef struct oct_source_mark {
    int64_t place;      /* number of samples before it, including those that are not given */
    int64_t names_from; /* the first place whose name is in names */
    uint64_t names;     /* oct_hash of the names from there on */
    int64_t given, bad; /* number of samples before it that were given, and of those that were broken */
} oct_source_mark;
/* To be called before the first sample is taken if oct_source_where will be called: then samples that are passed over
 * get names, too. */
void oct_source_keep_marks(oct_source *src);
/* Not while another thread is inside oct_source_next. */
oct_source_mark oct_source_where(const oct_source *src);
/* Makes the first pass continue after a mark, as if the samples before it had been given; to be called before the first
 * sample is taken. Streams are read up to that position, files are passed over without decoding, and a visitor still
 * sees all samples. text: the messages of the broken samples, of which there may be fewer than mark->bad. Where the
 * samples before the mark have other names, oct_source_next fails with OCT_EUSAGE. OCT_ENOMEM. */
oct_status oct_source_go_on(oct_source *src, const oct_source_mark *mark, const char *const *text, size_t n,
                            oct_err *err);
/* A hash of the data that the specs name: names, sizes and modification times of files, also of those in open folders
 * and lists; commands; and the number of samples if it is known. */
uint64_t oct_source_list_hash(const oct_source *src);

/* Back to the first sample; counts start anew. OCT_EUNSUPPORTED for standard input. */
oct_status oct_source_reset(oct_source *src, oct_err *err);
/* The same with other preprocessing: steps, one for each input, are exchanged with those of the inputs that samples
 * fill. A digest of the samples begins anew. A visitor stays, and is shown samples in their new form. */
oct_status oct_source_exchange_steps(oct_source *src, oct_steps *steps, oct_err *err);

/* The samples that a pass gives. Places are counted from 0 in the order of the data, including broken samples. */
typedef struct oct_pick {
    bool aside;    /* the samples that were not chosen, instead of the chosen ones */
    int64_t i, n;  /* only those at places p with p % n == i; n 0: all */
    bool mixed;    /* a hash selects one of each n consecutive places: alternating data reaches all parts */
    int64_t most;  /* at most this number of them, evenly spread; 0: all. If their total is unknown, the first ones. */
    bool unsummed; /* the digest leaves them out (oct_source_sum): what is measured on them decides nothing */
} oct_pick;

/* Sets another pick, in place of shard_i and shard_n, and goes back to its first sample. Fails as oct_source_reset
 * does. */
oct_status oct_source_pick(oct_source *src, const oct_pick *pick, oct_err *err);
/* Sets whether at least a fifth of the samples is held out. To be called before the first sample is taken. */
void oct_source_hold(oct_source *src, bool hold);

/* How the samples were chosen, for people. */
typedef enum oct_choice_how {
    OCT_CHOICE_ALL,
    OCT_CHOICE_FIRST,
    OCT_CHOICE_SPREAD, /* one of each stratum */
    OCT_CHOICE_STREAM  /* by the hashes of their places */
} oct_choice_how;
typedef struct oct_source_choice {
    oct_choice_how how;
    int64_t asked;         /* 0: all; of groups, what so many have: more than there are by the mean */
    int64_t total;         /* of all samples; -1: not known */
    int64_t chosen, aside; /* -1: not known */
    size_t stored;         /* bytes of samples of a stream that are kept */
} oct_source_choice;
oct_source_choice oct_source_chosen(const oct_source *src);
/* Whether samples can be read only once: standard input of which none were kept. */
bool oct_source_is_once(const oct_source *src);
/* Whether commands print samples: they run again for another pass. */
bool oct_source_runs_commands(const oct_source *src);

/* The number of samples that this pass will give, including broken ones; -1 if it is known only after reading. */
int64_t oct_source_count(const oct_source *src);
/* The batch size that the model's inputs fix, 0 when it is free. Images and rows of arrays are stacked to it. */
int64_t oct_source_fixed_batch(const oct_source *src);
bool oct_source_has_labels(const oct_source *src); /* whether any sample given so far had a label */

/* Broken samples that were skipped so far: how many, and the message of the i-th (the first 100 are kept). */
int64_t oct_source_bad_count(const oct_source *src);
const char *oct_source_bad_text(const oct_source *src, size_t i); /* NULL beyond; borrowed */
int64_t oct_source_bad_index(const oct_source *src, size_t i);    /* its position in the data; -1 beyond */

/* How many inputs that are caches the first given sample left empty; *first: the name of one of them. */
size_t oct_source_empty_caches(const oct_source *src, const char **first);

/* The i-th input that the first given sample left out and that was made of its token ids, such as attention_mask: its
 * name, and what it holds; NULL beyond the last. */
const char *oct_source_made(const oct_source *src, size_t i, const char **contents);

/* The i-th folder or archive with files that look like samples and are not read, such as pictures of other kinds, or
 * links in an archive that lead out of it: its name, and the number of files of each kind; NULL beyond the last. For an
 * archive this is known after it was read to its end. Borrowed, until the next call that reads. */
const char *oct_source_left_out(const oct_source *src, size_t i, const char **where);

/* The first array that feeds the model's only input although it has another name: that name, the file or folder, and
 * the name of the input; NULL: there is none. */
const char *oct_source_other_name(const oct_source *src, const char **where, const char **input);

/* Computes a digest of the samples that are given from now on, in any pass (sample_sum.h). OCT_ENOMEM. */
oct_status oct_source_sum(oct_source *src, oct_err *err);
/* That digest, and the number of its samples, 0 if the source computes none. */
uint64_t oct_source_digest(const oct_source *src, unsigned char digest[OCT_SHA256_BYTES]);

int64_t oct_source_given(const oct_source *src); /* samples given so far */
/* The error for a caller that needs a sample if the source has none: OCT_EMALFORMED, with the name of the data. */
oct_status oct_source_none(const oct_source *src, oct_err *err);

/* The preprocessing of all inputs in canonical form ("" when there is none): reads back to the same steps, goes
 * into calibration tables; and in words, inputs joined by semicolons. Borrowed, valid until close. */
const char *oct_source_preprocess(const oct_source *src);
const char *oct_source_preprocess_words(const oct_source *src);

/* The input whose samples were pictures so far (-1: none), and where its steps place a picture of w x h. */
int oct_source_picture_input(const oct_source *src);
/* Whether the values of these were bytes, and no real numbers of an array. */
bool oct_source_has_bytes(const oct_source *src);
/* The input for which the channels of arrays were moved, and the form that these had; NULL: none so far. */
const char *oct_source_turned(const oct_source *src, const char **form);
oct_placing oct_source_placing(const oct_source *src, oct_picture_size size);

/* Whether a path that is not an ONNX model looks like data (for "quote the pattern" hints). */
bool oct_looks_like_data(const char *path);

/* Writes arrays into an .npz (stored, zip64 where needed), one per output, joined on axis 0, with nothing kept in
 * memory: each array goes to a temporary file beside the target until the end. The header is padded and patched.
 * When the rows of an output differ in shape or type, its chunks become NAME/000000, NAME/000001, ... */
typedef struct oct_npz_writer oct_npz_writer;
oct_status oct_npz_writer_open(const char *path, const char *const *names, size_t n, oct_npz_writer **w, oct_err *err);
/* Appends one chunk per output: chunks[i] belongs to names[i]; only the first `rows` of axis 0 are written (rows -1:
 * all; a scalar is always whole). One of OCT_STRING has one dimension and a `const char *const *` for data; in all
 * chunks of its output. */
oct_status oct_npz_writer_add(oct_npz_writer *w, const oct_array *chunks, int64_t rows, oct_err *err);
oct_status oct_npz_writer_commit(oct_npz_writer *w, oct_err *err); /* closes w either way */
void oct_npz_writer_abort(oct_npz_writer *w);                      /* NULL allowed; nothing is left behind */

#endif
