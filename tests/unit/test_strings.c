/* lib/ops: strings, alone and through graphs. Matches are those of Python's re.fullmatch. */
#include "unit.h"

#include "net.h"
#include "ops/text/regex.h"
#include "ops/text/text.h"

static bool matches(const char *pattern, const char *text, size_t n)
{
    oct_arena *a = oct_arena_create();
    oct_regex *re = NULL;
    GOOD(oct_regex_compile(a, pattern, strlen(pattern), &re, err));
    bool m = oct_regex_full_match(re, text, n);
    assert_true(m == oct_regex_full_match(re, text, n)); /* once more with the same program */
    oct_arena_destroy(a);
    return m;
}

static const struct {
    const char *pattern, *text;
    bool match;
} cases[] = {
    { "abc", "abc", true },
    { "abc", "abcd", false },
    { "a.c", "axc", true },
    { "a.c", "a\nc", false },
    { "(?s)a.c", "a\nc", true },
    { "[a-c]+x?", "abcab", true },
    { "[^a-c]+", "xyz", true },
    { "[^a-c]+", "xay", false },
    { "[]a]+", "]a]", true },
    { "[a\\]-]+", "-]a", true },
    { "\\d{3}-\\d{2,}", "123-4567", true },
    { "\\d{3}-\\d{2,}", "123-4", false },
    { "(ab|cd)*", "abcdab", true },
    { "(ab|cd)*", "abc", false },
    { "(?:a|b){2,3}", "aba", true },
    { "(?:a|b){2,3}", "abab", false },
    { "a{0,2}b", "b", true },
    { "a{0,2}b", "aaab", false },
    { "(?i)HeLLo", "hEllO", true },
    { "x(?i:y)z", "xYz", true },
    { "x(?i:y)z", "xYZ", false },
    { "\\bfoo\\b.*", "foo bar", true },
    { "fo\\Bo", "foo", true },
    { "\\w+@\\w+\\.com", "me@you.com", true },
    { "^$", "", true },
    { "^a$|b", "b", true },
    { "a||b", "", true },
    { ".", "é", true },
    { "..", "é", false },
    { "[à-ü]+", "éçü", true },
    { "(?i)ÄÖ", "äö", true },
    { "\\x41\\t", "A\t", true },
    { "(a*)*b", "aaaa", false },
    { "(a*)*b", "aaab", true },
    { "(?P<n>a)b", "ab", true },
    { "[\\w.-]+", "a.b-c_", true },
    { "\\S+\\s\\S+", "a b", true },
    { "[\\d\\s]+", "1 2", true },
    { "[^\\d]+", "1", false },
    { "(?m)^a$\\n^b$", "a\nb", true },
    { "a+?b*?", "aab", true },
    { "[[:alpha:]]+[[:^digit:]]", "ab-", true },
    { "[[:alpha:]]+[[:^digit:]]", "ab1", false },
    { "\\Aab\\z", "ab", true },
    { "a{,2}", "a{,2}", true }, /* to RE2 this is text */
};

TEST(full_matches)
{
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        if (matches(cases[i].pattern, cases[i].text, strlen(cases[i].text)) != cases[i].match)
            fail_msg("'%s' on '%s' should be %d", cases[i].pattern, cases[i].text, cases[i].match);
    assert_true(matches("a.b", "a\0b", 3)); /* bytes of any kind */
    assert_true(matches("a.b",
                        "a\xff"
                        "b",
                        3));
}

/* Patterns that backtracking takes ages for. */
TEST(matching_is_linear)
{
    enum { N = 20000 };
    char *text = oct_alloc(N);
    memset(text, 'a', N);
    assert_false(matches("(a*)*b", text, N));
    assert_false(matches("(a|aa)+b", text, N));
    assert_true(matches("(a?){200}a*", text, N));
    oct_free(text);
}

