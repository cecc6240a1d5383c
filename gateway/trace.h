/*
 * Identity of a request: X-Request-Id (26 characters, ordered by time) and W3C trace context.
 *
 * Pure functions over a generator state that belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { REQUEST_ID_LEN = 26, TRACEPARENT_LEN = 55 };

/* Writes the id and a NUL; `random` is the caller's generator state. */
void request_id_make(uint64_t wall_ms, uint64_t *random, char out[REQUEST_ID_LEN + 1])
    __attribute__((nonnull));
/* 1 to 128 of [A-Za-z0-9._-]: may be taken over. */
bool request_id_is_good(struct str s);

/* VERSION-TRACE-SPAN-FLAGS with neither id all zero; later versions may append more. */
bool traceparent_is_good(struct str s);
/* A new span in the given trace (its good traceparent), or in a new one when parent.n == 0. */
void traceparent_make(struct str parent, uint64_t *random, char out[TRACEPARENT_LEN + 1])
    __attribute__((nonnull(2, 3)));
