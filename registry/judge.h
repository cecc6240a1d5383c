/*
 * What it means when providers are missing in a new list (docs/REGISTRY.md section 9.4).
 *
 *   same list, some fewer           they deregistered: they go at once
 *   same list, most of them gone    rather their sessions or the registry than they themselves: they stay as
 *     within five seconds           `unlisted`, usable over a connection that lives, until they are lost to
 *   another list than before        every worker (refused, closed, said goodbye) or listed again and removed
 *     (or none, or an older one)    the same: the registry lost its data
 *
 * Pure but for the window that the caller keeps; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/directory.h"

enum { JUDGE_WINDOW_MS = 5000 };

/* How many have gone lately; all zero at the start. */
struct judge_window {
    uint64_t since_ms;
    uint32_t base; /* most that were listed since then */
    uint32_t gone; /* since then, less those that came */
};

enum judgement {
    JUDGED_NORMAL = 0,
    JUDGED_MASS,     /* most have vanished within the window */
    JUDGED_REPLACED, /* it is another list than before */
};

struct judge_input {
    const struct directory *old;
    const struct provider *now; /* what the registry lists, in any order */
    size_t n_now;
    bool same_list; /* the list that `old` came from, changed; not another one in its place */
    uint64_t now_ms;
};

/*
 * Writes to `out` (room for old->n) the providers of `old` that are not listed and stay: under
 * JUDGED_NORMAL only those that were unlisted before.  Unusable ones never stay.
 */
enum judgement judge_list(const struct judge_input *in, struct judge_window *w,
                          struct provider *out, size_t *n_out) NONNULL MUST_CHECK;
