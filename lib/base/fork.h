/* lib/base/fork.h -- locks and threads in a child process made by fork().
 *
 * Only the thread that called fork() exists in the child, where a lock held by another thread would never be released.
 * So all locks of the process are in one list. fork() takes all of them first and releases them in both processes.
 * Objects that own threads compare oct_forks() with its value when they were made. */
#ifndef OCT_BASE_FORK_H
#define OCT_BASE_FORK_H

/* In the order in which they nest: the holder of a lock may take only later ones. */
typedef enum oct_lock_name {
    OCT_LOCK_TURN,     /* which call of the library runs a command */
    OCT_LOCK_WEIGHTS,  /* the table of packed weights */
    OCT_LOCK_ARCHIVES, /* loading libarchive */
    OCT_LOCK_METRICS,  /* records of metrics that were asked for */
    OCT_LOCK_POOLS,    /* pools, whose threads are missing in a child */
    OCT_LOCK_SPILL,    /* blocks outside memory */
    OCT_LOCK_FILES,    /* lists for signal handlers */
    OCT_LOCKS
} oct_lock_name;

void oct_lock(oct_lock_name which);
void oct_unlock(oct_lock_name which);

/* The number of forks between the first process that used a lock and this one. */
unsigned oct_forks(void);

#endif
