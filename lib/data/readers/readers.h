/* lib/data/readers/readers.h -- the interface of a kind of data: samples in order, undecoded. One file per kind
 * (read_<kind>.c), one table (readers.inc). Private to lib/data.
 *
 * A reader finds samples and names them; it does not decode pictures and does not preprocess: decoding threads do. */
#ifndef OCT_DATA_READERS_H
#define OCT_DATA_READERS_H

#include "data/arrays/npy.h"
#include "data/text/interned.h"
#include "data/data.h"
#include "data/readers/stream.h"

/* The model as readers see it: the inputs that samples must fill. It lives as long as the source. */
typedef struct oct_feed_ctx {
    const oct_input_desc *inputs;
    const oct_steps *steps; /* one per input */
    size_t n;
    const oct_input_desc
        *extra; /* n_extra more inputs, which have default values; arrays of their names override these */
    size_t n_extra;
    const size_t *number; /* [n + n_extra]: their places among the inputs of the model; NULL: the same order */
    bool skip_bad;        /* files that cannot be read count as broken samples where a folder can go on without them */
    bool as_files;        /* recordings are delivered as files, not decoded */
    const oct_given_samples *given; /* those of the caller, or NULL */
    oct_interned *texts;            /* for arrays of strings; it outlives the samples */
} oct_feed_ctx;

typedef enum oct_part_kind {
    OCT_PART_NONE,
    OCT_PART_FILE,  /* a picture, .npy or .pb in the file `path` */
    OCT_PART_BYTES, /* a picture, .npy or .pb in the bytes of `array` */
    OCT_PART_ROW,   /* array without the batch dimension */
    OCT_PART_WHOLE, /* array with all dimensions of the input */
} oct_part_kind;

/* How a part is padded after the tokens of its sample. */
typedef enum oct_fill {
    OCT_FILL_NOT, /* it is no part of a text */
    OCT_FILL_ID,  /* the id of pad-id=, if the steps have one */
    OCT_FILL_ZEROS,
    OCT_FILL_COUNT /* what stands last, plus 1, 2, ... */
} oct_fill;

/* The part of a sample for one input. */
typedef struct oct_part {
    oct_part_kind kind;
    char *path;      /* owned */
    oct_array array; /* owned, or a view that lives until the reader is closed */
    bool shared;     /* the same in every sample: not stacked */
    bool sound;      /* a window of a recording, cut as the steps say */
    oct_fill fill; /* for texts: a row of OCT_S64 that is cut or padded to length; 0: to the length that the model fixes
                      (token_rows.h) */
    int length;
    int64_t pad_id; /* of such a row where the steps give none; -1: none */
} oct_part;

typedef struct oct_item {
    char *name;      /* owned */
    int64_t label;   /* -1: none */
    bool inside;     /* a later window of a recording: it follows the sample before it */
    oct_part *parts; /* ctx->n of them, then ctx->n_extra, zeroed before next() */
} oct_item;

typedef struct oct_reader {
    /* Whether this reader takes a file or folder that exists: by its name. NULL for readers that are not in the
     * table. */
    bool (*claims)(const char *path, bool is_folder);
    oct_status (*open)(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err);
    int64_t (*count)(void *self); /* -1: not known */
    /* For a reader that does not know its number of samples: whether passing over all of them reads little. NULL: it
     * knows the number. */
    bool (*is_cheap_to_pass)(const char *path);
    /* Reads the next sample. If want is false, the sample is passed over: only item->name may be set. *end: no more
     * samples. A failure with *end set means that nothing after it can be read; without, that the next sample can. */
    oct_status (*next)(void *self, bool want, oct_item *item, bool *end, oct_err *err);
    /* Passes over up to n samples at once, faster than by next(); *passed: their number, 0 if this reader cannot do
     * that or is at its end. After a failure nothing more can be read, and the broken sample is the one after those
     * passed. NULL: not supported. */
    oct_status (*pass)(void *self, int64_t n, int64_t *passed, oct_err *err);
    oct_status (*rewind)(void *self, oct_err *err);
    /* Adds size and time of change of all files that it lists to a hash. NULL as a member: there is only the file of
     * its path. */
    uint64_t (*stamp)(void *self, uint64_t h);
    /* Describes what was found so far that looks like samples and is not read (left_out.h): a text to be released with
     * oct_free, or NULL. As a member, NULL: the reader leaves nothing out. */
    char *(*left_out)(void *self);
    /* The name of an array that feeds the only input although it is called otherwise; NULL: none. As a member, NULL:
     * arrays have no names. Borrowed. */
    const char *(*other_name)(void *self);
    void (*close)(void *self); /* NULL allowed */
} oct_reader;

#define OCT_READER(r) extern const oct_reader r;
#include "data/readers/readers.inc"
#undef OCT_READER
extern const oct_reader oct_read_testset, oct_read_npz_files; /* of oct_read_folder */

/* Readers of streams. Only a word of the user selects one of them (spec.c), so that no name found in a folder, a
 * pattern or a list can start a command. Their path is that word: "-", the name of a descriptor (/dev/fd/63), or
 * "pipe:" and a command. */
