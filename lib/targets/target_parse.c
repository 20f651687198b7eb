/* Reads the text of a target file. */
#include "targets/target_int.h"

#include "base/buf.h"
#include "forms/qlinear.h"
#include "ops/op.h"
#include "ops/signature.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

static oct_status parse(oct_target *t, const char *text, const char *label, oct_err *err);

/* The lines of a file, for "which stand before this one". */
enum {
#define OCT_TARGET_KEY(word, function, lines, sentence) KEY_##function,
#define OCT_TARGET_CHOICE(word, type, member, what, sentence, ...) KEY_##member,
#include "targets/target_words.inc"
};

/* ---- keys with one value ---- */

static oct_status read_name(oct_words *w, void *self, oct_err *err)
{
    enum { MOST = 64 };
    oct_target *t = self;
    const char *at;
    OCT_TRY(oct_words_next(w, &t->name, &at, err));
    const size_t n = strlen(t->name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)t->name[i]) && !strchr("-._", t->name[i]))
            return oct_words_fault(w, at + i, err, "a name is of letters, digits, '-', '.' and '_'");
    if (n == 0 || n > MOST)
        return oct_words_fault(w, at, err,
                               n ? "a name has at most %d characters" : "a name of up to %d characters is missing",
                               MOST);
    return OCT_OK;
}

static oct_status read_summary(oct_words *w, void *self, oct_err *err)
{
    return oct_words_rest(w, "the summary", &((oct_target *)self)->summary, err);
}

/* It is for those who look for a built-in target (oct_target_called). */
static oct_status read_also(oct_words *w, void *self, oct_err *err)
{
    const char *names;
    return oct_words_rest(w, "other names", &names, err);
}

static oct_status read_inherits(oct_words *w, void *self, oct_err *err)
{
    oct_target *t = self;
    const char *names[64], *name = t->name, *summary = t->summary;
    size_t n = 0, i;
    if (w->given >> KEY_inherits)
        return oct_words_fault(w, w->line, err, "'inherits' comes before what the target changes");
    while (n < OCT_COUNT(names) && (names[n] = oct_target_builtin(n, NULL)))
        n++;
    OCT_TRY(oct_words_one_of(w, "built-in target", names, n, sizeof *names, &i, err));
    if (t->depth == MOST_DEPTH)
        return oct_words_fault(w, w->line, err, "targets inherit each other in a circle");
    t->depth++;
    OCT_TRY(parse(t, oct_target_text(names[i]), names[i], err));
    t->depth--;
    t->name = name; /* name and summary are not inherited */
    t->summary = summary;
    return OCT_OK;
}

static oct_status read_types(oct_words *w, void *self, oct_err *err)
{
    static const char *const pairs[] = { "u8*u8", "u8*s8", "s8*u8", "s8*s8", "u16*u8", "u16*s8", "s16*u8", "s16*s8" };
    oct_target *t = self;
    size_t i;
    memset(t->takes, 0, sizeof t->takes);
    if (oct_words_done(w))
        return oct_words_fault(w, w->at, err, "pairs of activations and weights are missing, as in u8*s8");
    while (!oct_words_done(w)) {
        OCT_TRY(OCT_WORDS_ONE_OF(w, "pair of types", pairs, &i, err));
        t->takes[i / 2][i % 2] = true;
    }
    return OCT_OK;
}

static oct_status read_trap(oct_words *w, void *self, oct_err *err)
{
    const char *names[32];
    size_t n = 0, i;
    while (n < OCT_COUNT(names) && (names[n] = oct_target_trap_name(n)))
        n++;
    OCT_TRY(oct_words_one_of(w, "trap", names, n, sizeof *names, &i, err));
    ((oct_target *)self)->traps |= UINT32_C(1) << i;
    return OCT_OK;
}

/* ---- operators ---- */

/* The forms, other than `rounded`, that some record of an operator type has. 0: the type is unknown, no record
 * quantizes it, or it is a clamp (*clamp), which the quantizer of the operator before it performs. */
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
        forms |= (!recurrent && op->integer ? OCT_TARGET_STATIC : 0) |
                 (weighted || recurrent ? OCT_TARGET_DYNAMIC : 0) | (weighted ? OCT_TARGET_WEIGHT_ONLY : 0) |
                 (op->adds ? OCT_TARGET_RESIDUAL : 0);
    }
    return *clamp ? 0 : forms;
}

