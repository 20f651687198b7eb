/* lib/eval/report/report.h -- reports of an evaluation. What was found is put into a document once, which is the JSON
 * report; whatever prints it for a person or for CI reads the document alone, and appends to a buffer. */
#ifndef OCT_EVAL_REPORT_H
#define OCT_EVAL_REPORT_H

#include "base/buf.h"
#include "base/json.h"
#include "eval/report/printers.h"
#include "eval/run/testcase.h"
#include "eval/run/eval.h"
#include "eval/gates/gates.h"

/* The versions of the JSON schemas (share/schema). A number increases if a field is removed or changes its meaning. */
#define OCT_EVAL_SCHEMA "octet-eval-1"
#define OCT_CHECK_SCHEMA "octet-check-1"

/* The options of the evaluation, for the reports. Everything is borrowed, and may be NULL. */
typedef struct oct_report_context {
    const char *preprocess;  /* in canonical form */
    const char *const *data; /* the values of --data */
    size_t n_data;
    const oct_gate_result *gates; /* [n_gates], model by model */
    size_t n_gates;
    const char *const *bad; /* messages about samples that were skipped */
    size_t n_bad;
    /* for the page: its kind ("Conversion"), which samples they are ("that calibration did not see"), and the command
     * of this run */
    const char *title, *which, *command;
    /* Puts what else is known of model k as members of it: "nodes" (what was decided of each), "passes", "methods",
     * "findings", "size", "made_by" (the command) and "answer" (what stands first); NULL: nothing is. */
    void (*put_notes)(oct_json *j, size_t k, const void *notes);
    const void *notes;
    /* Puts more members of the report; NULL: there are none. */
    void (*put_more)(oct_json *j, const void *more);
    const void *more;
} oct_report_context;

void oct_report_document(const oct_eval_result *r, const oct_report_context *c, oct_document *to);

/* Text for people: "-0.40 points (95 %: -1.00 to 0.20, n = 400), within noise". Numbers are signed changes
 * (oct_eval_change), and a word at the end says what they mean: within noise, worse or better. "" if there is nothing
 * to compare. Returns dst. */
enum { OCT_DROP_TEXT = 160, OCT_GATE_TEXT = 320 };
const char *oct_report_drop(char dst[OCT_DROP_TEXT], const oct_eval_score *s);
/* Text such as "top1: -0.40 points (95 %: -1.00 to 0.20, n = 400), within noise, at most 0.5 points worse are allowed:
 * met, but the limit lies inside the interval: 400 samples cannot tell, about 15000 would". Returns dst. */
const char *oct_report_gate(char dst[OCT_GATE_TEXT], const oct_eval_score *s, const oct_drop_limit *limit);

/* The same for any gate: "size: 25123 bytes, at most 20000 are allowed: missed". Returns dst. */
const char *oct_report_gate_result(char dst[OCT_GATE_TEXT], const oct_gate_result *g);
/* The name of a gate, with its metric if it is about a drop: "max-drop top1", "max-size". Returns dst. */
enum { OCT_GATE_TITLE = 64 };
const char *oct_report_gate_title(char dst[OCT_GATE_TITLE], const oct_gate_result *g);

/* How fast a model is against the reference, for every report: "1.25 times faster (middle half of 30 pairs of
 * runs: 1.20 to 1.31)", "as fast (...)", or that the times do not tell (oct_eval_speed_judge decides). "" if it was not
 * timed. Returns dst. */
enum { OCT_SPEED_TEXT = 120 };
const char *oct_report_speed(char dst[OCT_SPEED_TEXT], const oct_eval_speed *s);
/* The same for programs: an object with the verdict in a word, how many pairs of runs there were, and the quartiles
 * where the runs support a verdict. */
void oct_report_json_speed(oct_json *j, const char *key, const oct_eval_speed *s);

/* How far the runtime of a twin is from ours, for every report: "TensorFlow Lite for microcontrollers and ONNX Runtime
 * compute 3 of 27 layers differently; at the outputs 12 of 160 values differ, by at most 0.0039 (16 samples)". Returns
 * dst. */
enum { OCT_DEVICE_TEXT = 240 };
const char *oct_report_device(char dst[OCT_DEVICE_TEXT], const oct_eval_result *r, const oct_eval_differences *d);

/* "Xeon Gold, 4 processors, avx512 of vnni, 2 threads, load 0.3; octet 0.2.0": to be shown in reports with times.
 * Returns dst. */
enum { OCT_ENVIRONMENT_TEXT = 256 };
const char *oct_report_environment(char dst[OCT_ENVIRONMENT_TEXT], const oct_eval_result *r);

/* Write JSON and JUnit XML for an ONNX test case. */
void oct_check_json(const char *model, const char *dir, const oct_check_options *o, const oct_check_result *r,
                    oct_buf *out);
void oct_check_junit(const char *model, const char *dir, const oct_check_result *r, oct_buf *out);

/* Appends text for XML and HTML: &, <, > and quotes become entities, and characters that neither allows are replaced as
 * by oct_char_clean. */
void oct_xml_text(oct_buf *out, const char *s);

#endif
