/*
 * Civil dates without a C library clock: days and milliseconds since 1970, UTC, proleptic Gregorian.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct civil {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

struct civil date_civil(int64_t days);
int64_t date_days(int64_t year, int month, int day);
bool date_is_valid(int64_t year, int month, int day);

/* 2023-11-14T22:13:20.123Z, or the number of milliseconds outside the years 0000 to 9999; no quotes.
 * True when it was a text. */
bool date_add_rfc3339(struct buf *out, int64_t ms);

/* As Java's toString: 2023-11-14 (year with sign beyond 9999); 22:13[:20[.123[456[789]]]]. */
void date_add_iso_date(struct buf *out, int64_t year, int month, int day);
void date_add_iso_time(struct buf *out, int hour, int minute, int second, int nano);
