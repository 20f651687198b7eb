# Makes a text file into a C string.
s/\\/\\\\/g
s/"/\\"/g
s/^/    "/
s/$/\\n"/
1i\
static const char builtin_policy[] =
$a\
    ;
