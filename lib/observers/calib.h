/* lib/observers/calib.h -- the calibration table: statistics of each tensor, kept as text that a person can read,
 * compare and edit.
 *
 *     octet-calibration 1
 *     model "mobilenet.onnx" 0f3a5c7799aabbcc
 *     preprocess "imagenet"
 *     samples 512
 *     shard "images" 0/1
 *     tensor "conv1_out" n 1204224 zeros 512 inf 0 0 min -1.5 1 max 6 310 avg 512 -3p8 c01p0 pin -1 6
 *      + 2 0a.7f1
 *      - -3 11
 *      channels 32
 *      chan 0 12544 -1.5 5.25 -3p8
 *     end
 *
 * A table that lacks shards of a set says so in a comment above the shard lines.
 *
 * Lines that begin with a space belong to the tensor above them: one for each octave of the histogram (sign, exponent,
 * counts) and one for each channel. `#` begins a comment. A tensor whose line is commented out stays float. `pin lo hi`
 * at the end of a tensor's line fixes its range, and `as u8 scale zero` after that also its parameters.
 * lib/observers/README.md describes every line. */
#ifndef OCT_OBSERVERS_CALIB_H
#define OCT_OBSERVERS_CALIB_H

#include "observers/chan.h"
#include "observers/qparams.h"
#include "observers/stats.h"

/* Parameters that are given and not chosen: real = scale * (q - zero), 0 <= q < 2^bits. For a signed type, q and zero
 * are 2^(bits - 1) less. */
typedef struct oct_calib_exact {
    int bits; /* 8 or 16; 0: no parameters are given */
    int32_t zero;
    float scale;
} oct_calib_exact;

typedef struct oct_calib_tensor {
    char *name;  /* owned by the table */
    bool off;    /* the tensor is commented out, and stays float */
    bool pinned; /* the range was fixed by hand, or by another tool; then statistics may be missing */
    oct_range pin;
    oct_calib_exact
        exact; /* for a pinned tensor: parameters that are used as they are, if the quantized type has that many bits */
    oct_stats stats;
    oct_chan_stats chan; /* channels is 0 if there are no moments */
} oct_calib_tensor;

/* Part `index` of `count` of a data set, count >= 1. The whole set is 0/1. */
typedef struct oct_calib_shard {
    char *set;
    uint32_t index, count;
    /* Of the whole set when the part was made, by which parts are compared; 0: not known. Hashes of a few samples, the
     * same ones for each part, and of its files' names, sizes and times of change. */
    uint64_t samples, files;
} oct_calib_shard;

typedef struct oct_calib {
    char *model;         /* file name without folder; never NULL */
    uint64_t model_hash; /* oct_hash of the file's bytes */
    char *preprocess;    /* never NULL */
    uint64_t samples;
    oct_calib_shard *shards;
    size_t n_shards, cap_shards;
    oct_calib_tensor **tensors; /* in the order added; a tensor's address does not change */
    size_t n_tensors, cap_tensors;
    uint32_t *slots; /* a hash table of the names */
    size_t n_slots;
} oct_calib;

oct_calib *oct_calib_create(void);    /* NULL: out of memory */
void oct_calib_destroy(oct_calib *c); /* NULL allowed */

/* Copies the texts. OCT_ENOMEM. */
oct_status oct_calib_set_model(oct_calib *c, const char *name, uint64_t hash, oct_err *err);
oct_status oct_calib_set_preprocess(oct_calib *c, const char *text, oct_err *err);

/* Records a part of a data set. OCT_EUSAGE: it overlaps one that is recorded. When all parts of a set are there, they
 * become 0/1, so that merging all shards gives the table of one run. */
oct_status oct_calib_add_shard(oct_calib *c, const char *set, uint32_t index, uint32_t count, oct_err *err);

/* Sets what a part that was added is compared by; nothing if it has become part of a whole. */
void oct_calib_mark_shard(oct_calib *c, const oct_calib_shard *mark);
/* The first part of `from` whose files were others than those of a part of the same set in c; NULL: none is known.
 * *other: that part. Whether the samples differ, too, is not known. */
const oct_calib_shard *oct_calib_moved(const oct_calib *c, const oct_calib *from, const oct_calib_shard **other);

/* For sets that the table contains in part, appends the missing shards: "shards 0/7, 3/7 to 5/7 of 'images'". Returns
 * whether any are missing. Names of sets are as in the table, and not safe to print. */
bool oct_calib_missing(const oct_calib *c, oct_buf *b);

/* NULL: there is no such tensor. */
oct_calib_tensor *oct_calib_find(const oct_calib *c, const char *name);
/* Finds a tensor, or adds it with empty statistics. OCT_ENOMEM. */
oct_status oct_calib_add(oct_calib *c, const char *name, oct_calib_tensor **out, oct_err *err);

/* Adds the statistics and the number of samples of `from`, whatever else the tables say. Tensors that `into` lacks are
 * added. If the numbers of channels differ, the moments of `into` do not change. After OCT_ENOMEM `into` may only be
 * destroyed. */
oct_status oct_calib_add_statistics(oct_calib *into, const oct_calib *from, oct_err *err);

/* The same; `from` is emptied on the way, so that the memory is needed once. */
oct_status oct_calib_move_statistics(oct_calib *into, oct_calib *from, oct_err *err);

/* Adds `from` to `into`. OCT_EUSAGE: models, preprocessing, tensors or pinned ranges differ, a shard is in both, or
 * was made from other samples than one of the same set; then `into` is unchanged. After OCT_ENOMEM `into` may only be
 * destroyed. */
oct_status oct_calib_merge(oct_calib *into, const oct_calib *from, oct_err *err);

/* Appends the table as text. Equal tables give the same bytes. Check out->failed. */
void oct_calib_text(const oct_calib *c, oct_buf *out);
/* Writes the table to a file ("-": standard output) by way of a temporary file; compressed if path ends in ".gz". */
oct_status oct_calib_save(const oct_calib *c, const char *path, oct_err *err);

/* Reads text or gzip. *out is set only on success. OCT_EMALFORMED with "label:line:column: reason". */
oct_status oct_calib_parse(const void *data, size_t size, const char *label, oct_calib **out, oct_err *err);
/* Reads a file ("-": standard input). */
oct_status oct_calib_load(const char *path, oct_calib **out, oct_err *err);

/* The difference of one tensor between two tables. */
typedef struct oct_calib_change {
    const char *name;
    const oct_calib_tensor *a, *b; /* NULL: not in that table */
    double change; /* the larger change of min and max, relative to the larger of the two widths; 0: the ranges are
                      equal */
} oct_calib_change;
/* Lists tensors whose statistics, pin or state differ, in a's order, followed by those that only b has. Release *out
 * with oct_free; it borrows from both tables. */
oct_status oct_calib_diff(const oct_calib *a, const oct_calib *b, oct_calib_change **out, size_t *n, oct_err *err);

#endif
