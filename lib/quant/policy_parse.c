/* Reads the text of a policy table. */
#include "quant/policy_int.h"

#include "base/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the reader stands, and what it adds to. */
typedef struct reader {
    oct_policy *p;
    oct_words w;
} reader;

/* The next word; in a match it also ends at '&'. A backslash takes the character after it along. */
static char *word(reader *r, bool in_match, const char **start)
{
    *start = r->w.at;
    while (r->w.at < r->w.end && !strchr(" \t\r", *r->w.at) && !(in_match && *r->w.at == '&'))
        r->w.at += *r->w.at == '\\' && r->w.at + 1 < r->w.end ? 2 : 1;
    return oct_arena_strndup(r->p->arena, *start, (size_t)(r->w.at - *start));
}

/* ---- the match ---- */

static oct_status read_ops(reader *r, const char *at, char *list, oct_match *m, oct_err *err)
{
    size_t cap = 0;
    for (char *s = list, *comma; s; s = comma) {
        comma = strchr(s, ',');
        if (comma)
            *comma++ = '\0';
        if (!*s)
            return oct_words_fault(&r->w, at, err, "an operator type is missing after 'op:' or ','");
        if (m->n_names == cap && !OCT_GROW(r->p->arena, m->names, m->n_names, cap))
            return oct_nomem(err);
        m->names[m->n_names++] = s;
    }
    return OCT_OK;
}

/* 1000, 10k, 2M */
static bool read_number(const char *s, int64_t *n)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    int64_t unit = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : 1;
    end += unit > 1;
    return errno == 0 && end != s && *end == '\0' && *s >= '0' && *s <= '9' && !__builtin_mul_overflow(v, unit, n);
}

/* What stands in a term behind its word. */
static oct_status read_operand(reader *r, const char *at, char *text, oct_match *m, oct_err *err)
{
    switch (m->term->takes) {
    case OCT_TAKES_TYPES: return read_ops(r, at, text, m, err);
    case OCT_TAKES_PATTERN:
        if (!(m->names = oct_arena_memdup(r->p->arena, &text, sizeof text)))
            return oct_nomem(err);
        m->n_names = 1;
        return *text ? OCT_OK : oct_words_fault(&r->w, at, err, "a pattern is missing after 'name:'");
    case OCT_TAKES_NUMBER:
        return read_number(text, &m->number) ? OCT_OK : oct_words_fault(&r->w, at + strlen(m->term->word), err,
                                                                        "a number is expected, as in weights>10000 or weights>10k");
    default: return OCT_OK;
    }
}

static oct_status read_term(reader *r, oct_match *m, oct_err *err)
{
    const char *at, *known[OCT_TERMS];
    *m = (oct_match){ 0 };
    if (r->w.at < r->w.end && *r->w.at == '!') {
        m->negated = true;
        r->w.at++;
        oct_words_skip(&r->w);
    }
    char *w = word(r, true, &at);
    if (!w)
        return oct_nomem(err);
    if (!*w || *w == '#')
        return oct_words_fault(&r->w, at, err, "a match is missing");
    for (size_t i = 0; i < OCT_TERMS; i++) {
        const oct_term *t = &oct_terms[i];
        const size_t n = strlen(t->word);
        known[i] = t->word;
        if (strncmp(w, t->word, n) == 0 && (t->takes != OCT_TAKES_NOTHING || !w[n])) {
            m->term = t;
            return read_operand(r, at, w + n, m, err);
        }
    }
    return oct_words_unknown(&r->w, at, "match", w, known, OCT_TERMS, err);
}