TEST(patterns_refused)
{
    static const struct {
        const char *pattern, *says;
        oct_status status;
    } bad[] = {
        { "(a", "not closed at byte 2", OCT_EMALFORMED },
        { "a)", "nothing opens", OCT_EMALFORMED },
        { "[a", "a set is not closed", OCT_EMALFORMED },
        { "[b-a]", "backwards", OCT_EMALFORMED },
        { "*a", "nothing to repeat", OCT_EMALFORMED },
        { "a**", "is repeated", OCT_EMALFORMED },
        { "a{2}{3}", "is repeated", OCT_EMALFORMED },
        { "a{3,2}", "out of range", OCT_EMALFORMED },
        { "a\\", "at the end", OCT_EMALFORMED },
        { "\\pL", "is not read", OCT_EUNSUPPORTED },
        { "(a)\\1", "is not read", OCT_EUNSUPPORTED },
        { "(?=a)", "unknown flag", OCT_EMALFORMED },
        { "[[:nope:]]", "unknown class", OCT_EMALFORMED },
        { "\\x{zz}", "hexadecimal", OCT_EMALFORMED },
        { "((a{1000}){1000}){1000}", "states", OCT_EUNSUPPORTED },
        { "((((){1000}){1000}){1000}){1000}", "too often", OCT_EUNSUPPORTED },
    };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_arena *a = oct_arena_create();
        oct_regex *re;
        oct_err e = OCT_ERR_INIT;
        assert_int_equal(oct_regex_compile(a, bad[i].pattern, strlen(bad[i].pattern), &re, &e), bad[i].status);
        if (!strstr(e.text, bad[i].says))
            fail_msg("'%s': %s", bad[i].pattern, e.text);
        oct_arena_destroy(a);
    }
    char deep[400];
    memset(deep, '(', sizeof deep);
    oct_arena *a = oct_arena_create();
    oct_regex *re;
    assert_int_equal(oct_regex_compile(a, deep, sizeof deep, &re, NULL), OCT_EUNSUPPORTED);
    oct_arena_destroy(a);
}

static void cased(const char *from, const char *lower, const char *upper)
{
    oct_arena *a = oct_arena_create();
    oct_str s = { from, strlen(from) }, l, u;
    assert_true(oct_text_cased(a, s, false, &l));
    assert_true(oct_text_cased(a, s, true, &u));
    assert_true(oct_text_same(l, (oct_str){ lower, strlen(lower) }));
    assert_true(oct_text_same(u, (oct_str){ upper, strlen(upper) }));
    oct_arena_destroy(a);
}

TEST(cases_of_letters)
{
    cased("Monday 7!", "monday 7!", "MONDAY 7!");
    cased("\u00c4\u00f6\u00df\u00d7\u0178", "\u00e4\u00f6\u00df\u00d7\u00ff", "\u00c4\u00d6\u00df\u00d7\u0178");
    cased("\u03a3\u03c2\u0386\u0416\u0451\u017d\u1ea1", "\u03c3\u03c2\u03ac\u0436\u0451\u017e\u1ea1",
          "\u03a3\u03a3\u0386\u0416\u0401\u017d\u1ea0");
    cased("a\xff"
          "B\xc3",
          "a\xff"
          "b\xc3",
          "A\xff"
          "B\xc3");                         /* no UTF-8: kept */
    for (uint32_t c = 1; c < 0x2000; c++) { /* what has another case comes back from it */
        if (oct_text_lower(c) != c)
            assert_int_equal(oct_text_upper(oct_text_lower(c)), c);
        if (oct_text_upper(c) != c && c != 0x3c2)
            assert_int_equal(oct_text_lower(oct_text_upper(c)), c);
        char bytes[4];
        size_t n = oct_text_put(bytes, c), len;
        assert_true(oct_utf8_char(bytes, n, &len) == c && len == n);
    }
}

/* ---- through graphs ---- */

