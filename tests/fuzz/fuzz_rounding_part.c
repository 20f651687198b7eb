/* Fuzz target: any bytes as the parts of a rounding, of two methods. They are refused, or give each layer weights
 * within its range of integers, and the same in whatever order the files are named. */
#include "fuzz_parts.h"
#include "quant/rounding/round_parts.h"

enum { LAYERS = 3, MOST = 8, KEY = 7 };
static const char *const methods[] = { "compensated-rounding", "learned-rounding" };
/* The layers of a model: with safe pairs, with one step, and with 7 bits. */
static const oct_rounded model[LAYERS] = { { .node = 1, .weights = 8, .scales = 2, .limit = 127, .bound = true },
                                           { .node = 4, .weights = 3, .scales = 1, .limit = 127 },
                                           { .node = 5, .weights = 4, .scales = 4, .limit = 64, .bound = true } };

/* What is read of all layers. */
typedef struct taken {
    oct_status status;
    int8_t qvals[2][LAYERS][2][MOST];
    float widened[2][LAYERS][MOST];
    double noise[2][LAYERS][2];
} taken;

static void check_layer(const oct_rounded *x)
{
    for (size_t i = 0; i < x->weights; i++)
        if (abs(x->qvals[i]) > x->limit || abs(x->safe_qvals[i]) > x->limit)
            abort();
    for (size_t i = 0; x->bound && i < x->scales; i++)
        if (!(x->widened[i] >= 1 && x->widened[i] <= 2))
            abort();
    if (!(x->noise[0] >= 0 && x->noise[1] >= 0))
        abort();
}

static oct_status take_method(oct_round_parts *p, int method, taken *t, oct_err *err)
{
    size_t files;
    if (!oct_round_parts_has(p, methods[method]))
        return oct_round_parts_lack(p, methods[method], err);
    OCT_TRY(oct_round_parts_use(p, methods[method], KEY, LAYERS, &files, err));
    if (files == 0 || files > FUZZ_PARTS || !oct_round_parts_used(p, methods[method]))
        abort();
    for (int i = 0; i < LAYERS; i++) {
        oct_rounded x = model[i];
        x.qvals = t->qvals[method][i][0];
        x.safe_qvals = t->qvals[method][i][1];
        x.widened = t->widened[method][i];
        OCT_TRY(oct_round_parts_take(p, methods[method], &x, err));
        check_layer(&x);
        memcpy(t->noise[method][i], x.noise, sizeof x.noise);
    }
    return OCT_OK;
}

static void read_parts(const char *const *path, size_t n, taken *t)
{
    oct_err err = OCT_ERR_INIT;
    oct_round_parts *p = NULL;
    memset(t, 0, sizeof *t);
    oct_status s = oct_round_parts_open(path, n, &p, &err);
    for (int method = 0; method < 2 && s == OCT_OK; method++) {
        const oct_status of = take_method(p, method, t, &err);
        s = of != OCT_OK && oct_round_parts_has(p, methods[method]) ? of : s;
    }
    if (s == OCT_OK)
        s = oct_round_parts_end(p, &err);
    oct_round_parts_close(p);
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_EUSAGE)
        abort();
    if (s != OCT_OK) /* how far it came is of no use to anyone */
        memset(t, 0, sizeof *t);
    t->status = s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static taken one, other;
    const size_t n = fuzz_write_parts(data, size);
    read_parts(fuzz_part_path, n, &one);
    read_parts(fuzz_parts_turned(n), n, &other);
    if ((one.status == OCT_OK) != (other.status == OCT_OK) || memcmp(one.qvals, other.qvals, sizeof one.qvals) != 0 ||
        memcmp(one.widened, other.widened, sizeof one.widened) != 0 ||
        memcmp(one.noise, other.noise, sizeof one.noise) != 0)
        abort();
    return 0;
}
