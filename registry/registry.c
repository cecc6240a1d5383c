#include "registry/registry.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

/* ---------------------------------------------------------------- mail to others */

void registry_mail_free(struct registry_mail *m)
{
    directory_put(m->directory);
    definitions_put(m->definitions);
    free(m->ask);
    free(m->telnet);
    buf_free(&m->report);
    free(m->key_text);
    free(m);
}

struct registry_mail *registry_mail_new(enum registry_mail_kind kind)
{
    struct registry_mail *m = xcalloc(1, sizeof(*m));

    m->kind = kind;
    buf_init(&m->report, 0);
    return m;
}

void registry_send(const struct registry *r, unsigned worker, const struct outgoing *o)
{
    struct registry_mail *m = registry_mail_new(o->kind);

    ASSERT(worker < r->n_workers);
    m->refusal = o->refusal;
    m->key_text = strdup(o->key);
    if (m->key_text == NULL)
        fatal("out of memory");
    m->directory = o->directory != NULL ? directory_get(o->directory) : NULL;
    m->definitions = o->definitions != NULL ? definitions_get(o->definitions) : NULL;
    m->definitions_follow = o->definitions_follow;
    mailbox_push(r->workers[worker], &m->mail);
}

/* The workers take turns. */
static void send_question(struct registry *r, struct registry_mail *m)
{
    ASSERT(r->n_workers != 0);
    mailbox_push(r->workers[r->next_asked++ % r->n_workers], &m->mail);
}

void registry_ask_metadata(const struct source *s, const struct metadata_question *q)
{
    struct registry *r = s->home;
    struct registry_mail *m = registry_mail_new(REGISTRY_MAIL_ASK);
    size_t n_app = strlen(q->app) + 1;
    size_t n_revision = strlen(q->revision) + 1;
    struct metadata_ask *ask = xcalloc(1, sizeof(*ask) + n_app + n_revision);
    char *texts = (char *)(ask + 1);

    memcpy(texts, q->app, n_app);
    memcpy(texts + n_app, q->revision, n_revision);
    *ask = (struct metadata_ask){q->addr, s, texts, texts + n_app};
    m->ask = ask;
    send_question(r, m);
}

void registry_ask_telnet(struct registry *r, struct telnet_ask *ask)
{
    struct registry_mail *m = registry_mail_new(REGISTRY_MAIL_TELNET);

    m->telnet = ask;
    send_question(r, m);
}

void registry_send_all(const struct registry *r, const struct outgoing *o)
{
    for (unsigned i = 0; i < r->n_workers; i++)
        registry_send(r, i, o);
}

void registry_mark_dirty(struct registry *r)
{
    if (r->dirty_since_ms == 0)
        r->dirty_since_ms = clock_ms();
}

void source_set_connected(struct source *s, bool connected)
{
    if (s->connected == connected)
        return;
    s->connected = connected;
    s->changed_ms = clock_ms();
}

/* ---------------------------------------------------------------- the thread's turns */

static void update_numbers(struct registry *r)
{
    struct numbers *n = &r->numbers;
    uint64_t connected = 0;
    uint64_t waiting = r->configured ? r->n_waiting : 1; /* 1: the services are not known yet */
    uint64_t status = 0;

    for (size_t i = 0; i < r->n_sources; i++)
        connected += r->sources[i].connected ? 1U : 0U;
    counter_set(&n->connected, connected);
    counter_set(&n->disconnected, r->n_sources - connected);
    counter_set(&n->waiting, waiting);
    status = connected << 2 | (waiting != 0 ? 2U : 0U) | counter_get(&n->writable);
    if (r->opts.control != NULL && status != r->status)
        mailbox_push(r->opts.control, &registry_mail_new(REGISTRY_MAIL_STATUS)->mail);
    r->status = status;
}

void registry_take_mail(struct registry *r)
{
    struct mail *m = mailbox_take(&r->box);

    while (m != NULL) {
        struct mail *next = m->next;
        struct registry_post *p = container_of(m, struct registry_post, mail);

        p->run(p);
        m = next;
    }
    update_numbers(r);
}

static void tick_references(struct registry *r, uint64_t now)
{
    struct list todo;
    struct list *l = NULL;

    /* taken out first: ticking one may free others */
    list_init(&todo);
    while ((l = list_take(&r->timed)) != NULL)
        list_add(&todo, l);
    while ((l = list_take(&todo)) != NULL)
        reference_tick(container_of(l, struct reference, timed), now);
}

