/*
 * Date and time texts as clients write them (docs/JSON.md part A1).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum date_part { DATE_HAS_DATE = 1, DATE_HAS_TIME = 2, DATE_HAS_ZONE = 4 };

struct date_fields {
    unsigned parts; /* bit set of enum date_part */
    int64_t year;
    int month, day;
    int hour, minute, second;
    int32_t nano;
    int32_t offset_s; /* with DATE_HAS_ZONE; seconds east of UTC */
    struct str zone;  /* text in brackets behind the offset, "Asia/Shanghai"; empty = none */
};

/* YYYY-MM-DD, HH:MM[:SS[.fraction]], both with 'T' or a blank between, then Z or ±HH[:MM[:SS]] and [Zone]. */
bool date_parse(struct str text, struct date_fields *out) __attribute__((nonnull(2))) MUST_CHECK;
/* Milliseconds since 1970 UTC; `utc_offset_s` counts where the text names no zone. */
int64_t date_millis(const struct date_fields *d, int32_t utc_offset_s) __attribute__((nonnull(1)));
/* PnDTnHnMn.nS as java.time.Duration takes it. */
bool date_parse_duration(struct str text, int64_t *seconds, int32_t *nanos)
    __attribute__((nonnull(2, 3))) MUST_CHECK;
/* PnYnMnWnD as java.time.Period takes it. */
bool date_parse_period(struct str text, int32_t out[3]) __attribute__((nonnull(2))) MUST_CHECK;
/* Z or ±HH[:MM[:SS]] */
bool date_parse_offset(struct str text, int32_t *seconds) __attribute__((nonnull(2))) MUST_CHECK;
