/* lib/quant/simulate/sensitivity_int.h -- internals of measuring sensitivities: groups of sites, shared by
 * sensitivity.c and sensitivity_tasks.c. */
#ifndef OCT_QUANT_SENSITIVITY_INT_H
#define OCT_QUANT_SENSITIVITY_INT_H

#include "quant/simulate/sensitivity.h"
#include "quant/simulate/simulate_int.h"

/* A group of neighbouring sites that are measured together. */
typedef struct oct_site_group {
    size_t place, from, to; /* its index in `known`; its sites */
    double noise;
} oct_site_group;

typedef struct oct_site_search {
    oct_sim *s;
    oct_site *site; /* the sites of one kind, in the order of the graph */
    size_t n;
    bool *on;      /* the mask of a measurement, by value or by node */
    double *known; /* [4 n + 2]: the noise of groups; the halves of group i are at 2 i and 2 i + 1. NAN: not measured */
    oct_site_group *group; /* [2 n + 2] */
    double least;          /* a group with less noise is not divided */
    size_t width;          /* how many groups of a level are divided at most: those with the most noise */
    double untold;         /* the most noise of a group that was not divided because of that bound */
    oct_memo *memo;
} oct_site_search;

/* Lists the values that are rounded, and prepares a search among them. all: the noise of all of them together. */
oct_status oct_sites_open_values(oct_site_search *x, oct_sim *s, const oct_qjob *j, oct_memo *memo, double all,
                                 oct_arena *arena, oct_err *err);
/* The same for layers with rounded weights, after a search of values, whose sites precede these. */
oct_status oct_sites_open_layers(oct_site_search *x, const oct_site_search *values, const oct_qjob *j, oct_arena *arena,
                                 oct_err *err);
/* The loss with the sites of a mask rounded, from the memo if it is known. */
typedef enum oct_site_kind { OCT_SITES_ALL, OCT_SITES_WEIGHTS, OCT_SITES_VALUES } oct_site_kind;
oct_status oct_sites_measure(oct_sim *s, oct_memo *memo, oct_site_kind kind, oct_sim_loss *loss, oct_err *err);
/* The noise of a group. It is kept in x->known. */
oct_status oct_site_group_measure(oct_site_search *x, oct_site_group *g, oct_err *err);
/* The halves of a group of at least two sites. */
void oct_site_group_halve(const oct_site_group *g, oct_site_group half[2]);
/* Divides the first n groups in x->group, which are in the order of the graph, level by level down to single sites. */
oct_status oct_site_groups_divide(oct_site_search *x, size_t n, oct_err *err);

#endif
