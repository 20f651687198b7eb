#!/bin/sh
# Called by `meson dist` before it packs: all files get the date of the commit and plain modes, so that the archive of a commit has the same bytes whenever
# it is made. (Files that were checked out have the date of that.)
set -eu
cd "$MESON_DIST_ROOT"
date=${SOURCE_DATE_EPOCH-$(git -C "$MESON_SOURCE_ROOT" log -1 --format=%ct)}
chmod -R u=rwX,go=rX .
find . -exec touch -h -d "@$date" {} +
