/* Reads the text of a target file. */
#include "targets/target_int.h"

#include "base/words.h"
#include "ops/op.h"
#include "ops/signature.h"

#include <ctype.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

/* Where the reader stands, and what it adds to. */
typedef struct reader {
    oct_target *t;
    oct_words w;
    int depth;      /* 1: the text is that of an inherited target, ... */
    unsigned given; /* keys that the text has, bit by place in `keys` */
} reader;

static oct_status parse(oct_target *t, const char *text, const char *label, int depth, oct_err *err);

/* The next word, "" at the end of the line. */
static oct_status next(reader *r, const char **word, const char **at, oct_err *err)
{
    bool done = oct_words_done(&r->w);
    *at = r->w.at;
    while (!done && r->w.at < r->w.end && !strchr(" \t\r", *r->w.at))
        r->w.at++;
    *word = oct_arena_strndup(r->t->arena, *at, (size_t)(r->w.at - *at));
    return *word ? OCT_OK : oct_nomem(err);
}

static oct_status end_of_line(reader *r, oct_err *err)
{
    return oct_words_done(&r->w) ? OCT_OK : oct_words_fault(&r->w, r->w.at, err, "the end of the line is expected");
}

/* All that is left of the line, without blanks around it. */
static oct_status rest(reader *r, const char *what, const char **text, oct_err *err)
{
    oct_words_skip(&r->w);
    const char *at = r->w.at, *end = r->w.end;
    while (end > at && strchr(" \t\r", end[-1]))
        end--;
    if (end == at)
        return oct_words_fault(&r->w, at, err, "%s is missing", what);
    r->w.at = r->w.end;
    *text = oct_arena_strndup(r->t->arena, at, (size_t)(end - at));
    return *text ? OCT_OK : oct_nomem(err);
}

/* ---- keys with one value ---- */

static oct_status read_name(reader *r, oct_err *err)
{
    enum { MOST = 64 };
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    size_t n = strlen(word);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("-._", word[i]))
            return oct_words_fault(&r->w, at + i, err, "a name is of letters, digits, '-', '.' and '_'");
    if (n == 0 || n > MOST)
        return oct_words_fault(&r->w, at, err, n ? "a name has at most %d characters" : "a name of up to %d characters is missing", MOST);
    r->t->name = word;
    return end_of_line(r, err);
}

static oct_status read_inherits(reader *r, oct_err *err)
{
    const char *at, *word, *names[64], *name = r->t->name, *summary = r->t->summary;
    size_t n = 0;
    OCT_TRY(next(r, &word, &at, err));
    const char *text = oct_target_text(word);
    while (n < OCT_COUNT(names) && (names[n] = oct_target_builtin(n, NULL)))
        n++;
    if (!text)
        return oct_words_unknown(&r->w, at, "built-in target", word, names, n, err);
    if (r->depth == MOST_DEPTH)
        return oct_words_fault(&r->w, at, err, "targets inherit each other in a circle");
    OCT_TRY(parse(r->t, text, word, r->depth + 1, err));
    r->t->name = name; /* all but these */
    r->t->summary = summary;
    return end_of_line(r, err);
}

/* One of two words. */
static oct_status read_choice(reader *r, const char *what, const char *const words[2], bool *second, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    *second = strcmp(word, words[1]) == 0;
    if (!*second && strcmp(word, words[0]) != 0)
        return oct_words_unknown(&r->w, at, what, word, words, 2, err);
    return end_of_line(r, err);
}

static oct_status read_types(reader *r, oct_err *err)
{
    static const char *const pairs[] = { "u8*u8", "u8*s8", "s8*u8", "s8*s8", "u16*u8", "u16*s8", "s16*u8", "s16*s8" };
    const char *at, *word;
    memset(r->t->takes, 0, sizeof r->t->takes);
    if (oct_words_done(&r->w))
        return oct_words_fault(&r->w, r->w.at, err, "pairs of activations and weights are missing, as in u8*s8");
    while (!oct_words_done(&r->w)) {
        size_t i = 0;
        OCT_TRY(next(r, &word, &at, err));
        while (i < OCT_COUNT(pairs) && strcmp(word, pairs[i]) != 0)
            i++;
        if (i == OCT_COUNT(pairs))
            return oct_words_unknown(&r->w, at, "pair of types", word, pairs, OCT_COUNT(pairs), err);
        r->t->takes[i / 2][i % 2] = true;
    }
    return OCT_OK;
}

