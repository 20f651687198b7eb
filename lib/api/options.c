/* What a conversion does unless it is told otherwise. */
#include "octet/octet.h"

#include <math.h>
#include <string.h>

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
    if (!options || size < sizeof size)
        return;
    memset(options, 0, size);
    memcpy(options, &usual, size < sizeof usual ? size : sizeof usual);
    options->size = size;
}
