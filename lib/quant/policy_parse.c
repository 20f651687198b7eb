/* Reads the text of a policy table. */
#include "quant/policy_int.h"

#include "base/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The position of the reader, and the policy to which it adds rules. */
typedef struct reader {
    oct_policy *p;
    oct_words w;
} reader;

/* The next word. In a match it also ends at '&'. A backslash includes the following character. */
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
        if (!OCT_GROW(r->p->arena, m->names, m->n_names, cap))
            return oct_nomem(err);
        m->names[m->n_names++] = s;
    }
    return OCT_OK;
}

/* 1000, 10k, 2M; where share is not NULL also 2.5% */
static bool read_whole(const char *s, double *n, bool *share)
{
    char *end;
    errno = 0;
    const long long v = strtoll(s, &end, 10);
    const int64_t unit = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : *end == 'G' ? 1000000000 : 1;
    int64_t all;
    if (errno || end == s || *s < '0' || *s > '9')
        return false;
    if (share && (*end == '%' || *end == '.')) {
        *share = true;
        *n = strtod(s, &end);
        return strcmp(end, "%") == 0 && *n <= 100;
    }
    end += unit > 1;
    if (*end || __builtin_mul_overflow(v, unit, &all))
        return false;
    *n = (double)all;
    return true;
}

static oct_status read_number(reader *r, const char *at, const char *text, oct_match *m, oct_err *err)
{
    static const char *const wanted[] = { [OCT_TAKES_NUMBER] =
                                              "a number is expected, as in weights>10000 or weights>10k",
                                          [OCT_TAKES_SHARE] =
                                              "a number or a share is expected, as in macs>10M or macs>1%",
                                          [OCT_TAKES_MEASURE] = "a number is expected, as in range>100 or sqnr<20" };
    const oct_operand_kind takes = m->term->takes;
    bool good =
        takes != OCT_TAKES_MEASURE && read_whole(text, &m->number, takes == OCT_TAKES_SHARE ? &m->percent : NULL);
    if (takes == OCT_TAKES_MEASURE) {
        char *end;
        m->number = strtod(text, &end);
        good = end != text && !*end && isfinite(m->number);
    }
    return good ? OCT_OK : oct_words_fault(&r->w, at + strlen(m->term->word), err, "%s", wanted[takes]);
}

/* An error in the expression is reported at its place. */
static oct_status read_regex(reader *r, const char *at, const char *text, oct_match *m, oct_err *err)
{
    oct_err why = OCT_ERR_INIT;
    const oct_status s = oct_regex_compile(r->p->arena, text, strlen(text), &m->regex, &why);
    return s == OCT_OK       ? OCT_OK
           : s == OCT_ENOMEM ? oct_nomem(err)
                             : oct_words_fault(&r->w, at + strlen(m->term->word), err, "%s", why.text);
}

