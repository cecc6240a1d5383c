/*
 * Sockets to providers.  Any thread.
 */
#pragma once

#include "registry/provider.h"

/* A socket that connects in the background, without Nagle's delay; -1 with errno. */
int dial(const union address *addr) NONNULL MUST_CHECK;
/* When it is writable: 0 = connected, else errno. */
int dial_error(int fd) MUST_CHECK;
/* 0 when there is none. */
uint16_t dial_local_port(int fd);
