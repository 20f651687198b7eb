/* Folders of models: recipes as text, values that are set in JSON, folders that take their place at the end. */
#include "api/folder/configuration.h"
#include "api/folder/folder_recipe.h"
#include "base/io.h"
#include "base/scratch.h"
#include "onnx/model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

TEST(values_are_set_in_json)
{
    static const struct {
        const char *text, *path, *value, *want;
    } cases[] = {
        { "{\"a\": 1}", "a", "2", "{\"a\": 2}" },
        { "{}", "a", "2", "{\n  \"a\": 2}" },
        { " { \"b\" : [1, {\"a\": 3}], \"a\":\"x,}\\\"]\" }\n", "a", "{\"k\": 1}",
          " { \"b\" : [1, {\"a\": 3}], \"a\":{\"k\": 1} }\n" },
        { "{\"a\": {\"b\": 1e-05, \"c\": 2}}", "a/b", "true", "{\"a\": {\"b\": true, \"c\": 2}}" },
        { "{\"a\": {\"c\": 2}}", "a/b", "1", "{\"a\": {\"c\": 2,\n  \"b\": 1}}" },
        { "{\"c\": 2}", "a/b/d", "1", "{\"c\": 2,\n  \"a\": {\"b\": {\"d\": 1}}}" },
        { "{\"a\": null, \"c\": 2}", "a/b", "1", "{\"a\": {\"b\": 1}, \"c\": 2}" },
        { "{\"ab\": 1, \"a\": 2}", "a", "3", "{\"ab\": 1, \"a\": 3}" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_buf b = OCT_BUF_INIT;
        oct_json_set(cases[i].text, cases[i].path, cases[i].value, &b);
        assert_string_equal(oct_buf_str(&b), cases[i].want);
        oct_buf_free(&b);
    }
}

TEST(recipes_are_read)
{
    oct_err err = OCT_ERR_INIT;
    oct_folder_recipe *r;
    size_t stem;
    assert_int_equal(
        oct_folder_recipe_parse("# octet recipe 1\nfound a.json b.json\nfound *.onnx\nconfig a.json\n"
                                "model /x/*/y weight-only # by the configuration\n"
                                "model *.onnx dynamic auto input past*\nnames variant\n"
                                "variant _q q dynamic weight-only/8\nvariant _q_q qq weight-only/4/float16\n"
                                "variant _w w weight-only/4\ntakes *.onnx a b\ncount /n\ndata *.onnx_data\n"
                                "set a.json u/v words\nset a.json w data\nleave *.bin\n",
                                "mine", &r, &err),
        OCT_OK);
    assert_true(r->n_found == 2 && r->found[0].n == 2 && r->n_model == 2 && r->names == 1);
    assert_true(r->n_amend == 2 && !r->amend[0].data && r->amend[1].data);
    assert_string_equal(r->model[0].sampled, "weight-only");
    assert_true(strcmp(r->model[1].sampled, "auto") == 0 && strcmp(r->model[1].input, "past*") == 0);
    assert_string_equal(oct_folder_recipe_variant_of(r, "onnx/m_q.onnx", &stem)->word, "q");
    assert_int_equal(stem, 6);
    assert_string_equal(oct_folder_recipe_variant_of(r, "m_q_q.onnx", &stem)->word, "qq"); /* the longest */
    assert_null(oct_folder_recipe_variant_of(r, "_q.onnx", &stem));                        /* a name of its own */
    assert_int_equal(stem, 2);
    assert_string_equal(oct_folder_recipe_variant_for(r, "weight-only", 0, "float16")->word, "qq");
    assert_string_equal(oct_folder_recipe_variant_for(r, "weight-only", 4, "float32")->word, "w");
    assert_string_equal(oct_folder_recipe_variant_for(r, "weight-only", 8, "float16")->word, "q");
    assert_null(oct_folder_recipe_variant_for(r, "fp16", 0, "float32"));
    oct_folder_recipe_close(r);
}

TEST(wrong_recipes_are_refused)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        { "model *.onnx dynamic\n", "found" },
        { "found a\n", "model" },
        { "found a\nmodel *.onnx dinamic\n", "mine:2:14: there is no scheme 'dinamic'" },
        { "found a\nmodel *.onnx\n", "mine:2:13: the scheme is missing" },
        { "found a\nmodel /x dynamic\n", "'/x' is a path in a configuration" },
        { "found a\nmodel x dynamic\nconfig ../b\n", "'../b' is not a path in the folder" },
        { "found a\nmodel x dynamic\nset /etc/x a words\n", "'/etc/x' is not a path in the folder" },
        { "found a\nmodel x dynamic\ndata x.data\n", "is no name with one * in it" },
        { "found a\nmodel x dynamic\nvariant _q\n", "the name of the variant is missing" },
        { "found a\nmodel x dynamic\nfinds b\n", "mine:3:1: " },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_err err = OCT_ERR_INIT;
        oct_folder_recipe *r;
        assert_int_equal(oct_folder_recipe_parse(cases[i].text, "mine", &r, &err), OCT_EMALFORMED);
        if (!strstr(err.text, cases[i].said))
            fail_msg("'%s' is not in '%s'", cases[i].said, err.text);
        assert_null(r);
    }
}