static void every_second(struct registry *r, uint64_t now)
{
    if (now - r->last_second_ms < 1000)
        return;
    r->last_second_ms = now;
    cache_second(r, now);
    if (now - r->last_resolve_ms < RESOLVE_AGAIN_MS)
        return;
    r->last_resolve_ms = now;
    for (struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next)
        reference_resolve_again(ref);
}

static bool wants_to_save(const struct registry *r, uint64_t now)
{
    return r->dirty_since_ms != 0 && now - r->dirty_since_ms >= SAVE_AFTER_MS &&
           now >= r->save_not_before_ms;
}

static void set_pace(struct registry *r, bool hurried)
{
    double s = (hurried ? TICK_MS : IDLE_TICK_MS) / 1000.;

    if (r->hurried == hurried && ev_is_active(&r->tick))
        return;
    r->hurried = hurried;
    ev_timer_stop(r->loop, &r->tick);
    ev_timer_set(&r->tick, s, s);
    ev_timer_start(r->loop, &r->tick);
}

void registry_tick(struct registry *r)
{
    uint64_t now = clock_ms();
    bool more = false;

    for (size_t i = 0; i < r->n_sources; i++)
        more = r->sources[i].kind->tick(r->sources[i].impl, now) || more;
    tick_references(r, now);
    every_second(r, now);
    if (wants_to_save(r, now))
        snapshot_save(r);
    update_numbers(r);
    set_pace(r, more);
}

static void on_wake(struct ev_loop *loop, ev_async *a, int events)
{
    struct registry *r = container_of(a, struct registry, wake);

    registry_take_mail(r);
    set_pace(r, true); /* mail mostly leaves something to do; the next tick knows */
    if (r->stopping)
        ev_break(loop, EVBREAK_ALL);
}

static void on_tick(struct ev_loop *loop, ev_timer *t, int events)
{
    registry_tick(container_of(t, struct registry, tick));
}

static void *thread_main(void *arg)
{
    struct registry *r = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    ev_run(r->loop, 0);
    snapshot_save(r);
    cache_free(r);
    for (size_t i = 0; i < r->n_sources; i++) {
        r->sources[i].kind->close(r->sources[i].impl);
        r->sources[i].impl = NULL;
    }
    return NULL;
}

/* ---------------------------------------------------------------- start and stop */

static void wake(struct mailbox *box)
{
    struct registry *r = container_of(box, struct registry, box);

    ev_async_send(r->loop, &r->wake);
}

static const char *keep(struct registry *r, const char *text)
{
    return text != NULL ? arena_cstr(&r->arena, str_from(text)) : NULL;
}

static void copy_opts(struct registry *r, const struct registry_opts *o)
{
    size_t n = o->n_consumer_parameters;
    struct url_param *params = arena_alloc(&r->arena, (n + 1) * sizeof(*params));

    r->opts = *o;
    r->opts.registries = NULL; /* each source has its own copy */
    r->opts.state_dir = keep(r, o->state_dir);
    r->opts.application = keep(r, o->application);
    r->opts.consumer_address = keep(r, o->consumer_address);
    r->opts.consumer_instance = keep(r, o->consumer_instance);
    for (size_t i = 0; i < n; i++) {
        params[i].key = arena_str(&r->arena, o->consumer_parameters[i].key);
        params[i].value = arena_str(&r->arena, o->consumer_parameters[i].value);
    }
    r->opts.consumer_parameters = params;
}

static void copy_conf(struct source *s, const struct registry_conf *c)
{
    struct registry *r = s->home;
    size_t n = c->n_provider_networks;
    struct network *nets = arena_alloc(&r->arena, (n + 1) * sizeof(*nets));

    s->conf = *c;
    s->conf.name = keep(r, c->name);
    s->conf.address = keep(r, c->address);
    s->conf.root = keep(r, c->root);
    s->conf.config_root = keep(r, c->config_root);
    s->conf.chroot = keep(r, c->chroot != NULL ? c->chroot : "");
    if (n != 0)
        memcpy(nets, c->provider_networks, n * sizeof(*nets));
    s->conf.provider_networks = nets;
    s->changed_ms = clock_ms();
    s->known.name = str_from(s->conf.name);
}