/* ---- operators ---- */

/* Forms that some record of an operator type could be given. 0: the type is unknown, no record quantizes it, or (*clamp) the quantizer of
 * the operator before it does its work. */
static unsigned forms_of(const char *type, bool *clamp)
{
    size_t n;
    unsigned forms = 0;
    const oct_op *const *all = oct_op_all(&n);
    *clamp = false;
    for (size_t i = 0; i < n; i++) {
        const oct_op *op = all[i];
        if (op->domain[0] || strcmp(op->type, type) != 0 || op->quant == OCT_QUANT_NONE)
            continue;
        *clamp |= op->clamp != NULL;
        const bool weighted = op->quant == OCT_QUANT_WEIGHTED, recurrent = op->quant == OCT_QUANT_RECURRENT;
        forms |= (!recurrent && op->integer ? OCT_TARGET_STATIC : 0) | (weighted || recurrent ? OCT_TARGET_DYNAMIC : 0) |
                 (weighted ? OCT_TARGET_WEIGHT_ONLY : 0);
    }
    return *clamp ? 0 : forms;
}

static oct_status no_operator(const reader *r, const char *at, const char *type, bool clamp, oct_err *err)
{
    if (clamp)
        return oct_words_fault(&r->w, at, err, "%s has no line: the quantizer of the operator before it clamps", type);
    if (oct_signature_first(type))
        return oct_words_fault(&r->w, at, err, "there is no quantized form of %s", type);
    const char *near = oct_signature_nearest(type);
    oct_words_fault(&r->w, at, err, "there is no operator '%.100s'", type);
    if (near)
        oct_hint(err, "did you mean '%s'?", near);
    else
        oct_hint(err, "operators are named as in ONNX, and joined by commas without blanks");
    return OCT_EMALFORMED;
}

/* Cuts "a,b" at the commas; no part may be empty. */
static oct_status split(reader *r, const char *at, const char *list, const char *what, const char ***part, size_t *n, oct_err *err)
{
    size_t cap = 0;
    *part = NULL;
    *n = 0;
    for (const char *s = list;; s++) {
        size_t len = strcspn(s, ",");
        if (len == 0)
            return oct_words_fault(&r->w, at + (s - list), err, "%s is missing", what);
        if (!OCT_GROW(r->t->arena, *part, *n, cap) || !((*part)[*n] = oct_arena_strndup(r->t->arena, s, len)))
            return oct_nomem(err);
        ++*n;
        s += len;
        if (!*s)
            return OCT_OK;
    }
}

/* if ATTR=V,V,absent else CLAUSE */
static oct_status read_condition(reader *r, oct_target_op *e, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    const char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return oct_words_fault(&r->w, at, err, "a condition is expected after 'if', as in mode=nearest,absent");
    if (!(e->attr = oct_arena_strndup(r->t->arena, word, (size_t)(equals - word))))
        return oct_nomem(err);
    OCT_TRY(split(r, at + (equals + 1 - word), equals + 1, "a value", &e->value, &e->n_value, err));
    for (size_t i = 0; i < e->n_value; i++)
        e->absent |= strcmp(e->value[i], "absent") == 0;
    OCT_TRY(next(r, &word, &at, err));
    if (strcmp(word, "else") != 0)
        return oct_words_fault(&r->w, at, err, "'else' and a reason for reports are expected, as in: else the target interpolates in float");
    return rest(r, "the reason after 'else'", &e->otherwise, err);
}