static int net_strings(oct_graph *g, const char *name, const char *dims, const char *const *s)
{
    oct_dim d[OCT_MAX_RANK];
    int64_t n[OCT_MAX_RANK], count;
    int rank = net_dims(g, dims, d), v;
    for (int i = 0; i < rank; i++)
        n[i] = d[i].n;
    assert_true(oct_count(n, rank, &count));
    oct_str *list = oct_arena_calloc(g->arena, (size_t)count + 1, sizeof *list);
    oct_tensor *t = oct_arena_calloc(g->arena, 1, sizeof *t);
    assert_true(list && t);
    for (int64_t i = 0; i < count; i++)
        list[i] = (oct_str){ s[i], strlen(s[i]) };
    *t = (oct_tensor){ OCT_STRING, rank, oct_arena_memdup(g->arena, n, sizeof n), count, (size_t)count * sizeof *list,
                       list };
    GOOD(oct_graph_add_value(g, name, OCT_STRING, &v, err));
    oct_graph_set_const(g, v, t);
    return v;
}

static void expect(oct_plan *p, size_t out, int rank, const int64_t *dims, const char *const *want)
{
    oct_datum *x;
    GOOD(oct_plan_output_datum(p, out, &x, err));
    assert_int_equal(x->t.dtype, OCT_STRING);
    assert_int_equal(x->t.rank, rank);
    assert_memory_equal(x->dims, dims, (size_t)rank * sizeof *dims);
    for (int64_t i = 0; i < x->t.count; i++) {
        oct_str s = ((const oct_str *)x->t.data)[i];
        if (s.n != strlen(want[i]) || memcmp(s.s, want[i], s.n) != 0)
            fail_msg("output %zu, string %d: '%.*s', expected '%s'", out, (int)i, (int)s.n, s.s, want[i]);
    }
    oct_datum_unref(x);
}

