/* Which inputs of a decoder are ids, masks and positions, and which outputs continue which caches. */
#include "eval/run/decoder_inputs.h"

#include "base/mem.h"

#include <string.h>

enum { MOST_NAME = 256 };

static bool says(const char *name, const char *word)
{
    return name && strstr(name, word);
}

/* ---- ids, masks, positions ---- */

static bool is_whole(oct_dtype t)
{
    return t == OCT_S64 || t == OCT_S32;
}

static const char *length_symbol(const oct_value *v)
{
    return v->shape.rank >= 2 && v->shape.d[1].n < 0 ? v->shape.d[1].sym : NULL;
}

static bool has_length_of(const oct_value *v, const oct_value *ids)
{
    const char *a = length_symbol(v), *b = length_symbol(ids);
    return a && b && strcmp(a, b) == 0;
}

/* How likely an input holds the ids of what is written; 0: it does not. */
static int likelihood(const oct_value *v)
{
    static const char *const others[] = { "mask", "position", "type", "segment", "length", "past", "cache", "encoder" };
    if (!is_whole(v->dtype) || (v->shape.rank >= 0 && v->shape.rank != 2))
        return 0;
    for (size_t i = 0; i < OCT_COUNT(others); i++)
        if (says(v->name, others[i]))
            return 0;
    return strcmp(v->name, "decoder_input_ids") == 0 ? 3 : strncmp(v->name, "input_ids", 9) == 0 ? 2 : 1;
}

/* A mask is that of the tokens, not that of an encoder's. */
static oct_input_turn turn_of(const oct_value *v, const oct_value *ids)
{
    const bool of_decoder = says(ids->name, "decoder"), other = of_decoder && !says(v->name, "decoder");
    const bool along = has_length_of(v, ids);
    if (strcmp(v->name, "use_cache_branch") == 0)
        return OCT_TURN_FLAG;
    if (says(v->name, "encoder"))
        return OCT_TURN_NONE;
    if (says(v->name, "mask"))
        return other ? OCT_TURN_NONE : along ? OCT_TURN_ALONG : OCT_TURN_MASK;
    if (says(v->name, "position") && is_whole(v->dtype))
        return other && !along ? OCT_TURN_NONE : OCT_TURN_POSITIONS;
    const bool beside = along || says(v->name, "type") || says(v->name, "segment");
    return v->shape.rank == 2 && beside ? OCT_TURN_ALONG : OCT_TURN_NONE;
}

int oct_decoder_inputs(const oct_graph *g, const oct_state *states, size_t n, oct_input_turn *turn, size_t *ids)
{
    int best = 0, alike = 0;
    for (size_t i = 0; i < g->n_input; i++)
        turn[i] = OCT_TURN_NONE;
    for (size_t i = 0; i < n; i++)
        turn[states[i].input] = OCT_TURN_STATE;
    for (size_t i = 0; i < g->n_input; i++) {
        const int l = turn[i] == OCT_TURN_STATE ? 0 : likelihood(&g->value[g->input[i]]);
        alike = l > best ? 1 : alike + (l && l == best);
        *ids = l > best ? i : *ids;
        best = l > best ? l : best;
    }
    if (alike != 1)
        return alike;
    for (size_t i = 0; i < g->n_input; i++)
        if (i == *ids)
            turn[i] = OCT_TURN_IDS;
        else if (turn[i] == OCT_TURN_NONE)
            turn[i] = turn_of(&g->value[g->input[i]], &g->value[g->input[*ids]]);
    return 1;
}

/* ---- caches ---- */

static bool is_cache(const oct_value *v)
{
    bool past = says(v->name, "past") || says(v->name, "cache");
    for (int k = 0; k < v->shape.rank && !past; k++)
        past = v->shape.d[k].n < 0 && says(v->shape.d[k].sym, "past");
    return past && v->dtype != OCT_BOOL && v->dtype != OCT_STRING;
}

/* Words that tell an input from the output that continues it. */
static bool tells_side(const char *word, size_t n)
{
    static const char *const words[] = { "past", "present", "new",   "next",   "updated", "prev",  "previous",
                                         "in",   "out",     "input", "output", "cache",   "cached" };
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
            return true;
    return false;
}

/* What is left of a name without such words; "past_key_values" and "present_key_values" are words, too. */
static bool core_of(const char *name, char core[MOST_NAME])
{
    static const char *const phrases[] = { "past_key_values", "present_key_values" };
    size_t length = 0;
    while (*name) {
        const char *phrase = NULL;
        for (size_t i = 0; i < OCT_COUNT(phrases); i++)
            phrase = strncmp(name, phrases[i], strlen(phrases[i])) == 0 ? phrases[i] : phrase;
        const size_t n = phrase ? strlen(phrase) : strcspn(name, "._/:-");
        if (n && !phrase && !tells_side(name, n)) {
            if (length + n + 2 > MOST_NAME)
                return false;
            memcpy(core + length, name, n);
            length += n;
            core[length++] = '.';
        }
        name += n;
        name += *name != 0 && strchr("._/:-", *name) != NULL;
    }
    core[length] = 0;
    return true;
}

static bool may_continue(const oct_value *in, const oct_value *out)
{
    return in->dtype == out->dtype && (in->shape.rank < 0 || out->shape.rank < 0 || in->shape.rank == out->shape.rank);
}

/* The output that continues input v; -1: none, or several. */
static int next_of(const oct_graph *g, const oct_value *v)
{
    char want[MOST_NAME], core[MOST_NAME];
    int found = -1;
    if (!core_of(v->name, want))
        return -1;
    for (size_t i = 0; i < g->n_output; i++) {
        const oct_value *out = &g->value[g->output[i]];
        if (!may_continue(v, out) || !core_of(out->name, core) || strcmp(core, want) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

static bool is_known(const oct_state *states, size_t n, size_t input)
{
    for (size_t i = 0; i < n; i++)
        if (states[i].input == input)
            return true;
    return false;
}

oct_status oct_cache_pairs(const oct_graph *g, oct_state *states, size_t most, size_t *n, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        const int out = is_cache(v) && !is_known(states, *n, i) ? next_of(g, v) : -1;
        if (out < 0)
            continue;
        if (*n == most)
            return oct_fail(err, OCT_EUNSUPPORTED, "the model has more than %zu caches", most);
        states[(*n)++] = (oct_state){ i, (size_t)out };
    }
    return OCT_OK;
}