static oct_status no_operator(const oct_words *w, const char *at, const char *type, bool clamp, oct_err *err)
{
    if (clamp)
        return oct_words_fault(w, at, err, "%s has no line: the quantizer of the operator before it clamps", type);
    if (oct_signature_first(type))
        return oct_words_fault(w, at, err, "there is no quantized form of %s", type);
    const char *near = oct_signature_nearest(type);
    oct_words_fault(w, at, err, "there is no operator '%.100s'", type);
    if (near)
        oct_hint(err, "did you mean '%s'?", near);
    else
        oct_hint(err, "operators are named as in ONNX, and joined by commas without blanks");
    return OCT_EMALFORMED;
}

/* Cuts "a,b" at the commas; no part may be empty. */
static oct_status split(oct_words *w, const char *at, const char *list, const char *what, const char ***part, size_t *n,
                        oct_err *err)
{
    size_t cap = 0;
    *part = NULL;
    *n = 0;
    for (const char *s = list;; s++) {
        size_t len = strcspn(s, ",");
        if (len == 0)
            return oct_words_fault(w, at + (s - list), err, "%s is missing", what);
        if (!OCT_GROW(w->arena, *part, *n, cap) || !((*part)[*n] = oct_arena_strndup(w->arena, s, len)))
            return oct_nomem(err);
        ++*n;
        s += len;
        if (!*s)
            return OCT_OK;
    }
}

/* if ATTR=V,V,absent else CLAUSE */
static oct_status read_condition(oct_words *w, oct_target_op *e, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(oct_words_next(w, &word, &at, err));
    const char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return oct_words_fault(w, at, err, "a condition is expected after 'if', as in mode=nearest,absent");
    if (!(e->attr = oct_arena_strndup(w->arena, word, (size_t)(equals - word))))
        return oct_nomem(err);
    OCT_TRY(split(w, at + (equals + 1 - word), equals + 1, "a value", &e->value, &e->n_value, err));
    for (size_t i = 0; i < e->n_value; i++)
        e->absent |= strcmp(e->value[i], "absent") == 0;
    OCT_TRY(oct_words_next(w, &word, &at, err));
    if (strcmp(word, "else") != 0)
        return oct_words_fault(
            w, at, err, "'else' and a reason for reports are expected, as in: else the target interpolates in float");
    return oct_words_rest(w, "the reason after 'else'", &e->otherwise, err);
}

/* What can stand behind the operators: a form, a property, or a condition. */
typedef struct op_word {
    const char *word;
    unsigned form; /* of oct_target_form; 0: it sets a member */
    size_t member; /* of oct_target_op_rules */
    bool alone, condition;
} op_word;

static const op_word op_words[] = {
#define OCT_TARGET_FORM(name, bit, sentence) { .word = name, .form = bit },
#define OCT_TARGET_ALONE(name, rule, sentence) \
    { .word = name, .member = offsetof(oct_target_op_rules, rule), .alone = true },
#define OCT_TARGET_PROPERTY(name, rule, sentence) { .word = name, .member = offsetof(oct_target_op_rules, rule) },
#define OCT_TARGET_CONDITION(name, value, sentence) { .word = name, .condition = true },
#include "targets/target_words.inc"
};

/* The words after the operators. */
static oct_status read_forms(oct_words *w, oct_target_op *e, oct_err *err)
{
    static const char forms[] =
#define OCT_TARGET_FORM(word, bit, sentence) " " word
#define OCT_TARGET_ALONE(word, member, sentence) " " word
#include "targets/target_words.inc"
        ;
    const op_word *alone = NULL;
    const char *alone_at = NULL;
    size_t n = 0, i;
    for (; !oct_words_done(w); n++) {
        const char *at = w->at;
        OCT_TRY(OCT_WORDS_ONE_OF(w, "form or property", op_words, &i, err));
        const op_word *o = &op_words[i];
        e->forms |= o->form;
        if (o->condition)
            OCT_TRY(read_condition(w, e, err));
        else if (!o->form)
            *(bool *)((char *)&e->rules + o->member) = true;
        if (o->alone) {
            alone = o;
            alone_at = at;
        }
    }
    if (alone && n > 1)
        return oct_words_fault(w, alone_at, err, "'%s' stands alone", alone->word);
    if (e->forms & OCT_TARGET_ROUNDED && e->forms != OCT_TARGET_ROUNDED)
        return oct_words_fault(w, w->at, err, "'rounded' and another form stand together");
    return alone || e->forms ? OCT_OK : oct_words_fault(w, w->at, err, "a form is missing, one of%s", forms);
}

/* The word of the first of these forms. */
static const char *form_name(unsigned forms)
{
    size_t i = 0;
    while (!(op_words[i].form & forms))
        i++;
    return op_words[i].word;
}

static bool is_qlinear(const char *type)
{
    size_t n, i = 0;
    const oct_qlinear *all = oct_qlinear_all(&n);
    while (i < n && (*all[i].domain || strcmp(all[i].type, type) != 0))
        i++;
    return i < n;
}

