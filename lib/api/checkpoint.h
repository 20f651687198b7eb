/* lib/api/checkpoint.h -- what a run that may be resumed keeps beside its table, so that another run can continue if it
 * is killed.
 *
 * It is one file, TABLE.checkpoint, which is always replaced as a whole. It is written 0.2 s after the start; then each
 * time after a tenth of the time so far, but at least after 50 times the duration of writing it, and at most after a
 * minute. So at most about a tenth of the work is lost, for at most 2 % of the time. The file says which run it belongs
 * to. */
#ifndef OCT_API_CHECKPOINT_H
#define OCT_API_CHECKPOINT_H

#include "api/voice.h"
#include "data/data.h"
#include "observers/calib.h"

typedef struct oct_checkpoint {
    oct_voice voice;
    char *path;                      /* owned */
    oct_buf run;                     /* what must be the same: a line "NAME VALUE" for each */
    double begin, last, asked, cost; /* in seconds: times from oct_now, and how long writing the last one took */
    bool failed;                     /* one could not be written, which is reported once */
} oct_checkpoint;

/* Opens the checkpoint of a table that is a file. */
oct_status oct_checkpoint_open(oct_checkpoint *p, oct_voice voice, const char *table, oct_err *err);
/* Adds something that must be the same in the run that continues. name: one word, or several joined by '-'. */
void oct_checkpoint_bind(oct_checkpoint *p, const char *name, const char *value);
void oct_checkpoint_bind_hash(oct_checkpoint *p, const char *name, uint64_t value);
/* Continues from an existing checkpoint: adds its statistics and samples to c, and positions src after them. Does
 * nothing if there is no checkpoint. OCT_EUSAGE: it belongs to another run; the message has the first difference.
 * OCT_EMALFORMED. */
oct_status oct_checkpoint_take(oct_checkpoint *p, oct_source *src, oct_calib *c, oct_err *err);
/* For oct_calibrate_opts; arg: the checkpoint. If a checkpoint cannot be written, there is a warning, and the run
 * continues. */
bool oct_checkpoint_due(void *arg);
void oct_checkpoint_keep(void *arg, const oct_calib *so_far, const oct_source *src);
/* Removes the file, after the table was written. */
void oct_checkpoint_done(oct_checkpoint *p);
void oct_checkpoint_close(oct_checkpoint *p);

#endif
