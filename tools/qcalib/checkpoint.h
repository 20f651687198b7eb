/* tools/qcalib/checkpoint.h -- what a run with --resume keeps beside its table, so that another run can continue if it
 * is killed.
 *
 * It is one file, TABLE.checkpoint, which is always replaced as a whole. It is written 0.2 s after the start; then each
 * time after a tenth of the time so far, but at least after 50 times the duration of writing it, and at most after a
 * minute. So at most about a tenth of the work is lost, for at most 2 % of the time. The file says which run it belongs
 * to. */
#ifndef OCT_TOOLS_QCALIB_CHECKPOINT_H
#define OCT_TOOLS_QCALIB_CHECKPOINT_H

#include "common/common.h"

typedef struct checkpoint {
    oct_cli *cli;
    char *path;                      /* owned */
    oct_buf run;                     /* what must be the same: a line "NAME VALUE" for each */
    double begin, last, asked, cost; /* in seconds: times from oct_now, and how long writing the last one took */
    bool failed;                     /* one could not be written, which is reported once */
} checkpoint;

/* Opens the checkpoint of a table that is a file. */
oct_status checkpoint_open(checkpoint *p, oct_cli *cli, const char *table, oct_err *err);
/* Adds something that must be the same in the run that continues. name: one word, or several joined by '-'. */
void checkpoint_bind(checkpoint *p, const char *name, const char *value);
void checkpoint_bind_hash(checkpoint *p, const char *name, uint64_t value);
/* Continues from an existing checkpoint: adds its statistics and samples to c, and positions src after them. Does
 * nothing if there is no checkpoint. OCT_EUSAGE: it belongs to another run; the message has the first difference.
 * OCT_EMALFORMED. */
oct_status checkpoint_take(checkpoint *p, oct_source *src, oct_calib *c, oct_err *err);
/* For oct_calibrate_opts; arg: the checkpoint. If a checkpoint cannot be written, there is a warning, and the run
 * continues. */
bool checkpoint_due(void *arg);
void checkpoint_keep(void *arg, const oct_calib *so_far, const oct_source *src);
/* Removes the file, after the table was written. */
void checkpoint_done(checkpoint *p);
void checkpoint_close(checkpoint *p);

#endif
