/* lib/quant/job/annotate.h -- graphs whose values carry what a job decided. */
#ifndef OCT_QUANT_ANNOTATE_H
#define OCT_QUANT_ANNOTATE_H

#include "quant/job/scope.h"

/* A copy of the graph whose values carry the current decisions, ready to be run. The job's own graph stays
 * float. */
oct_status oct_quantized_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* A copy as oct_qjob_rewrite makes it, to find the size of the file. */
oct_status oct_written_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* In a copy of the job's graph, makes nodes that read value v on integers, with the parameters q (NULL: any), read
 * value `to` instead. */
oct_status oct_redirect(const oct_qjob *j, oct_graph *g, int v, const oct_quant *q, int to, oct_err *err);

/* Whether a node becomes another one than a float node between quantizers: it holds graphs in which something is
 * rounded, is recurrent on integers, picks rows of a quantized table, reads stored weights or computes in 16-bit
 * floats. */
bool oct_has_own_form(const oct_qjob *j, int node);
/* In a copy of the job's graph, gives such nodes that form. chosen: by node, which of them; NULL: all. */
oct_status oct_give_own_forms(const oct_qjob *j, oct_graph *g, const bool *chosen, oct_err *err);

#endif
