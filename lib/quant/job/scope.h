/* lib/quant/job/scope.h -- what a job is about: its graph, its options, its memory and its lists of nodes.
 *
 * What was decided has records of its own: of nodes and values in records.h, which placed.h answers questions about,
 * and of constants in constants.h. */
#ifndef OCT_QUANT_SCOPE_H
#define OCT_QUANT_SCOPE_H

#include "ops/op.h"
#include "ops/traits.h"
#include "quant/place/constraints.h"
#include "quant/quant.h"

#include <math.h>

/* A subgraph that a node holds. */
typedef struct qbody {
    int node;
    size_t at; /* the index for oct_node_graph_at */
    struct oct_qjob *job;
} qbody;

typedef struct oct_qlayer {
    struct oct_qjob *job;
    int node;
} oct_qlayer;

struct oct_qjob {
    oct_arena *arena;  /* the arena of the outermost job */
    const char *where; /* "" or the path to this subgraph, which ends in "/" */
    qbody *body;       /* [n_body], in the order of the nodes */
    size_t n_body, cap_body;
    oct_graph *g;
    oct_arena *lasting; /* memory that lives longer than copies of the graph; it holds whatever values carry */
    oct_qjob_opts opts;
    /* by value: how rounding shifted the mean of each channel on measured samples, [moved_channels[v]]; NULL: not
     * measured */
    double **moved;
    size_t *moved_channels;
    struct oct_job_costs *costs; /* of layer_costs.c; NULL: no costs are known */
    oct_target_times expected;   /* what the current placement is expected to take */
    oct_observer_spec observer;  /* the observer for values whose policy names none */
    /* [n_values], indexed by the root of values that share parameters: an observer that has precedence; NULL: there is
     * none at all */
    oct_observer_spec *chosen;
    struct qnode *node;           /* [n_nodes], indexed by the node of g: records.h */
    struct qconstants *constants; /* [n_nodes]: constants.h */
    oct_constraints constraints;
    double *work;  /* [n_nodes]: multiply-accumulates, with the sizes of a sample or usual ones for dimensions that the
                      model leaves open */
    bool *guessed; /* [n_nodes]: they are not known, but estimated */
    double all_work;      /* of all layers */
    struct qvalue *value; /* [n_values]: records.h */
    struct qfacts *facts; /* [n_values]: constants.h */
    size_t n_nodes, n_values;
    int *layer; /* [n_layer], nodes in order */
    size_t n_layer;
    int *picker; /* [n_picker], those of them that pick rows */
    size_t n_picker;
    /* including those of subgraphs, for oct_qjob_values and oct_qjob_layer: */
    const char **all_wanted;
    int *all_axes;
    size_t n_all_wanted;
    oct_qlayer *all;
    size_t n_all, cap_all;
};

static inline bool oct_is_f32(const oct_qjob *j, int value)
{
    return value >= 0 && j->g->value[value].dtype == OCT_F32;
}

/* The share of all multiply-accumulates that a node has. */
static inline double oct_work_share(const oct_qjob *j, int node)
{
    return j->work[node] / j->all_work;
}

/* The same for reports; NaN: it is not known. */
static inline double oct_known_work_share(const oct_qjob *j, int node)
{
    return j->guessed[node] ? NAN : oct_work_share(j, node);
}

/* The share of each layer in j->all, into share[n_all]. In a body that runs more than once it is that of the body. */
void oct_job_shares(const oct_qjob *j, double *share);

/* How many values of the job and its bodies have this name, without those taken from outside: branches may use one name
 * for different values, and a run shows values by name. */
size_t oct_job_count_named(const oct_qjob *j, const char *name);

#endif