static oct_status read_match(reader *r, oct_rule *rule, oct_err *err)
{
    const char *start = r->w.at, *end;
    for (;;) {
        if (rule->n_match == rule->cap_match && !OCT_GROW(r->p->arena, rule->match, rule->n_match, rule->cap_match))
            return oct_nomem(err);
        oct_match *m = &rule->match[rule->n_match++];
        const char *at = r->w.at;
        OCT_TRY(read_term(r, m, err));
        m->found = oct_arena_calloc(r->p->arena, m->n_names + 1, sizeof *m->found);
        m->place = oct_arena_printf(r->p->arena, "%s:%zu:%zu", r->w.label, r->w.number, (size_t)(at - r->w.line) + 1);
        if (!m->found || !m->place)
            return oct_nomem(err);
        end = r->w.at;
        oct_words_skip(&r->w);
        if (r->w.at == r->w.end || *r->w.at != '&')
            break;
        r->w.at++;
        oct_words_skip(&r->w);
    }
    rule->row.rule = oct_arena_printf(r->p->arena, "%.*s (%s:%zu)", (int)(end - start), start, r->w.label, r->w.number);
    return rule->row.rule ? OCT_OK : oct_nomem(err);
}

/* ---- the columns ---- */

/* The place of a word among n; what: of which kind it is. */
static oct_status find_word(reader *r, const char *at, const char *what, const char *text, const char *const *words, size_t n, size_t *i,
                            oct_err *err)
{
    for (*i = 0; *i < n; ++*i)
        if (strcmp(text, words[*i]) == 0)
            return OCT_OK;
    return oct_words_unknown(&r->w, at, what, text, words, n, err);
}

static oct_status read_scheme(reader *r, const char *at, char *w, oct_rule *rule, oct_err *err)
{
    size_t i;
    OCT_TRY(find_word(r, at, "scheme", w, oct_scheme_words + 1, OCT_SCHEME_COUNT - 1, &i, err)); /* without auto */
    rule->row.scheme = (oct_scheme)(i + 1);
    rule->set |= OCT_SET_SCHEME;
    return OCT_OK;
}

/* Cuts "s8/channel/sym" at the slashes, up to three parts. */
static size_t parts(char *w, char *part[4])
{
    size_t n = 0;
    for (char *s = w; s && n < 4; n++) {
        char *slash = strchr(s, '/');
        part[n] = s;
        if (slash)
            *slash = '\0';
        s = slash ? slash + 1 : NULL;
    }
    return n;
}

static oct_status read_granularity(reader *r, const char *at, const char *text, oct_rule *rule, oct_err *err)
{
    static const char *const per[] = { "channel", "tensor", "block32" };
    int64_t block = 0;
    size_t i;
    if (strncmp(text, "block", 5) != 0)
        OCT_TRY(find_word(r, at, "granularity", text, per, OCT_COUNT(per), &i, err));
    else if (!read_number(text + 5, &block) || block < 16 || block > 256 || (block & (block - 1)))
        return oct_words_fault(&r->w, at, err, "blocks are of 16, 32, 64, 128 or 256 weights, as in block32");
    rule->row.block = (int)block;
    rule->row.per_channel = text[0] == 'c';
    rule->set |= OCT_SET_PER;
    return OCT_OK;
}

static oct_status read_weights(reader *r, const char *at, char *w, oct_rule *rule, oct_err *err)
{
    char *part[4];
    size_t n = parts(w, part), i;
    OCT_TRY(find_word(r, at, "weight type", part[0], oct_weight_words, OCT_WEIGHT_COUNT, &i, err));
    rule->row.weights = (oct_weight_type)i;
    rule->set |= OCT_SET_WEIGHTS;
    if (n > 1)
        OCT_TRY(read_granularity(r, at + (part[1] - w), part[1], rule, err));
    if (rule->row.block ? rule->row.weights == OCT_WEIGHT_S7 : part[0][1] == '4')
        return oct_words_fault(&r->w, at, err, "4-bit weights are in blocks, and blocks of 4 or 8 bits, as in u4/block32/asym");
    const char *want = rule->row.block && part[0][0] == 'u' ? "asym" : "sym";
    if (n > 2 && strcmp(part[2], want) != 0)
        return oct_words_fault(&r->w, at + (part[2] - w), err,
                     want[0] == 's' ? "weights are symmetric: 'sym' is expected" : "u4 and u8 blocks have zero points: 'asym' is expected");
    return n <= 3 ? OCT_OK : oct_words_fault(&r->w, at + (part[3] - w), err, "TYPE/channel/sym, TYPE/tensor/sym or TYPE/blockN/sym is expected");
}

