/* What calls with options do unless they are told otherwise. */
#include "octet/octet.h"

#include <math.h>
#include <string.h>

static void set(void *options, size_t size, const void *usual, size_t known)
{
    if (!options || size < sizeof size)
        return;
    memset(options, 0, size);
    memcpy(options, usual, size < known ? size : known);
    memcpy(options, &size, sizeof size); /* the first member */
}

void octet_convert_init(octet_convert_options *options, size_t size)
{
    const octet_convert_options usual = { .samples.seed = -1,
                                          .accuracy_level = -1,
                                          .budget = -1,
                                          .recover = true,
                                          .bias_correction = true,
                                          .min_sqnr = NAN,
                                          .trials = -1,
                                          .keep_io_types = true };
    set(options, size, &usual, sizeof usual);
}

void octet_calibrate_init(octet_calibrate_options *options, size_t size)
{
    const octet_calibrate_options usual = { .samples.seed = -1 };
    set(options, size, &usual, sizeof usual);
}

void octet_evaluate_init(octet_evaluate_options *options, size_t size)
{
    const octet_evaluate_options usual = { .samples.seed = -1, .layers = -1, .latency = -1 };
    set(options, size, &usual, sizeof usual);
}
