/* lib/api/report_forms.h -- the forms of the report of an evaluation, for programs. The functions are those of
 * lib/eval/report/printers.h, which says more of them; choices.c sees that they are declared alike. */
#ifndef OCT_API_REPORT_FORMS_H
#define OCT_API_REPORT_FORMS_H

#include "base/buf.h"
#include "base/document.h"

void oct_report_junit(const oct_item *report, oct_buf *out);
void oct_report_markdown(const oct_item *report, oct_buf *out);
void oct_report_html(const oct_item *report, oct_buf *out);

/* What must be known of a model before its figures; NULL: nothing. */
const char *oct_report_runner(char *dst, size_t size, const oct_item *model);
const char *oct_report_batch(char *dst, size_t size, const oct_item *report, const oct_item *model);

/* The share of its median by which the quartiles of a time that is scattered differ (eval/metrics/costs.h). */
extern const double oct_scattered_spread;

#endif
