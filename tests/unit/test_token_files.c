/* lib/data, files of token ids: lines of JSON and of ids, streams without a header; what is cut, filled up and made
 * beside the ids; broken files. Expected values are written down here. */
#include "folder.h"
#include "unit.h"

#include "base/mem.h"
#include "data/data.h"
#include "data/text/tokenizer.h"
#include "source_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_GROUP(folder_make, folder_remove);

static const int64_t free2[2] = { -1, -1 }, four[2] = { -1, 4 };
static const oct_input_desc text[] = { { "input_ids", OCT_S64, 2, free2 },
                                       { "attention_mask", OCT_S64, 2, free2 },
                                       { "position_ids", OCT_S32, 2, free2 },
                                       { "token_type_ids:0", OCT_S64, 2, free2 } },
                            short_ids[] = { { "x", OCT_S64, 2, four }, { "input_mask", OCT_F32, 2, four } },
                            bytes[] = { { "input_ids", OCT_U8, 2, free2 } };

static const char *file(const char *name, const void *p, size_t n)
{
    const char *path = folder_path(name);
    write_file(path, p, n);
    return path;
}

static oct_source_options asks(const char *const *spec, const char *const *steps, const oct_input_desc *in, size_t n)
{
    return (oct_source_options){
        .specs = spec, .n_specs = 1, .preprocess = steps, .n_preprocess = *steps != NULL, .inputs = in, .n_inputs = n
    };
}

/* The values of all inputs of all batches, an input a line, batches parted by bars. */
static void gives(const char *spec, const char *steps, const oct_input_desc *in, size_t n, size_t batch,
                  const char *want)
{
    oct_source *s;
    oct_err err = OCT_ERR_INIT;
    oct_batch b = OCT_BATCH_INIT;
    oct_buf got = OCT_BUF_INIT;
    const oct_source_options o = asks(&spec, &steps, in, n);
    if (oct_source_open(&o, &s, &err) != OCT_OK)
        fail_msg("%s", err.text);
    oct_status st;
    while ((st = oct_source_next(s, batch, &b, &err)) == OCT_OK && b.n) {
        for (size_t i = 0; i < n; i++) {
            const oct_array *a = &b.tensors[i];
            assert_int_equal(a->dtype, in[i].dtype);
            assert_int_equal(a->rank, 2);
            assert_int_equal(a->dims[0], b.n);
            double v[64];
            assert_in_range(oct_array_count(a), 1, OCT_COUNT(v));
            assert_int_equal(oct_array_convert(a->dtype, a->data, OCT_F64, v, (size_t)oct_array_count(a), NULL),
                             OCT_OK);
            for (int64_t k = 0; k < oct_array_count(a); k++)
                oct_buf_printf(&got, "%s%g", k ? k % a->dims[1] ? " " : "," : "", v[k]);
            oct_buf_puts(&got, i + 1 < n ? ";" : "|");
        }
    }
    if (st != OCT_OK)
        fail_msg("%s", err.text);
    assert_string_equal(oct_buf_str(&got), want);
    oct_buf_free(&got);
    oct_batch_free(&b);
    oct_source_close(s);
}

#define LINES                                                                                                                                  \
    "\xef\xbb\xbf{\"input_ids\": [5, 6], \"label\": 2}\r\n\n{\"input_ids\":[7,8],\"attention_mask\":[1,0],\"note\":\"a\"}\n[ 1, 2, 3 ]\n \t\n" \
    "{\"position_ids\": [9], \"input_ids\": [4]}"

TEST(lines_of_json)
{
    const char *path = folder_text("a.jsonl", LINES);
    gives(path, NULL, text, 4, 8, "5 6,7 8;1 1,1 0;0 1,0 1;0 0,0 0|1 2 3;1 1 1;0 1 2;0 0 0|4;1;9;0|");
    gives(path, "length=2:pad-id=99", text, 4, 8, "5 6,7 8,1 2,4 99;1 1,1 0,1 1,1 0;0 1,0 1,0 1,9 0;0 0,0 0,0 0,0 0|");
    gives(path, "length=3:pad-id=0", text, 4, 3,
          "5 6 0,7 8 0,1 2 3;1 1 0,1 0 0,1 1 1;0 1 2,0 1 2,0 1 2;0 0 0,0 0 0,0 0 0|4 0 0;1 0 0;9 0 0;0 0 0|");
    gives(path, "pad-id=3", short_ids, 2, 8, "5 6 3 3,7 8 3 3,1 2 3 3,4 3 3 3;1 1 0 0,1 1 0 0,1 1 1 0,1 0 0 0|");
}

