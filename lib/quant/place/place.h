/* lib/quant/place/place.h -- the steps by which nodes get schemes and values get parameters. */
#ifndef OCT_QUANT_PLACE_H
#define OCT_QUANT_PLACE_H

#include "quant/job/scope.h"

/* policy_rows.c: reads what the policy asks of each node, and lists the nodes. */
oct_status oct_job_read_policy(oct_qjob *j, oct_err *err);
/* place_around.c: after the other schemes are chosen, places quantizers around nodes that compute in float, as the
 * target wants them. */
void oct_place_around(oct_qjob *j);
/* place.c: chooses schemes of nodes, the values that need parameters, and which of them share parameters. It is called
 * again after constraints were added. */
oct_status oct_job_place(oct_qjob *j, oct_err *err);
/* Whether a node on 8-bit integers may get 16-bit activations: the target takes them, and no cost table says that they
 * take longer than floats. */
bool oct_may_be_wide(const oct_qjob *j, int id);
/* Called before nodes are placed, with the rows that the policy asks for: widens those of nodes with a constraint. */
oct_status oct_fit_widths(oct_qjob *j, oct_err *err);
/* Called after that: records the reason at the nodes that run on integers. */
void oct_tell_widths(oct_qjob *j);

/* by_cost.c: chooses schemes by the time that layers take in the target according to its cost tables. It reads no clock
 * and does not ask the CPU that converts, so the choices are the same everywhere. */
/* Called when nodes are placed. Adds constraints for nodes that leave the scheme of the policy: products become
 * dynamic, get weights in 8-bit blocks (if the runtime may then quantize the other factor in blocks too) or stay float;
 * other operators stay float; nodes that stay on integers may get 16-bit activations. Layers whose scheme is set by a
 * rule of the user are not changed. If something was chosen, nodes are placed anew. */
oct_status oct_choose_by_cost(oct_qjob *j, oct_err *err);

/* layer_costs.c: estimates the times of the current placement, into j->expected. */
void oct_expect(oct_qjob *j);
/* The times of one node in nanoseconds, in float and as it is decided, by the table with which the model gains least.
 * NaN: unknown. */
void oct_expect_node(const oct_qjob *j, int node, double *on_floats, double *decided);

/* half.c: after the other schemes are chosen, chooses the nodes that compute in 16-bit floats, and the values whose
 * range must be known for that. */
oct_status oct_half_place(oct_qjob *j, oct_err *err);
/* Among a node's inputs followed by its outputs, the i-th, if it has the type of the computation and is float32; else
 * -1. */
int oct_half_operand(const oct_qjob *j, int id, int i);
/* half_range.c: keeps nodes in float32 with a constant or, if c is not NULL, a value that exceeds the type. *changed is
 * set if there is one. */
oct_status oct_half_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The same for nodes on 8 bits whose results depend on small values (Log, divisors), unless 8 bits are known to
 * represent these. */
oct_status oct_bytes_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The 16-bit float type that a node computes in, or OCT_UNDEFINED. Nodes added after the job was made have none. */
oct_dtype oct_half_type(const oct_qjob *j, int node);
/* Whether the model computes in the 16-bit type that is asked for already. Rules that keep norms float32 then only add
 * conversions, unless they are the user's. */
bool oct_half_is_own(const oct_qjob *j);
/* SQNR in dB of rounding a constant to t; NaN: the constant is not f32. */
double oct_half_sqnr(const oct_tensor *c, oct_dtype t);

/* choose_ranges.c: chooses scale and zero point of all values that need them. */
oct_status oct_choose_qparams(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* part_joins.c: called when parameters are chosen. Values that share them with what a Concat joins, and would lose too
 * much, get their own when nodes are placed anew; or the Concat stays float, if the target needs one scale. *changed is
 * set if there are new ones. */
oct_status oct_part_joins(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* factors.c: called when parameters are chosen. Products of two activations that the target does not multiply with
 * these parameters get others around 0, or stay float. *changed is set if something has changed. */
oct_status oct_fit_factors(oct_qjob *j, bool *changed, oct_err *err);

/* types_meet.c: chooses parameters of a value for readers that compute on another type than the node that makes it.
 */
oct_status oct_choose_conversions(oct_qjob *j, const oct_calib *c, oct_err *err);
/* Parameters of this type that an observer chooses from the statistics of the values that share their parameters with
 * `root`. */
oct_status oct_params_as(oct_qjob *j, const oct_calib *c, int root, oct_dtype type, const oct_quant **q, oct_err *err);

#endif
