/* A pattern is parsed to a tree, the tree becomes a program of a few instructions, and the program's states go along
 * the text. */
#include "ops/text/regex.h"

#include "ops/text/text.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 100, MOST_REPEAT = 1000, MOST_CODE = 20000, MOST_WORK = 1000000, MOST_RANGES = 64 };

/* ---- the tree ---- */

typedef enum kind { EMPTY, SET, CAT, ALT, REPEAT, ASSERT } kind;
typedef enum place { TEXT_START, TEXT_END, LINE_START, LINE_END, WORD_EDGE, NO_WORD_EDGE } place;

typedef struct range {
    uint32_t lo, hi;
} range;

typedef struct set {
    range r[MOST_RANGES];
    int n;
    bool negated, fold; /* fold: case does not count */
} set;

typedef struct tree {
    kind kind;
    struct tree *a, *b;
    int min, max; /* of REPEAT; max -1: any number */
    place place;
    set *set;
} tree;

typedef struct parser {
    oct_arena *arena;
    const char *s;
    size_t n, at;
    int depth;
    bool fold, dot_all, lines; /* flags i, s, m */
    oct_err *err;
} parser;

static oct_status bad(parser *p, const char *what)
{
    return oct_fail(p->err, OCT_EMALFORMED, "pattern: %s at byte %zu", what, p->at);
}

static oct_status new_tree(parser *p, kind k, tree *a, tree *b, tree **out)
{
    tree *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (!t)
        return oct_nomem(p->err);
    t->kind = k;
    t->a = a;
    t->b = b;
    *out = t;
    return OCT_OK;
}

static bool more(const parser *p)
{
    return p->at < p->n;
}

static bool eat(parser *p, char c)
{
    if (!more(p) || p->s[p->at] != c)
        return false;
    p->at++;
    return true;
}

static uint32_t next_char(parser *p)
{
    size_t len;
    uint32_t c = oct_utf8_char(p->s + p->at, p->n - p->at, &len);
    p->at += len;
    return c;
}

/* ---- sets ---- */

static oct_status add_range(parser *p, set *s, uint32_t lo, uint32_t hi)
{
    if (lo > hi)
        return bad(p, "a range that runs backwards");
    if (s->n == MOST_RANGES)
        return oct_fail(p->err, OCT_EUNSUPPORTED, "pattern: a set of more than %d ranges", MOST_RANGES);
    s->r[s->n++] = (range){ lo, hi };
    return OCT_OK;
}

