# Makes a text file into the lines of a C string, for an initializer to include; blanks that indent are left out.
s/^ *//
s/\\/\\\\/g
s/"/\\"/g
s/^/    "/
s/$/\\n"/
