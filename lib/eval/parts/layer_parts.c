/* Writes the comparison of layers for a part of the samples, and adds it to another one. All of its contents are sums,
 * counts, extremes, or the same in all parts. */
#include "eval/run/layers_int.h"
#include "eval/parts/part_sums.h"

#include "base/mem.h"
#include "observers/calib.h"

#include <stdio.h>

enum { MOST_CHANNELS = 1 << 16 };

/* ---- histograms, in the form of a calibration table, whose reader checks everything ---- */

static oct_status add_stats(oct_calib *c, size_t i, const oct_stats *s, oct_err *err)
{
    char name[24];
    oct_calib_tensor *t;
    snprintf(name, sizeof name, "%zu", i);
    OCT_TRY(oct_calib_add(c, name, &t, err));
    return oct_stats_merge(&t->stats, s, err);
}

static oct_status save_stats(const ev_layers *l, oct_buf *b, oct_err *err)
{
    oct_buf text = OCT_BUF_INIT;
    oct_calib *c = oct_calib_create();
    oct_status s = c ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < l->n_tap; i++)
        if (l->stats[i].n)
            s = add_stats(c, i, &l->stats[i], err);
    if (s == OCT_OK) {
        oct_calib_text(c, &text);
        oct_buf_add_u64(b, text.len);
        oct_buf_add(b, oct_buf_str(&text), text.len);
        s = text.failed || b->failed ? oct_nomem(err) : OCT_OK;
    }
    oct_buf_free(&text);
    oct_calib_destroy(c);
    return s;
}

static oct_status load_stats(ev_layers *l, oct_bytes *r, const char *label, oct_err *err)
{
    const oct_bytes text = oct_bytes_part(r, oct_bytes_u64(r));
    oct_calib *c;
    oct_status s = OCT_OK;
    if (r->bad)
        return OCT_OK;
    OCT_TRY(oct_calib_parse(text.p, text.n, label, &c, err));
    for (size_t i = 0; s == OCT_OK && i < l->n_tap; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        const oct_calib_tensor *t = oct_calib_find(c, name);
        s = t ? oct_stats_merge(&l->stats[i], &t->stats, err) : OCT_OK;
    }
    oct_calib_destroy(c);
    return s;
}

/* ---- the values of a model ---- */

static void save_channels(const ev_channels *c, oct_buf *b)
{
    oct_buf_add_u64(b, c->lo ? (uint64_t)c->n : 0);
    oct_buf_add_u32(b, (uint32_t)c->axis);
    oct_buf_add_u32(b, c->unsteady);
    for (int64_t i = 0; c->lo && i < c->n; i++) {
        oct_buf_add_f32(b, c->lo[i]);
        oct_buf_add_f32(b, c->hi[i]);
    }
}

/* A part may not have seen a value. */
static oct_status load_channels(ev_channels *c, oct_arena *a, oct_bytes *r, oct_err *err)
{
    const size_t n = oct_bytes_count(r, 8);
    const int axis = (int)oct_bytes_u32(r);
    const bool unsteady = oct_bytes_u32(r) != 0;
    r->bad |= n > MOST_CHANNELS;
    if (r->bad || (!n && !unsteady))
        return OCT_OK;
    const bool first = !c->lo && !c->unsteady;
    if (first && n) {
        c->n = (int64_t)n;
        c->axis = axis;
        if (!(c->lo = oct_arena_alloc(a, n * sizeof *c->lo)) || !(c->hi = oct_arena_alloc(a, n * sizeof *c->hi)))
            return oct_nomem(err);
    }
    c->unsteady |= unsteady || (int64_t)n != c->n || (n && axis != c->axis);
    for (size_t i = 0; i < n; i++) {
        const float lo = oct_bytes_f32(r), hi = oct_bytes_f32(r);
        if (r->bad || c->unsteady)
            continue;
        c->lo[i] = first || lo < c->lo[i] ? lo : c->lo[i];
        c->hi[i] = first || hi > c->hi[i] ? hi : c->hi[i];
    }
    return OCT_OK;
}

