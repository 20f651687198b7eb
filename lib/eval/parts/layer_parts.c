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
        ev_put_u64(b, text.len);
        oct_buf_add(b, oct_buf_str(&text), text.len);
        s = text.failed || b->failed ? oct_nomem(err) : OCT_OK;
    }
    oct_buf_free(&text);
    oct_calib_destroy(c);
    return s;
}

static oct_status load_stats(ev_layers *l, ev_bytes *r, const char *label, oct_err *err)
{
    const ev_bytes text = ev_take_bytes(r, ev_take_u64(r));
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
    ev_put_u64(b, c->lo ? (uint64_t)c->n : 0);
    ev_put_u32(b, (uint32_t)c->axis);
    ev_put_u32(b, c->unsteady);
    for (int64_t i = 0; c->lo && i < c->n; i++) {
        ev_put_f32(b, c->lo[i]);
        ev_put_f32(b, c->hi[i]);
    }
}

/* A part may not have seen a value. */
static oct_status load_channels(ev_channels *c, oct_arena *a, ev_bytes *r, oct_err *err)
{
    const size_t n = ev_take_count(r, 8);
    const int axis = (int)ev_take_u32(r);
    const bool unsteady = ev_take_u32(r) != 0;
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
        const float lo = ev_take_f32(r), hi = ev_take_f32(r);
        if (r->bad || c->unsteady)
            continue;
        c->lo[i] = first || lo < c->lo[i] ? lo : c->lo[i];
        c->hi[i] = first || hi > c->hi[i] ? hi : c->hi[i];
    }
    return OCT_OK;
}

static void save_codes(const ev_codes *c, oct_buf *b)
{
    ev_put_u32(b, c->known);
    ev_put_u32(b, (uint32_t)c->range.dtype);
    ev_put_u32(b, (uint32_t)c->range.zero);
    ev_put_f64(b, c->range.scale);
    ev_put_f64(b, c->range.lo);
    ev_put_f64(b, c->range.hi);
    ev_put_u64(b, c->n);
    ev_put_u64(b, c->clipped);
    ev_put_u64(b, c->saturated);
    oct_buf_add(b, c->seen, sizeof c->seen);
}

static bool has_codes(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16;
}

static void load_codes(ev_codes *c, ev_bytes *r)
{
    const bool known = ev_take_u32(r) != 0;
    oct_eval_range range = { .dtype = (oct_dtype)ev_take_u32(r) };
    range.zero = (int32_t)ev_take_u32(r);
    range.scale = ev_take_f64(r);
    range.lo = ev_take_f64(r);
    range.hi = ev_take_f64(r);
    const uint64_t n = ev_take_u64(r), clipped = ev_take_u64(r), saturated = ev_take_u64(r);
    const uint8_t *seen = ev_take(r, EV_CODES);
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
        ev_put_text(b, s->scheme[i]);
        save_channels(&s->channels[i], b);
        if (s == l->side)
            continue;
        ev_put_sum(b, &s->error[i]);
        ev_put_sum(b, &s->own[i]);
        save_codes(&s->codes[i], b);
    }
}

static oct_status load_side(ev_layers *l, ev_side *s, ev_bytes *r, oct_err *err)
{
    bool memory = false;
    for (size_t i = 0; i < l->n_tap && !r->bad; i++) {
        const char *scheme = ev_take_text(r, l->arena, &memory);
        if (memory)
            return oct_nomem(err);
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
    ev_put_u64(b, l->n_tap);
    ev_put_u64(b, l->n_side);
    ev_put_u32(b, l->no_own);
    for (size_t k = 0; k < l->n_side; k++)
        save_side(l, &l->side[k], b);
    return save_stats(l, b, err);
}

oct_status ev_layers_load(ev_layers *l, ev_bytes *r, const char *label, oct_err *err)
{
    ev_need(r, ev_take_u64(r) == l->n_tap && ev_take_u64(r) == l->n_side);
    l->no_own |= ev_take_u32(r) != 0;
    for (size_t k = 0; k < l->n_side && !r->bad; k++)
        OCT_TRY(load_side(l, &l->side[k], r, err));
    return load_stats(l, r, label, err);
}
