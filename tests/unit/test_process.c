/* lib/base: what the process around the library may do: fork, set a locale, give little stack, ask to stop. */
#define _GNU_SOURCE
#include "unit.h"

#include "base/buf.h"
#include "base/fork.h"
#include "base/io.h"
#include "base/number_locale.h"
#include "base/pool.h"
#include "base/stack.h"
#include "base/stop.h"

#include "german.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* ---- fork ---- */

static void add_one(void *arg, size_t begin, size_t end, size_t thread)
{
    for (size_t i = begin; i < end; i++)
        ((char *)arg)[i]++;
}

/* The exit status of a child that runs fn, or 256 + the signal that ended it. A child that hangs is ended by
 * SIGALRM. */
static int in_child(int (*fn)(void *arg), void *arg)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(fn(arg));
    }
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static int use_pool(void *arg)
{
    char done[1000] = { 0 };
    oct_pool_for(arg, sizeof done, 1, add_one, done);
    for (size_t i = 0; i < sizeof done; i++)
        if (done[i] != 1)
            return 1;
    oct_pool_destroy(arg);
    return 0;
}

TEST(a_child_uses_the_pool_of_its_parent)
{
    char done[1000] = { 0 };
    oct_pool *p = oct_pool_create(4);
    oct_pool_for(p, sizeof done, 1, add_one, done);
    assert_int_equal(in_child(use_pool, p), 0);
    oct_pool_for(p, sizeof done, 1, add_one, done); /* the parent's threads are still there */
    assert_int_equal(done[0], 2);
    oct_pool_destroy(p);
}

static int destroy_pool(void *arg)
{
    oct_pool_destroy(arg);
    return 0;
}

TEST(a_child_destroys_the_pool_of_its_parent)
{
    oct_pool *p = oct_pool_create(4);
    assert_int_equal(in_child(destroy_pool, p), 0);
    oct_pool_destroy(p);
}

static atomic_bool over;

static void *take_locks(void *arg)
{
    while (!atomic_load(&over))
        for (int i = 0; i < OCT_LOCKS; i++) {
            oct_lock((oct_lock_name)i);
            oct_unlock((oct_lock_name)i);
        }
    return NULL;
}

static int take_each_lock(void *forks)
{
    for (int i = 0; i < OCT_LOCKS; i++) {
        oct_lock((oct_lock_name)i);
        oct_unlock((oct_lock_name)i);
    }
    return oct_forks() != *(unsigned *)forks + 1;
}

/* Another thread may hold any of the locks at the moment of the fork. */
TEST(locks_are_free_in_a_child)
{
    pthread_t thread;
    unsigned forks = oct_forks();
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&thread, NULL, take_locks, NULL), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(in_child(take_each_lock, &forks), 0);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}

/* ---- locale ---- */

static void *number_of_thread(void *text)
{
    return oct_f64_text(text, 0.5) ? NULL : text;
}

TEST(numbers_have_points)
{
    char here[32], there[32], before[32];
    oct_number_locale l;
    pthread_t thread;
    if (!german_begin()) {
        print_message("# commas: not tried, since there is no locale de_DE.UTF-8, and none can be made\n");
        return;
    }
    snprintf(before, sizeof before, "%g", 0.5);
    assert_true(oct_number_locale_enter(&l));
    assert_true(oct_thread_start(&thread, number_of_thread, there));
    pthread_join(thread, NULL);
    oct_f64_text(here, 0.5);
    const double read = strtod("0.25", NULL);
    oct_number_locale_leave(&l);
    const double after = strtod("0,25", NULL);
    german_end();
    assert_string_equal(before, "0,5");
    assert_string_equal(here, "0.5");
    assert_string_equal(there, "0.5");
    assert_true(read == 0.25);
    assert_true(after == 0.25);
}

/* ---- stacks ---- */

static void fill_stack(void *arg)
{
    volatile char large[OCT_STACK_LEAST - (64 << 10)];
    for (size_t i = 0; i < sizeof large; i += 1024)
        large[i] = 1;
    *(pthread_t *)arg = pthread_self();
}

static void *call_from_here(void *arg)
{
    return oct_stack_call(fill_stack, arg) ? arg : NULL;
}

TEST(deep_work_runs_on_small_stacks)
{
    pthread_attr_t attr;
    pthread_t thread, ran_on, self = pthread_self();
    void *result;
    assert_true(oct_stack_call(fill_stack, &ran_on));
    assert_true(pthread_equal(ran_on, self)); /* there is room */
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, 64 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_from_here, &ran_on), 0);
    pthread_attr_destroy(&attr);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &ran_on);
}

/* ---- stopping ---- */

static oct_status count_item(void *arg, size_t item, size_t thread, oct_err *err)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return OCT_OK;
}

TEST(pools_stop_between_items)
{
    atomic_bool stop = false;
    atomic_int n = 0;
    oct_err err = OCT_ERR_INIT;
    oct_pool *p = oct_pool_create(3);
    assert_null(oct_stop_watch(&stop));
    assert_int_equal(oct_pool_try(p, 100, count_item, &n, &err), OCT_OK);
    assert_int_equal(n, 100);
    stop = true;
    assert_int_equal(oct_pool_try(p, 100, count_item, &n, &err), OCT_ESTOPPED);
    assert_int_equal(n, 100);
    assert_string_equal(err.text, "stopped");
    assert_ptr_equal(oct_stop_watch(NULL), &stop);
    assert_int_equal(oct_pool_try(p, 100, count_item, &n, &err), OCT_OK); /* the workers forget the flag, too */
    assert_int_equal(n, 200);
    oct_pool_destroy(p);
}

TEST(a_stopped_output_does_not_appear)
{
    char path[64];
    atomic_bool stop = true;
    oct_out o;
    oct_err err = OCT_ERR_INIT;
    snprintf(path, sizeof path, "/tmp/octet-process-%d", (int)getpid());
    assert_int_equal(oct_out_open(&o, path, &err), OCT_OK);
    oct_out_write(&o, "half", 4);
    oct_stop_watch(&stop);
    assert_int_equal(oct_out_commit(&o, &err), OCT_ESTOPPED);
    oct_stop_watch(NULL);
    assert_false(oct_path_exists(path));
}
