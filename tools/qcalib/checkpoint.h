/* tools/qcalib/checkpoint.h -- what a run with --resume keeps beside its table, so that another can go on from there when it is killed.
 *
 * One file, TABLE.checkpoint, replaced as a whole. It is written 0.2 s after the start, then each time a tenth of the time so far has passed, but at least
 * 50 times what writing one takes, and at most a minute: about a tenth of the work is lost at most, for 2 % of the time at most. It says for what run it is. */
#ifndef OCT_TOOLS_QCALIB_CHECKPOINT_H
#define OCT_TOOLS_QCALIB_CHECKPOINT_H

#include "common/common.h"

typedef struct checkpoint {
    oct_cli *cli;
    char *path;      /* owned */
    oct_buf run;     /* what must be the same: a line each, NAME VALUE */
    double begin, last, asked, cost; /* seconds: of oct_now, and what the last one took */
    bool failed;     /* one could not be written: said once */
} checkpoint;

/* The checkpoint of a table that is a file. */
oct_status checkpoint_open(checkpoint *p, oct_cli *cli, const char *table, oct_err *err);
/* Adds something that must be the same in the run that goes on. name: one word, or several joined by '-'. */
void checkpoint_bind(checkpoint *p, const char *name, const char *value);
void checkpoint_bind_hash(checkpoint *p, const char *name, uint64_t value);
/* Takes up what there is: adds statistics and samples to c, has src go on behind them. Nothing where there is no checkpoint. OCT_EUSAGE for one of another run, with
 * the first difference, OCT_EMALFORMED. */
oct_status checkpoint_take(checkpoint *p, oct_source *src, oct_calib *c, oct_err *err);
/* For oct_calibrate_opts; arg: the checkpoint. A checkpoint that cannot be written is warned of, and the run goes on. */
bool checkpoint_due(void *arg);
void checkpoint_keep(void *arg, const oct_calib *so_far, const oct_source *src);
/* The table is written: removes the file. */
void checkpoint_done(checkpoint *p);
void checkpoint_close(checkpoint *p);

#endif
