/* lib/quant/simulate/body_sites.h -- what layers in the graphs that nodes hold cost at the outputs. */
#ifndef OCT_QUANT_BODY_SITES_H
#define OCT_QUANT_BODY_SITES_H

#include "quant/simulate/sensitivity.h"

/* The layers in the bodies of a job that round something, in the order of the graphs, into
 * site[oct_body_sites_most(j)]. Returns how many. */
size_t oct_body_sites_most(const oct_qjob *j);
size_t oct_body_sites_list(const oct_qjob *j, oct_site *site);

/* The noise of the bodies with everything around them in float, and how much of it goes when these layers compute
 * in float. Decisions are afterwards as they were. */
oct_status oct_body_sites_all(oct_sim *s, const oct_qjob *j, double *noise, oct_err *err);
oct_status oct_body_sites_measure(oct_sim *s, oct_qjob *j, const oct_site *site, size_t n, double all, double *noise,
                                  oct_err *err);

#endif
