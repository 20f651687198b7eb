/* lib/api/calibration.h -- a whole calibration from typed options (include/octet/octet.h) to a table, and the report of
 * a table. */
#ifndef OCT_API_CALIBRATION_H
#define OCT_API_CALIBRATION_H

#include "api/files.h"
#include "api/samples.h"

typedef struct oct_calib oct_calib; /* observers/calib.h */

/* Who runs a calibration. */
typedef struct oct_calibration_host {
    oct_voice voice;
    const char *written; /* another file that this run writes, checked as the table is; or NULL */
    /* is called with the table once it is written; a failure is that of the calibration. answer: what matters of a
     * calibration (oct_calibration_answer), else NULL */
    oct_status (*made)(void *arg, const oct_calib *c, const oct_item *answer, oct_err *err);
    void *arg;                             /* of these functions */
    const struct oct_given_samples *given; /* for samples.get; NULL: none are given */
} oct_calibration_host;

/* Runs the samples through the model, and writes the table. */
oct_status oct_calibration_run(const octet_calibrate_options *x, const oct_calibration_host *h, oct_err *err);

/* Warns of ranges that come from a handful of samples. Parts are few by nature: of a whole only. */
void oct_calibration_warn_few(oct_voice v, const oct_calib *c);

/* How many bins a histogram of the report has. */
enum { OCT_CALIBRATION_BINS = 32 };
/* The report of a table, of schema octet-calibration-1, with the answer, if it is not NULL. */
void oct_calibration_report(const oct_calib *c, const oct_item *answer, oct_document *to);

/* Writes an object whose "answer" is a list of items (about, text, command): what a calibration wrote, and from what,
 * which tensors' values 8 bits cut off by the default observer, and what to do next. */
void oct_calibration_answer(const octet_calibrate_options *x, const oct_calib *c, double seconds, oct_document *to);

#endif