extern const oct_reader oct_read_descriptor, oct_read_command;
/* Helpers of the descriptor's reader: the arrays of an open regular file, with its name for messages; an archive whose
 * first n_read bytes are already in the block of the stream, which is taken over, also on failure. */
oct_status oct_read_npy_fd(const oct_feed_ctx *ctx, int fd, const char *name, void **self, oct_err *err);
oct_status oct_read_npz_fd(const oct_feed_ctx *ctx, int fd, const char *name, void **self, oct_err *err);
oct_status oct_read_tar_stream(const oct_feed_ctx *ctx, oct_stream *in, size_t n_read, const char *name, void **self,
                               oct_err *err);
/* The reader of generated samples (synthetic.h), if the caller allows them. */
extern const oct_reader oct_read_synthetic;
/* The reader of the caller's samples. */
extern const oct_reader oct_read_given;
#define OCT_PIPE "pipe:"

/* The table of readers of files, in the order in which they are asked. */
extern const oct_reader *const oct_readers[];
extern const size_t oct_n_readers;

/* How the arrays of a set (.npz, a folder of NAME.npy) feed the inputs. */
typedef enum oct_feed_mode {
    OCT_FEED_ROWS,   /* axis 0 counts samples, the rest is a row */
    OCT_FEED_WHOLES, /* axis 0 counts samples, the rest is the whole input */
    OCT_FEED_ONE,    /* the array is one row */
    OCT_FEED_SHARED  /* the array is the whole input, for every sample */
} oct_feed_mode;

typedef struct oct_feed {
    size_t array; /* index into the set */
    oct_feed_mode mode;
} oct_feed;

/* Finds an array for every input by name, and the number of samples. A single array may have any name if there is a
 * single input. OCT_EMALFORMED names the input, the array and their shapes. feeds holds ctx->n. */
oct_status oct_feed_plan(const oct_feed_ctx *ctx, const char *const *names, const oct_array *heads, size_t n,
                         oct_feed *feeds, int64_t *count, oct_err *err);
/* The array of an input: by name, or the only one of a single input. */
oct_status oct_feed_find(const oct_feed_ctx *ctx, size_t input, const char *const *names, size_t n, size_t *at,
                         oct_err *err);
/* Whether an array of this name feeds the input. */
bool oct_feed_matches(const char *array, const char *input);
/* Sets the shape and the kind of a part by the mode: dimensions of one sample of an array with this header. */
void oct_feed_shape(const oct_feed *f, const oct_array *head, oct_part *part);
/* Makes the array of one sample, whose shape is set, of Fortran-ordered data with this header. */
oct_status oct_feed_gather(const oct_feed *f, const oct_npy *head, const uint8_t *data, int64_t index, oct_array *a,
                           oct_err *err);

/* A text on the heap: NULL when out of memory. */
char *oct_strprintf(const char *fmt, ...) OCT_PRINTF(1, 2);

void oct_part_free(oct_part *p);
oct_status oct_part_own(oct_part *p, oct_err *err); /* copies what is a view, so that the reader may be closed */
void oct_item_free(oct_item *it, size_t n);         /* leaves parts zeroed, usable again */

/* Adds size and modification time of a regular file to a hash; does nothing for anything else. */
uint64_t oct_file_stamp(uint64_t h, const char *path);

bool oct_has_suffix(const char *path, const char *suffix); /* case ignored */
/* The kind of a sample file whose suffix is `kind` ("JPG"), in lower case; NULL: none that this build reads. */
const char *oct_sample_kind(const char *kind);
bool oct_is_sample_file(const char *path); /* by suffix: pictures that this build reads, .npy, .pb, .wav */
bool oct_is_image_file(const char *path);  /* also those that only other builds read */
bool oct_is_sound_file(const char *path);

/* A picture, or an array that is taken for one, before any step. */
typedef struct oct_seen {
    oct_picture_size size;
    bool real;   /* its values are real numbers, and no bytes */
    bool turned; /* an array whose channels do not stand where the input has them */
} oct_seen;

/* Turns a part into the input's tensor: decodes, preprocesses, converts, checks shape and NaN. *stack: rows of this
 * kind may be joined on axis 0. *setup: this sample is not at fault, because samples of its kind do not fit the model
 * and the steps, or an existing file cannot be opened. *seen: of a picture, or zeros. Messages do not name the
 * sample. */
oct_status oct_part_decode(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, oct_array *out,
                           bool *stack, bool *setup, oct_seen *seen, oct_err *err);

/* A label from text, -1 for none. False: it is no class number. */
bool oct_label_parse(const char *text, int64_t *label);
#define OCT_LABEL_HINT \
    "labels are whole numbers: classes counted from 0, or -1 where there is none; real values, as of a regression, are for --metric-cmd"

/* A TensorProto in memory. *name as in oct_pb_load. */
oct_status oct_pb_parse(const void *p, size_t n, oct_array *a, char **name, oct_err *err);

#endif
