#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/zk_apps.h"

enum {
    ASKED_PER_ROUND = 3
}; /* instances that are asked, one after the other, before the next pause */

static struct zk_revision *find(const struct zk_app *app, struct str revision)
{
    list_each(l, &app->revisions) {
        struct zk_revision *r = container_of(l, struct zk_revision, link);

        if (str_is(revision, r->revision))
            return r;
    }
    return NULL;
}

/* Without users. */
static struct zk_revision *new_revision(struct zk_app *app, struct str revision)
{
    struct zk_revision *r = xcalloc(1, sizeof(*r) + revision.n + 1);

    memcpy(r->revision, revision.p, revision.n);
    r->app = app;
    arena_init(&r->arena);
    list_init(&r->link);
    list_add(&app->revisions, &r->link);
    app->n_unused++;
    return r;
}

struct zk_revision *zk_revision_get(struct zk_app *app, struct str revision, bool remote)
{
    struct zk_revision *r = find(app, revision);

    if (r == NULL)
        r = new_revision(app, revision);
    r->remote = remote;
    if (r->users++ == 0)
        app->n_unused--;
    return r;
}

static void set_asking(struct zk_revision *r, bool on)
{
    if (r->asking == on)
        return;
    r->asking = on;
    r->app->n_asking += on ? 1U : 0U;
    r->app->n_asking -= on ? 0U : 1U;
}

static void free_unused(struct zk_revision *r)
{
    ASSERT(r->users == 0);
    set_asking(r, false);
    r->app->n_unused--;
    list_remove(&r->link);
    arena_free(&r->arena);
    free(r);
}

static void free_oldest(struct zk_app *app)
{
    list_each(l, &app->revisions) {
        struct zk_revision *r = container_of(l, struct zk_revision, link);

        if (r->users == 0) {
            free_unused(r);
            return;
        }
    }
}

void zk_revision_put(struct zk_revision *r)
{
    if (r == NULL)
        return;
    ASSERT(r->users > 0);
    if (--r->users != 0)
        return;
    r->app->n_unused++;
    list_remove(&r->link);
    list_add(&r->app->revisions, &r->link);
    if (!r->known)
        free_unused(r);
    else if (r->app->n_unused > REVISIONS_KEPT)
        free_oldest(r->app);
}

static void restore(void *ctx, const struct store_revision *v)
{
    struct zk_revision *r = find(ctx, v->revision);

    if (r != NULL)
        return; /* twice in the file */
    r = new_revision(ctx, v->revision);
    metadata_copy(&v->services, &r->arena, &r->services);
    r->known = true;
}

void zk_revisions_restore(struct zk_app *app)
{
    snapshot_take_revisions(app->zk->source, str_from(app->name), restore, app);
}

void zk_revisions_free(struct zk_app *app)
{
    while (!list_empty(&app->revisions))
        free_unused(container_of(app->revisions.next, struct zk_revision, link));
}

static bool save(const struct zk_app *app, struct store_writer *w)
{
    bool ok = true;

    list_each(l, &app->revisions) {
        const struct zk_revision *r = container_of(l, struct zk_revision, link);

        if (r->known)
            ok = store_put_revision(
                     w, &(struct store_revision){.registry = str_from(app->zk->source->conf.name),
                                                 .app = str_from(app->name),
                                                 .revision = str_from(r->revision),
                                                 .services = r->services}) &&
                 ok;
    }
    return ok;
}

bool zk_save_revisions(const void *kind, struct store_writer *w)
{
    const struct zk *z = kind;
    bool ok = true;

    for (const struct zk_app *app = z->apps; app != NULL; app = app->hh.next)
        ok = save(app, w) && ok;
    return ok;
}

/* ---------------------------------------------------------------- answers */

/* For `why`: once when it fails, once when it is read after all. */
static void tell_references(struct zk_revision *r, const char *why)
{
    if (r->failed == (why != NULL))
        return;
    r->failed = why != NULL;
    list_each(u, &r->app->uses) {
        list_each(l, &container_of(u, struct zk_use, of_app)->path->refs) {
            struct reference *ref = container_of(l, struct zk_ref, link)->ref;

            if (why != NULL)
                reference_event(ref, "what %s exports, revision %s, cannot be read: %s",
                                r->app->name, r->revision, why);
            else
                reference_event(ref, "what %s exports, revision %s, is known now", r->app->name,
                                r->revision);
        }
    }
}

static void on_failure(struct zk_revision *r, const char *why)
{
    uint64_t now = clock_ms();
    bool again = !r->remote && r->n_asked % ASKED_PER_ROUND != 0;

    tell_references(r, why);
    set_asking(r, false);
    r->retry_at_ms = again ? now : now + METADATA_AGAIN_MS;
    log_warn("registry",
             "%s: metadata of revision %s cannot be read: %s; its instances are listed only "
             "if they were before",
             r->app->name, r->revision, why);
}

