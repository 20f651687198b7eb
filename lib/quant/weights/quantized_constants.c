/* The quantized constants of a job, by node and input: one view of what was decided for weights, for tables, and for
 * weights that are stored in 8 bits. */
#include "quant/job/placed.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

static bool rows_of(const oct_qjob *j, const qtable *t, oct_qconstant *c)
{
    if (t->tied >= 0 && !oct_constant_of(j, t->tied, 1, c))
        return false;
    if (t->tied < 0)
        *c = (oct_qconstant){ .quant = &t->quant, .at_once = t->at_once, .sqnr = t->sqnr };
    c->use = OCT_CONSTANT_ROWS;
    c->by_rows = t->by_rows;
    return true;
}

int oct_stored_at(const oct_op *op, int slot)
{
    const uint32_t slots = op->experts ? op->experts : op->quant == OCT_QUANT_RECURRENT ? 1 << 1 | 1 << 2 : 1 << 1;
    return slot >= 0 && slot < OCT_CONSTANT_SLOTS && slots >> slot & 1 ? __builtin_popcount(slots & ((1u << slot) - 1))
                                                                       : -1;
}

bool oct_constant_of(const oct_qjob *j, int node, int slot, oct_qconstant *c)
{
    const qconstants *n = &j->constants[node];
    const oct_scheme scheme = oct_scheme_of(j, node);
    const oct_op *op = oct_op_of(j->g, node);
    const bool stored = oct_is_stored(j, node), picks = op && op->picks;
    const qweights *w = slot == 1 || slot == 2 ? n->weights[slot - 1] : NULL;
    if (slot == 0)
        return picks && scheme == OCT_SCHEME_WEIGHT_ONLY && n->table && rows_of(j, n->table, c);
    const int at = stored && n->stored ? oct_stored_at(op, slot) : -1;
    if (at >= 0 && n->stored->quant[at].n)
        *c = (oct_qconstant){ OCT_CONSTANT_REALS, &n->stored->quant[at], .sqnr = n->stored->sqnr };
    else if (!stored && w &&
             (oct_is_static(j, node) || scheme == OCT_SCHEME_DYNAMIC || scheme == OCT_SCHEME_WEIGHT_ONLY))
        *c = (oct_qconstant){ OCT_CONSTANT_OPERAND, &w->quant, w, .sqnr = w->sqnr };
    else
        return false;
    return true;
}
