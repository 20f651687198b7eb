/* lib/observers/observer.h -- reduces a tensor's statistics to the real interval that the
 * quantized integers will cover. One file per observer (obs_<name>.c); table: observers.c. */
#ifndef OCT_OBSERVERS_OBSERVER_H
#define OCT_OBSERVERS_OBSERVER_H

#include "observers/qparams.h"
#include "observers/stats.h"

typedef struct oct_view oct_view; /* view.h: statistics prepared for range selection */

typedef struct oct_observer {
    const char *name, *summary;
    bool has_param; /* may be written NAME=VALUE; param is the default */
    double param, param_min, param_max;
    void (*select)(const oct_view *v, oct_qrange g, double param, oct_range *out);
} oct_observer;

/* The table: 0 <= i < oct_observer_count(). */
size_t oct_observer_count(void);
const oct_observer *oct_observer_at(size_t i);
const char *oct_observer_names(void); /* "minmax, avg-minmax, ..." */

/* An observer and its parameter: "hist-mse", "hist-percentile=99.9". */
typedef struct oct_observer_spec {
    const oct_observer *observer;
    double param;
} oct_observer_spec;
/* OCT_EUSAGE for an unknown name (with the nearest one) or a bad parameter. */
oct_status oct_observer_parse(const char *text, oct_observer_spec *spec, oct_err *err);
oct_observer_spec oct_observer_default(void); /* hist-mse */

/* A chosen range and what it costs. */
typedef struct oct_selection {
    oct_range range;
    oct_qparams q;      /* of that range */
    double mse;         /* expected squared error of one value, clipping included */
    double signal;      /* mean square of the values, so that SQNR = signal / mse */
    double clipped;     /* share of values outside the quantized values' real interval */
    uint64_t excluded;  /* mask-like values and infinities that were left out of all of the above */
} oct_selection;

/* OCT_ENUMERIC when no finite value was seen; OCT_ENOMEM. At most about 1 ms. */
oct_status oct_observe(const oct_stats *s, oct_observer_spec spec, oct_qrange g, oct_selection *out, oct_err *err);
/* The same costs for a range given by hand. */
oct_status oct_observe_range(const oct_stats *s, oct_range r, oct_qrange g, oct_selection *out, oct_err *err);

#endif
