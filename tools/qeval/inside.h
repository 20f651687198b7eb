/* tools/qeval/inside.h -- looks into a run of the model on the first sample. */
#ifndef OCT_TOOLS_QEVAL_INSIDE_H
#define OCT_TOOLS_QEVAL_INSIDE_H

#include "qeval/qeval.h"

/* Writes the values that --dump names as .npy files, and with --print-plan the steps to standard output. OCT_EUSAGE: a
 * name does not exist, or fits more values than there are files. */
oct_status qeval_look_inside(const qeval_args *a, const oct_eval_model *m, oct_pool *pool, oct_source *src,
                             oct_cli *cli, oct_arena *arena, oct_err *err);

#endif