/* The words behind the operators. */
static oct_status read_forms(reader *r, oct_target_op *e, oct_err *err)
{
    static const char *const known[] = { "static", "dynamic", "weight-only", "float", "per-tensor", "needs-output", "clamp-needs-output",
                                        "crossed", "rounds-constants", "joins-sum", "scalar-scales", "signed", "if" };
    const char *at, *word, *is_float = NULL;
    while (!oct_words_done(&r->w)) {
        size_t i = 0;
        OCT_TRY(next(r, &word, &at, err));
        while (i < OCT_COUNT(known) && strcmp(word, known[i]) != 0)
            i++;
        switch (i) {
        case 0: e->forms |= OCT_TARGET_STATIC; break;
        case 1: e->forms |= OCT_TARGET_DYNAMIC; break;
        case 2: e->forms |= OCT_TARGET_WEIGHT_ONLY; break;
        case 3: is_float = at; break;
        case 4: e->per_tensor = true; break;
        case 5: e->needs_output = true; break;
        case 6: e->clamp_needs_output = true; break;
        case 7: e->crossed = true; break;
        case 8: e->rounds = true; break;
        case 9: e->joins_sum = true; break;
        case 10: e->scalars = true; break;
        case 11: e->signs = true; break;
        case 12: OCT_TRY(read_condition(r, e, err)); break;
        default: return oct_words_unknown(&r->w, at, "form or property", word, known, OCT_COUNT(known), err);
        }
    }
    const bool property = e->per_tensor || e->needs_output || e->clamp_needs_output || e->crossed || e->rounds || e->joins_sum || e->scalars ||
                          e->signs;
    if (is_float && (e->forms || property || e->attr))
        return oct_words_fault(&r->w, is_float, err, "'float' stands alone");
    return is_float || e->forms ? OCT_OK : oct_words_fault(&r->w, r->w.at, err, "static, dynamic, weight-only or float is expected");
}

/* The first of some forms. */
static const char *form_name(unsigned forms)
{
    return forms & OCT_TARGET_STATIC ? "static" : forms & OCT_TARGET_DYNAMIC ? "dynamic" : "weight-only";
}

/* What a text says of an operator replaces what an inherited one said. */
static oct_status set_entry(reader *r, const char *at, const oct_target_op *e, oct_err *err)
{
    oct_target *t = r->t;
    bool clamp;
    const unsigned forms = forms_of(e->op, &clamp);
    oct_target_op *old = oct_target_entry(t, e->op);
    if (e->kept ? !oct_signature_first(e->op) : !forms)
        return no_operator(r, at, e->op, clamp, err);
    if (e->forms & ~forms)
        return oct_words_fault(&r->w, at, err, "%s has no %s form", e->op, form_name(e->forms & ~forms));
    if (old && old->depth == r->depth)
        return oct_words_fault(&r->w, at, err, "%s stands in two lines of this file", e->op);
    if (!old) {
        if (!OCT_GROW(t->arena, t->op, t->n_op, t->cap_op))
            return oct_nomem(err);
        old = &t->op[t->n_op++];
    }
    *old = *e;
    return OCT_OK;
}

static oct_status read_op(reader *r, oct_err *err)
{
    oct_target_op e = { .depth = r->depth };
    const char *list, *at, **name;
    size_t n;
    OCT_TRY(next(r, &list, &at, err));
    OCT_TRY(split(r, at, list, "an operator", &name, &n, err));
    OCT_TRY(read_forms(r, &e, err));
    for (size_t i = 0, column = 0; i < n; column += strlen(name[i++]) + 1) {
        e.op = name[i];
        OCT_TRY(set_entry(r, at + column, &e, err));
    }
    return OCT_OK;
}

/* keeps OPERATORS */
static oct_status read_keeps(reader *r, oct_err *err)
{
    oct_target_op e = { .kept = true, .depth = r->depth };
    const char *list, *at, **name;
    size_t n;
    OCT_TRY(next(r, &list, &at, err));
    OCT_TRY(split(r, at, list, "an operator", &name, &n, err));
    for (size_t i = 0, column = 0; i < n; column += strlen(name[i++]) + 1) {
        e.op = name[i];
        OCT_TRY(set_entry(r, at + column, &e, err));
    }
    return end_of_line(r, err);
}

static oct_status read_trap(reader *r, oct_err *err)
{
    const char *at, *word, *names[32];
    size_t n = 0, i = 0;
    while (n < OCT_COUNT(names) && (names[n] = oct_target_trap_name(n)))
        n++;
    OCT_TRY(next(r, &word, &at, err));
    while (i < n && strcmp(word, names[i]) != 0)
        i++;
    if (i == n)
        return oct_words_unknown(&r->w, at, "trap", word, names, n, err);
    r->t->traps |= UINT32_C(1) << i;
    return end_of_line(r, err);
}

/* ---- the whole ---- */

