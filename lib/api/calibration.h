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
    /* is called with the table once it is written; a failure is that of the calibration */
    oct_status (*made)(void *arg, const oct_calib *c, oct_err *err);
    void *arg;                             /* of these functions */
    const struct oct_given_samples *given; /* for samples.get; NULL: none are given */
} oct_calibration_host;

/* Runs the samples through the model, and writes the table. */
oct_status oct_calibration_run(const octet_calibrate_options *x, const oct_calibration_host *h, oct_err *err);

/* Warns of ranges that come from a handful of samples. Parts are few by nature: of a whole only. */
void oct_calibration_warn_few(oct_voice v, const oct_calib *c);

/* How many bins a histogram of the report has. */
enum { OCT_CALIBRATION_BINS = 32 };
/* The report of a table, of schema octet-calibration-1. */
void oct_calibration_report(const oct_calib *c, oct_document *to);

#endif
