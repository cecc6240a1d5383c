/*
 * Which provider of 2.6 is asked for its methods by telnet (docs/REGISTRY.md section 7.5).
 *
 * Registry thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

struct described;
struct reference;

/* Asks one of the application's providers.  False: nobody is asked; with `tell` an event says why. */
bool reference_ask_telnet(struct reference *ref, const struct described *d,
                          bool tell) NONNULL MUST_CHECK;