/* A line about an operator replaces one that was inherited. */
static oct_status set_entry(oct_target *t, const oct_words *w, const char *at, const oct_target_op *e, oct_err *err)
{
    bool clamp;
    unsigned forms = forms_of(e->op, &clamp);
    oct_target_op *old = oct_target_entry(t, e->op);
    if (e->forms == OCT_TARGET_ROUNDED && oct_signature_first(e->op))
        forms = OCT_TARGET_ROUNDED;
    if (e->rules.fit_weights && !is_qlinear(e->op))
        return oct_words_fault(w, at, err, "%s is no operator on integers, which alone can be fit-weights", e->op);
    if (e->kept || !e->forms ? !oct_signature_first(e->op) : !forms) /* float: any operator */
        return no_operator(w, at, e->op, clamp, err);
    if (e->forms & ~forms)
        return oct_words_fault(w, at, err, "%s has no %s form", e->op, form_name(e->forms & ~forms));
    if (old && old->depth == t->depth)
        return oct_words_fault(w, at, err, "%s stands in two lines", e->op);
    if (!old) {
        if (!OCT_GROW(t->arena, t->op, t->n_op, t->cap_op))
            return oct_nomem(err);
        old = &t->op[t->n_op++];
    }
    *old = *e;
    return OCT_OK;
}

/* OPERATORS, to which forms and properties or `kept` apply. */
static oct_status read_operators(oct_words *w, oct_target *t, bool kept, oct_err *err)
{
    oct_target_op e = { .kept = kept, .depth = t->depth };
    const char *list, *at, **name;
    size_t n;
    OCT_TRY(oct_words_next(w, &list, &at, err));
    OCT_TRY(split(w, at, list, "an operator", &name, &n, err));
    if (!kept)
        OCT_TRY(read_forms(w, &e, err));
    for (size_t i = 0, column = 0; i < n; column += strlen(name[i++]) + 1) {
        e.op = name[i];
        OCT_TRY(set_entry(t, w, at + column, &e, err));
    }
    return OCT_OK;
}

static oct_status read_op(oct_words *w, void *self, oct_err *err)
{
    return read_operators(w, self, false, err);
}

static oct_status read_keeps(oct_words *w, void *self, oct_err *err)
{
    return read_operators(w, self, true, err);
}

/* ---- prescribed scales of results ---- */

/* N or N/D, above 0. */
static oct_status read_number(oct_words *w, float *value, oct_err *err)
{
    const oct_word word = oct_words_take(w);
    const char *slash = word.n ? memchr(word.at, '/', word.n) : NULL;
    const size_t n = slash ? (size_t)(slash - word.at) : word.n;
    double v, d = 1;
    if (oct_word_number((oct_word){ word.at, n }, &v) &&
        (!slash || oct_word_number((oct_word){ slash + 1, word.n - n - 1 }, &d))) {
        *value = (float)(v / d);
        if (*value >= 0x1p-120f && isfinite(*value))
            return OCT_OK;
    }
    return oct_words_fault(w, word.at, err, "a scale is expected, as in 1/256");
}

/* OP TYPE SCALE ZERO */
static oct_status read_scale(oct_words *w, void *self, oct_err *err)
{
    static const char *const names[] = { "u8", "s8", "u16", "s16" };
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 };
    oct_target *t = self;
    oct_target_scale e = { .depth = t->depth };
    const char *at;
    size_t i, k = 0;
    int64_t zero;
    OCT_TRY(oct_words_next(w, &e.op, &at, err));
    if (!oct_signature_first(e.op))
        return no_operator(w, at, e.op, false, err);
    oct_words_skip(w);
    at = w->at;
    OCT_TRY(OCT_WORDS_ONE_OF(w, "type of activations", names, &i, err));
    e.type = types[i];
    while (k < t->n_scale &&
           (t->scale[k].type != e.type || strcmp(t->scale[k].op, e.op) != 0)) /* an inherited line is replaced */
        k++;
    if (k < t->n_scale && t->scale[k].depth == t->depth)
        return oct_words_fault(w, at, err, "%s of %s stands in two lines", e.op, names[i]);
    const double steps = (double)(INT64_C(1) << oct_dtype_bits(e.type)), least = i % 2 ? -steps / 2 : 0;
    OCT_TRY(read_number(w, &e.scale, err));
    OCT_TRY(oct_words_whole(w, least, least + steps - 1, &zero, err));
    e.zero = (int32_t)zero;
    if (k == t->n_scale && !OCT_GROW(t->arena, t->scale, t->n_scale, t->cap_scale))
        return oct_nomem(err);
    t->n_scale += k == t->n_scale;
    t->scale[k] = e;
    return OCT_OK;
}

