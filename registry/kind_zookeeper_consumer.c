/*
 * Our consumer node of each reference (docs/REGISTRY.md sections 4.2 and 4.3): written once per session, only
 * after a read that showed a provider; the name holds neither time nor process, so a restart meets its own
 * node again and takes it over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "registry/consumer.h"
#include "registry/zk.h"

enum {
    RETRY_MS = 5000,
    TRIES_MAX = 5,
    RETRY_LONG_MS = 300000, /* e.g. no permission: calls work, the node is asked for now and then */
    PER_TICK = 20,          /* creations: 1,000 in a second */
};

enum { STEP_CREATE, STEP_PARENT, STEP_LOOK, STEP_TAKE_OVER };

static void count_nodes(struct zk *z, int by)
{
    struct counter *c = &z->source->home->numbers.consumer_nodes;

    counter_set(c, counter_get(c) + (uint64_t)(int64_t)by);
}

static void set_state(struct reference *r, enum consumer_state to)
{
    struct zk *z = r->source->impl;

    if ((r->consumer == CONSUMER_THERE) != (to == CONSUMER_THERE))
        count_nodes(z, to == CONSUMER_THERE ? 1 : -1);
    r->consumer = to;
}

static bool make_node(struct zk *z, struct reference *r)
{
    const struct registry_opts *o = &z->source->home->opts;
    const struct consumer_opts co = {
        .ip = str_from(z->consumer_ip),
        .application = str_from(o->application),
        .instance = str_from(o->consumer_instance),
        .parameters = o->consumer_parameters,
        .n_parameters = o->n_consumer_parameters,
    };
    struct buf b;

    if (r->consumer_node != NULL)
        return true;
    if (z->consumer_ip[0] == '\0')
        return false;
    buf_init(&b, 16384);
    consumer_node(&r->key, &co, &b);
    if (!b.failed)
        r->consumer_node = strndup((const char *)b.data, b.len);
    buf_free(&b);
    return r->consumer_node != NULL;
}

static void node_path(const struct zk *z, const struct reference *r, bool parent, char *out,
                      size_t cap)
{
    if (parent)
        snprintf(out, cap, "%s/" STR_FMT "/consumers", z->source->conf.root,
                 STR_ARG(r->key.interface));
    else
        snprintf(out, cap, "%s/" STR_FMT "/consumers/%s", z->source->conf.root,
                 STR_ARG(r->key.interface), r->consumer_node);
}

static void send_step(struct zk *z, struct reference *r, int step, int32_t version);

static void later(struct reference *r, const char *why)
{
    bool give_up = ++r->consumer_tries >= TRIES_MAX;

    set_state(r, CONSUMER_FAILED);
    r->consumer_retry_ms = clock_ms() + (give_up ? RETRY_LONG_MS : RETRY_MS);
    reference_event(r, "consumer node: %s", why);
    log_warn("registry", "%s: the consumer node cannot be written (%s); calls go on, again in %d s",
             r->key_text, why, give_up ? RETRY_LONG_MS / 1000 : RETRY_MS / 1000);
}

static void is_there(struct reference *r)
{
    struct zk *z = r->source->impl;

    set_state(r, CONSUMER_THERE);
    r->consumer_session = z->session;
    r->consumer_tries = 0;
    reference_event(r, "consumer node is there");
}

static void on_looked(struct zk *z, struct reference *r, const struct zk_op *op)
{
    if (op->rc == ZNONODE)
        send_step(z, r, STEP_CREATE, 0); /* the old session ended just now */
    else if (op->rc != ZOK)
        later(r, zerror(op->rc));
    else if (op->owner == z->session)
        is_there(r); /* a create whose answer was lost */
    else if (op->owner == 0)
        later(r, "a persistent node of that name is in the way");
    else
        send_step(z, r, STEP_TAKE_OVER, op->version); /* ours, from before a restart */
}

static void on_created(struct zk *z, struct reference *r, const struct zk_op *op)
{
    switch (op->rc) {
    case ZOK:
        is_there(r);
        return;
    case ZNODEEXISTS:
        send_step(z, r, STEP_LOOK, 0);
        return;
    case ZNONODE: /* the interface is there, it had providers: only `consumers` is missing */
        if (r->consumer_tries++ < TRIES_MAX)
            send_step(z, r, STEP_PARENT, 0);
        else
            later(r, "the interface has no node");
        return;
    default:
        later(r, zerror(op->rc));
        return;
    }
}

