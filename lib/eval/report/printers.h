/* lib/eval/report/printers.h -- what prints the document of an evaluation (report.h) for a person or for CI. It reads
 * the document alone. */
#ifndef OCT_EVAL_PRINTERS_H
#define OCT_EVAL_PRINTERS_H

#include "base/buf.h"
#include "base/document.h"

/* The ways to print it. If memory runs out, out->failed is set. */
/* Writes JUnit XML: a suite for each quantized model (or for the only model), with the environment as properties, and a
 * test case for the samples, for each metric and for each gate. A missed gate is a failure. */
void oct_report_junit(const oct_item *report, oct_buf *out);
/* Writes Markdown for the summary of a job: for each quantized model, or the only one, a table of measurements and a
 * table of gates with marks. Names are escaped. */
void oct_report_markdown(const oct_item *report, oct_buf *out);
/* Writes a page that is complete in itself and loads nothing. It can be read without its script, which sorts and
 * filters; it supports light and dark colours. */
void oct_report_html(const oct_item *report, oct_buf *out);

/* The worst of the gates of a model, by its number: one that is missed, else one of which the measurement is unsure,
 * else any; NULL: it has none. */
const oct_item *oct_report_worst_gate(const oct_item *report, size_t k);

/* What must be known of a model before its figures: "runs in onnxruntime 1.32.0", NULL if our runtime runs it; and
 * "quantizes dynamically, with scales of 8 samples together: its results depend on the batch", NULL if they do not.
 * Returns dst, for which OCT_RUNNER_TEXT bytes suffice. */
enum { OCT_RUNNER_TEXT = 128 };
const char *oct_report_runner(char *dst, size_t size, const oct_item *model);
const char *oct_report_batch(char *dst, size_t size, const oct_item *report, const oct_item *model);

#endif
