/* tests/provider/standin.h -- a stand-in for ONNX Runtime: it implements the functions of ort_abi.h over a graph that
 * our own loader has read, and does with the plug-in what ONNX Runtime does: registers it, asks what it claims, gives
 * it the groups to compile, runs them, and releases everything. What is claimed by nobody is computed node by node.
 * Any call can be made to fail, and objects that are not released are counted. */
#ifndef OCT_TESTS_STANDIN_H
#define OCT_TESTS_STANDIN_H

#include "../../provider/ort_abi.h"
#include "octet/octet.h"
#include "onnx/model.h"

enum { STANDIN_TEXT = 2048 };

/* A node of this operator and domain is unknown to the plug-in. The stand-in knows it: the output is the input. */
#define STANDIN_OP "Pass"
#define STANDIN_DOMAIN "standin"

/* The plug-in, registered; NULL: it could not be, for the reason in error. May be registered more than once. */
ort_ep_factory *standin_register(char error[STANDIN_TEXT]);
void standin_unregister(ort_ep_factory *f);

typedef struct standin_options {
    const char *const *settings; /* keys and values by turns, then NULL; may be NULL */
    int lanes;                   /* threads that a run divides work over; 0: 1 */
    bool external;               /* constants that have several elements lie in a file, and are nowhere else */
    bool whole;                  /* all nodes are one group, whatever is claimed */
} standin_options;

typedef struct standin_session standin_session;

/* A session of a model, which it releases also when it fails. NULL: the reason is in error. */
standin_session *standin_open(ort_ep_factory *f, oct_model *m, const standin_options *options,
                              char error[STANDIN_TEXT]);
void standin_close(standin_session *s);

typedef struct standin_facts {
    size_t n_nodes, n_claimed, n_groups;
    size_t largest;      /* the number of nodes of the largest group */
    const char *log;     /* what the plug-in said */
    const char *context; /* ep_cache_context of the first group's EPContext node; NULL: the plug-in made none */
    size_t context_size;
} standin_facts;
standin_facts standin_facts_of(const standin_session *s);

typedef struct standin_outputs {
    octet_array *of; /* [n], in the order of the graph's outputs, with memory of their own */
    size_t n;
} standin_outputs;

/* Runs a session, which several threads may do at once. The i-th array is for the graph's i-th input. */
bool standin_run(standin_session *s, const octet_array *in, size_t n_in, standin_outputs *out,
                 char error[STANDIN_TEXT]);
void standin_outputs_free(standin_outputs *o);

/* From now on the k-th call that may fail does, where its kind is not excepted; 0: none. */
void standin_fail_at(long k);
/* The name of the function that failed since, or NULL. */
const char *standin_failed(void);

/* Whether this thread is in code of the plug-in, for tests that let its allocations fail. */
extern _Thread_local bool standin_inside;

/* How often a run has divided its work, in all sessions. */
long standin_divided(void);

/* How many objects are not released: of statuses, values, types, devices. */
long standin_live(void);

#endif
