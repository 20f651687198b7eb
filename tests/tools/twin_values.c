/* Runs a .tflite model as another runtime does, for tests.
 *
 *     twin_values TWIN MODEL INPUTS OUTPUTS
 *
 * INPUTS: the bytes of the model's inputs, sample behind sample. OUTPUTS gets the bytes of all tensors that are no
 * constants, in the order of the file, sample behind sample. Exit: 0, or that of the error. */
#include "base/io.h"
#include "tflite/tfl_read.h"
#include "twins/twins.h"

#include <stdio.h>

static size_t bytes_of(const oct_tfl_tensor *t)
{
    size_t n = oct_tfl_type_bytes(t->type);
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

static oct_status run(const char *twin, const char *model, FILE *in, FILE *out, oct_arena *arena, oct_err *err)
{
    const oct_twin *t;
    oct_tfl_model m;
    oct_twin_run *r = NULL;
    char *data;
    size_t size;
    OCT_TRY(oct_twin_find(twin, &t, err));
    OCT_TRY(oct_read_all(model, (size_t)1 << 30, &data, &size, err));
    oct_status s = oct_tfl_model_read(data, size, model, arena, &m, err);
    s = s == OCT_OK ? oct_twin_open(t, &m, &r, err) : s;
    while (s == OCT_OK) {
        size_t got = 0;
        for (size_t i = 0; i < m.n_input; i++)
            got += fread(oct_twin_data(r, m.input[i].tensor), bytes_of(&m.tensor[m.input[i].tensor]), 1, in);
        if (got < m.n_input)
            break;
        s = oct_twin_compute(r, err);
        for (size_t i = 0; i < m.n_tensor && s == OCT_OK; i++)
            if (!m.tensor[i].data)
                fwrite(oct_twin_data(r, (int)i), bytes_of(&m.tensor[i]), 1, out);
    }
    oct_twin_close(r);
    oct_free(data);
    return s;
}

int main(int argc, char **argv)
{
    oct_err err = { 0 };
    FILE *in = argc == 5 ? fopen(argv[3], "rb") : NULL, *out = in ? fopen(argv[4], "wb") : NULL;
    oct_arena *arena = oct_arena_create();
    if (!in || !out || !arena)
        return 2;
    const oct_status s = run(argv[1], argv[2], in, out, arena, &err);
    if (s != OCT_OK)
        fprintf(stderr, "%s\n", err.text);
    oct_arena_destroy(arena);
    fclose(in);
    return fclose(out) ? 1 : (int)s;
}
