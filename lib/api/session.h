/* lib/api/session.h -- a whole conversion from typed options (include/octet/octet.h) to model and report. The functions
 * are called in the order in which they stand. */
#ifndef OCT_API_SESSION_H
#define OCT_API_SESSION_H

#include "api/files.h"
#include "api/samples.h"

/* Who runs a session, and what it wants of it besides. */
typedef struct oct_session_host {
    oct_voice voice;
    const char *const *written; /* [n_written]: other files that this run writes, checked as the outputs are; each may
                                   be NULL */
    size_t n_written;
    const char *recorded; /* the command to record instead of these options; NULL: record these */
    bool spill;           /* this process runs nothing else: large blocks of arenas that live no longer than the session
                             may go into a file (base/spill.h). Documents stay in memory */
    bool no_save;         /* nothing will be written, so inputs need no digests */
    const char *command;  /* the command line, for the page; NULL: that of the options */
    const char *graph;    /* the step of the conversion behind which its graph becomes graph_text; NULL: none */
    bool dot;             /* for Graphviz */
    const struct oct_given_samples *given; /* for x.samples.get; NULL: none are given */
} oct_session_host;

typedef struct oct_session oct_session;

/* Opens options and the model. *s: NULL after a failure. */
oct_status oct_session_open(const octet_convert_options *x, const oct_session_host *h, oct_session **s, oct_err *err);
/* Takes table and samples, and decides. */
oct_status oct_session_decide(oct_session *s, oct_err *err);
/* OCT_EGOAL: no choice of schemes has the requested size; then nothing is to be made. */
oct_status oct_session_fits(const oct_session *s, oct_err *err);
/* Makes the model, judges it and writes it, unless it is a dry run. */
oct_status oct_session_make(oct_session *s, oct_err *err);
/* Of h.graph: the graph as text. */
const oct_buf *oct_session_graph(const oct_session *s);
/* Of x.in_memory: appends the bytes of the model that was made. */
oct_status oct_session_read(const oct_session *s, oct_buf *model, oct_err *err);
/* Makes the report of what was decided and made, of schema octet-convert-1. */
void oct_session_report(const oct_session *s, oct_document *to);
/* Writes the page for a browser, if the options ask for one. */
oct_status oct_session_page(const oct_session *s, oct_err *err);
/* session_advice.c: what else to try, such as samples or bf16, and the gain: a list of items as in the answer. */
oct_status oct_session_advice(const oct_session *s, oct_document *to, oct_err *err);
/* OCT_EGOAL, with a text for it: a goal was missed, or a strict session lost too much. */
oct_status oct_session_goal(const oct_session *s, oct_err *err);
void oct_session_close(oct_session *s); /* NULL allowed */

/* The file of the options' target; NULL: it is built in. */
const char *oct_session_target_file(const octet_convert_options *x);
/* The name of a form of files, among those of --format, that is not ONNX's. */
#define OCT_FORMAT_TFLITE "tflite"
#define OCT_TARGET_OF_TFLITE "litert" /* the target of .tflite files without another one */
bool oct_session_writes_tflite(const octet_convert_options *x);
/* Whether there is only a table, and methods were asked for that measure on samples. */
bool oct_session_lacks_samples(const oct_session *s);

#endif
