/* tests/check/measured.c -- what is chosen by cost, judged by times that a machine of each class has taken
 * (bench/shapes/measured): no clock is read, so the choice for a class is tested on any machine. */
#include "check.h"
#include "kernels/conv/algorithm.h"
#include "kernels/qgemm/qgemm.h"
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of such a file: what a record took for the float or the 8-bit form of a layer. Those that begin with # are for
 * people. */
typedef struct measured_time {
    char form[8], layer[64], record[64];
    double us;
} measured_time;

enum { TIMES = 8192 };

typedef struct guard {
    measured_time *times;
    size_t n, forms, slow;
    oct_isa have;
} guard;

static const char header[] = "form,layer,record,us\n";

static bool read_times(const char *path, guard *to)
{
    char line[256];
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(line, sizeof line, f) && strcmp(line, header) == 0;
    while (ok && fgets(line, sizeof line, f)) {
        measured_time *m = &to->times[to->n];
        if (*line == '#')
            continue;
        ok = to->n < TIMES && sscanf(line, "%7[^,],%63[^,],%63[^,],%lf", m->form, m->layer, m->record, &m->us) == 4 &&
             m->us > 0;
        to->n += ok;
    }
    if (f)
        fclose(f);
    if (!ok || to->n == 0)
        printf("%s: not a file of times (check_kernels --times writes them)\n", path);
    return ok && to->n > 0;
}

/* The class that a file is named for, and the sets that a machine of it has: of its family all up to its own. */
static bool class_of(const char *path, char class[32], oct_isa *have)
{
    static const struct {
        oct_isa bit;
        const char *name;
    } levels[] = {
#define OCT_LEVEL(bit, name, below) { OCT_ISA_##bit, name },
#include "kernels/isas.inc"
#undef OCT_LEVEL
    };
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(class, 32, "%.*s", (int)strcspn(name, "."), name);
    const size_t n = strcspn(class, "-");
    *have = OCT_ISA_REF;
    for (size_t i = 0; i < OCT_COUNT(levels); i++) {
        *have = levels[i].bit == OCT_ISA_NEON ? OCT_ISA_NEON : *have | levels[i].bit;
        if (strlen(levels[i].name) == n && strncmp(levels[i].name, class, n) == 0)
            return true;
    }
    printf("%s: no class of CPUs has this name\n", path);
    return false;
}

static const char *chosen(const guard *by, const check_layer *l, bool bytes)
{
    const oct_conv_geom *g = &l->g;
    oct_choice kernel;
    if (bytes && !strstr(l->op, "Conv"))
        return oct_qgemm_choose(by->have, &(oct_extent){ (size_t)(g->h * g->w), (size_t)g->oc, (size_t)g->c }, true)
            .name;
    if (bytes)
        oct_qconv_choose(g, by->have, NULL, &kernel);
    else
        oct_sconv_choose(g, by->have, false, &kernel);
    return kernel.name;
}

static bool judge_layer(void *arg, const check_layer *l, oct_err *err)
{
    guard *by = arg;
    char name[80];
    (void)err;
    check_layer_name(l, name, sizeof name);
    for (int bytes = 0; bytes < 2; bytes++) {
        const char *record = chosen(by, l, bytes);
        const measured_time *own = NULL, *best = NULL;
        for (size_t i = 0; i < by->n; i++) {
            const measured_time *m = &by->times[i];
            if (strcmp(m->form, bytes ? "int8" : "float") != 0 || strcmp(m->layer, name) != 0)
                continue;
            own = strcmp(m->record, record) == 0 ? m : own;
            best = !best || m->us < best->us ? m : best;
        }
        by->forms += own != NULL;
        if (own && own->us > 1.1 * best->us) {
            by->slow++;
            printf("# %s %s takes %s, %.1f us, where %s takes %.1f\n", name, bytes ? "int8" : "float", record, own->us,
                   best->record, best->us);
        }
    }
    return true;
}

bool check_measured(const char *path, char **files, int n)
{
    char class[32] = "";
    guard by = { .times = calloc(TIMES, sizeof *by.times) };
    bool ok = by.times && class_of(path, class, &by.have) && read_times(path, &by);
    oct_cost_assume(class);
    for (int i = 0; i < n && ok; i++)
        ok = check_each_layer(files[i], judge_layer, &by);
    oct_cost_assume(NULL);
    free(by.times);
    ok = ok && by.forms > 0;
    printf(
        "1..1\n%sok 1 - class %s: of %zu forms of layers whose kernel was measured %zu take one 10 %% slower than the fastest\n",
        ok && by.slow == 0 ? "" : "not ", class, by.forms, by.slow);
    return ok && by.slow == 0;
}
