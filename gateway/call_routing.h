/*
 * Which providers of its reference a call may go to by the rules (docs/REGISTRY.md section 5).
 *
 * Threads: the call's worker.
 */
#pragma once

#include "registry/routing.h"
#include "gateway/call.h"

/* False: all of them, `set` is not touched.  Else bit i stands for provider i of the directory; `set` has room for
 * ROUTING_WORDS_MAX words. */
bool call_route(const struct call *c, uint64_t *set) NONNULL MUST_CHECK;
/* True, and the problem is set: configurators have disabled every provider that could take it. */
bool call_all_disabled(struct call *c) NONNULL;
/* Sets the problem of a call that rules leave nobody: which rule did it, and how many there were before. */
void call_route_problem(struct call *c) NONNULL;
