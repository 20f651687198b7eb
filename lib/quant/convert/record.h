/* lib/quant/convert/record.h -- the record in a written model of the inputs that it was made from: a SHA-256 of each,
 * but neither paths nor dates.
 *
 * It is stored in the metadata as `octet.record`, with a line for each input. Together with octet.version and
 * octet.command it suffices to make the same bytes again. */
#ifndef OCT_QUANT_RECORD_H
#define OCT_QUANT_RECORD_H

#include "base/buf.h"
#include "base/sha256.h"
#include "data/data.h"
#include "onnx/model.h"

#define OCT_RECORD_KEY "octet.record"

typedef enum oct_record_part {
    OCT_RECORD_SOURCE,      /* the file of the float model */
    OCT_RECORD_SOURCE_DATA, /* its external data: the bytes of all these files, in the order in which the model first
                               uses them */
    OCT_RECORD_TABLE,       /* the calibration table, or ranges of another tool */
    OCT_RECORD_POLICY,
    OCT_RECORD_TARGET,  /* the policy file of the user; built-in policies belong to the program */
    OCT_RECORD_LABELS,  /* a file of labels, if goals used them to choose among trials */
    OCT_RECORD_TRUTH,   /* a file with other truth about the samples, if goals used it; a folder has no digest */
    OCT_RECORD_RULE,    /* a rule for outputs, if it is not a built-in one */
    OCT_RECORD_SAMPLES, /* the samples that were read, in the form in which the model reads them
                           (data/source/sample_sum.h) */
    OCT_RECORD_PARTS
} oct_record_part;

typedef struct oct_record_entry {
    bool there;
    uint64_t n;                   /* how many samples */
    char sha256[OCT_SHA256_TEXT]; /* "-": the input could be read only once, so its digest is not known */
} oct_record_entry;

typedef struct oct_record {
    oct_record_entry part[OCT_RECORD_PARTS];
    struct oct_record_task *task; /* private: what is computed beside */
} oct_record;

/* The name in the record, such as "source", and the name for people, such as "float model". */
const char *oct_record_name(oct_record_part p);
const char *oct_record_words(oct_record_part p);

/* Computes the entries of the float model as it was loaded. Reads all of its files. */
void oct_record_model(oct_record *r, const oct_model *m);
/* The same beside the caller's work, if the model is large and `threads` is not 1. The record and the model's files
 * must stay where they are until oct_record_end; oct_record_wait returns when the entries are there. */
void oct_record_begin(oct_record *r, const oct_model *m, int threads);
void oct_record_wait(const oct_record *r);
void oct_record_end(oct_record *r);
/* Computes the entry of a file. path NULL: the input is absent. */
void oct_record_file(oct_record *r, oct_record_part p, const char *path);
/* Computes the entry of the samples that src has returned so far (oct_source_sum). */
oct_record_entry oct_record_samples(const oct_source *src);

/* Appends the record as text. Its length does not depend on digests and numbers. Check b->failed. */
void oct_record_put(const oct_record *r, oct_buf *b);
/* Parses a record. OCT_EMALFORMED: the text is not a record. */
oct_status oct_record_read(const char *text, oct_record *r, oct_err *err);

#endif
