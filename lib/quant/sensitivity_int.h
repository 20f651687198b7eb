/* lib/quant/sensitivity_int.h -- the inside of measuring sensitivities: groups of sites, shared by sensitivity.c and sensitivity_tasks.c. */
#ifndef OCT_QUANT_SENSITIVITY_INT_H
#define OCT_QUANT_SENSITIVITY_INT_H

#include "quant/sensitivity.h"
#include "quant/simulate_int.h"

/* Neighbours that are measured together. */
typedef struct oct_site_group {
    size_t place, from, to; /* in `known`; sites */
    double noise;
} oct_site_group;

typedef struct oct_site_search {
    oct_sim *s;
    oct_site *site; /* of one kind, in the order of the graph */
    size_t n;
    bool *on;       /* by value or by node */
    double *known;  /* [4 n + 2]: noise of groups, a group's halves at twice its place and behind; NAN: it was not measured */
    oct_site_group *group; /* [2 n + 2] */
    double least;   /* noise of a group that is not divided */
    size_t width;   /* groups of a level that are divided at most, those with the most noise */
    double untold;  /* the most noise of a group that was not divided for that */
    oct_memo *memo;
} oct_site_search;

/* Lists the values that are rounded, and makes room for a search among them; all: the noise of all of them. */
oct_status oct_sites_open_values(oct_site_search *x, oct_sim *s, const oct_qjob *j, oct_memo *memo, double all, oct_arena *arena, oct_err *err);
/* The same of layers whose weights are, from a search of values, whose sites stand in front of these. */
oct_status oct_sites_open_layers(oct_site_search *x, const oct_site_search *values, const oct_qjob *j, oct_arena *arena, oct_err *err);
/* What masks of a kind cost, from the memo where that has it. */
typedef enum oct_site_kind { OCT_SITES_ALL, OCT_SITES_WEIGHTS, OCT_SITES_VALUES } oct_site_kind;
oct_status oct_sites_measure(oct_sim *s, oct_memo *memo, oct_site_kind kind, oct_sim_loss *loss, oct_err *err);
/* The noise of a group, which is kept in x->known. */
oct_status oct_site_group_measure(oct_site_search *x, oct_site_group *g, oct_err *err);
/* The halves of a group of two or more. */
void oct_site_group_halve(const oct_site_group *g, oct_site_group half[2]);
/* Divides the first n groups in x->group, which come in the order of the graph, down to sites that stand alone: a level after the other. */
oct_status oct_site_groups_divide(oct_site_search *x, size_t n, oct_err *err);

#endif
