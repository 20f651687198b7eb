/* Values that are computed on one type and read on another. A node computes on one type, which is that of its output,
 * but for inputs that the target wants in 8 bits where that type has 16. An input of another type is rounded a second
 * time. Data movement shares parameters, and so never converts. */
#include "quant/job/records.h"
#include "quant/place/place.h"

static size_t place_of(oct_dtype t)
{
    return t == OCT_U8 ? 0 : t == OCT_S8 ? 1 : t == OCT_U16 ? 2 : 3;
}

/* The type of the quantizer after the node, or the type that its rule asks for. */
static oct_dtype type_of(const oct_qjob *j, int id)
{
    const int v = oct_makes_quantized(j, id) ? oct_quantized_output(j, id) : -1;
    return v >= 0 && j->value[v].quant ? j->value[v].quant->dtype : oct_asked_activations(j, &j->node[id].row);
}

/* The type in which a node reads an input. */
static oct_dtype read_type(const oct_qjob *j, int id, int slot)
{
    const oct_dtype type = j->node[id].activations;
    const oct_op *op = oct_op_of(j->g, id);
    if (slot == 0 || oct_dtype_bits(type) != 16 || !op ||
        !oct_target_op_rules_of(j->opts.target, op->type)->others_narrow)
        return type;
    return type == OCT_S16 ? OCT_S8 : OCT_U8;
}

const oct_quant *oct_read_as(const oct_qjob *j, int node, int slot)
{
    const qvalue *v = &j->value[j->g->node[node].in[slot]];
    const oct_dtype type = read_type(j, node, slot);
    const oct_quant *as = type == OCT_UNDEFINED ? NULL : v->as[place_of(type)];
    return as && v->quant && v->quant->dtype != type ? as : v->quant;
}

oct_status oct_choose_conversions(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    for (size_t i = 0; i < j->g->n_order; i++)
        j->node[j->g->order[i]].activations = type_of(j, j->g->order[i]);
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        for (int k = 0; k < j->g->node[id].n_in; k++) {
            const int v = j->g->node[id].in[k];
            const oct_dtype type = read_type(j, id, k);
            if (v < 0 || !oct_reads_quantized(j, id, k) || !j->value[v].quant || j->value[v].quant->dtype == type)
                continue;
            qvalue *root = &j->value[oct_params_root(j, v)];
            if (!root->as[place_of(type)])
                OCT_TRY(oct_params_as(j, c, oct_params_root(j, v), type, &root->as[place_of(type)], err));
            j->value[v].as[place_of(type)] = root->as[place_of(type)];
        }
    }
    return OCT_OK;
}