static void on_step(struct zk_op *op)
{
    struct zk *z = op->zk;
    struct reference *r = NULL;

    HASH_FIND_STR(z->source->home->by_key, op->key, r);
    if (r == NULL || r->consumer != CONSUMER_WRITING)
        return;
    switch (op->step) {
    case STEP_CREATE:
        on_created(z, r, op);
        return;
    case STEP_PARENT:
        if (op->rc == ZOK || op->rc == ZNODEEXISTS)
            send_step(z, r, STEP_CREATE, 0);
        else
            later(r, zerror(op->rc));
        return;
    case STEP_LOOK:
        on_looked(z, r, op);
        return;
    case STEP_TAKE_OVER:
        if (op->rc == ZOK)
            is_there(r);
        else if (op->rc == ZNONODE && r->consumer_tries++ < TRIES_MAX)
            send_step(z, r, STEP_CREATE, 0);
        else
            later(r, zerror(op->rc));
        return;
    default:
        return;
    }
}

/* What a multi needs while it runs: it points into this. */
struct take_over {
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    char path[4096];
    char created[4096];
};

static void on_take_over(int rc, const void *data)
{
    zk_on_void(rc, data);
}

static void send_take_over(struct zk *z, struct zk_op *op, const char *path, int32_t version)
{
    struct take_over *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        zk_op_sent(op, ZSYSTEMERROR);
        return;
    }
    snprintf(t->path, sizeof(t->path), "%s", path);
    op->target = t;
    zoo_delete_op_init(&t->ops[0], t->path, version);
    zoo_create_op_init(&t->ops[1], t->path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, t->created,
                       (int)sizeof(t->created));
    counter_add(&z->source->home->numbers.deletes, 1);
    counter_add(&z->source->home->numbers.creates, 1);
    zk_op_sent(op, zoo_amulti(z->handle, 2, t->ops, t->results, on_take_over, op));
}

static void send_step(struct zk *z, struct reference *r, int step, int32_t version)
{
    char path[4096];
    struct zk_op *op = NULL;

    if (z->handle == NULL || !z->connected) {
        later(r, "no connection");
        return;
    }
    op = zk_op_new(z, on_step);
    op->key = strdup(r->key_text);
    op->step = step;
    node_path(z, r, step == STEP_PARENT, path, sizeof(path));
    switch (step) {
    case STEP_CREATE:
        counter_add(&z->source->home->numbers.creates, 1);
        zk_op_sent(op, zoo_acreate(z->handle, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
                                   zk_on_string, op));
        return;
    case STEP_PARENT:
        counter_add(&z->source->home->numbers.creates, 1);
        zk_op_sent(op, zoo_acreate(z->handle, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                                   zk_on_string, op));
        return;
    case STEP_LOOK:
        zk_op_sent(op, zoo_aexists(z->handle, path, 0, zk_on_stat, op));
        return;
    default:
        send_take_over(z, op, path, version);
        return;
    }
}

void zk_publish(void *kind, struct reference *r)
{
    struct zk *z = kind;

    if (r->consumer == CONSUMER_WRITING || r->consumer == CONSUMER_FAILED ||
        (r->consumer == CONSUMER_THERE && r->consumer_session == z->session) || !z->connected ||
        !make_node(z, r))
        return;
    set_state(r, CONSUMER_WRITING);
    send_step(z, r, STEP_CREATE, 0);
}

static void on_deleted(struct zk_op *op)
{
    if (op->rc != ZOK && op->rc != ZNONODE)
        log_info("registry", "a consumer node could not be deleted: %s; it goes with the session",
                 zerror(op->rc));
}

void zk_unpublish(void *kind, struct reference *r)
{
    struct zk *z = kind;
    char path[4096];
    struct zk_op *op = NULL;

    /* at the end the session's close takes all nodes at once */
    if (r->consumer == CONSUMER_THERE && r->consumer_session == z->session && z->connected &&
        z->handle != NULL && !z->source->home->stopping) {
        op = zk_op_new(z, on_deleted);
        node_path(z, r, false, path, sizeof(path));
        counter_add(&z->source->home->numbers.deletes, 1);
        zk_op_sent(op, zoo_adelete(z->handle, path, -1, zk_on_void, op));
    }
    set_state(r, CONSUMER_NONE);
}

/* Ephemeral nodes went with the old session.  They come again with the first list of the new one, which is
 * read at the pace of zk_paths_tick. */
void zk_consumer_new_session(struct zk *z)
{
    for (struct reference *r = z->source->home->by_key; r != NULL; r = r->hh.next) {
        if (r->source == z->source)
            set_state(r, CONSUMER_NONE);
    }
}

void zk_consumer_tick(struct zk *z, uint64_t now_ms)
{
    unsigned n = 0;

    for (struct reference *r = z->source->home->by_key; r != NULL && n < PER_TICK; r = r->hh.next) {
        if (r->source != z->source || r->consumer != CONSUMER_FAILED ||
            now_ms < r->consumer_retry_ms)
            continue;
        set_state(r, CONSUMER_NONE);
        zk_publish(z, r);
        n++;
    }
}
