/* lib/quant/job/job.h -- the steps of a job that the files of this room implement. */
#ifndef OCT_QUANT_JOB_H
#define OCT_QUANT_JOB_H

#include "quant/job/placed.h"

/* prepare_graph.c: makes a model's graph one that a job can decide: shapes, opset, float32, passes. *source: the widest
 * narrow float type that it had. */
oct_status oct_job_prepare(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err);
/* job.c: opens a job of a prepared graph, with jobs of its subgraphs. */
oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job,
                        oct_err *err);
/* Replaces constants that folding made by the nodes that compute them, if that makes the file smaller, in the job's
 * graph or a copy, and notes it in the log (may be NULL). */
oct_status oct_job_unfold(const oct_qjob *j, oct_graph *g, const oct_pass_log *log, oct_err *err);
/* bodies.c: opens jobs of the subgraphs of j->g, lists them all, and runs each step on them. */
oct_status oct_bodies_open(oct_qjob *j, oct_err *err);
oct_status oct_bodies_list(oct_qjob *j, oct_err *err);
oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* Runs a step that changes the subgraphs of g, which is the job's graph or a copy of it; to be called before the same
 * step of the graph around them. */
oct_status oct_bodies_do(const oct_qjob *j, oct_graph *g, oct_status (*step)(const oct_qjob *, oct_graph *, oct_err *),
                         oct_err *err);

/* usual_shapes.c: counts the multiply-accumulates of the nodes and of those of its bodies, once in the life of a job.
 * Where sizes depend on values, every weight counts as often as those of the other layers do on average, or once. */
oct_status oct_job_count_work(oct_qjob *j, oct_err *err);
/* A copy of the job's graph in which dimensions of inputs that are open have the sizes of the sample that was seen, or
 * usual ones: one sample, and 128 of everything else. *copy is NULL if all sizes are known, if such sizes contradict
 * each other, or for a body. */
oct_status oct_usual_shapes(const oct_qjob *j, oct_graph **copy, oct_err *err);
/* transpose_products.c: rewrites products whose constant is the first factor so that the constant is the second, if
 * they shall be dynamic or have weights in blocks. The nodes and values added for this have no records in the job.
 * *any: whether a product was rewritten. */
oct_status oct_transpose_products(oct_qjob *j, bool *any, oct_err *err);
/* Whether a product has data as its second factor and a constant as its first. */
bool oct_is_left_product(const oct_qjob *j, int node);
/* The reason why such a product cannot be rewritten, or would not gain from it; NULL: it can. */
const char *oct_no_turn(const oct_qjob *j, int node);
/* Why a convolution was not made a product with weights in blocks. */
const char *oct_no_pointwise(const oct_qjob *j, int node);

/* unfold_constants.c: replaces constants that folding made by the nodes that compute them, where that makes the file
 * smaller. Called when everything is decided, before annotating. g: the job's graph or a copy of it. *n, *saved: as
 * in oct_unfold. */
oct_status oct_unfold_constants(const oct_qjob *j, oct_graph *g, size_t *n, size_t *saved, oct_err *err);
/* The same before nodes are given 16-bit floats, so that the restored nodes get them too. */
oct_status oct_unfold_half(oct_graph *g, size_t *n, size_t *saved, oct_err *err);
/* Whether the constant weights of a product were computed from so much smaller inputs that they enlarge the file even
 * when quantized. */
bool oct_weights_grow(const oct_qjob *j, int node, int bits);
/* Whether a large constant is written in float anyway, in addition to what integer operators read of it. These then
 * read it through a quantizer. */
bool oct_operand_stays_real(const oct_qjob *j, const oct_graph *g, int value);

#endif
