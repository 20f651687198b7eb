/* tests/check/layers.c -- reads the files of bench/shapes. */
#include "layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void check_layer_name(const check_layer *l, char *to, size_t size)
{
    const oct_conv_geom *g = &l->g;
    if (strstr(l->op, "Conv") == NULL)
        snprintf(to, size, "%s %" PRId64 "x%" PRId64 "x%" PRId64 "%s", l->op, g->h, g->c, g->oc,
                 l->computed ? " both" : "");
    else
        snprintf(to, size, "%s %" PRId64 "x%" PRId64 "/%" PRId64 " %" PRId64 "x%" PRId64 " %" PRId64 "-%" PRId64 "%s",
                 l->op, g->kh, g->kw, g->sh, g->h, g->w, g->c, g->oc,
                 g->groups == g->c && g->c > 1 ? " dw"
                 : g->groups > 1               ? " grouped"
                                               : "");
}

static const char columns[] = "op,times,weights,batch,h,w,c,oc,kh,kw,sh,sw,dh,dw,pt,pl,oh,ow,groups\n";

static bool read_layer(const char *line, check_layer *l)
{
    char weights[24];
    oct_conv_geom *g = &l->g;
    oct_conv_geom_init(g);
    const int n = sscanf(line,
                         "%23[^,],%" SCNd64 ",%23[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64
                         ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64
                         ",%" SCNd64 ",%" SCNd64 ",%" SCNd64,
                         l->op, &l->times, weights, &l->batch, &g->h, &g->w, &g->c, &g->oc, &g->kh, &g->kw, &g->sh,
                         &g->sw, &g->dh, &g->dw, &g->ph, &g->pw, &g->oh, &g->ow, &g->groups);
    l->computed = n == 19 && strcmp(weights, "computed") == 0;
    g->transposed = n == 19 && strcmp(l->op, "ConvTranspose") == 0;
    return n == 19;
}

bool check_each_layer(const char *path, bool (*fn)(void *arg, const check_layer *l, oct_err *err), void *arg)
{
    char line[256];
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f) || strcmp(line, columns) != 0) {
        printf("%s: not a file of shapes (bench/shapes.py writes them)\n", path);
        if (f)
            fclose(f);
        return false;
    }
    bool ok = true;
    while (ok && fgets(line, sizeof line, f)) {
        check_layer l;
        oct_err err = OCT_ERR_INIT;
        ok = read_layer(line, &l) && fn(arg, &l, &err);
        if (!ok)
            printf("%s: %s: %s", path, err.text[0] ? err.text : "cannot read the line", line);
    }
    fclose(f);
    return ok;
}
