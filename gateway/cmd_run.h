/*
 * The daemon as a command.
 */
#pragma once

#include "base/compiler.h"

/* $DUBBOGATE_CONFIG, else the installed place. */
const char *run_default_config(void);
int cmd_run(const char *config_file) NONNULL;
