/*
 * The last names from outside that got no list: they leave no reference behind, and the operator who asks "why"
 * must still get an answer (docs/OPERATIONS.md section 3).  A ring; the same name again only moves its time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "registry/core.h"

void refused_note(struct registry *r, const char *key, enum registry_refusal why)
{
    struct refused *e = NULL;

    for (size_t i = 0; e == NULL && i < REFUSED_KEPT; i++) {
        if (r->refused[i].key != NULL && strcmp(r->refused[i].key, key) == 0)
            e = &r->refused[i];
    }
    if (e == NULL) {
        e = &r->refused[r->n_refused++ % REFUSED_KEPT];
        free(e->key);
        e->key = strdup(key);
    }
    e->wall_ms = wall_ms();
    e->why = why;
}

const char *refused_reason(enum registry_refusal why)
{
    switch (why) {
    case REFUSAL_NONE:
        break;
    case REFUSAL_UNKNOWN:
        return "the registry does not know this interface, or no provider of it has this version and group "
               "(of an application whose metadata cannot be read the log says so)";
    case REFUSAL_LIMIT:
        return "too many different services are in use, or too many new names were asked for in one second";
    case REFUSAL_STARTING:
        return "the registry was not connected, so the name could not be looked up";
    }
    return "";
}

void refused_free(struct registry *r)
{
    for (size_t i = 0; i < REFUSED_KEPT; i++) {
        free(r->refused[i].key);
        r->refused[i].key =
            NULL; /* the registry's thread does this, and who frees the registry once more */
    }
}
