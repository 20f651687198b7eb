/* lib/base/fork.h -- what a child that was made by fork() finds.
 *
 * Only the thread that called fork() exists in the child. A lock that another thread held would never be released
 * there. So the locks of the whole process are in one list; fork() waits for them, and they are free on both sides.
 * Objects with threads of their own compare oct_forks() with what it was when they were made. */
#ifndef OCT_BASE_FORK_H
#define OCT_BASE_FORK_H

/* In the order in which they nest: who holds one takes only later ones. */
typedef enum oct_lock_name {
    OCT_LOCK_TURN,     /* which of the library's calls runs a command */
    OCT_LOCK_WEIGHTS,  /* the table of packed weights */
    OCT_LOCK_ARCHIVES, /* loading libarchive */
    OCT_LOCK_METRICS,  /* records of metrics that were asked for */
    OCT_LOCK_POOLS,    /* pools that a child finds without threads */
    OCT_LOCK_SPILL,    /* blocks outside memory */
    OCT_LOCK_FILES,    /* lists for signal handlers */
    OCT_LOCKS
} oct_lock_name;

void oct_lock(oct_lock_name which);
void oct_unlock(oct_lock_name which);

/* How many forks lie between the first process that used a lock and this one. */
unsigned oct_forks(void);

#endif
