/* Fuzz target: any bytes as a tokenizer.json and a text for it: first the text, which ends in a zero; then the file. */
#include "fuzz_folder.h"

#include "data/text/tokenizer.h"

enum { MOST = 1 << 10 }; /* of a text: what is longer is slow, and no other way */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const int64_t *ids, *types;
    size_t n;
    oct_tokenizer *t = NULL;
    oct_err err = OCT_ERR_INIT;
    if (!end || end - data > MOST)
        return 0;
    fuzz_folder_open();
    fuzz_write("tokenizer.json", end + 1, size - (size_t)(end + 1 - data));
    if (oct_tokenizer_open("tokenizer.json", &t, &err) != OCT_OK)
        return 0;
    const size_t length = (size_t)(end - data);
    const oct_tokenizer_text one = { .text = (const char *)data, .n = length }, two = {
        .text = (const char *)data, .n = length, .pair = (const char *)data, .n_pair = length / 2
    };
    if (oct_tokenizer_encode(t, &one, 0, &ids, &types, &n, &err) == OCT_OK &&
        oct_tokenizer_encode(t, &two, 7, &ids, &types, &n, &err) == OCT_OK)
        for (size_t i = 0; i < n; i++)
            if (ids[i] < 0 || types[i] < 0)
                abort();
    oct_tokenizer_close(t);
    return 0;
}
