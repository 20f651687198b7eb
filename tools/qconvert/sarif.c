/* qconvert lint --sarif: findings as SARIF 2.1.0, for systems that show them beside a change. */
#include "qconvert/lint.h"

#include <string.h>

typedef struct rule {
    const char *id, *level, *title, *help;
} rule;

static const rule rules[] = {
    { "trap", "error", "The target does not load this node, though it is valid",
      "Convert for the target again (qconvert --target), or replace the node by the form that the message names." },
    { "collapse", "warning", "Few quantized values are left for a tensor",
      "The tensor shares its scale with one of a far wider range. Give it a scale of its own, or leave the node that joins them in float "
      "(a policy rule: name:NODE float)." },
    { "wraps", "error", "A sum of products can leave 32 bits",
      "Weights and the most extreme activations together exceed an int32. Quantize the weights per channel, or leave the layer in float." },
    { "saturates", "warning", "Sums of two products can leave 16 bits",
      "CPUs without VNNI add two products in 16 bits, which saturate. Convert for the target again: qconvert proves sums safe or uses weights that are." },
    { "rounds", "warning", "ONNX Runtime rounds a layer that the file has in float",
      "It rounds the weights when it loads the file, in a worse way than a conversion. Convert for the target again: qconvert writes such layers so that "
      "they stay float." },
    { "float-layer", "warning", "A quantized layer runs on real numbers in the target",
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
    oct_json_rows(j, "rules", rules, OCT_COUNT(rules), sizeof *rules, put_rule);
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

static void put_result(oct_json *j, const oct_item *report, const char *kind, const oct_item *x, const char *node,
                       const char *text)
{
    oct_buf words = OCT_BUF_INIT;
    size_t of = 0;
    while (of + 1 < OCT_COUNT(rules) && strcmp(rules[of].id, kind) != 0)
        of++;
    oct_buf_printf(&words, "'%s' (%s): %s", node, oct_item_text(x, "op"), text);
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "ruleId", rules[of].id);
    oct_json_int(j, "ruleIndex", (int64_t)of);
    oct_json_str(j, "level", rules[of].level);
    put_text(j, "message", oct_buf_str(&words));
    put_location(j, oct_item_text(report, "model"), node);
    oct_json_open(j, "partialFingerprints", '{');
    oct_json_str(j, "node/v1", node);
    oct_json_close(j);
    oct_json_close(j);
    j->out->failed |= words.failed;
    oct_buf_free(&words);
}

static void put_findings(oct_json *j, const oct_item *report, const char *list)
{
    const oct_item *findings = oct_item_at(report, list);
    for (const oct_item *x = NULL; (x = oct_item_next(findings, x));)
        if (oct_item_true(x, "concerns"))
            put_result(j, report, oct_item_text(x, "kind"), x, oct_item_text(x, "node"), oct_item_text(x, "text"));
}

void lint_sarif(const oct_item *report, oct_buf *out)
{
    oct_json json = OCT_JSON_INIT(out), *j = &json;
    const oct_item *nodes = oct_item_at(report, "nodes");
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "$schema",
                 "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json");
    oct_json_str(j, "version", "2.1.0");
    oct_json_open(j, "runs", '[');
    oct_json_open(j, NULL, '{');
    put_driver(j);
    oct_json_open(j, "results", '[');
    put_findings(j, report, "traps");
    put_findings(j, report, "findings");
    for (const oct_item *x = NULL; (x = oct_item_next(nodes, x));)
        if (oct_item_true(x, "lost"))
            put_result(j, report, "float-layer", x, oct_item_text(x, "name"), oct_item_text(x, "why"));
    oct_json_close(j);
    oct_json_open(j, "properties", '{');
    oct_json_str(j, "target", oct_item_text(report, "target"));
    oct_json_close(j);
    oct_json_close(j);
    oct_json_close(j);
    oct_json_close(j);
}
