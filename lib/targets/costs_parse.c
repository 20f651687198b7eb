/* Reads lines of costs, `cost KIND HOW TERM=PICOSECONDS...`, from a table or from a target file. */
#include "targets/target_int.h"

#include "ops/op.h"

#include <stdlib.h>
#include <string.h>

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

static size_t place(const char *const *list, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && strcmp(list[i], word) != 0)
        i++;
    return i;
}

/* A decimal number of picoseconds, 0 to 1e15. Other texts that strtod accepts, such as "inf" and "0x1p3", are
 * rejected. */
static bool number(const char *text, double *v)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    *v = strtod(text, &end);
    return *end == '\0' && *v >= 0 && *v <= 1e15;
}

static oct_status read_term(const oct_words *w, const char *at, char *word, oct_cost_line *l, unsigned *given,
                            oct_err *err)
{
    double *const each[] = { &l->call, &l->mac, &l->out, &l->in, &l->weight };
    char *equals = strchr(word, '=');
    if (!equals)
        return oct_words_fault(w, at, err, "a term and its picoseconds are expected, as in mac=16.2");
    *equals = '\0';
    const size_t i = place(terms, OCT_COUNT(terms), word);
    if (i == OCT_COUNT(terms))
        return oct_words_unknown(w, at, "term", word, terms, OCT_COUNT(terms), err);
    if (*given >> i & 1)
        return oct_words_fault(w, at, err, "'%s' stands twice in this line", word);
    *given |= 1u << i;
    if (!number(equals + 1, each[i]))
        return oct_words_fault(w, at + (equals + 1 - word), err, "a number from 0 to 1e15 is expected");
    return OCT_OK;
}

/* Copies the next word into an arena; "" at the end of the line. *at: where it begins. */
static oct_status next(oct_words *w, oct_arena *a, char **word, const char **at, oct_err *err)
{
    const bool done = oct_words_done(w);
    *at = w->at;
    while (!done && w->at < w->end && !strchr(" \t\r", *w->at))
        w->at++;
    *word = oct_arena_strndup(a, *at, (size_t)(w->at - *at));
    return *word ? OCT_OK : oct_nomem(err);
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

oct_status oct_cost_read(oct_words *w, oct_arena *a, oct_cost_table *t, oct_err *err)
{
    oct_cost_line l = { 0 };
    const char *at;
    char *word;
    unsigned given = 0;
    OCT_TRY(next(w, a, &word, &at, err));
    if (place(kinds, OCT_COUNT(kinds), word) == OCT_COUNT(kinds) && !is_operator(word))
        return oct_words_unknown(w, at, "kind of operator", word, kinds, OCT_COUNT(kinds), err);
    l.kind = word;
    OCT_TRY(next(w, a, &word, &at, err));
    l.how = (oct_cost_how)place(hows, OCT_COUNT(hows), word);
    if (l.how == OCT_COST_HOWS)
        return oct_words_unknown(w, at, "way to run it", word, hows, OCT_COUNT(hows), err);
    for (size_t i = 0; i < t->n; i++)
        if (t->line[i].how == l.how && strcmp(t->line[i].kind, l.kind) == 0)
            return oct_words_fault(w, w->line, err, "%s %s stands in two lines of this table", l.kind, hows[l.how]);
    while (!oct_words_done(w)) {
        OCT_TRY(next(w, a, &word, &at, err));
        OCT_TRY(read_term(w, at, word, &l, &given, err));
    }
    if (!given)
        return oct_words_fault(w, w->at, err, "a term and its picoseconds are missing, as in mac=16.2");
    if (!OCT_GROW(a, t->line, t->n, t->cap))
        return oct_nomem(err);
    t->line[t->n++] = l;
    return OCT_OK;
}

oct_status oct_costs_parse(const char *text, const char *label, oct_arena *a, oct_cost_table *t, oct_err *err)
{
    static const char *const keys[] = { "name", "measured", "cost" };
    oct_words w = { .label = label, .next = text };
    *t = (oct_cost_table){ .name = label };
    while (oct_words_line(&w)) {
        const char *at;
        char *word;
        if (oct_words_done(&w))
            continue;
        OCT_TRY(next(&w, a, &word, &at, err));
        switch (place(keys, OCT_COUNT(keys), word)) {
        case 0:
        case 1: w.at = w.end; break; /* only for people who read the table */
        case 2: OCT_TRY(oct_cost_read(&w, a, t, err)); break;
        default: return oct_words_unknown(&w, at, "key", word, keys, OCT_COUNT(keys), err);
        }
    }
    return OCT_OK;
}
