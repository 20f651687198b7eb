/* lib/api/convert/session_int.h -- the inside of a conversion. Private to lib/api. */
#ifndef OCT_API_SESSION_INT_H
#define OCT_API_SESSION_INT_H

#include "api/samples_int.h"
#include "api/session.h"
#include "eval/gates/gates.h"
#include "passes/input_pixels.h"
#include "quant/convert/convert.h"

/* An input or output of a graph with its type and shape, or an operator with how many nodes have it. */
typedef struct oct_census_row {
    const char *what, *name; /* what: "input", "output", "operator" */
    const char *text;        /* "float32 [N,3,224,224]"; NULL of operators */
    size_t n;                /* of operators, in nested graphs too */
} oct_census_row;
typedef struct oct_census {
    oct_census_row *row; /* [n], inputs and outputs first */
    size_t n, cap;
} oct_census;

struct oct_session {
    octet_convert_options x; /* what was asked for; texts are borrowed */
    oct_session_host h;
    oct_conversion c;  /* the conversion */
    oct_model *m;      /* as loaded; what is made of it is c.m */
    oct_census census; /* of m as loaded */
    oct_target *target;
    const oct_twin *twin; /* NULL: not asked for */
    oct_samples samples;
    double spread;                 /* of the first input, as its statistics tell (oct_input_spread) */
    oct_pixels pixels;             /* what the first input takes, as the model was loaded */
    oct_source *src;               /* NULL without samples */
    bool said_taken;               /* how they were taken */
    char *output;                  /* its path, also if nothing will be written */
    const char *to;                /* where the model is written: output, or for x.in_memory a descriptor's name */
    int memory;                    /* that descriptor; -1: none */
    oct_goal goals[OCT_GOALS_MAX]; /* max_drop, min_sqnr, min_agreement */
    size_t n_goals;
    oct_gates gates; /* max_drop as parsed */
    oct_metric_command command;
    oct_decode *rule; /* how results are judged; NULL: no rule is given */
    oct_truth *truth;
    double budget;   /* as a share */
    double began;    /* the time of the start, from oct_now() */
    oct_buf made_by; /* the command that will be recorded; it is needed early because its length counts */
    oct_buf graph_text;
    oct_record record; /* digests of inputs that will be recorded */
};

/* session.c: the target's name, where "auto" means this machine's; or its file. */
const char *oct_session_target(const octet_convert_options *x);
/* How many goals there are. */
size_t oct_session_goals(const octet_convert_options *x);
/* The layers of g, which holds the session's model, as they would be with samples. They exist as long as *job, which
 * the caller destroys, also after a failure. */
oct_status oct_session_preview(const oct_session *s, oct_graph *g, oct_qjob **job, oct_layer **layers, size_t *n,
                               oct_err *err);

/* session_tflite.c: whether a graph can be written as .tflite; and writes the session's, with notes about what became
 * of its axes. */
oct_status oct_session_tflite_check(const oct_graph *g, oct_err *err);
oct_status oct_session_tflite_write(oct_session *s, const char *path, oct_err *err);

/* session_command.c: the command of qconvert that does the same, in a form that is independent of everything that
 * cannot change the model. bare: without the folders of files, as it is written to the model; else with the paths as
 * given, and with what judges the result. Release it with oct_buf_free. */
void oct_session_command(const octet_convert_options *x, bool bare, oct_buf *b);
/* Reads one that is written bare, as it stands in a model. record tells which of its words are files. OCT_EMALFORMED:
 * no run of this program has written it. Texts are in the arena. */
oct_status oct_session_read_command(octet_convert_options *x, const char *model, const char *text,
                                    const oct_record *record, oct_arena *arena, oct_err *err);
/* Whether a command equals that text, if folders are ignored. */
bool oct_command_is_like(const char *command, const char *bare);

/* session_answer.c: what matters of the result, as the list "answer" of a report: objects of what each is about, a text
 * of one or more sentences, and a command for it where one helps. Then the same texts as a paragraph, without what is
 * to be done. */
void oct_session_answer(const oct_session *s, oct_json *j);
void oct_session_sentence(const oct_session *s, oct_buf *b);
/* session_text.c: the reason of a decision in words: "by the rule 'any' (line 7 of the built-in policy); the target
 * takes s8 activations" of "any (built-in:7); the target ...". Of a rule of the user's the place stays as it is. */
void oct_session_reason(const char *why, oct_buf *b);
/* What the result loses, in a few words: "96.20 % (-0.40)", "32.9 dB"; and what these measure: "top1, float 96.60 %, on
 * 64 samples that calibration did not see". Nothing where nothing was measured. */
void oct_session_loss(const oct_session *s, oct_buf *b);
void oct_session_measure(const oct_session *s, oct_buf *b);
/* " on 64 samples that calibration did not see" */
void oct_session_samples(const oct_session *s, uint64_t n, oct_buf *b);

/* session_report.c: the decision about a layer, for a row of a report. */
void oct_report_decision(oct_json *j, const void *layer);
/* The same with all that is known of the layer, and the reason in these words; what a pass changed, for a row; and
 * lists of these, of methods, of the choice for a size, and of what rounding each value and each layer costs. */
void oct_report_layer(oct_json *j, const oct_layer *l, const char *why);
void oct_report_change(oct_json *j, const void *change);
void oct_report_passes(oct_json *j, const oct_conversion *c);
void oct_report_methods(oct_json *j, const oct_conversion *c);
void oct_report_size(oct_json *j, const oct_conversion *c);
void oct_report_causes(oct_json *j, const oct_causes *x);
/* What matters of a conversion beside those for other targets, as members of a row. */
void oct_report_target(oct_json *j, const oct_session *s);

/* session_census.c: what a graph has; rows and texts are in the arena. */
oct_status oct_census_take(const oct_graph *g, oct_arena *arena, oct_census *c, oct_err *err);
/* The list "graph" of a report: what the model had, and what the result has. */
void oct_report_census(oct_json *j, const oct_session *s);

/* session_estimate.c: what a run that is not dry takes on this machine, from what this run has taken so far. */
typedef struct oct_estimate {
    double seconds, memory; /* memory: the most bytes at a time */
} oct_estimate;
oct_estimate oct_session_estimate(const oct_session *s);

#endif
