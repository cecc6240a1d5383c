/*
 * systemd's notification datagram.  Without $NOTIFY_SOCKET nothing happens.
 */
#pragma once

#include "base/compiler.h"

/* e.g. "READY=1\nSTATUS=ready" */
void notify_send(const char *state) NONNULL;
