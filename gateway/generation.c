#include "gateway/generation.h"

#include <stdlib.h>

#include "base/fatal.h"
#include "gateway/wiring.h"

static void bind_services(struct generation *g, struct refs *refs)
{
    const struct settings *s = g->settings;

    g->service_refs = xcalloc(s->n_services + 1, sizeof(struct ref *));
    for (size_t i = 0; i < s->n_services; i++) {
        const struct service *sv = &s->services[i];
        struct peer_opts po;
        struct refkey k;
        struct err e;

        if ((!sv->preload && sv->providers.n == 0) ||
            !refkey_make(sv->interface, sv->version, sv->group, &k, &e))
            continue;
        wiring_peer(s, sv, &po);
        g->service_refs[i] = refs_pin(refs, &k);
        refs_set_peer_opts(g->service_refs[i], &po);
    }
}

struct generation *generation_new(struct settings *s, struct refs *refs, struct route_stats **stats)
{
    struct generation *g = xcalloc(1, sizeof(*g));

    g->settings = settings_get(s);
    g->routes = route_table_build(s);
    bind_services(g, refs);
    g->route_stats = xcalloc(s->n_routes + 1, sizeof(struct route_stats *));
    for (size_t i = 0; i < s->n_routes; i++)
        g->route_stats[i] = route_stats_get(stats, s->routes[i].name, s->routes[i].path);
    return g;
}

void generation_free(struct generation *g)
{
    for (size_t i = 0; i < g->settings->n_services; i++) {
        if (g->service_refs[i] != NULL)
            refs_unpin(g->service_refs[i]);
    }
    route_table_free(g->routes);
    settings_put(g->settings);
    free(g->service_refs);
    free(g->route_stats);
    free(g);
}