/* ---- costs ---- */

/* NULL: there is no room for another. */
static oct_cost_table *add_costs(const oct_words *w, oct_target *t, oct_err *err)
{
    if (t->n_costs < OCT_COST_TABLES)
        return &t->costs[t->n_costs++];
    oct_words_fault(w, w->at, err, "a target has at most %d tables of costs", OCT_COST_TABLES);
    return NULL;
}

/* Tables that a file names or contains replace those that it inherits. */
static void begin_costs(oct_target *t)
{
    if (t->costs_depth != t->depth)
        t->n_costs = 0;
    t->costs_depth = t->depth;
}

static oct_status read_costs(oct_words *w, void *self, oct_err *err)
{
    oct_target *t = self;
    oct_cost_table *table;
    const char *names[32] = { "none" };
    size_t n = 1, i;
    while (n < OCT_COUNT(names) && (names[n] = oct_costs_builtin(n - 1)))
        n++;
    if (oct_words_done(w))
        return oct_words_fault(w, w->at, err, "names of tables of costs, or 'none', are missing");
    begin_costs(t);
    while (!oct_words_done(w)) {
        OCT_TRY(oct_words_one_of(w, "table of costs", names, n, sizeof *names, &i, err));
        if (i == 0)
            continue;
        if (!(table = add_costs(w, t, err)))
            return OCT_EMALFORMED;
        OCT_TRY(oct_costs_parse(oct_costs_text(names[i]), names[i], t->arena, table, err));
    }
    return OCT_OK;
}

/* A line of a table that is in the target file itself. */
static oct_status read_cost(oct_words *w, void *self, oct_err *err)
{
    static const char own[] = "its own";
    oct_target *t = self;
    begin_costs(t);
    oct_cost_table *last = t->n_costs ? &t->costs[t->n_costs - 1] : NULL;
    if (!last || last->name != own) {
        if (!(last = add_costs(w, t, err)))
            return OCT_EMALFORMED;
        *last = (oct_cost_table){ .name = own };
    }
    return oct_cost_read(w, last, err);
}

/* ---- the whole ---- */

static const oct_words_key keys[] = {
#define ONCE .again = false
#define AGAIN .again = true
#define NEEDED .required = true
#define OCT_TARGET_KEY(key, function, lines, sentence) { .word = key, .read = read_##function, lines },
#define OCT_TARGET_CHOICE(key, type, name, kind, sentence, ...) \
    { .word = key, OCT_WORDS_CHOICE(oct_target, rules.name, kind, __VA_ARGS__) },
#include "targets/target_words.inc"
};

static oct_status whole_fault(const char *label, oct_err *err, const char *reason, const char *hint)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", label, reason);
    oct_hint(err, "%s", hint);
    return OCT_EMALFORMED;
}

/* Checks what only the whole text shows. */
static oct_status check(const oct_target *t, const char *label, oct_err *err)
{
    bool dynamic = false, any = false;
    for (int a = 0; a < OCT_TARGET_ACTIVATIONS; a++)
        any |= t->takes[a][0] || t->takes[a][1];
    for (size_t i = 0; i < t->n_op; i++)
        dynamic |= (t->op[i].forms & OCT_TARGET_DYNAMIC) != 0;
    if (!any)
        return whole_fault(label, err, "the target has no types",
                           "add a line of pairs of activations and weights, as 'types u8*s8'");
    if (dynamic && !t->takes[0][0] && !t->takes[0][1])
        return whole_fault(label, err, "dynamic quantization makes u8 activations, which the target does not take",
                           "add u8*s8 or u8*u8 to the line 'types', or leave 'dynamic' out");
    if (t->rules.biases == OCT_BIASES_INT8 && !t->rules.powers_of_two)
        return whole_fault(label, err, "biases of int8 are added as they are only where all scales are powers of two",
                           "add a line 'scales powers-of-two'");
    if (t->rules.powers_of_two && !t->rules.symmetric)
        return whole_fault(label, err, "scales that are powers of two do not end where clamps do",
                           "add a line 'activations symmetric'");
    return OCT_OK;
}

static oct_status parse(oct_target *t, const char *text, const char *label, oct_err *err)
{
    oct_words w = { .label = label, .next = text, .arena = t->arena };
    OCT_TRY(oct_words_read(&w, &(oct_words_format){ .key = keys, .n = OCT_COUNT(keys) }, t, err));
    return check(t, label, err);
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
    oct_status s = parse(t, text, label, err);
    if (s != OCT_OK) {
        oct_target_close(t);
        return s;
    }
    *out = t;
    return OCT_OK;
}
