/*
 * One try of a call at one provider: what is counted while it runs, and what its end says of the provider.
 */
#pragma once

#include "gateway/call.h"

/* The call is on its way to `ep`. */
void call_try_begin(struct call *c, struct endpoint *ep) NONNULL;
/* The connection took nothing: there was no try. */
void call_try_withdraw(struct call *c) NONNULL;
/* Nothing happens when none runs.  The endpoint may be freed. */
void call_try_end(struct call *c, enum outcome o) NONNULL;
