/*
 * Listening sockets: HOST:PORT, [V6]:PORT or unix:PATH.
 *
 * TCP: one socket per worker on the same port (SO_REUSEPORT), so that the kernel spreads connections and
 * no lock is shared.  Unix sockets know no SO_REUSEPORT: one socket, one descriptor per worker.
 * Threads: control.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

struct listen_opts {
    int backlog;
    unsigned mode; /* permissions of a unix socket */
    bool shared;   /* SO_REUSEPORT */
};

/* A bound and listening, non-blocking socket; -1 with a sentence. */
int listen_open(struct str address, const struct listen_opts *opts, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;

/*
 * Is another process listening there?  With SO_REUSEPORT a second daemon would start without an error and
 * take half of the connections (docs/ROBUSTNESS.md section 0.10), so the address is bound once without it
 * before the workers bind.
 */
bool listen_is_free(struct str address, struct err *e) __attribute__((nonnull(2))) MUST_CHECK;

bool listen_is_unix(struct str address);
/* Takes the file of a unix socket away that listen_open made; nothing for others. */
void listen_remove(struct str address);

/* Parses a numeric or resolvable HOST:PORT; false with a sentence. */
bool listen_parse(struct str address, struct sockaddr_storage *out, socklen_t *len, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;
