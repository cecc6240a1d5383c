/*
 * What the admin interface shows of the registry thread.  References are written one by one: with many
 * thousands of them a tree of JSON values would be larger than all the lists.
 */
#include <stdlib.h>

#include <jansson.h>

#include "base/clock.h"
#include "registry/core.h"
#include "registry/reference_definitions.h"
#include "registry/rules.h"

static json_t *time_json(uint64_t at_wall_ms)
{
    char text[TIME_TEXT_LEN + 1];

    if (at_wall_ms == 0)
        return json_null();
    time_text(at_wall_ms, text);
    return json_string(text);
}

static json_t *text_json(struct str s)
{
    return json_stringn(s.n != 0 ? s.p : "", s.n);
}

static json_int_t number(const struct counter *c)
{
    return (json_int_t)counter_get(c);
}

/* Appends the value and frees it. */
static void print(json_t *o, struct buf *out)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);

    buf_add_str(out, str_from(text != NULL ? text : "null"));
    free(text);
    json_decref(o);
}

/* ---------------------------------------------------------------- one reference */

static const char *source_name(const struct reference *ref)
{
    if (ref->directory == NULL)
        return "none";
    switch (ref->directory->source) {
    case DIRECTORY_REGISTRY:
        return "registry";
    case DIRECTORY_STATIC:
        return "configuration";
    case DIRECTORY_SNAPSHOT:
        return "snapshot";
    }
    return "none";
}

static json_t *provider_json(const struct provider *p)
{
    json_t *o = json_object();
    struct buf b;

    buf_init(&b, 512);
    url_add_host_port(p->host, p->port, &b);
    json_object_set_new(o, "address", text_json(buf_str(&b)));
    buf_free(&b);
    json_object_set_new(o, "state",
                        json_string(p->unusable != USABLE ? unusable_name(p->unusable)
                                    : p->unlisted         ? "unlisted"
                                                          : "listed"));
    json_object_set_new(o, "weight", json_integer(p->weight));
    json_object_set_new(o, "release", text_json(p->release));
    json_object_set_new(o, "application", text_json(p->application));
    json_object_set_new(o, "found", json_string(provider_found_name(p)));
    return o;
}

static json_t *providers_json(const struct directory *d)
{
    json_t *o = json_object();
    json_t *ignored = json_object();
    json_t *list = json_array();
    json_int_t unlisted = 0;

    for (size_t i = 0; d != NULL && i < d->n; i++) {
        unlisted += d->providers[i].unlisted ? 1 : 0;
        json_array_append_new(list, provider_json(&d->providers[i]));
    }
    json_object_set_new(o, "usable", json_integer(d != NULL ? (json_int_t)d->n_usable : 0));
    json_object_set_new(o, "unlisted", json_integer(unlisted));
    for (enum unusable u = UNUSABLE_PROTOCOL; u < UNUSABLE_REASONS; u++)
        json_object_set_new(ignored, unusable_name(u),
                            json_integer(d != NULL ? (json_int_t)d->n_ignored[u] : 0));
    json_object_set_new(o, "ignored", ignored);
    json_object_set_new(o, "list", list);
    return o;
}

static json_t *node_json(const struct reference *ref)
{
    json_t *name = NULL;
    struct buf b;

    buf_init(&b, 32768);
    ref->source->kind->node_name(ref, &b);
    name = b.len != 0 ? json_stringn((const char *)b.data, b.len) : json_null();
    buf_free(&b);
    return name;
}

static json_t *events_json(const struct reference *ref)
{
    json_t *list = json_array();
    unsigned n = ref->n_events < REFERENCE_EVENTS ? ref->n_events : REFERENCE_EVENTS;

    for (unsigned i = 0; i < n; i++) {
        const struct reference_event *e = &ref->events[(ref->n_events - n + i) % REFERENCE_EVENTS];
        json_t *o = json_object();

        json_object_set_new(o, "time", time_json(e->wall_ms));
        json_object_set_new(o, "text", json_string(e->text != NULL ? e->text : ""));
        json_array_append_new(list, o);
    }
    return list;
}

/* Which applications' methods are known; with their text only where one reference is asked for. */
static json_t *definitions_json(const struct reference *ref, bool whole)
{
    json_t *list = json_array();

    for (size_t i = 0; ref->definitions != NULL && i < ref->definitions->n; i++) {
        const struct described *d = &ref->definitions->v[i];
        json_t *o = NULL;

        if (d->definition == NULL)
            continue;
        o = json_object();
        json_object_set_new(o, "application", json_string(d->application));
        json_object_set_new(o, "source", json_string(definition_source_name(d->source)));
        if (whole) {
            json_t *text = json_loadb(d->definition->text, d->definition->n, 0, NULL);

            json_object_update(o, text);
            json_decref(text);
        }
        json_array_append_new(list, o);
    }
    return list;
}

/* Of conditions and tags, which decide call by call. */
static json_t *rules_json(const struct directory *d)
{
    json_t *list = json_array();

    for (size_t i = 0; d != NULL && d->rules != NULL && i < d->rules->n; i++) {
        struct str name = d->rules->v[i].rules->name;

        json_array_append_new(list, json_stringn(name.p, name.n));
    }
    return list;
}

static json_t *bad_rules_json(const struct reference *ref)
{
    json_t *list = json_array();
    const struct source *s = ref->source;

    if (s->kind->bad_rules != NULL && s->impl != NULL)
        s->kind->bad_rules(s->impl, ref, list);
    return list;
}

