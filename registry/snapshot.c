/*
 * The saved lists in memory: read at start, written soon after a change and at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"
#include "registry/routing.h"

enum { REST_FACTOR = 10 }; /* a save that took a second is followed by ten without one */

static struct source *source_named(struct registry *r, struct str name)
{
    for (size_t i = 0; i < r->n_sources; i++) {
        if (str_is(name, r->sources[i].conf.name))
            return &r->sources[i];
    }
    return NULL;
}

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct snapshot_entry *entry_find(const struct registry *r, const char *key)
{
    struct snapshot_entry *e = NULL;

    HASH_FIND_STR(r->snapshot, key, e);
    return e;
}

static void entry_add(struct registry *r, struct snapshot_entry *e)
{
    HASH_ADD_STR(r->snapshot, key, e);
}

void snapshot_free(struct registry *r)
{
    saved_definitions_end(r);
    saved_rules_end(r);
    while (r->snapshot != NULL) {
        struct snapshot_entry *e = r->snapshot;

        HASH_DEL(r->snapshot, e);
        arena_free(&e->arena);
        free(e);
    }
    snapshot_free_revisions(r);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

/* ---------------------------------------------------------------- reading */

static void on_registry(void *ctx, const struct store_registry *s)
{
    struct source *source = source_named(ctx, s->name);

    if (source == NULL)
        return;
    source->known.max_zxid = s->max_zxid;
    source->known.root_czxid = s->root_czxid;
    source->known.consumer_ip = arena_str(&source->home->arena, s->consumer_ip);
}

static void on_entry(void *ctx, const struct store_entry *s)
{
    struct registry *r = ctx;
    struct source *source = source_named(r, s->registry);
    struct snapshot_entry *e = NULL;
    struct buf key;

    if (source == NULL)
        return; /* configured no more */
    buf_init(&key, REFKEY_TEXT_MAX + 1);
    refkey_print(&s->key, &key);
    buf_add_u8(&key, '\0');
    if (entry_find(r, (const char *)key.data) == NULL) {
        e = xcalloc(1, sizeof(*e) + key.len);
        memcpy(e->key, key.data, key.len);
        arena_init(&e->arena);
        e->registry = source->conf.name;
        e->urls = arena_alloc(&e->arena, (s->n_urls + 1) * sizeof(struct str));
        for (size_t i = 0; i < s->n_urls; i++)
            e->urls[i] = arena_str(&e->arena, s->urls[i]);
        e->n = s->n_urls;
        e->czxid = s->czxid;
        e->saved_wall_ms = s->saved_wall_ms;
        e->apps = arena_str(&e->arena, s->apps);
        entry_add(r, e);
    }
    buf_free(&key);
}

static void on_revision(void *ctx, const struct store_revision *v)
{
    struct source *source = source_named(ctx, v->registry);

    if (source != NULL)
        snapshot_add_revision(ctx, source, v);
}

static void on_rule(void *ctx, const struct store_rule *v)
{
    if (source_named(ctx, v->registry) != NULL)
        saved_rules_add(ctx, v);
}

static bool is_on(const struct registry *r)
{
    return r->opts.state_dir != NULL && r->opts.state_dir[0] != '\0' && r->n_sources != 0;
}

void snapshot_load(struct registry *r)
{
    struct store_reader reader = {.on_registry = on_registry,
                                  .on_entry = on_entry,
                                  .on_revision = on_revision,
                                  .on_rule = on_rule,
                                  .on_definition = saved_definitions_load,
                                  .ctx = r};
    struct err e = {0};

    counter_set(&r->numbers.writable, 1);
    if (!is_on(r))
        return;
    switch (store_load(r->opts.state_dir, &reader, &e)) {
    case STORE_OK:
        log_info("registry", "%u saved lists read, %zu could not be read", HASH_COUNT(r->snapshot),
                 reader.n_ignored);
        break;
    case STORE_ABSENT:
        break;
    case STORE_DAMAGED:
    case STORE_IO:
        log_warn("registry", "the saved lists are ignored: %s", e.text);
        break;
    }
    if (store_writable(r->opts.state_dir, &e))
        return;
    log_warn("registry",
             "provider lists cannot be saved, so a start with the registry down will know none: %s",
             e.text);
    counter_set(&r->numbers.writable, 0);
    r->unwritable_told = true;
}

const struct snapshot_entry *snapshot_find(const struct registry *r, const struct source *s,
                                           const char *key)
{
    const struct snapshot_entry *e = entry_find(r, key);
    uint64_t now = wall_ms();
    uint64_t max_ms = s->conf.snapshot_max_age_ms;

    if (e == NULL || s->kind->fixed || e->registry != s->conf.name)
        return NULL;
    return max_ms != 0 && now > e->saved_wall_ms && now - e->saved_wall_ms > max_ms ? NULL : e;
}

bool snapshot_has_list(const struct registry *r, struct str registry, const char *key)
{
    const struct snapshot_entry *e = entry_find(r, key);

    return e != NULL && str_is(registry, e->registry);
}

/* ---------------------------------------------------------------- writing */

static bool is_worth_saving(const struct provider *p)
{
    return p->unusable == USABLE || p->unusable == UNUSABLE_ADDRESS;
}

/* Where there are rules the whole URL is at hand. */
static void print_provider(const struct directory *d, size_t i, struct buf *out)
{
    const struct routing_party *p = d->rules != NULL ? &d->rules->parties[i] : NULL;

    buf_truncate(out, 0);
    provider_print(&d->providers[i], p != NULL ? p->params : NULL, p != NULL ? p->n_params : 0,
                   out);
}

static bool put_reference(struct store_writer *w, const struct reference *ref)
{
    const struct directory *d = ref->directory;
    struct arena a;
    struct buf text;
    struct buf apps;
    struct store_entry e = {
        .registry = str_from(ref->source->conf.name),
        .key = ref->key,
        .czxid = ref->czxid,
        .saved_wall_ms = wall_ms(),
    };
    struct str *urls = NULL;
    bool ok = true;

    arena_init(&a);
    buf_init(&text, 65536);
    buf_init(&apps, MAPPING_TEXT_MAX);
    if (ref->source->kind->print_apps != NULL)
        ref->source->kind->print_apps(ref, &apps);
    e.apps = apps.failed ? STR_NONE : buf_str(&apps);
    urls = arena_alloc(&a, (d->n + 1) * sizeof(*urls));
    for (size_t i = 0; i < d->n; i++) {
        if (!is_worth_saving(&d->providers[i]))
            continue;
        print_provider(d, i, &text);
        urls[e.n_urls++] = arena_str(&a, buf_str(&text));
    }
    e.urls = urls;
    /* that a configured one has no provider is worth knowing: a start with the registry down does not wait for its list */
    if (e.n_urls != 0 || e.apps.n != 0 || (ref->pinned && ref->had_list))
        ok = store_put_entry(w, &e);
    buf_free(&text);
    buf_free(&apps);
    arena_free(&a);
    return ok;
}

/* What nobody has asked for since the start stays as it was: it may be wanted after the next. */
static bool put_unasked(struct registry *r, struct store_writer *w, const struct snapshot_entry *s)
{
    const struct reference *ref = cache_find(r, str_from(s->key));
    struct store_entry e = {.registry = str_from(s->registry),
                            .czxid = s->czxid,
                            .saved_wall_ms = s->saved_wall_ms,
                            .urls = s->urls,
                            .n_urls = s->n,
                            .apps = s->apps};
    struct err err;

    if (ref == NULL ? s->n == 0 && s->apps.n == 0 : ref->had_list || ref->directory != NULL)
        return true;
    return !refkey_parse(str_from(s->key), &e.key, &err) || store_put_entry(w, &e);
}

static bool write_all(struct registry *r, struct err *e)
{
    struct store_writer *w = store_begin(r->opts.state_dir, e);
    bool ok = true;

    if (w == NULL)
        return false;
    for (size_t i = 0; i < r->n_sources; i++)
        ok = store_put_registry(w, &r->sources[i].known) && ok;
    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->directory != NULL && !ref->source->kind->fixed)
            ok = put_reference(w, ref) && ok;
    }
    for (const struct snapshot_entry *s = r->snapshot; s != NULL; s = s->hh.next)
        ok = put_unasked(r, w, s) && ok;
    ok = snapshot_put_revisions(r, w) && ok;
    ok = saved_rules_write(r, w) && ok;
    if (!ok)
        log_warn("registry", "not all provider lists and rules fit into the file of saved lists");
    saved_definitions_write(r, w);
    return store_commit(w, e);
}

void snapshot_save(struct registry *r)
{
    struct err e = {0};
    uint64_t started = clock_ms();
    bool ok = false;

    r->dirty_since_ms = 0;
    if (!is_on(r))
        return;
    ok = write_all(r, &e);
    r->save_not_before_ms = clock_ms() + (clock_ms() - started) * REST_FACTOR;
    counter_set(&r->numbers.writable, ok ? 1 : 0);
    if (ok) {
        counter_set(&r->numbers.saved_wall_ms, wall_ms());
        r->unwritable_told = false;
    } else {
        registry_mark_dirty(r); /* the disk may have room again */
        r->save_not_before_ms = clock_ms() + 10000;
        if (!r->unwritable_told)
            log_warn("registry", "provider lists cannot be saved: %s", e.text);
        r->unwritable_told = true;
    }
}