static void save_codes(const ev_codes *c, oct_buf *b)
{
    oct_buf_add_u32(b, c->known);
    oct_buf_add_u32(b, (uint32_t)c->range.dtype);
    oct_buf_add_u32(b, (uint32_t)c->range.zero);
    oct_buf_add_f64(b, c->range.scale);
    oct_buf_add_f64(b, c->range.lo);
    oct_buf_add_f64(b, c->range.hi);
    oct_buf_add_u64(b, c->n);
    oct_buf_add_u64(b, c->clipped);
    oct_buf_add_u64(b, c->saturated);
    oct_buf_add(b, c->seen, sizeof c->seen);
}

static bool has_codes(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16;
}

static void load_codes(ev_codes *c, oct_bytes *r)
{
    const bool known = oct_bytes_u32(r) != 0;
    oct_eval_range range = { .dtype = (oct_dtype)oct_bytes_u32(r) };
    range.zero = (int32_t)oct_bytes_u32(r);
    range.scale = oct_bytes_f64(r);
    range.lo = oct_bytes_f64(r);
    range.hi = oct_bytes_f64(r);
    const uint64_t n = oct_bytes_u64(r), clipped = oct_bytes_u64(r), saturated = oct_bytes_u64(r);
    const uint8_t *seen = oct_bytes_take(r, EV_CODES);
    r->bad |= (n && !has_codes(range.dtype)) || (uint32_t)range.dtype >= OCT_DTYPE_COUNT;
    if (r->bad || !known)
        return;
    if (!c->known)
        c->range = range;
    c->known = true;
    c->n += n;
    c->clipped += clipped;
    c->saturated += saturated;
    for (int i = 0; i < EV_CODES; i++)
        c->seen[i] |= seen[i] != 0;
}

static void save_side(const ev_layers *l, const ev_side *s, oct_buf *b)
{
    for (size_t i = 0; i < l->n_tap; i++) {
        oct_buf_add_text(b, s->scheme[i]);
        save_channels(&s->channels[i], b);
        if (s == l->side)
            continue;
        ev_put_sum(b, &s->error[i]);
        ev_put_sum(b, &s->own[i]);
        save_codes(&s->codes[i], b);
    }
}

static oct_status load_side(ev_layers *l, ev_side *s, oct_bytes *r, oct_err *err)
{
    for (size_t i = 0; i < l->n_tap && !r->bad; i++) {
        const char *scheme = oct_bytes_text(r);
        s->scheme[i] = s->scheme[i] || !s->name[i] ? s->scheme[i] : scheme;
        OCT_TRY(load_channels(&s->channels[i], l->arena, r, err));
        if (s == l->side)
            continue;
        ev_take_sum(r, &s->error[i]);
        ev_take_sum(r, &s->own[i]);
        load_codes(&s->codes[i], r);
    }
    return OCT_OK;
}

/* ---- everything together ---- */

oct_status ev_layers_save(const ev_layers *l, oct_buf *b, oct_err *err)
{
    oct_buf_add_u64(b, l->n_tap);
    oct_buf_add_u64(b, l->n_side);
    oct_buf_add_u32(b, l->no_own);
    for (size_t k = 0; k < l->n_side; k++)
        save_side(l, &l->side[k], b);
    return save_stats(l, b, err);
}

oct_status ev_layers_load(ev_layers *l, oct_bytes *r, const char *label, oct_err *err)
{
    oct_bytes_need(r, oct_bytes_u64(r) == l->n_tap && oct_bytes_u64(r) == l->n_side);
    l->no_own |= oct_bytes_u32(r) != 0;
    for (size_t k = 0; k < l->n_side && !r->bad; k++)
        OCT_TRY(load_side(l, &l->side[k], r, err));
    return load_stats(l, r, label, err);
}
