/* qconvert lint --sarif: findings as SARIF 2.1.0, for systems that show them beside a change. */
#include "qconvert/lint.h"

#include <string.h>

typedef struct rule {
    const char *id, *level, *title, *help;
} rule;

/* Indexed by oct_finding_kind; one more for a quantized layer that runs in float. */
enum { FLOAT_LAYER = OCT_FINDING_KINDS, N_RULES };
static const rule rules[N_RULES] = {
    [OCT_FINDING_TRAP] = { "trap", "error", "The target does not load this node, though it is valid",
                           "Convert for the target again (qconvert --target), or replace the node by the form that the message names." },
    [OCT_FINDING_COLLAPSE] = { "collapse", "warning", "Few quantized values are left for a tensor",
                               "The tensor shares its scale with one of a far wider range. Give it a scale of its own, or leave the node that joins them in float "
                               "(a policy rule: name:NODE float)." },
    [OCT_FINDING_WRAPS] = { "wraps", "error", "A sum of products can leave 32 bits",
                            "Weights and the most extreme activations together exceed an int32. Quantize the weights per channel, or leave the layer in float." },
    [OCT_FINDING_SATURATES] = { "saturates", "warning", "Sums of two products can leave 16 bits",
                                "CPUs without VNNI add two products in 16 bits, which saturate. Convert for the target again: qconvert proves sums safe or uses weights that are." },
    [OCT_FINDING_ROUNDS] = { "rounds", "warning", "ONNX Runtime rounds a layer that the file has in float",
                             "It rounds the weights when it loads the file, in a worse way than a conversion. Convert for the target again: qconvert writes such layers so that "
                             "they stay float." },
    [FLOAT_LAYER] = { "float-layer", "warning", "A quantized layer runs on real numbers in the target",
                      "Its quantization costs accuracy and gives no integer kernel. The message says what is missing; qconvert --target writes the form that the target runs." },
};

/* ---- small objects ---- */

static void put_text(oct_json *j, const char *key, const char *text)
{
    oct_json_open(j, key, '{');
    oct_json_str(j, "text", text);
    oct_json_close(j);
}

/* A path as a URI reference: bytes that are not allowed in a URI become %XX. */
static void put_uri(oct_json *j, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    oct_buf b = OCT_BUF_INIT;
    oct_buf_puts(&b, *path == '/' ? "file://" : strchr(path, ':') ? "./" : "");
    for (; *path; path++)
        if (strchr(plain, *path))
            oct_buf_add(&b, path, 1);
        else
            oct_buf_printf(&b, "%%%02X", (unsigned char)*path);
    oct_json_str(j, "uri", oct_buf_str(&b));
    j->out->failed |= b.failed;
    oct_buf_free(&b);
}

/* ---- the parts ---- */

static void put_rule(oct_json *j, const void *row)
{
    const rule *r = row;
    oct_json_str(j, "id", r->id);
    put_text(j, "shortDescription", r->title);
    put_text(j, "help", r->help);
    oct_json_open(j, "defaultConfiguration", '{');
    oct_json_str(j, "level", r->level);
    oct_json_close(j);
}

static void put_driver(oct_json *j)
{
    oct_json_open(j, "tool", '{');
    oct_json_open(j, "driver", '{');
    oct_json_str(j, "name", "qconvert lint");
    oct_json_str(j, "version", OCT_VERSION);
    oct_json_rows(j, "rules", rules, N_RULES, sizeof *rules, put_rule);
    oct_json_close(j);
    oct_json_close(j);
}

/* The file, and the node in it. A model has no lines, so systems that need a line get the first. */
static void put_location(oct_json *j, const char *path, const char *node)
{
    oct_json_open(j, "locations", '[');
    oct_json_open(j, NULL, '{');
    oct_json_open(j, "physicalLocation", '{');
    oct_json_open(j, "artifactLocation", '{');
    put_uri(j, path);
    oct_json_close(j);
    oct_json_open(j, "region", '{');
    oct_json_int(j, "startLine", 1);
    oct_json_close(j);
    oct_json_close(j);
    oct_json_open(j, "logicalLocations", '[');
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "fullyQualifiedName", node);
    oct_json_str(j, "kind", "node");
    oct_json_close(j);
    oct_json_close(j);
    oct_json_close(j);
    oct_json_close(j);
}

static void put_result(oct_json *j, const char *path, size_t of, const char *node, const char *op, const char *text)
{
    oct_buf words = OCT_BUF_INIT;
    oct_buf_printf(&words, "'%s' (%s): %s", node, op, text);
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "ruleId", rules[of].id);
    oct_json_int(j, "ruleIndex", (int64_t)of);
    oct_json_str(j, "level", rules[of].level);
    put_text(j, "message", oct_buf_str(&words));
    put_location(j, path, node);
    oct_json_open(j, "partialFingerprints", '{');
    oct_json_str(j, "node/v1", node);
    oct_json_close(j);
    oct_json_close(j);
    j->out->failed |= words.failed;
    oct_buf_free(&words);
}

static void put_findings(oct_json *j, const char *path, const oct_target *t, const oct_finding *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (oct_finding_concerns(&f[i], t))
            put_result(j, path, f[i].kind, f[i].name, f[i].op, f[i].text);
}

oct_status lint_sarif(const char *file, const char *model, const oct_lint *l, const oct_target *t,
                      const oct_lint_verdict *v, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json json = OCT_JSON_INIT(&b), *j = &json;
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "$schema",
                 "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json");
    oct_json_str(j, "version", "2.1.0");
    oct_json_open(j, "runs", '[');
    oct_json_open(j, NULL, '{');
    put_driver(j);
    oct_json_open(j, "results", '[');
    put_findings(j, model, t, v->trap, v->n_trap);
    put_findings(j, model, t, l->finding, l->n_finding);
    for (size_t i = 0; i < v->n; i++)
        if (v->node[i].lost)
            put_result(j, model, FLOAT_LAYER, v->node[i].name, v->node[i].op, v->node[i].stand.why);
    oct_json_close(j);
    oct_json_open(j, "properties", '{');
    oct_json_str(j, "target", v->target);
    oct_json_close(j);
    oct_json_close(j);
    oct_json_close(j);
    return tool_write_json(file, j, err);
}
