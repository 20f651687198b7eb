/* Values that are computed on one type and read on another. A node computes on one type, which is that of its output. An input of another type is rounded a
 * second time, to parameters of the node's type. Data movement shares parameters, and so never converts. */
#include "quant/job.h"

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

const oct_quant *oct_read_as(const oct_qjob *j, int node, int value)
{
    const qvalue *v = &j->value[value];
    const oct_dtype type = j->node[node].activations;
    const oct_quant *as = type == OCT_UNDEFINED ? NULL : v->as[place_of(type)];
    return as && v->quant && v->quant->dtype != type ? as : v->quant;
}

oct_status oct_choose_conversions(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    for (size_t i = 0; i < j->g->n_order; i++)
        j->node[j->g->order[i]].activations = type_of(j, j->g->order[i]);
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_dtype type = j->node[id].activations;
        for (int k = 0; k < j->g->node[id].n_in; k++) {
            const int v = j->g->node[id].in[k];
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
