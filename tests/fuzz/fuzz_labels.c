/* Fuzz target: any bytes as labels, in an .npy or else a CSV. */
#include "fuzz_folder.h"

#include "data/text/labels.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a.png", "dir/a.png", "x.npy[0]", "", "/" };
    const char *path = size && data[0] == 0x93 ? "y.npy" : "y.csv";
    oct_err err = OCT_ERR_INIT;
    oct_labels *l = NULL;
    fuzz_folder_open();
    fuzz_write(path, data, size);
    if (oct_labels_load(path, &l, &err) != OCT_OK)
        return 0;
    const int64_t n = oct_labels_count(l);
    for (int64_t i = -1; i <= n && i < 1000; i++) {
        int64_t label;
        const bool found = oct_labels_find(l, names[0], i, &label);
        if (n >= 0 && (found != (i >= 0 && i < n) || (found && label < -1)))
            abort();
    }
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        int64_t label;
        oct_labels_find(l, names[i], 0, &label);
    }
    oct_labels_free(l);
    return 0;
}
