/* tools/qcalib/qcalib.h -- the commands of qcalib. */
#ifndef OCT_TOOLS_QCALIB_H
#define OCT_TOOLS_QCALIB_H

#include "api/calibration_tables.h"
#include "common/common.h"

typedef struct calib_args {
    const char *model, *output;
    bool resume;
    tool_data data;
} calib_args;

typedef struct table_args {
    oct_cli_list tables;
    const char *output, *table, *a, *b;
    bool partial;
} table_args;

typedef struct foreign_args {
    const char *file, *table, *model, *format, *observer, *output;
} foreign_args;

typedef struct pack_args {
    oct_cli_list specs;
    const char *output, *size;
    int64_t count;
} pack_args;

/* tables.c: how calls on tables speak, and the JSON that they write. */
oct_calibration_host qcalib_host(oct_cli *cli);
/* The commands. */
oct_status qcalib_show(oct_cli *cli, const table_args *a, oct_err *err);
oct_status qcalib_diff(oct_cli *cli, const table_args *a, oct_err *err);
oct_status qcalib_export(oct_cli *cli, const foreign_args *a, oct_err *err);
oct_status qcalib_pack(oct_cli *cli, const pack_args *a, oct_err *err);

#endif
