/*
 * Outlier detection: a provider that fails call after call is ejected for a while, then one call tries whether it is
 * well again (docs/OPERATIONS.md section 2.6).
 *
 *   IN --failures in a row--> OUT --time is up, or connected anew--> TRIAL --answer--> IN
 *                              ^------------- the trial failed ---------+
 *
 * Per reference, provider and worker, in the worker's thread.  A provider may be bad for one service and well for
 * others, and no worker waits for another.  An ejected provider that is not connected is dialled again by the calls
 * that pass it by: they do not wait for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct endpoint;
struct ref;

struct outlier_policy {
    uint32_t failures; /* in a row; 0 = never ejected */
    uint32_t base_ms;  /* times the number of ejections … */
    uint32_t max_ms;   /* … but not longer */
    uint32_t max_percent;
};

enum outlier_use {
    OUTLIER_IN = 0, /* as any other */
    OUTLIER_TRIAL,  /* out, but the next call may try it */
    OUTLIER_OUT,
};

/* Only when ep->outlier is not NULL: once ejected, now or before.  Dials an ejected one that is not connected. */
enum outlier_use outlier_judge(struct endpoint *ep, uint64_t now_ms) NONNULL MUST_CHECK;

/* Are so many of the usable providers ejected that their failures are nobody's own?  Then all are used again. */
bool outlier_panic(const struct ref *r, const struct outlier_policy *p) NONNULL MUST_CHECK;

/* A try begins: is it the trial?  outlier_end() wants to hear. */
bool outlier_begin(struct endpoint *ep, uint64_t now_ms) NONNULL MUST_CHECK;

enum outlier_result {
    OUTLIER_ANSWERED,
    OUTLIER_FAILED, /* by the provider's fault, as the table of outcomes says */
    OUTLIER_CALLED_OFF,
};
/* The try ended; counts failures in a row. */
void outlier_end(struct ref *r, struct endpoint *ep, const struct outlier_policy *p,
                 enum outlier_result result, bool trial, uint64_t now_ms) NONNULL;

/* The set of usable endpoints is another one. */
void outlier_recount(struct ref *r) NONNULL;

/* Time that is left of the ejection in ms; 0 = not ejected, or due for a trial. */
uint64_t outlier_left_ms(const struct endpoint *ep, uint64_t now_ms) NONNULL;
bool outlier_is_ejected(const struct endpoint *ep) NONNULL;
