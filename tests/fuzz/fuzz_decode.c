/* Fuzz target: any text as a rule for outputs, by which outputs made by hand become boxes. */
#include "base/mem.h"
#include "eval/sets/boxes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 42, WIDTH = 64, HEIGHT = 32 }; /* 32 cells of stride 8, 8 of 16, 2 of 32 */

/* Outputs of a sample in the shapes that rules ask for; numbers of every kind among them. */
static void apply(const oct_decode *r)
{
    static float v[ROWS * 85];
    static const int64_t many[] = { ROWS, 85 }, four[] = { ROWS, 4 }, turned[] = { 7, ROWS }, bins[] = { ROWS, 32 },
                         one[] = { ROWS }, grid[] = { 3, 2, 7, 9 };
    const oct_set_tensor out[] = { { "y", 2, many, v, ROWS * 85 },     { "boxes", 2, four, v, ROWS * 4 },
                                   { "t", 2, turned, v, ROWS * 7 },    { "d", 2, bins, v, ROWS * 32 },
                                   { "labels", 1, one, v + 3, ROWS },  { "scores", 1, one, v + 5, ROWS },
                                   { "g", 4, grid, v, 3 * 2 * 7 * 9 }, { "n", 0, NULL, v + 9, 1 } };
    const oct_judging j = { .rule = r };
    oct_err err = OCT_ERR_INIT;
    oct_boxes b = { 0 };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = i % 97 == 0 ? 1e30f : i % 89 == 0 ? (float)-(double)i : (float)(i % 31) / 31;
    for (size_t first = 0; first < OCT_COUNT(out); first++)
        for (size_t n = 1; first + n <= OCT_COUNT(out); n++) {
            const oct_status s = oct_boxes_decode(&j, out + first, n, WIDTH, HEIGHT, NULL, 0, &b, &err);
            if (s != OCT_OK && s != OCT_EUSAGE && s != OCT_ENOMEM)
                abort();
            for (size_t i = 1; s == OCT_OK && i < b.n; i++)
                if (b.v[i].score > b.v[i - 1].score)
                    abort();
        }
    oct_boxes_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_decode *r;
    char *text = oct_alloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    const oct_status s = oct_decode_parse(text, "rule", "", &r, &err);
    oct_free(text);
    if (s != OCT_OK && (s != OCT_EMALFORMED && s != OCT_ENOMEM))
        abort();
    if (s == OCT_OK && r->judges == OCT_SET_BOXES)
        apply(r);
    if (s == OCT_OK)
        oct_decode_close(r);
    return 0;
}
