/* Decides whether preprocessing becomes part of the first layers, if their rounding changes by that: conversions of
 * both kinds are compared. */
#include "qconvert/qconvert.h"

#include <string.h>

/* Standard input can be read only once. */
static bool can_open_again(const session *s)
{
    bool can = strcmp(s->a->model, "-") != 0;
    for (size_t i = 0; i < s->a->data.specs.n; i++)
        can &= strcmp(s->a->data.specs.v[i], "-") != 0;
    return can;
}

static oct_status copy_db(const oct_conversion *c, double **db, oct_err *err)
{
    if (!c->methods_db)
        return OCT_OK;
    if (!(*db = oct_calloc(c->n_methods_db + 1, sizeof **db)))
        return oct_nomem(err);
    memcpy(*db, c->methods_db, c->n_methods_db * sizeof **db);
    return OCT_OK;
}

/* Makes the conversion with preprocessing in front of the model, up to its methods. It prints nothing, measures nothing
 * else, and writes nothing. */
static oct_status measure(session *s, double **db, oct_err *err)
{
    session apart;
    oct_status st = session_open(&apart, s->cli, s->a, err);
    apart.c.o.listener = (oct_convert_listener){ .progress = s->c.o.listener.progress, .arg = s->cli };
    apart.c.o.unfolded = true;
    apart.c.o.sensitivity = false;
    apart.c.o.n_goals = 0;
    if (st == OCT_OK)
        st = session_decide(&apart, err);
    if (st == OCT_OK)
        st = copy_db(&apart.c, db, err);
    session_close(&apart);
    return st;
}

oct_status fold_measure(session *s, oct_err *err)
{
    if (!s->c.from_pixels || !s->src || s->c.o.synthetic || oct_source_is_once(s->src) || !can_open_again(s))
        return OCT_OK;
    oct_cli_note(s->cli, 0,
                 "preprocessing as part of the first layers is compared with preprocessing in front of the model");
    OCT_TRY(measure(s, &s->other_db, err));
    s->c.o.other_db = s->other_db;
    return OCT_OK;
}

oct_status fold_take_back(session *s, oct_err *err)
{
    oct_cli *cli = s->cli;
    const convert_args *a = s->a;
    const double began = s->c.began;
    double *folded = NULL;
    OCT_TRY(copy_db(&s->c, &folded, err));
    oct_cli_note(cli, 0, "as part of the layers it loses too much: it stays in front of the model");
    session_close(s);
    oct_status st = session_open(s, cli, a, err);
    s->other_db = folded;
    s->c.o.other_db = folded;
    s->c.o.unfolded = true;
    s->c.began = began;
    return st == OCT_OK ? session_decide(s, err) : st;
}