static void on_text(struct zk_revision *r, struct str json)
{
    struct err e = {0};
    size_t skipped = 0;

    if (!metadata_parse(json, str_from(r->app->name), &r->arena, &r->services, &skipped, &e)) {
        on_failure(r, e.text);
        return;
    }
    tell_references(r, NULL);
    set_asking(r, false);
    r->known = true;
    registry_mark_dirty(r->app->zk->source->home);
    log_info("registry", "%s: revision %s exports %zu services, %zu of them cannot be understood",
             r->app->name, r->revision, r->services.n + skipped, skipped);
    zk_instances_settle(r->app);
}

static void on_node(struct zk_session *s, struct zk_op *op)
{
    struct zk_app *app = zk_app_find(s->zk, str_from(op->key));
    struct zk_revision *r = app != NULL && app->session == s
                                ? find(app, str_from(strrchr(op->path, '/') + 1))
                                : NULL;

    if (r == NULL || !r->asking)
        return;
    if (zk_is_lost(op->rc))
        set_asking(r, false); /* asked again by the tick */
    else if (op->rc == ZOK)
        on_text(r, (struct str){op->data, op->n_data});
    else
        on_failure(r, zk_why(op));
    zk_app_answered(app);
}

void zk_on_metadata(void *kind, const char *app_name, const char *revision, struct str json)
{
    struct zk_app *app = zk_app_find(kind, str_from(app_name));
    struct zk_revision *r = app != NULL ? find(app, str_from(revision)) : NULL;

    if (r == NULL || !r->asking || r->remote)
        return;
    if (json.p != NULL)
        on_text(r, json);
    else
        on_failure(r, "the instance did not answer");
    zk_revisions_ask(app, clock_ms());
    zk_app_answered(app);
}

/* ---------------------------------------------------------------- questions */

static void read_node(struct zk_revision *r)
{
    struct zk_session *s = r->app->session;
    struct zk_op *op = NULL;
    struct arena a;

    if (!zk_can_send(s))
        return;
    arena_init(&a);
    op = zk_op_new(
        s, r->app->name,
        arena_printf(&a, "%s/metadata/%s/%s", s->zk->source->conf.root, r->app->name, r->revision)
            .p,
        on_node);
    arena_free(&a);
    set_asking(r, true);
    zk_op_sent(op, zoo_awget(s->handle->h, op->path, NULL, NULL, zk_on_data, op));
}

/* The one whose turn it is, of those that have the revision and can be asked. */
static const struct zk_instance *whom_to_ask(const struct zk_revision *r)
{
    unsigned n = 0;
    unsigned turn = 0;

    for (const struct zk_instance *i = r->app->instances; i != NULL; i = i->hh.next)
        n += i->wanted == r && i->v->ask_port != 0 ? 1U : 0U;
    if (n == 0)
        return NULL;
    turn = r->n_asked % n;
    for (const struct zk_instance *i = r->app->instances; i != NULL; i = i->hh.next) {
        if (i->wanted == r && i->v->ask_port != 0 && turn-- == 0)
            return i;
    }
    return NULL;
}

static void ask_instance(struct zk_revision *r)
{
    const struct source *source = r->app->zk->source;
    const struct zk_instance *i = whom_to_ask(r);
    struct metadata_question q = {.app = r->app->name, .revision = r->revision};
    struct err e = {0};

    if (i == NULL) {
        r->retry_at_ms = clock_ms() + METADATA_AGAIN_MS;
        log_warn("registry", "%s: no instance of revision %s can be asked what it exports",
                 r->app->name, r->revision);
        return;
    }
    if (source->home->n_workers == 0)
        return; /* they come at once */
    r->n_asked++;
    if (!provider_address(source, i->v->host, i->v->ask_port, &q.addr, &e)) {
        on_failure(r, e.text);
        return;
    }
    set_asking(r, true);
    registry_ask_metadata(source, &q);
}

void zk_revisions_ask(struct zk_app *app, uint64_t now)
{
    list_each(l, &app->revisions) {
        struct zk_revision *r = container_of(l, struct zk_revision, link);

        if (r->known || r->asking || now < r->retry_at_ms)
            continue;
        if (r->remote)
            read_node(r);
        else
            ask_instance(r);
    }
}

void zk_revisions_lost(struct zk_app *app)
{
    list_each(l, &app->revisions) {
        struct zk_revision *r = container_of(l, struct zk_revision, link);

        if (r->remote)
            set_asking(r, false);
    }
}