static json_t *reference_json(const struct reference *ref, bool whole)
{
    json_t *o = json_object();

    json_object_set_new(o, "key", json_string(ref->key_text));
    json_object_set_new(o, "registry",
                        ref->source->conf.name != NULL ? json_string(ref->source->conf.name)
                                                       : json_null());
    json_object_set_new(
        o, "state",
        json_string(ref->evict_pending != 0 ? "idle" : reference_state_name(ref->state)));
    json_object_set_new(o, "source", json_string(source_name(ref)));
    json_object_set_new(o, "pinned", json_boolean(ref->pinned));
    json_object_set_new(o, "providers", providers_json(ref->directory));
    json_object_set_new(o, "created", time_json(ref->created_wall_ms));
    json_object_set_new(o, "last_used", time_json(wall_ms() - (clock_ms() - ref->last_used_ms)));
    json_object_set_new(o, "last_change", time_json(ref->last_change_wall_ms));
    json_object_set_new(o, "subscribes", json_integer(ref->subscribes));
    json_object_set_new(o, "consumer_node", node_json(ref));
    json_object_set_new(o, "rules", rules_json(ref->directory));
    if (whole)
        json_object_set_new(o, "rules_not_obeyed", bad_rules_json(ref));
    json_object_set_new(o, "definitions", definitions_json(ref, whole));
    json_object_set_new(o, "events", events_json(ref));
    return o;
}

/* ---------------------------------------------------------------- the lists */

static json_t *by_state_json(const struct registry *r)
{
    json_t *o = json_object();

    for (enum reference_state s = REFERENCE_WANTED; s < REFERENCE_STATES; s++)
        json_object_set_new(o, reference_state_name(s),
                            json_integer(number(&r->numbers.references[s])));
    json_object_set_new(o, "idle", json_integer(r->n_evicting));
    return o;
}

static void add_number(struct buf *out, const char *name, json_int_t n)
{
    buf_printf(out, "\"%s\":%lld,", name, (long long)n);
}

static json_t *refused_json(const struct registry *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < REFUSED_KEPT; i++) {
        const struct refused *e = &r->refused[i];
        json_t *o = NULL;

        if (e->key == NULL)
            continue;
        o = json_object();
        json_object_set_new(o, "key", json_string(e->key));
        json_object_set_new(o, "time", time_json(e->wall_ms));
        json_object_set_new(o, "reason", json_string(refused_reason(e->why)));
        json_array_append_new(list, o);
    }
    return list;
}

void registry_print_references(const struct registry *r, struct str key, struct buf *out)
{
    const struct reference *only = key.n != 0 ? cache_find(r, key) : NULL;

    json_int_t subscriptions = (json_int_t)(r->n_references - r->n_lookups);
    const char *comma = "";

    buf_add_u8(out, '{');
    add_number(out, "count", subscriptions); /* look-ups do not stay */
    add_number(out, "limit", (json_int_t)r->opts.max_references);
    buf_printf(out, "\"by_state\":");
    print(by_state_json(r), out);
    buf_add_u8(out, ',');
    add_number(out, "subscriptions", subscriptions);
    add_number(out, "subscriptions_total", number(&r->numbers.subscriptions));
    add_number(out, "watches", number(&r->numbers.watches));
    add_number(out, "consumer_nodes", number(&r->numbers.consumer_nodes));
    add_number(out, "registry_writes_total",
               number(&r->numbers.creates) + number(&r->numbers.deletes));
    add_number(out, "evicted_total", number(&r->numbers.evictions));
    add_number(out, "lookups", (json_int_t)r->n_lookups);
    add_number(out, "unknown_names", (json_int_t)r->n_negatives);
    buf_printf(out, "\"refused\":");
    print(refused_json(r), out);
    buf_printf(out, ",\"references\":[");
    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (!ref->watched || (key.n != 0 && ref != only))
            continue;
        buf_add_str(out, str_from(comma));
        print(reference_json(ref, key.n != 0), out);
        comma = ",";
    }
    buf_printf(out, "]}");
}

static json_t *snapshot_json(const struct registry *r)
{
    json_t *o = json_object();
    uint64_t saved = counter_get(&r->numbers.saved_wall_ms);

    json_object_set_new(o, "directory",
                        r->opts.state_dir != NULL ? json_string(r->opts.state_dir) : json_null());
    json_object_set_new(o, "writable", json_boolean(counter_get(&r->numbers.writable) != 0));
    json_object_set_new(o, "saved", time_json(saved));
    json_object_set_new(o, "read_at_start", json_integer(HASH_COUNT(r->snapshot)));
    return o;
}

static json_t *source_json(const struct registry *r, const struct source *s)
{
    json_t *o = json_object();
    json_int_t references = 0;

    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next)
        references += ref->source == s && ref->watched ? 1 : 0;
    json_object_set_new(o, "name", json_string(s->conf.name));
    json_object_set_new(o, "connected", json_boolean(s->connected));
    json_object_set_new(o, "since_s",
                        json_integer((json_int_t)((clock_ms() - s->changed_ms) / 1000)));
    s->kind->report(s->impl, o);
    json_object_set_new(o, "references", json_integer(references));
    json_object_set_new(o, "watches", json_integer(number(&r->numbers.watches)));
    json_object_set_new(o, "writes_total",
                        json_integer(number(&r->numbers.creates) + number(&r->numbers.deletes)));
    json_object_set_new(o, "events_total", json_integer(number(&r->numbers.events)));
    json_object_set_new(o, "reconnects", json_integer(number(&r->numbers.reconnects)));
    json_object_set_new(o, "sessions_expired", json_integer(number(&r->numbers.expired)));
    json_object_set_new(o, "snapshot", snapshot_json(r));
    return o;
}

void registry_print_registries(const struct registry *r, struct buf *out)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->n_sources; i++)
        json_array_append_new(list, source_json(r, &r->sources[i]));
    print(list, out);
}
