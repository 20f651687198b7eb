/* lib/observers/observers.c -- the table of observers, and the cost of ranges. */
#include "observers/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define OCT_OBSERVER(o) extern const oct_observer oct_observer_##o;
#include "observers/observers.inc"
#undef OCT_OBSERVER

static const oct_observer *const observers[] = {
#define OCT_OBSERVER(o) &oct_observer_##o,
#include "observers/observers.inc"
#undef OCT_OBSERVER
};

size_t oct_observer_count(void)
{
    return OCT_COUNT(observers);
}

const oct_observer *oct_observer_at(size_t i)
{
    return observers[i];
}

const char *oct_observer_names(void)
{
    static _Thread_local char text[256];
    size_t len = 0;
    for (size_t i = 0; i < OCT_COUNT(observers); i++) {
        const char *parts[2] = { i ? ", " : "", observers[i]->name };
        for (int k = 0; k < 2; k++) {
            size_t n = strlen(parts[k]);
            if (len + n < sizeof text) {
                memcpy(text + len, parts[k], n);
                len += n;
            }
        }
    }
    text[len] = 0;
    return text;
}

oct_observer_spec oct_observer_default(void)
{
    oct_observer_spec spec = { observers[0], 0 };
    for (size_t i = 0; i < OCT_COUNT(observers); i++)
        if (strcmp(observers[i]->name, "hist-mse") == 0)
            spec.observer = observers[i];
    spec.param = spec.observer->param;
    return spec;
}

static oct_status unknown(const char *text, oct_err *err)
{
    oct_nearest near = { .word = text, .most = 3 };
    for (size_t i = 0; i < OCT_COUNT(observers); i++)
        oct_nearest_try(&near, observers[i]->name);
    oct_status st = oct_fail(err, OCT_EUSAGE, "unknown observer '%s'; there are %s", text, oct_observer_names());
    oct_nearest_hint(&near, 1, NULL, err);
    return st;
}

oct_status oct_observer_parse(const char *text, oct_observer_spec *spec, oct_err *err)
{
    const char *eq = strchr(text, '=');
    size_t len = eq ? (size_t)(eq - text) : strlen(text);
    const oct_observer *o = NULL;
    for (size_t i = 0; i < OCT_COUNT(observers); i++)
        if (strlen(observers[i]->name) == len && memcmp(observers[i]->name, text, len) == 0)
            o = observers[i];
    if (!o)
        return unknown(text, err);
    double param = o->param;
    if (eq) {
        char *end;
        if (!o->has_param)
            return oct_fail(err, OCT_EUSAGE, "observer '%s' takes no value", o->name);
        param = strtod(eq + 1, &end);
        if (end == eq + 1 || *end || !(param >= o->param_min && param <= o->param_max))
            return oct_fail(err, OCT_EUSAGE, "observer '%s': '%s' is not a number from %g to %g", o->name, eq + 1,
                            o->param_min, o->param_max);
    }
    *spec = (oct_observer_spec){ o, param };
    return OCT_OK;
}

/* How many values of a side have a magnitude above `end`. */
static double outside(const oct_view *v, int side, double end)
{
    const oct_side *d = &v->side[side];
    if (d->peak <= end)
        return 0;
    return d->all.n - oct_view_below(v, side, end).n + d->peak_count;
}

static void assess(const oct_view *v, oct_range r, oct_qrange g, oct_selection *out)
{
    oct_qparams q = oct_qparams_from_range(r, g);
    double s = q.scale, signal = 0;
    for (int i = 0; i < 2; i++)
        signal += v->side[i].all.s2 + v->side[i].peak_count * (v->side[i].peak * v->side[i].peak);
    double clipped = outside(v, 0, (g.qmax - q.zero + 0.5) * s) + outside(v, 1, (q.zero - g.qmin + 0.5) * s);
    *out = (oct_selection){ .range = r,
                            .q = q,
                            .excluded = v->excluded,
                            .mse = oct_view_error(v, q, g) / v->count,
                            .signal = signal / v->count,
                            .clipped = clipped / v->count };
}

oct_status oct_observe(const oct_stats *s, oct_observer_spec spec, oct_qrange g, oct_selection *out, oct_err *err)
{
    oct_view v;
    OCT_TRY(oct_view_init(&v, s, err));
    oct_range r;
    spec.observer->select(&v, g, spec.param, &r);
    assess(&v, r, g, out);
    oct_view_free(&v);
    return OCT_OK;
}

oct_status oct_observe_range(const oct_stats *s, oct_range r, oct_qrange g, oct_selection *out, oct_err *err)
{
    oct_view v;
    OCT_TRY(oct_view_init(&v, s, err));
    assess(&v, r, g, out);
    oct_view_free(&v);
    return OCT_OK;
}
