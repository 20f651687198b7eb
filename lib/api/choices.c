#include "api/choices.h"

/* The compiler compares the declarations. */
#include "data/data.h"
#include "encodings/encodings.h"
#include "eval/metrics/metric.h"
#include "eval/sets/decode.h"
#include "observers/observer.h"
