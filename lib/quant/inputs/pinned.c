/* lib/quant/inputs/pinned.c -- reports how ranges and parameters that another tool found, and that a table fixes, were
 * used. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"

#include <string.h>

/* Whether the table has ranges of another tool. Ranges that were pinned by hand have statistics. */
static bool from_elsewhere(const oct_calib *c)
{
    for (size_t i = 0; i < c->n_tensors; i++)
        if (c->tensors[i]->pinned && oct_stats_finite(&c->tensors[i]->stats) == 0)
            return true;
    return false;
}

static oct_status look_at_value(oct_conversion *c, const oct_qjob *j, int value, size_t *cap, oct_err *err)
{
    oct_pinned *p = &c->pinned;
    const char *observer = oct_observer_of(j, value), *misfit = oct_misfit_of(j, value);
    const oct_calib_tensor *t = oct_quant_of(j, value) && observer && strcmp(observer, "pinned") == 0
                                    ? oct_calib_find(c->calib, oct_value_name(j->g, value))
                                    : NULL;
    if (!t || !t->pinned)
        return OCT_OK;
    p->ranges++;
    p->exact += t->exact.bits && !misfit;
    if (!misfit || !t->exact.bits)
        return OCT_OK;
    if (!OCT_GROW(c->arena, p->misfit, p->n_misfit, *cap))
        return oct_nomem(err);
    p->misfit[p->n_misfit++] = (oct_misfit){ t->name, misfit };
    return OCT_OK;
}

/* Counts the values that needed parameters but got none, because the table has no range for them. */
static size_t count_missing(const oct_conversion *c, const char **first)
{
    size_t n, missing = 0;
    const char *const *names = oct_qjob_values(c->job, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        const int v = oct_calib_find(c->calib, names[i]) ? -1 : oct_graph_find(c->job->g, names[i]);
        if (v >= 0 && !oct_quant_of(c->job, v) && !missing++)
            *first = names[i];
    }
    return missing;
}

oct_status oct_conversion_find_pinned(oct_conversion *c, oct_err *err)
{
    size_t cap = 0, n;
    const char *first = NULL;
    oct_pinned *p = &c->pinned;
    *p = (oct_pinned){ 0 };
    if (!c->calib || !from_elsewhere(c->calib) || !oct_qjob_has_qparams(c->job))
        return OCT_OK;
    for (size_t v = 0; v < c->job->n_values; v++)
        OCT_TRY(look_at_value(c, c->job, (int)v, &cap, err));
    oct_qjob_values(c->job, NULL, &n);
    p->missing = count_missing(c, &first);
    if (p->exact + p->n_misfit)
        oct_conversion_say(c, 0, "%s: %zu ranges are used, %zu of them with the scale and zero point that it says",
                           c->table, p->ranges, p->exact);
    else
        oct_conversion_say(c, 0, "%s: %zu ranges are used", c->table, p->ranges);
    for (size_t i = 0; i < p->n_misfit; i++)
        oct_conversion_say(c, 1, "'%s': its range is used, and its scale and zero point are not: %s",
                           p->misfit[i].tensor, p->misfit[i].why);
    if (p->n_misfit)
        oct_conversion_say(c, 0,
                           "%zu tensors get the nearest possible parameters to those given (--verbose names them)",
                           p->n_misfit);
    if (p->missing)
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "%s has no range for %zu of %zu tensors, the first being '%.100s': layers that need these are not static",
            c->table, p->missing, n, first);
    return OCT_OK;
}
