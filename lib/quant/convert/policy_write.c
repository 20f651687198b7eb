/* Writes decisions as rows of a policy table. */
#include "quant/convert/convert.h"

#include "base/utf8.h"
#include "quant/job/placed.h"
#include "quant/policy/policy_int.h"

#include <string.h>

void oct_policy_put_name(oct_buf *b, const char *term, const char *name)
{
    oct_buf_puts(b, term);
    for (size_t n; *name; name += n) {
        const uint32_t c = oct_utf8_char(name, 4, &n);
        if (oct_char_unsafe(c)) { /* a byte that is not a printable ASCII character */
            for (size_t i = 0; i < n; i++)
                oct_buf_puts(b, "[^!-~]");
            continue;
        }
        if (strchr(" \\&*?[", *name))
            oct_buf_puts(b, "\\");
        oct_buf_add(b, name, n);
    }
}

static void put_observer(oct_buf *b, oct_observer_spec o)
{
    char param[32];
    oct_buf_puts(b, o.observer ? o.observer->name : "-");
    if (o.observer && o.param != o.observer->param)
        oct_buf_printf(b, "=%s", oct_f64_text(param, o.param));
}

/* Writes the observer that was found for a layer's output, if no rule named it. */
static void dump_observer(oct_buf *b, const oct_conversion *c, const oct_layer *l)
{
    oct_observer_spec o = oct_qjob_observer(c->job);
    if (l->d.row->observer.observer)
        return;
    if (l->d.observer)
        oct_observer_parse(l->d.observer, &o, NULL); /* a pinned range has no observer: the default remains */
    oct_policy_put_name(b, "name:", l->name);
    oct_buf_puts(b, " & late  -  -  -  ");
    put_observer(b, o);
    oct_buf_puts(b, "\n");
}

static void put_activations(oct_buf *b, const oct_policy_row *row)
{
    oct_buf_printf(b, "%s/tensor/%s  ", oct_policy_activations(row->activations), row->symmetric ? "sym" : "asym");
}

static void dump_layer(oct_buf *b, const oct_conversion *c, const oct_layer *l)
{
    const oct_policy_row *row = l->d.row;
    if (!*l->own)
        return;
    if (l->d.graph == c->m->graph && (size_t)l->d.node >= c->n_prepared && !l->d.barred &&
        !l->d.wide) { /* a method will add it again */
        if (l->d.integer || l->d.rounded)
            dump_observer(b, c, l);
        return;
    }
    const bool kept = l->d.barred && l->d.integer; /* as in the model, without quantizers around it */
    const bool blocks = !kept && oct_layer_is_weight_only(l) && l->d.block,
               whole = l->d.weights == OCT_U4 || l->d.weights == OCT_U8;
    /* the matrices of a recurrent layer in 8 bits: weight-only would imply blocks, which need a later opset */
    const bool recurrent =
        l->d.scheme == OCT_SCHEME_WEIGHT_ONLY && oct_op_of(l->d.graph, l->d.node)->quant == OCT_QUANT_RECURRENT;
    const char *why = blocks || l->d.integer ? "" : l->d.why;
    oct_policy_put_name(b, "name:", l->name);
    oct_buf_puts(b, l->d.barred || l->d.wide || l->d.rangeless ? " & late" : "");
    if (blocks)
        oct_buf_printf(b, "  weight-only  %c%d/block%d/%s  -  -", whole ? 'u' : 's', oct_dtype_bits(l->d.weights),
                       l->d.block, whole ? "asym" : "sym");
    else if (kept)
        oct_buf_puts(b, "  float  -  -  -");
    else if (l->d.integer)
        oct_buf_printf(b, "  %s  %s/%s/sym  ", oct_scheme_name(l->d.scheme),
                       oct_policy_parts[OCT_COLUMN_WEIGHTS][0].words[row->weights],
                       row->per_channel ? "channel" : "tensor");
    else /* a scheme given by name would remove the quantizers around it */
        oct_buf_printf(b, l->d.rounded ? "  -  -  " : "  %s  -  -  -",
                       oct_scheme_name(recurrent ? OCT_SCHEME_STORED : l->d.scheme));
    if (!blocks && !kept && (l->d.integer || l->d.rounded)) {
        put_activations(b, row);
        put_observer(b, row->observer);
    }
    oct_buf_puts(b, "  # ");
    oct_text_clean(b, l->d.op, false);
    oct_buf_puts(b, *why ? ": " : "");
    oct_text_clean(b, why, false);
    oct_buf_puts(b, "\n");
    if (!blocks && !kept && (l->d.integer || l->d.rounded))
        dump_observer(b, c, l);
}

/* Writes the observers of values that no layer's row determines. */
static void dump_values(oct_buf *b, const oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++) {
        const char *observer = oct_observer_of(j, (int)v);
        oct_observer_spec o;
        if (!oct_is_wanted(j, (int)v) || oct_is_made(j, (int)v) || !observer ||
            oct_observer_parse(observer, &o, NULL) != OCT_OK)
            continue; /* a pinned range has no observer */
        oct_policy_put_name(b, "value:", j->g->value[v].name);
        oct_buf_printf(b, " & late  -  -  -  %s\n", observer);
    }
    for (size_t i = 0; i < j->n_body; i++)
        dump_values(b, j->body[i].job);
}

void oct_conversion_put_policy(const oct_conversion *c, oct_buf *b)
{
    oct_buf_puts(b, "# match  scheme  weights  activations  observer\n");
    for (size_t i = 0; i < c->n_layers; i++)
        dump_layer(b, c, &c->layers[i]);
    dump_values(b, c->job);
}
