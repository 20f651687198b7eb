/* How much worse a metric may become: parsed and applied. */
#include "eval/metrics/metric.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

oct_status oct_drop_limit_parse(const char *text, oct_drop_limit *d, oct_err *err)
{
    char *end;
    double v = strtod(text, &end);
    bool relative = false;
    if (strpbrk(text, "xX \t")) /* strtod accepts these, but nobody means them */
        end = (char *)text;
    if (end != text && strcmp(end, "%") == 0) {
        v /= 100;
    } else if (end != text && strcmp(end, "r%") == 0) {
        v /= 100;
        relative = true;
    } else if (end == text || *end) {
        oct_fail(err, OCT_EUSAGE, "'%s' is not a drop", text);
        oct_hint(err, "0.01 is in the metric's own units, 0.5%% is 0.005, 0.5r%% is relative to float");
        return OCT_EUSAGE;
    }
    if (!isfinite(v))
        return oct_fail(err, OCT_EUSAGE, "a drop of '%s' is not finite", text);
    *d = (oct_drop_limit){ v, relative };
    return OCT_OK;
}

oct_status oct_share_parse(const char *option, const char *of, const char *text, double *share, oct_err *err)
{
    oct_drop_limit d;
    if (oct_drop_limit_parse(text, &d, NULL) == OCT_OK && !d.relative && d.value > 0 && d.value <= 1) {
        *share = d.value;
        return OCT_OK;
    }
    oct_fail(err, OCT_EUSAGE, "%s: '%s' is not a share of %s", option, text, of);
    oct_hint(err, "give 0.99 or 99%%");
    return OCT_EUSAGE;
}

oct_status oct_drop_limit_check(const oct_drop_limit *d, const oct_metric *m, oct_err *err)
{
    if (d->value >= 1 && oct_metric_in_percent(m)) {
        oct_fail(err, OCT_EUSAGE, "a drop of %g is %g points of %s, and no model drops further", d->value,
                 d->value * 100, m->name);
        oct_hint(err, "one point is 1%% or 0.01");
        return OCT_EUSAGE;
    }
    if (!d->relative || !m->lost)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "a drop of %s cannot be relative to the float model, of which %s says nothing", m->name,
             m->name);
    oct_hint(err, "--max-drop 1%% means: at most 0.01 %s", m->lost);
    return OCT_EUSAGE;
}

double oct_drop_allowed(const oct_drop_limit *d, double reference)
{
    return d->relative ? d->value * fabs(reference) : d->value;
}

bool oct_drop_exceeds(const oct_drop_limit *d, double reference, double drop)
{
    const double allowed = oct_drop_allowed(d, reference);
    /* A difference in the last bits of means over thousands of scores is no reason to fail. */
    return !(drop <= allowed + 4 * DBL_EPSILON * fmax(fabs(reference), fabs(allowed)));
}