TEST(built_in_recipes_are_right)
{
    const char *name, *summary;
    oct_err err = OCT_ERR_INIT;
    oct_folder_recipe *r;
    for (size_t i = 0; (name = oct_folder_recipe_builtin(i, &summary)); i++) {
        assert_true(*summary);
        if (oct_folder_recipe_open(name, &r, &err) != OCT_OK)
            fail_msg("%s", err.text);
        oct_folder_recipe_close(r);
    }
    assert_int_equal(oct_folder_recipe_open("pipper", &r, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.hint, "'piper'"));
}

/* Whatever is in it, an ended attempt leaves nothing, and a complete one takes the place of an empty folder. */
TEST(folders_appear_when_complete)
{
    char top[] = "/tmp/octet-test-XXXXXX", path[64], file[4200];
    oct_err err = OCT_ERR_INIT;
    oct_scratch *s;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/new/", top);
    for (int complete = 0; complete < 2; complete++) {
        assert_int_equal(oct_scratch_create_beside(path, &s, &err), OCT_OK);
        assert_int_equal(oct_scratch_make_room(s, "a/b/c.txt", &err), OCT_OK);
        snprintf(file, sizeof file, "%s/a/b/c.txt", oct_scratch_path(s));
        FILE *f = fopen(file, "w");
        fputs("x", f);
        fclose(f);
        assert_int_equal(access(path, F_OK), -1);
        if (complete)
            assert_int_equal(oct_scratch_commit(s, &err), OCT_OK);
        oct_scratch_remove(s);
        assert_int_equal(access(path, F_OK), complete ? 0 : -1);
        assert_int_equal(access(file, F_OK), -1);
    }
    assert_int_equal(oct_scratch_create_beside(path, &s, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.text, "not empty"));
    static const char *const made[] = { "new/a/b/c.txt", "new/a/b", "new/a", "new" };
    for (size_t i = 0; i < OCT_COUNT(made); i++) {
        snprintf(file, sizeof file, "%s/%s", top, made[i]);
        assert_int_equal(remove(file), 0);
    }
    assert_int_equal(rmdir(top), 0); /* nothing else was left */
}

/* A process that fills a folder and ends by a signal: with files in folders that it makes, whose paths grow beyond 255
 * bytes, or as saving a model does, whose file of external data nobody has named before. */
static void end_by_signal(const char *path, const char *model)
{
    char file[4200], room[700];
    oct_scratch *s;
    oct_model *m;
    oct_io_guard("test_folder");
    if (oct_scratch_create_beside(path, &s, NULL) != OCT_OK)
        _exit(1);
    for (int i = 0; i < 20 && !model; i++) {
        memset(room, 'd', sizeof room);
        for (int k = 1; k <= i; k++)
            room[30 * k] = '/';
        room[30 * i + 10] = '\0';
        snprintf(file, sizeof file, "%s/%s", oct_scratch_path(s), room);
        FILE *f = oct_scratch_make_room(s, room, NULL) == OCT_OK ? fopen(file, "w") : NULL;
        if (!f || fclose(f) != 0)
            _exit(2);
    }
    snprintf(file, sizeof file, "%s/onnx/m.onnx", oct_scratch_path(s));
    if (model &&
        (oct_scratch_make_room(s, "onnx/m.onnx", NULL) != OCT_OK || oct_model_load(model, &m, NULL) != OCT_OK ||
         oct_model_save(m, file, &(oct_save_options){ .max_bytes = 1 }, NULL) != OCT_OK))
        _exit(3);
    raise(SIGTERM);
    _exit(4);
}

TEST(a_signal_removes_folders)
{
    char model[4096];
    snprintf(model, sizeof model, "%s/testdata/demo.onnx", getenv("OCT_SOURCE"));
    for (int saves = 0; saves < 2; saves++) {
        char top[] = "/tmp/octet-test-XXXXXX", path[64];
        int status = -1;
        assert_non_null(mkdtemp(top));
        snprintf(path, sizeof path, "%s/new", top);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            end_by_signal(path, saves ? model : NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
            fail_msg("it ended with status %x, not by SIGTERM", (unsigned)status);
        assert_int_equal(rmdir(top), 0); /* nothing was left */
    }
}
