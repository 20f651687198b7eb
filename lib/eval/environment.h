/* lib/eval/environment.h -- what a report of times says of the machine. */
#ifndef OCT_EVAL_ENVIRONMENT_H
#define OCT_EVAL_ENVIRONMENT_H

typedef struct oct_environment {
    char cpu[96];          /* its name as the system tells it; "" where it does not */
    int processors;        /* that this process may use */
    const char *available; /* the highest instruction set that it has */
    const char *used;      /* the highest that kernels may use */
    double load;           /* processes that ran or waited to, on average over the last minute; NaN: not known */
} oct_environment;

void oct_environment_read(oct_environment *e);

#endif
