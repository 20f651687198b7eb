/* Fuzz target: any text as preprocessing steps. What is accepted must read back to the same steps. */
#include "data/pictures/preprocess.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a", "b/c:0" };
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    oct_err err = OCT_ERR_INIT;
    oct_steps steps[2] = { { 0 } }, again[1] = { { 0 } };
    oct_buf first = OCT_BUF_INIT, second = OCT_BUF_INIT;
    if (oct_steps_parse(text, names, 2, steps, &err) == OCT_OK) {
        oct_steps_text(&steps[0], "", &first);
        if (oct_steps_parse(oct_buf_str(&first), NULL, 1, again, &err) != OCT_OK)
            abort();
        oct_steps_text(&again[0], "", &second);
        if (strcmp(oct_buf_str(&first), oct_buf_str(&second)) != 0)
            abort();
    }
    oct_buf_free(&first);
    oct_buf_free(&second);
    free(text);
    return 0;
}
