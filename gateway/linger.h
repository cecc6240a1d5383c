/*
 * Whether a request that waits for its provider is suspended in libmicrohttpd, or left in its list of ready
 * connections for a few turns of the loop (docs/ARCHITECTURE.md, "Threads").
 *
 * Suspending takes the socket out of the library's epoll set, resuming puts it back and reads it once more
 * for nothing: three system calls, a tenth to a fifth of a short call's CPU.  Lingering costs one callback per turn,
 * and the loop must not sleep meanwhile.  So it is right when the loop would not sleep anyway and the
 * answer is near: under load, with a fast provider.  Which it is, is learned from what became of the last ones.
 *
 * Belongs to one worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
    LINGER_TURNS = 8,    /* then it is suspended after all */
    LINGER_MIN = 8,      /* calls in flight: with fewer the loop sleeps between them */
    LINGER_MAX = 128,    /* at the same time: each turn visits all of them */
    LINGER_CREDIT = 256, /* the most that answers in time can earn */
    LINGER_LOSS = 8,     /* what one that waited in vain costs */
    LINGER_PROBE = 64,   /* without credit, one request in so many tries again */
};

struct lingering {
    unsigned n; /* lingering now */
    unsigned credit;
    unsigned since_probe;
};

/* May one more request linger?  If so it is counted in `n`.  `in_flight`: calls of this worker. */
bool linger_begin(struct lingering *l, unsigned in_flight) NONNULL;
/* It was answered while it lingered. */
void linger_answered(struct lingering *l) NONNULL;
/* It waited LINGER_TURNS in vain. */
void linger_in_vain(struct lingering *l) NONNULL;
/* Its client left. */
void linger_cancel(struct lingering *l) NONNULL;