/* Gathered, joined, transposed, compared and chosen; and the number of words in between. */
TEST(strings_move)
{
    oct_graph *g = net_graph(20);
    int x = net_input(g, "x", OCT_STRING, "2,2"), row = net_input(g, "row", OCT_S64, "1");
    int r = NET_NODE(g, "Gather", "gather", "r", x, row);
    int k = net_strings(g, "k", "1,2", (const char *const[]){ "one two", "" });
    int c = NET_NODE(g, "Concat", "concat", "c", r, k);
    net_int(g, "axis", 0);
    int t = NET_NODE(g, "Transpose", "t", "t", c);
    net_output(g, t);
    int e = NET_NODE(g, "Equal", "equal", "e", t, net_strings(g, "b", "1", (const char *const[]){ "b" }));
    net_output(g, NET_NODE(g, "Where", "where", "w", e, net_strings(g, "y", "", (const char *const[]){ "yes" }), t));
    int words = NET_NODE(g, "StringSplit", "split", "parts", k), v;
    GOOD(oct_graph_add_value(g, "counts", OCT_UNDEFINED, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 1, v, err));
    net_output(g, words);
    net_output(g, NET_NODE(g, "Add", "plus", "more", v, NET_S64(g, "ten", "", 10)));
    oct_plan *p = net_plan(g, NULL, NULL);
    const oct_str in[4] = { { "a", 1 }, { "b", 1 }, { "long string", 11 }, { "b", 1 } };
    for (int64_t i = 0; i < 2; i++) {
        GOOD(oct_plan_run(p, (const void *const[]){ in, &i }, err));
        const char *first = i ? "long string" : "a";
        expect(p, 0, 2, (int64_t[]){ 2, 2 }, (const char *const[]){ first, "one two", "b", "" });
        expect(p, 1, 2, (int64_t[]){ 2, 2 }, (const char *const[]){ first, "one two", "yes", "" });
        expect(p, 2, 3, (int64_t[]){ 1, 2, 2 }, (const char *const[]){ "one", "two", "", "" });
        assert_memory_equal(oct_plan_output(p, 3)->data, ((int64_t[]){ 12, 10 }), 16);
    }
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

TEST(casts)
{
    oct_graph *g = net_graph(13);
    int s = net_strings(g, "s", "6", (const char *const[]){ "1e3", "-0.1", "+INF", "nan", "-inf", "16777217" });
    int whole = net_strings(g, "whole", "3", (const char *const[]){ "-9223372036854775808", "42", "100.5" });
    net_output(g, NET_NODE(g, "Cast", "f", "f", s));
    net_int(g, "to", OCT_F32);
    net_output(g, NET_NODE(g, "Cast", "i", "i", whole));
    net_int(g, "to", OCT_S64);
    int x = net_input(g, "x", OCT_F32, "4"), n = net_input(g, "n", OCT_U8, "2");
    net_output(g, NET_NODE(g, "Cast", "xs", "xs", x));
    net_int(g, "to", OCT_STRING);
    net_output(g, NET_NODE(g, "Cast", "ns", "ns", n));
    net_int(g, "to", OCT_STRING);
    int d = net_input(g, "d", OCT_F64, "3"), u = net_input(g, "u", OCT_U64, "2"), l = net_input(g, "l", OCT_S64, "2");
    net_output(g, NET_NODE(g, "Cast", "ds", "ds", d));
    net_int(g, "to", OCT_STRING);
    net_output(g, NET_NODE(g, "Cast", "us", "us", u));
    net_int(g, "to", OCT_STRING);
    net_output(g, NET_NODE(g, "Cast", "ls", "ls", l));
    net_int(g, "to", OCT_STRING);
    oct_plan *p = net_plan(g, NULL, NULL);
    GOOD(oct_plan_run(p,
                      (const void *const[]){ ((float[]){ 0.1f, -2, NAN, -INFINITY }), ((uint8_t[]){ 7, 255 }),
                                             ((double[]){ 0.1, 1.0 / 3, -NAN }), ((uint64_t[]){ UINT64_MAX, 0 }),
                                             ((int64_t[]){ INT64_MIN, -1 }) },
                      err));
    const float *f = oct_plan_output(p, 0)->data;
    assert_true(f[0] == 1000 && f[1] == -0.1f && f[2] == INFINITY && isnan(f[3]) && f[4] == -INFINITY &&
                f[5] == 16777216);
    assert_memory_equal(oct_plan_output(p, 1)->data, ((int64_t[]){ INT64_MIN, 42, 100 }), 24);
    expect(p, 2, 1, (int64_t[]){ 4 }, (const char *const[]){ "0.1", "-2", "NaN", "-INF" });
    expect(p, 3, 1, (int64_t[]){ 2 }, (const char *const[]){ "7", "255" });
    expect(p, 4, 1, (int64_t[]){ 3 }, (const char *const[]){ "0.1", "0.3333333333333333", "NaN" });
    expect(p, 5, 1, (int64_t[]){ 2 }, (const char *const[]){ "18446744073709551615", "0" });
    expect(p, 6, 1, (int64_t[]){ 2 }, (const char *const[]){ "-9223372036854775808", "-1" });
    oct_plan_destroy(p);
    oct_graph_destroy(g);
    static const char *const bad[] = { "Hello", "", "1x", "0x1p3 " };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_err e = OCT_ERR_INIT;
        g = net_graph(13);
        net_output(g, NET_NODE(g, "Cast", "odd", "f", net_strings(g, "s", "1", &bad[i])));
        net_int(g, "to", OCT_F64);
        p = net_plan(g, NULL, NULL);
        assert_int_equal(oct_plan_run(p, NULL, &e), OCT_EMALFORMED);
        assert_non_null(strstr(e.text, "'odd'"));
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

static oct_attr *new_attr(oct_graph *g, const char *name, oct_attr_type type)
{
    oct_node *n = &g->node[net_last];
    assert_true(OCT_GROW(g->arena, n->attr, n->n_attr, n->cap_attr));
    n->attr[n->n_attr] = (oct_attr){ .name = name, .type = type };
    return &n->attr[n->n_attr++];
}

static void words(oct_graph *g, const char *name, const char *const *s, int count)
{
    oct_attr *a = new_attr(g, name, OCT_ATTR_STRINGS);
    a->strings = s;
    a->n = count;
}

/* ai.onnx.ml.LabelEncoder of strings; of a key that is there twice the last counts. Outcomes by the specification's
 * text. */
TEST(labels)
{
    static const char *const keys[] = { "a", "", "b", "a" }, *const values[] = { "one", "two", "three", "four" };
    static const int64_t ints[] = { 10, 20, 30, 40 };
    oct_graph *g = net_graph(17);
    GOOD(oct_graph_set_opset(g, "ai.onnx.ml", 4, err));
    int x = net_input(g, "x", OCT_STRING, "2,2"), i = net_input(g, "i", OCT_S64, "3");
    net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "ss", "ss", x));
    words(g, "keys_strings", keys, 4);
    words(g, "values_strings", values, 4);
    net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "si", "si", x));
    words(g, "keys_strings", keys, 4);
    NET_INTS(g, "values_int64s", 10, 20, 30, 40);
    net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "is", "is", i));
    NET_INTS(g, "keys_int64s", 10, 20, 30, 40);
    words(g, "values_strings", values, 4);
    net_str(g, "default_string", "none");
    oct_plan *p = net_plan(g, NULL, NULL);
    const oct_str in[4] = { { "b", 1 }, { "a", 1 }, { "ab", 2 }, { "", 0 } };
    const int64_t places[3] = { 40, 11, 20 };
    GOOD(oct_plan_run(p, (const void *const[]){ in, places }, err));
    expect(p, 0, 2, (int64_t[]){ 2, 2 }, (const char *const[]){ "three", "four", "_Unused", "two" });
    assert_memory_equal(oct_plan_output(p, 1)->data, ((int64_t[]){ ints[2], ints[3], -1, ints[1] }), 32);
    expect(p, 2, 1, (int64_t[]){ 3 }, (const char *const[]){ "four", "none", "two" });
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Opset 1 has one list; the other side are its places. */
TEST(labels_of_opset_1)
{
    static const char *const classes[] = { "x", "y", "z" };
    oct_graph *g = net_graph(9);
    GOOD(oct_graph_set_opset(g, "ai.onnx.ml", 1, err));
    int s = net_input(g, "s", OCT_STRING, "2"), i = net_input(g, "i", OCT_S64, "2");
    net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "to", "to", s));
    words(g, "classes_strings", classes, 3);
    net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "from", "from", i));
    words(g, "classes_strings", classes, 3);
    oct_plan *p = net_plan(g, NULL, NULL);
    GOOD(oct_plan_run(p, (const void *const[]){ ((oct_str[]){ { "z", 1 }, { "w", 1 } }), ((int64_t[]){ 1, 3 }) }, err));
    assert_memory_equal(oct_plan_output(p, 0)->data, ((int64_t[]){ 2, -1 }), 16);
    expect(p, 1, 1, (int64_t[]){ 2 }, (const char *const[]){ "y", "_Unused" });
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* Lists of two lengths, none, keys of another type than the input. */
TEST(labels_refused)
{
    static const char *const keys[] = { "a", "b" };
    static const char *const says[] = { "2 keys and 3 values", "none of the attributes 'values_tensor'",
                                        "an input of int64 and keys of string" };
    for (int k = 0; k < 3; k++) {
        oct_graph *g = net_graph(17);
        oct_plan *p = NULL;
        oct_err e = OCT_ERR_INIT;
        GOOD(oct_graph_set_opset(g, "ai.onnx.ml", 4, err));
        int x = net_input(g, "x", k < 2 ? OCT_STRING : OCT_S64, "1");
        net_output(g, NET_NODE(g, "ai.onnx.ml.LabelEncoder", "label", "y", x));
        words(g, "keys_strings", keys, 2);
        if (k == 0)
            NET_INTS(g, "values_int64s", 1, 2, 3);
        if (k == 2)
            NET_INTS(g, "values_int64s", 1, 2);
        oct_status s = oct_plan_create(g, NULL, NULL, &p, &e);
        if (s == OCT_OK)
            s = oct_plan_run(p, (const void *const[]){ ((int64_t[]){ 1, 2 }) }, &e);
        assert_int_equal(s, OCT_EMALFORMED);
        if (!strstr(e.text, says[k]) || !strstr(e.text, "'label'"))
            fail_msg("'%s', expected '%s'", e.text, says[k]);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}
