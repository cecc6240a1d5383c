#include "gateway/route_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "gateway/settings.h"

struct route_stats *route_stats_get(struct route_stats **all, struct str name, struct str path)
{
    struct route_stats *s = NULL;
    char text[80];

    snprintf(text, sizeof(text), STR_FMT, STR_ARG(name));
    HASH_FIND_STR(*all, text, s);
    if (s == NULL) {
        s = xcalloc(1, sizeof(*s));
        s->name = strdup(text);
        HASH_ADD_KEYPTR(hh, *all, s->name, strlen(s->name), s);
    }
    free(s->path);
    s->path = strndup(path.p, path.n);
    return s;
}

void route_stats_free_all(struct route_stats *all)
{
    struct route_stats *s = NULL;
    struct route_stats *next = NULL;

    HASH_ITER(hh, all, s, next)
    {
        HASH_DEL(all, s);
        for (size_t i = 0; i < s->n_seen; i++)
            free(s->seen[i].hist);
        free(s->name);
        free(s->path);
        free(s);
    }
}

static uint8_t method_index(struct str method)
{
    for (uint8_t i = 0; i < HTTP_METHODS; i++) {
        if (str_is(method, http_method_names[i]))
            return i;
    }
    return HTTP_METHODS;
}

void route_stats_count(struct route_stats *s, uint16_t status, struct str method_name, uint64_t us)
{
    uint8_t method = method_index(method_name);
    size_t i = 0;

    while (i < s->n_seen && (s->seen[i].status != status || s->seen[i].method != method))
        i++;
    if (i == STATUSES_MAX)
        return;
    if (i == s->n_seen) {
        s->seen[i].status = status;
        s->seen[i].method = method;
        s->seen[i].hist = xcalloc(1, sizeof(struct hist));
        s->n_seen++;
    }
    hist_add(s->seen[i].hist, us);
}