/* Reads what follows the word of a term. */
static oct_status read_operand(reader *r, const char *at, char *text, oct_match *m, oct_err *err)
{
    switch (m->term->takes) {
    case OCT_TAKES_TYPES: return read_ops(r, at, text, m, err);
    case OCT_TAKES_PATTERN:
    case OCT_TAKES_REGEX:
    case OCT_TAKES_VALUES:
        if (!(m->names = oct_arena_memdup(r->p->arena, &text, sizeof text)))
            return oct_nomem(err);
        m->n_names = 1;
        if (!*text)
            return oct_words_fault(&r->w, at, err, "a pattern is missing after '%s'", m->term->word);
        return m->term->takes == OCT_TAKES_REGEX ? read_regex(r, at, text, m, err) : OCT_OK;
    case OCT_TAKES_NUMBER:
    case OCT_TAKES_SHARE:
    case OCT_TAKES_MEASURE: return read_number(r, at, text, m, err);
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
    const size_t end = strcspn(w, ":~<>=");
    const char *word =
        oct_arena_strndup(r->p->arena, w,
                          end + (w[end] != '\0')); /* the number or pattern that follows is not part of the keyword */
    return word ? oct_words_unknown(&r->w, at, "match", word, known, OCT_TERMS, err) : oct_nomem(err);
}

static oct_status read_match(reader *r, oct_rule *rule, oct_err *err)
{
    const char *start = r->w.at, *end;
    for (;;) {
        if (!OCT_GROW(r->p->arena, rule->match, rule->n_match, rule->cap_match))
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
    rule->text = oct_arena_printf(r->p->arena, "%.*s (%s:%zu)", (int)(end - start), start, r->w.label, r->w.number);
    return rule->text ? OCT_OK : oct_nomem(err);
}

/* ---- the columns ---- */

static oct_status check_weights(reader *r, const char *at, const int *value, oct_err *err)
{
    const int block = oct_policy_block(value[1]);
    const bool whole = value[0] == OCT_WEIGHT_U4 || value[0] == OCT_WEIGHT_U8, symmetric = !block || !whole;
    if (block ? value[0] == OCT_WEIGHT_S7 : value[0] == OCT_WEIGHT_S4 || value[0] == OCT_WEIGHT_U4)
        return oct_words_fault(&r->w, at, err,
                               "4-bit weights are in blocks, and blocks of 4 or 8 bits, as in u4/block32/asym");
    if (value[2] < 0 || value[2] == symmetric)
        return OCT_OK;
    return oct_words_fault(&r->w, at, err,
                           symmetric ? "weights are symmetric: 'sym' is expected"
                                     : "u4 and u8 blocks have zero points: 'asym' is expected");
}

/* Words separated by slashes, as in "s8/channel/sym". */
static oct_status read_parts(reader *r, const char *at, char *w, oct_column column, int *value, oct_err *err)
{
    char *s = w;
    for (size_t i = 0; s; i++) {
        const char *where = at + (s - w), *text = s;
        const oct_policy_part *p = &oct_policy_parts[column][i];
        if ((s = strchr(s, '/')))
            *s++ = '\0';
        if (i == OCT_PARTS || p->n == 0)
            return oct_words_fault(&r->w, where, err, "nothing more is expected behind the %s", p[-1].what);
        for (size_t k = 0; k < p->n && value[i] < 0; k++)
            if (strcmp(text, p->words[k]) == 0)
                value[i] = (int)k;
        if (value[i] < 0)
            return oct_words_unknown(&r->w, where, p->what, text, p->words, p->n, err);
    }
    return column == OCT_COLUMN_WEIGHTS ? check_weights(r, at, value, err) : OCT_OK;
}

static oct_status read_observer(reader *r, const char *at, const char *w, oct_rule *rule, oct_err *err)
{
    oct_status s = oct_observer_parse(w, &rule->observer, err);
    if (s != OCT_OK) {
        oct_within(err, "%s:%zu:%zu", r->w.label, r->w.number, (size_t)(at - r->w.line) + 1);
        if (err && s == OCT_EUSAGE)
            err->status = OCT_EMALFORMED;
        return s == OCT_EUSAGE ? OCT_EMALFORMED : s;
    }
    return OCT_OK;
}

static oct_status read_column(reader *r, size_t column, oct_rule *rule, oct_err *err)
{
    const char *at;
    char *w = word(r, false, &at);
    if (!w)
        return oct_nomem(err);
    if (strcmp(w, "-") == 0)
        return OCT_OK;
    if (column > OCT_COLUMNS)
        return oct_words_fault(&r->w, at, err, "more than five columns: match, scheme, weights, activations, observer");
    return column < OCT_COLUMNS ? read_parts(r, at, w, (oct_column)column, rule->value[column], err)
                                : read_observer(r, at, w, rule, err);
}

/* Checks that a rule about values has only what is allowed there. */
static oct_status check_values(reader *r, const char *at, const oct_rule *rule, oct_err *err)
{
    bool of_values = false, sets = false;
    for (size_t i = 0; i < rule->n_match; i++)
        of_values |= rule->match[i].term->takes == OCT_TAKES_VALUES;
    for (int c = 0; c < OCT_COLUMNS; c++)
        sets |= rule->value[c][0] >= 0;
    if (!of_values)
        return OCT_OK;
    const bool late = rule->n_match == 2 && rule->match[1].term->word == oct_term_late && !rule->match[1].negated;
    if ((rule->n_match > 1 && !late) || rule->match[0].negated)
        return oct_words_fault(&r->w, at, err, "'value:' stands alone, or with 'late' behind it");
    return sets ? oct_words_fault(&r->w, at, err, "a value has an observer, and '-' in the columns before it") : OCT_OK;
}

static oct_status read_line(reader *r, bool builtin, oct_err *err)
{
    oct_policy *p = r->p;
    if (oct_words_done(&r->w))
        return OCT_OK;
    const char *at = r->w.at;
    oct_rule rule = { .builtin = builtin };
    memset(rule.value, -1, sizeof rule.value);
    OCT_TRY(read_match(r, &rule, err));
    if (oct_words_done(&r->w))
        return oct_words_fault(&r->w, r->w.at, err, "the rule sets nothing: a scheme is expected after the match");
    for (size_t column = 0; !oct_words_done(&r->w); column++) {
        OCT_TRY(read_column(r, column, &rule, err));
        oct_words_skip(&r->w);
    }
    OCT_TRY(check_values(r, at, &rule, err));
    if (!OCT_GROW(p->arena, p->rule, p->n_rule, p->cap_rule))
        return oct_nomem(err);
    p->rule[p->n_rule++] = rule;
    return OCT_OK;
}

/* The '=' of 'MATCH=COLUMNS', or NULL. Names may contain '=' as well, so it is the first one without a backslash before
 * it and with a scheme or '-' after it. */
static char *columns_of(char *text)
{
    for (char *s = text; *s; s++) {
        if (*s == '\\' && s[1]) {
            s++;
            continue;
        }
        const size_t n = *s == '=' ? strcspn(s + 1, " \t") : 0;
        bool word = n == 1 && s[1] == '-';
        for (size_t k = 0; k < oct_policy_parts[OCT_COLUMN_SCHEME][0].n && n; k++) {
            const char *scheme = oct_policy_parts[OCT_COLUMN_SCHEME][0].words[k];
            word |= strlen(scheme) == n && memcmp(scheme, s + 1, n) == 0;
        }
        if (word)
            return s;
    }
    return NULL;
}

oct_status oct_policy_set(oct_policy *p, const char *text, const char *label, size_t number, oct_err *err)
{
    char *line = oct_arena_strdup(p->arena, text);
    if (!line)
        return oct_nomem(err);
    reader r = { .p = p,
                 .w = { .label = label, .number = number, .line = line, .at = line, .end = line + strlen(line) } };
    char *equals = columns_of(line), *first = strchr(line, '=');
    if (strchr(line, '\n'))
        return oct_words_fault(&r.w, strchr(line, '\n'), err, "one rule is expected, on one line");
    if (!equals) { /* report what is wrong after the first '=' */
        const char *word = first ? first + 1 : r.w.end;
        const oct_policy_part *schemes = &oct_policy_parts[OCT_COLUMN_SCHEME][0];
        char *copy = oct_arena_strndup(p->arena, word, strcspn(word, " \t"));
        return copy ? oct_words_unknown(&r.w, word, "scheme", copy, schemes->words, schemes->n, err) : oct_nomem(err);
    }
    *equals = ' ';
    return read_line(&r, false, err);
}

oct_status oct_policy_parse(oct_policy *p, const char *text, const char *label, bool builtin, oct_err *err)
{
    size_t before = p->n_rule;
    reader r = { .p = p, .w = { .label = label, .next = text } };
    while (oct_words_line(&r.w)) {
        oct_status s = read_line(&r, builtin, err);
        if (s != OCT_OK) {
            p->n_rule = before; /* a text is added completely or not at all */
            return s;
        }
    }
    return OCT_OK;
}
