/* lib/quant/rounding/expert_rounding.h -- rounds the matrices of a mixture of experts (com.microsoft's MoE) in blocks,
 * each on the inputs of the tokens that its expert computes (GPTQ, ldlq.h). */
#ifndef OCT_QUANT_EXPERT_ROUNDING_H
#define OCT_QUANT_EXPERT_ROUNDING_H

#include "quant/convert/convert.h"

/* Whether the graph of the job, or of one of its bodies, has such a node, whose matrices are stored in blocks. */
bool oct_has_expert_blocks(const oct_qjob *j);
/* Rounds all of them on the inputs of the float model. Scales and zero points stay. Each node gets new stored weights
 * in the arena of the job; what it had is not changed. */
oct_status oct_round_experts(oct_conversion *c, oct_err *err);

#endif
