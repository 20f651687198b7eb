/* Reads the text of a policy table. */
#include "quant/policy/policy_int.h"

#include "base/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The next word. In a match it also ends at '&'. A backslash includes the following character. */
static char *take(oct_words *w, bool in_match, const char **start)
{
    *start = w->at;
    while (w->at < w->end && !strchr(" \t\r", *w->at) && !(in_match && *w->at == '&'))
        w->at += *w->at == '\\' && w->at + 1 < w->end ? 2 : 1;
    return oct_arena_strndup(w->arena, *start, (size_t)(w->at - *start));
}

/* ---- the match ---- */

static oct_status read_ops(const oct_words *w, const char *at, char *list, oct_match *m, oct_err *err)
{
    size_t cap = 0;
    for (char *s = list, *comma; s; s = comma) {
        comma = strchr(s, ',');
        if (comma)
            *comma++ = '\0';
        if (!*s)
            return oct_words_fault(w, at, err, "an operator type is missing after 'op:' or ','");
        if (!OCT_GROW(w->arena, m->names, m->n_names, cap))
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

static oct_status read_number(const oct_words *w, const char *at, const char *text, oct_match *m, oct_err *err)
{
    static const char *const wanted[] = { [OCT_TAKES_NUMBER] =
                                              "a number is expected, as in weights>10000 or weights>10k",
                                          [OCT_TAKES_SHARE] =
                                              "a number or a share is expected, as in macs>10M or macs>1%",
                                          [OCT_TAKES_MEASURE] = "a number is expected, as in range>100 or sqnr<20" };
    const oct_operand_kind takes = m->term->takes;
    bool good =
        takes != OCT_TAKES_MEASURE && read_whole(text, &m->number, takes == OCT_TAKES_SHARE ? &m->percent : NULL);
    if (takes == OCT_TAKES_MEASURE)
        good = oct_word_number((oct_word){ text, strlen(text) }, &m->number);
    return good ? OCT_OK : oct_words_fault(w, at + strlen(m->term->word), err, "%s", wanted[takes]);
}

/* An error in the expression is reported at its place. */
static oct_status read_regex(const oct_words *w, const char *at, const char *text, oct_match *m, oct_err *err)
{
    oct_err what = OCT_ERR_INIT;
    return oct_regex_compile(w->arena, text, strlen(text), &m->regex, &what) == OCT_OK
               ? OCT_OK
               : oct_words_misplaced(w, at + strlen(m->term->word), &what, err);
}

/* Reads what follows the word of a term. */
static oct_status read_operand(const oct_words *w, const char *at, char *text, oct_match *m, oct_err *err)
{
    switch (m->term->takes) {
    case OCT_TAKES_TYPES: return read_ops(w, at, text, m, err);
    case OCT_TAKES_PATTERN:
    case OCT_TAKES_REGEX:
    case OCT_TAKES_VALUES:
        if (!(m->names = oct_arena_memdup(w->arena, &text, sizeof text)))
            return oct_nomem(err);
        m->n_names = 1;
        if (!*text)
            return oct_words_fault(w, at, err, "a pattern is missing after '%s'", m->term->word);
        return m->term->takes == OCT_TAKES_REGEX ? read_regex(w, at, text, m, err) : OCT_OK;
    case OCT_TAKES_NUMBER:
    case OCT_TAKES_SHARE:
    case OCT_TAKES_MEASURE: return read_number(w, at, text, m, err);
    default: return OCT_OK;
    }
}

static oct_status read_term(oct_words *w, oct_match *m, oct_err *err)
{
    const char *at, *known[OCT_TERMS];
    *m = (oct_match){ 0 };
    if (w->at < w->end && *w->at == '!') {
        m->negated = true;
        w->at++;
        oct_words_skip(w);
    }
    char *text = take(w, true, &at);
    if (!text)
        return oct_nomem(err);
    if (!*text || *text == '#')
        return oct_words_fault(w, at, err, "a match is missing");
    for (size_t i = 0; i < OCT_TERMS; i++) {
        const oct_term *t = &oct_terms[i];
        const size_t n = strlen(t->word);
        known[i] = t->word;
        if (strncmp(text, t->word, n) == 0 && (t->takes != OCT_TAKES_NOTHING || !text[n])) {
            m->term = t;
            return read_operand(w, at, text + n, m, err);
        }
    }
    const size_t end = strcspn(text, ":~<>=");
    text[end + (text[end] != '\0')] = '\0'; /* the number or pattern that follows is not part of the keyword */
    return oct_words_unknown(w, at, "match", text, known, OCT_TERMS, err);
}

/* Terms with '&' between them. */
static oct_status read_match(oct_words *w, oct_rule *rule, oct_err *err)
{
    const char *start = w->at, *end;
    for (;;) {
        if (!OCT_GROW(w->arena, rule->match, rule->n_match, rule->cap_match))
            return oct_nomem(err);
        oct_match *m = &rule->match[rule->n_match++];
        const char *at = w->at;
        OCT_TRY(read_term(w, m, err));
        m->found = oct_arena_calloc(w->arena, m->n_names + 1, sizeof *m->found);
        m->place = oct_arena_printf(w->arena, "%s:%zu:%zu", w->label, w->number, (size_t)(at - w->line) + 1);
        if (!m->found || !m->place)
            return oct_nomem(err);
        end = w->at;
        oct_words_skip(w);
        if (w->at == w->end || *w->at != '&')
            break;
        w->at++;
        oct_words_skip(w);
    }
    rule->text = oct_arena_printf(w->arena, "%.*s (%s:%zu)", (int)(end - start), start, w->label, w->number);
    return rule->text ? OCT_OK : oct_nomem(err);
}

/* ---- the columns ---- */

static oct_status check_weights(const oct_words *w, const char *at, const int *value, oct_err *err)
{
    const int block = oct_policy_block(value[1]);
    const bool whole = value[0] == OCT_WEIGHT_U4 || value[0] == OCT_WEIGHT_U8, symmetric = !block || !whole;
    if (block ? value[0] == OCT_WEIGHT_S7 : value[0] == OCT_WEIGHT_S4 || value[0] == OCT_WEIGHT_U4)
        return oct_words_fault(w, at, err,
                               "4-bit weights are in blocks, and blocks of 4 or 8 bits, as in u4/block32/asym");
    if (value[2] < 0 || value[2] == symmetric)
        return OCT_OK;
    return oct_words_fault(w, at, err,
                           symmetric ? "weights are symmetric: 'sym' is expected"
                                     : "u4 and u8 blocks have zero points: 'asym' is expected");
}

/* Words separated by slashes, as in "s8/channel/sym". */
static oct_status read_parts(const oct_words *w, const char *at, char *word, oct_column column, int *value,
                             oct_err *err)
{
    char *s = word;
    for (size_t i = 0; s; i++) {
        const char *where = at + (s - word), *text = s;
        const oct_policy_part *p = &oct_policy_parts[column][i];
        if ((s = strchr(s, '/')))
            *s++ = '\0';
        if (i == OCT_PARTS || p->n == 0)
            return oct_words_fault(w, where, err, "nothing more is expected behind the %s", p[-1].what);
        for (size_t k = 0; k < p->n && value[i] < 0; k++)
            if (strcmp(text, p->words[k]) == 0)
                value[i] = (int)k;
        if (value[i] < 0)
            return oct_words_unknown(w, where, p->what, text, p->words, p->n, err);
    }
    return column == OCT_COLUMN_WEIGHTS ? check_weights(w, at, value, err) : OCT_OK;
}

static oct_status read_column(oct_words *w, size_t column, oct_rule *rule, oct_err *err)
{
    oct_err what = OCT_ERR_INIT;
    const char *at;
    char *word = take(w, false, &at);
    if (!word)
        return oct_nomem(err);
    if (strcmp(word, "-") == 0)
        return OCT_OK;
    if (column > OCT_COLUMNS)
        return oct_words_fault(w, at, err, "more than five columns: match, scheme, weights, activations, observer");
    if (column < OCT_COLUMNS)
        return read_parts(w, at, word, (oct_column)column, rule->value[column], err);
    return oct_observer_parse(word, &rule->observer, &what) == OCT_OK ? OCT_OK : oct_words_misplaced(w, at, &what, err);
}

/* Checks that a rule about values has only what is allowed there. */
static oct_status check_values(const oct_words *w, const char *at, const oct_rule *rule, oct_err *err)
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
        return oct_words_fault(w, at, err, "'value:' stands alone, or with 'late' behind it");
    return sets ? oct_words_fault(w, at, err, "a value has an observer, and '-' in the columns before it") : OCT_OK;
}

static oct_status read_line(oct_words *w, oct_policy *p, bool builtin, oct_err *err)
{
    if (oct_words_done(w))
        return OCT_OK;
    const char *at = w->at;
    oct_rule rule = { .builtin = builtin };
    memset(rule.value, -1, sizeof rule.value);
    OCT_TRY(read_match(w, &rule, err));
    if (oct_words_done(w))
        return oct_words_fault(w, w->at, err, "the rule sets nothing: a scheme is expected after the match");
    for (size_t column = 0; !oct_words_done(w); column++) {
        OCT_TRY(read_column(w, column, &rule, err));
        oct_words_skip(w);
    }
    OCT_TRY(check_values(w, at, &rule, err));
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
    oct_words w = {
        .label = label, .number = number, .line = line, .at = line, .end = line + strlen(line), .arena = p->arena
    };
    char *equals = columns_of(line), *first = strchr(line, '=');
    if (strchr(line, '\n'))
        return oct_words_fault(&w, strchr(line, '\n'), err, "one rule is expected, on one line");
    if (!equals) { /* report what is wrong after the first '=' */
        const char *word = first ? first + 1 : w.end;
        const oct_policy_part *schemes = &oct_policy_parts[OCT_COLUMN_SCHEME][0];
        char *copy = oct_arena_strndup(p->arena, word, strcspn(word, " \t"));
        return copy ? oct_words_unknown(&w, word, "scheme", copy, schemes->words, schemes->n, err) : oct_nomem(err);
    }
    *equals = ' ';
    return read_line(&w, p, false, err);
}

oct_status oct_policy_parse(oct_policy *p, const char *text, const char *label, bool builtin, oct_err *err)
{
    const size_t before = p->n_rule;
    oct_words w = { .label = label, .next = text, .arena = p->arena };
    oct_status s = OCT_OK;
    while (s == OCT_OK && oct_words_line(&w))
        s = read_line(&w, p, builtin, err);
    if (s != OCT_OK)
        p->n_rule = before; /* a text is added completely or not at all */
    return s;
}
