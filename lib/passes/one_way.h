/* lib/passes/one_way.h -- LSTMs for who has them in one direction alone. */
#ifndef OCT_PASSES_ONE_WAY_H
#define OCT_PASSES_ONE_WAY_H

#include "passes/pass.h"

/* Makes an LSTM of the direction reverse one that runs forward over the reversed sequence, and a bidirectional one two
 * of them and a Concat, in g but not in its subgraphs. Left as they are: LSTMs with other activations than usual, other
 * attributes, sequence_lens, or operands that are no constants of float32; all where the opset has no Slice that takes
 * its bounds as inputs. Infers shapes. log may be NULL. */
oct_status oct_lstms_one_way(oct_graph *g, const oct_pass_log *log, oct_err *err);

#endif
