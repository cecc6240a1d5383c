/*
 * What this program is, for --version and /info.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* To stdout; `libraries` adds the versions compiled against and loaded. */
void version_print(bool libraries);
/* {"microhttpd":{"compiled":"0.9.75","loaded":"0.9.75"},…} */
void version_libraries_json(struct buf *out) NONNULL;
