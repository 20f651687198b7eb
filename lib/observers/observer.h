/* lib/observers/observer.h -- observers choose from a tensor's statistics the interval that the quantized values will
 * cover. Each has a file (obs_<name>.c); observers.c has the table. */
#ifndef OCT_OBSERVERS_OBSERVER_H
#define OCT_OBSERVERS_OBSERVER_H

#include "observers/qparams.h"
#include "observers/stats.h"

typedef struct oct_view oct_view; /* view.h: statistics prepared for range selection */

typedef struct oct_observer {
    const char *name, *summary;
    bool has_param; /* it can be written NAME=VALUE; param is the default value */
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
/* OCT_EUSAGE: the name is unknown (the hint has the nearest one), or the parameter is not valid. */
oct_status oct_observer_parse(const char *text, oct_observer_spec *spec, oct_err *err);
oct_observer_spec oct_observer_default(void); /* hist-mse */

/* A chosen range, and its cost. */
typedef struct oct_selection {
    oct_range range;
    oct_qparams q;     /* the parameters for the range */
    double mse;        /* expected squared error of a value, clipping included */
    double signal;     /* mean square of the values, so that SQNR = signal / mse */
    double clipped;    /* share of the values outside the interval of the quantized values */
    uint64_t excluded; /* how many mask-like values and infinities were left out of all of this */
} oct_selection;

/* Chooses a range. OCT_ENUMERIC: no finite value was seen. OCT_ENOMEM. Takes at most about 1 ms. */
oct_status oct_observe(const oct_stats *s, oct_observer_spec spec, oct_qrange g, oct_selection *out, oct_err *err);
/* The cost of a given range. */
oct_status oct_observe_range(const oct_stats *s, oct_range r, oct_qrange g, oct_selection *out, oct_err *err);

#endif
