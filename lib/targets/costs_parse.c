/* Reads lines of costs, `cost KIND HOW TERM=PICOSECONDS...`, from a table or from a target file. */
#include "targets/target_int.h"

#include "ops/op.h"

#include <string.h>

#define MOST_COST 1e15 /* picoseconds */

static const char *const hows[OCT_COST_HOWS] = { [OCT_COST_FLOAT] = "float",
                                                 [OCT_COST_STATIC] = "static",
                                                 [OCT_COST_STATIC16] = "static16",
                                                 [OCT_COST_DYNAMIC] = "dynamic",
                                                 [OCT_COST_BLOCKS4] = "blocks4",
                                                 [OCT_COST_BLOCKS8] = "blocks8",
                                                 [OCT_COST_BLOCKS4_BYTES] = "blocks4-bytes",
                                                 [OCT_COST_BLOCKS8_BYTES] = "blocks8-bytes" };
static const char *const terms[] = { "call", "mac", "out", "in", "weight" };

/* The kinds that a line can name, in addition to the names of operators in ONNX. */
static const char *const kinds[] = { "conv",     "conv-few",  "conv-1x1", "conv-depthwise",   "conv-grouped",
                                     "conv-1d",  "conv-3d",   "product",  "product-computed", "Swish",
                                     "quantize", "dequantize" };

static oct_status read_term(oct_words *w, oct_cost_line *l, unsigned *given, oct_err *err)
{
    double *const each[] = { &l->call, &l->mac, &l->out, &l->in, &l->weight };
    const oct_word word = oct_words_take(w);
    const char *equals = memchr(word.at, '=', word.n);
    oct_words part = *w;
    size_t i;
    if (!equals)
        return oct_words_fault(w, word.at, err, "a term and its picoseconds are expected, as in mac=16.2");
    part.at = word.at;
    part.end = equals;
    OCT_TRY(OCT_WORDS_ONE_OF(&part, "term", terms, &i, err));
    if (*given >> i & 1)
        return oct_words_fault(w, word.at, err, "'%s' stands twice in this line", terms[i]);
    *given |= 1u << i;
    part.at = equals + 1;
    part.end = word.at + word.n;
    return oct_words_number(&part, 0, MOST_COST, each[i], err);
}

/* Whether Octet has a record of an operator with this name. */
static bool is_operator(const char *word)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < n; i++)
        if (!all[i]->domain[0] && strcmp(all[i]->type, word) == 0)
            return true;
    return false;
}

oct_status oct_cost_read(oct_words *w, oct_cost_table *t, oct_err *err)
{
    oct_cost_line l = { 0 };
    const char *at;
    size_t how;
    unsigned given = 0;
    oct_words_skip(w);
    const oct_words kind = *w;
    OCT_TRY(oct_words_next(w, &l.kind, &at, err));
    if (!is_operator(l.kind)) {
        *w = kind;
        OCT_TRY(OCT_WORDS_ONE_OF(w, "kind of operator", kinds, &how, err));
    }
    OCT_TRY(OCT_WORDS_ONE_OF(w, "way to run it", hows, &how, err));
    l.how = (oct_cost_how)how;
    for (size_t i = 0; i < t->n; i++)
        if (t->line[i].how == l.how && strcmp(t->line[i].kind, l.kind) == 0)
            return oct_words_fault(w, at, err, "%s %s stands in two lines of this table", l.kind, hows[l.how]);
    while (!oct_words_done(w))
        OCT_TRY(read_term(w, &l, &given, err));
    if (!given)
        return oct_words_fault(w, w->at, err, "a term and its picoseconds are missing, as in mac=16.2");
    if (!OCT_GROW(w->arena, t->line, t->n, t->cap))
        return oct_nomem(err);
    t->line[t->n++] = l;
    return OCT_OK;
}

static oct_status read_cost(oct_words *w, void *self, oct_err *err)
{
    return oct_cost_read(w, self, err);
}

static oct_status read_runtime(oct_words *w, void *self, oct_err *err)
{
    return oct_words_rest(w, "the runtime", &((oct_cost_table *)self)->runtime, err);
}

static oct_status read_cpus(oct_words *w, void *self, oct_err *err)
{
    return oct_words_rest(w, "the CPUs", &((oct_cost_table *)self)->cpus, err);
}

oct_status oct_costs_parse(const char *text, const char *label, oct_arena *a, oct_cost_table *t, oct_err *err)
{
    static const oct_words_key keys[] = { { "name" },
                                          { "runtime", .read = read_runtime },
                                          { "cpus", .read = read_cpus },
                                          { "measured" },
                                          { "cost", .read = read_cost, .again = true } };
    oct_words w = { .label = label, .next = text, .arena = a };
    *t = (oct_cost_table){ .name = label };
    return oct_words_read(&w, &(oct_words_format){ .key = keys, .n = OCT_COUNT(keys) }, t, err);
}
