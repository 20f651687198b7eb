/* tests/fuzz/fuzz_calib_table.c -- any bytes as a calibration table: an error, or a table that reads back. */
#include "base/mem.h"
#include "fuzz_table.h"
#include "observers/observer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void choose_ranges(const oct_calib *c)
{
    const oct_qrange g = { 0, 255, false };
    for (size_t i = 0; i < c->n_tensors && i < 2; i++)
        for (size_t k = 0; k < oct_observer_count(); k++) {
            oct_observer_spec spec = { oct_observer_at(k), oct_observer_at(k)->param };
            oct_selection s;
            if (oct_observe(&c->tensors[i]->stats, spec, g, &s, NULL) == OCT_OK &&
                !(s.range.lo <= 0 && s.range.hi >= 0))
                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_calib *c = NULL;
    if (oct_calib_parse(data, size, "fuzz", &c, NULL) == OCT_OK) {
        check_reads_back(c);
        choose_ranges(c);
        oct_calib_destroy(c);
    }
    return 0;
}
