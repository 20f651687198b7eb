/* The main function of the programs. The build defines TOOL_MAIN as the tool's function. */
#include "common/common.h"

int main(int argc, char **argv)
{
    return TOOL_MAIN(argc, argv);
}
