/* Reads the text of a target file. */
#include "targets/target_int.h"

#include "forms/qlinear.h"
#include "ops/op.h"
#include "ops/signature.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

/* The position in the text, and the target that is being filled. */
typedef struct reader {
    oct_target *t;
    oct_words w;
    int depth;      /* 0: the text is the file itself; 1: the target that it inherits from; ... */
    unsigned given; /* bit i: the text has key i (read_key) */
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

/* The rest of the line, without blanks around it. */
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
        return oct_words_fault(&r->w, at, err,
                               n ? "a name has at most %d characters" : "a name of up to %d characters is missing",
                               MOST);
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
    r->t->name = name; /* name and summary are not inherited */
    r->t->summary = summary;
    return end_of_line(r, err);
}

/* Keys whose value is one of some words, of which all but the first set a member of their own. */
enum { WORDS = 3 };
static const struct {
    const char *key, *what, *words[WORDS];
    size_t member[WORDS - 1];
} choices[] = {
    { "bfloat16",
      "answer",
      { "no", "yes", "never" },
      { offsetof(oct_target, bfloat16), offsetof(oct_target, no_bfloat16) } },
    { "quantized", "extent", { "listed", "all" }, { offsetof(oct_target, runs_all) } },
    { "dequantizing", "kind of search", { "beside", "carried" }, { offsetof(oct_target, carries) } },
    { "signs", "answer", { "kept", "free" }, { offsetof(oct_target, signs_free) } },
    { "activations", "kind of zero points", { "any", "symmetric" }, { offsetof(oct_target, symmetric) } },
    { "biases",
      "type of biases",
      { "int32", "float", "int8" },
      { offsetof(oct_target, float_bias), offsetof(oct_target, own_bias) } },
    { "scales", "kind of scales", { "any", "powers-of-two" }, { offsetof(oct_target, powers_of_two) } },
    { "shapes", "kind of shapes", { "any", "static" }, { offsetof(oct_target, static_shapes) } },
    { "placement", "placement", { "paying", "everywhere" }, { offsetof(oct_target, everywhere) } },
    { "quantizers", "number", { "shared", "one-each" }, { offsetof(oct_target, own_quantizers) } },
    { "dequantizers", "number", { "shared", "one-each" }, { offsetof(oct_target, own_dequantizers) } },
    { "batchnorm", "form", { "kept", "depthwise" }, { offsetof(oct_target, norms_are_convs) } },
    { "attributes", "extent", { "given", "written" }, { offsetof(oct_target, writes_defaults) } },
    { "com.microsoft", "answer", { "yes", "no" }, { offsetof(oct_target, onnx_alone) } },
    { "onnxruntime", "answer", { "loads", "never" }, { offsetof(oct_target, never_in_ort) } },
    { "device", "state", { "tested", "untested" }, { offsetof(oct_target, untested) } },
};

