/* Layers in the graphs that nodes hold (If, Loop, Scan).
 *
 * A body has its quantized form as a whole in the simulation, with all that it decided (simulate.h). So a layer is not
 * rounded alone, but left out: it computes in float, and its noise is what the outputs gain by that. It reads rounded
 * values only if others do, too. Only the bodies are decided again for it. */
#include "quant/simulate/body_sites.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/simulate/simulate_int.h"

size_t oct_body_sites_most(const oct_qjob *j)
{
    return j->n_all - j->n_layer;
}

size_t oct_body_sites_list(const oct_qjob *j, oct_site *site)
{
    size_t n = 0;
    for (size_t k = 0; k < j->n_all; k++) {
        const oct_qlayer *l = &j->all[k];
        if (l->job != j && (oct_makes_quantized(l->job, l->node) || oct_rounds_inputs(l->job, l->node) ||
                            oct_is_dynamic(l->job, l->node)))
            site[n++] =
                (oct_site){ .body = l->job, .value = -1, .node = l->node, .scheme = oct_scheme_of(l->job, l->node) };
    }
    return n;
}

/* What the bodies cost, with everything else in float. */
oct_status oct_body_sites_all(oct_sim *s, const oct_qjob *j, double *noise, oct_err *err)
{
    oct_sim_loss loss;
    bool *holder = oct_calloc(j->n_nodes + 1, sizeof *holder);
    if (!holder)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_body; i++)
        holder[j->body[i].node] = true;
    const oct_sim_mask m = { .no_values = true, .layer = holder, .weights = OCT_SIM_SOME_WEIGHTS };
    const oct_status st = oct_sim_measure(s, &m, &loss, err);
    *noise = st == OCT_OK ? loss.noise : 0;
    oct_free(holder);
    return st;
}

static oct_status decide(const oct_qjob *j, const oct_calib *calib, oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(oct_qjob_decide(j->body[i].job, calib, err));
    return OCT_OK;
}

oct_status oct_body_sites_measure(oct_sim *s, oct_qjob *j, const oct_site *site, size_t n, double all, double *noise,
                                  oct_err *err)
{
    const oct_calib *calib = s->core->c->calib;
    double left = 0;
    oct_status st = OCT_OK;
    for (size_t i = 0; i < n && st == OCT_OK; i++)
        st = oct_keep_float(&site[i].body->constraints, site[i].node, OCT_FROM_TRIAL, "tried in float", err);
    if (st == OCT_OK)
        st = decide(j, calib, err);
    if (st == OCT_OK)
        st = oct_body_sites_all(s, j, &left, err);
    for (size_t i = 0; i < n; i++)
        oct_constraints_drop(&site[i].body->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_TRIAL, site[i].node);
    OCT_TRY(st);
    *noise = all > left ? all - left : 0;
    return decide(j, calib, err);
}
