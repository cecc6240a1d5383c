/*
 * Time.  `clock_ms` and `clock_us` never jump (CLOCK_MONOTONIC): every timeout, back-off and token
 * uses them.  `wall_ms` is for people and logs only.
 *
 * Threads: any.  Each call asks the kernel (a vDSO call, some 20 ns); loops that need the time
 * often keep one value per turn.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_us(void);
uint64_t clock_ms(void);
uint64_t wall_ms(void);

enum { TIME_TEXT_LEN = 24 }; /* 2026-01-15T08:30:12.345Z */

/* RFC 3339, UTC, milliseconds; writes TIME_TEXT_LEN characters and a NUL. */
void time_text(uint64_t wall_millis, char out[TIME_TEXT_LEN + 1]);