static oct_status read_activations(reader *r, const char *at, char *w, oct_rule *rule, oct_err *err)
{
    const char *const types[] = { oct_activation_word(OCT_U8), oct_activation_word(OCT_S8) };
    char *part[4];
    size_t n = parts(w, part), i;
    OCT_TRY(find_word(r, at, "activation type", part[0], types, OCT_COUNT(types), &i, err));
    rule->row.activations = i ? OCT_S8 : OCT_U8;
    rule->set |= OCT_SET_ACTIVATIONS;
    if (n > 1 && strcmp(part[1], "tensor") != 0)
        return oct_words_fault(&r->w, at + (part[1] - w), err, "activations have one scale per tensor: 'tensor' is expected");
    if (n > 2) {
        OCT_TRY(find_word(r, at + (part[2] - w), "symmetry", part[2], oct_symmetry_words, OCT_COUNT(oct_symmetry_words), &i, err));
        rule->row.symmetric = i;
        rule->set |= OCT_SET_SYMMETRIC;
    }
    return n <= 3 ? OCT_OK : oct_words_fault(&r->w, at + (part[3] - w), err, "TYPE/tensor/asym or TYPE/tensor/sym is expected");
}

static oct_status read_observer(reader *r, const char *at, char *w, oct_rule *rule, oct_err *err)
{
    oct_status s = oct_observer_parse(w, &rule->row.observer, err);
    if (s != OCT_OK) {
        oct_within(err, "%s:%zu:%zu", r->w.label, r->w.number, (size_t)(at - r->w.line) + 1);
        if (err && s == OCT_EUSAGE)
            err->status = OCT_EMALFORMED;
        return s == OCT_EUSAGE ? OCT_EMALFORMED : s;
    }
    rule->set |= OCT_SET_OBSERVER;
    return OCT_OK;
}

static oct_status read_column(reader *r, size_t column, oct_rule *rule, oct_err *err)
{
    static oct_status (*const read[])(reader *r, const char *at, char *w, oct_rule *rule, oct_err *err) = { read_scheme, read_weights,
                                                                                                          read_activations, read_observer };
    const char *at;
    char *w = word(r, false, &at);
    if (!w)
        return oct_nomem(err);
    if (strcmp(w, "-") == 0)
        return OCT_OK;
    if (column >= OCT_COUNT(read))
        return oct_words_fault(&r->w, at, err, "more than five columns: match, scheme, weights, activations, observer");
    return read[column](r, at, w, rule, err);
}

static oct_status read_line(reader *r, bool builtin, oct_err *err)
{
    oct_policy *p = r->p;
    if (oct_words_done(&r->w))
        return OCT_OK;
    oct_rule rule = { .builtin = builtin };
    OCT_TRY(read_match(r, &rule, err));
    if (oct_words_done(&r->w))
        return oct_words_fault(&r->w, r->w.at, err, "the rule sets nothing: a scheme is expected after the match");
    for (size_t column = 0; !oct_words_done(&r->w); column++) {
        OCT_TRY(read_column(r, column, &rule, err));
        oct_words_skip(&r->w);
    }
    if (p->n_rule == p->cap_rule && !OCT_GROW(p->arena, p->rule, p->n_rule, p->cap_rule))
        return oct_nomem(err);
    p->rule[p->n_rule++] = rule;
    return OCT_OK;
}

oct_status oct_policy_parse(oct_policy *p, const char *text, const char *label, bool builtin, oct_err *err)
{
    size_t before = p->n_rule;
    reader r = { .p = p, .w = { .label = label, .next = text } };
    while (oct_words_line(&r.w)) {
        oct_status s = read_line(&r, builtin, err);
        if (s != OCT_OK) {
            p->n_rule = before; /* all of a text or nothing */
            return s;
        }
    }
    return OCT_OK;
}
