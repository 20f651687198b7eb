/* The programs' main; the build says which tool TOOL_MAIN is. */
#include "common/common.h"

int main(int argc, char **argv)
{
    return TOOL_MAIN(argc, argv, NULL);
}