static oct_status read_choice(reader *r, size_t i, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    size_t k = 0, n = choices[i].words[WORDS - 1] ? WORDS : WORDS - 1;
    while (k < n && strcmp(word, choices[i].words[k]) != 0)
        k++;
    if (k == n)
        return oct_words_unknown(&r->w, at, choices[i].what, word, choices[i].words, n, err);
    for (size_t m = 1; m < n; m++)
        *(bool *)((char *)r->t + choices[i].member[m - 1]) = m == k;
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

static oct_status read_sums(reader *r, oct_err *err)
{
    static const char *const kinds[OCT_PAIR_SUMS] = { "exact", "saturate", "saturate-in-taps" };
    const char *at, *word;
    int i = 0;
    OCT_TRY(next(r, &word, &at, err));
    while (i < OCT_PAIR_SUMS && strcmp(word, kinds[i]) != 0)
        i++;
    if (i == OCT_PAIR_SUMS)
        return oct_words_unknown(&r->w, at, "kind of sums", word, kinds, OCT_PAIR_SUMS, err);
    r->t->pair_sums = (oct_pair_sums)i;
    return end_of_line(r, err);
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
static oct_status split(reader *r, const char *at, const char *list, const char *what, const char ***part, size_t *n,
                        oct_err *err)
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
        return oct_words_fault(
            &r->w, at, err,
            "'else' and a reason for reports are expected, as in: else the target interpolates in float");
    return rest(r, "the reason after 'else'", &e->otherwise, err);
}

/* The words after the operators. */
static oct_status read_forms(reader *r, oct_target_op *e, oct_err *err)
{
    static const char *const known[] = { "static",
                                         "dynamic",
                                         "weight-only",
                                         "rounded",
                                         "residual",
                                         "float",
                                         "per-tensor",
                                         "needs-output",
                                         "clamp-needs-output",
                                         "crossed",
                                         "rounds-constants",
                                         "joins-sum",
                                         "scalar-scales",
                                         "signed",
                                         "shared-inputs",
                                         "same-scale",
                                         "any-weights",
                                         "takes-sum",
                                         "if",
                                         "fit-weights",
                                         "u8-weights",
                                         "others-narrow",
                                         "takes-quantizer",
                                         "takes-shared-quantizer",
                                         "any-bias",
                                         "takes-clamp" };
    const char *at, *word, *is_float = NULL, *is_alone = NULL;
    while (!oct_words_done(&r->w)) {
        size_t i = 0;
        OCT_TRY(next(r, &word, &at, err));
        while (i < OCT_COUNT(known) && strcmp(word, known[i]) != 0)
            i++;
        switch (i) {
        case 0: e->forms |= OCT_TARGET_STATIC; break;
        case 1: e->forms |= OCT_TARGET_DYNAMIC; break;
        case 2: e->forms |= OCT_TARGET_WEIGHT_ONLY; break;
        case 3: e->forms |= OCT_TARGET_ROUNDED; break;
        case 4: e->forms |= OCT_TARGET_RESIDUAL; break;
        case 5: is_float = is_alone = at; break;
        case 6: e->per_tensor = true; break;
        case 7: e->needs_output = true; break;
        case 8: e->clamp_needs_output = true; break;
        case 9: e->crossed = true; break;
        case 10: e->rounds = true; break;
        case 11: e->joins_sum = true; break;
        case 12: e->scalars = true; break;
        case 13: e->signs = true; break;
        case 14: e->shared_inputs = true; break;
        case 15: e->same_scale = true; break;
        case 16: e->any_weights = true; break;
        case 17: e->takes_sum = true; break;
        case 18: OCT_TRY(read_condition(r, e, err)); break;
        case 19:
            e->fit_weights = true;
            is_alone = at;
            break;
        case 20: e->u8_weights = true; break;
        case 21: e->others_narrow = true; break;
        case 22: e->takes_quantizer = true; break;
        case 23: e->takes_shared_quantizer = true; break;
        case 24: e->any_bias = true; break;
        case 25: e->takes_clamp = true; break;
        default: return oct_words_unknown(&r->w, at, "form or property", word, known, OCT_COUNT(known), err);
        }
    }
    const bool property = e->per_tensor || e->needs_output || e->clamp_needs_output || e->crossed || e->rounds ||
                          e->joins_sum || e->scalars || e->signs || e->shared_inputs || e->same_scale ||
                          e->any_weights || e->u8_weights || e->others_narrow || e->takes_sum || e->takes_quantizer ||
                          e->takes_shared_quantizer || e->any_bias || e->takes_clamp;
    if (is_alone && (e->forms || property || e->attr || (is_float && e->fit_weights)))
        return oct_words_fault(&r->w, is_alone, err, "'%s' stands alone",
                               is_alone == is_float ? "float" : "fit-weights");
    if (e->forms & OCT_TARGET_ROUNDED && e->forms != OCT_TARGET_ROUNDED)
        return oct_words_fault(&r->w, r->w.at, err, "'rounded' and another form stand together");
    return is_alone || e->forms
               ? OCT_OK
               : oct_words_fault(&r->w, r->w.at, err,
                                 "static, dynamic, weight-only, rounded, residual or float is expected");
}

/* The name of the first of these forms. */
static const char *form_name(unsigned forms)
{
    return forms & OCT_TARGET_STATIC        ? "static"
           : forms & OCT_TARGET_DYNAMIC     ? "dynamic"
           : forms & OCT_TARGET_WEIGHT_ONLY ? "weight-only"
                                            : "residual";
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
static oct_status set_entry(reader *r, const char *at, const oct_target_op *e, oct_err *err)
{
    oct_target *t = r->t;
    bool clamp;
    unsigned forms = forms_of(e->op, &clamp);
    oct_target_op *old = oct_target_entry(t, e->op);
    if (e->forms == OCT_TARGET_ROUNDED && oct_signature_first(e->op))
        forms = OCT_TARGET_ROUNDED;
    if (e->fit_weights && !is_qlinear(e->op))
        return oct_words_fault(&r->w, at, err, "%s is no operator on integers, which alone can be fit-weights", e->op);
    if (e->kept || !e->forms ? !oct_signature_first(e->op) : !forms) /* float: any operator */
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

/* ---- prescribed scales of results ---- */

/* N or N/D, above 0. */
static oct_status read_number(reader *r, float *value, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    char *end;
    const double n = strtod(word, &end), d = *end == '/' ? strtod(end + 1, &end) : 1;
    *value = (float)(n / d);
    if (end == word || *end || !(*value >= 0x1p-120f) || !isfinite(*value))
        return oct_words_fault(&r->w, at, err, "a scale is expected, as in 1/256");
    return OCT_OK;
}

static oct_status read_zero(reader *r, oct_dtype type, int32_t *zero, oct_err *err)
{
    const char *at, *word;
    OCT_TRY(next(r, &word, &at, err));
    const bool is_signed = type == OCT_S8 || type == OCT_S16;
    const long steps = 1L << oct_dtype_bits(type), low = is_signed ? -steps / 2 : 0;
    char *end;
    errno = 0;
    const long n = strtol(word, &end, 10);
    if (end == word || *end || errno || n < low || n >= low + steps)
        return oct_words_fault(&r->w, at, err, "a zero point of %s is expected, %ld to %ld", oct_dtype_name(type), low,
                               low + steps - 1);
    *zero = (int32_t)n;
    return OCT_OK;
}

/* OP TYPE SCALE ZERO */
static oct_status read_scale(reader *r, oct_err *err)
{
    static const char *const names[] = { "u8", "s8", "u16", "s16" };
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 };
    oct_target_scale e = { .depth = r->depth };
    const char *at, *word;
    size_t i = 0, k = 0;
    OCT_TRY(next(r, &e.op, &at, err));
    if (!oct_signature_first(e.op))
        return no_operator(r, at, e.op, false, err);
    OCT_TRY(next(r, &word, &at, err));
    while (i < OCT_COUNT(names) && strcmp(word, names[i]) != 0)
        i++;
    if (i == OCT_COUNT(names))
        return oct_words_unknown(&r->w, at, "type of activations", word, names, OCT_COUNT(names), err);
    e.type = types[i];
    while (k < r->t->n_scale &&
           (r->t->scale[k].type != e.type || strcmp(r->t->scale[k].op, e.op) != 0)) /* an inherited line is replaced */
        k++;
    if (k < r->t->n_scale && r->t->scale[k].depth == r->depth)
        return oct_words_fault(&r->w, at, err, "%s of %s stands in two lines of this file", e.op, word);
    OCT_TRY(read_number(r, &e.scale, err));
    OCT_TRY(read_zero(r, e.type, &e.zero, err));
    oct_target *t = r->t;
    if (k == t->n_scale && !OCT_GROW(t->arena, t->scale, t->n_scale, t->cap_scale))
        return oct_nomem(err);
    t->n_scale += k == t->n_scale;
    t->scale[k] = e;
    return end_of_line(r, err);
}

/* ---- costs ---- */

/* Tables that a file names or contains replace those that it inherits. */
static void begin_costs(reader *r)
{
    if (r->t->n_costs && r->t->costs_depth != r->depth)
        r->t->n_costs = 0;
    r->t->costs_depth = r->depth;
}

static oct_status read_costs(reader *r, oct_err *err)
{
    const char *at, *word, *names[32], *text;
    size_t n = 0;
    while (n < OCT_COUNT(names) && (names[n] = oct_costs_builtin(n)))
        n++;
    if (oct_words_done(&r->w))
        return oct_words_fault(&r->w, r->w.at, err, "names of tables of costs, or 'none', are missing");
    begin_costs(r);
    while (!oct_words_done(&r->w)) {
        OCT_TRY(next(r, &word, &at, err));
        if (strcmp(word, "none") == 0)
            continue;
        if (!(text = oct_costs_text(word)))
            return oct_words_unknown(&r->w, at, "table of costs", word, names, n, err);
        if (r->t->n_costs == OCT_COST_TABLES)
            return oct_words_fault(&r->w, at, err, "a target has at most %d tables of costs", OCT_COST_TABLES);
        OCT_TRY(oct_costs_parse(text, word, r->t->arena, &r->t->costs[r->t->n_costs++], err));
    }
    return OCT_OK;
}

/* A line of a table that is in the target file itself. */
static oct_status read_cost(reader *r, oct_err *err)
{
    static const char own[] = "its own";
    begin_costs(r);
    oct_cost_table *last = r->t->n_costs ? &r->t->costs[r->t->n_costs - 1] : NULL;
    if (!last || last->name != own) {
        if (r->t->n_costs == OCT_COST_TABLES)
            return oct_words_fault(&r->w, r->w.at, err, "a target has at most %d tables of costs", OCT_COST_TABLES);
        last = &r->t->costs[r->t->n_costs++];
        *last = (oct_cost_table){ .name = own };
    }
    return oct_cost_read(&r->w, r->t->arena, last, err);
}

/* ---- the whole ---- */

enum { NAME, SUMMARY, INHERITS, TYPES, SUMS, TRAP, KEEPS, SCALE, OP, COSTS, COST, OTHERS };
static const char *const others[OTHERS] = { "name",  "summary", "inherits", "types", "pair-sums", "trap",
                                            "keeps", "scale",   "op",       "costs", "cost" };

static oct_status read_key(reader *r, unsigned *key, oct_err *err)
{
    const char *word, *at, *keys[OTHERS + OCT_COUNT(choices)];
    unsigned i = 0;
    memcpy(keys, others, sizeof others);
    for (size_t k = 0; k < OCT_COUNT(choices); k++)
        keys[OTHERS + k] = choices[k].key;
    OCT_TRY(next(r, &word, &at, err));
    while (i < OCT_COUNT(keys) && strcmp(word, keys[i]) != 0)
        i++;
    if (i == OCT_COUNT(keys))
        return oct_words_unknown(&r->w, at, "key", word, keys, OCT_COUNT(keys), err);
    if (i != OP && i != TRAP && i != KEEPS && i != SCALE && i != COST && (r->given >> i & 1))
        return oct_words_fault(&r->w, at, err, "'%s' stands in two lines of this file", word);
    if (i == INHERITS && r->given >> INHERITS)
        return oct_words_fault(&r->w, at, err, "'inherits' comes before what the target changes");
    r->given |= 1u << i;
    *key = i;
    return OCT_OK;
}

static oct_status read_line(reader *r, oct_err *err)
{
    unsigned key = OTHERS;
    OCT_TRY(read_key(r, &key, err));
    switch (key) {
    case NAME: return read_name(r, err);
    case SUMMARY: return rest(r, "the summary", &r->t->summary, err);
    case INHERITS: return read_inherits(r, err);
    case TYPES: return read_types(r, err);
    case SUMS: return read_sums(r, err);
    case TRAP: return read_trap(r, err);
    case KEEPS: return read_keeps(r, err);
    case SCALE: return read_scale(r, err);
    case OP: return read_op(r, err);
    case COSTS: return read_costs(r, err);
    case COST: return read_cost(r, err);
    default: return read_choice(r, key - OTHERS, err);
    }
}

static oct_status whole_fault(const reader *r, oct_err *err, const char *reason, const char *hint)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", r->w.label, reason);
    oct_hint(err, "%s", hint);
    return OCT_EMALFORMED;
}

/* Checks what only the whole text shows. */
static oct_status check(const reader *r, oct_err *err)
{
    const oct_target *t = r->t;
    bool dynamic = false, any = false;
    for (int a = 0; a < OCT_TARGET_ACTIVATIONS; a++)
        any |= t->takes[a][0] || t->takes[a][1];
    for (size_t i = 0; i < t->n_op; i++)
        dynamic |= (t->op[i].forms & OCT_TARGET_DYNAMIC) != 0;
    if (!(r->given >> NAME & 1) || !(r->given >> SUMMARY & 1))
        return whole_fault(r, err, "the target has no name or no summary",
                           "add a line 'name NAME' and a line 'summary TEXT'");
    if (!any)
        return whole_fault(r, err, "the target has no types",
                           "add a line of pairs of activations and weights, as 'types u8*s8'");
    if (dynamic && !t->takes[0][0] && !t->takes[0][1])
        return whole_fault(r, err, "dynamic quantization makes u8 activations, which the target does not take",
                           "add u8*s8 or u8*u8 to the line 'types', or leave 'dynamic' out");
    if (t->own_bias && !t->powers_of_two)
        return whole_fault(r, err, "biases of int8 are added as they are only where all scales are powers of two",
                           "add a line 'scales powers-of-two'");
    if (t->powers_of_two && !t->symmetric)
        return whole_fault(r, err, "scales that are powers of two do not end where clamps do",
                           "add a line 'activations symmetric'");
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
