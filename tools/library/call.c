/* An octet, and what surrounds each call with it. */
#include "octet_int.h"

#include "base/mem.h"
#include "base/number_locale.h"
#include "base/stack.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "kernels/cpu.h"

#include <string.h>

const char *octet_version(void)
{
    return OCT_VERSION;
}

octet *octet_open(void)
{
    octet *o = oct_calloc(1, sizeof *o);
    if (o)
        pthread_mutex_init(&o->speaking, NULL);
    return o;
}

void octet_close(octet *o)
{
    if (!o || atomic_load(&o->busy)) /* a callback of a call that would go on with it */
        return;
    pthread_mutex_destroy(&o->speaking);
    oct_arena_destroy(o->claims);
    oct_free(o);
}

void octet_stop(octet *o)
{
    if (o)
        atomic_store_explicit(&o->stop, true, memory_order_relaxed);
}

const char *octet_error(const octet *o)
{
    return o ? o->err.text : "";
}

const char *octet_hint(const octet *o)
{
    return o ? o->err.hint : "";
}

void octet_on_progress(octet *o, octet_progress_fn fn, void *arg)
{
    if (!o)
        return;
    o->progress = fn;
    o->progress_arg = arg;
}

void octet_on_message(octet *o, octet_message_fn fn, void *arg)
{
    if (!o)
        return;
    o->message = fn;
    o->message_arg = arg;
}

void octet_clean(char *dst, size_t size, const char *s)
{
    char one[12];
    for (size_t at = 0; *s; at += strlen(one)) {
        s += oct_char_clean(one, s, false);
        if (at + strlen(one) >= size)
            break;
        strcpy(dst + at, one);
        dst[at + strlen(one)] = 0;
    }
}

/* ---- a call ---- */

typedef struct call {
    octet *o;
    octet_work_fn work;
    void *arg;
    oct_number_locale locale;
    oct_status status;
    oct_err err;
} call;

static void do_call(void *arg)
{
    call *c = arg;
    const atomic_bool *watched = oct_stop_watch(&c->o->stop); /* a callback may use another octet */
    if (oct_number_locale_enter(&c->locale)) {
        c->status = c->work(c->o, c->arg, &c->err);
        oct_number_locale_leave(&c->locale);
    } else {
        c->status = oct_nomem(&c->err);
    }
    oct_stop_watch(watched);
}

static void keep_error(octet *o, const call *c)
{
    o->err = (oct_err)OCT_ERR_INIT;
    if (c->status == OCT_OK)
        return;
    o->err.status = c->status;
    octet_clean(o->err.text, sizeof o->err.text, c->err.text[0] ? c->err.text : oct_status_name(c->status));
    octet_clean(o->err.hint, sizeof o->err.hint, c->err.hint);
}

octet_status octet_do(octet *o, octet_work_fn work, void *arg)
{
    if (!o || atomic_exchange(&o->busy, true))
        return OCTET_USAGE;
    call c = { .o = o, .work = work, .arg = arg, .err = OCT_ERR_INIT };
    o->locale = uselocale((locale_t)0);
    atomic_store(&o->stop, false);
    if (!oct_stack_call(do_call, &c))
        c.status = oct_fail(&c.err, OCT_ENOMEM, "cannot start a thread in place of this one, whose stack is too small");
    keep_error(o, &c);
    atomic_store(&o->busy, false);
    return (octet_status)c.status;
}

static oct_status use_isa(octet *o, void *arg, oct_err *err)
{
    return arg ? oct_isa_limit(arg, err) : oct_fail(err, OCT_EUSAGE, "the name of the instruction set is NULL");
}

octet_status octet_use_isa(octet *o, const char *name)
{
    return octet_do(o, use_isa, (void *)(uintptr_t)name);
}
