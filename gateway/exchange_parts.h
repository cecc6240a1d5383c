/*
 * What exchange.c (requests) and exchange_answer.c (answers and waiting for them) share.
 */
#pragma once

#include "gateway/exchange.h"

/* Into another phase, whose clock begins now. */
void client_enter(struct client *c, enum phase to) NONNULL;
/* A lingering exchange is visited, once per turn: after LINGER_TURNS it is suspended.  Inside the library's
 * callback for its connection only. */
void exchange_linger(struct exchange *x) NONNULL;
