/* provider/provider_int.h -- what the files of the provider share. */
#ifndef OCT_PROVIDER_INT_H
#define OCT_PROVIDER_INT_H

#include "octet/octet.h"
#include "ort_abi.h"

#include <stdio.h>

/* The number of strings as an element type, which octet_type leaves out. */
enum { TYPE_STRING = 8 };

#define PROVIDER_NAME "OctetExecutionProvider"

/* Returns the status of a call that failed. */
#define TRY(call)                     \
    do {                              \
        ort_status *status_ = (call); \
        if (status_)                  \
            return status_;           \
    } while (0)

/* A failure of the provider, with its name before the text. */
ort_status *fail(const ort_api *api, const char *format, ...) __attribute__((format(printf, 2, 3)));
ort_status *no_memory(const ort_api *api);
/* The error of the last call with o. */
ort_status *fail_with(const ort_api *api, const octet *o);

/* The provider's options, from the session's (options.c). */
typedef struct options {
    int threads;        /* of our own; 0: those of the session */
    bool with_float;    /* claims parts that pay by work in float, too */
    bool all;           /* claims everything that can be computed */
    bool context;       /* parts are kept in an EPContext model that ONNX Runtime writes */
    bool context_embed; /* in its nodes, not in files beside it */
    char *context_path; /* of that model; NULL: not given */
    FILE *profile;      /* what steps take is written here; NULL: nowhere. The provider closes it */
} options;

/* *o is to be released with options_free, also after a failure. */
ort_status *options_read(const ort_api *api, const ort_session_options *session, options *o);
void options_free(options *o);

/* What runs the nodes of a part (compile.c). */
typedef struct program program;

/* One session's provider. */
typedef struct provider {
    ort_ep base; /* first member: ONNX Runtime holds its address */
    const ort_api *api;
    bool tells_parents;
    bool divides;      /* ONNX Runtime: a graph between providers of the processor. From 1.24 on, too */
    bool has_compiled; /* parts of some graph */
    program *claimed;  /* of the parts that were claimed last, until they are compiled */
    const ort_logger *logger;
    options options;
} provider;

/* Says something in ONNX Runtime's log. */
void say(const provider *p, int severity, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* claim.c: which nodes of a graph are ours. */
ort_status *provider_claim(ort_ep *ep, const ort_graph *g, ort_support *support);

/* compile.c: a group of nodes becomes a model. Whatever can fail does so when the nodes are claimed: a program is made
 * of a view of the part, for the inputs' shapes as far as they are fixed, and kept in p->claimed. When ONNX Runtime
 * asks for it, it is there. */
ort_status *provider_keep_program(provider *p, const ort_graph *view);
void provider_drop_program(provider *p); /* the one that was kept last */
void provider_drop_programs(provider *p);
ort_status *provider_compile(ort_ep *ep, const ort_graph **graphs, const ort_node **fused, size_t n,
                             ort_compute_info **programs, ort_node **contexts);
void provider_release_programs(ort_ep *ep, ort_compute_info **programs, size_t n);

#endif