static bool open_source(struct source *s, struct err *e)
{
    s->kind = registry_kind_find(str_from(s->conf.address));
    if (s->kind == NULL) {
        struct buf shown;

        buf_init(&shown, URL_MAX + 8);
        url_print_masked(str_from(s->conf.address), &shown);
        err_set(e, "registry %s: \"" STR_FMT "\" is no registry address", s->conf.name,
                STR_ARG(buf_str(&shown)));
        buf_free(&shown);
        return false;
    }
    s->impl = s->kind->open(s, e);
    return s->impl != NULL;
}

static bool open_sources(struct registry *r, const struct registry_opts *o, struct err *e)
{
    r->fixed = (struct source){
        .home = r, .kind = &registry_kind_static, .impl = &r->fixed, .connected = true};
    r->sources = arena_alloc(&r->arena, (o->n_registries + 1) * sizeof(*r->sources));
    for (size_t i = 0; i < o->n_registries; i++) {
        r->sources[i].home = r;
        copy_conf(&r->sources[i], &o->registries[i]);
    }
    r->n_sources = o->n_registries;
    snapshot_load(r);
    for (size_t i = 0; i < r->n_sources; i++) {
        if (!open_source(&r->sources[i], e))
            return false;
    }
    return true;
}

void registry_free(struct registry *r)
{
    cache_free(r);
    for (size_t i = 0; i < r->n_sources; i++) {
        if (r->sources[i].impl != NULL)
            r->sources[i].kind->close(r->sources[i].impl);
    }
    r->stopping = true;
    registry_take_mail(r); /* what is left is freed */
    snapshot_free(r);
    ev_loop_destroy(r->loop);
    resolver_free(r->resolver);
    arena_free(&r->arena);
    free(r);
}

struct registry *registry_new(const struct registry_opts *opts, struct err *e)
{
    struct registry *r = xcalloc(1, sizeof(*r));

    arena_init(&r->arena);
    list_init(&r->lru);
    list_init(&r->timed);
    list_init(&r->room);
    copy_opts(r, opts);
    r->loop = ev_loop_new(EVFLAG_AUTO);
    if (r->loop == NULL)
        fatal("no event loop");
    mailbox_init(&r->box, wake);
    ev_async_init(&r->wake, on_wake);
    ev_async_start(r->loop, &r->wake);
    ev_init(&r->tick, on_tick);
    set_pace(r, true);
    r->resolver = resolver_new(NULL);
    r->last_resolve_ms = r->last_second_ms = clock_ms();
    if (!open_sources(r, opts, e)) {
        registry_free(r);
        return NULL;
    }
    update_numbers(r);
    return r;
}

struct registry *registry_start(const struct registry_opts *opts, struct err *e)
{
    struct registry *r = registry_new(opts, e);
    int rc = 0;

    if (r == NULL)
        return NULL;
    rc = pthread_create(&r->thread, NULL, thread_main, r);
    if (rc == 0)
        return r;
    err_set(e, "cannot start the registry thread: %s", strerror(rc));
    registry_free(r);
    return NULL;
}

void registry_stop(struct registry *r)
{
    registry_post_stop(r);
    pthread_join(r->thread, NULL);
    registry_free(r);
}

void registry_numbers(const struct registry *r, struct registry_numbers *out)
{
    const struct numbers *n = &r->numbers;

    *out = (struct registry_numbers){
        .subscriptions_total = counter_get(&n->subscriptions),
        .evictions_total = counter_get(&n->evictions),
        .writes_create_total = counter_get(&n->creates),
        .writes_delete_total = counter_get(&n->deletes),
        .events_total = counter_get(&n->events),
        .reconnects_total = counter_get(&n->reconnects),
        .sessions_expired_total = counter_get(&n->expired),
        .bad_rules = (uint32_t)counter_get(&n->bad_rules),
        .watches = counter_get(&n->watches),
        .consumer_nodes = counter_get(&n->consumer_nodes),
        .snapshot_saved_wall_ms = counter_get(&n->saved_wall_ms),
        .snapshot_writable = counter_get(&n->writable) != 0,
        .connected = (uint32_t)counter_get(&n->connected),
        .disconnected = (uint32_t)counter_get(&n->disconnected),
        .waiting = (uint32_t)counter_get(&n->waiting),
    };
    for (size_t i = 0; i < REFERENCE_STATES; i++)
        out->references[i] = counter_get(&n->references[i]);
}
