/*
 * -t and -T: the configuration tested and printed, without any network.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

int cmd_test(const char *config_file, bool quiet) NONNULL;
int cmd_dump(const char *config_file) NONNULL;