static const char *const keys[] = { "name", "summary", "inherits", "types", "pair-sums", "bfloat16", "quantized", "signs", "trap", "keeps", "op" };
enum { NAME, SUMMARY, INHERITS, TYPES, PAIR_SUMS, BFLOAT16, QUANTIZED, SIGNS, TRAP, KEEPS, OP };

static oct_status read_line(reader *r, oct_err *err)
{
    static const char *const sums[2] = { "exact", "saturate" }, *const answers[2] = { "no", "yes" }, *const extents[2] = { "listed", "all" };
    static const char *const signs[2] = { "kept", "free" };
    const char *word, *at;
    unsigned i = 0;
    OCT_TRY(next(r, &word, &at, err));
    while (i < OCT_COUNT(keys) && strcmp(word, keys[i]) != 0)
        i++;
    if (i == OCT_COUNT(keys))
        return oct_words_unknown(&r->w, at, "key", word, keys, OCT_COUNT(keys), err);
    if (i != OP && i != TRAP && i != KEEPS && (r->given >> i & 1))
        return oct_words_fault(&r->w, at, err, "'%s' stands in two lines of this file", word);
    if (i == INHERITS && r->given >> INHERITS)
        return oct_words_fault(&r->w, at, err, "'inherits' comes before what the target changes");
    r->given |= 1u << i;
    switch (i) {
    case NAME: return read_name(r, err);
    case SUMMARY: return rest(r, "the summary", &r->t->summary, err);
    case INHERITS: return read_inherits(r, err);
    case TYPES: return read_types(r, err);
    case PAIR_SUMS: return read_choice(r, "kind of sums", sums, &r->t->saturates, err);
    case BFLOAT16: return read_choice(r, "answer", answers, &r->t->bfloat16, err);
    case QUANTIZED: return read_choice(r, "extent", extents, &r->t->runs_all, err);
    case SIGNS: return read_choice(r, "answer", signs, &r->t->signs_free, err);
    case TRAP: return read_trap(r, err);
    case KEEPS: return read_keeps(r, err);
    default: return read_op(r, err);
    }
}

static oct_status whole_fault(const reader *r, oct_err *err, const char *reason, const char *hint)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", r->w.label, reason);
    oct_hint(err, "%s", hint);
    return OCT_EMALFORMED;
}

/* What only the whole text shows. */
static oct_status check(const reader *r, oct_err *err)
{
    const oct_target *t = r->t;
    bool dynamic = false, any = false;
    for (int a = 0; a < OCT_TARGET_ACTIVATIONS; a++)
        any |= t->takes[a][0] || t->takes[a][1];
    for (size_t i = 0; i < t->n_op; i++)
        dynamic |= (t->op[i].forms & OCT_TARGET_DYNAMIC) != 0;
    if (!(r->given >> NAME & 1) || !(r->given >> SUMMARY & 1))
        return whole_fault(r, err, "the target has no name or no summary", "add a line 'name NAME' and a line 'summary TEXT'");
    if (!any)
        return whole_fault(r, err, "the target has no types", "add a line of pairs of activations and weights, as 'types u8*s8'");
    if (dynamic && !t->takes[0][0] && !t->takes[0][1])
        return whole_fault(r, err, "dynamic quantization makes u8 activations, which the target does not take",
                           "add u8*s8 or u8*u8 to the line 'types', or leave 'dynamic' out");
    /* Weights that could saturate are written as u8. */
    if (t->saturates && t->takes[0][1] && !t->takes[0][0])
        return whole_fault(r, err, "pair sums saturate, and the target takes no u8 weights in their place",
                           "add u8*u8 to the line 'types', or write 'pair-sums exact'");
    return OCT_OK;
}

static oct_status parse(oct_target *t, const char *text, const char *label, int depth, oct_err *err)
{
    reader r = { .t = t, .w = { .label = label, .next = text }, .depth = depth };
    while (oct_words_line(&r.w))
        if (!oct_words_done(&r.w))
            OCT_TRY(read_line(&r, err));
    return check(&r, err);
}

oct_status oct_target_parse(const char *text, const char *label, oct_target **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_target *t = a ? oct_arena_calloc(a, 1, sizeof *t) : NULL;
    if (!t) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    t->arena = a;
    oct_status s = parse(t, text, label, 0, err);
    if (s != OCT_OK) {
        oct_target_close(t);
        return s;
    }
    *out = t;
    return OCT_OK;
}
