/* lib/eval/run/environment.h -- describes the machine, for reports with times. */
#ifndef OCT_EVAL_ENVIRONMENT_H
#define OCT_EVAL_ENVIRONMENT_H

typedef struct oct_environment {
    char cpu[96];          /* the name of the processor, as the system reports it; "" if it does not */
    int processors;        /* how many this process may use */
    const char *available; /* the highest instruction set of the processor */
    const char *used;      /* the highest instruction set that kernels may use */
    double load; /* the load average of the last minute: processes that ran or waited to run; NaN: not known */
} oct_environment;

void oct_environment_read(oct_environment *e);

#endif