TEST(labels_and_shards)
{
    const char *spec = folder_text("a.jsonl", LINES), *steps = NULL;
    oct_source *s;
    oct_batch b = OCT_BATCH_INIT;
    oct_source_options o = asks(&spec, &steps, text, 4);
    assert_int_equal(oct_source_open(&o, &s, NULL), OCT_OK);
    assert_int_equal(oct_source_count(s), 4);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(oct_source_next(s, 2, &b, NULL), OCT_OK);
        assert_int_equal(b.n, 2);
        assert_int_equal(b.labels[0], 2);
        assert_int_equal(b.labels[1], -1);
        assert_non_null(strstr(b.names[1], "a.jsonl:3"));
        assert_int_equal(oct_source_reset(s, NULL), OCT_OK);
    }
    oct_source_close(s);
    o.shard_i = 1;
    o.shard_n = 2;
    assert_int_equal(oct_source_open(&o, &s, NULL), OCT_OK);
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_non_null(strstr(b.names[0], "a.jsonl:3"));
    assert_int_equal(oct_source_next(s, 1, &b, NULL), OCT_OK);
    assert_non_null(strstr(b.names[0], "a.jsonl:6"));
    oct_batch_free(&b);
    oct_source_close(s);
}

TEST(lines_of_ids)
{
    const char *path = folder_text("a.txt", "1 2,3\n10\t 11 12\n\n4294967296");
    gives(path, NULL, text, 2, 8, "1 2 3,10 11 12;1 1 1,1 1 1|4.29497e+09;1|");
    gives(folder_text("b.ndjson", "[200]\n[1]"), "length=2:pad-id=255", bytes, 1, 8, "200 255,1 255|");
}

TEST(streams)
{
    static const uint16_t u[] = { 1, 65535, 3, 4, 5 };
    static const int64_t l[] = { 7, (int64_t)1 << 40, 9, 10 };
    const char *path = file("u.bin", u, sizeof u);
    gives(path, "ids=u16:length=2", text, 3, 8, "1 65535,3 4;1 1,1 1;0 1,0 1|");
    gives(path, "ids=u16:length=2:pad-id=9", text, 3, 2, "1 65535,3 4;1 1,1 1;0 1,0 1|5 9;1 0;0 1|");
    gives(path, "ids=u16", short_ids, 2, 8, "1 65535 3 4;1 1 1 1|");
    gives(path, "ids=u16:pad-id=2:length=8", text, 1, 8, "1 65535 3 4 5 2 2 2|");
    gives(file("l.bin", l, sizeof l), "ids=i64:length=2", text, 1, 8, "7 1.09951e+12,9 10|");
    gives(file("b.bin", "\1\377", 2), "ids=u8:length=1", text, 1, 8, "1,255|");
    gives(file("i.bin", (int32_t[]){ 3, 1 << 30 }, 8), "ids=i32:length=2", text, 1, 8, "3 1.07374e+09|");
    path = file("u.bin", u, sizeof u);
    source_fails(path, "length=2", text, 1, OCT_EUSAGE, "ids=u16");
    source_fails(path, "ids=u16", text, 1, OCT_EUSAGE, "length=");
    source_fails(path, "ids=u32:length=2", text, 1, OCT_EMALFORMED, "10 bytes are not whole token ids of 4");
    source_fails(path, "ids=u16:length=6", text, 1, OCT_EMALFORMED, "pad-id=");
    source_fails(path, "ids=u16:length=2", bytes, 1, OCT_ENUMERIC, "does not fit uint8");
    source_fails(file("e.bin", "", 0), "ids=u16:length=6:pad-id=0", text, 1, OCT_EMALFORMED, "0 token ids");
}

