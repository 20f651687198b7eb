/* lib/quant/job/annotate.h -- graphs whose values carry what a job decided. */
#ifndef OCT_QUANT_ANNOTATE_H
#define OCT_QUANT_ANNOTATE_H

#include "quant/job/scope.h"

/* A copy of the graph whose values carry the current decisions, ready to be run. The job's own graph stays
 * float. */
oct_status oct_quantized_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* A copy as oct_qjob_rewrite makes it, to find the size of the file. */
oct_status oct_written_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* In a copy of the job's graph, makes nodes that read value v on integers read value `to` instead. */
oct_status oct_redirect(const oct_qjob *j, oct_graph *g, int v, int to, oct_err *err);

#endif
