/* lib/quant/record.h -- what a written model says of the inputs that it was made from: a SHA-256 of each, and nothing of where they lie or when it was.
 *
 * It is the metadata `octet.record`, a line for each input; with octet.version and octet.command it is enough to make the same bytes again. */
#ifndef OCT_QUANT_RECORD_H
#define OCT_QUANT_RECORD_H

#include "base/buf.h"
#include "base/sha256.h"
#include "data/data.h"
#include "onnx/model.h"

#define OCT_RECORD_KEY "octet.record"

typedef enum oct_record_part {
    OCT_RECORD_SOURCE,      /* the bytes of the float model's file */
    OCT_RECORD_SOURCE_DATA, /* its external data: the bytes of all these files in the order of their first use */
    OCT_RECORD_TABLE,       /* calibration table, or ranges of another tool */
    OCT_RECORD_POLICY,
    OCT_RECORD_TARGET,      /* the user's file; built-in ones belong to the program */
    OCT_RECORD_LABELS,      /* a file of them, where goals chose among trials by them */
    OCT_RECORD_TRUTH,       /* the same of what is true of the samples; of a folder no digest */
    OCT_RECORD_RULE,        /* and of a rule for outputs that is none of the built-in ones */
    OCT_RECORD_SAMPLES,     /* those that were read, as the model reads them (data/sample_sum.h) */
    OCT_RECORD_PARTS
} oct_record_part;

typedef struct oct_record_entry {
    bool there;
    uint64_t n;                   /* samples */
    char sha256[OCT_SHA256_TEXT]; /* "-": it came from what can be read only once, and is not known */
} oct_record_entry;

typedef struct oct_record {
    oct_record_entry part[OCT_RECORD_PARTS];
} oct_record;

/* "source", as in the record; and for people: "float model". */
const char *oct_record_name(oct_record_part p);
const char *oct_record_words(oct_record_part p);

/* Fills the parts of the float model, as it was loaded. Reads all of its files. */
void oct_record_model(oct_record *r, const oct_model *m);
/* That of a file. path NULL: there is none. */
void oct_record_file(oct_record *r, oct_record_part p, const char *path);
/* That of the samples that src (oct_source_sum) has given until now. */
oct_record_entry oct_record_samples(const oct_source *src);

/* The text; its length does not depend on digests and numbers. Check b->failed. */
void oct_record_put(const oct_record *r, oct_buf *b);
/* Reads it. OCT_EMALFORMED: it is none. */
oct_status oct_record_read(const char *text, oct_record *r, oct_err *err);

#endif