TEST(broken_lines)
{
    static const struct {
        const char *name, *text, *part;
    } cases[] = {
        { "x.jsonl", "{\"input_ids\": [1, 2]", "x.jsonl:1: JSON:1:" },
        { "x.jsonl", "{\"input_ids\": [1]}\n{\"input_ids\": [1, 2.5]}", "x.jsonl:2: element 1" },
        { "x.jsonl", "{\"input_ids\": [1, \"2\"]}", "not a whole number" },
        { "x.jsonl", "{\"input_ids\": [1e300]}", "not a whole number" },
        { "x.jsonl", "{\"input_ids\": [[1]]}", "not a whole number" },
        { "x.jsonl", "{\"input_ids\": 7}", "not a list" },
        { "x.jsonl", "{\"ids\": [7]}", "makes ids of text" },
        { "x.jsonl", "{\"input_ids\": []}", "no tokens" },
        { "x.jsonl", "{\"input_ids\": [1, 2], \"attention_mask\": [1]}",
          "2 token ids, and 1 numbers for input 'attention_mask'" },
        { "x.txt", "1 2 a", "x.txt:1: character 5" },
        { "x.txt", "\n1 2\n \n3 hello", "x.txt:4: character 3" },
        { "x.txt", "a text", "makes ids of text" },
        { "x.txt", "1 -2", "character 3" },
        { "x.txt", "1.5", "character 2" },
        { "x.txt", "99999999999999999999", "too many digits" },
        { "x.txt", "[]", "no tokens" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        source_fails(folder_text(cases[i].name, cases[i].text), NULL, text, 2, OCT_EMALFORMED, cases[i].part);
    source_fails(file("z.txt", "1 \0 2", 5), NULL, text, 1, OCT_EMALFORMED, "character 3");
    const char *three = folder_text("x.txt", "1 2 3\n1 2 3 4 5");
    source_fails(three, NULL, short_ids, 2, OCT_EMALFORMED, "pad-id=");
    source_fails(three, "pad-id=0", short_ids, 2, OCT_EMALFORMED, "length=4");
    source_fails(three, "length=5:pad-id=0", short_ids, 2, OCT_EMALFORMED, "takes 4 tokens");
    source_fails(three, "length=4", text, 1, OCT_EMALFORMED, "pad-id=");
    const oct_input_desc odd[] = { { "a", OCT_S64, 2, free2 }, { "b", OCT_S64, 2, free2 } },
                         one[] = { { "input_ids", OCT_S64, 2, free2 }, { "b", OCT_S64, 2, free2 } };
    const oct_input_desc picture = { "image", OCT_F32, 4, (int64_t[]){ -1, 3, 4, 4 } };
    source_fails(three, NULL, &picture, 1, OCT_EUNSUPPORTED, "'image' is [?,3,4,4]");
    source_fails(three, NULL, odd, 2, OCT_EUNSUPPORTED, "input_ids");
    source_fails(three, NULL, one, 2, OCT_EMALFORMED, "nothing for input 'b'");
}

TEST(long_lines)
{
    const size_t n = (4 << 20) + 100;
    char *t = malloc(n);
    assert_non_null(t);
    memset(t, '1', n);
    for (size_t i = 1; i < n; i += 2)
        t[i] = ' ';
    source_fails(file("long.txt", t, n), NULL, text, 1, OCT_EMALFORMED, ".bin");
    free(t);
}

TEST(a_step_for_others)
{
    const char *root = getenv("OCT_SOURCE");
    source_fails(folder_text("x.txt", "1 2"), "frame=2", text, 1, OCT_EMALFORMED, "for recordings");
    if (root)
        assert_int_equal(chdir(root), 0);
    source_fails("testdata/data/x_i8.npy", "length=2", text, 1, OCT_EMALFORMED, "files of token ids");
    static const char *const wrong[] = { "length=0",  "length=-1", "length=2x", "length=9999999",
                                         "pad-id=-1", "pad-id=",   "ids=f32",   "ids=" };
    oct_steps steps = { 0 }, again = { 0 };
    for (size_t i = 0; i < OCT_COUNT(wrong); i++)
        assert_int_equal(oct_steps_parse(wrong[i], NULL, 1, &steps, NULL), OCT_EUSAGE);
    oct_buf b = OCT_BUF_INIT;
    steps = (oct_steps){ 0 };
    assert_int_equal(oct_steps_parse("pad-id=0:length=128:ids=i64:mean=1", NULL, 1, &steps, NULL), OCT_OK);
    oct_steps_text(&steps, "", &b);
    assert_string_equal(oct_buf_str(&b), "ids=i64:length=128:pad-id=0:mean=1");
    assert_int_equal(oct_steps_parse(oct_buf_str(&b), NULL, 1, &again, NULL), OCT_OK);
    assert_memory_equal(&again, &steps, sizeof steps);
    assert_int_equal(oct_steps_parse("pad-id=none:length=none", NULL, 1, &again, NULL), OCT_OK);
    assert_true(!again.has_pad_id && !again.length);
    oct_buf_free(&b);
}

TEST(broken_ones_are_counted)
{
    const char *spec = folder_text("x.jsonl", "{\"input_ids\": [1]}\n{\n[3]\nx\n[4]"), *steps = NULL;
    oct_source_options o = asks(&spec, &steps, text, 1);
    oct_source *s;
    oct_batch b = OCT_BATCH_INIT;
    oct_err err = OCT_ERR_INIT;
    o.skip_bad = true;
    assert_int_equal(oct_source_open(&o, &s, &err), OCT_OK);
    assert_int_equal(oct_source_next(s, 8, &b, &err), OCT_OK);
    assert_int_equal(b.n, 3);
    assert_int_equal(oct_source_bad_count(s), 2);
    assert_int_equal(oct_source_bad_index(s, 1), 3);
    oct_batch_free(&b);
    oct_source_close(s);
}

/* Every stage that keeps memory: patterns, a template, added tokens, merges. */
static const char small[] =
    "{\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Replace\",\"pattern\":"
    "{\"Regex\":\"x+\"},\"content\":\"a\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"c\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\","
    "\"add_prefix_space\":false}]},\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
    "{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":1}}],\"pair\":[],\"special_tokens\":"
    "{\"<s>\":{\"ids\":[5]}}},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"aba\":4},"
    "\"merges\":[\"a b\",\"ab a\"]}}";