static const struct {
    const char *name;
    range r[4];
    int n;
} classes[] = {
    { "d", { { '0', '9' } }, 1 },
    { "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } }, 4 },
    { "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } }, 3 },
    { "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } }, 3 },
    { "alpha", { { 'A', 'Z' }, { 'a', 'z' } }, 2 },
    { "ascii", { { 0, 127 } }, 1 },
    { "blank", { { '\t', '\t' }, { ' ', ' ' } }, 2 },
    { "cntrl", { { 0, 31 }, { 127, 127 } }, 2 },
    { "digit", { { '0', '9' } }, 1 },
    { "graph", { { '!', '~' } }, 1 },
    { "lower", { { 'a', 'z' } }, 1 },
    { "print", { { ' ', '~' } }, 1 },
    { "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } }, 4 },
    { "space", { { '\t', '\r' }, { ' ', ' ' } }, 2 },
    { "upper", { { 'A', 'Z' } }, 1 },
    { "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } }, 4 },
    { "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } }, 3 },
};

/* Adds a named class or, negated, all that is not in it; *found: there is one. */
static oct_status add_class(parser *p, set *s, const char *name, size_t n, bool negated, bool *found)
{
    *found = false;
    for (size_t i = 0; i < OCT_COUNT(classes); i++) {
        if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) != 0)
            continue;
        uint32_t from = 0;
        for (int k = 0; k < classes[i].n; k++) {
            range r = classes[i].r[k];
            if (!negated)
                OCT_TRY(add_range(p, s, r.lo, r.hi));
            else if (r.lo > from)
                OCT_TRY(add_range(p, s, from, r.lo - 1));
            from = r.hi + 1;
        }
        *found = true;
        return negated ? add_range(p, s, from, 0x10FFFF) : OCT_OK;
    }
    return OCT_OK;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* \x41 or \x{1F600}, behind the x. */
static oct_status hex_char(parser *p, uint32_t *c)
{
    bool braces = eat(p, '{');
    int digits = 0;
    *c = 0;
    while (more(p) && hex(p->s[p->at]) >= 0 && digits < (braces ? 6 : 2)) {
        *c = *c * 16 + (uint32_t)hex(p->s[p->at++]);
        digits++;
    }
    if (digits < (braces ? 1 : 2) || (braces && !eat(p, '}')) || *c > 0x10FFFF)
        return bad(p, "a hexadecimal character is not complete");
    return OCT_OK;
}

/* A character behind a backslash that stands for one character. */
static oct_status escaped_char(parser *p, uint32_t *c)
{
    static const char from[] = "tnrfva", to[] = "\t\n\r\f\v\a";
    if (!more(p))
        return bad(p, "a backslash at the end");
    *c = next_char(p);
    if (*c == 'x')
        return hex_char(p, c);
    const char *known = *c < 128 ? strchr(from, (int)*c) : NULL;
    if (known && *c)
        *c = (uint32_t)to[known - from];
    else if ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))
        return oct_fail(p->err, OCT_EUNSUPPORTED, "pattern: '\\%c' is not read, at byte %zu", (char)*c, p->at - 1);
    return OCT_OK;
}

/* \d, \W and the like in front: added to s. */
static oct_status class_escape(parser *p, set *s, bool *found)
{
    *found = false;
    if (p->at + 1 >= p->n || p->s[p->at] != '\\')
        return OCT_OK;
    char c = p->s[p->at + 1], small = (char)(c | 0x20);
    if (small != 'd' && small != 'w' && small != 's')
        return OCT_OK;
    p->at += 2;
    return add_class(p, s, &small, 1, c != small, found);
}

/* [:alpha:] or [:^alpha:] in front. */
static oct_status named_class(parser *p, set *s, bool *found)
{
    *found = false;
    if (p->n - p->at < 4 || p->s[p->at] != '[' || p->s[p->at + 1] != ':')
        return OCT_OK;
    const char *name = p->s + p->at + 2, *end = name;
    bool negated = *name == '^';
    name += negated;
    for (end = name; end + 1 < p->s + p->n && !(end[0] == ':' && end[1] == ']');)
        end++;
    if (end + 1 >= p->s + p->n)
        return OCT_OK;
    OCT_TRY(add_class(p, s, name, (size_t)(end - name), negated, found));
    if (!*found)
        return bad(p, "an unknown class of characters");
    p->at = (size_t)(end - p->s) + 2;
    return OCT_OK;
}

static oct_status set_char(parser *p, uint32_t *c)
{
    if (eat(p, '\\'))
        return escaped_char(p, c);
    *c = next_char(p);
    return OCT_OK;
}

/* Behind the opening bracket. */
static oct_status parse_set(parser *p, set *s)
{
    s->negated = eat(p, '^');
    s->fold = p->fold;
    for (bool first = true;; first = false) {
        uint32_t lo, hi;
        bool found;
        if (!more(p))
            return bad(p, "a set is not closed");
        if (!first && eat(p, ']'))
            return OCT_OK;
        OCT_TRY(class_escape(p, s, &found));
        if (!found)
            OCT_TRY(named_class(p, s, &found));
        if (found)
            continue;
        OCT_TRY(set_char(p, &lo));
        hi = lo;
        if (p->at + 1 < p->n && p->s[p->at] == '-' && p->s[p->at + 1] != ']') {
            p->at++;
            OCT_TRY(set_char(p, &hi));
        }
        OCT_TRY(add_range(p, s, lo, hi));
    }
}

/* ---- parsing ---- */

static oct_status parse_alt(parser *p, tree **out);

static oct_status new_set(parser *p, tree **out)
{
    OCT_TRY(new_tree(p, SET, NULL, NULL, out));
    (*out)->set = oct_arena_calloc(p->arena, 1, sizeof(set));
    return (*out)->set ? OCT_OK : oct_nomem(p->err);
}

static oct_status new_place(parser *p, place where, tree **out)
{
    OCT_TRY(new_tree(p, ASSERT, NULL, NULL, out));
    (*out)->place = where;
    return OCT_OK;
}

/* Flags behind "(?": letters up to ':' or ')'; *open: a group follows. */
static oct_status parse_flags(parser *p, bool *open)
{
    for (bool on = true; more(p); p->at++) {
        char c = p->s[p->at];
        if (c == ':' || c == ')') {
            p->at++;
            *open = c == ':';
            return OCT_OK;
        }
        if (c == '-')
            on = false;
        else if (c == 'i')
            p->fold = on;
        else if (c == 's')
            p->dot_all = on;
        else if (c == 'm')
            p->lines = on;
        else if (c != 'U') /* which match is found does not matter here */
            return bad(p, "an unknown flag");
    }
    return bad(p, "a group is not closed");
}

static oct_status skip_name(parser *p)
{
    while (more(p) && p->s[p->at] != '>')
        p->at++;
    return eat(p, '>') ? OCT_OK : bad(p, "a group's name is not closed");
}

/* Behind the opening parenthesis. */
static oct_status parse_group(parser *p, tree **out)
{
    const parser before = *p;
    bool open = true;
    if (eat(p, '?')) {
        bool named = more(p) && p->s[p->at] == 'P';
        p->at += named;
        if (eat(p, '<'))
            OCT_TRY(skip_name(p));
        else if (named)
            return bad(p, "a group's name is missing");
        else
            OCT_TRY(parse_flags(p, &open));
    }
    if (!open) /* flags for what follows in this group */
        return new_tree(p, EMPTY, NULL, NULL, out);
    if (++p->depth > MOST_DEPTH)
        return oct_fail(p->err, OCT_EUNSUPPORTED, "pattern: groups nest more than %d deep", MOST_DEPTH);
    OCT_TRY(parse_alt(p, out));
    p->depth--;
    p->fold = before.fold;
    p->dot_all = before.dot_all;
    p->lines = before.lines;
    return eat(p, ')') ? OCT_OK : bad(p, "a group is not closed");
}

static oct_status parse_escape(parser *p, tree **out)
{
    static const struct {
        char c;
        place where;
    } places[] = { { 'b', WORD_EDGE }, { 'B', NO_WORD_EDGE }, { 'A', TEXT_START }, { 'z', TEXT_END } };
    bool found;
    if (p->at + 1 < p->n)
        for (size_t i = 0; i < OCT_COUNT(places); i++)
            if (p->s[p->at + 1] == places[i].c) {
                p->at += 2;
                return new_place(p, places[i].where, out);
            }
    OCT_TRY(new_set(p, out));
    OCT_TRY(class_escape(p, (*out)->set, &found));
    if (found)
        return OCT_OK;
    uint32_t c;
    p->at++;
    OCT_TRY(escaped_char(p, &c));
    (*out)->set->fold = p->fold;
    return add_range(p, (*out)->set, c, c);
}

static oct_status parse_atom(parser *p, tree **out)
{
    if (p->s[p->at] == '\\')
        return parse_escape(p, out);
    if (eat(p, '('))
        return parse_group(p, out);
    if (eat(p, '^'))
        return new_place(p, p->lines ? LINE_START : TEXT_START, out);
    if (eat(p, '$'))
        return new_place(p, p->lines ? LINE_END : TEXT_END, out);
    if (p->s[p->at] == '*' || p->s[p->at] == '+' || p->s[p->at] == '?')
        return bad(p, "nothing to repeat");
    OCT_TRY(new_set(p, out));
    if (eat(p, '['))
        return parse_set(p, (*out)->set);
    if (eat(p, '.')) {
        (*out)->set->negated = true;
        return p->dot_all ? OCT_OK : add_range(p, (*out)->set, '\n', '\n');
    }
    uint32_t c = next_char(p);
    (*out)->set->fold = p->fold;
    return add_range(p, (*out)->set, c, c);
}

static bool number(parser *p, int *v)
{
    size_t from = p->at;
    *v = 0;
    while (more(p) && p->s[p->at] >= '0' && p->s[p->at] <= '9' && p->at - from < 5)
        *v = *v * 10 + (p->s[p->at++] - '0');
    return p->at > from;
}

/* {3}, {3,}, {3,5} in front; anything else is text. */
static bool parse_braces(parser *p, int *min, int *max)
{
    size_t from = p->at;
    p->at++;
    bool good = number(p, min);
    *max = *min;
    if (good && eat(p, ',') && !number(p, max))
        *max = -1;
    if (good && eat(p, '}'))
        return true;
    p->at = from;
    return false;
}

/* Whether a repetition is in front, which is then read. */
static bool parse_count(parser *p, int *min, int *max)
{
    char c = more(p) ? p->s[p->at] : 'x';
    if (c == '{')
        return parse_braces(p, min, max);
    if (c != '*' && c != '+' && c != '?')
        return false;
    p->at++;
    *min = c == '+';
    *max = c == '?' ? 1 : -1;
    return true;
}

static oct_status parse_repeat(parser *p, tree **out)
{
    int min, max;
    OCT_TRY(parse_atom(p, out));
    if (!parse_count(p, &min, &max))
        return OCT_OK;
    if (min > MOST_REPEAT || max > MOST_REPEAT || (max >= 0 && max < min))
        return bad(p, "a count is out of range");
    (void)eat(p, '?'); /* lazy or greedy: the whole text matches or not */
    OCT_TRY(new_tree(p, REPEAT, *out, NULL, out));
    (*out)->min = min;
    (*out)->max = max;
    return parse_count(p, &min, &max) ? bad(p, "a repetition is repeated") : OCT_OK;
}

static oct_status parse_cat(parser *p, tree **out)
{
    OCT_TRY(new_tree(p, EMPTY, NULL, NULL, out));
    while (more(p) && p->s[p->at] != '|' && p->s[p->at] != ')') {
        tree *t = NULL;
        OCT_TRY(parse_repeat(p, &t));
        OCT_TRY(new_tree(p, CAT, *out, t, out));
    }
    return OCT_OK;
}

static oct_status parse_alt(parser *p, tree **out)
{
    OCT_TRY(parse_cat(p, out));
    while (eat(p, '|')) {
        tree *t = NULL;
        OCT_TRY(parse_cat(p, &t));
        OCT_TRY(new_tree(p, ALT, *out, t, out));
    }
    return OCT_OK;
}

/* ---- the program ---- */

typedef enum opcode { MATCH, TAKE, JUMP, SPLIT, CHECK } opcode;

typedef struct instr {
    opcode op;
    int to, also; /* JUMP, SPLIT */
    place place;
    const set *set;
} instr;

struct oct_regex {
    instr *code;
    int n, cap, work;
    oct_arena *arena;
    int *now, *next, *stack; /* states */
    int *seen;               /* the position at which a state was added last */
};

static oct_status emit(oct_regex *re, instr i, oct_err *err)
{
    size_t cap = (size_t)re->cap;
    if (re->n == MOST_CODE)
        return oct_fail(err, OCT_EUNSUPPORTED, "pattern: it unfolds to more than %d states", MOST_CODE);
    if (!OCT_GROW(re->arena, re->code, (size_t)re->n, cap))
        return oct_nomem(err);
    re->cap = (int)cap;
    re->code[re->n++] = i;
    return OCT_OK;
}

static oct_status generate(oct_regex *re, const tree *t, oct_err *err);

/* Cats and alternatives lean to the left and may be as long as the pattern: their left ends are walked to, not recursed
 * into. */
static oct_status generate_cat(oct_regex *re, const tree *t, oct_err *err)
{
    size_t n = 0;
    for (const tree *x = t; x->kind == CAT; x = x->a)
        n++;
    const tree **list = oct_calloc(n + 1, sizeof *list);
    oct_status s = list ? OCT_OK : oct_nomem(err);
    for (size_t i = n; s == OCT_OK && i-- > 0; t = t->a)
        list[i] = t->b;
    for (size_t i = 0; s == OCT_OK && i < n; i++)
        s = generate(re, list[i], err);
    oct_free(list);
    return s;
}

static oct_status generate_alt(oct_regex *re, const tree *t, oct_err *err)
{
    /* SPLIT b, next: b's code; JUMP end; then what is on the left. */
    int jumps = -1; /* chained through `also` until the end is known */
    for (; t->kind == ALT; t = t->a) {
        int split = re->n;
        OCT_TRY(emit(re, (instr){ .op = SPLIT, .to = split + 1 }, err));
        OCT_TRY(generate(re, t->b, err));
        OCT_TRY(emit(re, (instr){ .op = JUMP, .also = jumps }, err));
        jumps = re->n - 1;
        re->code[split].also = re->n;
    }
    OCT_TRY(generate(re, t, err));
    while (jumps >= 0) {
        int before = re->code[jumps].also;
        re->code[jumps].to = re->n;
        jumps = before;
    }
    return OCT_OK;
}

static oct_status generate_repeat(oct_regex *re, const tree *t, oct_err *err)
{
    for (int i = 0; i < t->min; i++)
        OCT_TRY(generate(re, t->a, err));
    if (t->max < 0) {
        int split = re->n;
        OCT_TRY(emit(re, (instr){ .op = SPLIT, .to = split + 1 }, err));
        OCT_TRY(generate(re, t->a, err));
        OCT_TRY(emit(re, (instr){ .op = JUMP, .to = split }, err));
        re->code[split].also = re->n;
        return OCT_OK;
    }
    for (int i = t->min; i < t->max; i++) {
        int split = re->n;
        OCT_TRY(emit(re, (instr){ .op = SPLIT, .to = split + 1 }, err));
        OCT_TRY(generate(re, t->a, err));
        re->code[split].also = re->n;
    }
    return OCT_OK;
}

static oct_status generate(oct_regex *re, const tree *t, oct_err *err)
{
    if (++re->work > MOST_WORK) /* counted groups of nothing make no states */
        return oct_fail(err, OCT_EUNSUPPORTED, "pattern: its repetitions unfold too often");
    switch (t->kind) {
    case SET: return emit(re, (instr){ .op = TAKE, .set = t->set }, err);
    case ASSERT: return emit(re, (instr){ .op = CHECK, .place = t->place }, err);
    case CAT: return generate_cat(re, t, err);
    case ALT: return generate_alt(re, t, err);
    case REPEAT: return generate_repeat(re, t, err);
    default: return OCT_OK;
    }
}

oct_status oct_regex_compile(oct_arena *a, const char *pattern, size_t n, oct_regex **re, oct_err *err)
{
    parser p = { .arena = a, .s = pattern, .n = n, .err = err };
    oct_regex *made = oct_arena_calloc(a, 1, sizeof *made);
    tree *t = NULL;
    if (!made)
        return oct_nomem(err);
    made->arena = a;
    OCT_TRY(parse_alt(&p, &t));
    if (more(&p))
        return bad(&p, "a parenthesis that nothing opens");
    OCT_TRY(generate(made, t, err));
    OCT_TRY(emit(made, (instr){ .op = MATCH }, err));
    size_t states = (size_t)made->n;
    made->now = oct_arena_calloc(a, states, sizeof *made->now);
    made->next = oct_arena_calloc(a, states, sizeof *made->next);
    made->seen = oct_arena_calloc(a, states, sizeof *made->seen);
    made->stack = oct_arena_calloc(a, 2 * states + 2, sizeof *made->stack);
    if (!made->now || !made->next || !made->seen || !made->stack)
        return oct_nomem(err);
    *re = made;
    return OCT_OK;
}

/* ---- matching ---- */

static bool in_ranges(const set *s, uint32_t c)
{
    for (int i = 0; i < s->n; i++)
        if (c >= s->r[i].lo && c <= s->r[i].hi)
            return true;
    return false;
}

static bool takes(const set *s, uint32_t c)
{
    bool in = in_ranges(s, c) || (s->fold && (in_ranges(s, oct_text_lower(c)) || in_ranges(s, oct_text_upper(c))));
    return in != s->negated;
}

static bool is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

enum { NOTHING = -1 }; /* before the first and behind the last character */

static bool holds(place p, int64_t before, int64_t after)
{
    bool edge = (before != NOTHING && is_word((uint32_t)before)) != (after != NOTHING && is_word((uint32_t)after));
    switch (p) {
    case TEXT_START: return before == NOTHING;
    case TEXT_END: return after == NOTHING;
    case LINE_START: return before == NOTHING || before == '\n';
    case LINE_END: return after == NOTHING || after == '\n';
    case WORD_EDGE: return edge;
    default: return !edge;
    }
}

/* Adds a state and those it leads to without taking a character. generation: one more at each position, never 0. */
static void add(oct_regex *re, int *list, int *n, int state, int generation, int64_t before, int64_t after)
{
    int depth = 0;
    re->stack[depth++] = state;
    while (depth) {
        int i = re->stack[--depth];
        if (re->seen[i] == generation)
            continue;
        re->seen[i] = generation;
        const instr *c = &re->code[i];
        if (c->op == JUMP || c->op == SPLIT)
            re->stack[depth++] = c->to;
        if (c->op == SPLIT)
            re->stack[depth++] = c->also;
        if (c->op == CHECK && holds(c->place, before, after))
            re->stack[depth++] = i + 1;
        if (c->op == TAKE || c->op == MATCH)
            list[(*n)++] = i;
    }
}

static int64_t char_at(const char *s, size_t n, size_t at, size_t *len)
{
    *len = 0;
    return at < n ? (int64_t)oct_utf8_char(s + at, n - at, len) : NOTHING;
}

bool oct_regex_full_match(oct_regex *re, const char *s, size_t n)
{
    size_t len, next_len;
    int count = 0, generation = 1;
    int64_t c = char_at(s, n, 0, &len);
    memset(re->seen, 0, (size_t)re->n * sizeof *re->seen);
    add(re, re->now, &count, 0, generation, NOTHING, c);
    for (size_t at = 0; at < n && count; at += len, len = next_len) {
        int found = 0;
        int64_t next = char_at(s, n, at + len, &next_len), now = c;
        if (++generation == INT32_MAX) {
            memset(re->seen, 0, (size_t)re->n * sizeof *re->seen);
            generation = 1;
        }
        for (int i = 0; i < count; i++)
            if (re->code[re->now[i]].op == TAKE && takes(re->code[re->now[i]].set, (uint32_t)now))
                add(re, re->next, &found, re->now[i] + 1, generation, now, next);
        int *swap = re->now;
        re->now = re->next;
        re->next = swap;
        count = found;
        c = next;
    }
    for (int i = 0; i < count; i++)
        if (re->code[re->now[i]].op == MATCH)
            return true;
    return false;
}
