#include "check.h"
void check_values(oct_check *t) { (void)t; }