/* OCT_EUNSUPPORTED: a build without tokenizers. */
static oct_status encode(const char *path, int64_t ids[16], size_t *n, oct_err *err)
{
    static const char line[] = "xxbac<s>bxx";
    const int64_t *id, *type;
    oct_tokenizer *t = NULL;
    oct_status s = oct_tokenizer_open(path, &t, err);
    if (s == OCT_OK)
        s = oct_tokenizer_encode(t, &(oct_tokenizer_text){ .text = line, .n = strlen(line) }, 0, &id, &type, n, err);
    for (size_t i = 0; s == OCT_OK && i < *n && i < 16; i++) {
        assert_int_equal(type[i], i > 0);
        ids[i] = id[i];
    }
    oct_tokenizer_close(t);
    return s;
}

/* xx is a, a b a are joined, c stands alone, <s> is found in the text, and one stands in front. */
TEST(a_tokenizer)
{
    static const int64_t want[] = { 5, 4, 2, 5, 1, 0 };
    const char *path = folder_text("tokenizer.json", small);
    int64_t ids[16];
    size_t n = 0, fail = 1;
    oct_err err = OCT_ERR_INIT;
    const oct_status s = encode(path, ids, &n, &err);
    if (s == OCT_EUNSUPPORTED) {
        assert_non_null(strstr(err.text, "this build has no tokenizers"));
        return;
    }
    assert_int_equal(s, OCT_OK);
    assert_int_equal(n, OCT_COUNT(want));
    assert_memory_equal(ids, want, sizeof want);
    for (;; fail++) { /* each allocation fails once */
        oct_alloc_fail_at(fail);
        const oct_status st = encode(path, ids, &n, &err);
        oct_alloc_fail_at(0);
        if (st == OCT_OK)
            break;
        assert_int_equal(st, OCT_ENOMEM);
    }
    assert_true(fail > 10);
}
